//! `querymend mcp`, spoken to by the protocol's own Python client, as other people's programs do.

use std::process::{Command, Stdio};
use std::sync::OnceLock;

use serde_json::{Value, json};

use crate::Place;
use crate::server::Server;

const SCRIPTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts");

/// The Python that has the client; nothing where such tests are not wanted.
fn python() -> Option<&'static str> {
    static PYTHON: OnceLock<Option<String>> = OnceLock::new();
    PYTHON.get_or_init(fetch).as_deref()
}

fn fetch() -> Option<String> {
    if std::env::var("QUERYMEND_TEST_CLIENTS").is_ok_and(|wanted| wanted == "none") {
        return None;
    }
    let fetched = Command::new(format!("{SCRIPTS}/mcp_client.sh")).arg("fetch").stdin(Stdio::null()).output().unwrap();
    let said = String::from_utf8_lossy(&fetched.stderr);
    assert!(fetched.status.success(), "no MCP client: {said}QUERYMEND_TEST_CLIENTS=none leaves these tests out");
    Some(String::from_utf8(fetched.stdout).unwrap().trim().to_owned())
}

/// What the Python client saw, or nothing where there is none.
fn seen(place: &Place, mode: &str, arguments: &[&str]) -> Option<Value> {
    let plain = place.command(arguments);
    let mut client = Command::new(python()?);
    client.arg(format!("{SCRIPTS}/mcp_client.py")).arg(mode).arg(plain.get_program()).args(arguments);
    client.current_dir(place.folder.path()).stdin(Stdio::null());
    for (name, value) in plain.get_envs() {
        match value {
            Some(value) => client.env(name, value),
            None => client.env_remove(name),
        };
    }
    let output = client.output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && !err.contains("panicked"), "{out}{err}");
    Some(serde_json::from_str(&out).unwrap())
}

#[test]
fn a01_l09_a_real_client_and_no_model() {
    let place = Place::with_demo();
    place.alone("");
    for (mode, version) in [("legacy", "2025-11-25"), ("auto", "2026-07-28")] {
        let Some(seen) = seen(&place, mode, &["mcp", "--db", "shop.db"]) else { return };
        assert_eq!((&seen["version"], &seen["server"]), (&json!(version), &json!("querymend")), "{seen}");
        // All else works without a model, and only what needs one says what is missing.
        let text = seen["ask"]["text"].as_str().unwrap();
        assert!(
            seen["ask"]["failed"] == true && text.starts_with("model_unavailable: no model is configured"),
            "{text}"
        );
        assert!(text.contains("hint: name one with --model"), "{text}");
    }
}

#[test]
fn l09_a_real_client_and_a_model() {
    let place = Place::with_demo();
    let model = Server::saying(&["SELECT name FROM products ORDER BY name LIMIT 3"]);
    let Some(seen) = seen(&place, "auto", &["mcp", "--db", "shop.db", "--model", &model.model]) else { return };
    let text = seen["ask"]["text"].as_str().unwrap();
    assert!(seen["ask"]["failed"] == false && text.ends_with("3 rows\n"), "{text}");
    let stages = seen["ask"]["stages"].as_array().unwrap();
    assert!(stages.contains(&json!("generation")) && stages.contains(&json!("completed")), "{stages:?}");
}

fn lines(messages: &[Value]) -> Vec<u8> {
    messages.iter().map(|message| format!("{message}\n")).collect::<String>().into_bytes()
}

fn greeting() -> [Value; 2] {
    let client = json!({ "name": "test", "version": "1" });
    let params = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client });
    [
        json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params }),
        json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
    ]
}

#[test]
fn stdout_has_the_protocol_alone_and_the_end_of_stdin_is_the_end() {
    let place = Place::with_demo();
    place.alone("");
    let run = json!({ "name": "run_sql", "arguments": { "sql": "SELECT count(*) FROM orders" } });
    let call = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": run });
    let ended = place.run_with(&["--verbose", "mcp", "--db", "shop.db"], &lines(&[&greeting()[..], &[call]].concat()));
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let answers = ended.answers();
    assert_eq!(answers.len(), 2, "{}", ended.stdout);
    assert_eq!(answers[1]["result"]["structuredContent"]["row_count"], 1);
    assert!(ended.stderr.contains("questions cannot be answered: no model is configured"), "{}", ended.stderr);
}

#[test]
fn what_is_said_about_a_missing_model_is_true_of_this_command() {
    let place = Place::with_demo();
    place.alone("");
    let ask = json!({ "name": "ask", "arguments": { "question": "How many orders are there?" } });
    let call = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": ask });
    let ended = place.run_with(&["mcp", "--db", "shop.db"], &lines(&[&greeting()[..], &[call]].concat()));
    let said = ended.answers()[1].to_string();
    assert!(said.contains("no model is configured") && said.contains("name one with --model"), "{said}");
    // A key is looked for, and a server; there is no --yes.
    assert!(said.contains("OPENAI_API_KEY") && !said.contains("--yes"), "{said}");
    assert!(place.run(&["mcp", "--db", "shop.db", "--yes"]).stderr.contains("unexpected argument"));
}

#[test]
fn what_is_no_message_harms_nobody() {
    let place = Place::with_demo();
    place.alone("");
    let mut bytes = lines(&greeting());
    bytes.extend(b"nonsense\n\n{\"jsonrpc\": \"2.0\", \"id\": 7}\n\xff\xfe\n");
    let ping = json!({ "jsonrpc": "2.0", "id": 9, "method": "ping" });
    bytes.extend(lines(&[ping]));
    let ended = place.run_with(&["mcp", "--db", "shop.db"], &bytes);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    assert!(
        ended.answers().iter().any(|answer| answer["id"] == 9 && answer.get("result").is_some()),
        "{}",
        ended.stdout
    );
    // Somebody who types a question finds out what this is for.
    let ended =
        place.run_with(&["mcp", "--db", "shop.db"], &lines(&[json!({ "jsonrpc": "2.0", "id": 1, "method": "x" })]));
    assert!(ended.code == 0 || ended.stderr.contains("this command is for agents"), "{} {}", ended.code, ended.stderr);
    assert_eq!(place.run_with(&["mcp", "--db", "shop.db"], b"").code, 0);
    let ended = place.run(&["mcp"]);
    assert!(ended.code == 2 && ended.stderr.contains("no database is named"), "{}", ended.stderr);
}
