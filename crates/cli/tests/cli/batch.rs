use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

use querymend_testing::{hang_timeout, is_full_suite};
use serde_json::{Value, json};

use crate::{CommandOutput, TestDir};

#[test]
fn answers_keep_the_order_of_the_lines() {
    let place = TestDir::with_demo();
    // More lines than may be under way at a time: four chunks of 64 lines for each thread.
    let (lines, jobs) = if is_full_suite() { (3_000, "4") } else { (750, "2") };
    let mut input = String::new();
    for i in 0..lines {
        let sql = if i % 3 == 0 { "DELETE FROM products" } else { "SELECT names FROM products" };
        input.push_str(&format!("{}\n", json!({ "id": i, "sql": sql, "db": "shop.db" })));
    }
    let ended = place.run_with_stdin(&["check", "--batch", "-", "--jobs", jobs], input.as_bytes());
    let told = format!("{} approved, {} refused\n", lines / 3 * 2, lines / 3);
    assert_eq!((ended.code, &ended.stderr), (0, &told));
    let answers = ended.json_lines();
    assert_eq!(answers.len(), lines);
    for (i, answer) in answers.iter().enumerate() {
        assert_eq!(answer["id"], i);
        let verdict = if i % 3 == 0 { "refused" } else { "approved" };
        assert_eq!(answer["verdict"], verdict);
    }
}

#[test]
fn answers_have_the_documented_form() {
    let place = TestDir::with_demo();
    place.write_file(
        "in.jsonl",
        "{\"id\": {\"a\": [1.0, 18446744073709551616]}, \"sql\": \"SELECT names FROM products\", \"db\": \"shop.db\"}",
    );
    let ended = place.run(&["check", "--batch", "in.jsonl", "-q"]);
    assert_eq!(
        ended.stdout,
        concat!(
            r#"{"id":{"a": [1.0, 18446744073709551616]},"verdict":"approved","findings":[{"code":"unknown-column","severity":"error","#,
            r#""message":"`products` has no column `names` (did you mean `name`?)","span":{"start":7,"end":12},"suggestion":"name"}]}"#,
            "\n"
        )
    );
    assert_eq!((ended.code, ended.stderr.as_str()), (0, ""));
}

#[test]
fn invalid_lines_do_not_stop_the_batch() {
    let place = TestDir::with_demo();
    place.write_file("text.db", "this is not a database, it is a text of some length");
    let mut input = Vec::new();
    for line in [
        &b"{\"id\":1,\"sql\":\"SELECT 1\"}"[..],
        b"",
        b"no json",
        b"{\"id\":\"two\",\"sql\":2}",
        b"{\"id\":3}",
        b"{\"id\":4,\"sql\":\"SELECT '\xff'\"}",
        b"{\"id\":5,\"sql\":\"SELECT 1\",\"db\":\"missing.db\"}",
        b"{\"id\":6,\"sql\":\"SELECT 1\",\"db\":\"text.db\"}",
        b"{\"id\":7,\"sql\":\"SELECT 1\",\"dialect\":\"cobol\"}",
        b"{\"id\":8,\"sql\":\"SELECT 1\",\"db\":\"oracle://me:secret@host/x\"}",
        b"[1, 2]",
        b"{\"sql\":\"SELECT 1\",\"unknown\":0}",
    ] {
        input.extend_from_slice(line);
        input.push(b'\n');
    }
    let ended = place.run_with_stdin(&["check", "--batch", "-"], &input);
    let answers = ended.json_lines();
    let ids: Vec<&Value> = answers.iter().map(|answer| &answer["id"]).collect();
    assert_eq!(json!(ids), json!([1, null, "two", 3, null, 5, 6, 7, 8, null, null]));
    assert_eq!((&answers[0]["verdict"], &answers[10]["verdict"]), (&"approved".into(), &"approved".into()));
    for answer in &answers[1..10] {
        assert_eq!((&answer["verdict"], &answer["findings"]), (&"refused".into(), &json!([])));
        assert!(!answer["error"].as_str().unwrap().is_empty());
    }
    assert!(answers[1]["error"].as_str().unwrap().starts_with("line 3 cannot be read"));
    assert!(answers[4]["error"].as_str().unwrap().contains("not UTF-8"));
    assert!(answers[6]["error"].as_str().unwrap().contains("is not a SQLite database"));
    assert!(!ended.stdout.contains("secret"));
    assert_eq!((ended.code, ended.stderr.as_str()), (2, "2 approved, 0 refused, 9 could not be processed\n"));
}

#[test]
fn resolves_paths_from_the_root_and_reads_schema_files() {
    let place = TestDir::new();
    std::fs::create_dir(place.path("data")).unwrap();
    assert_eq!(place.run(&["demo", "data/shop.db"]).code, 0);
    place.write_file("data/pg.sql", "CREATE TABLE t (\"Name\" text)");
    let input = [
        json!({ "sql": "SELECT names FROM products", "db": "shop.db" }),
        json!({ "sql": "SELECT names FROM products", "db": "sqlite:shop.db" }),
        json!({ "sql": "SELECT Name FROM t", "schema": "pg.sql", "dialect": "postgres" }),
        json!({ "sql": "SELECT \"Name\" FROM t", "schema": "pg.sql", "dialect": "postgres" }),
        json!({ "sql": "SELECT names FROM products" }),
    ];
    let input: String = input.iter().map(|line| format!("{line}\n")).collect();
    let codes = |ended: &CommandOutput| -> Vec<String> {
        ended.json_lines().iter().map(|a| a["findings"][0]["code"].as_str().unwrap_or("-").to_string()).collect()
    };
    let ended = place.run_with_stdin(&["check", "--batch", "-", "--root", "data"], input.as_bytes());
    assert_eq!(codes(&ended), ["unknown-column", "unknown-column", "unknown-column", "-", "-"]);
    // What the command line names is for the lines that name nothing.
    let ended =
        place.run_with_stdin(&["check", "--batch", "-", "--root", "data", "--db", "data/shop.db"], input.as_bytes());
    assert_eq!(codes(&ended)[4], "unknown-column");
}

#[test]
fn skips_a_line_of_twenty_megabytes() {
    let mut input = format!("{{\"id\":1,\"sql\":\"SELECT {}\"}}\n", "1".repeat(20 << 20));
    input.push_str("{\"id\":2,\"sql\":\"SELECT 1\"}\n");
    let ended = TestDir::new().run_with_stdin(&["check", "--batch", "-"], input.as_bytes());
    let answers = ended.json_lines();
    assert_eq!((answers.len(), &answers[1]["id"], &answers[1]["verdict"]), (2, &2.into(), &"approved".into()));
    assert!(answers[0]["error"].as_str().unwrap().contains("longer than 16 MB"));
    assert_eq!(ended.code, 2);
}

#[test]
fn answers_before_the_next_line_arrives() {
    let mut child = TestDir::new().command(&["check", "--batch", "-", "-q"]).stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let stdout = child.stdout.take().unwrap();
    let (send, receive) = std::sync::mpsc::channel();
    std::thread::spawn(move || BufReader::new(stdout).lines().for_each(|line| send.send(line.unwrap()).unwrap()));
    for id in 0..3 {
        writeln!(stdin, "{{\"id\":{id},\"sql\":\"SELECT 1\"}}").unwrap();
        let answer = receive.recv_timeout(hang_timeout()).expect("no answer while the input is open");
        assert!(answer.starts_with(&format!("{{\"id\":{id},")), "{answer}");
    }
    drop(stdin);
    assert!(child.wait().unwrap().success());
}

#[test]
fn rejects_invalid_arguments_before_reading() {
    let place = TestDir::new();
    place.write_file("in.jsonl", "{\"sql\":\"SELECT 1\"}");
    for (arguments, message) in [
        (&["check", "--batch", "missing.jsonl"][..], "there is no file `missing.jsonl`"),
        (&["check", "--batch", "in.jsonl", "--root", "nowhere"], "`nowhere` is not a folder"),
        (&["check", "--batch", "in.jsonl", "--format", "sarif"], "cannot be used with"),
        (&["check", "--jobs", "2", "--sql", "SELECT 1"], "cannot be used with"),
        (&["check", "--jobs", "2"], "--batch"),
        (&["check", "--batch", "in.jsonl", "--jobs", "0"], "0 is not in 1..=256"),
        (&["check", "--batch", "."], "is a folder"),
    ] {
        let ended = place.run(arguments);
        assert_eq!((ended.code, ended.stdout.as_str()), (2, ""), "{arguments:?}");
        assert!(ended.stderr.contains(message), "{}", ended.stderr);
    }
}
