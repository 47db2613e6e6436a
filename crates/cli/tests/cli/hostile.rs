//! Queries, policies and files that are meant to do harm, or do it by mistake.

use std::fs;
use std::time::Instant;

use querymend_testing::hang_timeout;
use serde_json::{Value, json};

use crate::TestDir;
use crate::server::ScriptedModelServer;
#[cfg(unix)]
use crate::signals;

/// Compares each of eight million places with seven million bytes, in one instruction.
const LONG: &str = "SELECT instr(zeroblob(15000000) || x'01', zeroblob(7000000) || x'02')";

#[test]
fn timeout_ends_one_long_instruction() {
    let place = TestDir::with_demo();
    let begun = Instant::now();
    let ended = place.run(&["run", "--db", "shop.db", "--timeout", "0.3", "--sql", LONG]);
    assert_eq!(ended.code, 1, "{}", ended.stderr);
    assert!(ended.stderr.starts_with("error[timed-out]"), "{}", ended.stderr);
    // The thread that is left behind is not waited for: the instruction takes an hour.
    assert!(begun.elapsed() < hang_timeout(), "{:?}", begun.elapsed());
}

#[cfg(unix)]
#[test]
fn ctrl_c_ends_one_long_instruction() {
    let place = TestDir::with_demo();
    let arguments = ["run", "-q", "--db", "shop.db", "--timeout", "36000", "--sql", LONG];
    let mut child = place.command(&arguments).spawn().unwrap();
    signals::wait_until_computing(&child);
    signals::press_ctrl_c(&child);
    assert_eq!(signals::exit_code(&mut child), Some(130));
}

#[test]
fn memory_of_a_query_is_bounded_and_configurable() {
    let place = TestDir::with_demo();
    place.write_file("querymend.yaml", "limits: {memory: 33554432}\n");
    // Three times as much as the limit. SQLite reports an aggregate that became too large only after its last row.
    let numbers = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100000)";
    let sql = format!("{numbers} SELECT length(json_group_array(i || hex(zeroblob(500)))) FROM n");
    let ended = place.run(&["run", "--db", "shop.db", "--sql", &sql]);
    assert_eq!(ended.code, 1, "{}", ended.stdout);
    assert!(ended.stderr.contains("the query needed more than 32 MiB of memory"), "{}", ended.stderr);
    let wide: Vec<String> = (0..50).map(|i| format!("zeroblob({}) || x'01'", 9_000_000 + i)).collect();
    let ended = place.run(&["run", "--db", "shop.db", "--sql", &format!("SELECT {}", wide.join(", "))]);
    assert!(ended.stderr.contains("the query needed more than 32 MiB of memory"), "{}", ended.stderr);
    assert!(ended.stderr.contains("hint: ask for less"), "{}", ended.stderr);
}

#[test]
fn configured_policy_applies_to_all_commands_and_merges() {
    let place = TestDir::with_demo();
    place.write_file("querymend.yaml", "policy: {deny_tables: [customers]}\n");
    place.write_file("more.yaml", "deny_tables: [reviews]\n");
    for command in ["run", "check", "fix"] {
        for (table, more, code) in [
            ("customers", &[][..], 1),
            ("reviews", &[], 0),
            ("reviews", &["--policy", "more.yaml"], 1),
            ("customers", &["--policy", "more.yaml"], 1),
            ("products", &["--policy", "more.yaml"], 0),
        ] {
            let sql = format!("SELECT count(*) FROM {table}");
            let ended = place.run(&[&[command, "--db", "shop.db", "--sql", &sql], more].concat());
            assert_eq!(ended.code, code, "{command} {table} {more:?}: {}", ended.stderr);
        }
    }
    let server = ScriptedModelServer::with_replies(&["SELECT name FROM customers"]);
    let asked = ["ask", "--db", "shop.db", "--no-fallback", "--policy", "more.yaml", "--model", &server.model];
    let ended = place.run(&[&asked[..], &["Who are the customers?"]].concat());
    assert_eq!((ended.code, ended.stdout.as_str()), (1, ""), "{}", ended.stderr);
    let heard = server.requests()[0].to_string();
    assert!(heard.contains("order_items") && !heard.contains("CREATE TABLE customers"), "{heard}");
    assert!(!heard.contains("CREATE TABLE reviews"), "{heard}");
}

#[test]
fn policy_entries_do_not_fail_silently() {
    let place = TestDir::with_demo();
    let run = |policy: &str| {
        place.write_file("house.yaml", policy);
        place.run(&["run", "--db", "shop.db", "--policy", "house.yaml", "--sql", "SELECT count(*) FROM customers"])
    };
    for policy in ["deny_tables: ['main.*']", "deny_tables: ['cust*']", "deny_tables: ['\"customers\" ']"] {
        assert_eq!(run(policy).code, 1, "{policy}");
    }
    let ended = run("deny_tables: ['cust%']");
    assert_eq!(ended.code, 2);
    assert!(ended.stderr.contains("`cust%` is not a valid pattern"), "{}", ended.stderr);
    let ended = run("deny_tables: [custumers]");
    assert_eq!(ended.code, 0);
    assert!(ended.stderr.starts_with("warning: `custumers` in deny_tables matches no table"), "{}", ended.stderr);
    for sql in ["SELECT sql FROM sqlite_master", "SELECT name FROM dbstat", "SELECT * FROM pragma_table_list"] {
        place.write_file("house.yaml", "deny_tables: [customers]");
        let ended = place.run(&["run", "--db", "shop.db", "--policy", "house.yaml", "--sql", sql]);
        assert_eq!((ended.code, ended.stdout.as_str()), (1, ""), "{sql}");
    }
}

#[test]
fn does_not_suggest_denied_tables() {
    let place = TestDir::with_demo();
    place.write_file("house.yaml", "deny_tables: [customers]\n");
    for sql in ["SELECT email FROM orders", "SELECT email FROM customer"] {
        for command in ["check", "fix"] {
            let ended = place.run(&[command, "--db", "shop.db", "--policy", "house.yaml", "--sql", sql]);
            assert_eq!(ended.code, 1, "{command} {sql}: {}", ended.stderr);
            let said = format!("{}{}", ended.stdout, ended.stderr);
            assert!(!said.contains("customers"), "{command} {sql}: {said}");
        }
    }
}

#[test]
fn batch_output_overwrites_no_other_file() {
    let place = TestDir::with_demo();
    let server = ScriptedModelServer::with_replies(&["SELECT count(*) FROM customers"]);
    let line = json!({ "id": 1, "db": "shop.db", "question": "How many customers are there?" }).to_string();
    place.write_file("questions.jsonl", &line);
    let batch = |out: &str| {
        place.run(&["ask", "--batch", "questions.jsonl", "--out", out, "--model", &server.model, "--root", "."])
    };
    for (name, text) in [("n.txt", "my notes"), ("a.json", "{\"a\": 1}"), ("questions.jsonl", line.as_str())] {
        place.write_file(name, text);
        assert_eq!(batch(name).code, 2, "{name}");
        assert_eq!(fs::read_to_string(place.path(name)).unwrap(), text);
    }
    // Half an answer of our own is taken away, and nothing else changes.
    place.write_file("out.jsonl", "{\"id\":7,\"status\":\"answered\"}\n{\"id\":8,\"sta");
    place.write_file("out.part", "mine");
    #[cfg(unix)]
    {
        use std::os::unix::fs::{PermissionsExt, symlink};
        fs::set_permissions(place.path("out.jsonl"), fs::Permissions::from_mode(0o640)).unwrap();
        symlink("out.jsonl", place.path("link.jsonl")).unwrap();
        assert_eq!(batch("link.jsonl").code, 0);
        assert!(fs::symlink_metadata(place.path("link.jsonl")).unwrap().is_symlink());
        assert_eq!(fs::metadata(place.path("out.jsonl")).unwrap().permissions().mode() & 0o777, 0o640);
    }
    #[cfg(not(unix))]
    assert_eq!(batch("out.jsonl").code, 0);
    let text = fs::read_to_string(place.path("out.jsonl")).unwrap();
    let ids: Vec<Value> = text.lines().map(|l| serde_json::from_str::<Value>(l).unwrap()["id"].clone()).collect();
    assert_eq!(ids, [json!(7), json!(1)]);
    assert_eq!(fs::read_to_string(place.path("out.part")).unwrap(), "mine");
}

#[test]
fn trace_does_not_copy_all_rows() {
    let place = TestDir::with_demo();
    let server = ScriptedModelServer::with_replies(&["SELECT name, hex(zeroblob(5000)) AS filler FROM products"]);
    let ended = place.run(&["ask", "--db", "shop.db", "--format", "csv", "--model", &server.model, "All products?"]);
    assert_eq!((ended.code, ended.stdout.lines().count()), (0, 41), "{}", ended.stderr);
    let events = place.run(&["trace", "last", "--format", "json"]).json();
    let answer = &events.as_array().unwrap().last().unwrap()["answer"];
    assert_eq!(answer["rows"]["rows"].as_array().unwrap().len(), 20);
    assert!(answer["rows"]["rows"][0][1].as_str().unwrap().len() < 210);
    assert!(answer["reasons"].to_string().contains("omits 20 rows"), "{}", answer["reasons"]);
}

#[cfg(unix)]
#[test]
fn reads_of_endless_devices_are_bounded() {
    let place = TestDir::with_demo();
    let server = ScriptedModelServer::with_replies(&["SELECT 1"]);
    let ask = |more: &[&str]| place.run(&[&["ask", "--db", "shop.db", "q"], more].concat());
    for more in [
        &["--config", "/dev/zero", "--model", &server.model][..],
        &["--policy", "/dev/zero", "--model", &server.model],
        &["--model", "replay:/dev/zero"],
    ] {
        assert_eq!(ask(more).code, 2, "{more:?}");
    }
    let zero = fs::File::open("/dev/zero").unwrap();
    let ended = place.command(&["chat", "--db", "shop.db", "--model", &server.model]).stdin(zero).output().unwrap();
    assert_eq!(ended.status.code(), Some(2));
    assert!(server.requests().is_empty());
}

#[test]
fn escapes_control_characters_in_messages() {
    let place = TestDir::new();
    let ended = place.run(&["check", "--sql", "SELECT 1", "--policy", "no\u{1b}[31mfile"]);
    assert!(ended.stderr.contains("no\\u{1b}[31mfile") && !ended.stderr.contains('\u{1b}'), "{}", ended.stderr);
}
