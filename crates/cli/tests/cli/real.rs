//! Three questions through a real model behind a real API, when `./test` has started one. Its words are its own: what is held
//! against them is the protocol and the shape of the answer.

use std::process::Stdio;

use querymend_testing::{is_full_suite, lock_server};

use crate::TestDir;

/// As long as a slow machine takes.
const BUDGET: &str = "budget: {time: 24h, request: 24h}\n";

#[test]
#[allow(clippy::print_stderr, reason = "a test that is skipped says so")]
fn real_model_answers_three_questions() {
    let Ok(url) = std::env::var("QUERYMEND_MODEL_URL") else {
        eprintln!("skipped: QUERYMEND_MODEL_URL is not set, so there is no real model to ask");
        return;
    };
    // The tests of crates/model ask the same server.
    let _lock = lock_server("model");
    let place = TestDir::with_demo();
    place.write_file("querymend.yaml", BUDGET);
    let model = format!("{url}#local");
    let questions =
        ["How many customers are there?", "List the names of all products.", "How many orders has each customer?"];
    // The protocol is the same for all of them, and each takes seconds of computing.
    for question in questions.into_iter().take(if is_full_suite() { 3 } else { 1 }) {
        let ask = ["ask", question, "--db", "shop.db", "--model", &model, "--format", "json"];
        let ended = place.run(&ask);
        let answer = ended.json();
        assert!([0, 1].contains(&ended.code), "{question}: {}", ended.stderr);
        assert_eq!(answer["question"], question);
        assert!(answer["metadata"]["llm_calls"].as_u64().unwrap() >= 1, "{answer}");
        assert!(answer["cost"]["output_tokens"].as_u64().unwrap() >= 1, "{answer}");
        assert!(!answer["attempts"].as_array().unwrap().is_empty());
        if answer["status"] == "answered" {
            assert_eq!(ended.code, 0);
            assert!(!answer["rows"]["columns"].as_array().unwrap().is_empty(), "{answer}");
            assert!(answer["sql"].as_str().unwrap().to_lowercase().contains("select"));
        }
        let id = answer["trace_id"].as_str().unwrap();
        assert_eq!(place.run(&["trace", id]).code, 0);
    }
}

/// The model that `./test` or an earlier pull has put into the user's own cache.
fn user_cache_with_model() -> Option<std::path::PathBuf> {
    let cache = querymend_model::ModelCache::user_default()?;
    let file = cache.models_dir().join("qwen2.5-coder-0.5b-instruct-q4_k_m.gguf");
    file.is_file().then(|| cache.folder().to_path_buf())
}

/// Nothing is configured, no key is set and the network is cut: the model that was pulled is found, and answers.
#[test]
#[allow(clippy::print_stderr, reason = "a test that is skipped says so")]
fn answers_offline_without_configuration() {
    let Some(cache) = user_cache_with_model() else {
        eprintln!("skipped: no model was pulled, so there is none to run");
        return;
    };
    let _lock = lock_server("model");
    let place = TestDir::new();
    // One table: reading a long prompt is what takes the time.
    let tables = "CREATE TABLE customers (customer_id INTEGER PRIMARY KEY, name TEXT, city TEXT);
        INSERT INTO customers (name, city) VALUES ('Ada', 'Bonn'), ('Ben', 'Kiel'), ('Cleo', 'Ulm');";
    rusqlite::Connection::open(place.path("shop.db")).unwrap().execute_batch(tables).unwrap();
    place.disable_model_discovery("");
    let config = std::fs::read_to_string(place.path("querymend.yaml")).unwrap();
    place.write_file("querymend.yaml", config + BUDGET);
    let apart = std::process::Command::new("unshare").args(["-rn", "true"]).output().is_ok_and(|o| o.status.success());
    let plain = place.command(&["ask", "How many customers are there?", "--db", "shop.db", "--format", "json"]);
    let mut command = if apart {
        // The same command, in a network of its own in which there is nothing.
        let mut command = std::process::Command::new("unshare");
        command.arg("-rn").arg(plain.get_program()).args(plain.get_args());
        for (name, value) in plain.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        command.current_dir(place.folder.path()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    } else {
        plain
    };
    command.env("QUERYMEND_CACHE", &cache);
    let ended = TestDir::run_command(command, b"");
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    assert!(ended.stderr.contains("no model is configured; using local:qwen2.5-coder-"), "{}", ended.stderr);
    let answer = ended.json();
    assert_eq!(answer["status"], "answered", "{answer}");
    assert_eq!(answer["rows"]["rows"].as_array().unwrap().len(), 1, "{answer}");
}
