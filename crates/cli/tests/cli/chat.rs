use std::io::Write;
use std::process::Stdio;

use querymend_testing::wait_until;

use crate::server::ScriptedModelServer;
#[cfg(unix)]
use crate::signals;
use crate::{CommandOutput, TestDir};

fn chat(place: &TestDir, server: &ScriptedModelServer, lines: &str) -> CommandOutput {
    place.run_with_stdin(&["chat", "--db", "shop.db", "--format", "csv", "--model", &server.model], lines.as_bytes())
}

#[test]
fn questions_see_earlier_ones_until_reset() {
    let place = TestDir::with_demo();
    let server = ScriptedModelServer::with_replies(&["SELECT count(*) AS n FROM customers"]);
    // What was captured on the way would be shown again as an example.
    place.write_file("querymend.yaml", "memory: {enabled: false}\n");
    let ended = chat(
        &place,
        &server,
        "How many customers are there?\n\nHow many of them \\\n are German?\nreset\nHow many now?\nexit\nnever\n",
    );
    assert_eq!((ended.code, ended.stdout.as_str()), (0, "n\n60\nn\n60\nn\n60\n"), "{}", ended.stderr);
    let heard: Vec<String> = server.requests().iter().map(ToString::to_string).collect();
    assert_eq!(heard.len(), 3);
    assert!(
        heard[1].contains("How many customers are there?") && heard[1].contains("SELECT count(*) AS n FROM customers")
    );
    assert!(heard[1].contains("are German?"), "{}", heard[1]);
    assert!(!heard[2].contains("How many customers are there?"), "{}", heard[2]);
    // No prompt where nobody is there to be prompted.
    assert!(!ended.stderr.contains("? ") && !ended.stdout.contains("\u{1b}"), "{}", ended.stderr);
}

#[test]
fn commands_show_sql_schema_and_trace() {
    let place = TestDir::with_demo();
    let server = ScriptedModelServer::with_replies(&["SELECT id FROM products WHERE price > 1000"]);
    let lines = "/sql\nWhich products cost more than 1000?\n/sql\n/explain\n/schema reviews\n/schema nowhere\n/trace last\n/nonsense\n/help\nquit\n";
    let ended = chat(&place, &server, lines);
    assert_eq!(ended.code, 2, "{}", ended.stderr);
    for words in
        ["error: no question was answered yet", "there is no table `nowhere`", "no command `/nonsense`", "/unsave"]
    {
        assert!(ended.stderr.contains(words), "{words} in {}", ended.stderr);
    }
    assert!(
        ended.stdout.contains("\nSELECT product_id FROM products WHERE price > 1000\nquestion: "),
        "{}",
        ended.stdout
    );
    assert_eq!(ended.stdout.matches("  changed: 'id' → 'product_id'\n").count(), 2);
    assert!(ended.stdout.contains("reviews\n  review_id "), "{}", ended.stdout);
    // Words that only begin like a command are a question.
    let before = server.requests().len();
    chat(&place, &server, "exit codes of which orders\n");
    assert_eq!(server.requests().len(), before + 1);
}

#[test]
fn saves_pairs_once_and_removes_them() {
    let place = TestDir::with_demo();
    let server = ScriptedModelServer::with_replies(&["SELECT count(*) AS n FROM orders"]);
    let kept = || place.run(&["memory", "list", "--format", "json"]).json();
    let ended = chat(&place, &server, "/save\nHow many orders are there?\n/save\n/save\n/quit\n");
    assert_eq!(ended.code, 2);
    assert!(ended.stderr.contains("saved: How many orders are there?\nthis is saved already\n"), "{}", ended.stderr);
    let all = kept();
    assert_eq!(all.as_array().unwrap().len(), 1, "{all}");
    assert_eq!((&all[0]["sql"], &all[0]["standing"]), (&"SELECT count(*) AS n FROM orders".into(), &"verified".into()));
    let ended = chat(&place, &server, "/unsave\nHow many orders are there?\n/save\n/unsave\n");
    assert!(
        ended.stderr.contains("nothing was saved in this chat") && ended.stderr.contains("no longer saved: How many")
    );
    assert_eq!(kept().as_array().unwrap().len(), 0);
    let off = place.run_with_stdin(
        &["chat", "--db", "shop.db", "--no-memory", "--model", &server.model],
        b"How many orders are there?\n/save\n",
    );
    assert!(off.stderr.contains("memory is disabled"), "{}", off.stderr);
}

#[test]
fn failed_question_keeps_the_session() {
    let place = TestDir::with_demo();
    let server = ScriptedModelServer::with_replies(&[
        "SELECT flavour FROM products",
        "SELECT flavour FROM products",
        "SELECT 1 AS one",
    ]);
    let ended = place.run_with_stdin(
        &["chat", "--db", "shop.db", "--no-fallback", "--format", "csv", "--model", &server.model],
        b"Which products have a flavour?\nHow many orders?\n",
    );
    assert_eq!((ended.code, ended.stdout.as_str()), (1, "one\n1\n"), "{}", ended.stderr);
}

#[cfg(unix)]
#[test]
fn ctrl_c_ends_a_piped_chat() {
    let place = TestDir::with_demo();
    let server =
        ScriptedModelServer::with_handler(std::sync::Arc::new(|n, _| (n > 0).then(|| "SELECT 1 AS one".to_string())));
    let arguments = ["chat", "--db", "shop.db", "--format", "csv", "--model", &server.model];
    let mut child = place.command(&arguments).stdin(Stdio::piped()).spawn().unwrap();
    let mut pipe = child.stdin.take().unwrap();
    pipe.write_all(b"How many orders are there?\n").unwrap();
    wait_until("the model is asked", || !server.requests().is_empty());
    signals::press_ctrl_c(&child);
    pipe.write_all(b"How many products are there?\n").ok();
    drop(pipe);
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "");
    assert!(String::from_utf8(output.stderr).unwrap().starts_with("stopped\n"));
    assert_eq!(output.status.code(), Some(130));
}

#[test]
fn ambiguous_questions_are_answered_by_number() {
    let place = TestDir::with_demo();
    for (yaml, lines, code, expected) in [
        ("self_correction: {ask_user: true}\n", "List all the names\n2\n/sql\n", 0, "SELECT products.name"),
        ("self_correction: {ask_user: true}\n", "List all the names\n\n/sql\n", 0, "SELECT customers.name"),
        ("self_correction: {ask_user: true}\n", "List all the names\n7\n1\n/sql\n", 2, "SELECT customers.name"),
        ("self_correction: {ask_user: true}\n", "List all the names\n", 1, ""),
        // A pipe is nobody to be asked.
        ("", "List all the names\n/sql\n", 0, "SELECT customers.name"),
    ] {
        let server = ScriptedModelServer::with_replies(&["SELECT name FROM customers, products"]);
        place.write_file("querymend.yaml", format!("memory: {{enabled: false}}\n{yaml}"));
        let ended = chat(&place, &server, lines);
        assert_eq!(ended.code, code, "{lines:?}: {}", ended.stderr);
        assert!(ended.stdout.contains(expected), "{lines:?}: {}", ended.stdout);
        let asked = ended.stderr.contains("Which name: customers.name or products.name?\n  1  customers.name");
        assert_eq!(asked, !yaml.is_empty(), "{}", ended.stderr);
        assert_eq!(ended.stderr.contains("type a number from 1 to 2"), lines.contains('7'), "{}", ended.stderr);
        assert_eq!(server.requests().len(), 1, "the choice needs no model");
    }
}
