//! A query that runs and finds nothing: what it looks for may be written in another way.

use querymend::{AnswerStatus, Confidence, Config, Event};
use querymend_model::ScriptedReply;

use super::support::{Call, Shop, ask, ask_engine, hopeless, unreachable_model};

const WRONG: &str = "SELECT count(*) FROM orders WHERE status = 'Delivered'";
const ASKED: &str = "How many orders were delivered?";

#[tokio::test]
async fn retries_absent_value_with_existing_values() {
    let right = "SELECT count(*) FROM orders WHERE status = 'delivered'";
    let told = ask([WRONG, right], Config::default(), ASKED).await;
    assert_eq!((told.answer.status, told.sql()), (AnswerStatus::Answered, right));
    assert_ne!(told.rows()[0][0], "0");
    assert_eq!(told.strategies(), ["show_values"]);
    let message = &told.message(1).text;
    assert!(message.starts_with("The query finds nothing.\norders.status never holds 'Delivered'."), "{message}");
    assert!(message.contains("'delivered'"), "{message}");
    assert_eq!(told.answer.reasons, ["it took 2 attempts"]);
}

#[tokio::test]
async fn lists_value_that_differs_in_case_first() {
    let wrong = "SELECT count(*) FROM products WHERE category = 'electronics'";
    let right = "SELECT count(*) FROM products WHERE category = 'Electronics'";
    let told = ask([wrong, right], Config::default(), "How many electronics are there?").await;
    assert_eq!(told.rows(), [["8"]]);
    assert_eq!(told.feedback()[0].1, "products.category never holds 'electronics'. Some of its values: 'Electronics'.");
}

#[tokio::test]
async fn keeps_first_answer_if_no_retry_improves_it() {
    let shapes: [Vec<ScriptedReply>; 6] = [
        // Again nothing is found.
        vec![WRONG.into(), "SELECT count(*) FROM orders WHERE status = 'Sent'".into()],
        // The same query once more.
        vec![WRONG.into(), WRONG.to_lowercase().replace("delivered", "Delivered").into()],
        // Nothing that runs.
        vec![WRONG.into(), hopeless("flurb").into(), hopeless("blorp").into()],
        vec![WRONG.into(), "DROP TABLE orders".into(), "".into()],
        // Nobody to ask.
        vec![WRONG.into(), unreachable_model().into()],
        vec![WRONG.into(), "".into(), "I am sorry.".into()],
    ];
    for lines in shapes {
        let shape = format!("{lines:?}");
        let told = ask(lines, Config::default(), ASKED).await;
        assert_eq!((told.answer.status, told.sql()), (AnswerStatus::Answered, WRONG), "{shape}: {:?}", told.answer);
        assert_eq!(told.rows(), [["0"]], "{shape}");
        assert_eq!(told.answer.confidence, Confidence::Medium, "{shape}");
        assert!(told.answer.reasons.contains(&"orders.status never holds 'Delivered'".to_string()), "{shape}");
        assert!(!told.answer.fallback, "{shape}");
    }
}

#[tokio::test]
async fn keeps_first_answer_if_the_database_disappears() {
    let shop = Shop::new();
    let file = shop.file.clone();
    let engine = shop.hooked(move |call| {
        if matches!(call, Call::Execute(sql) if sql.contains("returned")) {
            std::fs::remove_file(&file).ok();
        }
        None
    });
    let lines = [WRONG, "SELECT count(*) FROM orders WHERE status = 'returned'"];
    let told = ask_engine(engine, lines, Config::default(), ASKED).await;
    assert_eq!((told.answer.status, told.sql()), (AnswerStatus::Answered, WRONG), "{:?}", told.answer);
}

#[tokio::test]
async fn accepts_empty_result_when_all_values_exist() {
    // No order is both; each value is there, so the model is not bothered.
    let sql = "SELECT order_id FROM orders WHERE status = 'delivered' AND shipped_on < '1999'";
    let told = ask([sql], Config::default(), ASKED).await;
    assert_eq!((told.answer.status, told.asked.len()), (AnswerStatus::Answered, 1));
    assert_eq!(told.answer.reasons[0], "nothing was found: without `shipped_on < '1999'` there would be rows");
    // With correction off nothing is looked up.
    let told = ask([WRONG], Config::default().with_self_correction(false), ASKED).await;
    assert_eq!((told.answer.status, told.executed().len()), (AnswerStatus::Answered, 1));
    // On the last attempt neither: there is nobody to tell.
    let told = ask([WRONG], Config::default().with_max_attempts(1), ASKED).await;
    assert_eq!((told.answer.status, told.asked.len()), (AnswerStatus::Answered, 1));
}

#[tokio::test]
async fn escapes_quotes_and_wildcards_in_value_lookups() {
    let hostile = "SELECT count(*) FROM customers WHERE name = 'O''Brien; DROP TABLE x --%_'";
    let told = ask([hostile, "SELECT count(*) FROM customers"], Config::default(), "How many O'Briens?").await;
    // Nothing is like it, so nothing is shown and the answer stays.
    assert_eq!(told.rows(), [["0"]]);
    assert!(!told.events.iter().any(|e| matches!(e, Event::Retrying { .. })));
    let wrong = "SELECT count(*) FROM customers WHERE name = 'aoife o''brien'";
    let right = "SELECT count(*) FROM customers WHERE name = 'Aoife O''Brien'";
    let told = ask([wrong, right], Config::default(), "How many are called Aoife O'Brien?").await;
    assert_eq!(told.sql(), right);
    assert!(told.feedback()[0].1.ends_with("Some of its values: 'Aoife O''Brien'."), "{:?}", told.feedback());
}
