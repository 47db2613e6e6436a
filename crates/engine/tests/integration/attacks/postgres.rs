//! PostgreSQL: prepared, so that the server itself counts the statements; its plan writes and locks nothing; and a transaction in
//! which it ran, and which could have written, has got no number, holds no lock but that of a reader, and is rolled back.

use std::time::Duration;

use querymend_engine::open;
use querymend_testing::{ServerLock, exclusive, hang_timeout};
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, NoTls, SimpleQueryMessage};

use super::material::Material;
use super::{Seen, Tally, address, approved, files, open_folder};

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

async fn connect(address: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(address, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

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
            Err(error) if error.code() == Some(&SqlState::SYNTAX_ERROR) => return Seen::Otherwise("no query".into()),
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
    let lock = exclusive("postgres");
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

#[tokio::test]
async fn c01_what_is_approved_is_one_read_to_postgres() {
    let Some((_lock, reader, admin)) = ground("proof").await else { return };
    let folder = open_folder();
    let (before, lying) = (state(&admin).await, files(folder.path()));
    // Who may do everything is held by no rights, only by what the critic lets through.
    let of_admin = reader.replacen("reader:reader@", "postgres:querymend@", 1);
    let unlocked = connect(&of_admin).await;
    let engine = open(&of_admin).unwrap();
    let schema = engine.schema().await.unwrap();
    let mut tally = Tally::new("postgres");
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
async fn what_is_no_read_to_postgres_is_seen() {
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
