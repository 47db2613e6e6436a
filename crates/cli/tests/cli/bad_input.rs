use std::time::Instant;

use querymend_testing::hang_timeout;

use crate::{CommandOutput, SCHEMA, TestDir};

/// Ended with 2, an error and a hint, and nothing on stdout.
fn assert_usage_error(ended: &CommandOutput, message: &str) {
    assert_eq!((ended.code, ended.stdout.as_str()), (2, ""), "{}", ended.stderr);
    let mut lines = ended.stderr.lines();
    let first = lines.next().unwrap();
    assert!(first.starts_with("error: ") && first.contains(message), "{}", ended.stderr);
    assert!(lines.next().is_some_and(|line| line.starts_with("hint: ")), "{}", ended.stderr);
}

/// Refused with a finding of that code, in bounded time.
fn assert_refused(sql: &[u8], code: &str) {
    let begun = Instant::now();
    let ended = TestDir::new().run_with_stdin(&["check"], sql);
    assert_eq!(ended.code, 1, "{}", ended.stderr);
    assert!(ended.stdout.starts_with(&format!("error[{code}]: ")), "{}", ended.stdout);
    assert!(ended.stdout.len() < 2_000, "a finding is not the whole text");
    assert!(ended.stderr.contains("hint: "), "{}", ended.stderr);
    assert!(begun.elapsed() < hang_timeout());
}

#[test]
fn rejects_text_that_is_not_a_query() {
    assert_refused(b"-- nothing", "no-sql");
    assert_refused(b"SELECT 1 \0 FROM t", "syntax-error");
    assert_refused(b"SELECT FROM WHERE", "unfinished");
}

#[test]
fn reports_blank_input() {
    let place = TestDir::with_demo();
    place.write_file("blank.sql", " \n\t\n");
    for command in ["check", "fix", "run"] {
        let given = |more: &[&str], stdin: &[u8], name: &str| {
            let ended = place.run_with_stdin(&[&[command, "--db", "shop.db"], more].concat(), stdin);
            assert_usage_error(&ended, &format!("`{name}` is empty"));
            assert!(ended.stderr.ends_with("\nhint: give a file, --sql or SQL on stdin\n"), "{}", ended.stderr);
        };
        given(&[], b"", "<stdin>");
        given(&["-"], b" \n\t\n", "<stdin>");
        given(&["blank.sql"], b"", "blank.sql");
        given(&["--sql", ""], b"", "<sql>");
    }
}

#[test]
fn rejects_ten_thousand_parentheses() {
    let nested = format!("SELECT {}1{}", "(".repeat(10_000), ")".repeat(10_000));
    assert_refused(nested.as_bytes(), "too-deep");
    assert_refused(format!("SELECT {}", "(".repeat(10_000)).as_bytes(), "too-deep");
    assert_refused(format!("SELECT {}1", "- ".repeat(10_000)).as_bytes(), "too-deep");
}

#[test]
fn rejects_more_than_a_megabyte() {
    assert_refused(format!("SELECT 1{}", " + 1".repeat(400_000)).as_bytes(), "too-deep");
}

#[test]
fn accepts_a_string_literal_of_one_megabyte() {
    let ended = TestDir::new().run_with_stdin(&["check"], format!("SELECT '{}'", "x".repeat(1_000_000)).as_bytes());
    assert_eq!((ended.code, ended.stdout.as_str()), (0, ""));
}

#[test]
fn reports_invalid_utf8_with_its_position() {
    let place = TestDir::new();
    assert_usage_error(
        &place.run_with_stdin(&["check"], b"SELECT 1,\n '\xe9t\xe9'"),
        "`<stdin>` is not UTF-8 text: byte 0xe9 at offset 12 (line 2)",
    );
    place.write_file("latin.sql", b"SELECT '\xff'");
    assert_usage_error(&place.run(&["check", "latin.sql"]), "byte 0xff at offset 8 (line 1)");
    place.write_file("wide.sql", b"\xff\xfeS\0E\0");
    let ended = place.run(&["check", "wide.sql"]);
    assert_usage_error(&ended, "not UTF-8");
    assert!(ended.stderr.contains("UTF-16"));
    place.write_file("bom.sql", "\u{feff}SELECT 1");
    assert_eq!(place.run(&["check", "bom.sql"]).code, 0);
}

#[test]
fn reports_unreadable_files() {
    let place = TestDir::new();
    assert_usage_error(&place.run(&["check", "missing.sql"]), "there is no file `missing.sql`");
    assert_usage_error(&place.run(&["check", "."]), "`.` is a folder");
    place.write_file("large.sql", vec![b' '; (16 << 20) + 1]);
    assert_usage_error(&place.run(&["check", "large.sql"]), "`large.sql` is larger than 16 MB");
}

#[test]
fn reports_invalid_schemas() {
    let place = TestDir::new();
    place.write_file("twice.sql", format!("{SCHEMA}{SCHEMA}"));
    place.write_file("twice.json", r#"{"tables":[{"name":"a","columns":[]},{"name":"a","columns":[]}]}"#);
    place.write_file("half.json", r#"{"tables":[{"name":"a""#);
    place.write_file("deep.json", "[".repeat(100_000));
    place.write_file("prose.sql", "There are some tables, I believe.");
    place.write_file(
        "deep.sql",
        format!("CREATE TABLE t (a INT DEFAULT {}1{})", "(".repeat(10_000), ")".repeat(10_000)),
    );
    for (file, message) in [
        ("twice.sql", "table `products` is described twice"),
        ("twice.json", "table `a` is described twice"),
        ("half.json", "not valid JSON"),
        ("deep.json", "not valid JSON"),
        ("prose.sql", "no CREATE TABLE"),
        ("deep.sql", "cannot be parsed as sqlite"),
        ("missing.json", "there is no file"),
        (".", "is a folder"),
    ] {
        assert_usage_error(&place.run(&["check", "--sql", "SELECT 1", "--schema", file]), message);
    }
}

#[test]
fn accepts_cyclic_foreign_keys() {
    let place = TestDir::new();
    place.write_file("cycle.sql", "CREATE TABLE a (id INT PRIMARY KEY, b INT REFERENCES b (id)); CREATE TABLE b (id INT PRIMARY KEY, a INT REFERENCES a (id));");
    let ended = place.run(&["check", "--schema", "cycle.sql", "--sql", "SELECT a.id FROM a JOIN b ON a.b = b.id"]);
    assert_eq!((ended.code, ended.stdout.as_str()), (0, ""));
}

#[test]
fn reports_invalid_databases() {
    let place = TestDir::new();
    place.write_file("text.db", "this is a text, and no database at all; it is long enough to be one");
    for (db, message) in [
        ("missing.db", "there is no file `missing.db`"),
        (".", "`.` is a folder"),
        ("text.db", "is not a SQLite database"),
        ("", "no database was named"),
        ("oracle://me:secret@host/db", "there is no engine for `oracle://`"),
        ("mysql://me:secret@127.0.0.1:1/db", "there is no MySQL server at 127.0.0.1:1"),
    ] {
        for command in [&["check", "--sql", "SELECT 1"][..], &["run", "--sql", "SELECT 1"], &["schema"]] {
            let ended = place.run(&[command, &["--db", db]].concat());
            assert_usage_error(&ended, message);
            assert!(!ended.stderr.contains("secret"));
        }
    }
    assert!(!place.path("missing.db").exists());
}

#[test]
fn reports_a_locked_database_without_hanging() {
    let place = TestDir::with_demo();
    let holder = rusqlite::Connection::open(place.path("shop.db")).unwrap();
    holder.execute_batch("BEGIN EXCLUSIVE").unwrap();
    // It ends, although the lock is held until it has.
    assert_usage_error(
        &place.run(&["check", "--db", "shop.db", "--sql", "SELECT 1"]),
        "`shop.db` is locked by another program",
    );
    holder.execute_batch("ROLLBACK").unwrap();
    assert_eq!(place.run(&["check", "--db", "shop.db", "--sql", "SELECT 1"]).code, 0);
}

#[test]
fn rejects_policies_with_unknown_fields() {
    let place = TestDir::new();
    place.write_file("typo.yaml", "allow_table: [products]\n");
    place.write_file("typo.json", r#"{"allow_table": ["products"]}"#);
    place.write_file("kind.yaml", "comments: maybe\n");
    place.write_file("empty.yaml", "\n");
    for (file, message) in [
        ("typo.yaml", "unknown field `allow_table`"),
        ("typo.json", "unknown field `allow_table`"),
        ("kind.yaml", "maybe"),
    ] {
        assert_usage_error(&place.run(&["check", "--sql", "SELECT 1", "--policy", file]), message);
    }
    assert_eq!(place.run(&["check", "--sql", "SELECT 1", "--policy", "empty.yaml"]).code, 0);
}

#[test]
fn escapes_control_characters_of_a_query() {
    let ended = TestDir::new().run_with_stdin(&["check", "--explain"], "SELECT \u{1b}[31m \u{9b}31m \u{7}".as_bytes());
    assert_eq!(ended.code, 1);
    assert!(!ended.stdout.contains(['\u{1b}', '\u{9b}', '\u{7}']), "{:?}", ended.stdout);
}

#[test]
fn explains_misplaced_commands_and_invalid_times() {
    let place = TestDir::with_demo();
    for (arguments, words) in [
        (&["seed"][..], "`querymend memory seed`"),
        (&["run", "--db", "shop.db", "--timeout", "soon", "--sql", "SELECT 1"][..], "a time such as 500ms, 30s or 2m"),
        (&["run", "--db", "shop.db", "--timeout", "0", "--sql", "SELECT 1"][..], "more than 0 seconds"),
        (&["ask", "--db", "shop.db", "--model", "none", "How many?"][..], "the model is disabled"),
    ] {
        let ended = place.run(arguments);
        assert!(ended.code == 2 && ended.stderr.contains(words), "{arguments:?}: {}", ended.stderr);
    }
    for time in ["1", "1s", "1500ms"] {
        let ended = place.run(&["run", "--db", "shop.db", "--timeout", time, "--sql", "SELECT 1"]);
        assert_eq!(ended.code, 0, "{time}: {}", ended.stderr);
    }
}
