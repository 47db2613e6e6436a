//! The guard corpus, on PostgreSQL.

use std::time::{Duration, Instant};

use querymend_sql::EngineError;
use querymend_sql::dialect::POSTGRES;

use super::*;
use crate::corpus::{Corpus, Tally, Why, data, for_servers};

/// Real tables with real types, of which many statements speak.
const REAL: &[&str] = &["superhero", "financial", "card_games", "codebase_community", "california_schools"];

/// Columns that each table has.
const OF_THE_SERVER: &[&str] = &["ctid", "tableoid", "xmin", "xmax", "cmin", "cmax"];

/// All that a write could have changed in the database or on the server, as one text.
const STATE: &str = "SELECT concat_ws('/',
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

fn why(error: &EngineError) -> Why {
    match error.code.as_str() {
        "25006" => Why::Lock,
        _ if error.message.contains("multiple commands") => Why::Several,
        _ => Why::Wrong,
    }
}

async fn make(owner: &Client, corpus: &Corpus) {
    for name in REAL {
        let file = data().join(format!("bird/pg_schema/{name}.sql"));
        for sql in std::fs::read_to_string(file).unwrap_or_default().split(";\n") {
            // Some databases have tables of the same name.
            drop(owner.batch_execute(sql).await);
        }
    }
    let mut all = String::new();
    for (name, columns) in &corpus.tables {
        let own = columns.iter().filter(|column| !OF_THE_SERVER.contains(&column.as_str()));
        let columns: Vec<String> = own.map(|column| format!("{} text", POSTGRES.quoted(column))).collect();
        let table = POSTGRES.quoted(name);
        all += &format!("CREATE TABLE IF NOT EXISTS {table} ({});", columns.join(", "));
    }
    owner.batch_execute(&all).await.unwrap();
    let fill =
        "DO $$ DECLARE t record; BEGIN FOR t IN SELECT oid::regclass AS name FROM pg_class WHERE relkind = 'r' AND
        relnamespace = 'public'::regnamespace LOOP BEGIN EXECUTE format('INSERT INTO %s DEFAULT VALUES', t.name);
        EXCEPTION WHEN OTHERS THEN NULL; END; END LOOP; END $$";
    owner.batch_execute(fill).await.unwrap();
}

async fn state(owner: &Client) -> String {
    let rows = "SELECT string_agg(format('SELECT %L, md5(string_agg(t::text, %L)) FROM %s t', c.oid, ',', c.oid::regclass), ' UNION ALL ')
        FROM pg_class c WHERE c.relkind = 'r' AND c.relnamespace = 'public'::regnamespace";
    let rows: String = owner.query_one(rows, &[]).await.unwrap().get(0);
    let rows = format!("SELECT array_agg(x ORDER BY x)::text FROM ({rows}) x");
    let (rows, rest) = (owner.query_one(&rows, &[]).await.unwrap(), owner.query_one(STATE, &[]).await.unwrap());
    format!("{} {}", rows.get::<_, String>(0), rest.get::<_, String>(0))
}

/// Sends a statement that may run for two seconds. One that was ended has cost its connection, and a new one may take longer than that.
async fn send_briefly(engine: &Postgres, sql: &str) -> Result<Rows, Error> {
    let limits = Limits { time: Duration::from_secs(2), ..Limits::default() };
    let begun = Instant::now();
    loop {
        let outcome = run::execute(&engine.pool, sql, &limits, &Cancel::new()).await;
        let is_busy = matches!(outcome, Err(Error::Unavailable { transient: true, .. }));
        if !is_busy || begun.elapsed() > hang_timeout() {
            return outcome;
        }
    }
}

#[tokio::test]
async fn c01_f03_nothing_of_the_corpus_writes_to_postgresql() {
    let Some(corpus) = for_servers() else { return };
    let Some(ground) = ground().await else { return };
    ground.admin.batch_execute("DROP DATABASE IF EXISTS corpus WITH (FORCE)").await.unwrap();
    ground.admin.batch_execute("CREATE DATABASE corpus OWNER reader").await.unwrap();
    let address = std::env::var("QUERYMEND_TEST_POSTGRES").unwrap().replacen("/app", "/corpus", 1);
    let (owner, connection) = tokio_postgres::connect(&address, NoTls).await.unwrap();
    tokio::spawn(connection);
    make(&owner, &corpus).await;
    let superuser = address.replacen("reader:reader@", "postgres:querymend@", 1);
    let before = state(&owner).await;
    for (name, address) in [("postgres", &address), ("postgres, as a superuser", &superuser)] {
        let engine = Postgres::open(&format!("{address}?pool=1")).unwrap();
        let set = settings(&engine).await;
        let mut tally = Tally::default();
        for sql in corpus.all() {
            tally.note(sql, &send_briefly(&engine, sql).await, why);
        }
        tally.tell(name);
        assert!(!tally.ran.iter().any(|sql| corpus.whole.contains(sql)), "{:?}", tally.ran);
        assert_eq!(settings(&engine).await, set);
        assert!(state(&owner).await == before, "something is not what it was");
    }
    drop(owner);
    ground.admin.batch_execute("DROP DATABASE corpus WITH (FORCE)").await.unwrap();
}
