use std::path::Path;
use std::sync::Arc;

use crate::TestDir;
use crate::server::ScriptedModelServer;

/// A model that trips over what the set expects models to trip over: some queries are right, some name a wrong column.
fn error_prone_server() -> ScriptedModelServer {
    ScriptedModelServer::with_handler(Arc::new(|_, body| {
        let words = body["messages"][1]["content"].as_str().unwrap();
        let asked = words.rsplit("Question:").next().unwrap();
        Some(
            match asked {
                asked if asked.contains("names of all products") => "SELECT name FROM products",
                asked if asked.contains("How many customers") => "SELECT count(*) FROM customers",
                asked if asked.contains("Electronics") => {
                    "SELECT id, price FROM products WHERE category = 'Electronics'"
                }
                asked if asked.contains("highest price") => "SELECT max(price) FROM products",
                _ => "SELECT flavour FROM products",
            }
            .to_string(),
        )
    }))
}

fn dataset() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../datasets/correction");
    path.canonicalize().unwrap().to_str().unwrap().to_string()
}

#[test]
fn compares_loop_off_with_loop_on() {
    let place = TestDir::new();
    let server = error_prone_server();
    let set = dataset();
    let compare = || place.run(&["eval", "compare", &set, "--model", &server.model, "--out", "results", "--jobs", "3"]);
    let ended = compare();
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    for words in [
        "loop off against ",
        "15 questions)",
        "Success rate",
        "Answered: 1 fixed, 0 broken, McNemar p = 1.0000 (exact).",
        "Right: 1 fixed, 0 broken",
        "Targets (",
        "missed by ",
    ] {
        assert!(ended.stdout.contains(words), "{words} in {}", ended.stdout);
    }
    for file in ["off.jsonl", "on.jsonl", "compare.md", "compare.svg", "off.md", "on.md", "on.csv"] {
        assert!(std::fs::read(place.path("results").join(file)).unwrap().len() > 100, "{file}");
    }
    // What is answered is not asked again, and stored results compare to the same table.
    let asked = server.requests().len();
    assert_eq!((compare().stdout, server.requests().len()), (ended.stdout.clone(), asked));
    let stored = place.run(&["eval", "compare", "results/off.jsonl", "results/on.jsonl"]);
    assert_eq!((stored.code, stored.stdout.as_str()), (0, ended.stdout.as_str()), "{}", stored.stderr);
}

#[test]
fn reports_a_run_and_compares_it_with_a_baseline() {
    let place = TestDir::new();
    let server = error_prone_server();
    let set = dataset();
    let run =
        |more: &[&str]| place.run(&[&["eval", "run", &set, "--model", &server.model, "--no-fallback"], more].concat());
    let ended = run(&["--out", "results"]);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    for file in ["results.jsonl", "report.md", "report.csv", "chart.svg"] {
        assert!(place.path("results").join(file).is_file(), "{file}");
    }
    let shown = place.run(&["eval", "show", "results/results.jsonl", "--format", "json"]).json();
    assert_eq!(shown["metrics"]["total"], 15);
    let results = "results/results.jsonl";
    let wrote = place.run(&["eval", "baseline", "write", results, "baseline.csv"]);
    assert_eq!((wrote.code, wrote.stderr.as_str()), (0, "wrote baseline.csv\n"));
    let check = |results: &str| place.run(&["eval", "baseline", "check", results, "baseline.csv"]);
    let same = check(results);
    assert_eq!((same.code, same.stdout.as_str(), same.stderr.as_str()), (0, "", "0 worse, 0 better\n"));
    assert_eq!(run(&["--no-correction", "--out", "off"]).code, 0);
    let worse = check("off/results.jsonl");
    assert_eq!(worse.code, 1, "{}", worse.stderr);
    assert!(worse.stdout.starts_with("worse: electronics-ids: corrected, right → failed"), "{}", worse.stdout);
    let few = run(&["--limit", "3", "--runs", "2", "--format", "csv"]);
    assert_eq!((few.code, few.stdout.lines().count()), (0, 7), "{}", few.stdout);
}

#[test]
fn reports_obstacles_to_an_evaluation() {
    let place = TestDir::new();
    let set = dataset();
    let failed = |arguments: &[&str], words: &str| {
        let ended = place.run(arguments);
        assert_eq!(ended.code, 2, "{}", ended.stderr);
        assert!(ended.stderr.contains(words) && ended.stderr.contains("hint: "), "{words} in {}", ended.stderr);
    };
    failed(&["eval", "run", &set], "no model is configured");
    // None is looked for here, so that no key and no pull would help.
    let hint = place.run(&["eval", "run", &set]).stderr;
    assert!(hint.contains("--model") && hint.contains("QUERYMEND_MODEL"), "{hint}");
    for untrue in ["--yes", "OPENAI_API_KEY", "QUERYMEND_AUTO_PULL", "model pull"] {
        assert!(!hint.contains(untrue), "{untrue} in {hint}");
    }
    failed(&["eval", "run", "nowhere.yaml", "--model", "ollama:x"], "`nowhere.yaml` cannot be read");
    failed(&["eval", "show", "nowhere.jsonl"], "`nowhere.jsonl` cannot be read");
    let gone = "http://127.0.0.1:1/v1#gone";
    failed(&["eval", "run", &set, "--limit", "1", "--model", gone], "1 question could not be asked");
}
