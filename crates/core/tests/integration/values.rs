//! The index of values, read from real databases: what is in it, what never is, and what it costs.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use querymend::config::ValuesSection;
use querymend::context::values::read;
use querymend::correct::Correct;
use querymend::{Config, Querymend, Status};
use querymend_engine::{Engine, open};
use querymend_model::Script;
use querymend_sql::values::Alike;
use querymend_sql::{Policy, Values};
use querymend_testing::{hang_timeout, is_full};
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

async fn index(engine: &dyn Engine, policy: &Policy, settings: &ValuesSection) -> Values {
    let schema = policy.readable(engine.schema().await.unwrap());
    let settings = ValuesSection { time: hang_timeout(), ..settings.clone() };
    read(engine, &schema, policy, &settings).await
}

fn columns(values: &Values) -> Vec<String> {
    values.columns().iter().map(|held| format!("{}.{}", held.table, held.column)).collect()
}

#[tokio::test]
async fn f11_secrets_are_not_read_unless_they_are_allowed() {
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
async fn f11_what_is_known_in_part_is_never_called_absent() {
    let (_folder, engine) = database(PEOPLE);
    let policy = Policy::default();
    let values = index(&*engine, &policy, &ValuesSection::default()).await;
    assert!(values.absent("people", "name", "ada") && !values.absent("people", "name", "Ada"));
    assert!(values.of("people", "name").unwrap().unique && !values.of("people", "kind").unwrap().unique);
    assert!(!values.absent("people", "city", "LONDON"), "the database takes them for equal");
    assert!(values.absent("people", "city", "Rome"));
    assert!(!values.absent("people", "kind", "c"), "something that is no text stands in it");
    let few = ValuesSection { most_values: 2, ..ValuesSection::default() };
    assert!(!index(&*engine, &policy, &few).await.absent("people", "name", "Bob"));
    let small = ValuesSection { rows: 2, ..ValuesSection::default() };
    let values = index(&*engine, &policy, &small).await;
    assert!(!values.absent("people", "name", "Bob") && !values.of("people", "name").unwrap().values.is_empty());
}

#[tokio::test]
async fn f01_a_value_in_another_case_is_put_right_and_what_the_database_holds_is_left_alone() {
    let (folder, engine) = database(PEOPLE);
    let ask = |drafts: [&'static str; 1]| {
        let querymend = Querymend::new(Arc::clone(&engine), Arc::new(Script::new(drafts)), config());
        async move {
            querymend.learned().await;
            (querymend.ask("Who is ada?").await, querymend)
        }
    };
    let (answer, querymend) = ask(["SELECT id FROM people WHERE name = 'ada'"]).await;
    assert_eq!(
        (answer.status, answer.sql.as_deref()),
        (Status::Answered, Some("SELECT id FROM people WHERE name = 'Ada'"))
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
        Arc::new(Script::new(["SELECT id FROM people WHERE name = 'zoe'"])),
        unread,
    );
    let schema = later.schema().await.unwrap();
    schema.learn(Arc::clone(querymend.schema().await.unwrap().values().unwrap()));
    let answer = later.ask("Who is zoe?").await;
    assert_eq!(answer.sql.as_deref(), Some("SELECT id FROM people WHERE name = 'zoe'"));
}

#[tokio::test]
async fn the_first_check_and_correction_wait_for_the_values() {
    let (_folder, engine) = database(PEOPLE);
    let wrong = "SELECT id FROM people WHERE name = 'ada'";
    let fresh = || Querymend::new(Arc::clone(&engine), Arc::new(Script::new([wrong])), config());
    let checked = fresh().check(wrong, None).await.unwrap();
    assert_eq!(checked.findings.iter().map(|f| f.finding.code).collect::<Vec<_>>(), ["unknown-value"]);
    let corrected = fresh().correct(&Correct::new(wrong)).await.unwrap();
    assert_eq!(corrected.corrected_sql, "SELECT id FROM people WHERE name = 'Ada'");
    let answer = fresh().ask("Who is ada?").await;
    assert_eq!(answer.sql.as_deref(), Some("SELECT id FROM people WHERE name = 'Ada'"));
}

#[tokio::test]
async fn values_that_came_later_are_known_when_the_tables_are_read_again() {
    let (folder, _) = database(PEOPLE);
    let file = folder.path().join("test.db");
    let engine: Arc<dyn Engine> = Arc::from(open(&file.to_string_lossy()).unwrap());
    let mut config = config();
    config.schema_age = Duration::from_millis(1);
    let querymend = Querymend::new(engine, Arc::new(Script::new(["SELECT 1"])), config);
    let sql = "SELECT id FROM people WHERE name = 'Grace'";
    let findings = async || querymend.check(sql, None).await.unwrap().findings.len();
    assert_eq!((findings().await, findings().await), (1, 1));
    Connection::open(&file).unwrap().execute("INSERT INTO people (name) VALUES ('Grace')", []).unwrap();
    tokio::time::sleep(Duration::from_millis(2)).await;
    assert_eq!(findings().await, 0);
}

#[tokio::test]
async fn an_answer_says_which_value_was_not_compared() {
    let (_folder, engine) = database(PEOPLE);
    let config = config();
    let settings = ValuesSection { time: Duration::ZERO, ..ValuesSection::default() };
    let script = Script::new(["SELECT id FROM people WHERE name = 'Ada'"]);
    let querymend = Querymend::new(engine, Arc::new(script), Config { values: settings, ..config });
    let answer = querymend.ask("Who is Ada?").await;
    let why = "'Ada' was not compared with the values of people.name: they could not be read in time";
    assert!(answer.reasons.iter().any(|reason| reason == why), "{:?}", answer.reasons);
}

#[tokio::test]
async fn f11_why_nothing_was_found_is_told() {
    let (_folder, engine) = database(PEOPLE);
    let script = Script::new(["SELECT name FROM people WHERE city = 'London' AND length(name) > 10 AND id > 0"]);
    let querymend = Querymend::new(engine, Arc::new(script), config());
    let answer = querymend.ask("Who in London has a long name?").await;
    let why = "nothing was found: without `length(name) > 10` there would be rows";
    assert!(answer.reasons.iter().any(|reason| reason == why), "{:?}", answer.reasons);
    assert!(answer.warnings.iter().any(|warning| warning.code == "empty-result"));
}

#[tokio::test]
async fn f11_the_values_of_a_real_database_are_found() {
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
    assert!(values.absent("colour", "colour", "blue") && !values.absent("colour", "colour", "Blue"));
    let near = values.near("colour", "colour", "blonde", 3);
    assert_eq!((near[0].value.as_str(), near[0].alike), ("Blond", Alike::Slip));
    let question = "Which superheroes of Marvel Comics have the power of 'Super Strength'?";
    let hits: Vec<String> = values
        .hits(question)
        .into_iter()
        .filter(|h| h.named)
        .map(|h| format!("{}.{} {}", h.table, h.column, h.value))
        .collect();
    assert_eq!(hits, ["publisher.publisher_name Marvel Comics", "superpower.power_name Super Strength"]);
    let (began, rounds) = (Instant::now(), if is_full() { 1_000 } else { 20 });
    for _ in 0..rounds {
        assert!(!values.near("superhero", "superhero_name", "Supermann", 5).is_empty());
        assert!(values.hits(question).len() >= 2);
    }
    eprintln!("a near value and the hits of a question in {:?}", began.elapsed() / rounds);
}

/// In full, ten million rows: a minute and a gigabyte.
#[tokio::test]
async fn f11_a_table_of_ten_million_rows_is_read_within_seconds() {
    let rows = if is_full() { 10_000_000 } else { 400_000 };
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
    let cities = &values.of("events", "city").unwrap().values;
    assert!(cities.len() >= 4 && values.columns().len() == 4, "{cities:?}");
}
