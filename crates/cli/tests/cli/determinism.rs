//! The same command gives the same output, however busy the machine is and whether the index of values was kept.

use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use serde_json::{Value, json};

use crate::server::ScriptedModelServer;
use crate::{CommandOutput, TestDir};

/// Threads that keep every processor busy until they are dropped.
struct BusyThreads {
    is_over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl BusyThreads {
    fn start() -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let count = 4 * thread::available_parallelism().map_or(1, usize::from);
        let busy = |flag: Arc<AtomicBool>| move || while !flag.load(Ordering::Relaxed) {};
        let threads = (0..count).map(|_| thread::spawn(busy(Arc::clone(&is_over)))).collect();
        Self { is_over, threads }
    }
}

impl Drop for BusyThreads {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            thread.join().unwrap();
        }
    }
}

/// The demo shop as `shop.db`, and a database with more values than are read in a moment as `large.db`.
fn prepare_dir() -> TestDir {
    let place = TestDir::with_demo();
    let sql = "CREATE TABLE events (id INTEGER PRIMARY KEY, kind TEXT, place TEXT, title TEXT);
        WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 4000)
        INSERT INTO events SELECT i, 'Kind ' || (i % 7), 'Place ' || (i % 900), 'Title ' || i FROM n;
        CREATE TABLE visits (id INTEGER PRIMARY KEY, event_id INTEGER REFERENCES events (id), first_city TEXT, last_city TEXT);
        WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 4000)
        INSERT INTO visits SELECT i, i, 'City ' || (i % 50), 'Town ' || (i % 60) FROM n;";
    rusqlite::Connection::open(place.path("large.db")).unwrap().execute_batch(sql).unwrap();
    place
}

/// Queries that need values: other spellings, absent values, ties that only rows settle.
fn batch() -> Vec<u8> {
    let lines = [
        ("shop.db", "SELECT name FROM products WHERE category = 'electronics'"),
        ("shop.db", "SELECT name FROM products WHERE category = 'Toys and more'"),
        ("shop.db", "SELECT unit_price FROM order_items"),
        ("shop.db", "SELECT name FROM customers WHERE country = 'germany'"),
        ("large.db", "SELECT id FROM events WHERE kind = 'kind 3'"),
        ("large.db", "SELECT id FROM events WHERE title = 'Title 99999'"),
        ("large.db", "SELECT id FROM visits WHERE city = 'Town 59'"),
        ("large.db", "SELECT place FROM visits WHERE first_city = 'CITY 7'"),
    ];
    let line = |(id, (db, sql)): (usize, &(&str, &str))| format!("{}\n", json!({"id": id, "db": db, "sql": sql}));
    lines.iter().enumerate().map(line).collect::<String>().into_bytes()
}

/// The output but for the names of single calls, which are new each time by design.
fn without_trace_ids(ended: &CommandOutput) -> Vec<Value> {
    let mut answers = ended.json_lines();
    for answer in &mut answers {
        answer.as_object_mut().unwrap().remove("trace_id");
    }
    answers
}

fn cached_indexes(place: &TestDir) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(place.path("cache").join("values")).into_iter().flatten();
    entries.map(|entry| entry.unwrap().path()).filter(|path| path.extension().is_some_and(|e| e == "values")).collect()
}

fn clear_index_cache(place: &TestDir) {
    std::fs::remove_dir_all(place.path("cache").join("values")).ok();
}

/// Runs a command with no index kept, with the index kept, and both again on a busy machine.
fn four_runs<T>(place: &TestDir, run: impl Fn() -> T) -> Vec<T> {
    let mut outcomes = Vec::new();
    for is_busy in [false, true] {
        let _busy = is_busy.then(BusyThreads::start);
        clear_index_cache(place);
        outcomes.push(run());
        assert!(!cached_indexes(place).is_empty(), "an index was kept");
        outcomes.push(run());
    }
    outcomes
}

fn assert_all_equal<T: PartialEq + std::fmt::Debug>(outcomes: &[T]) {
    for (run, outcome) in ["cold", "warm", "cold and busy", "warm and busy"].iter().zip(outcomes) {
        assert_eq!(outcome, &outcomes[0], "{run}");
    }
}

#[test]
fn check_is_deterministic_under_load_and_with_a_cache() {
    let (place, lines) = (prepare_dir(), batch());
    let outcomes = four_runs(&place, || place.run_with_stdin(&["check", "--batch", "-"], &lines).stdout);
    assert_all_equal(&outcomes);
    assert!(outcomes[0].contains("Kind 3") && outcomes[0].contains("never holds 'Title 99999'"), "{}", outcomes[0]);
}

#[test]
fn fix_is_deterministic_under_load_and_with_a_cache() {
    let (place, lines) = (prepare_dir(), batch());
    let outcomes = four_runs(&place, || without_trace_ids(&place.run_with_stdin(&["fix", "--batch", "-"], &lines)));
    assert_all_equal(&outcomes);
    for (id, sql) in [
        (0, "SELECT name FROM products WHERE category = 'Electronics'"),
        (4, "SELECT id FROM events WHERE kind = 'Kind 3'"),
        (6, "SELECT id FROM visits WHERE visits.last_city = 'Town 59'"),
    ] {
        assert_eq!(outcomes[0][id]["sql"], sql);
    }
}

#[test]
fn ask_is_deterministic_under_load_and_with_a_cache() {
    let place = prepare_dir();
    let ask = |db: &str, draft: &str| {
        // A model that always says the same, as a recording does.
        let server = ScriptedModelServer::with_replies(&[draft]);
        let arguments = ["ask", "--db", db, "--model", &server.model, "--no-memory", "--format", "csv"];
        let ended = place.run(&[&arguments[..], &["Which of them are there?"]].concat());
        (ended.code, ended.stdout, ended.stderr)
    };
    for (db, draft, expected) in [
        ("large.db", "SELECT count(*) AS n FROM events WHERE kind = 'kind 3'", "Kind 3"),
        ("large.db", "SELECT id FROM visits WHERE first_city = 'City 1' AND id > 9000", "id > 9000"),
        ("shop.db", "SELECT name FROM products WHERE category = 'Toys and more'", "never holds"),
    ] {
        let outcomes = four_runs(&place, || ask(db, draft));
        assert_all_equal(&outcomes);
        assert!(outcomes[0].2.contains(expected), "{expected}: {}", outcomes[0].2);
    }
}

#[test]
fn killed_command_leaves_no_partial_index() {
    let (place, lines) = (prepare_dir(), batch());
    let expected = place.run_with_stdin(&["check", "--batch", "-"], &lines).stdout;
    let arguments = ["check", "--db", "large.db", "--sql", "SELECT id FROM events WHERE kind = 'kind 3'"];
    for round in 0..12 {
        clear_index_cache(&place);
        let mut child = place.command(&arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        // Wherever it is by then, what it has left is whole or not there.
        thread::sleep(Duration::from_millis(20 * round));
        child.kill().unwrap();
        child.wait().unwrap();
        for file in cached_indexes(&place) {
            let text = std::fs::read_to_string(&file).unwrap();
            let parts: Vec<Result<Value, _>> = text.splitn(2, '\n').map(serde_json::from_str).collect();
            assert!(parts.len() == 2 && parts.iter().all(Result::is_ok), "{}", file.display());
        }
    }
    assert_eq!(place.run_with_stdin(&["check", "--batch", "-"], &lines).stdout, expected);
}

#[test]
fn detects_a_changed_database() {
    let place = prepare_dir();
    let sql = "SELECT name FROM products WHERE category = 'Antiques'";
    let check = || place.run(&["check", "--db", "shop.db", "--sql", sql]);
    assert!(check().stdout.contains("never holds 'Antiques'"));
    let database = rusqlite::Connection::open(place.path("shop.db")).unwrap();
    database.execute("UPDATE products SET category = 'Antiques' WHERE product_id = 1", []).unwrap();
    assert_eq!(check().stdout, "");
}

#[test]
fn columns_that_are_not_indexed_are_reported() {
    let place = prepare_dir();
    let sql = "SELECT id FROM visits WHERE first_city = 'City 1'";
    place.write_file("querymend.yaml", "values: {total_rows: 5000}\n");
    let line = format!("{}\n", json!({"sql": sql, "db": "large.db"}));
    let note =
        "note: values are not compared with visits.first_city: the limit `values.total_rows` is reached, and 1 more";
    for command in ["check", "fix"] {
        let told = place.run(&[command, "--db", "large.db", "--sql", sql]);
        assert!(told.stderr.contains(note), "{command}: {}", told.stderr);
        let named = place.run(&[command, "-v", "--db", "large.db", "--sql", sql]).stderr;
        assert!(named.contains("  not indexed: visits.last_city: the limit"), "{command}: {named}");
        let report = place.run(&[command, "--db", "large.db", "--sql", sql, "--format", "json"]).json();
        let expected = json!({"table": "visits", "column": "first_city", "reason": "row_limit"});
        assert_eq!(report["not_indexed"][0], expected, "{command}");
        let answer = &place.run_with_stdin(&[command, "--batch", "-"], line.as_bytes()).json_lines()[0];
        assert_eq!(answer["not_indexed"][0], expected, "{command}");
        // Nothing is said about tables that the query does not use.
        let other = place.run(&[command, "--db", "large.db", "--sql", "SELECT id FROM events", "--format", "json"]);
        assert!(other.json().get("not_indexed").is_none() && !other.stderr.contains("not compared"), "{command}");
    }
    let doctor = place.run(&["doctor", "--db", "large.db"]);
    assert_eq!(doctor.code, 0, "{}", doctor.stdout);
    for words in
        ["warning  values", "visits.first_city: the limit `values.total_rows`", "hint: raise `values.total_rows`"]
    {
        assert!(doctor.stdout.contains(words), "{words}: {}", doctor.stdout);
    }
    place.write_file("querymend.yaml", "");
    assert!(place.run(&["doctor", "--db", "large.db"]).stdout.contains("ok       values"));
}

#[test]
fn caches_nothing_where_disabled() {
    let place = prepare_dir();
    let arguments = ["check", "--db", "shop.db", "--sql", "SELECT name FROM products WHERE category = 'Toys'"];
    for (settings, more) in
        [("values: {cache: false}\n", None), ("values: {enabled: false}\n", None), ("", Some("--no-values"))]
    {
        place.write_file("querymend.yaml", settings);
        let arguments: Vec<&str> = arguments.into_iter().chain(more).collect();
        assert_eq!(place.run(&arguments).code, 0);
        assert!(cached_indexes(&place).is_empty(), "{settings} {more:?}");
    }
    // Elsewhere, where the configuration says so.
    place.write_file("querymend.yaml", "values: {cache_folder: elsewhere}\n");
    assert_eq!(place.run(&arguments).code, 0);
    assert!(cached_indexes(&place).is_empty() && place.path("elsewhere").read_dir().unwrap().count() == 1);
}
