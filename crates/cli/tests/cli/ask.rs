use std::process::Stdio;

use querymend_testing::wait_until;

use crate::server::ScriptedModelServer;
#[cfg(unix)]
use crate::signals;
use crate::{CommandOutput, TestDir};

const ELECTRONICS: &str = "Show the id and the price of every product in the category Electronics.";

fn ask(place: &TestDir, server: &ScriptedModelServer, question: &str, more: &[&str]) -> CommandOutput {
    place.run(&[&["ask", "--db", "shop.db", "--model", &server.model, question], more].concat())
}

#[test]
fn writes_rows_to_stdout_and_notes_to_stderr() {
    let place = TestDir::with_demo();
    let server = ScriptedModelServer::with_replies(&["SELECT count(*) AS n FROM customers"]);
    let ended = ask(&place, &server, "How many customers are there?", &["--format", "csv"]);
    assert_eq!((ended.code, ended.stdout.as_str()), (0, "n\n60\n"), "{}", ended.stderr);
    assert_eq!(ended.stderr, "1 row\nSQL: SELECT count(*) AS n FROM customers\nconfidence: high\n");
    let ended = ask(&place, &server, "How many customers are there?", &["-q"]);
    assert_eq!((ended.code, ended.stderr.as_str()), (0, ""));
    assert!(ended.stdout.starts_with('┌'), "{}", ended.stdout);
    // The request holds the tables, the question and what is known besides.
    let ended = ask(&place, &server, "How many big orders are there?", &["--evidence", "big means over 100"]);
    assert_eq!(ended.code, 0);
    let request = server.requests().pop().unwrap().to_string();
    for words in ["CREATE TABLE", "How many big orders are there?", "big means over 100"] {
        assert!(request.contains(words), "{request}");
    }
}

#[test]
fn repaired_failures_are_not_shown() {
    let place = TestDir::with_demo();
    let server = ScriptedModelServer::with_replies(&["SELECT id, price FROM products WHERE category = 'Electronics'"]);
    let ended = ask(&place, &server, ELECTRONICS, &["--format", "csv"]);
    assert_eq!((ended.code, ended.stdout.lines().next()), (0, Some("product_id,price")), "{}", ended.stderr);
    let lines: Vec<&str> = ended.stderr.lines().collect();
    assert_eq!(lines[2], "fixed: 'id' → 'product_id'", "{}", ended.stderr);
    assert!(lines[3].starts_with("confidence: ") && lines.len() == 4, "{}", ended.stderr);
    for word in ["error", "no such column", "unknown-column", "attempt"] {
        assert!(!ended.stderr.contains(word), "{}", ended.stderr);
    }
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn explain_shows_every_attempt() {
    let place = TestDir::with_demo();
    let server = ScriptedModelServer::with_replies(&[
        "SELECT p.flavour FROM products p",
        "SELECT id, price FROM products WHERE category = 'Electronics'",
    ]);
    let ended = ask(&place, &server, ELECTRONICS, &["--explain", "--format", "csv"]);
    assert_eq!((ended.code, ended.stdout.lines().next()), (0, Some("product_id,price")), "{}", ended.stderr);
    for words in [
        "attempt 1\n",
        "SELECT p.flavour FROM products p",
        "error[unknown-column]",
        "  tables: products\n",
        "  CTEs: none\n",
        "  aliases: p = products\n",
        "  allowed tables: all\n",
        "attempt 2, strategy ",
        "  feedback (unknown-column): ",
        "  changed: 'id' → 'product_id'\n",
        "ended: answered\n",
    ] {
        assert!(ended.stderr.contains(words), "{words:?} in {}", ended.stderr);
    }
    assert_eq!(server.requests().len(), 2);
    // The log says the same, step by step.
    let server = ScriptedModelServer::with_replies(&["SELECT id, price FROM products WHERE category = 'Electronics'"]);
    let ended = ask(&place, &server, ELECTRONICS, &["-v"]);
    assert!(ended.stderr.contains("repaired without the model") && ended.stderr.contains("'id' → 'product_id'"));
}

#[test]
fn json_is_the_whole_answer() {
    let place = TestDir::with_demo();
    let server = ScriptedModelServer::with_replies(&["SELECT id FROM products LIMIT 1", "It is product 1."]);
    let ended = ask(&place, &server, ELECTRONICS, &["--format", "json", "--summary"]);
    let answer = ended.json();
    assert_eq!((ended.code, &answer["status"]), (0, &serde_json::json!("answered")), "{}", ended.stderr);
    assert_eq!(answer["attempts"][0]["sql"], "SELECT id FROM products LIMIT 1");
    assert_eq!(answer["sql"], "SELECT product_id FROM products LIMIT 1");
    assert_eq!(answer["text"], "It is product 1.");
    assert_eq!(answer["metadata"]["llm_calls"], 1);
}

#[test]
fn option_and_file_disable_self_correction() {
    let place = TestDir::with_demo();
    let server = ScriptedModelServer::with_replies(&["SELECT id FROM products"]);
    let ended = ask(&place, &server, ELECTRONICS, &["--no-correction"]);
    assert_eq!((ended.code, ended.stdout.as_str()), (1, ""), "{}", ended.stderr);
    assert!(ended.stderr.contains("hint: enable self-correction"), "{}", ended.stderr);
    assert_eq!(server.requests().len(), 1);
    place.write_file(
        "querymend.yaml",
        format!("model: {}\ndatabase: shop.db\nself_correction: {{enabled: false}}\n", server.model),
    );
    assert_eq!(place.run(&["ask", ELECTRONICS]).code, 1);
    place.write_file("other.yaml", format!("model: {}\ndatabase: shop.db\n", server.model));
    assert_eq!(place.run(&["ask", "--config", "other.yaml", ELECTRONICS]).code, 0);
    place.write_file("querymend.yaml", "self_correction: {max_attempts: 11}\n");
    let ended = place.run(&["ask", ELECTRONICS]);
    assert_eq!(ended.code, 2);
    assert!(ended.stderr.contains("must be 1 to 10") && ended.stderr.contains("hint: "), "{}", ended.stderr);
}

#[test]
fn gives_up_on_unrepairable_sql() {
    let place = TestDir::with_demo();
    let server = ScriptedModelServer::with_replies(&["SELECT flavour FROM products"]);
    let ended = ask(&place, &server, "Which products have a flavour?", &["--no-fallback"]);
    assert_eq!((ended.code, ended.stdout.as_str()), (1, ""), "{}", ended.stderr);
    assert!(ended.stderr.contains("error: no answer after 2 attempts: "), "{}", ended.stderr);
    assert!(ended.stderr.contains("\nhint: ") && ended.stderr.contains("`querymend trace "), "{}", ended.stderr);
}

#[test]
fn withholds_writes() {
    let place = TestDir::with_demo();
    let server = ScriptedModelServer::with_replies(&["DROP TABLE products"]);
    let ended = ask(&place, &server, "How many products are there?", &["--no-fallback", "--explain"]);
    assert_eq!((ended.code, ended.stdout.as_str()), (1, ""), "{}", ended.stderr);
    assert!(ended.stderr.contains("held back:\n    DROP TABLE products\n"), "{}", ended.stderr);
    assert!(ended.stderr.contains("error[writes-data]"), "{}", ended.stderr);
    let counted = place.run(&["run", "--db", "shop.db", "--format", "csv", "--sql", "SELECT count(*) n FROM products"]);
    assert_eq!(counted.stdout, "n\n40\n");
}

#[test]
fn answers_a_remark_without_sql() {
    let place = TestDir::with_demo();
    let server = ScriptedModelServer::with_replies(&["You are welcome!\u{1b}[2J"]);
    let ended = ask(&place, &server, "thank you", &[]);
    assert_eq!((ended.code, ended.stdout.as_str()), (0, "You are welcome!\\u{1b}[2J\n"), "{}", ended.stderr);
}

#[test]
fn accepts_server_parts_and_checks_the_dialect() {
    let place = TestDir::with_demo();
    let server = ScriptedModelServer::with_replies(&["SELECT 1"]);
    let model = ["--model", server.model.as_str(), "How many?"];
    let said = |arguments: &[&str]| {
        let ended = place.run(&[&["ask"], arguments, &model[..]].concat());
        assert_eq!((ended.code, ended.stdout.as_str()), (2, ""), "{}", ended.stderr);
        ended.stderr
    };
    // A port on which nobody listens.
    let all = ["--db-host", "127.0.0.1", "--db-port", "1", "--db-user", "me"];
    let named = ["--dialect", "presto", "--catalog", "hive", "--schema", "my shop"];
    let stderr = said(&[&named[..], &all[..]].concat());
    assert!(stderr.contains("presto://me@127.0.0.1:1/hive/my shop cannot be reached"), "{stderr}");
    let stderr = said(&[&["--dialect", "datafusion"], &all[..]].concat());
    assert!(
        stderr.contains("there is no engine for `datafusion://` addresses") && stderr.contains("hint: "),
        "{stderr}"
    );
    assert!(said(&all).contains("--dialect"));
    assert!(said(&["--dialect", "sqlite", "--db-host", "h"]).contains("SQLite has no server"));
    assert!(said(&["--db", "shop.db", "--dialect", "sparksql"]).contains("is sqlite, not spark"));
    assert!(said(&["--db", "shop.db", "--dialect", "cobol"]).contains("there is no dialect `cobol`"));
    assert!(said(&["--db", "shop.db", "--prompt", "rude"]).contains("there are standard, careful"));
    assert_eq!(server.requests().len(), 0);
    let ended = place.run(&[&["ask", "--db", "shop.db", "--dialect", "sqlite"], &model[..]].concat());
    assert_eq!(ended.code, 0, "{}", ended.stderr);
}

#[test]
fn explains_how_to_configure_model_and_database() {
    let place = TestDir::with_demo();
    place.disable_model_discovery("");
    let ended = place.run(&["ask", "--db", "shop.db", "How many?"]);
    assert_eq!((ended.code, ended.stdout.as_str()), (2, ""));
    for way in [
        "error: no model is configured",
        "hint: ",
        "ollama:",
        "http://",
        "QUERYMEND_MODEL",
        "OPENAI_API_KEY",
        "model pull",
    ] {
        assert!(ended.stderr.contains(way), "{}", ended.stderr);
    }
    let server = ScriptedModelServer::with_replies(&["SELECT count(*) AS n FROM orders"]);
    let ended = place.run(&["ask", "--model", &server.model, "How many?"]);
    assert_eq!(ended.code, 2);
    assert!(ended.stderr.contains("no database is configured") && ended.stderr.contains("QUERYMEND_DB"));
    let mut command = place.command(&["ask", "-q", "--format", "csv", "How many orders are there?"]);
    command.env("QUERYMEND_MODEL", &server.model).env("QUERYMEND_DB", "shop.db");
    assert!(String::from_utf8(command.output().unwrap().stdout).unwrap().starts_with("n\n"));
    // The question may come from a pipe.
    let ended = place
        .run_with_stdin(&["ask", "--db", "shop.db", "--model", &server.model], "wie viele Bestellungen?".as_bytes());
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let ended = ask(&place, &server, " ", &[]);
    assert_eq!(ended.code, 2);
    assert!(ended.stderr.contains("the question is empty"), "{}", ended.stderr);
}

#[test]
fn reports_an_unreachable_model() {
    let place = TestDir::with_demo();
    // Nobody is given this port: one that was just free may be somebody else's by now.
    let address = "http://127.0.0.1:1/v1#gone";
    let ended = place.run(&["ask", "--db", "shop.db", "--model", address, "How many orders are there?"]);
    assert_eq!((ended.code, ended.stdout.as_str()), (2, ""), "{}", ended.stderr);
    assert!(ended.stderr.starts_with("error: http://127.0.0.1:") && ended.stderr.contains("cannot be reached"));
    assert!(ended.stderr.contains("\nhint: check that the server is running"), "{}", ended.stderr);
}

#[cfg(unix)]
#[test]
fn ctrl_c_stops_a_hanging_model() {
    let place = TestDir::with_demo();
    let server = ScriptedModelServer::never_replying();
    let arguments =
        ["ask", "--db", "shop.db", "--format", "json", "--model", &server.model, "How many orders are there?"];
    let child = place.command(&arguments).stdin(Stdio::null()).spawn().unwrap();
    wait_until("the model is asked", || !server.requests().is_empty());
    signals::press_ctrl_c(&child);
    // A model that does not answer in time would end it with another code.
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(130), &b""[..]));
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "stopped\n");
}

#[test]
fn schema_file_instead_of_a_database_drafts_sql() {
    let place = TestDir::with_schema();
    let server = ScriptedModelServer::with_replies(&["SELECT nme FROM products"]);
    let model = server.model.as_str();
    let question = "Which products are there?";
    let ended = place.run(&["ask", "--schema", "schema.sql", "--model", model, question]);
    assert_eq!((ended.code, ended.stdout.as_str()), (0, "SELECT name FROM products\n"), "{}", ended.stderr);
    assert!(ended.stderr.starts_with("not run: there is no database"), "{}", ended.stderr);
    let ended = place.run(&["ask", "--schema", "schema.sql", "--model", model, "--format", "json", question]);
    let answer: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!((&answer["status"], &answer["stop"]), (&"drafted".into(), &"not_run".into()), "{answer}");
    let ended = place.run_with_stdin(&["chat", "--schema", "schema.sql", "--model", model], question.as_bytes());
    assert_eq!((ended.code, ended.stdout.as_str()), (0, "SELECT name FROM products\n"), "{}", ended.stderr);
    // What needs rows says so.
    for (arguments, words) in [
        (&["run", "--schema", "schema.sql", "--sql", "SELECT 1"][..], "a schema file has no rows"),
        (&["ask", "--schema", "absent.sql", "--model", model, question][..], "absent.sql"),
        (&["ask", "--model", model, question][..], "no database is configured"),
    ] {
        let ended = place.run(arguments);
        assert!(ended.code == 2 && ended.stderr.contains(words), "{arguments:?}: {}", ended.stderr);
        assert!(ended.stderr.contains("hint: "), "{arguments:?}: {}", ended.stderr);
    }
}

#[test]
fn ambiguous_questions_are_assumed_or_asked_back() {
    let place = TestDir::with_demo();
    let ambiguous = ["SELECT name FROM customers, products"];
    let assumed = "assumed customers.name; it could also be products.name";
    for (yaml, more, code, words) in [
        ("", &[][..], 0, assumed),
        ("", &["--assume"], 0, assumed),
        ("self_correction: {ask_user: true}\n", &["--assume"], 0, assumed),
        ("self_correction: {ask_user: true}\n", &[], 1, "Which name: customers.name or products.name?"),
        ("self_correction: {ask_user: true}\n", &[], 1, "hint: --assume uses the first"),
    ] {
        place.write_file("querymend.yaml", yaml);
        let server = ScriptedModelServer::with_replies(&ambiguous);
        let ended = ask(&place, &server, "List all the names", more);
        assert_eq!(ended.code, code, "{}", ended.stderr);
        assert!(ended.stderr.contains(words), "{}", ended.stderr);
    }
    // Nothing proves which date is meant.
    for (more, code) in [(&["--assume"][..], 0), (&[], 1)] {
        place.write_file("querymend.yaml", "self_correction: {max_attempts: 1, fallback: false}\n");
        let server = ScriptedModelServer::with_replies(&["SELECT date FROM orders"]);
        let ended = ask(&place, &server, "List all the dates", more);
        assert_eq!(ended.code, code, "{}", ended.stderr);
        let words = "confidence: low: assumed orders.ordered_on; it could also be orders.shipped_on";
        assert_eq!(ended.stderr.contains(words), code == 0, "{}", ended.stderr);
    }
}
