//! Questions that refer to earlier ones, remarks, and what is remembered of failures.

use std::sync::Arc;

use querymend::{AnswerStatus, CancellationToken, Config, Event, Querymend, StopReason};
use querymend_model::{ScriptedModel, ScriptedReply};

use super::support::{Shop, ask, hopeless, unreachable_model};

#[tokio::test]
async fn answers_chat_messages_without_sql() {
    for said in ["Hello!", "thank you", "What can you do?"] {
        let told = ask(["  I answer questions about the shop.\n"], Config::default(), said).await;
        assert_eq!((told.answer.status, told.answer.stop), (AnswerStatus::Chat, StopReason::Chat));
        assert_eq!(told.answer.text.as_deref(), Some("I answer questions about the shop."));
        assert_eq!((told.answer.sql.as_ref(), told.answer.attempts.len()), (None, 0));
        assert_eq!(told.answer.metadata.tool_executions, 0);
        assert!(!told.events.iter().any(|e| matches!(e, Event::SchemaLinked { .. } | Event::Reviewed { .. })));
        let system = &told.asked[0].messages[0].text;
        assert!(system.contains("customers, products, orders, order_items, reviews"), "{system}");
    }
}

#[tokio::test]
async fn records_failures_of_a_session_until_an_answer() {
    let shop = Shop::new();
    let lines = [
        hopeless("flurb"),
        hopeless("blorp"),
        hopeless("wibble"),
        "SELECT grault FROM products".into(),
        "SELECT name FROM products".into(),
    ];
    let config = Config::default().with_fallback(false);
    let querymend = Querymend::new(shop.engine(), Arc::new(ScriptedModel::new(lines)), config);
    let mut session = querymend.session();
    let id = session.id().to_string();
    let ignore = &mut |_: &Event| {};
    assert_eq!(session.ask("Which products?", ignore, &CancellationToken::new()).await.status, AnswerStatus::GaveUp);
    let record = querymend.error_history().get(&id).unwrap();
    assert_eq!((record.sql.as_str(), record.attempts), ("SELECT wibble FROM products", 3));
    assert_eq!(record.previous_attempts, ["SELECT flurb FROM products", "SELECT blorp FROM products"]);
    assert_eq!(record.message, "`products` has no column `wibble`");
    assert_eq!(record.code, "unknown-column");
    assert_eq!(serde_json::to_value(&record).unwrap()["analysis"]["error_type"], "column_not_found");
    // One failure that is overcome within a question leaves nothing behind, and clears what was there.
    assert_eq!(
        session.ask("Which products now?", ignore, &CancellationToken::new()).await.status,
        AnswerStatus::Answered
    );
    assert_eq!(querymend.error_history().get(&id), None);
    assert_eq!(session.answers().len(), 2);
    assert_eq!(session.answers()[1].metadata.turns, 2);
}

#[tokio::test]
async fn records_failures_per_session() {
    let shop = Shop::new();
    let lines = (0..2).map(|n| hopeless(&format!("flurb{n}")));
    let config = Config::default().with_max_attempts(1).with_fallback(false);
    let querymend = Querymend::new(shop.engine(), Arc::new(ScriptedModel::new(lines)), config);
    let (mut one, mut two) = (querymend.session(), querymend.session());
    assert_ne!(one.id(), two.id());
    for session in [&mut one, &mut two] {
        session.ask("Which products?", &mut |_| {}, &CancellationToken::new()).await;
    }
    assert_eq!(querymend.error_history().len(), 2);
    one.reset();
    assert_eq!((querymend.error_history().get(one.id()), querymend.error_history().len()), (None, 1));
    assert!(one.answers().is_empty() && two.answers().len() == 1);
}

#[tokio::test]
async fn includes_only_answered_questions_in_follow_ups() {
    let shop = Shop::new();
    let lines: [ScriptedReply; 8] = [
        "SELECT count(*) FROM products".into(),
        unreachable_model().into(),
        "SELECT count(*) FROM orders".into(),
        "You are welcome.".into(),
        "SELECT count(*) FROM customers".into(),
        "SELECT count(*) FROM reviews".into(),
        "SELECT 1".into(),
        "SELECT 2".into(),
    ];
    let script = Arc::new(ScriptedModel::new(lines));
    let querymend = Querymend::new(shop.engine(), script.clone(), Config::default());
    let mut session = querymend.session();
    for question in ["How many products?", "And stock?", "And orders?", "Thanks", "And customers?", "And reviews?"] {
        session.ask(question, &mut |_| {}, &CancellationToken::new()).await;
    }
    let statuses: Vec<AnswerStatus> = session.answers().iter().map(|t| t.status).collect();
    use AnswerStatus::{Answered, Chat, Failed};
    assert_eq!(statuses, [Answered, Failed, Answered, Chat, Answered, Answered]);
    session.ask("And both?", &mut |_| {}, &CancellationToken::new()).await;
    let asked = script.requests();
    let third = &asked[2].messages[1].text;
    let earlier = "Question: How many products?\nSELECT count(*) FROM products\n\nQuestion: And orders?";
    assert!(third.ends_with(earlier), "{third}");
    // The last three that were answered; failures and remarks are no part of it.
    let last = &asked[6].messages[1].text;
    assert!(!last.contains("How many products?") && !last.contains("And stock?") && !last.contains("Thanks"), "{last}");
    assert!(last.contains("Question: And orders?\nSELECT count(*) FROM orders\n\nQuestion: And customers?"), "{last}");
    session.reset();
    session.ask("And now?", &mut |_| {}, &CancellationToken::new()).await;
    assert!(!script.requests()[7].messages[1].text.contains("And both?"));
}
