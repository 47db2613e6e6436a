//! PostgreSQL, where it is not like other databases.

use std::time::Duration;

use querymend_engine::{CancelFlag, CheckStatus, Connections, Error, Limits, open};
use querymend_sql::Cell;
use querymend_sql::schema::{ForeignKey, TableKind};
use querymend_testing::lock_server;
use tokio_postgres::{Client, NoTls};

use crate::encrypted::{Encrypted, Greeting};
use crate::support::{approve, ask, eventually, in_time, long_limits};

/// The address of the server, if there is one.
fn address() -> Option<String> {
    let address = std::env::var("QUERYMEND_TEST_POSTGRES").ok();
    if address.is_none() {
        assert!(std::env::var_os("CI").is_none(), "there is no PostgreSQL; scripts/engines.sh up postgres");
        eprintln!("skipped: there is no PostgreSQL; scripts/engines.sh up postgres");
    }
    address
}

fn as_admin(address: &str) -> String {
    address.replacen("reader:reader@", "postgres:querymend@", 1)
}

async fn admin(address: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(&as_admin(address), NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

/// Makes an empty database for a test that changes tables, since others read those of `app` meanwhile, and gives its address. The
/// server has to be held.
async fn make_database(address: &str, name: &str) -> String {
    drop_database(address, name).await;
    admin(address).await.batch_execute(&format!("CREATE DATABASE {name}")).await.unwrap();
    address.replacen("/app", &format!("/{name}"), 1)
}

async fn drop_database(address: &str, name: &str) {
    admin(address).await.batch_execute(&format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)")).await.unwrap();
}

/// A role of its own, so that what it finds on its search path, and may read, is its own affair.
const MUSEUM: &str = "DROP ROLE IF EXISTS curator; CREATE ROLE curator LOGIN PASSWORD 'curator'; ALTER ROLE curator SET search_path = museum, cellar;
    CREATE SCHEMA museum; CREATE SCHEMA cellar; CREATE SCHEMA vault;
    CREATE TYPE museum.condition AS ENUM ('good', 'worn', 'lost');
    CREATE TABLE museum.rooms (floor int, number int, \"Wing Name\" text UNIQUE, PRIMARY KEY (floor, number));
    CREATE TABLE museum.works (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, title varchar(80) NOT NULL,
        condition museum.condition, floor int, room int, code text, gone int, price numeric(10, 2), tags text[],
        FOREIGN KEY (floor, room) REFERENCES museum.rooms (floor, number));
    ALTER TABLE museum.works DROP COLUMN gone;
    CREATE UNIQUE INDEX ON museum.works (code, title); CREATE UNIQUE INDEX ON museum.works (lower(code));
    CREATE UNIQUE INDEX ON museum.works (room) WHERE floor = 1;
    COMMENT ON TABLE museum.works IS 'What is shown'; COMMENT ON COLUMN museum.works.title IS 'As on the label';
    CREATE VIEW museum.worn AS SELECT title FROM museum.works WHERE condition = 'worn';
    CREATE MATERIALIZED VIEW museum.counts AS SELECT count(*) AS n FROM museum.works;
    CREATE TABLE museum.visits (day date NOT NULL, work_id bigint REFERENCES museum.works) PARTITION BY RANGE (day);
    CREATE TABLE museum.visits_2024 PARTITION OF museum.visits FOR VALUES FROM ('2024-01-01') TO ('2025-01-01');
    CREATE TABLE cellar.works (id int); CREATE TABLE cellar.crates (id int PRIMARY KEY);
    CREATE TABLE vault.gold (id int PRIMARY KEY, weight int, secret text); CREATE TABLE vault.hidden (id int);
    CREATE TABLE museum.staff (id int);
    GRANT USAGE ON SCHEMA museum, cellar, vault TO curator;
    GRANT SELECT ON ALL TABLES IN SCHEMA museum, cellar TO curator; REVOKE ALL ON museum.staff FROM curator;
    GRANT SELECT (id, weight) ON vault.gold TO curator";

#[tokio::test]
async fn describes_readable_tables_columns_and_keys() {
    let Some(address) = address() else { return };
    let _lock = lock_server("postgres");
    let museum = make_database(&address, "museum").await;
    admin(&museum).await.batch_execute(MUSEUM).await.unwrap();
    let engine = open(&museum.replacen("reader:reader@", "curator:curator@", 1)).unwrap();
    let schema = engine.schema().await.unwrap();
    let names: Vec<String> = schema.tables().iter().map(|table| table.full_name()).collect();
    assert_eq!(names, ["rooms", "works", "worn", "counts", "visits", "cellar.works", "crates", "vault.gold"]);

    let works = schema.tables().iter().find(|table| table.name == "works" && table.schema.is_none()).unwrap();
    let columns: Vec<(&str, &str, bool)> =
        works.columns.iter().map(|column| (&*column.name, &*column.type_name, column.nullable)).collect();
    assert_eq!(
        columns,
        [
            ("id", "bigint", false),
            ("title", "character varying(80)", false),
            ("condition", "condition", true),
            ("floor", "integer", true),
            ("room", "integer", true),
            ("code", "text", true),
            ("price", "numeric(10,2)", true),
            ("tags", "text[]", true),
        ]
    );
    assert_eq!(works.comment.as_deref(), Some("What is shown"));
    assert_eq!(works.column("title").unwrap().comment.as_deref(), Some("As on the label"));
    assert_eq!(works.column("condition").unwrap().samples, ["good", "worn", "lost"]);
    assert_eq!(
        (&works.primary_key[..], &works.unique[..]),
        (&["id".to_string()][..], &[vec!["code".to_string(), "title".into()]][..])
    );
    let names = |names: &[&str]| names.iter().map(|name| name.to_string()).collect::<Vec<_>>();
    let key = ForeignKey {
        columns: names(&["floor", "room"]),
        table: "rooms".into(),
        references: names(&["floor", "number"]),
        inferred: false,
    };
    assert_eq!(works.foreign_keys, [key]);
    let table = |name: &str| schema.table(name).unwrap();
    assert_eq!(table("rooms").primary_key, ["floor", "number"]);
    assert_eq!(table("rooms").unique, [["Wing Name"]]);
    assert_eq!(table("visits").foreign_keys[0].table, "works");
    assert_eq!(
        (table("visits").kind, table("worn").kind, table("counts").kind),
        (TableKind::Table, TableKind::View, TableKind::View)
    );
    let gold: Vec<&str> = table("gold").columns.iter().map(|column| column.name.as_str()).collect();
    assert_eq!(gold, ["id", "weight"]);
    drop_database(&address, "museum").await;
    admin(&address).await.batch_execute("DROP ROLE curator").await.unwrap();
}

#[tokio::test]
async fn binary_and_text_encodings_give_equal_values() {
    let Some(address) = address() else { return };
    let engine = open(&address).unwrap();
    for values in [
        "SELECT i, i::smallint, i * 4294967296, i / 7.0, (i / 7.0)::numeric(30, 20), i * 0.1::real, i / 3.0::float8 \
         FROM generate_series(-300, 300, 7) AS s (i)",
        "SELECT 10::numeric ^ i, -(3.7::numeric ^ i), (12345.678 * 10::numeric ^ i)::numeric(60, 30), trim_scale(10::numeric ^ i) \
         FROM generate_series(-20, 20) AS s (i)",
        "SELECT DATE '2000-03-01' + i * 997, TIMESTAMP '1999-12-31 23:59:59.999999' + i * INTERVAL '991 days 7.000123 s', \
         TIMESTAMPTZ '1970-01-01 00:00+00' + i * INTERVAL '1234.5 days', TIME '00:00' + i * INTERVAL '1.1 s' \
         FROM generate_series(-1500, 1500, 11) AS s (i)",
        "SELECT md5(i::text)::uuid, ('{\"n\" : ' || i || ', \"s\":\" a \\\" \"}')::json, decode(md5(i::text), 'hex'), \
         i % 2 = 0, repeat('ü', i)::varchar(20), ('\"x\"')::jsonb FROM generate_series(1, 30) AS s (i)",
        "SELECT v::timestamp, v::timestamptz, v::date FROM (VALUES ('infinity'), ('-infinity'), ('0001-01-01'), \
         ('0001-12-31 BC'), ('4713-01-01 BC'), ('0400-02-29'), ('9999-12-31'), ('10000-01-01'), ('1900-03-01')) AS s (v)",
        "SELECT v::float4, v::float8, v::numeric FROM (VALUES ('NaN'), ('0'), ('-0.5'), ('1e20'), ('123456.789')) AS s (v)",
    ] {
        let binary = ask(&*engine, values).await.unwrap();
        // One column of a kind that only the server can write has all of them sent as texts.
        let text = ask(&*engine, &values.replacen("SELECT ", "SELECT B'101', ", 1)).await.unwrap();
        assert_eq!(binary.rows.len(), text.rows.len());
        for (binary, text) in binary.rows.iter().zip(&text.rows) {
            // Something that is not a number is equal to nothing.
            assert_eq!(format!("{binary:?}"), format!("{:?}", &text[1..]), "{values}");
        }
    }
}

#[test]
fn works_across_runtimes() {
    let Some(address) = address() else { return };
    let engine = open(&address).unwrap();
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let count = || async { ask(&*engine, "SELECT count(*) FROM things").await.unwrap().rows };
    for _ in 0..3 {
        let runtime = runtime();
        for _ in 0..2 {
            assert_eq!(runtime.block_on(count()), [[Cell::Integer(3)]]);
        }
    }
    // One that is still there, but moves nothing on.
    let (first, second) = (runtime(), runtime());
    for _ in 0..2 {
        assert_eq!(first.block_on(count()), [[Cell::Integer(3)]]);
        assert_eq!(second.block_on(count()), [[Cell::Integer(3)]]);
    }
}

/// How many queries run that hold these words.
async fn running(admin: &Client, words: &str) -> i64 {
    let sql = "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND query LIKE '%' || $1 || '%' AND pid <> pg_backend_pid()";
    admin.query_one(sql, &[&words]).await.unwrap().get(0)
}

async fn until_running(admin: &Client, words: &str) {
    eventually(words, async || running(admin, words).await > 0).await;
}

async fn until_ended(admin: &Client, words: &str) {
    eventually(words, async || running(admin, words).await == 0).await;
}

#[tokio::test]
async fn stops_abandoned_queries_on_the_server() {
    let Some(address) = address() else { return };
    let (engine, admin) = (open(&address).unwrap(), admin(&address).await);
    let endless = |mark: &str| {
        format!("WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i FROM n) SELECT count(*) AS {mark} FROM n")
    };
    let (dropped, cancelled, late) = (endless("nobody_waits"), endless("somebody_cancels"), endless("time_is_over"));
    let limits = long_limits();
    let (query, cancel) = (approve(&*engine, &dropped), CancelFlag::new());
    tokio::select! {
        outcome = engine.execute(&query, &limits, &cancel) => panic!("{outcome:?}"),
        () = until_running(&admin, "nobody_waits") => {}
    }
    until_ended(&admin, "nobody_waits").await;

    let query = approve(&*engine, &cancelled);
    let later = async {
        until_running(&admin, "somebody_cancels").await;
        cancel.cancel();
    };
    let asked = async { tokio::join!(engine.execute(&query, &limits, &cancel), later).0 };
    assert_eq!(in_time("the cancel", asked).await, Err(Error::Cancelled));
    until_ended(&admin, "somebody_cancels").await;

    // The last one has cost its connection, and a new one may take longer than that.
    engine.test_connection().await.unwrap();
    let (query, limits) = (approve(&*engine, &late), Limits { time: Duration::from_millis(100), ..Limits::default() });
    let outcome = in_time("the limit", engine.execute(&query, &limits, &CancelFlag::new())).await;
    assert_eq!(outcome, Err(Error::TimedOut { after: limits.time }));
    until_ended(&admin, "time_is_over").await;
}

#[tokio::test]
async fn reports_an_exhausted_pool_at_the_deadline() {
    let Some(address) = address() else { return };
    let engine = open(&format!("{address}?pool=1")).unwrap();
    let (long, short) =
        (approve(&*engine, "SELECT count(*) FROM generate_series(1, 1000000000000)"), approve(&*engine, "SELECT 1"));
    let limits = Limits { time: Duration::from_millis(300), ..Limits::default() };
    let (long_time, cancel) = (long_limits(), CancelFlag::new());
    let second = async {
        let outcome = engine.execute(&short, &limits, &CancelFlag::new()).await;
        cancel.cancel();
        outcome
    };
    let both = async { tokio::join!(engine.execute(&long, &long_time, &cancel), second) };
    let (first, second) = in_time("the limit", both).await;
    assert_eq!(first, Err(Error::Cancelled));
    let error = second.unwrap_err();
    assert!(error.is_transient() && error.to_string().contains("in use"), "{error}");
}

#[tokio::test]
async fn counts_connections() {
    let Some(address) = address() else { return };
    let engine = open(&format!("{address}?pool=2")).unwrap();
    let count = |idle, busy| Some(Connections { idle, busy });
    assert_eq!(engine.connections(), count(0, 0));
    let (limits, cancel) = (long_limits(), CancelFlag::new());
    engine.test_connection().await.unwrap();
    assert_eq!(engine.connections(), count(1, 0));
    let long = approve(&*engine, "SELECT count(*) FROM generate_series(1, 1000000000000)");
    let seen = async {
        eventually("the connection is used", async || engine.connections() == count(0, 1)).await;
        cancel.cancel();
    };
    let asked = async { tokio::join!(engine.execute(&long, &limits, &cancel), seen).0 };
    assert_eq!(in_time("the cancel", asked).await, Err(Error::Cancelled));
    assert_eq!(engine.connections(), count(0, 0));
}

#[tokio::test]
async fn errors_have_codes_hints_and_positions() {
    let Some(address) = address() else { return };
    let engine = open(&address).unwrap();
    for (sql, code, at) in [
        ("SELECT 'ü日🦀', t.nmae FROM things AS t", "42703", Some("t.nmae")),
        ("SELECT 1 / 0", "22012", None),
        ("SELECT 'x' + 1", "22P02", Some("'x'")),
        ("SELECT id FROM things GROUP BY name", "42803", Some("id")),
        ("SELECT upper(1)", "42883", Some("upper")),
    ] {
        let Err(Error::Rejected(error)) = ask(&*engine, sql).await else { panic!("{sql} was run") };
        assert_eq!(error.code, code, "{sql}: {error:?}");
        assert_eq!(error.position, at.and_then(|at| sql.find(at)), "{sql}: {error:?}");
    }
    let Err(Error::Rejected(error)) = ask(&*engine, "SELECT t.nam FROM things AS t").await else {
        panic!("it was run")
    };
    assert!(error.hint.unwrap().contains("t.name"));
}

#[tokio::test]
async fn reports_a_missing_database() {
    let Some(address) = address() else { return };
    let engine = open(&address.replacen("/app", "/nowhere", 1)).unwrap();
    let error = engine.test_connection().await.unwrap_err();
    assert!(matches!(error, Error::Unavailable { transient: false, .. }), "{error:?}");
    assert!(error.to_string().contains("nowhere") && error.hint().unwrap().contains("exists"), "{error}");
}

#[tokio::test]
async fn checks_connection_health() {
    let Some(address) = address() else { return };
    let _lock = lock_server("postgres");
    let admin = admin(&address).await;
    admin.batch_execute("DROP ROLE IF EXISTS visitor; CREATE ROLE visitor LOGIN PASSWORD 'visitor'").await.unwrap();
    for (address, rights) in [
        (address.replacen("reader:reader@", "visitor:visitor@", 1), CheckStatus::Passed),
        (address.clone(), CheckStatus::Warning),
        (as_admin(&address), CheckStatus::Warning),
    ] {
        let checks = open(&address).unwrap().check_health().await.unwrap();
        let standings: Vec<(&str, CheckStatus)> = checks.iter().map(|check| (check.name, check.status)).collect();
        assert_eq!(
            standings,
            [
                ("connection", CheckStatus::Passed),
                ("read-only", CheckStatus::Passed),
                ("rights", rights),
                ("encryption", CheckStatus::Passed)
            ],
            "{checks:?}"
        );
    }
    admin.batch_execute("DROP ROLE visitor").await.unwrap();
}

#[tokio::test]
async fn trusts_only_configured_certificates() {
    let Some(address) = address() else { return };
    let encrypted = Encrypted::start(&address, Greeting::Postgres);
    let (place, port) = (format!("postgres://reader:reader@127.0.0.1:{}/app", encrypted.port), encrypted.port);
    let ca = encrypted.folder.path().join("ca.pem");
    let engine = open(&format!("{place}?sslmode=require&sslrootcert={}", ca.display())).unwrap();
    assert_eq!(ask(&*engine, "SELECT count(*) FROM things").await.unwrap().rows, [[Cell::Integer(3)]]);
    // Cancelling goes over a connection of its own, which is encrypted as well.
    let endless = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i FROM n) SELECT count(*) AS over_tls FROM n";
    let (query, cancel, limits, admin) =
        (approve(&*engine, endless), CancelFlag::new(), long_limits(), admin(&address).await);
    let later = async {
        until_running(&admin, "over_tls").await;
        cancel.cancel();
    };
    let asked = async { tokio::join!(engine.execute(&query, &limits, &cancel), later).0 };
    assert_eq!(in_time("the cancel", asked).await, Err(Error::Cancelled));
    until_ended(&admin, "over_tls").await;

    let error = open(&format!("{place}?sslmode=require")).unwrap().test_connection().await.unwrap_err();
    assert!(matches!(error, Error::Unavailable { transient: false, .. }), "{error:?}");
    assert!(error.to_string().contains("certificate") && error.to_string().contains(&port.to_string()), "{error}");
    assert!(error.hint().unwrap().contains("sslrootcert"), "{error:?}");

    // A server that speaks no TLS is not asked without it.
    let error = open(&format!("{address}?sslmode=require")).unwrap().test_connection().await.unwrap_err();
    assert!(matches!(error, Error::Unavailable { transient: false, .. }), "{error:?}");
}

#[tokio::test]
async fn reprepares_a_query_after_its_table_changes() {
    let Some(address) = address() else { return };
    let _lock = lock_server("postgres");
    let moods = make_database(&address, "moods").await;
    let (engine, admin) = (open(&format!("{moods}?pool=1")).unwrap(), admin(&moods).await);
    let make = |columns: &str| {
        format!("DROP TABLE IF EXISTS moody; CREATE TABLE moody AS SELECT {columns}; GRANT SELECT ON moody TO reader")
    };
    let sql = "SELECT * FROM moody";
    admin.batch_execute(&make("1 AS a")).await.unwrap();
    for _ in 0..2 {
        assert_eq!(ask(&*engine, sql).await.unwrap().rows, [[Cell::Integer(1)]]);
    }
    admin.batch_execute(&make("'x' AS a, 2 AS b")).await.unwrap();
    for _ in 0..2 {
        let rows = ask(&*engine, sql).await.unwrap();
        assert_eq!(
            (rows.columns, rows.rows),
            (vec!["a".into(), "b".into()], vec![vec![Cell::Text("x".into()), Cell::Integer(2)]])
        );
    }
    admin.batch_execute("DROP TABLE moody").await.unwrap();
    for _ in 0..2 {
        let Err(Error::Rejected(error)) = ask(&*engine, sql).await else { panic!("there is no such table") };
        assert_eq!((error.code.as_str(), error.position), ("42P01", Some(14)));
    }
    drop_database(&address, "moods").await;
}
