//! What is mended without a model, and what the user sees of it.

use querymend::{Answer, AnswerStatus, Confidence, Config, Event, ProblemCode, StopReason};
use querymend_sql::ErrorType;

use super::support::{Call, QUESTION, Shop, ask, ask_engine, refusal};

#[tokio::test]
async fn repairs_column_without_the_model_and_reports_the_diff() {
    let draft = "SELECT id, price FROM products WHERE category = 'Electronics'";
    let told = ask([draft], Config::default(), QUESTION).await;
    assert_eq!(told.asked.len(), 1, "the model was asked once");
    assert_eq!(told.sql(), "SELECT product_id, price FROM products WHERE category = 'Electronics'");
    assert_eq!(told.rows().len(), 8);
    let mended = told.events.iter().find_map(|e| match e {
        Event::Repaired { before, after, changes, applied, .. } => Some((before, after, changes, applied)),
        _ => None,
    });
    let (before, after, changes, applied) = mended.unwrap();
    assert_eq!((before.as_str(), after.as_str()), (draft, told.sql()));
    assert_eq!(changes.iter().map(ToString::to_string).collect::<Vec<_>>(), ["'id' → 'product_id'"]);
    assert_eq!(applied.iter().map(|a| a.code).collect::<Vec<_>>(), ["unknown-column"]);
    // Q14: the answer is no failure, and says what was done.
    assert_eq!((told.answer.status, told.answer.confidence), (AnswerStatus::Answered, Confidence::High));
    assert_eq!(told.answer.reasons, ["fixed: `product_id` is the column of `products` most similar to `id`"]);
    assert_eq!(told.answer.attempts[0].error, None);
    let correction = &told.answer.corrections[0];
    assert!(correction.successful && correction.strategy == "unknown-column", "{correction:?}");
    assert!(correction.original_error.contains("`products` has no column `id`"));
}

#[tokio::test]
async fn repairs_several_errors_in_one_pass() {
    let told = ask(["SELECT email, stars FROM orders"], Config::default(), QUESTION).await;
    assert_eq!((told.asked.len(), told.answer.status), (1, AnswerStatus::Answered));
    assert_eq!(told.answer.fixes.len(), 2, "{:?}", told.answer.fixes);
    let told = ask(["```sql\nSELECT id, prise FROM products LIMIT 3;\n```"], Config::default(), QUESTION).await;
    assert_eq!((told.asked.len(), told.sql()), (1, "SELECT product_id, price FROM products LIMIT 3"));
    assert_eq!(told.rows().len(), 3);
    // The fence is no fault of the query, and opening it mends nothing.
    let codes: Vec<&str> = told.answer.fixes.iter().map(|f| f.code).collect();
    assert_eq!(codes, ["unknown-column", "unknown-column"], "{:?}", told.answer.fixes);
    let told = ask(["```sql\nSELECT TOP 3 name FROM products\n```"], Config::default(), QUESTION).await;
    assert_eq!((told.asked.len(), told.sql()), (1, "SELECT name FROM products LIMIT 3"));
}

#[tokio::test]
async fn extracts_query_from_any_wrapper() {
    let plain = "SELECT count(*) FROM products";
    for said in [
        "```sql\nSELECT count(*) FROM products\n```",
        "```\nSELECT count(*) FROM products;\n```\nThis counts the products.",
        "Sure! Here is the query:\n\nSELECT count(*) FROM products",
        r#"{"corrected_sql": "SELECT count(*) FROM products", "correction_applied": "counted"}"#,
        "```json\n{\"corrected_sql\": \"SELECT count(*)\\nFROM products\", \"correction_applied\": \"\"}\n```",
        r#"{"sql": "SELECT count(*) FROM products"}"#,
    ] {
        let told = ask([said], Config::default(), QUESTION).await;
        assert_eq!(told.answer.status, AnswerStatus::Answered, "{said}: {:?}", told.answer);
        assert!(
            querymend_sql::diff::is_same_query(told.sql(), plain, &querymend_sql::dialect::SQLITE),
            "{said}: {}",
            told.sql()
        );
        assert_eq!((told.rows()[0][0].as_str(), told.asked.len()), ("40", 1), "{said}");
        let Answer { confidence, reasons, fixes, .. } = &told.answer;
        assert_eq!((*confidence, reasons.len(), fixes.len()), (Confidence::High, 0, 0), "{said}: {reasons:?}");
    }
}

#[tokio::test]
async fn repairs_from_the_engine_error() {
    // The critic is off, so the database has the first word.
    let config = Config::default().with_preflight_validation(false);
    let told = ask(["SELECT id FROM products"], config, QUESTION).await;
    assert_eq!((told.sql(), told.asked.len()), ("SELECT product_id FROM products", 1));
    let said = told.events.iter().find_map(|e| match e {
        Event::Rejected { error, finding, .. } => Some((error.message.clone(), *finding)),
        _ => None,
    });
    assert_eq!(said, Some(("no such column: id".into(), "unknown-column")));
    assert_eq!(told.answer.corrections[0].original_error, "no such column: id");
}

#[tokio::test]
async fn stops_after_first_draft_when_correction_is_off() {
    let off = Config::default().with_self_correction(false);
    let told = ask(["SELECT id FROM products"], off.clone(), QUESTION).await;
    assert_eq!((told.answer.stop, told.asked.len()), (StopReason::CorrectionOff, 1));
    assert_eq!(told.problem().message, "no such column: id");
    assert!(!told.answer.attempts[0].held_back, "the database had its say");
    let told = ask(["SELECT product_id FROM products"], off, QUESTION).await;
    assert_eq!(told.answer.status, AnswerStatus::Answered);
}

#[tokio::test]
async fn falls_back_to_client_side_analysis_once() {
    let config = || Config::default().with_max_attempts(2);
    let drafts = ["SELECT flurb FROM products", "SELECT blorp FROM products", "SELECT max(price) FROM products"];
    let told = ask(drafts, config(), "What is the highest price?").await;
    assert_eq!((told.answer.status, told.asked.len()), (AnswerStatus::Answered, 3));
    assert!(told.answer.fallback);
    assert_eq!(told.answer.confidence, Confidence::Low);
    assert_eq!(told.answer.reasons[0], "plain rows were fetched and analysed locally");
    let direct = ask(["SELECT max(price) FROM products"], config(), "What is the highest price?").await;
    assert_eq!(told.rows(), direct.rows());
    let fetched: Vec<&Event> = told.events.iter().filter(|e| matches!(e, Event::FallbackStarted { .. })).collect();
    assert!(
        matches!(fetched.as_slice(), [Event::FallbackStarted { tables }] if tables == &["products"]),
        "{fetched:?}"
    );
    // The analysis sees only what was fetched, and is a conversation of its own.
    let asked = &told.asked[2].messages;
    assert_eq!(asked.len(), 2);
    assert!(asked[1].text.contains("products") && !asked[1].text.contains("customers"), "{}", asked[1].text);

    // An analysis that fails too is the end.
    let drafts =
        ["SELECT flurb FROM products", "SELECT blorp FROM products", "SELECT wibble FROM products", "SELECT 1"];
    let told = ask(drafts, config(), QUESTION).await;
    assert_eq!((told.answer.stop, told.asked.len()), (StopReason::MaxAttempts, 3));
    assert!(!told.answer.fallback);
    // One that is mended is not.
    let drafts = ["SELECT flurb FROM products", "SELECT blorp FROM products", "SELECT id FROM products"];
    let told = ask(drafts, config(), QUESTION).await;
    assert!(told.answer.fallback && told.sql() == "SELECT product_id FROM products", "{:?}", told.answer);
}

#[tokio::test]
async fn fallback_fetches_linked_tables_that_no_draft_names() {
    let config = Config::default().with_max_attempts(2);
    let drafts = ["SELECT a FROM flurb", "SELECT b FROM blorp", "SELECT max(price) FROM products"];
    let told = ask(drafts, config, "What is the highest price of the products?").await;
    assert!(told.answer.fallback, "{:?}", told.answer);
    assert_eq!(told.sql(), "SELECT max(price) FROM products");
}

#[tokio::test]
async fn fallback_never_fetches_denied_tables() {
    let policy = querymend_sql::Policy { deny_tables: vec!["customers".into()], ..querymend_sql::Policy::default() };
    let config = Config::default().with_max_attempts(2).with_policy(policy);
    let drafts = ["SELECT email FROM customers", "SELECT city FROM customers"];
    let told = ask(drafts, config, "Which customers are there?").await;
    assert!(told.executed().is_empty() && told.answer.rows.is_none(), "{:?}", told.answer);
    assert_eq!(told.answer.metadata.tool_executions, 0);
    assert!(!told.asked.iter().any(|r| r.messages.iter().any(|m| m.text.contains("signed_up"))), "nor is it shown");
    // No other query helps against a rule of the house.
    assert_eq!((told.answer.stop, told.asked.len()), (StopReason::NotRetryable, 1));
    assert_eq!(told.problem().code, ProblemCode::PermissionDeniedNotRetryable);
    assert_eq!(told.answer.attempts[0].error_type, Some(ErrorType::PermissionDenied));

    // Where only some tables are allowed, a name that is nobody's is a mistake like any other.
    let policy = querymend_sql::Policy { allow_tables: Some(vec!["products".into()]), ..Default::default() };
    let drafts = ["SELECT flavour FROM xyzzy", "SELECT name FROM products"];
    let told = ask(drafts, Config::default().with_policy(policy), QUESTION).await;
    assert_eq!(told.answer.attempts[0].error_type, Some(ErrorType::TableNotFound), "{:?}", told.answer);
    assert_eq!((told.answer.status, told.asked.len()), (AnswerStatus::Answered, 2));
}

#[tokio::test]
async fn returns_rejected_repair_to_the_model() {
    let engine = Shop::new().hooked(|call| {
        let mended = matches!(call, Call::Execute(sql) if sql.contains("product_id"));
        mended.then(|| refusal("no such column: product_id"))
    });
    let config = Config::default().with_preflight_validation(false);
    let told = ask_engine(engine, ["SELECT id FROM products", "SELECT price FROM products"], config, QUESTION).await;
    assert_eq!((told.answer.status, told.sql()), (AnswerStatus::Answered, "SELECT price FROM products"));
    let (failed, message) = (&told.asked[1].messages[2].text, &told.message(1).text);
    assert_eq!(failed, "SELECT product_id FROM products", "the model is shown what was sent last");
    assert!(message.starts_with("The query failed: no such column: product_id."), "{message}");
    assert_eq!(told.answer.metadata.tool_executions, 3);
}

#[tokio::test]
async fn derives_confidence_from_checks_and_gives_reasons() {
    let check = |sql: &'static str, level: Confidence, reason: Option<&'static str>| async move {
        let told = ask([sql], Config::default(), QUESTION).await;
        assert_eq!(told.answer.confidence, level, "{sql}: {:?}", told.answer.reasons);
        let reasons = told.answer.reasons.join("; ");
        assert!(reason.map_or(reasons.is_empty(), |r| reasons.contains(r)), "{sql}: {reasons}");
    };
    check("SELECT name FROM products", Confidence::High, None).await;
    check("SELECT id FROM products", Confidence::High, Some("most similar to `id`")).await;
    check("SELECT name FROM orders", Confidence::Medium, Some("fixed")).await;
    check("SELECT category, count(*) FROM products", Confidence::Medium, Some("any row's value")).await;
    check("SELECT name FROM products WHERE price > 1e9", Confidence::Medium, Some("nothing was found")).await;
    let joined = "SELECT o.order_id FROM orders o JOIN customers c ON c.customer_id = o.customer_id WHERE";
    let simple = format!("{joined} c.city = 'Berlin'").leak();
    check(simple, Confidence::Medium, Some("words")).await;
    let nested = format!("{joined} c.customer_id IN (SELECT customer_id FROM reviews)").leak();
    check(nested, Confidence::Medium, Some("words")).await;
    // Joins and groups are no doubts.
    check("SELECT category FROM products GROUP BY category", Confidence::Medium, None).await;
    let few = querymend_engine::Limits { rows: 2, ..querymend_engine::Limits::default() };
    let told = ask(["SELECT name FROM products"], Config::default().with_limits(few), QUESTION).await;
    assert_eq!(told.answer.reasons, ["there are more rows than are shown"]);
    assert_eq!(told.answer.confidence, Confidence::Medium);
    let told = ask(["SELECT flurb FROM products", "SELECT name FROM products"], Config::default(), QUESTION).await;
    assert_eq!(told.answer.reasons, ["it took 2 attempts"]);
}
