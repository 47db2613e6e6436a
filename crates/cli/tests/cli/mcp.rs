//! `querymend mcp`, spoken to by the protocol's own Python client, as other people's programs do.

use std::process::{Command, Stdio};
use std::sync::OnceLock;

use serde_json::{Value, json};

use crate::TestDir;
use crate::server::ScriptedModelServer;

const SCRIPTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts");

/// The Python that has the client; nothing where such tests are not wanted.
fn python() -> Option<&'static str> {
    static PYTHON: OnceLock<Option<String>> = OnceLock::new();
    PYTHON.get_or_init(install_python_client).as_deref()
}

fn install_python_client() -> Option<String> {
    if std::env::var("QUERYMEND_TEST_CLIENTS").is_ok_and(|wanted| wanted == "none") {
        return None;
    }
    let fetched = Command::new(format!("{SCRIPTS}/mcp_client.sh")).arg("fetch").stdin(Stdio::null()).output().unwrap();
    let said = String::from_utf8_lossy(&fetched.stderr);
    assert!(fetched.status.success(), "no MCP client: {said}QUERYMEND_TEST_CLIENTS=none leaves these tests out");
    Some(String::from_utf8(fetched.stdout).unwrap().trim().to_owned())
}

/// What the Python client saw, or nothing where there is none.
fn run_python_client(place: &TestDir, mode: &str, arguments: &[&str]) -> Option<Value> {
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
fn python_client_works_without_a_model() {
    let place = TestDir::with_demo();
    place.disable_model_discovery("");
    for (mode, version) in [("legacy", "2025-11-25"), ("auto", "2026-07-28")] {
        let Some(seen) = run_python_client(&place, mode, &["mcp", "--db", "shop.db"]) else { return };
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
fn python_client_works_with_a_model() {
    let place = TestDir::with_demo();
    let model = ScriptedModelServer::with_replies(&["SELECT name FROM products ORDER BY name LIMIT 3"]);
    let Some(seen) = run_python_client(&place, "auto", &["mcp", "--db", "shop.db", "--model", &model.model]) else {
        return;
    };
    let text = seen["ask"]["text"].as_str().unwrap();
    assert!(seen["ask"]["failed"] == false && text.ends_with("3 rows\n"), "{text}");
    let stages = seen["ask"]["stages"].as_array().unwrap();
    assert!(stages.contains(&json!("generation")) && stages.contains(&json!("completed")), "{stages:?}");
}

fn lines(messages: &[Value]) -> Vec<u8> {
    messages.iter().map(|message| format!("{message}\n")).collect::<String>().into_bytes()
}

fn initialize_messages() -> [Value; 2] {
    let client = json!({ "name": "test", "version": "1" });
    let params = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client });
    [
        json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params }),
        json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
    ]
}

#[test]
fn stdout_has_only_protocol_and_eof_ends_the_server() {
    let place = TestDir::with_demo();
    place.disable_model_discovery("");
    let run = json!({ "name": "run_sql", "arguments": { "sql": "SELECT count(*) FROM orders" } });
    let call = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": run });
    let ended = place.run_with_stdin(
        &["--verbose", "mcp", "--db", "shop.db"],
        &lines(&[&initialize_messages()[..], &[call]].concat()),
    );
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let answers = ended.json_lines();
    assert_eq!(answers.len(), 2, "{}", ended.stdout);
    assert_eq!(answers[1]["result"]["structuredContent"]["row_count"], 1);
    assert!(ended.stderr.contains("questions cannot be answered: no model is configured"), "{}", ended.stderr);
}

#[test]
fn missing_model_hint_fits_this_command() {
    let place = TestDir::with_demo();
    place.disable_model_discovery("");
    let ask = json!({ "name": "ask", "arguments": { "question": "How many orders are there?" } });
    let call = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": ask });
    let ended =
        place.run_with_stdin(&["mcp", "--db", "shop.db"], &lines(&[&initialize_messages()[..], &[call]].concat()));
    let said = ended.json_lines()[1].to_string();
    assert!(said.contains("no model is configured") && said.contains("name one with --model"), "{said}");
    // A key is looked for, and a server; there is no --yes.
    assert!(said.contains("OPENAI_API_KEY") && !said.contains("--yes"), "{said}");
    assert!(place.run(&["mcp", "--db", "shop.db", "--yes"]).stderr.contains("unexpected argument"));
}

#[test]
fn malformed_messages_are_harmless() {
    let place = TestDir::with_demo();
    place.disable_model_discovery("");
    let mut bytes = lines(&initialize_messages());
    bytes.extend(b"nonsense\n\n{\"jsonrpc\": \"2.0\", \"id\": 7}\n\xff\xfe\n");
    let ping = json!({ "jsonrpc": "2.0", "id": 9, "method": "ping" });
    bytes.extend(lines(&[ping]));
    let ended = place.run_with_stdin(&["mcp", "--db", "shop.db"], &bytes);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    assert!(
        ended.json_lines().iter().any(|answer| answer["id"] == 9 && answer.get("result").is_some()),
        "{}",
        ended.stdout
    );
    // Somebody who types a question finds out what this is for.
    let ended = place
        .run_with_stdin(&["mcp", "--db", "shop.db"], &lines(&[json!({ "jsonrpc": "2.0", "id": 1, "method": "x" })]));
    assert!(ended.code == 0 || ended.stderr.contains("this command is for agents"), "{} {}", ended.code, ended.stderr);
    assert_eq!(place.run_with_stdin(&["mcp", "--db", "shop.db"], b"").code, 0);
    let ended = place.run(&["mcp"]);
    assert!(ended.code == 2 && ended.stderr.contains("no database is configured"), "{}", ended.stderr);
}
