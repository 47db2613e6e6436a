//! What only MySQL and MariaDB have. Needs a server: `scripts/engines.sh up mysql`.

use std::time::Duration;

use mysql_async::Conn;
use mysql_async::prelude::Queryable;
use querymend_engine::{CancelFlag, CheckStatus, Engine, Error, Limits, open};
use querymend_sql::Cell;
use querymend_sql::schema::{ForeignKey, TableKind};
use querymend_testing::{ServerLock, lock_server};

use crate::support::{approve, ask, eventually, in_time, long_limits};

/// A database of its own for each test, filled by its owner, and the engine for whoever may do everything. One after another: they
/// look at what the owner runs on the server.
struct Place {
    address: String,
    owner: Conn,
    _lock: ServerLock,
}

impl Place {
    async fn with(statements: &[&str]) -> Option<Self> {
        let Ok(address) = std::env::var("QUERYMEND_TEST_MYSQL") else {
            eprintln!("skipped on mysql: it is not there; scripts/engines.sh up mysql");
            return None;
        };
        let lock = lock_server("mysql");
        let address = address.replace("reader:reader@", "owner:owner@");
        let mut owner = Conn::from_url(&address).await.unwrap();
        for sql in [
            "SET sql_mode = '', foreign_key_checks = 0",
            "CREATE OR REPLACE DATABASE place CHARACTER SET utf8mb4",
            "USE place",
        ]
        .iter()
        .chain(statements)
        {
            owner.query_drop(*sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
        }
        Some(Self { address: address.replace("/app", "/place"), owner, _lock: lock })
    }

    fn open(&self) -> Box<dyn Engine> {
        open(&self.address).unwrap()
    }

    /// How many queries of ours run on the server, besides this one.
    async fn running(&mut self) -> usize {
        let sql = "SELECT COUNT(*) FROM information_schema.PROCESSLIST \
                   WHERE USER = 'owner' AND COMMAND IN ('Query', 'Execute', 'Prepare') AND ID <> CONNECTION_ID()";
        self.owner.query_first(sql).await.unwrap().unwrap()
    }

    /// Waits until a query of ours runs.
    async fn until_running(&mut self, what: &str) {
        eventually(what, async || self.running().await > 0).await;
    }

    /// Waits until nothing of ours runs any more.
    async fn until_idle(&mut self, what: &str) {
        eventually(what, async || self.running().await == 0).await;
    }
}

const ENDLESS: &str = "SELECT count(*) FROM n a, n b, n c, n d, n e, n f, n g, n h, n i, n j, n k, n l, n m, n o, n p, n q, n r, n s, \
                       n t, n u, n v, n w, n x, n y, n z WHERE a.i + b.i > z.i + 100";
/// Billions of rows, which would take the better part of an hour to read.
const FLOOD: &str = "SELECT a.i FROM n a, n b, n c, n d, n e, n f, n g, n h, n i, n j, n k, n l, n m, n o, n p, n q, n r, n s, \
                     n t, n u";
const NUMBERS: [&str; 2] = ["CREATE TABLE n (i INT)", "INSERT INTO n VALUES (1), (2), (3)"];

#[tokio::test]
async fn returns_every_column_type_unchanged() {
    let Some(place) = Place::with(&[
        "CREATE TABLE kinds (
            tiny TINYINT(1), small SMALLINT UNSIGNED, big BIGINT UNSIGNED, exact DECIMAL(38, 10), single FLOAT, year YEAR,
            bits BIT(12), all_bits BIT(64), colour ENUM('red', 'it''s'), several SET('a', 'b', 'c'), span TIME(3), day DATE, at DATETIME(6),
            moment TIMESTAMP(2) NULL, words LONGTEXT, latin VARCHAR(20) CHARACTER SET latin1, bytes VARBINARY(8), padded BINARY(4),
            large LONGBLOB, document JSON, spot POINT, address INET6, tag UUID)",
        "SET time_zone = '+00:00'",
        "INSERT INTO kinds VALUES (1, 65535, 18446744073709551615, '-1234567890123456789012345678.0123456789', 0.1, 2024,
            b'101000000001', b'1111111111111111111111111111111111111111111111111111111111111111', 'it''s', 'a,c', '-100:00:00.250',
            '2024-02-29', '2024-02-29 13:14:15.678', '2024-02-29 13:14:15.5', 'größe', 'größe', x'00ff', x'01', x'ff', '{\"a\": 1.10}',
            POINT(1, 2), '2001:db8::1', '123e4567-e89b-12d3-a456-426614174000')",
        "INSERT INTO kinds (day, at, moment, year, span) VALUES ('0000-00-00', '2024-00-00 00:00:00', 0, 0, '838:59:59')",
    ])
    .await
    else {
        return;
    };
    let rows = ask(&*place.open(), "SELECT * FROM kinds").await.unwrap();
    let text = |text: &str| Cell::Text(text.into());
    let expected = [
        Cell::Integer(1),
        Cell::Integer(65535),
        Cell::Decimal("18446744073709551615".into()),
        Cell::Decimal("-1234567890123456789012345678.0123456789".into()),
        Cell::Number(0.1),
        Cell::Integer(2024),
        Cell::Integer(0b1010_0000_0001),
        Cell::Decimal("18446744073709551615".into()),
        text("it's"),
        text("a,c"),
        text("-100:00:00.25"),
        text("2024-02-29"),
        text("2024-02-29 13:14:15.678"),
        text("2024-02-29 13:14:15.5"),
        text("größe"),
        text("größe"),
        Cell::Binary("00ff".into()),
        Cell::Binary("01000000".into()),
        Cell::Binary("ff".into()),
        text("{\"a\": 1.10}"),
        Cell::Binary("000000000101000000000000000000f03f0000000000000040".into()),
        text("2001:db8::1"),
        text("123e4567-e89b-12d3-a456-426614174000"),
    ];
    for ((column, cell), expected) in rows.columns.iter().zip(&rows.rows[0]).zip(&expected) {
        assert_eq!(cell, expected, "{column}");
    }
    let second = &rows.rows[1];
    assert_eq!(second[5], Cell::Integer(0));
    assert_eq!(
        second[10..14],
        [text("838:59:59"), text("0000-00-00"), text("2024-00-00 00:00:00"), text("0000-00-00 00:00:00")]
    );
}

#[tokio::test]
async fn describes_tables_views_and_keys() {
    let Some(place) = Place::with(&[
        "CREATE TABLE people (id INT PRIMARY KEY COMMENT 'who', mail VARCHAR(99) NOT NULL UNIQUE, mood ENUM('good', 'it''s') NOT NULL,
            about JSON, first VARCHAR(9), last VARCHAR(9), UNIQUE (last, first), KEY (mood)) COMMENT 'All of us'",
        "CREATE TABLE visits (day DATE, person INT, nth INT, PRIMARY KEY (person, day, nth),
            CONSTRAINT who FOREIGN KEY (person) REFERENCES people (id))",
        "CREATE TABLE notes (day DATE, person INT, nth INT, text TEXT,
            CONSTRAINT what FOREIGN KEY (person, day, nth) REFERENCES visits (person, day, nth))",
        "CREATE VIEW names AS SELECT id, CONCAT(first, ' ', last) AS name FROM people",
        "CREATE TABLE gone (x INT)",
        "CREATE VIEW broken AS SELECT * FROM gone",
        "DROP TABLE gone",
        "CREATE SEQUENCE numbers",
    ])
    .await
    else {
        return;
    };
    let schema = place.open().schema().await.unwrap();
    let names: Vec<&str> = schema.tables().iter().map(|table| table.name.as_str()).collect();
    assert_eq!(names, ["names", "notes", "people", "visits"]);
    let people = schema.table("people").unwrap();
    assert_eq!((people.schema.as_deref(), people.comment.as_deref()), (None, Some("All of us")));
    assert_eq!(people.primary_key, ["id"]);
    assert_eq!(people.unique, [vec!["last".to_string(), "first".into()], vec!["mail".into()]]);
    let column = |name: &str| people.column(name).unwrap().clone();
    assert_eq!((column("id").type_name.as_str(), column("id").comment.as_deref()), ("int(11)", Some("who")));
    assert_eq!((column("mood").nullable, column("mood").samples), (false, vec!["good".to_string(), "it's".into()]));
    assert_eq!(column("about").type_name, "json");
    let key = |columns: &[&str], table: &str, references: &[&str]| ForeignKey {
        columns: columns.iter().map(ToString::to_string).collect(),
        table: table.into(),
        references: references.iter().map(ToString::to_string).collect(),
        inferred: false,
    };
    assert_eq!(schema.table("visits").unwrap().foreign_keys, [key(&["person"], "people", &["id"])]);
    let three = ["person", "day", "nth"];
    assert!(schema.table("notes").unwrap().foreign_keys.contains(&key(&three, "visits", &three)));
    let view = schema.table("names").unwrap();
    assert_eq!((view.kind, view.comment.as_deref()), (TableKind::View, None));

    // Without a database in the address there are those of all, and each is named with its own.
    let all = open(&place.address.replace("/place", "")).unwrap();
    let schema = all.schema().await.unwrap();
    let found = schema.table("visits").unwrap();
    assert_eq!((found.schema.as_deref(), found.foreign_keys.len()), (Some("place"), 1));
    assert_eq!(schema.table("things").unwrap().schema.as_deref(), Some("app"));
    assert!(schema.tables().iter().all(|table| table.schema.as_deref() != Some("mysql")));
    assert_eq!(ask(&*all, "SELECT count(*) FROM place.people").await.unwrap().rows, [[Cell::Integer(0)]]);
}

#[tokio::test]
async fn stops_abandoned_queries_on_the_server() {
    let Some(mut place) = Place::with(&NUMBERS).await else { return };
    let engine = place.open();
    let endless = approve(&*engine, ENDLESS);
    let cancel = CancelFlag::new();

    let limits = Limits { time: Duration::from_millis(200), ..Limits::default() };
    let outcome = in_time("the limit", engine.execute(&endless, &limits, &cancel)).await;
    assert_eq!(outcome, Err(Error::TimedOut { after: limits.time }));
    place.until_idle("after a time-out").await;

    let later = async {
        place.until_running("to be cancelled").await;
        cancel.cancel();
    };
    let limits = long_limits();
    let asked = async { tokio::join!(engine.execute(&endless, &limits, &cancel), later).0 };
    assert_eq!(in_time("the cancel", asked).await, Err(Error::Cancelled));
    place.until_idle("after a cancel").await;

    let cancel = CancelFlag::new();
    tokio::select! {
        outcome = engine.execute(&endless, &limits, &cancel) => panic!("{outcome:?}"),
        () = place.until_running("to be dropped") => {}
    }
    place.until_idle("after a drop").await;

    let (flood, limits) = (approve(&*engine, FLOOD), Limits { rows: 5, ..limits });
    let rows = in_time("the first rows", engine.execute(&flood, &limits, &cancel)).await.unwrap();
    assert_eq!((rows.rows.len(), rows.truncated), (5, true));
    place.until_idle("after the rows that were asked for").await;
}

#[test]
fn works_across_runtimes() {
    let start = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let Some(place) = start().block_on(Place::with(&NUMBERS)) else { return };
    let engine = place.open();
    for i in 0..4 {
        let runtime = start();
        for _ in 0..2 {
            let rows = runtime.block_on(ask(&*engine, "SELECT count(*) FROM n")).unwrap().rows;
            assert_eq!(rows, [[Cell::Integer(3)]]);
        }
        // One that is gone, and one that stays but drives nothing any more.
        if i % 2 == 0 {
            drop(runtime);
        } else {
            std::mem::forget(runtime);
        }
    }
}

#[tokio::test]
async fn replaces_a_dead_pooled_connection() {
    let Some(mut place) = Place::with(&NUMBERS).await else { return };
    let engine = place.open();
    for _ in 0..3 {
        assert_eq!(ask(&*engine, "SELECT count(*) FROM n").await.unwrap().rows, [[Cell::Integer(3)]]);
        let sql = "SELECT ID FROM information_schema.PROCESSLIST WHERE USER = 'owner' AND ID <> CONNECTION_ID()";
        let others: Vec<u64> = place.owner.query(sql).await.unwrap();
        for id in others {
            drop(place.owner.query_drop(format!("KILL {id}")).await);
        }
    }
}

#[tokio::test]
async fn waits_for_a_locked_table_then_reports_transient() {
    let Some(mut place) = Place::with(&NUMBERS).await else { return };
    let engine = place.open();
    place.owner.query_drop("LOCK TABLES n WRITE").await.unwrap();
    let limits = Limits { time: Duration::from_millis(300), ..Limits::default() };
    let (query, cancel) = (approve(&*engine, "SELECT i FROM n"), CancelFlag::new());
    let error = in_time("the limit", engine.execute(&query, &limits, &cancel)).await.unwrap_err();
    assert!(error.is_transient() || matches!(error, Error::TimedOut { .. }), "{error:?}");
    place.owner.query_drop("UNLOCK TABLES").await.unwrap();
    assert_eq!(ask(&*engine, "SELECT count(*) FROM n").await.unwrap().rows, [[Cell::Integer(3)]]);
}

#[tokio::test]
async fn reports_an_exhausted_pool_at_the_deadline() {
    let Some(mut place) = Place::with(&NUMBERS).await else { return };
    let engine = place.open();
    let endless = approve(&*engine, ENDLESS);
    let (limits, cancel) = (long_limits(), CancelFlag::new());
    let busy = || engine.connections().map(|count| count.busy);
    let others = futures_util::future::join_all((0..8).map(|_| engine.execute(&endless, &limits, &cancel)));
    let late = async {
        eventually("all connections are used", async || busy() == Some(8)).await;
        let short = Limits { time: Duration::from_millis(200), ..Limits::default() };
        let outcome = engine.execute(&approve(&*engine, "SELECT 1"), &short, &CancelFlag::new()).await;
        assert_eq!(busy(), Some(8));
        cancel.cancel();
        outcome
    };
    let error = in_time("the limit", async { tokio::join!(others, late).1 }).await.unwrap_err();
    assert!(error.is_transient() && error.to_string().contains("in use"), "{error:?}");
    assert_eq!(busy(), Some(0));
    place.until_idle("after a cancel").await;
}

#[tokio::test]
async fn probe_reports_query_errors() {
    let Some(place) = Place::with(&[NUMBERS[0], NUMBERS[1], "CREATE TABLE m (i INT, t TEXT)"]).await else { return };
    let engine = place.open();
    for (sql, code, at) in [
        ("SELECT j FROM n", "1054", None),
        ("SELECT i FROM nn", "1146", None),
        // MySQL has it, MariaDB has not.
        ("SELECT REGEXP_LIKE(i, '1') FROM n", "1305", None),
        ("SELECT i\nFROM n, LATERAL (SELECT 1 AS k) AS x", "1064", Some(25)),
        ("SELECT i FROM n, m", "1052", None),
        ("SELECT i FROM n WHERE SUM(i) > 1", "1111", None),
        ("SELECT 1 UNION SELECT 1, 2", "1222", None),
        ("SELECT (SELECT i, t FROM m) FROM n", "1241", None),
        ("SELECT ABS() FROM n", "1582", None),
        ("SELECT * FROM (SELECT i, i FROM n) AS x", "1060", None),
    ] {
        let Err(Error::Rejected(error)) = engine.probe(&approve(&*engine, sql)).await else { panic!("{sql} passed") };
        assert_eq!((error.code.as_str(), error.position), (code, at), "{sql}: {error:?}");
    }
    // What depends on the rows is only found when they are read.
    let sql = "SELECT (SELECT i FROM n) FROM n";
    engine.probe(&approve(&*engine, sql)).await.unwrap();
    let Err(Error::Rejected(error)) = ask(&*engine, sql).await else { panic!("{sql} was run") };
    assert_eq!(error.code, "1242");
}

#[tokio::test]
async fn checks_connection_health() {
    let Some(place) = Place::with(&NUMBERS).await else { return };
    let checks = place.open().check_health().await.unwrap();
    let seen: Vec<(&str, CheckStatus)> = checks.iter().map(|check| (check.name, check.status)).collect();
    // The owner may do everything, and no lock of ours depends on that.
    assert_eq!(
        seen,
        [("connection", CheckStatus::Passed), ("read-only", CheckStatus::Passed), ("rights", CheckStatus::Warning)],
        "{checks:?}"
    );
    assert!(checks[1].detail.contains("READ ONLY transaction"), "{checks:?}");
    assert!(checks[2].hint.as_ref().is_some_and(|hint| hint.contains("GRANT SELECT")), "{checks:?}");

    let wrong = open(&place.address.replace("/place", "/nowhere")).unwrap().check_health().await.unwrap_err();
    assert!(!wrong.is_transient() && wrong.to_string().contains("no database `nowhere`"), "{wrong:?}");
    let stranger =
        open(&place.address.replace("owner:owner", "nobody:x")).unwrap().test_connection().await.unwrap_err();
    assert!(
        !stranger.is_transient() && stranger.to_string().contains("rejected the login of `nobody`"),
        "{stranger:?}"
    );
    let insecure = open(&format!("{}?ssl-mode=required", place.address)).unwrap().test_connection().await.unwrap_err();
    assert!(!insecure.is_transient() && insecure.hint().is_some_and(|hint| hint.contains("ssl")), "{insecure:?}");
}
