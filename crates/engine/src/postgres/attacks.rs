//! Attacks with raw SQL that bypasses query review.
//!
//! It is sent to a pooled connection: the read-only enforcement must hold on its own. A read-only
//! transaction does not prevent the following, depending on the user:
//! - any user: `pg_sleep` (ended by the time limit), `setseed`, and `pg_cancel_backend` or
//!   `pg_terminate_backend` on sessions of the same user, including this connection;
//! - users who may call `dblink` or other functions that open connections: writes at the other end;
//! - superusers: functions that read or write files of the server (`pg_read_file`, `lo_export`) or
//!   control it (`pg_reload_conf`, `pg_switch_wal`, `pg_stat_reset`). Statements with such effects
//!   (`COPY … TO PROGRAM`, `ALTER SYSTEM`) are rejected for superusers as well.

// Tests report skips on stderr.
#![allow(clippy::print_stderr)]

use std::time::{Duration, Instant};

use querymend_sql::EngineError;
use querymend_sql::dialect::POSTGRES;
use querymend_testing::{ServerLock, hang_timeout, lock_server};
use tokio_postgres::{Client, NoTls};

use super::*;
use crate::attack_corpus::{AttackCorpus, AttackTally, RejectionReason, data_dir, load_server_corpus};

/// Creates the attacked schema. The reader owns it, so that the enforcement is tested and not the
/// privileges.
const SETUP_SQL: &str = "DROP SCHEMA IF EXISTS canary CASCADE; CREATE SCHEMA canary AUTHORIZATION reader; SET ROLE reader;
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

/// Returns all state that a write could change, as one string.
const STATE_QUERY: &str = "SELECT concat_ws('/', (SELECT array_agg(b ORDER BY b.id) FROM canary.birds b)::text,
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

/// Writes of all kinds, which must be rejected for every user.
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

/// Attacked database.
///
/// Each user has a single connection, so that a query would see the state that a previous one left.
/// The lock serializes the tests, because each of them checks the state that another would change.
struct AttackSetup {
    reader: PostgresEngine,
    superuser: PostgresEngine,
    admin: Client,
    _lock: ServerLock,
}

async fn setup() -> Option<AttackSetup> {
    let Ok(reader) = std::env::var("QUERYMEND_TEST_POSTGRES") else {
        assert!(std::env::var_os("CI").is_none(), "there is no PostgreSQL; scripts/engines.sh up postgres");
        eprintln!("skipped: there is no PostgreSQL; scripts/engines.sh up postgres");
        return None;
    };
    let lock = lock_server("postgres");
    let superuser = reader.replacen("reader:reader@", "postgres:querymend@", 1);
    let (admin, connection) = tokio_postgres::connect(&superuser, NoTls).await.unwrap();
    tokio::spawn(connection);
    admin.batch_execute(SETUP_SQL).await.unwrap();
    let open = |address: &str| PostgresEngine::open(&format!("{address}?pool=1")).unwrap();
    Some(AttackSetup { reader: open(&reader), superuser: open(&superuser), admin, _lock: lock })
}

impl AttackSetup {
    async fn state(&self) -> String {
        self.admin.query_one(STATE_QUERY, &[]).await.unwrap().get(0)
    }
}

/// Runs SQL as `Engine::execute` runs an approved query.
async fn execute_raw(engine: &PostgresEngine, sql: &str) -> Result<Rows, Error> {
    let limits = Limits { time: hang_timeout(), ..Limits::default() };
    run::execute(&engine.pool, sql, &limits, &CancelFlag::new()).await
}

async fn session_settings(engine: &PostgresEngine) -> Rows {
    let sql = "SELECT current_user::text, session_user::text, current_setting('transaction_read_only'),
        current_setting('default_transaction_read_only'), current_setting('statement_timeout'), current_setting('lock_timeout'),
        current_setting('standard_conforming_strings'), current_setting('datestyle'), current_setting('timezone'),
        current_setting('search_path'), current_setting('bytea_output'), current_setting('client_encoding'),
        current_setting('work_mem'), coalesce(current_setting('my.own', true), ''),
        (SELECT count(*) FROM pg_prepared_statements WHERE from_sql), (SELECT count(*) FROM pg_listening_channels()),
        (SELECT count(*) FROM pg_cursors WHERE is_holdable)";
    execute_raw(engine, sql).await.unwrap()
}

#[tokio::test]
async fn rejects_writes_that_bypass_the_review() {
    let Some(ground) = setup().await else { return };
    let before = ground.state().await;
    for engine in [&ground.reader, &ground.superuser] {
        let set = session_settings(engine).await;
        for sql in WRITES {
            let outcome = execute_raw(engine, sql).await;
            assert!(matches!(outcome, Err(Error::Rejected(_))), "{sql}: {outcome:?}");
        }
        assert_eq!(session_settings(engine).await, set);
    }
    assert_eq!(ground.state().await, before);
    assert!(!std::path::Path::new("/tmp/querymend-attack").exists());
}

/// Replays a published stacked-query attack (`COMMIT; DROP …`).
///
/// It emptied databases of a server program that sent SQL unprepared inside a read-only
/// transaction. It succeeds here as well if it is sent that way; this engine prepares the SQL, and
/// the server rejects multiple statements.
#[tokio::test]
async fn rejects_stacked_commit_and_drop_schema() {
    let Some(ground) = setup().await else { return };
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
                let outcome = execute_raw(engine, incident).await;
                assert!(
                    matches!(&outcome, Err(Error::Rejected(engine_error)) if engine_error.code == "42601"),
                    "{outcome:?}"
                );
            }
        }
        assert_eq!(ground.admin.query_one(there, &[]).await.unwrap().get::<_, i64>(0), destroyed);
    }
    let before = ground.state().await;
    for engine in [&ground.reader, &ground.superuser] {
        let outcome = execute_raw(engine, "COMMIT; DROP SCHEMA public CASCADE;").await;
        assert!(matches!(outcome, Err(Error::Rejected(_))), "{outcome:?}");
    }
    assert_eq!(ground.state().await, before);
    ground.admin.batch_execute("DROP SCHEMA nest CASCADE").await.unwrap();
}

#[tokio::test]
async fn resets_connection_state_after_each_query() {
    let Some(ground) = setup().await else { return };
    let before = ground.state().await;
    for engine in [&ground.reader, &ground.superuser] {
        let set = session_settings(engine).await;
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
            // The server does not detect that these write; the rollback undoes it.
            "EXPLAIN ANALYZE CREATE TABLE canary.x AS SELECT 1",
            "EXPLAIN ANALYZE CREATE MATERIALIZED VIEW canary.x AS SELECT 1",
            "EXPLAIN ANALYZE SELECT 1 AS y INTO canary.x",
            "SELECT 1/0, 7::money",
            "SELECT 7::money",
        ] {
            // It may or may not be rejected.
            drop(execute_raw(engine, sql).await);
            assert_eq!(session_settings(engine).await, set, "{sql}");
            assert_eq!(ground.state().await, before, "{sql}");
        }
    }
}

#[tokio::test]
async fn self_terminated_connection_harms_no_other() {
    let Some(ground) = setup().await else { return };
    let engine = &ground.reader;
    let outcome = execute_raw(engine, "SELECT pg_cancel_backend(pg_backend_pid()), pg_sleep(1)").await;
    assert_eq!(outcome, Err(Error::Cancelled));
    let outcome = execute_raw(engine, "SELECT pg_terminate_backend(pg_backend_pid()), pg_sleep(1)").await;
    assert!(matches!(outcome, Err(Error::Unavailable { transient: true, .. })), "{outcome:?}");
    assert_eq!(execute_raw(engine, "SELECT 1").await.unwrap().rows.len(), 1);
}

#[tokio::test]
async fn accepts_reads_that_look_like_writes() {
    let Some(ground) = setup().await else { return };
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
        let outcome = execute_raw(&ground.reader, sql).await;
        assert!(outcome.is_ok(), "{sql}: {outcome:?}");
    }
}

#[tokio::test]
async fn rejects_oversized_queries_and_the_server_survives() {
    let Some(ground) = setup().await else { return };
    let nested = format!("SELECT {}1{}", "(".repeat(100_000), ")".repeat(100_000));
    let subqueries = format!("{}SELECT 1{}", "SELECT * FROM (".repeat(50_000), ") x".repeat(50_000));
    let many = "SELECT 1;".repeat(100_000);
    for sql in [nested, subqueries, many] {
        let outcome = execute_raw(&ground.reader, &sql).await;
        assert!(matches!(outcome, Err(Error::Rejected(_))), "{sql:.40}: {outcome:?}");
    }
    assert_eq!(execute_raw(&ground.reader, "SELECT 1").await.unwrap().rows.len(), 1);
}

// Attack corpus on PostgreSQL.

/// Real schemas, with real types, that many of the statements reference.
const REAL_SCHEMAS: &[&str] = &["superhero", "financial", "card_games", "codebase_community", "california_schools"];

/// System columns of every table.
const SYSTEM_COLUMNS: &[&str] = &["ctid", "tableoid", "xmin", "xmax", "cmin", "cmax"];

/// Returns all state that a write could change in the database or on the server, as one string.
const CORPUS_STATE_QUERY: &str = "SELECT concat_ws('/',
    (SELECT array_agg((c.oid, c.relname, c.relkind, c.relfilenode, c.relacl::text, c.reloptions::text, c.relhastriggers) ORDER BY c.oid)
     FROM pg_class c)::text,
    (SELECT array_agg((a.attrelid, a.attnum, a.attname, a.atttypid, a.attnotnull) ORDER BY a.attrelid, a.attnum)
     FROM pg_attribute a WHERE a.attrelid > 16383)::text,
    (SELECT array_agg(p.oid ORDER BY p.oid) FROM pg_proc p)::text, (SELECT array_agg(t.oid ORDER BY t.oid) FROM pg_type t)::text,
    (SELECT array_agg(t.oid ORDER BY t.oid) FROM pg_trigger t)::text, (SELECT array_agg(k.oid ORDER BY k.oid) FROM pg_constraint k)::text,
    (SELECT array_agg((n.oid, n.nspacl::text) ORDER BY n.oid) FROM pg_namespace n)::text,
    (SELECT array_agg((r.rolname, r.rolsuper, r.rolconfig) ORDER BY r.oid) FROM pg_roles r)::text,
    (SELECT array_agg(d.datname ORDER BY 1) FROM pg_database d)::text, (SELECT array_agg(e.extname ORDER BY 1) FROM pg_extension e)::text,
    (SELECT count(*) FROM pg_largeobject_metadata), (SELECT count(*) FROM pg_prepared_xacts), (SELECT count(*) FROM pg_description),
    (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'), (SELECT count(*) FROM pg_db_role_setting),
    (SELECT md5(string_agg(name || setting, ',' ORDER BY name)) FROM pg_settings WHERE source <> 'client'))";

fn rejection_reason(error: &EngineError) -> RejectionReason {
    match error.code.as_str() {
        "25006" => RejectionReason::ReadOnly,
        _ if error.message.contains("multiple commands") => RejectionReason::MultipleStatements,
        _ => RejectionReason::InvalidQuery,
    }
}

async fn create_tables(owner: &Client, corpus: &AttackCorpus) {
    for name in REAL_SCHEMAS {
        let file = data_dir().join(format!("bird/pg_schema/{name}.sql"));
        for sql in std::fs::read_to_string(file).unwrap_or_default().split(";\n") {
            // Some schemas have tables of the same name.
            drop(owner.batch_execute(sql).await);
        }
    }
    let mut all = String::new();
    for (name, columns) in &corpus.tables {
        let own = columns.iter().filter(|column| !SYSTEM_COLUMNS.contains(&column.as_str()));
        let columns: Vec<String> = own.map(|column| format!("{} text", POSTGRES.quote_identifier(column))).collect();
        let table = POSTGRES.quote_identifier(name);
        all += &format!("CREATE TABLE IF NOT EXISTS {table} ({});", columns.join(", "));
    }
    owner.batch_execute(&all).await.unwrap();
    let fill =
        "DO $$ DECLARE t record; BEGIN FOR t IN SELECT oid::regclass AS name FROM pg_class WHERE relkind = 'r' AND
        relnamespace = 'public'::regnamespace LOOP BEGIN EXECUTE format('INSERT INTO %s DEFAULT VALUES', t.name);
        EXCEPTION WHEN OTHERS THEN NULL; END; END LOOP; END $$";
    owner.batch_execute(fill).await.unwrap();
}

async fn database_state(owner: &Client) -> String {
    let rows = "SELECT string_agg(format('SELECT %L, md5(string_agg(t::text, %L)) FROM %s t', c.oid, ',', c.oid::regclass), ' UNION ALL ')
        FROM pg_class c WHERE c.relkind = 'r' AND c.relnamespace = 'public'::regnamespace";
    let rows: String = owner.query_one(rows, &[]).await.unwrap().get(0);
    let rows = format!("SELECT array_agg(x ORDER BY x)::text FROM ({rows}) x");
    let (rows, rest) =
        (owner.query_one(&rows, &[]).await.unwrap(), owner.query_one(CORPUS_STATE_QUERY, &[]).await.unwrap());
    format!("{} {}", rows.get::<_, String>(0), rest.get::<_, String>(0))
}

/// Runs a statement with a limit of two seconds, and retries while no connection is available.
///
/// A cancelled statement closes its connection, and opening a new one may take longer than the
/// limit.
async fn execute_briefly(engine: &PostgresEngine, sql: &str) -> Result<Rows, Error> {
    let limits = Limits { time: Duration::from_secs(2), ..Limits::default() };
    let begun = Instant::now();
    loop {
        let outcome = run::execute(&engine.pool, sql, &limits, &CancelFlag::new()).await;
        let is_busy = matches!(outcome, Err(Error::Unavailable { transient: true, .. }));
        if !is_busy || begun.elapsed() > hang_timeout() {
            return outcome;
        }
    }
}

#[tokio::test]
async fn corpus_writes_nothing_to_postgresql() {
    let Some(corpus) = load_server_corpus() else { return };
    let Some(ground) = setup().await else { return };
    ground.admin.batch_execute("DROP DATABASE IF EXISTS corpus WITH (FORCE)").await.unwrap();
    ground.admin.batch_execute("CREATE DATABASE corpus OWNER reader").await.unwrap();
    let address = std::env::var("QUERYMEND_TEST_POSTGRES").unwrap().replacen("/app", "/corpus", 1);
    let (owner, connection) = tokio_postgres::connect(&address, NoTls).await.unwrap();
    tokio::spawn(connection);
    create_tables(&owner, &corpus).await;
    let superuser = address.replacen("reader:reader@", "postgres:querymend@", 1);
    let before = database_state(&owner).await;
    for (name, address) in [("postgres", &address), ("postgres, as a superuser", &superuser)] {
        let engine = PostgresEngine::open(&format!("{address}?pool=1")).unwrap();
        let set = session_settings(&engine).await;
        let mut tally = AttackTally::default();
        for sql in corpus.all_statements() {
            tally.record(sql, &execute_briefly(&engine, sql).await, rejection_reason);
        }
        tally.report(name);
        assert!(!tally.executed.iter().any(|sql| corpus.statements.contains(sql)), "{:?}", tally.executed);
        assert_eq!(session_settings(&engine).await, set);
        assert!(database_state(&owner).await == before, "something is not what it was");
    }
    drop(owner);
    ground.admin.batch_execute("DROP DATABASE corpus WITH (FORCE)").await.unwrap();
}
