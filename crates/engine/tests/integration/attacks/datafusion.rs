//! DataFusion, which the critic knows and no engine of ours speaks to: its own Python package reads each text with options that
//! forbid it everything but queries.

use std::io::Write;
use std::process::{Command, Stdio};

use serde_json::Value;

use super::corpora::Material;
use super::{Seen, Tally, approved, files, open_folder};

const SCRIPTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts");

/// The Python that has DataFusion; none where it cannot be had, which on CI is a failure.
fn python() -> Option<String> {
    if std::env::var("QUERYMEND_TEST_CLIENTS").is_ok_and(|wanted| wanted == "none") {
        eprintln!("skipped on datafusion: QUERYMEND_TEST_CLIENTS=none");
        return None;
    }
    let fetched =
        Command::new(format!("{SCRIPTS}/datafusion_check.sh")).arg("fetch").stdin(Stdio::null()).output().unwrap();
    let said = String::from_utf8_lossy(&fetched.stderr);
    if !fetched.status.success() {
        assert!(std::env::var_os("CI").is_none(), "DataFusion cannot be had: {said}");
        eprintln!("skipped on datafusion: it cannot be had: {said}");
        return None;
    }
    Some(String::from_utf8(fetched.stdout).unwrap().trim().to_owned())
}

/// What DataFusion makes of each text.
fn classify(python: &str, folder: &std::path::Path, texts: &[&str]) -> Vec<Seen> {
    let mut child = Command::new(python)
        .arg(format!("{SCRIPTS}/datafusion_check.py"))
        .current_dir(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut to = child.stdin.take().unwrap();
    let lines: String = texts.iter().map(|text| format!("{}\n", Value::from(*text))).collect();
    let writing = std::thread::spawn(move || to.write_all(lines.as_bytes()));
    let output = child.wait_with_output().unwrap();
    writing.join().unwrap().unwrap();
    assert!(output.status.success());
    let seen = |line: &str| match serde_json::from_str::<Value>(line).unwrap() {
        Value::String(word) if word == "read" => Seen::OneRead,
        Value::String(word) if word == "refused" => Seen::Refused,
        other => Seen::Otherwise(other.to_string()),
    };
    String::from_utf8(output.stdout).unwrap().lines().map(seen).collect()
}

#[test]
fn approved_sql_is_one_read_in_datafusion() {
    let Some(python) = python() else { return };
    let folder = open_folder();
    let lying = files(folder.path());
    let dialect = &querymend_sql::dialect::DATAFUSION;
    let mut tally = Tally::new("datafusion", |_, _| false);
    let mut queries = Vec::new();
    for text in Material::new("datafusion", folder.path(), folder.path()).texts() {
        tally.tried();
        queries.extend(approved(&text, dialect, None));
    }
    let texts: Vec<&str> = queries.iter().map(|query| query.sql()).collect();
    let seen = classify(&python, folder.path(), &texts);
    assert_eq!(seen.len(), texts.len());
    for (sql, seen) in texts.into_iter().zip(seen) {
        tally.note(sql, seen);
    }
    assert_eq!(files(folder.path()), lying);
    tally.end();

    let writes = [
        "INSERT INTO canary VALUES (9, 'x')",
        "CREATE TABLE stolen AS SELECT 1",
        "DROP TABLE canary",
        "SET datafusion.execution.batch_size = 1",
        "SELECT 1; SELECT 2",
        "COPY canary TO 'stolen.csv'",
        "EXPLAIN ANALYZE INSERT INTO canary VALUES (9, 'x')",
        "PREPARE p AS SELECT 1",
        "BEGIN",
    ];
    for (sql, seen) in writes.iter().zip(classify(&python, folder.path(), &writes)) {
        assert!(matches!(seen, Seen::Otherwise(_)), "{sql}: {seen:?}");
    }
    let reads = ["SELECT song FROM canary", "SELECT nothing FROM canary"];
    assert_eq!(classify(&python, folder.path(), &reads), [Seen::OneRead, Seen::Refused]);
}
