use std::process::Stdio;

use serde_json::Value;

#[cfg(unix)]
use crate::signals;
use crate::{CommandOutput, TestDir};

/// Never ends by itself.
const FOREVER: &str = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c";
const TWO: &str = "SELECT 1 AS n, 'a|b' AS t UNION ALL SELECT NULL, 'é, \"x\"'";

fn run(place: &TestDir, sql: &str, more: &[&str]) -> CommandOutput {
    place.run(&[&["run", "--db", "shop.db", "--sql", sql], more].concat())
}

#[test]
fn writes_rows_to_stdout_and_messages_to_stderr() {
    let place = TestDir::with_demo();
    let ended = run(&place, TWO, &[]);
    let table = "\
┌──────┬────────┐
│    n ┆ t      │
╞══════╪════════╡
│    1 ┆ a|b    │
│ NULL ┆ é, \"x\" │
└──────┴────────┘
";
    assert_eq!((ended.code, ended.stdout.as_str(), ended.stderr.as_str()), (0, table, "2 rows\n"));
    let ended = run(&place, TWO, &["--format", "csv", "-q"]);
    assert_eq!((ended.stdout.as_str(), ended.stderr.as_str()), ("n,t\n1,a|b\n,\"é, \"\"x\"\"\"\n", ""));
    let ended = run(&place, TWO, &["--format", "markdown"]);
    assert_eq!(ended.stdout, "| n | t |\n| --- | --- |\n| 1 | a\\|b |\n| NULL | é, \"x\" |\n");
    let ended = run(&place, TWO, &["--format", "json"]);
    let rows: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(
        rows,
        serde_json::json!({ "columns": ["n", "t"], "rows": [[1, "a|b"], [null, "é, \"x\""]], "truncated": false })
    );
}

#[test]
fn reports_empty_and_null_results_after_the_rows() {
    let place = TestDir::with_demo();
    for (sql, rows, told) in [
        ("SELECT name FROM products WHERE price < 0", "name\n", Some("warning[empty-result]: nothing was found")),
        (
            "SELECT max(price) AS most FROM products WHERE price < 0",
            "most\n\n",
            Some("warning[null-result]: the only row holds nothing but NULL"),
        ),
        ("SELECT count(*) AS n FROM products", "n\n40\n", None),
    ] {
        let ended = run(&place, sql, &["--format", "csv", "-q"]);
        assert_eq!((ended.code, ended.stdout.as_str()), (0, rows), "{sql}");
        match told {
            Some(told) => assert!(ended.stderr.contains(told), "{sql}: {}", ended.stderr),
            None => assert_eq!(ended.stderr, "", "{sql}"),
        }
    }
}

#[test]
fn reports_truncated_results() {
    let place = TestDir::with_demo();
    for (more, rows) in [(&["--max-rows", "3", "-q"][..], 3), (&["--max-rows", "40", "-q"], 40)] {
        let ended = run(&place, "SELECT name FROM products", &[more, &["--format", "csv"]].concat());
        assert_eq!((ended.code, ended.stdout.lines().count()), (0, rows + 1));
        assert_eq!(ended.stderr.contains("truncated"), rows < 40, "{}", ended.stderr);
    }
    let ended = run(&place, "SELECT name FROM products", &["--max-bytes", "100", "--format", "json"]);
    let rows: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(rows["truncated"], true);
    assert!(ended.stderr.contains("truncated"));
}

#[test]
fn rejected_sql_is_not_run_and_shown_on_stderr() {
    let place = TestDir::with_demo();
    place.write_file("q.sql", "DROP TABLE products");
    let ended = place.run(&["run", "--db", "shop.db", "q.sql"]);
    assert_eq!((ended.code, ended.stdout.as_str()), (1, ""));
    assert!(ended.stderr.starts_with("error[writes-data]: DROP TABLE is not allowed"), "{}", ended.stderr);
    assert!(
        ended.stderr.contains(" --> q.sql:1:1\n")
            && ended.stderr.ends_with("refused: 1 error\nhint: `querymend explain writes-data` explains it\n"),
        "{}",
        ended.stderr
    );
    let ended = run(&place, "SELECT names FROM products", &[]);
    assert_eq!((ended.code, ended.stdout.as_str()), (1, ""));
    assert!(ended.stderr.contains("= help: write `name`"), "{}", ended.stderr);
    let hint = "\nhint: `querymend explain unknown-column` explains it; it can be fixed with `querymend fix`\n";
    assert!(ended.stderr.ends_with(hint), "{}", ended.stderr);
    assert_eq!(run(&place, "SELECT count(*) FROM products", &["--format", "csv"]).stdout, "count(*)\n40\n");
}

#[test]
fn runs_sql_extracted_from_prose() {
    let place = TestDir::with_demo();
    let ended = place.run_with_stdin(
        &["run", "--db", "shop.db", "--format", "csv"],
        b"Sure!\n```sql\nSELECT count(*) AS n FROM orders; -- all\n```\n",
    );
    assert_eq!((ended.code, ended.stdout.as_str()), (0, "n\n180\n"), "{}", ended.stderr);
}

#[test]
fn dry_run_prints_the_sql_and_runs_nothing() {
    let place = TestDir::with_demo();
    let ended = run(&place, &format!("{FOREVER} -- for ever\n;"), &["--dry-run"]);
    assert_eq!((ended.code, ended.stdout), (0, format!("{FOREVER}\n")));
    assert!(ended.stderr.contains("dry run"));
}

#[test]
fn classifies_database_errors() {
    let place = TestDir::with_demo();
    let ended = run(&place, "SELECT json_extract(name, '$.x') FROM products", &[]);
    assert_eq!((ended.code, ended.stdout.as_str()), (1, ""));
    let first = ended.stderr.lines().next().unwrap();
    assert!(first.starts_with("error[") && first.ends_with("]: malformed JSON (SQLITE_ERROR)"), "{}", ended.stderr);
    assert!(ended.stderr.lines().last().unwrap().starts_with("hint: "), "{}", ended.stderr);
}

#[test]
fn stops_a_query_at_its_timeout() {
    let place = TestDir::with_demo();
    let ended = run(&place, FOREVER, &["--timeout", "0.2"]);
    assert_eq!(ended.code, 1);
    assert!(
        ended.stderr.starts_with("error[timed-out]: the query was stopped because it ran longer than 200 ms"),
        "{}",
        ended.stderr
    );
    for time in ["0", "-1", "soon", "NaN", "1e300"] {
        assert_eq!(run(&place, "SELECT 1", &["--timeout", time]).code, 2, "{time}");
    }
}

#[cfg(unix)]
#[test]
fn ctrl_c_stops_the_query() {
    let place = TestDir::with_demo();
    // With an hour for the query, so that it is not the limit that stops it.
    let arguments = ["run", "--db", "shop.db", "--timeout", "3600", "--sql", FOREVER];
    let mut child = place.command(&arguments).spawn().unwrap();
    signals::wait_until_computing(&child);
    signals::press_ctrl_c(&child);
    assert_eq!(signals::exit_code(&mut child), Some(130));
}

#[test]
fn closed_pipe_is_not_an_error() {
    let place = TestDir::with_demo();
    let sql = "SELECT a.name FROM products a CROSS JOIN products b CROSS JOIN orders c";
    for arguments in [
        &["run", "--db", "shop.db", "--format", "csv", "--max-rows", "100000", "--sql", sql][..],
        &["explain"],
        &["completions", "zsh"],
    ] {
        let mut child = place.command(arguments).stdout(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(0), "{stderr}");
        assert!(!stderr.contains("error") && !stderr.contains("panicked"), "{stderr}");
    }
}

#[test]
fn options_override_configured_limits() {
    let place = TestDir::with_demo();
    let sql = "SELECT name FROM products";
    let rows =
        |more: &[&str]| run(&place, sql, &[&["--format", "csv", "-q"], more].concat()).stdout.lines().count() - 1;
    assert_eq!(rows(&[]), 40);
    place.write_file("querymend.yaml", "limits: {rows: 5}\n");
    assert_eq!((rows(&[]), rows(&["--max-rows", "7"])), (5, 7));
    place.write_file("querymend.yaml", "limits: {bytes: 100}\n");
    assert!(rows(&[]) < 40 && rows(&["--max-bytes", "1000000"]) == 40);
    place.write_file("querymend.yaml", "limits: {time: 200ms}\n");
    let ended = run(&place, FOREVER, &[]);
    assert!(ended.code == 1 && ended.stderr.contains("longer than 200 ms"), "{}", ended.stderr);
    let ended = run(&place, FOREVER, &["--timeout", "0.1"]);
    assert!(ended.code == 1 && ended.stderr.contains("longer than 100 ms"), "{}", ended.stderr);
    let help = place.help("run");
    for default in
        ["`limits.rows` of querymend.yaml, else 10000", "`limits.bytes`", "`limits.time` of querymend.yaml, else 30"]
    {
        assert!(help.contains(default), "{help}");
    }
}

#[test]
fn truncated_rows_are_not_reported_as_empty() {
    let place = TestDir::with_demo();
    let ended = run(&place, "SELECT name FROM products", &["--max-rows", "0"]);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    assert!(ended.stderr.contains("truncated") && !ended.stderr.contains("empty-result"), "{}", ended.stderr);
    let ended = run(&place, "SELECT NULL AS n UNION ALL SELECT NULL", &["--max-rows", "1"]);
    assert!(ended.stderr.contains("truncated") && !ended.stderr.contains("null-result"), "{}", ended.stderr);
    // Where there is nothing at all, no limit cut it off.
    let ended = run(&place, "SELECT name FROM products WHERE price < 0", &["--max-rows", "0"]);
    assert!(ended.stderr.contains("empty-result") && !ended.stderr.contains("truncated"), "{}", ended.stderr);
}
