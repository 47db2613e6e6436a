use std::collections::HashSet;

use querymend_testing::is_full_suite;
use serde_json::{Value, json};

use crate::{CommandOutput, TestDir};

const FENCED: &str = "```sql\nSELECT name FROM products\n```";
const FIXED: &str = "SELECT name FROM products";

fn fix(place: &TestDir, sql: &str, more: &[&str]) -> CommandOutput {
    place.run(&[&["fix", "--db", "shop.db", "--sql", sql], more].concat())
}

/// The fields of an object, in the order in which they are written.
fn keys(value: &Value) -> Vec<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

/// The fields of an answer of a batch.
fn expected_keys(is_mended: bool) -> Vec<&'static str> {
    let mut keys = vec!["id", "status", "sql", "fixes", "findings", "names_resolved", "doubts", "trace_id"];
    if is_mended {
        keys.insert(6, "meaning");
    }
    keys
}

fn lines(lines: &[Value]) -> Vec<u8> {
    lines.iter().map(|line| format!("{line}\n")).collect::<String>().into_bytes()
}

#[test]
fn contract_has_exactly_its_fields() {
    let place = TestDir::with_demo();
    let ended = fix(&place, FENCED, &["--format", "json", "--session", "s-1", "--user", "ada"]);
    assert_eq!((ended.code, ended.stderr.as_str()), (0, ""));
    let report = ended.json();
    assert_eq!(
        keys(&report),
        [
            "corrected_sql",
            "correction_applied",
            "success",
            "trace_id",
            "status",
            "fixes",
            "findings",
            "session_id",
            "user_id",
            "confidence",
            "names_resolved",
            "meaning",
            "doubts"
        ]
    );
    assert_eq!((&report["corrected_sql"], &report["success"]), (&json!(FIXED), &json!(true)));
    assert_eq!((&report["status"], &report["findings"]), (&json!("mended"), &json!([])));
    assert_eq!((&report["session_id"], &report["user_id"]), (&json!("s-1"), &json!("ada")));
    let applied = &report["fixes"][0];
    assert_eq!(keys(applied), ["code", "applicability", "why"]);
    assert_eq!((&applied["code"], &applied["applicability"]), (&json!("code-fence"), &json!("safe")));
    assert_eq!(report["correction_applied"], applied["why"]);
}

#[test]
fn every_call_has_its_own_trace_id() {
    let place = TestDir::with_demo();
    // More than the 64 lines that one thread takes at a time.
    let each = if is_full_suite() { 300 } else { 100 };
    let input = lines(&vec![json!({ "sql": FIXED, "db": "shop.db" }); each]);
    let mut ids: HashSet<String> = HashSet::new();
    for _ in 0..2 {
        let ended = place.run_with_stdin(&["fix", "--batch", "-", "--jobs", "3"], &input);
        ids.extend(ended.json_lines().iter().map(|answer| answer["trace_id"].as_str().unwrap().to_string()));
    }
    ids.insert(fix(&place, FIXED, &["--format", "json"]).json()["trace_id"].as_str().unwrap().to_string());
    assert_eq!(ids.len(), 2 * each + 1);
    for id in ids {
        let parts: Vec<usize> = id.split('-').map(str::len).collect();
        assert_eq!(parts, [8, 4, 4, 4, 12], "{id}");
    }
}

#[test]
fn text_writes_sql_to_stdout_and_reasons_to_stderr() {
    let place = TestDir::with_demo();
    let ended = fix(&place, "SELECT id, price FROM products", &[]);
    assert_eq!((ended.code, ended.stdout.as_str()), (0, "SELECT product_id, price FROM products\n"));
    let said: Vec<&str> = ended.stderr.lines().collect();
    assert_eq!(said[0], "repaired, with 1 fix; names resolved, meaning likely");
    assert!(said[1].starts_with("  unknown-column (") && said[1].contains("): `product_id` is "), "{}", ended.stderr);
    assert_eq!(said[2..], ["changed:", "  'id' → 'product_id'"]);
    assert_eq!(fix(&place, "SELECT id, price FROM products", &["-q"]).stderr, "");
    // From a file or a pipe it is the same.
    let ended = place.run_with_stdin(&["fix", "--db", "shop.db", "-"], FENCED.as_bytes());
    assert_eq!((ended.code, ended.stdout), (0, format!("{FIXED}\n")));
}

#[test]
fn third_retry_is_the_last() {
    let place = TestDir::with_demo();
    let more = ["--error", "no such column: zzz", "--format", "json", "--session", "s-1", "--retry-count"];
    for (count, success) in [("0", true), ("2", true), ("3", false), ("4", false)] {
        let ended = fix(&place, FENCED, &[&more[..], &[count]].concat());
        let report = ended.json();
        assert_eq!((&report["success"], ended.code == 0), (&json!(success), success), "{count}");
        assert_eq!(report["session_id"], "s-1");
        if !success {
            let why = format!("given up after {count} retries; the last error was: no such column: zzz");
            assert_eq!((&report["correction_applied"], &report["corrected_sql"]), (&json!(why), &json!("")));
            assert_eq!((&report["status"], &report["confidence"]), (&json!("gave_up"), &json!("low")));
            assert_eq!(ended.code, 1);
        }
    }
    let ended = fix(&place, FENCED, &["--retry-count", "3"]);
    assert_eq!((ended.code, ended.stdout.as_str()), (1, ""));
    assert!(ended.stderr.starts_with("error: given up after 3 retries\nhint: "), "{}", ended.stderr);
}

#[test]
fn same_error_twice_is_given_up() {
    let place = TestDir::with_demo();
    let ask = |error: &str, last: &str| fix(&place, FENCED, &["--error", error, "--last-error", last]);
    let ended = ask("no such column: zzz\n", "  no such column: zzz");
    assert_eq!((ended.code, ended.stdout.as_str()), (1, ""));
    assert!(
        ended.stderr.starts_with("error: given up because the same error occurred twice: no such column: zzz\n"),
        "{}",
        ended.stderr
    );
    assert_eq!(ask("no such column: zzz", "no such column: yyy").code, 0);
    // No error is no error twice.
    assert_eq!(ask(" ", "").code, 0);
}

#[test]
fn unexplained_error_is_not_reported_as_repaired() {
    let place = TestDir::with_schema();
    let said = |more: &[&str]| {
        place.run(&[&["fix", "--schema", "schema.sql", "--sql", FIXED, "--format", "json"], more].concat())
    };
    assert_eq!(said(&[]).json()["status"], "untouched");
    // The database refused it, and there is no database here to ask again.
    let ended = said(&["--error", "no such column: zzz"]);
    let report = ended.json();
    assert_eq!((ended.code, &report["status"], &report["success"]), (1, &json!("gave_up"), &json!(false)));
    assert_eq!(report["findings"][0]["code"], "unknown-column");
}

#[test]
fn rejects_writes_and_returns_no_sql() {
    let place = TestDir::with_demo();
    for sql in ["DELETE FROM products", "```sql\nDROP TABLE products\n```", "UPDATE prodcts SET price = 0"] {
        let ended = fix(&place, sql, &[]);
        assert_eq!((ended.code, ended.stdout.as_str()), (1, ""), "{}", ended.stderr);
        assert!(
            ended.stderr.contains("error[writes-data]: ") && ended.stderr.contains("\nrefused: "),
            "{}",
            ended.stderr
        );
        let ended = fix(&place, sql, &["--format", "json"]);
        let report = ended.json();
        assert_eq!((ended.code, &report["status"], &report["success"]), (1, &json!("refused"), &json!(false)));
        assert_eq!((&report["corrected_sql"], &report["fixes"]), (&json!(""), &json!([])));
        assert!(report["correction_applied"].as_str().unwrap().starts_with("refused: "), "{report}");
    }
}

#[test]
fn policy_applies_to_repaired_sql() {
    let place = TestDir::with_demo();
    place.write_file("house.yaml", "deny_tables: [products]\n");
    for sql in [FIXED, FENCED] {
        let ended = fix(&place, sql, &["--policy", "house.yaml", "--format", "json"]);
        assert_eq!((ended.code, &ended.json()["status"]), (1, &json!("refused")));
        let line = lines(&[json!({ "sql": sql, "db": "shop.db" })]);
        let ended = place.run_with_stdin(&["fix", "--batch", "-", "--policy", "house.yaml"], &line);
        assert_eq!((ended.code, &ended.json_lines()[0]["status"]), (0, &json!("refused")));
    }
}

#[test]
fn returns_working_sql_byte_for_byte() {
    let place = TestDir::with_demo();
    for sql in [
        FIXED,
        "select  Name\r\nfrom products -- all of them\r\n\r\n",
        "\n\tSELECT name FROM products ;\n",
        "SELECT 'é → x' FROM products WHERE name = 'ü';",
    ] {
        place.write_file("query.sql", sql);
        let ended = place.run(&["fix", "--db", "shop.db", "query.sql"]);
        assert_eq!((ended.code, ended.stdout.as_str()), (0, sql), "{}", ended.stderr);
        let report = place.run(&["fix", "--db", "shop.db", "query.sql", "--format", "json"]).json();
        assert_eq!((&report["corrected_sql"], &report["status"]), (&json!(sql), &json!("untouched")));
        assert_eq!((&report["fixes"], &report["confidence"]), (&json!([]), &json!("high")));
        let line = lines(&[json!({ "sql": sql, "db": "shop.db", "question": "what is there?" })]);
        let answers = place.run_with_stdin(&["fix", "--batch", "-"], &line).json_lines();
        assert_eq!((&answers[0]["sql"], &answers[0]["status"]), (&json!(sql), &json!("untouched")));
    }
}

#[test]
fn confidence_follows_the_least_certain_fix() {
    let place = TestDir::with_demo();
    for (sql, confidence) in [
        (FIXED, "high"),
        (FENCED, "medium"),
        // Several tables could be joined for it, so the best of them is likely and no more.
        ("SELECT name FROM products WHERE stars = 5", "low"),
        ("SELECT name, zzz_qqq FROM products", "low"),
        ("DELETE FROM products", "low"),
    ] {
        let report = fix(&place, sql, &["--format", "json"]).json();
        assert_eq!(report["confidence"], confidence, "{report}");
        let meaning = report.get("meaning").cloned();
        assert_eq!(meaning == Some(json!("likely")), confidence == "medium", "{report}");
    }
}

#[test]
fn applies_only_safe_fixes_on_request() {
    let place = TestDir::with_demo();
    let sql = "SELECT name FROM products WHERE stars = 5";
    let ended = fix(&place, sql, &["--apply", "safe", "--format", "json"]);
    let report = ended.json();
    assert_eq!((ended.code, &report["status"], &report["confidence"]), (1, &json!("gave_up"), &json!("low")));
    assert_eq!(fix(&place, sql, &["--apply", "likely"]).code, 0);
    let line = lines(&[json!({ "sql": sql, "db": "shop.db" })]);
    for (apply, status) in [("safe", "gave_up"), ("likely", "mended")] {
        let answers = place.run_with_stdin(&["fix", "--batch", "-", "--apply", apply], &line).json_lines();
        assert_eq!(answers[0]["status"], status);
    }
}

#[test]
fn database_decides_unless_dry_run_is_off() {
    let place = TestDir::with_demo();
    // The review does not count arguments; the database does.
    let sql = "SELECT abs(price, 2) FROM products";
    let ended = fix(&place, sql, &["--format", "json"]);
    let report = ended.json();
    assert_eq!((ended.code, &report["status"]), (1, &json!("gave_up")));
    let message = report["findings"][0]["message"].as_str().unwrap();
    assert!(message.contains("wrong number of arguments"), "{report}");
    assert_eq!((&report["findings"][0]["line"], &report["findings"][0]["column"]), (&json!(1), &json!(8)));
    // The database never saw the comment, so its place would be a wrong one.
    let commented = fix(&place, &format!("/* why */ {sql}"), &[]);
    assert!(commented.stderr.contains("\n--> <sql>\n"), "{}", commented.stderr);
    let line = lines(&[json!({ "sql": sql, "db": "shop.db" })]);
    let answers = place.run_with_stdin(&["fix", "--batch", "-"], &line).json_lines();
    assert_eq!((&answers[0]["status"], &answers[0]["findings"][0]["message"]), (&json!("gave_up"), &json!(message)));
    let asked = place.run_with_stdin(&["fix", "--batch", "-", "--no-dry-run"], &line).json_lines();
    assert_eq!(asked[0]["status"], "untouched");
    assert_eq!(fix(&place, sql, &["--no-dry-run"]).code, 0);
}

#[test]
fn usage_errors_exit_with_2() {
    let place = TestDir::with_demo();
    for (arguments, message) in [
        (&["fix", "--sql", FIXED][..], "error: no schema is given"),
        (&["fix", "--db", "missing.db", "--sql", FIXED], "there is no file `missing.db`"),
        (&["fix", "--db", "shop.db", "--schema", "x.sql", "--sql", FIXED], "cannot be used with"),
        (&["fix", "--db", "shop.db", "--apply", "suggested", "--sql", FIXED], "invalid value 'suggested'"),
        (&["fix", "--db", "shop.db", "--retry-count", "many", "--sql", FIXED], "invalid value 'many'"),
        (&["fix", "--db", "shop.db", "missing.sql"], "there is no file `missing.sql`"),
        (&["fix", "--batch", "-", "--error", "x"], "cannot be used with"),
        (&["fix", "--batch", "-", "--format", "json"], "cannot be used with"),
        (&["fix", "--batch", "-", "--root", "nowhere"], "`nowhere` is not a folder"),
        (&["fix", "--jobs", "2", "--db", "shop.db"], "--batch"),
    ] {
        let ended = place.run(arguments);
        assert_eq!((ended.code, ended.stdout.as_str()), (2, ""), "{arguments:?}");
        assert!(ended.stderr.contains(message), "{}", ended.stderr);
    }
}

#[test]
fn batch_answers_in_the_order_of_the_lines() {
    let place = TestDir::new();
    std::fs::create_dir(place.path("data")).unwrap();
    for db in ["data/a.db", "data/b.db", "data/c.db"] {
        assert_eq!(place.run(&["demo", db]).code, 0);
    }
    let kinds = [
        (FIXED, "untouched", FIXED),
        (FENCED, "mended", FIXED),
        ("DELETE FROM products", "refused", "DELETE FROM products"),
        ("SELECT zzz_qqq FROM products", "gave_up", "SELECT zzz_qqq FROM products"),
    ];
    let dbs = ["a.db", "b.db", "sqlite:c.db"];
    // Every kind with every database, and some lines for each of the threads, which take 64 at a time.
    let count = if is_full_suite() { 1_200 } else { 240 };
    let input: Vec<Value> = (0..count)
        .map(
            |i| json!({ "id": i, "sql": kinds[i % 4].0, "db": dbs[i % 3], "question": null, "error": "no such table" }),
        )
        .collect();
    let ended = place.run_with_stdin(&["fix", "--batch", "-", "--root", "data", "--jobs", "4"], &lines(&input));
    let each = count / 4;
    let told = format!("{each} untouched, {each} repaired, {each} given up, {each} refused\n");
    assert_eq!((ended.code, &ended.stderr), (0, &told));
    let answers = ended.json_lines();
    assert_eq!(answers.len(), count);
    for (i, answer) in answers.iter().enumerate() {
        let (_, status, sql) = kinds[i % 4];
        assert_eq!((&answer["id"], &answer["status"], &answer["sql"]), (&json!(i), &json!(status), &json!(sql)));
        assert_eq!(keys(answer), expected_keys(i % 4 == 1));
    }
    assert_eq!(keys(&answers[1]["fixes"][0]), ["code", "applicability", "why"]);
    assert_eq!(keys(&answers[3]["findings"][0]), ["code", "severity", "message", "span", "suggestion"]);
}

#[test]
fn invalid_lines_do_not_stop_the_batch() {
    let place = TestDir::with_schema();
    let input = [
        json!({ "id": 1, "sql": FENCED, "schema": "schema.sql" }).to_string(),
        "no json".to_string(),
        json!({ "id": "two", "sql": FIXED, "db": "missing.db" }).to_string(),
        json!({ "id": 3, "sql": FIXED, "schema": "schema.sql", "question": 7 }).to_string(),
        json!({ "id": 4, "sql": FIXED, "schema": "schema.sql", "dialect": "cobol" }).to_string(),
        json!({ "id": 5, "sql": "SELECT \"name\" FROM products", "schema": "schema.sql", "dialect": "postgres" })
            .to_string(),
    ];
    let ended = place.run_with_stdin(&["fix", "--batch", "-"], input.join("\n").as_bytes());
    let answers = ended.json_lines();
    let ids: Vec<&Value> = answers.iter().map(|answer| &answer["id"]).collect();
    assert_eq!(json!(ids), json!([1, null, "two", 3, 4, 5]));
    assert_eq!((&answers[0]["status"], &answers[5]["status"]), (&json!("mended"), &json!("untouched")));
    for answer in &answers[1..5] {
        assert_eq!((&answer["status"], &answer["fixes"]), (&json!("refused"), &json!([])));
        assert!(!answer["error"].as_str().unwrap().is_empty() && answer["trace_id"].is_string(), "{answer}");
    }
    assert_eq!((&answers[1]["sql"], &answers[2]["sql"]), (&json!(""), &json!(FIXED)));
    assert_eq!(
        (ended.code, ended.stderr.as_str()),
        (2, "1 untouched, 1 repaired, 0 given up, 0 refused, 4 could not be processed\n")
    );
}

#[test]
fn stored_values_break_ties() {
    let place = TestDir::new();
    let shops = "CREATE TABLE shops (shop_id INTEGER PRIMARY KEY, first_city TEXT, other_city TEXT);
        INSERT INTO shops VALUES (1, 'Bonn', 'Kiel'), (2, 'Hamm', 'Ulm');";
    rusqlite::Connection::open(place.path("shops.db")).unwrap().execute_batch(shops).unwrap();
    for (city, column) in [("Bonn", "first_city"), ("Kiel", "other_city"), ("O'Hare", "first_city")] {
        let sql = format!("SELECT shop_id FROM shops WHERE city = '{}'", city.replace('\'', "''"));
        let report = place.run(&["fix", "--db", "shops.db", "--sql", &sql, "--format", "json"]).json();
        let corrected = report["corrected_sql"].as_str().unwrap();
        assert!(corrected.contains(column), "{city}: {corrected}");
    }
}

#[test]
fn chooses_the_join_that_does_not_fan_out() {
    let place = TestDir::new();
    // Two keys lead to the same table, and nothing is declared about either of their columns there.
    let tables = "PRAGMA foreign_keys = OFF;
        CREATE TABLE places (code TEXT, region TEXT, city TEXT);
        CREATE TABLE parcels (parcel INTEGER PRIMARY KEY, target TEXT REFERENCES places (code),
                              zone TEXT REFERENCES places (region));
        INSERT INTO parcels VALUES (1, 'a', 'n'), (2, 'b', 's');";
    for (file, rows, own, there) in [
        ("codes.db", "('a', 'n', 'Aachen'), ('b', 'n', 'Bonn'), ('c', 's', 'Cham')", "target", "code"),
        ("regions.db", "('a', 'n', 'Aachen'), ('a', 's', 'Bonn'), ('b', 'w', 'Cham')", "zone", "region"),
    ] {
        let rows = format!("{tables} INSERT INTO places VALUES {rows};");
        rusqlite::Connection::open(place.path(file)).unwrap().execute_batch(&rows).unwrap();
        let joined = format!("SELECT parcel, places.city FROM parcels JOIN places ON parcels.{own} = places.{there}\n");
        let ended = place.run(&["fix", "--db", file, "--sql", "SELECT parcel, city FROM parcels"]);
        assert_eq!((ended.code, ended.stdout), (0, joined), "{}", ended.stderr);
    }
}

#[test]
fn query_that_runs_by_a_guess_is_given_up() {
    let place = TestDir::with_demo();
    let sql = "SELECT MAX(SUM(price)) FROM products";
    let ended = fix(&place, sql, &["--format", "json"]);
    let report = ended.json();
    assert_eq!((ended.code, &report["status"], &report["success"]), (1, &json!("gave_up"), &json!(false)));
    assert_eq!((&report["corrected_sql"], &report["confidence"]), (&json!(""), &json!("low")));
    assert_eq!(report["best_attempt"], "SELECT (SUM(price)) FROM products");
    assert!(report["findings"][0]["message"].as_str().unwrap().contains("guess"), "{report}");
    // Who wants only what is proved gets no guesses.
    let strict = fix(&place, sql, &["--format", "json", "--apply", "safe"]).json();
    assert_eq!((&strict["status"], strict.get("best_attempt")), (&json!("gave_up"), None));
}

#[test]
fn reports_unknown_values_and_fixes_their_case() {
    let place = TestDir::with_demo();
    let wrong = "SELECT name FROM products WHERE category = 'electronics'";
    let said = "`products.category` never holds 'electronics' (did you mean 'Electronics'?)";
    let checked = place.run(&["check", "--db", "shop.db", "--sql", wrong]);
    assert!(checked.stdout.contains(said) && checked.code == 0, "{}", checked.stdout);
    let unread = place.run(&["check", "--db", "shop.db", "--no-values", "--sql", wrong]);
    assert_eq!((unread.stdout.as_str(), unread.code), ("", 0));
    // A value is put right only when the database says that it does not hold it.
    let right = "SELECT name FROM products WHERE category = 'Electronics'";
    assert_eq!(fix(&place, wrong, &[]).stdout.trim_end(), right);
    // Without values it runs, and so it is left alone.
    assert_eq!(fix(&place, wrong, &["--no-values"]).stdout.trim_end(), wrong);
    // What is only like it is told.
    let other = "SELECT name FROM products WHERE category = 'Electronic'";
    let told = fix(&place, other, &[]);
    assert_eq!(told.stdout.trim_end(), other);
    assert!(told.stderr.contains("never holds 'Electronic'"), "{}", told.stderr);
}
