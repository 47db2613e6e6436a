use std::collections::HashSet;

use querymend_testing::is_full;
use serde_json::{Value, json};

use crate::{Ended, Place};

const FENCED: &str = "```sql\nSELECT name FROM products\n```";
const MENDED: &str = "SELECT name FROM products";

fn fix(place: &Place, sql: &str, more: &[&str]) -> Ended {
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
fn a01_the_contract_has_its_fields_and_no_others() {
    let place = Place::with_demo();
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
    assert_eq!((&report["corrected_sql"], &report["success"]), (&json!(MENDED), &json!(true)));
    assert_eq!((&report["status"], &report["findings"]), (&json!("mended"), &json!([])));
    assert_eq!((&report["session_id"], &report["user_id"]), (&json!("s-1"), &json!("ada")));
    let applied = &report["fixes"][0];
    assert_eq!(keys(applied), ["code", "applicability", "why"]);
    assert_eq!((&applied["code"], &applied["applicability"]), (&json!("code-fence"), &json!("safe")));
    assert_eq!(report["correction_applied"], applied["why"]);
}

#[test]
fn a01_every_call_has_a_trace_of_its_own() {
    let place = Place::with_demo();
    // More than the 64 lines that one thread takes at a time.
    let each = if is_full() { 300 } else { 100 };
    let input = lines(&vec![json!({ "sql": MENDED, "db": "shop.db" }); each]);
    let mut ids: HashSet<String> = HashSet::new();
    for _ in 0..2 {
        let ended = place.run_with(&["fix", "--batch", "-", "--jobs", "3"], &input);
        ids.extend(ended.answers().iter().map(|answer| answer["trace_id"].as_str().unwrap().to_string()));
    }
    ids.insert(fix(&place, MENDED, &["--format", "json"]).json()["trace_id"].as_str().unwrap().to_string());
    assert_eq!(ids.len(), 2 * each + 1);
    for id in ids {
        let parts: Vec<usize> = id.split('-').map(str::len).collect();
        assert_eq!(parts, [8, 4, 4, 4, 12], "{id}");
    }
}

#[test]
fn a01_text_puts_the_sql_on_stdout_and_the_reasons_on_stderr() {
    let place = Place::with_demo();
    let ended = fix(&place, "SELECT id, price FROM products", &[]);
    assert_eq!((ended.code, ended.stdout.as_str()), (0, "SELECT product_id, price FROM products\n"));
    let said: Vec<&str> = ended.stderr.lines().collect();
    assert_eq!(said[0], "mended, with 1 fix; names resolved, meaning likely");
    assert!(said[1].starts_with("  unknown-column (") && said[1].contains("): `product_id` is "), "{}", ended.stderr);
    assert_eq!(said[2..], ["changed:", "  'id' → 'product_id'"]);
    assert_eq!(fix(&place, "SELECT id, price FROM products", &["-q"]).stderr, "");
    // From a file or a pipe it is the same.
    let ended = place.run_with(&["fix", "--db", "shop.db", "-"], FENCED.as_bytes());
    assert_eq!((ended.code, ended.stdout), (0, format!("{MENDED}\n")));
}

#[test]
fn a02_the_third_retry_is_the_last() {
    let place = Place::with_demo();
    let more = ["--error", "no such column: zzz", "--format", "json", "--session", "s-1", "--retry-count"];
    for (count, success) in [("0", true), ("2", true), ("3", false), ("4", false)] {
        let ended = fix(&place, FENCED, &[&more[..], &[count]].concat());
        let report = ended.json();
        assert_eq!((&report["success"], ended.code == 0), (&json!(success), success), "{count}");
        assert_eq!(report["session_id"], "s-1");
        if !success {
            let why = format!("given up after {count} tries; the last error was: no such column: zzz");
            assert_eq!((&report["correction_applied"], &report["corrected_sql"]), (&json!(why), &json!("")));
            assert_eq!((&report["status"], &report["confidence"]), (&json!("gave_up"), &json!("low")));
            assert_eq!(ended.code, 1);
        }
    }
    let ended = fix(&place, FENCED, &["--retry-count", "3"]);
    assert_eq!((ended.code, ended.stdout.as_str()), (1, ""));
    assert!(ended.stderr.starts_with("error: given up after 3 tries\nhint: "), "{}", ended.stderr);
}

#[test]
fn a02_the_same_error_twice_is_given_up() {
    let place = Place::with_demo();
    let ask = |error: &str, last: &str| fix(&place, FENCED, &["--error", error, "--last-error", last]);
    let ended = ask("no such column: zzz\n", "  no such column: zzz");
    assert_eq!((ended.code, ended.stdout.as_str()), (1, ""));
    assert!(
        ended.stderr.starts_with("error: given up because the same error came twice: no such column: zzz\n"),
        "{}",
        ended.stderr
    );
    assert_eq!(ask("no such column: zzz", "no such column: yyy").code, 0);
    // No error is no error twice.
    assert_eq!(ask(" ", "").code, 0);
}

#[test]
fn a02_an_error_that_nobody_can_explain_is_not_called_mended() {
    let place = Place::with_schema();
    let said = |more: &[&str]| {
        place.run(&[&["fix", "--schema", "schema.sql", "--sql", MENDED, "--format", "json"], more].concat())
    };
    assert_eq!(said(&[]).json()["status"], "untouched");
    // The database refused it, and there is no database here to ask again.
    let ended = said(&["--error", "no such column: zzz"]);
    let report = ended.json();
    assert_eq!((ended.code, &report["status"], &report["success"]), (1, &json!("gave_up"), &json!(false)));
    assert_eq!(report["findings"][0]["code"], "unknown-column");
}

#[test]
fn a03_what_only_writes_is_refused_and_never_handed_out() {
    let place = Place::with_demo();
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
fn a03_house_rules_hold_for_what_was_mended() {
    let place = Place::with_demo();
    place.file("house.yaml", "deny_tables: [products]\n");
    for sql in [MENDED, FENCED] {
        let ended = fix(&place, sql, &["--policy", "house.yaml", "--format", "json"]);
        assert_eq!((ended.code, &ended.json()["status"]), (1, &json!("refused")));
        let line = lines(&[json!({ "sql": sql, "db": "shop.db" })]);
        let ended = place.run_with(&["fix", "--batch", "-", "--policy", "house.yaml"], &line);
        assert_eq!((ended.code, &ended.answers()[0]["status"]), (0, &json!("refused")));
    }
}

#[test]
fn a04_what_runs_is_given_back_byte_for_byte() {
    let place = Place::with_demo();
    for sql in [
        MENDED,
        "select  Name\r\nfrom products -- all of them\r\n\r\n",
        "\n\tSELECT name FROM products ;\n",
        "SELECT 'é → x' FROM products WHERE name = 'ü';",
    ] {
        place.file("query.sql", sql);
        let ended = place.run(&["fix", "--db", "shop.db", "query.sql"]);
        assert_eq!((ended.code, ended.stdout.as_str()), (0, sql), "{}", ended.stderr);
        let report = place.run(&["fix", "--db", "shop.db", "query.sql", "--format", "json"]).json();
        assert_eq!((&report["corrected_sql"], &report["status"]), (&json!(sql), &json!("untouched")));
        assert_eq!((&report["fixes"], &report["confidence"]), (&json!([]), &json!("high")));
        let line = lines(&[json!({ "sql": sql, "db": "shop.db", "question": "what is there?" })]);
        let answers = place.run_with(&["fix", "--batch", "-"], &line).answers();
        assert_eq!((&answers[0]["sql"], &answers[0]["status"]), (&json!(sql), &json!("untouched")));
    }
}

#[test]
fn l05_confidence_follows_the_least_sure_fix() {
    let place = Place::with_demo();
    for (sql, confidence) in [
        (MENDED, "high"),
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
fn l05_only_proved_fixes_are_applied_where_that_is_asked() {
    let place = Place::with_demo();
    let sql = "SELECT name FROM products WHERE stars = 5";
    let ended = fix(&place, sql, &["--apply", "safe", "--format", "json"]);
    let report = ended.json();
    assert_eq!((ended.code, &report["status"], &report["confidence"]), (1, &json!("gave_up"), &json!("low")));
    assert_eq!(fix(&place, sql, &["--apply", "likely"]).code, 0);
    let line = lines(&[json!({ "sql": sql, "db": "shop.db" })]);
    for (apply, status) in [("safe", "gave_up"), ("likely", "mended")] {
        let answers = place.run_with(&["fix", "--batch", "-", "--apply", apply], &line).answers();
        assert_eq!(answers[0]["status"], status);
    }
}

#[test]
fn the_database_is_the_judge_unless_it_is_not_asked() {
    let place = Place::with_demo();
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
    let answers = place.run_with(&["fix", "--batch", "-"], &line).answers();
    assert_eq!((&answers[0]["status"], &answers[0]["findings"][0]["message"]), (&json!("gave_up"), &json!(message)));
    let asked = place.run_with(&["fix", "--batch", "-", "--no-dry-run"], &line).answers();
    assert_eq!(asked[0]["status"], "untouched");
    assert_eq!(fix(&place, sql, &["--no-dry-run"]).code, 0);
}

#[test]
fn what_cannot_be_done_ends_with_2() {
    let place = Place::with_demo();
    for (arguments, message) in [
        (&["fix", "--sql", MENDED][..], "error: no tables are known"),
        (&["fix", "--db", "missing.db", "--sql", MENDED], "there is no file `missing.db`"),
        (&["fix", "--db", "shop.db", "--schema", "x.sql", "--sql", MENDED], "cannot be used with"),
        (&["fix", "--db", "shop.db", "--apply", "suggested", "--sql", MENDED], "invalid value 'suggested'"),
        (&["fix", "--db", "shop.db", "--retry-count", "many", "--sql", MENDED], "invalid value 'many'"),
        (&["fix", "--db", "shop.db", "missing.sql"], "there is no file `missing.sql`"),
        (&["fix", "--batch", "-", "--error", "x"], "cannot be used with"),
        (&["fix", "--batch", "-", "--format", "json"], "cannot be used with"),
        (&["fix", "--batch", "-", "--root", "nowhere"], "`nowhere` is no folder"),
        (&["fix", "--jobs", "2", "--db", "shop.db"], "--batch"),
    ] {
        let ended = place.run(arguments);
        assert_eq!((ended.code, ended.stdout.as_str()), (2, ""), "{arguments:?}");
        assert!(ended.stderr.contains(message), "{}", ended.stderr);
    }
}

#[test]
fn a_batch_answers_in_the_order_of_the_lines() {
    let place = Place::new();
    std::fs::create_dir(place.path("data")).unwrap();
    for db in ["data/a.db", "data/b.db", "data/c.db"] {
        assert_eq!(place.run(&["demo", db]).code, 0);
    }
    let kinds = [
        (MENDED, "untouched", MENDED),
        (FENCED, "mended", MENDED),
        ("DELETE FROM products", "refused", "DELETE FROM products"),
        ("SELECT zzz_qqq FROM products", "gave_up", "SELECT zzz_qqq FROM products"),
    ];
    let dbs = ["a.db", "b.db", "sqlite:c.db"];
    // Every kind with every database, and some lines for each of the threads, which take 64 at a time.
    let count = if is_full() { 1_200 } else { 240 };
    let input: Vec<Value> = (0..count)
        .map(
            |i| json!({ "id": i, "sql": kinds[i % 4].0, "db": dbs[i % 3], "question": null, "error": "no such table" }),
        )
        .collect();
    let ended = place.run_with(&["fix", "--batch", "-", "--root", "data", "--jobs", "4"], &lines(&input));
    let each = count / 4;
    let told = format!("{each} untouched, {each} mended, {each} given up, {each} refused\n");
    assert_eq!((ended.code, &ended.stderr), (0, &told));
    let answers = ended.answers();
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
fn a_line_that_cannot_be_looked_at_does_not_stop_the_others() {
    let place = Place::with_schema();
    let input = [
        json!({ "id": 1, "sql": FENCED, "schema": "schema.sql" }).to_string(),
        "no json".to_string(),
        json!({ "id": "two", "sql": MENDED, "db": "missing.db" }).to_string(),
        json!({ "id": 3, "sql": MENDED, "schema": "schema.sql", "question": 7 }).to_string(),
        json!({ "id": 4, "sql": MENDED, "schema": "schema.sql", "dialect": "cobol" }).to_string(),
        json!({ "id": 5, "sql": "SELECT \"name\" FROM products", "schema": "schema.sql", "dialect": "postgres" })
            .to_string(),
    ];
    let ended = place.run_with(&["fix", "--batch", "-"], input.join("\n").as_bytes());
    let answers = ended.answers();
    let ids: Vec<&Value> = answers.iter().map(|answer| &answer["id"]).collect();
    assert_eq!(json!(ids), json!([1, null, "two", 3, 4, 5]));
    assert_eq!((&answers[0]["status"], &answers[5]["status"]), (&json!("mended"), &json!("untouched")));
    for answer in &answers[1..5] {
        assert_eq!((&answer["status"], &answer["fixes"]), (&json!("refused"), &json!([])));
        assert!(!answer["error"].as_str().unwrap().is_empty() && answer["trace_id"].is_string(), "{answer}");
    }
    assert_eq!((&answers[1]["sql"], &answers[2]["sql"]), (&json!(""), &json!(MENDED)));
    assert_eq!(
        (ended.code, ended.stderr.as_str()),
        (2, "1 untouched, 1 mended, 0 given up, 0 refused, 4 could not be looked at\n")
    );
}

#[test]
fn l05_the_database_settles_a_tie_by_the_values_it_holds() {
    let place = Place::new();
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
fn of_two_equal_joins_the_rows_say_which_does_not_multiply() {
    let place = Place::new();
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
fn a_query_that_runs_by_a_guess_is_given_up_all_the_same() {
    let place = Place::with_demo();
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
fn f01_a_value_that_is_nowhere_is_told_and_another_case_is_put_right() {
    let place = Place::with_demo();
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
