//! Three questions through a real model behind a real API, when `./test` has started one. Its words are its own: what is held
//! against them is the protocol and the shape of the answer.

use crate::Place;

#[test]
#[allow(clippy::print_stderr, reason = "a test that is skipped says so")]
fn a05_three_questions_go_through_a_real_model() {
    let Ok(url) = std::env::var("QUERYMEND_MODEL_URL") else {
        eprintln!("skipped: QUERYMEND_MODEL_URL is not set, so there is no real model to ask");
        return;
    };
    let place = Place::with_demo();
    let model = format!("{url}#local");
    for question in
        ["How many customers are there?", "List the names of all products.", "How many orders has each customer?"]
    {
        let ended = place.run(&["ask", question, "--db", "shop.db", "--model", &model, "--format", "json"]);
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
