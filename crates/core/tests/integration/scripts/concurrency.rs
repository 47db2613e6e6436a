//! Many questions at once.

use std::sync::Arc;

use querymend::{AnswerStatus, Config, Querymend};
use querymend_model::Completion;

use super::support::{Answering, Shop};

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn keeps_concurrent_answers_separate() {
    let shop = Shop::new();
    // The model reads the number in the question. Every third draft needs the model again, every other third a rule.
    let model = Answering(|request: &querymend_model::CompletionRequest| {
        let question = &request.messages[1].text;
        let number = question.rsplit("number ").next().and_then(|rest| rest.split_whitespace().next()).unwrap();
        let n: usize = number.trim_end_matches('?').parse().unwrap();
        let column = match (n % 3, request.messages.len()) {
            (0, 2) => "flurb",
            (1, _) => "id",
            _ => "product_id",
        };
        Ok(Completion::text(format!("SELECT {column}, {n} AS n FROM products WHERE product_id = {}", n + 1)))
    });
    let querymend = Arc::new(Querymend::new(shop.engine(), Arc::new(model), Config::default()));
    let tasks: Vec<_> = (0..32)
        .map(|n: i64| {
            let querymend = querymend.clone();
            tokio::spawn(async move { (n, querymend.ask(&format!("Which product has number {n}?")).await) })
        })
        .collect();
    let mut traces = std::collections::HashSet::new();
    for task in tasks {
        let (n, answer) = task.await.unwrap();
        assert_eq!(answer.status, AnswerStatus::Answered, "{answer:?}");
        let cells = serde_json::to_value(&answer.rows.unwrap().rows).unwrap();
        assert_eq!(cells, serde_json::json!([[n + 1, n]]), "{:?}", answer.sql);
        assert_eq!(answer.question, format!("Which product has number {n}?"));
        assert_eq!(answer.attempts.len(), if n % 3 == 0 { 2 } else { 1 });
        traces.insert(answer.trace_id);
    }
    assert_eq!(traces.len(), 32);
}
