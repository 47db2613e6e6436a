use std::sync::Arc;

use serde_json::{Value, json};

use crate::TestDir;
use crate::server::ScriptedModelServer;

/// Answers by the question, so that the order in which questions are asked does not matter.
fn server_replying_by_question() -> ScriptedModelServer {
    ScriptedModelServer::with_handler(Arc::new(|_, body| {
        let words = body["messages"][1]["content"].as_str().unwrap();
        let asked = words.rsplit("Question:").next().unwrap();
        Some(match asked {
            asked if asked.contains("thank") => "You are welcome.".into(),
            asked if asked.contains("customers") => "```sql\nSELECT count(*) FROM customers;\n```".into(),
            asked if asked.contains("electronics") => "SELECT id FROM products WHERE category = 'Electronics'".into(),
            _ => "SELECT flavour FROM products".into(),
        })
    }))
}

fn questions() -> String {
    [
        json!({ "id": 1, "db": "shop.db", "question": "How many customers are there?" }).to_string(),
        json!({ "id": "b", "db": "shop.db", "question": "Which electronics are there?", "evidence": "all" })
            .to_string(),
        String::new(),
        json!({ "id": "c", "db": "shop.db", "question": "Which products have a flavour?" }).to_string(),
        json!({ "id": "d", "db": "nowhere.db", "question": "How many customers are there?" }).to_string(),
        "{\"id\": \"e\", \"db\": 7}".to_string(),
        "garbage".to_string(),
        json!({ "id": "g", "db": "shop.db", "question": "thank you" }).to_string(),
    ]
    .join("\n")
}

fn find<'a>(answers: &'a [Value], id: &Value) -> &'a Value {
    answers.iter().find(|answer| answer["id"] == *id).unwrap_or_else(|| panic!("{id} in {answers:?}"))
}

#[test]
fn answers_every_line_despite_invalid_lines() {
    let place = TestDir::with_demo();
    let server = server_replying_by_question();
    let root = place.path("");
    for jobs in ["1", "4"] {
        let ended = place.run_with_stdin(
            &[
                "ask",
                "--batch",
                "-",
                "--root",
                root.to_str().unwrap(),
                "--model",
                &server.model,
                "--jobs",
                jobs,
                "--no-fallback",
            ],
            questions().as_bytes(),
        );
        let answers = ended.json_lines();
        assert_eq!((ended.code, answers.len()), (2, 7), "{}", ended.stderr);
        assert_eq!(ended.stderr, "3 answered, 1 given up, 3 failed\n");
        let one = find(&answers, &json!(1));
        assert_eq!((&one["status"], &one["llm_calls"]), (&json!("answered"), &json!(1)));
        assert_eq!(one["attempts"], json!([{ "sql": "SELECT count(*) FROM customers", "error": null }]));
        let mended = find(&answers, &json!("b"));
        assert_eq!(mended["attempts"][0]["sql"], "SELECT id FROM products WHERE category = 'Electronics'");
        assert_eq!(mended["sql"], "SELECT product_id FROM products WHERE category = 'Electronics'");
        assert_eq!(mended["fixes"][0]["code"], "unknown-column");
        for key in ["confidence", "stop", "fallback", "trace_id"] {
            assert!(!mended[key].is_null(), "{mended}");
        }
        let given_up = find(&answers, &json!("c"));
        assert_eq!((&given_up["status"], &given_up["stop"]), (&json!("gave_up"), &json!("repeated_sql")));
        assert!(given_up["attempts"][0]["error"].is_string() && given_up["error"].is_string(), "{given_up}");
        assert!(find(&answers, &json!("d"))["error"].as_str().unwrap().contains("nowhere.db"));
        assert!(find(&answers, &json!("e"))["error"].as_str().unwrap().starts_with("line 6 cannot be read"));
        assert_eq!(find(&answers, &Value::Null)["status"], "failed");
        assert_eq!(find(&answers, &json!("g"))["text"], "You are welcome.");
        if jobs == "1" {
            let ids: Vec<&Value> = answers.iter().map(|answer| &answer["id"]).collect();
            assert_eq!(json!(ids), json!([1, "b", "c", "d", "e", null, "g"]));
        }
    }
    // Runs of a batch do not push those of a person out: they are kept apart.
    assert_eq!(place.run(&["trace"]).stderr, "0 runs\n");
    let listed = place.run(&["trace", "--batch"]);
    // Two batches of seven lines, of which three cannot be asked.
    assert_eq!(listed.stderr, "8 runs\n", "{}", listed.stdout);
    let id = listed.stdout.split_whitespace().next().unwrap();
    let told = place.run(&["trace", id]);
    assert!(told.code == 0 && told.stdout.contains("question: "), "{}{}", told.stdout, told.stderr);
}

#[test]
fn resumes_an_interrupted_batch() {
    let place = TestDir::with_demo();
    let server = server_replying_by_question();
    place.write_file("questions.jsonl", questions());
    let run = || {
        let arguments =
            ["ask", "--batch", "questions.jsonl", "--out", "answers.jsonl", "--model", &server.model, "--no-fallback"];
        place.run(&arguments)
    };
    assert_eq!(run().code, 2);
    let read = || std::fs::read_to_string(place.path("answers.jsonl")).unwrap();
    let whole = read();
    assert_eq!(whole.lines().count(), 7);
    let asked = server.requests().len();

    // The machine stopped in the middle of the second answer.
    let second = whole.lines().next().unwrap().len() + 1 + 40;
    place.write_file("answers.jsonl", &whole[..second]);
    let ended = run();
    assert_eq!((ended.code, ended.stdout.as_str()), (2, ""));
    assert!(ended.stderr.contains("1 were answered already"), "{}", ended.stderr);
    let now = read();
    let ids = |text: &str| -> Vec<Value> {
        text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["id"].clone()).collect()
    };
    assert_eq!(ids(&now), ids(&whole));
    assert_eq!(server.requests().len(), 2 * asked - 1);

    // What failed is asked again once the world is in order; what is answered is not.
    let shop = std::fs::read(place.path("shop.db")).unwrap();
    place.write_file("nowhere.db", shop);
    let before = server.requests().len();
    let ended = run();
    assert!(ended.stderr.starts_with("1 answered, 0 given up, 2 failed, 4 were"), "{}", ended.stderr);
    assert_eq!((server.requests().len(), read().lines().count()), (before + 1, 7));

    place.write_file("answers.jsonl", "not an answer\n");
    let ended = run();
    assert_eq!((ended.code, read().as_str()), (2, "not an answer\n"));
    assert!(ended.stderr.contains("line 1 of `answers.jsonl` is not an answer") && ended.stderr.contains("hint: "));
}
