//! The index of values, read from real databases: what is in it, what never is, and what it costs.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use querymend::config::ValuesSection;
use querymend::correction::CorrectionRequest;
use querymend::linking::value_sampling::sample_values;
use querymend::{AnswerStatus, Config, Querymend};
use querymend_engine::{Engine, open};
use querymend_model::ScriptedModel;
use querymend_sql::schema::value_index::ValueMatchKind;
use querymend_sql::{Policy, ValueIndex};
use querymend_testing::{hang_timeout, is_full_suite};
use rusqlite::Connection;
use tempfile::TempDir;

use crate::long_deadline::LongDeadline;

const PEOPLE: &str =
    "CREATE TABLE people (id INTEGER PRIMARY KEY, name TEXT, city TEXT COLLATE NOCASE, email TEXT, contact TEXT,
        note TEXT, kind TEXT);
    INSERT INTO people (name, city, email, contact, note, kind) VALUES
        ('Ada', 'London', 'ada@example.org', '+44 20 7946 0000', 'one', 'b'),
        ('Zoë', 'Paris', 'zoe@example.org', '+33 1 70 18 99 00', 'two', x'00'),
        ('Linus', 'Helsinki', 'linus@example.org', 'linus@example.org', 'three', NULL);
    CREATE TABLE salaries (who TEXT); INSERT INTO salaries VALUES ('Ada');";

fn database(sql: &str) -> (TempDir, Arc<dyn Engine>) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("test.db");
    Connection::open(&file).unwrap().execute_batch(sql).unwrap();
    let engine = open(&file.to_string_lossy()).unwrap();
    (folder, Arc::new(LongDeadline(Arc::from(engine))))
}

/// With as much time as a slow machine needs.
fn config() -> Config {
    let mut config = Config::default().with_max_time(hang_timeout());
    config.values.time = hang_timeout();
    config
}

async fn index(engine: &dyn Engine, policy: &Policy, settings: &ValuesSection) -> ValueIndex {
    let schema = policy.filter_schema(engine.schema().await.unwrap());
    let settings = ValuesSection { time: hang_timeout(), ..settings.clone() };
    sample_values(engine, &schema, policy, &settings).await
}

fn columns(values: &ValueIndex) -> Vec<String> {
    values.columns().iter().map(|held| format!("{}.{}", held.table, held.column)).collect()
}

#[tokio::test]
async fn indexes_sensitive_columns_only_when_allowed() {
    let (_folder, engine) = database(PEOPLE);
    let denied = Policy { deny_tables: vec!["salaries".into()], ..Policy::default() };
    let values = index(&*engine, &denied, &ValuesSection::default()).await;
    assert_eq!(columns(&values), ["people.name", "people.city", "people.note", "people.kind"]);
    let settings = ValuesSection {
        allow: vec!["people.email".into()],
        exclude: vec!["note".into(), "people.k*".into()],
        ..ValuesSection::default()
    };
    let values = index(&*engine, &denied, &settings).await;
    assert_eq!(columns(&values), ["people.name", "people.city", "people.email"]);
    let off = ValuesSection { enabled: false, ..ValuesSection::default() };
    assert!(index(&*engine, &denied, &off).await.columns().is_empty());
}

#[tokio::test]
async fn never_reports_absence_for_partially_indexed_columns() {
    let (_folder, engine) = database(PEOPLE);
    let policy = Policy::default();
    let values = index(&*engine, &policy, &ValuesSection::default()).await;
    assert!(values.is_absent("people", "name", "ada") && !values.is_absent("people", "name", "Ada"));
    assert!(values.column("people", "name").unwrap().unique && !values.column("people", "kind").unwrap().unique);
    assert!(!values.is_absent("people", "city", "LONDON"), "the database takes them for equal");
    assert!(values.is_absent("people", "city", "Rome"));
    assert!(!values.is_absent("people", "kind", "c"), "something that is no text stands in it");
    let few = ValuesSection { max_values_per_column: 2, ..ValuesSection::default() };
    assert!(!index(&*engine, &policy, &few).await.is_absent("people", "name", "Bob"));
    let small = ValuesSection { rows: 2, ..ValuesSection::default() };
    let values = index(&*engine, &policy, &small).await;
    assert!(!values.is_absent("people", "name", "Bob") && !values.column("people", "name").unwrap().values.is_empty());
}

#[tokio::test]
async fn corrects_value_case_but_keeps_values_in_the_database() {
    let (folder, engine) = database(PEOPLE);
    let ask = |drafts: [&'static str; 1]| {
        let querymend = Querymend::new(Arc::clone(&engine), Arc::new(ScriptedModel::new(drafts)), config());
        async move {
            querymend.wait_for_values().await;
            (querymend.ask("Who is ada?").await, querymend)
        }
    };
    let (answer, querymend) = ask(["SELECT id FROM people WHERE name = 'ada'"]).await;
    assert_eq!(
        (answer.status, answer.sql.as_deref()),
        (AnswerStatus::Answered, Some("SELECT id FROM people WHERE name = 'Ada'"))
    );
    assert_eq!(answer.fixes.iter().map(|fix| fix.code).collect::<Vec<_>>(), ["unknown-value"]);
    drop(querymend);
    // A row that came after the index was read.
    let (answer, querymend) = ask(["SELECT id FROM people WHERE name = 'linus'"]).await;
    assert_eq!(answer.sql.as_deref(), Some("SELECT id FROM people WHERE name = 'Linus'"));
    let writer = Connection::open(folder.path().join("test.db")).unwrap();
    writer.execute("INSERT INTO people (name) VALUES ('zoe')", []).unwrap();
    // It reads no values of its own.
    let mut unread = config();
    unread.values.enabled = false;
    let later = Querymend::new(
        Arc::clone(&engine),
        Arc::new(ScriptedModel::new(["SELECT id FROM people WHERE name = 'zoe'"])),
        unread,
    );
    let schema = later.schema().await.unwrap();
    schema.set_value_index(Arc::clone(querymend.schema().await.unwrap().value_index().unwrap()));
    let answer = later.ask("Who is zoe?").await;
    assert_eq!(answer.sql.as_deref(), Some("SELECT id FROM people WHERE name = 'zoe'"));
}

#[tokio::test]
async fn first_check_and_correction_wait_for_the_value_index() {
    let (_folder, engine) = database(PEOPLE);
    let wrong = "SELECT id FROM people WHERE name = 'ada'";
    let fresh = || Querymend::new(Arc::clone(&engine), Arc::new(ScriptedModel::new([wrong])), config());
    let checked = fresh().check(wrong, None).await.unwrap();
    assert_eq!(checked.findings.iter().map(|f| f.finding.code).collect::<Vec<_>>(), ["unknown-value"]);
    let corrected = fresh().correct(&CorrectionRequest::new(wrong)).await.unwrap();
    assert_eq!(corrected.corrected_sql, "SELECT id FROM people WHERE name = 'Ada'");
    let answer = fresh().ask("Who is ada?").await;
    assert_eq!(answer.sql.as_deref(), Some("SELECT id FROM people WHERE name = 'Ada'"));
}

#[tokio::test]
async fn reindexes_values_when_the_schema_is_reloaded() {
    let (folder, _) = database(PEOPLE);
    let file = folder.path().join("test.db");
    let engine: Arc<dyn Engine> = Arc::from(open(&file.to_string_lossy()).unwrap());
    let mut config = config();
    config.schema_cache_ttl = Duration::from_millis(1);
    let querymend = Querymend::new(engine, Arc::new(ScriptedModel::new(["SELECT 1"])), config);
    let sql = "SELECT id FROM people WHERE name = 'Grace'";
    let findings = async || querymend.check(sql, None).await.unwrap().findings.len();
    assert_eq!((findings().await, findings().await), (1, 1));
    Connection::open(&file).unwrap().execute("INSERT INTO people (name) VALUES ('Grace')", []).unwrap();
    tokio::time::sleep(Duration::from_millis(2)).await;
    assert_eq!(findings().await, 0);
}

#[tokio::test]
async fn reports_values_that_were_not_compared() {
    let (_folder, engine) = database(PEOPLE);
    let config = config();
    let settings = ValuesSection { time: Duration::ZERO, ..ValuesSection::default() };
    let script = ScriptedModel::new(["SELECT id FROM people WHERE name = 'Ada'"]);
    let querymend = Querymend::new(engine, Arc::new(script), Config { values: settings, ..config });
    let answer = querymend.ask("Who is Ada?").await;
    let why = "'Ada' was not compared with the values of people.name: they could not be read in time";
    assert!(answer.reasons.iter().any(|reason| reason == why), "{:?}", answer.reasons);
}

#[tokio::test]
async fn reports_the_predicate_that_empties_the_result() {
    let (_folder, engine) = database(PEOPLE);
    let script = ScriptedModel::new(["SELECT name FROM people WHERE city = 'London' AND length(name) > 10 AND id > 0"]);
    let querymend = Querymend::new(engine, Arc::new(script), config());
    let answer = querymend.ask("Who in London has a long name?").await;
    let why = "nothing was found: without `length(name) > 10` there would be rows";
    assert!(answer.reasons.iter().any(|reason| reason == why), "{:?}", answer.reasons);
    assert!(answer.warnings.iter().any(|warning| warning.code == "empty-result"));
}

#[tokio::test]
async fn indexes_values_of_a_real_database() {
    let file =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/bird/database/superhero/superhero.sqlite");
    if !file.exists() {
        eprintln!("skipped: ../shared/data is not there");
        return;
    }
    let engine = open(&file.to_string_lossy()).unwrap();
    let began = Instant::now();
    let values = index(&*engine, &Policy::default(), &ValuesSection::default()).await;
    eprintln!("read in {:?}", began.elapsed());
    assert!(values.is_absent("colour", "colour", "blue") && !values.is_absent("colour", "colour", "Blue"));
    let near = values.similar_values("colour", "colour", "blonde", 3);
    assert_eq!((near[0].value.as_str(), near[0].kind), ("Blond", ValueMatchKind::Typo));
    let question = "Which superheroes of Marvel Comics have the power of 'Super Strength'?";
    let hits: Vec<String> = values
        .mentions(question)
        .into_iter()
        .filter(|h| h.is_distinctive)
        .map(|h| format!("{}.{} {}", h.table, h.column, h.value))
        .collect();
    assert_eq!(hits, ["publisher.publisher_name Marvel Comics", "superpower.power_name Super Strength"]);
    let (began, rounds) = (Instant::now(), if is_full_suite() { 1_000 } else { 20 });
    for _ in 0..rounds {
        assert!(!values.similar_values("superhero", "superhero_name", "Supermann", 5).is_empty());
        assert!(values.mentions(question).len() >= 2);
    }
    eprintln!("a near value and the hits of a question in {:?}", began.elapsed() / rounds);
}

/// In full, ten million rows: a minute and a gigabyte.
#[tokio::test]
async fn samples_large_tables_across_their_whole_range() {
    let rows = if is_full_suite() { 10_000_000 } else { 400_000 };
    let (_folder, engine) = database(&format!(
        "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;
         CREATE TABLE events (id INTEGER PRIMARY KEY, kind TEXT, who TEXT, city TEXT, message TEXT);
         WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {rows})
         INSERT INTO events SELECT i, 'kind ' || (i % 7), 'user ' || i, 'city ' || (i / {}), 'message ' || (i % 1000) FROM n;",
        rows / 10
    ));
    let began = Instant::now();
    let values = index(&*engine, &Policy::default(), &ValuesSection::default()).await;
    eprintln!("read in {:?}", began.elapsed());
    for held in values.columns() {
        eprintln!("{}.{}: {} values, whole: {}", held.table, held.column, held.values.len(), held.whole);
        assert!(!held.whole);
    }
    // Stretches from further on are seen as well.
    let cities = &values.column("events", "city").unwrap().values;
    assert!(cities.len() >= 4 && values.columns().len() == 4, "{cities:?}");
}
