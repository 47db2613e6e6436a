//! PostgreSQL; its tables are made by `scripts/engines/postgres.sh`.

use querymend_sql::Cell;
use querymend_testing::lock_server;
use tokio_postgres::{Client, NoTls};

use super::{ConnectionCounter, Kinds, Server, Subject};
use crate::support::address;

pub fn subject() -> Option<Subject> {
    let address = address("postgres")?;
    let text = |text: &str| Cell::Text(text.into());
    let decimal = |digits: &str| Cell::Decimal(digits.into());
    Some(Subject {
        name: "postgres",
        endless: "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i FROM n) SELECT count(*) FROM n",
        flood: "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i, 'padding' FROM n",
        kinds: Kinds {
            largest_integer: "SELECT 9223372036854775807",
            smallest_integer: "SELECT -9223372036854775807 - 1",
            decimal: Some("SELECT 12345678901234567890.50"),
            float: "SELECT CAST(0.1 AS DOUBLE PRECISION)",
            text: "SELECT 'Ελληνικά, עברית, 日本語, 🦀 and O''Clock'",
            date: Some("SELECT DATE '2024-02-29'"),
            time: Some("SELECT TIME '13:14:15.5'"),
            timestamp: Some("SELECT TIMESTAMP '2024-02-29 13:14:15.678'"),
            zoned: Some(("SELECT TIMESTAMPTZ '2024-02-29 13:14:15+02:00'", "2024-02-29 11:14:15+00:00")),
            truth: Some("SELECT TRUE"),
            null: "SELECT NULL",
            bytes: Some("SELECT '\\x0FA0'::bytea"),
            list: Some("SELECT ARRAY[1, 2, NULL]"),
            json: Some("SELECT '{\"a\": [1, \"x\"]}'::jsonb"),
            own: vec![
                ("SELECT CAST(7 AS SMALLINT)", Cell::Integer(7)),
                ("SELECT CAST(-7 AS INTEGER)", Cell::Integer(-7)),
                ("SELECT CAST(0.1 AS REAL)", Cell::Number(0.1)),
                ("SELECT CAST('-Infinity' AS DOUBLE PRECISION)", Cell::Number(f64::NEG_INFINITY)),
                ("SELECT CAST('NaN' AS NUMERIC)", decimal("NaN")),
                ("SELECT CAST('-Infinity' AS NUMERIC)", decimal("-Infinity")),
                ("SELECT CAST(0 AS NUMERIC)", decimal("0")),
                ("SELECT CAST(-0.00012 AS NUMERIC(20, 8))", decimal("-0.00012000")),
                ("SELECT 100000000.0000", decimal("100000000.0000")),
                ("SELECT 1e30::numeric", decimal("1000000000000000000000000000000")),
                ("SELECT 1e-30::numeric", decimal("0.000000000000000000000000000001")),
                ("SELECT INTERVAL '1 year 2 months 3 days 04:05:06.5'", text("1 year 2 mons 3 days 04:05:06.5")),
                ("SELECT 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid", text("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11")),
                ("SELECT '{\"b\": 1.50}'::json", text("{\"b\":1.50}")),
                ("SELECT 'happy'::mood", text("happy")),
                ("SELECT ARRAY['sad', NULL, 'so so']::mood[]", text("[\"sad\",null,\"so so\"]")),
                ("SELECT ARRAY[[1.50, 2], [3, NULL]]", text("[[1.50,2],[3,null]]")),
                ("SELECT 5::positive", Cell::Integer(5)),
                ("SELECT '10.0.0.1/8'::inet", text("10.0.0.1/8")),
                ("SELECT int4range(1, 5)", text("[1,5)")),
                ("SELECT ROW(1, 'a b')::pair", text("(1,\"a b\")")),
                ("SELECT B'101'", text("101")),
                ("SELECT 'infinity'::timestamp", text("infinity")),
                ("SELECT '-infinity'::date", text("-infinity")),
                ("SELECT DATE '0044-03-15 BC'", text("0044-03-15 BC")),
                ("SELECT TIMESTAMPTZ '12024-12-31 23:59:59.999999+00'", text("12024-12-31 23:59:59.999999+00:00")),
                ("SELECT TIME '24:00'", text("24:00:00")),
                ("SELECT TIME WITH TIME ZONE '13:14:15.5+02'", text("13:14:15.5+02:00")),
                ("SELECT 'pg_class'::regclass", text("pg_class")),
                ("SELECT CAST('ab' AS CHAR(4))", text("ab  ")),
                ("SELECT ''", text("")),
            ],
        },
        moments: "SELECT CAST('2024-03-15' AS DATE) AS d, CAST('2023-12-31 23:10:05' AS TIMESTAMP) AS t",
        unicode_table: "größen 表",
        is_slow: false,
        transpile_sample: None,
        connection_counter: Some(ConnectionCounter {
            isolated_address: |address| Box::pin(isolated_address(address)),
            count: |address| Box::pin(count_connections(address)),
        }),
        has_keys: true,
        server: Some(Server { wrong_password: Some(address.replacen(":reader@", ":wrong-password@", 1)) }),
        folder: None,
        address,
    })
}

/// Tables of the database that [`isolated_address`] creates.
const ISOLATED_TABLES: &str = "CREATE TABLE things (id INTEGER PRIMARY KEY, name VARCHAR(40), weight DOUBLE PRECISION);
    INSERT INTO things VALUES (1, 'one', 1.5), (2, 'zwölf O''Clock', NULL), (3, NULL, -0.25);
    GRANT SELECT ON things TO reader";

async fn connect(address: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(address, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

/// Creates a database of its own.
async fn isolated_address(address: &str) -> String {
    let _lock = lock_server("postgres");
    let isolated = address.replacen("/app", "/faults", 1);
    let as_admin = |address: &str| address.replacen("reader:reader@", "postgres:querymend@", 1);
    let admin = connect(&as_admin(address)).await;
    admin.batch_execute("DROP DATABASE IF EXISTS faults WITH (FORCE)").await.unwrap();
    admin.batch_execute("CREATE DATABASE faults").await.unwrap();
    connect(&as_admin(&isolated)).await.batch_execute(ISOLATED_TABLES).await.unwrap();
    isolated
}

async fn count_connections(address: &str) -> i64 {
    let sql = "SELECT count(*) - 1 FROM pg_stat_activity WHERE usename = 'reader' AND datname = current_database()";
    connect(address).await.query_one(sql, &[]).await.unwrap().get(0)
}

mod attacks {
    //! PostgreSQL: prepared, so that the server itself counts the statements; its plan writes and locks nothing; and a transaction in
    //! which it ran, and which could have written, has got no number, holds no lock but that of a reader, and is rolled back.

    use std::time::Duration;

    use querymend_engine::open;
    use querymend_sql::EngineError;
    use querymend_testing::{ServerLock, hang_timeout, lock_server};
    use tokio_postgres::error::SqlState;
    use tokio_postgres::{Client, SimpleQueryMessage};

    use super::connect;
    use crate::attacks::corpora::Material;
    use crate::attacks::{Seen, Tally, approved, files, open_folder};
    use crate::support::address;

    const CANARY: &str = "CREATE TABLE canary (id serial PRIMARY KEY, song text);
    INSERT INTO canary (song) VALUES ('tweet'), ('chirp'), (NULL);
    CREATE TABLE heard (what text);
    CREATE FUNCTION hear() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO heard VALUES (TG_OP); RETURN NULL; END $$;
    CREATE TRIGGER hears AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON canary EXECUTE FUNCTION hear();
    CREATE FUNCTION sing(text) RETURNS int LANGUAGE sql AS 'INSERT INTO canary (song) VALUES ($1) RETURNING 1';
    CREATE FUNCTION sing(canary) RETURNS int LANGUAGE sql AS 'INSERT INTO canary (song) VALUES ($1.song) RETURNING 1';
    CREATE FUNCTION louder(int, int) RETURNS int LANGUAGE sql AS 'INSERT INTO canary (song) VALUES ($1) RETURNING $2';
    CREATE OPERATOR public.@@@@ (FUNCTION = louder, LEFTARG = int, RIGHTARG = int);
    CREATE VIEW songs AS SELECT song FROM canary;
    GRANT ALL ON ALL TABLES IN SCHEMA public TO reader;
    GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO reader;
    GRANT ALL ON SCHEMA public TO reader;";

    /// All that an attack could have changed, each as one text.
    const STATE: &[&str] = &[
        "SELECT coalesce(string_agg(id || coalesce(song, '-'), ',' ORDER BY id), '') FROM canary",
        "SELECT count(*)::text FROM heard",
        "SELECT last_value || ' ' || is_called FROM canary_id_seq",
        "SELECT string_agg(oid || relname || coalesce(relacl::text, ''), ',' ORDER BY oid) FROM pg_class",
        "SELECT string_agg(oid || proname, ',' ORDER BY oid) FROM pg_proc",
        "SELECT string_agg(nspname || coalesce(nspacl::text, ''), ',' ORDER BY oid) FROM pg_namespace",
        "SELECT string_agg(rolname || rolsuper || coalesce(rolconfig::text, ''), ',' ORDER BY oid) FROM pg_roles",
        "SELECT string_agg(name || '=' || setting, ',' ORDER BY name) FROM pg_settings",
        "SELECT string_agg(datname, ',' ORDER BY oid) FROM pg_database",
        "SELECT count(*)::text FROM pg_largeobject_metadata",
        "SELECT count(*)::text FROM pg_locks WHERE locktype = 'advisory'",
        "SELECT count(*)::text FROM pg_prepared_xacts",
    ];

    /// What a reader's transaction never has: a number of its own, or locks that keep others from anything.
    const TRACES: &str = "SELECT concat_ws(', ', 'transaction ' || pg_current_xact_id_if_assigned()::text,
    (SELECT string_agg(DISTINCT locktype || ' ' || mode, ', ') FROM pg_locks
     WHERE pid = pg_backend_pid() AND mode <> 'AccessShareLock' AND locktype <> 'virtualxid'))";

    async fn state(admin: &Client) -> Vec<String> {
        let mut state = Vec::new();
        for sql in STATE {
            state.push(admin.query_one(*sql, &[]).await.unwrap().get(0));
        }
        state
    }

    /// Asks on a connection that may write, in a transaction that is rolled back. Each statement may run for `time`.
    async fn classify(client: &Client, sql: &str, time: Duration) -> Seen {
        let begin = format!("BEGIN READ WRITE; SET LOCAL statement_timeout = {}", time.as_millis());
        client.batch_execute(&begin).await.unwrap();
        let seen = classified(client, sql, &begin).await;
        client.batch_execute("ROLLBACK").await.unwrap();
        seen
    }

    async fn classified(client: &Client, sql: &str, begin: &str) -> Seen {
        let statement = match client.prepare(sql).await {
            Ok(statement) => statement,
            Err(error) if error.as_db_error().is_some_and(|said| said.message().contains("multiple commands")) => {
                return Seen::Otherwise("several statements".into());
            }
            Err(error) if error.code().is_some() => return Seen::Refused,
            Err(error) => panic!("{sql:?}: {error}"),
        };
        if !statement.params().is_empty() {
            return Seen::Refused;
        }
        // A read without columns is one too; its plan says so.
        let explained = sql.trim_start().get(..7).is_some_and(|word| word.eq_ignore_ascii_case("explain"));
        if !explained {
            match client.simple_query(&format!("EXPLAIN (FORMAT JSON) {sql}")).await {
                Ok(messages) => {
                    let ends = messages.iter().filter(|m| matches!(m, SimpleQueryMessage::CommandComplete(_))).count();
                    let plan: String = messages.iter().filter_map(line).collect();
                    if ends != 1 {
                        return Seen::Otherwise(format!("{ends} statements"));
                    }
                    if let Some(node) =
                        ["ModifyTable", "LockRows"].iter().find(|n| plan.contains(&format!("\"Node Type\": \"{n}\"")))
                    {
                        return Seen::Otherwise(format!("its plan has {node}"));
                    }
                }
                // Some are found out only when they are planned (1 / 0). What cannot be explained is no query.
                Err(error) if error.code() == Some(&SqlState::SYNTAX_ERROR) => {
                    return Seen::Otherwise("no query".into());
                }
                Err(_) => return Seen::Refused,
            }
        }
        // Some rows are enough to begin with; the limit of time does the rest.
        let run = client.simple_query(&format!("DECLARE looked NO SCROLL CURSOR FOR {sql}")).await;
        let run = match run {
            Ok(_) => client.simple_query("FETCH 200 FROM looked").await,
            Err(_) if explained => {
                client.batch_execute(&format!("ROLLBACK; {begin}")).await.unwrap();
                client.query(&statement, &[]).await.map(|_| Vec::new())
            }
            Err(error) => return Seen::Otherwise(format!("no cursor can be made of it, {error}")),
        };
        if run.is_err() {
            return Seen::Refused;
        }
        let traces: String = client.query_one(TRACES, &[]).await.unwrap().get(0);
        if traces.is_empty() { Seen::OneRead } else { Seen::Otherwise(format!("it left {traces}")) }
    }

    fn line(message: &SimpleQueryMessage) -> Option<String> {
        let SimpleQueryMessage::Row(row) = message else { return None };
        row.get(0).map(str::to_string)
    }

    /// A database of its own, and who may do everything in it.
    async fn ground(name: &str) -> Option<(ServerLock, String, Client)> {
        let reader = address("postgres")?;
        let lock = lock_server("postgres");
        let of_admin = reader.replacen("reader:reader@", "postgres:querymend@", 1);
        let admin = connect(&of_admin).await;
        admin.batch_execute(&format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)")).await.unwrap();
        admin.batch_execute(&format!("CREATE DATABASE {name}")).await.unwrap();
        let here = |address: &str| format!("{}/{name}", address.rsplit_once('/').unwrap().0);
        let admin = connect(&here(&of_admin)).await;
        admin.batch_execute(CANARY).await.unwrap();
        Some((lock, here(&reader), admin))
    }

    async fn clear(reader: &str, name: &str) {
        let app = reader.replacen("reader:reader@", "postgres:querymend@", 1).replace(&format!("/{name}"), "/app");
        connect(&app).await.batch_execute(&format!("DROP DATABASE {name} WITH (FORCE)")).await.unwrap();
    }

    fn is_read_only_error(_: &str, error: &EngineError) -> bool {
        // A SELECT without columns is a read that gives nothing.
        error.code == "25006" && !error.message.contains("gives no columns")
    }

    #[tokio::test]
    async fn approved_sql_is_one_read_in_postgres() {
        let Some((_lock, reader, admin)) = ground("proof").await else { return };
        let folder = open_folder();
        let (before, lying) = (state(&admin).await, files(folder.path()));
        // Who may do everything is held by no rights, only by what the critic lets through.
        let of_admin = reader.replacen("reader:reader@", "postgres:querymend@", 1);
        let unlocked = connect(&of_admin).await;
        let engine = open(&of_admin).unwrap();
        let schema = engine.schema().await.unwrap();
        let mut tally = Tally::new("postgres", is_read_only_error);
        for text in Material::new("postgres", folder.path(), folder.path()).texts() {
            tally.tried();
            let Some(query) = approved(&text, engine.dialect(), Some(&schema)) else { continue };
            tally.note(query.sql(), classify(&unlocked, query.sql(), Duration::from_secs(2)).await);
            tally.through_the_door(&*engine, &query).await;
        }
        tally.end();
        assert_eq!(state(&admin).await, before);
        assert_eq!(files(folder.path()), lying);
        clear(&reader, "proof").await;
    }

    #[tokio::test]
    async fn classifies_writes_in_postgres() {
        let Some((_lock, reader, _admin)) = ground("seen").await else { return };
        let client = connect(&reader.replacen("reader:reader@", "postgres:querymend@", 1)).await;
        let classify = async |sql: &str| classify(&client, sql, hang_timeout()).await;
        assert_eq!(classify("SELECT song FROM songs").await, Seen::OneRead);
        assert_eq!(classify("EXPLAIN SELECT song FROM songs").await, Seen::OneRead);
        assert_eq!(classify("SELECT nothing FROM songs").await, Seen::Refused);
        for sql in [
            "DELETE FROM canary",
            "WITH x AS (DELETE FROM canary RETURNING 1) SELECT * FROM x",
            "EXPLAIN ANALYZE DELETE FROM canary",
            "SELECT sing('x')",
            "SELECT canary.sing FROM canary",
            "SELECT 1 @@@@ 2",
            "SELECT nextval('canary_id_seq')",
            "SELECT * FROM canary FOR UPDATE",
            "SELECT pg_advisory_xact_lock(7)",
            "SELECT 1 AS x INTO stolen",
            "SELECT 1; SELECT 2",
            "SHOW work_mem",
            "SET work_mem = '64kB'",
            "COMMIT",
        ] {
            let seen = classify(sql).await;
            assert!(matches!(seen, Seen::Otherwise(_)), "{sql}: {seen:?}");
        }
        clear(&reader, "seen").await;
    }
}
