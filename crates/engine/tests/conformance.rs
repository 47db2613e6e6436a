//! What every engine must do, whatever the database. Each test runs on every engine that [`subjects`] knows.

// Helpers of tests fail loudly, as tests do.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::time::{Duration, Instant};

use querymend_engine::{Cancel, Engine, Error, Limits, open};
use querymend_sql::schema::TableKind;
use querymend_sql::{Approved, Cell, Context, Policy, Rows, classify, review};

/// An engine with the table `things` in it, and the queries that must be written differently for each database.
struct Subject {
    engine: Box<dyn Engine>,
    /// Runs for ever, and gives no row while it does.
    endless: &'static str,
    /// Gives rows without end.
    flood: &'static str,
    /// Two bytes: 0x0f, 0xa0.
    bytes: &'static str,
    /// Holds the database; dropped last.
    _folder: tempfile::TempDir,
}

/// The table every engine gets: `(1, 'one', 1.5)`, `(2, 'zwölf O''Clock', NULL)`, `(3, NULL, -0.25)`.
const THINGS: &str = "CREATE TABLE things (id INTEGER PRIMARY KEY, name VARCHAR(40), weight DOUBLE PRECISION);
    INSERT INTO things VALUES (1, 'one', 1.5), (2, 'zwölf O''Clock', NULL), (3, NULL, -0.25);";

fn subjects() -> Vec<Subject> {
    vec![sqlite()]
}

fn sqlite() -> Subject {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("things.db");
    rusqlite::Connection::open(&file).unwrap().execute_batch(THINGS).unwrap();
    Subject {
        engine: open(&format!("sqlite:{}", file.display())).unwrap(),
        endless: "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n",
        flood: "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i, 'padding' FROM n",
        bytes: "SELECT x'0FA0'",
        _folder: folder,
    }
}

fn approve(engine: &dyn Engine, sql: &str) -> Approved {
    let policy = Policy::default();
    let review = review(sql, &Context { schema: None, dialect: engine.dialect(), policy: &policy, question: None });
    review.approve().unwrap_or_else(|refused| panic!("{sql}: {refused}"))
}

async fn ask(engine: &dyn Engine, sql: &str) -> Result<Rows, Error> {
    engine.execute(&approve(engine, sql), &Limits::default(), &Cancel::new()).await
}

#[tokio::test]
async fn f03_values_of_all_common_kinds_come_back_as_they_are() {
    for subject in subjects() {
        let engine = &*subject.engine;
        let rows = ask(engine, "SELECT id, name, weight FROM things ORDER BY id").await.unwrap();
        assert_eq!(rows.columns, ["id", "name", "weight"]);
        let text = |text: &str| Cell::Text(text.into());
        assert_eq!(
            rows.rows,
            [
                [Cell::Integer(1), text("one"), Cell::Number(1.5)],
                [Cell::Integer(2), text("zwölf O'Clock"), Cell::Null],
                [Cell::Integer(3), Cell::Null, Cell::Number(-0.25)],
            ]
        );
        assert!(!rows.truncated);
        assert_eq!(ask(engine, subject.bytes).await.unwrap().rows, [[Cell::Binary("0fa0".into())]]);
    }
}

#[tokio::test]
async fn f03_columns_of_one_name_and_no_rows_are_kept() {
    for subject in subjects() {
        let rows = ask(&*subject.engine, "SELECT id AS a, name AS a FROM things WHERE id > 99").await.unwrap();
        assert_eq!((rows.columns, rows.rows.len(), rows.truncated), (vec!["a".to_string(), "a".to_string()], 0, false));
    }
}

#[tokio::test]
async fn f03_the_schema_and_the_connection_test_work() {
    for subject in subjects() {
        subject.engine.test_connection().await.unwrap();
        let schema = subject.engine.schema().await.unwrap();
        let things = schema.table("things").unwrap();
        assert_eq!(things.kind, TableKind::Table);
        assert_eq!(
            things.columns.iter().map(|column| column.name.as_str()).collect::<Vec<_>>(),
            ["id", "name", "weight"]
        );
        assert_eq!(things.primary_key, ["id"]);
        assert_eq!(things.columns.iter().map(|column| column.nullable).collect::<Vec<_>>(), [false, true, true]);
    }
}

#[tokio::test]
async fn f03_a_probe_finds_what_execution_would_and_reads_nothing() {
    for subject in subjects() {
        let engine = &*subject.engine;
        engine.probe(&approve(engine, "SELECT name FROM things")).await.unwrap();
        // Would never end if it were run.
        engine.probe(&approve(engine, subject.endless)).await.unwrap();
        let Err(Error::Rejected(probed)) = engine.probe(&approve(engine, "SELECT nmae FROM things")).await else {
            panic!("an unknown column passed the probe")
        };
        assert_eq!(Err(Error::Rejected(probed)), ask(engine, "SELECT nmae FROM things").await);
    }
}

#[tokio::test]
async fn l03_refusals_are_the_databases_own_words_and_can_be_classified() {
    for subject in subjects() {
        let engine = &*subject.engine;
        for (sql, finding, hole, name) in [
            ("SELECT nmae FROM things", "unknown-column", "column", "nmae"),
            ("SELECT id FROM thigns", "unknown-table", "table", "thigns"),
            ("SELECT 1, t.id FROM things AS t, things AS u WHERE name = 'x'", "ambiguous-column", "column", "name"),
        ] {
            let Err(Error::Rejected(error)) = ask(engine, sql).await else { panic!("{sql} was run") };
            let classified = classify(engine.dialect(), &error);
            assert_eq!((classified.finding, classified.name(hole)), (finding, Some(name)), "{sql}: {error:?}");
            assert!(!error.code.is_empty(), "{error:?}");
            if let Some(position) = error.position {
                assert!(sql[position..].starts_with(name), "{sql}: {position}");
            }
        }
    }
}

#[tokio::test]
async fn f03_more_rows_than_allowed_are_cut_off() {
    for subject in subjects() {
        let engine = &*subject.engine;
        let query = approve(engine, "SELECT id FROM things ORDER BY id");
        for (most, given, truncated) in [(0, 0, true), (2, 2, true), (3, 3, false), (4, 3, false)] {
            let limits = Limits { rows: most, ..Limits::default() };
            let rows = engine.execute(&query, &limits, &Cancel::new()).await.unwrap();
            assert_eq!((rows.rows.len(), rows.truncated), (given, truncated), "at most {most}");
        }
        let rows = ask(engine, subject.flood).await.unwrap();
        assert_eq!((rows.rows.len(), rows.truncated), (10_000, true));
    }
}

#[tokio::test]
async fn f03_more_bytes_than_allowed_are_cut_off_at_a_whole_row() {
    for subject in subjects() {
        let engine = &*subject.engine;
        let limits = Limits { rows: usize::MAX, bytes: 100_000, ..Limits::default() };
        let rows = engine.execute(&approve(engine, subject.flood), &limits, &Cancel::new()).await.unwrap();
        assert!(rows.truncated);
        assert!((500..5_000).contains(&rows.rows.len()), "{}", rows.rows.len());
        assert!(rows.rows.iter().all(|row| row.len() == 2));
    }
}

#[tokio::test]
async fn f03_a_query_without_end_is_stopped_in_time() {
    for subject in subjects() {
        let engine = &*subject.engine;
        let time = Duration::from_millis(150);
        let begun = Instant::now();
        let outcome = engine
            .execute(&approve(engine, subject.endless), &Limits { time, ..Limits::default() }, &Cancel::new())
            .await;
        assert_eq!(outcome, Err(Error::TimedOut { after: time }));
        assert!(begun.elapsed() >= time && begun.elapsed() < time * 10, "{:?}", begun.elapsed());
        // The engine is as good as new.
        assert_eq!(ask(engine, "SELECT count(*) FROM things").await.unwrap().rows, [[Cell::Integer(3)]]);
    }
}

#[tokio::test]
async fn f03_a_query_can_be_cancelled() {
    for subject in subjects() {
        let engine = &*subject.engine;
        let cancel = Cancel::new();
        let begun = Instant::now();
        let later = async {
            tokio::time::sleep(Duration::from_millis(100)).await;
            cancel.cancel();
        };
        let (query, limits) = (approve(engine, subject.endless), Limits::default());
        let (outcome, ()) = tokio::join!(engine.execute(&query, &limits, &cancel), later);
        assert_eq!(outcome, Err(Error::Cancelled));
        assert!(begun.elapsed() < Duration::from_secs(5));
        // Cancelled is cancelled, also before it begins.
        assert_eq!(engine.execute(&approve(engine, "SELECT 1"), &limits, &cancel).await, Err(Error::Cancelled));
    }
}

#[tokio::test]
async fn l12_many_queries_run_at_once() {
    for subject in subjects() {
        let engine: std::sync::Arc<dyn Engine> = subject.engine.into();
        let asked: Vec<_> = (0..32)
            .map(|i| {
                let engine = std::sync::Arc::clone(&engine);
                tokio::spawn(async move { ask(&*engine, &format!("SELECT {i} + count(*) FROM things")).await })
            })
            .collect();
        for (i, answer) in asked.into_iter().enumerate() {
            assert_eq!(answer.await.unwrap().unwrap().rows, [[Cell::Integer(i as i64 + 3)]]);
        }
    }
}

#[tokio::test]
async fn c01_what_was_approved_for_another_dialect_is_not_run() {
    for subject in subjects() {
        let policy = Policy::default();
        let other = if subject.engine.dialect().name == "mysql" {
            &querymend_sql::dialect::POSTGRES
        } else {
            &querymend_sql::dialect::MYSQL
        };
        let query = review("SELECT 1", &Context { schema: None, dialect: other, policy: &policy, question: None })
            .approve()
            .unwrap();
        assert!(matches!(subject.engine.probe(&query).await, Err(Error::WrongDialect { .. })));
        let outcome = subject.engine.execute(&query, &Limits::default(), &Cancel::new()).await;
        assert!(matches!(outcome, Err(Error::WrongDialect { .. })));
    }
}
