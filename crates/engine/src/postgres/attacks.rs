//! Raw SQL, past the critic, straight to a connection of the pool: the second lock must hold alone.
//!
//! What a transaction that may only read does not keep a query from, and who it takes:
//! - anybody: `pg_sleep` (ended by the limit on time), `setseed`, and `pg_cancel_backend` or `pg_terminate_backend` on what runs
//!   under the same user, this connection included;
//! - whoever may call `dblink` or other functions that open connections: writes on the other end;
//! - a superuser: functions that read or write files of the server (`pg_read_file`, `lo_export`) or tell it something
//!   (`pg_reload_conf`, `pg_switch_wal`, `pg_stat_reset`). Statements that do such things (`COPY … TO PROGRAM`, `ALTER SYSTEM`)
//!   are refused to superusers as well.

// Tests say what they skip.
#![allow(clippy::print_stderr)]

mod corpus;

use querymend_testing::{ServerLock, exclusive, hang_timeout};
use tokio_postgres::{Client, NoTls};

use super::*;

/// What is attacked. The reader owns it and may do with it what it likes, so that the lock is tried and not the rights.
const CANARY: &str = "DROP SCHEMA IF EXISTS canary CASCADE; CREATE SCHEMA canary AUTHORIZATION reader; SET ROLE reader;
    CREATE TABLE canary.birds (id serial PRIMARY KEY, song text); INSERT INTO canary.birds (song) VALUES ('tweet'), ('chirp');
    CREATE MATERIALIZED VIEW canary.songs AS SELECT song FROM canary.birds;
    CREATE FUNCTION canary.sing(text) RETURNS bigint LANGUAGE plpgsql VOLATILE SECURITY DEFINER AS
        $$ BEGIN INSERT INTO canary.birds (song) VALUES ($1); RETURN 1; END $$;
    CREATE FUNCTION canary.swallow(text) RETURNS bigint LANGUAGE plpgsql AS
        $$ BEGIN BEGIN EXECUTE $1; EXCEPTION WHEN OTHERS THEN NULL; END; INSERT INTO canary.birds (song) VALUES ('x');
           RETURN 1; END $$;
    CREATE PROCEDURE canary.perch(INOUT n bigint) LANGUAGE plpgsql AS
        $$ BEGIN COMMIT; SET TRANSACTION READ WRITE; INSERT INTO canary.birds (song) VALUES ('x'); COMMIT; END $$;
    CREATE PROCEDURE canary.nest(INOUT n bigint) LANGUAGE plpgsql AS
        $$ BEGIN SET TRANSACTION READ WRITE; INSERT INTO canary.birds (song) VALUES ('x'); END $$;
    RESET ROLE;";

/// All that a write could have changed, as one text.
const STATE: &str = "SELECT concat_ws('/', (SELECT array_agg(b ORDER BY b.id) FROM canary.birds b)::text,
    (SELECT last_value || ' ' || is_called FROM canary.birds_id_seq), (SELECT count(*) FROM canary.songs),
    (SELECT array_agg(c.oid || c.relname || c.relacl::text || c.reloptions::text ORDER BY c.oid)::text FROM pg_class c
     WHERE c.relowner = 'reader'::regrole), (SELECT count(*) FROM pg_class WHERE relname LIKE '%x%' AND relpersistence = 't'),
    (SELECT array_agg(a ORDER BY a.attrelid, a.attnum)::text FROM
     (SELECT attrelid, attnum, attname, atttypid FROM pg_attribute WHERE attrelid IN ('canary.birds'::regclass)) a),
    (SELECT array_agg(p.oid ORDER BY p.oid)::text FROM pg_proc p WHERE p.proowner = 'reader'::regrole),
    (SELECT array_agg(r.rolname || r.rolsuper || coalesce(r.rolconfig::text, '') ORDER BY r.oid)::text FROM pg_roles r),
    (SELECT count(*) FROM pg_largeobject_metadata), (SELECT count(*) FROM pg_prepared_xacts),
    (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'), (SELECT count(*) FROM pg_db_role_setting),
    (SELECT count(*) FROM pg_file_settings), (SELECT count(*) FROM pg_description WHERE objoid = 'canary.birds'::regclass),
    (SELECT count(*) FROM pg_namespace), (SELECT count(*) FROM pg_database), (SELECT count(*) FROM pg_extension))";

/// Writes of all families. Whoever asks, they are refused.
const WRITES: &[&str] = &[
    "INSERT INTO canary.birds (song) VALUES ('x')",
    "INSERT INTO canary.birds (song) VALUES ('x') RETURNING id",
    "INSERT INTO canary.birds VALUES (1, 'x') ON CONFLICT (id) DO UPDATE SET song = 'x' RETURNING *",
    "UPDATE canary.birds SET song = ''",
    "UPDATE canary.birds SET song = '' RETURNING *",
    "DELETE FROM canary.birds",
    "DELETE FROM canary.birds RETURNING *",
    "TRUNCATE canary.birds",
    "MERGE INTO canary.birds USING (SELECT 1 AS id) s ON birds.id = s.id WHEN MATCHED THEN DELETE",
    "WITH gone AS (DELETE FROM canary.birds RETURNING *) SELECT * FROM gone",
    "WITH x AS (INSERT INTO canary.birds (song) VALUES ('x') RETURNING 1) SELECT count(*) FROM x",
    "WITH x AS (UPDATE canary.birds SET song = '' RETURNING 1) SELECT 1",
    "EXPLAIN ANALYZE DELETE FROM canary.birds",
    "EXPLAIN (ANALYZE, FORMAT JSON) INSERT INTO canary.birds (song) VALUES ('x')",
    "DROP TABLE canary.birds",
    "DROP SCHEMA canary CASCADE",
    "DROP OWNED BY reader",
    "ALTER TABLE canary.birds ADD COLUMN x text",
    "ALTER TABLE canary.birds RENAME TO x",
    "ALTER ROLE reader SUPERUSER",
    "ALTER ROLE reader SET default_transaction_read_only = off",
    "ALTER ROLE reader PASSWORD 'x'",
    "ALTER DATABASE app SET default_transaction_read_only = off",
    "ALTER SYSTEM SET work_mem = '1MB'",
    "CREATE TABLE canary.x (y int)",
    "CREATE TABLE canary.x AS SELECT 1",
    "CREATE TEMP TABLE x (y int)",
    "CREATE TEMP TABLE x AS SELECT 1",
    "CREATE TEMP VIEW x AS SELECT 1",
    "SELECT 1 AS y INTO canary.x",
    "SELECT 1 AS y INTO TEMP x",
    "SELECT * INTO UNLOGGED canary.x FROM canary.birds",
    "CREATE INDEX x ON canary.birds (song)",
    "CREATE INDEX CONCURRENTLY x ON canary.birds (song)",
    "CREATE VIEW canary.x AS SELECT 1",
    "CREATE SEQUENCE canary.x",
    "CREATE FUNCTION canary.x() RETURNS int LANGUAGE sql AS 'SELECT 1'",
    "CREATE RULE x AS ON SELECT TO canary.birds DO INSTEAD SELECT 1",
    "CREATE TRIGGER x BEFORE INSERT ON canary.birds EXECUTE FUNCTION canary.sing('x')",
    "CREATE ROLE x",
    "CREATE DATABASE x",
    "CREATE EXTENSION IF NOT EXISTS vector",
    "GRANT ALL ON canary.birds TO PUBLIC",
    "REVOKE ALL ON canary.birds FROM reader",
    "REASSIGN OWNED BY reader TO postgres",
    "COMMENT ON TABLE canary.birds IS 'x'",
    "SECURITY LABEL ON TABLE canary.birds IS 'x'",
    "REFRESH MATERIALIZED VIEW canary.songs",
    "VACUUM",
    "VACUUM FULL canary.birds",
    "ANALYZE canary.birds",
    "CLUSTER canary.birds",
    "REINDEX TABLE canary.birds",
    "CHECKPOINT",
    "LOAD 'plpgsql'",
    "COPY canary.birds FROM STDIN",
    "COPY canary.birds TO STDOUT",
    "COPY (SELECT 1) TO PROGRAM 'true'",
    "COPY canary.birds FROM PROGRAM 'echo 9,x'",
    "COPY canary.birds TO '/tmp/querymend-attack'",
    "DO $$ BEGIN INSERT INTO canary.birds (song) VALUES ('x'); END $$",
    "DO $$ BEGIN COMMIT; SET TRANSACTION READ WRITE; DELETE FROM canary.birds; COMMIT; END $$",
    "DO $$ BEGIN SET TRANSACTION READ WRITE; DELETE FROM canary.birds; END $$",
    "CALL canary.perch(1)",
    "CALL canary.nest(1)",
    "SELECT canary.sing('x')",
    "SELECT canary.swallow('SET TRANSACTION READ WRITE')",
    "SELECT canary.swallow('SET LOCAL transaction_read_only = off')",
    "SELECT canary.swallow('COMMIT')",
    "SELECT canary.swallow('ROLLBACK')",
    "SELECT * FROM canary.sing('x')",
    "SELECT song FROM canary.birds WHERE canary.sing(song) = 1",
    "SELECT nextval('canary.birds_id_seq')",
    "SELECT setval('canary.birds_id_seq', 99)",
    "SELECT lo_create(0)",
    "SELECT lo_from_bytea(0, '\\x00')",
    "SELECT lo_unlink(1)",
    "SELECT query_to_xml('DELETE FROM canary.birds RETURNING 1', true, true, '')",
    "SELECT database_to_xml(true, true, 'x'), query_to_xml('SELECT canary.sing(''x'')', true, true, '')",
    "SELECT * FROM canary.birds FOR UPDATE",
    "SELECT * FROM canary.birds FOR KEY SHARE",
    "LOCK TABLE canary.birds IN ACCESS EXCLUSIVE MODE",
    "NOTIFY x",
    "LISTEN x",
    "UNLISTEN *",
    "BEGIN",
    "BEGIN READ WRITE",
    "START TRANSACTION READ WRITE",
    "COMMIT",
    "COMMIT AND CHAIN",
    "END",
    "ROLLBACK",
    "ROLLBACK AND CHAIN",
    "ABORT",
    "SAVEPOINT x",
    "PREPARE TRANSACTION 'x'",
    "COMMIT PREPARED 'x'",
    "SET TRANSACTION READ WRITE",
    "SET SESSION CHARACTERISTICS AS TRANSACTION READ WRITE",
    "SET default_transaction_read_only = off",
    "SET LOCAL transaction_read_only = off",
    "SET ROLE postgres",
    "SET SESSION AUTHORIZATION postgres",
    "SET statement_timeout = 0",
    "SET standard_conforming_strings = off",
    "RESET ALL",
    "RESET default_transaction_read_only",
    "DISCARD ALL",
    "DISCARD TEMP",
    "PREPARE x AS DELETE FROM canary.birds",
    "EXECUTE querymend",
    "DEALLOCATE ALL",
    "DECLARE x CURSOR WITH HOLD FOR SELECT 1",
    "FETCH ALL FROM x",
    "SELECT set_config('transaction_read_only', 'off', false)",
    "SELECT set_config('transaction_read_only', 'off', true), canary.sing('x')",
    "SELECT set_config('default_transaction_read_only', 'off', false), canary.sing('x')",
    "SELECT 1; DELETE FROM canary.birds",
    "SELECT 1; COMMIT; DELETE FROM canary.birds",
    "COMMIT; DELETE FROM canary.birds",
    "ROLLBACK; BEGIN READ WRITE; DELETE FROM canary.birds; COMMIT",
    "SELECT 1 /* ; */; DROP TABLE canary.birds --",
    "SELECT '\\'; DELETE FROM canary.birds; --'",
    "SELECT E'\\'; DELETE FROM canary.birds; --",
    "SELECT 1;\0DELETE FROM canary.birds",
    "",
    ";",
    "  -- nothing",
    "SELECT $1",
    "SELECT * FROM canary.birds WHERE song = $1",
    "TABLE canary.birds; TABLE canary.birds",
    "IMPORT FOREIGN SCHEMA x FROM SERVER x INTO canary",
];

/// A database to attack, asked over one connection, so that what one query leaves behind the next would find. One test at a time:
/// they look for what the other would leave.
struct Ground {
    reader: Postgres,
    superuser: Postgres,
    admin: Client,
    _lock: ServerLock,
}

async fn ground() -> Option<Ground> {
    let Ok(reader) = std::env::var("QUERYMEND_TEST_POSTGRES") else {
        assert!(std::env::var_os("CI").is_none(), "there is no PostgreSQL; scripts/engines.sh up postgres");
        eprintln!("skipped: there is no PostgreSQL; scripts/engines.sh up postgres");
        return None;
    };
    let lock = exclusive("postgres");
    let superuser = reader.replacen("reader:reader@", "postgres:querymend@", 1);
    let (admin, connection) = tokio_postgres::connect(&superuser, NoTls).await.unwrap();
    tokio::spawn(connection);
    admin.batch_execute(CANARY).await.unwrap();
    let open = |address: &str| Postgres::open(&format!("{address}?pool=1")).unwrap();
    Some(Ground { reader: open(&reader), superuser: open(&superuser), admin, _lock: lock })
}

impl Ground {
    async fn state(&self) -> String {
        self.admin.query_one(STATE, &[]).await.unwrap().get(0)
    }
}

/// What `Engine::execute` does with an approved query.
async fn send(engine: &Postgres, sql: &str) -> Result<Rows, Error> {
    let limits = Limits { time: hang_timeout(), ..Limits::default() };
    run::execute(&engine.pool, sql, &limits, &Cancel::new()).await
}

async fn settings(engine: &Postgres) -> Rows {
    let sql = "SELECT current_user::text, session_user::text, current_setting('transaction_read_only'),
        current_setting('default_transaction_read_only'), current_setting('statement_timeout'), current_setting('lock_timeout'),
        current_setting('standard_conforming_strings'), current_setting('datestyle'), current_setting('timezone'),
        current_setting('search_path'), current_setting('bytea_output'), current_setting('client_encoding'),
        current_setting('work_mem'), coalesce(current_setting('my.own', true), ''),
        (SELECT count(*) FROM pg_prepared_statements WHERE from_sql), (SELECT count(*) FROM pg_listening_channels()),
        (SELECT count(*) FROM pg_cursors WHERE is_holdable)";
    send(engine, sql).await.unwrap()
}

#[tokio::test]
async fn c01_f03_writes_are_refused_by_the_engine_alone() {
    let Some(ground) = ground().await else { return };
    let before = ground.state().await;
    for engine in [&ground.reader, &ground.superuser] {
        let set = settings(engine).await;
        for sql in WRITES {
            let outcome = send(engine, sql).await;
            assert!(matches!(outcome, Err(Error::Rejected(_))), "{sql}: {outcome:?}");
        }
        assert_eq!(settings(engine).await, set);
    }
    assert_eq!(ground.state().await, before);
    assert!(!std::path::Path::new("/tmp/querymend-attack").exists());
}

/// What emptied databases behind a server that sent texts as they came, inside of a transaction that only reads. The same text does
/// the same here when it is sent that way; an engine that has each text prepared is told that it is several.
#[tokio::test]
async fn c01_the_published_incident_commit_and_drop_schema() {
    let Some(ground) = ground().await else { return };
    let incident = "COMMIT; DROP SCHEMA nest CASCADE;";
    let there = "SELECT count(*) FROM pg_namespace WHERE nspname = 'nest'";
    for (engine, destroyed) in [(None, 0), (Some(&ground.reader), 1), (Some(&ground.superuser), 1)] {
        ground
            .admin
            .batch_execute("CREATE SCHEMA IF NOT EXISTS nest; CREATE TABLE IF NOT EXISTS nest.eggs (x int)")
            .await
            .unwrap();
        match engine {
            None => ground.admin.batch_execute(&format!("BEGIN READ ONLY; {incident}")).await.unwrap(),
            Some(engine) => {
                let outcome = send(engine, incident).await;
                assert!(matches!(&outcome, Err(Error::Rejected(said)) if said.code == "42601"), "{outcome:?}");
            }
        }
        assert_eq!(ground.admin.query_one(there, &[]).await.unwrap().get::<_, i64>(0), destroyed);
    }
    let before = ground.state().await;
    for engine in [&ground.reader, &ground.superuser] {
        let outcome = send(engine, "COMMIT; DROP SCHEMA public CASCADE;").await;
        assert!(matches!(outcome, Err(Error::Rejected(_))), "{outcome:?}");
    }
    assert_eq!(ground.state().await, before);
    ground.admin.batch_execute("DROP SCHEMA nest CASCADE").await.unwrap();
}

#[tokio::test]
async fn c01_what_a_query_does_to_its_connection_ends_with_it() {
    let Some(ground) = ground().await else { return };
    let before = ground.state().await;
    for engine in [&ground.reader, &ground.superuser] {
        let set = settings(engine).await;
        for sql in [
            "SELECT set_config('default_transaction_read_only', 'off', false)",
            "SELECT set_config('statement_timeout', '0', false)",
            "SELECT set_config('standard_conforming_strings', 'off', false)",
            "SELECT set_config('search_path', 'canary', false)",
            "SELECT set_config('datestyle', 'German', false)",
            "SELECT set_config('timezone', 'Asia/Tokyo', false)",
            "SELECT set_config('bytea_output', 'escape', false)",
            "SELECT set_config('work_mem', '64kB', false)",
            "SELECT set_config('my.own', 'x', false)",
            "SELECT set_config('role', 'reader', false)",
            "UPDATE pg_settings SET setting = 'off' WHERE name = 'default_transaction_read_only' RETURNING 1",
            "SELECT pg_advisory_lock(7)",
            "SELECT pg_try_advisory_lock(7), pg_advisory_lock_shared(8, 9), 7::money",
            "SELECT U&\"pg_adv\\0069sory_lock\"(7)",
            "SELECT query_to_xml('SELECT pg_adv' || 'isory_lock(7)', true, true, '')",
            "SELECT pg_notify('x', 'y')",
            "SELECT pg_current_xact_id()",
            // The server does not see that these write; the rollback undoes it.
            "EXPLAIN ANALYZE CREATE TABLE canary.x AS SELECT 1",
            "EXPLAIN ANALYZE CREATE MATERIALIZED VIEW canary.x AS SELECT 1",
            "EXPLAIN ANALYZE SELECT 1 AS y INTO canary.x",
            "SELECT 1/0, 7::money",
            "SELECT 7::money",
        ] {
            // Whether it is refused is not the point.
            drop(send(engine, sql).await);
            assert_eq!(settings(engine).await, set, "{sql}");
            assert_eq!(ground.state().await, before, "{sql}");
        }
    }
}

#[tokio::test]
async fn c01_a_query_that_ends_its_own_connection_harms_no_other() {
    let Some(ground) = ground().await else { return };
    let engine = &ground.reader;
    let outcome = send(engine, "SELECT pg_cancel_backend(pg_backend_pid()), pg_sleep(1)").await;
    assert_eq!(outcome, Err(Error::Cancelled));
    let outcome = send(engine, "SELECT pg_terminate_backend(pg_backend_pid()), pg_sleep(1)").await;
    assert!(matches!(outcome, Err(Error::Unavailable { transient: true, .. })), "{outcome:?}");
    assert_eq!(send(engine, "SELECT 1").await.unwrap().rows.len(), 1);
}

#[tokio::test]
async fn c01_reading_is_not_taken_for_writing() {
    let Some(ground) = ground().await else { return };
    for sql in [
        "SELECT 'DROP TABLE canary; --' AS update_time;",
        "SELECT 1 ; -- done",
        "SELECT 1 /* ; */ ;;",
        "SELECT '\\'",
        "VALUES (1), (2)",
        "TABLE canary.birds",
        "(SELECT 1)",
        "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 9) SELECT sum(i) FROM n",
        "EXPLAIN SELECT * FROM canary.birds",
        "EXPLAIN (ANALYZE, FORMAT JSON) SELECT * FROM canary.birds",
        "SHOW transaction_read_only",
        "SELECT * FROM json_array_elements('[1, 2]')",
        "SELECT row_number() OVER (ORDER BY song) FROM canary.birds;",
        "SELECT song, 7::money FROM canary.birds; -- and something else",
    ] {
        let outcome = send(&ground.reader, sql).await;
        assert!(outcome.is_ok(), "{sql}: {outcome:?}");
    }
}

#[tokio::test]
async fn monstrous_queries_are_refused_and_leave_the_server_standing() {
    let Some(ground) = ground().await else { return };
    let nested = format!("SELECT {}1{}", "(".repeat(100_000), ")".repeat(100_000));
    let subqueries = format!("{}SELECT 1{}", "SELECT * FROM (".repeat(50_000), ") x".repeat(50_000));
    let many = "SELECT 1;".repeat(100_000);
    for sql in [nested, subqueries, many] {
        let outcome = send(&ground.reader, &sql).await;
        assert!(matches!(outcome, Err(Error::Rejected(_))), "{sql:.40}: {outcome:?}");
    }
    assert_eq!(send(&ground.reader, "SELECT 1").await.unwrap().rows.len(), 1);
}
