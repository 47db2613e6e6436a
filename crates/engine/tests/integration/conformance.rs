//! What every engine must do, whatever the database. Each test runs on every engine that [`subjects`] knows.

mod errors;
mod transpile;
mod types;

use std::time::{Duration, Instant};

use querymend_engine::{CancelFlag, Engine, Error, Limits};
use querymend_sql::schema::TableKind;
use querymend_sql::{Cell, Policy, ReviewContext, classify, review};
use querymend_testing::is_full_suite;

use crate::engines::subjects;
use crate::support::{approve, ask, in_time, limits, long_limits};

#[tokio::test]
async fn returns_values_of_common_types_unchanged() {
    for subject in subjects() {
        let engine = &*subject.open();
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
    }
}

#[tokio::test]
async fn keeps_duplicate_column_names_of_an_empty_result() {
    for subject in subjects() {
        let rows = ask(&*subject.open(), "SELECT id AS a, name AS a FROM things WHERE id > 99").await.unwrap();
        assert_eq!((rows.columns, rows.rows.len(), rows.truncated), (vec!["a".to_string(), "a".to_string()], 0, false));
    }
}

#[tokio::test]
async fn reads_the_schema_and_tests_the_connection() {
    for subject in subjects() {
        let engine = subject.open();
        engine.test_connection().await.unwrap();
        let schema = engine.schema().await.unwrap();
        let things = schema.table("things").unwrap();
        assert_eq!(things.kind, TableKind::Table);
        assert_eq!(
            things.columns.iter().map(|column| column.name.as_str()).collect::<Vec<_>>(),
            ["id", "name", "weight"]
        );
        if subject.has_keys {
            assert_eq!(things.primary_key, ["id"]);
            assert_eq!(things.columns.iter().map(|column| column.nullable).collect::<Vec<_>>(), [false, true, true]);
        }
        let other = schema.table(subject.unicode_table).unwrap();
        assert_eq!(other.columns[0].name, "naïve col");
    }
}

#[tokio::test]
async fn probe_finds_the_errors_of_execution_without_reading() {
    for subject in subjects() {
        let engine = &*subject.open();
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
async fn rejections_keep_the_database_message_and_classify() {
    for subject in subjects() {
        let engine = &*subject.open();
        for (sql, finding, hole, name) in [
            ("SELECT nmae FROM things", "unknown-column", "column", "nmae"),
            ("SELECT id FROM thigns", "unknown-table", "table", "thigns"),
            ("SELECT 1, t.id FROM things AS t, things AS u WHERE name = 'x'", "ambiguous-column", "column", "name"),
        ] {
            let Err(Error::Rejected(error)) = ask(engine, sql).await else { panic!("{sql} was run") };
            let classified = classify(engine.dialect(), &error);
            let named = classified.name(hole);
            assert_eq!((classified.finding, named), (finding, Some(name)), "{sql}: {error:?}");
            assert!(!error.code.is_empty(), "{error:?}");
            if let Some(position) = error.position {
                assert!(sql[position..].starts_with(name), "{sql}: {position}");
            }
        }
    }
}

#[tokio::test]
async fn truncates_at_the_row_limit() {
    for subject in subjects() {
        let engine = &*subject.open();
        let query = approve(engine, "SELECT id FROM things ORDER BY id");
        for (most, given, truncated) in [(0, 0, true), (2, 2, true), (3, 3, false), (4, 3, false)] {
            let limits = Limits { rows: most, ..limits() };
            let rows = engine.execute(&query, &limits, &CancelFlag::new()).await.unwrap();
            assert_eq!((rows.rows.len(), rows.truncated), (given, truncated), "at most {most}");
        }
        let rows = ask(engine, subject.flood).await.unwrap();
        assert_eq!((rows.rows.len(), rows.truncated), (10_000, true));
    }
}

#[tokio::test]
async fn truncates_at_the_byte_limit_after_a_whole_row() {
    for subject in subjects() {
        let engine = &*subject.open();
        let limits = Limits { rows: usize::MAX, bytes: 100_000, ..limits() };
        let rows = engine.execute(&approve(engine, subject.flood), &limits, &CancelFlag::new()).await.unwrap();
        assert!(rows.truncated);
        assert!((500..5_000).contains(&rows.rows.len()), "{}", rows.rows.len());
        assert!(rows.rows.iter().all(|row| row.len() == 2));
    }
}

#[tokio::test]
async fn stops_an_endless_query_at_its_deadline() {
    for subject in subjects() {
        let engine = &*subject.open();
        // What cannot even be connected to within the limit is reported in other words.
        engine.test_connection().await.unwrap();
        let time = Duration::from_millis(150);
        let (query, limits, cancel) =
            (approve(engine, subject.endless), Limits { time, ..Limits::default() }, CancelFlag::new());
        let begun = Instant::now();
        let outcome = in_time(subject.name, engine.execute(&query, &limits, &cancel)).await;
        assert_eq!(outcome, Err(Error::TimedOut { after: time }), "{}", subject.name);
        assert!(begun.elapsed() >= time, "{}: {:?}", subject.name, begun.elapsed());
        // The engine is as good as new.
        assert_eq!(ask(engine, "SELECT count(*) FROM things").await.unwrap().rows, [[Cell::Integer(3)]]);
    }
}

#[tokio::test]
async fn cancels_a_query() {
    for subject in subjects() {
        let engine = &*subject.open();
        let cancel = CancelFlag::new();
        // Most servers run the query by then; those that do not are told before they do, and the outcome is the same.
        let later = async {
            tokio::time::sleep(Duration::from_millis(100)).await;
            cancel.cancel();
        };
        let (query, limits) = (approve(engine, subject.endless), long_limits());
        let asked = async { tokio::join!(engine.execute(&query, &limits, &cancel), later).0 };
        assert_eq!(in_time(subject.name, asked).await, Err(Error::Cancelled), "{}", subject.name);
        // Cancelled is cancelled, also before it begins.
        assert_eq!(engine.execute(&approve(engine, "SELECT 1"), &limits, &cancel).await, Err(Error::Cancelled));
    }
}

#[tokio::test]
async fn runs_many_queries_concurrently() {
    let count = if is_full_suite() { 32 } else { 12 };
    for subject in subjects() {
        let engine: std::sync::Arc<dyn Engine> = subject.open().into();
        let asked: Vec<_> = (0..count)
            .map(|i| {
                let engine = std::sync::Arc::clone(&engine);
                tokio::spawn(async move { ask(&*engine, &format!("SELECT {i} + count(*) FROM things")).await })
            })
            .collect();
        for (i, answer) in asked.into_iter().enumerate() {
            let rows = answer.await.unwrap().map(|rows| rows.rows);
            assert_eq!(rows, Ok(vec![vec![Cell::Integer(i as i64 + 3)]]), "{}", subject.name);
        }
    }
}

#[tokio::test]
async fn rejects_sql_approved_for_another_dialect() {
    for subject in subjects() {
        let policy = Policy::default();
        let engine = subject.open();
        let other = if engine.dialect().name == "mysql" {
            &querymend_sql::dialect::POSTGRES
        } else {
            &querymend_sql::dialect::MYSQL
        };
        let query =
            review("SELECT 1", &ReviewContext { schema: None, dialect: other, policy: &policy, question: None })
                .approve()
                .unwrap();
        assert!(matches!(engine.probe(&query).await, Err(Error::WrongDialect { .. })));
        let outcome = engine.execute(&query, &limits(), &CancelFlag::new()).await;
        assert!(matches!(outcome, Err(Error::WrongDialect { .. })));
    }
}
