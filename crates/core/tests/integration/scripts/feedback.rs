//! What a model is told when it is asked again, and that it is told in the same conversation.

use std::collections::HashSet;
use std::sync::Arc;

use querymend::strategies::STRATEGIES;
use querymend::{AnswerStatus, Config, Event, Querymend};
use querymend_model::{MessageRole, ModelLimits, ScriptedModel};

use super::support::{Hooked, QUESTION, Shop, Told, ask, ask_engine, hopeless, listen, quiet, refusal, refusing};
use querymend::CancellationToken;

const GOOD: &str = "SELECT name FROM products";

#[tokio::test]
async fn sends_the_error_back_in_the_same_conversation() {
    let engine = Shop::new().hooked(refusing([refusal("the moon is full.")]));
    let told = ask_engine(engine, ["```sql\nSELECT price FROM products\n```", GOOD], Config::default(), QUESTION).await;
    assert_eq!(told.answer.status, AnswerStatus::Answered);
    let (first, second) = (&told.asked[0].messages, &told.asked[1].messages);
    assert_eq!(first.iter().map(|m| m.role).collect::<Vec<_>>(), [MessageRole::System, MessageRole::User]);
    assert_eq!(&second[..2], &first[..], "what was said before is said again, word by word");
    assert_eq!(second.len(), 4);
    assert_eq!((second[2].role, second[2].text.as_str()), (MessageRole::Assistant, "SELECT price FROM products"));
    assert_eq!(
        (second[3].role, second[3].text.as_str()),
        (MessageRole::User, "The query failed: the moon is full.\nAnswer with the corrected query only.")
    );

    let told = ask([hopeless("flurb"), hopeless("blorp"), GOOD.into()], Config::default(), QUESTION).await;
    let lengths: Vec<usize> = told.asked.iter().map(|r| r.messages.len()).collect();
    assert_eq!(lengths, [2, 4, 6]);
    assert_eq!(told.asked[2].messages[..4], told.asked[1].messages[..]);
    assert!(told.message(1).text.starts_with("The query cannot be run.\n"), "the critic speaks, and not the database");
}

#[tokio::test]
async fn links_and_reads_the_schema_once() {
    let shop = Shop::new();
    let reads = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let counted = reads.clone();
    let (_kept, engine) = shop.hooked(move |call| {
        if call == super::support::Call::Schema {
            counted.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        }
        None
    });
    let lines = [hopeless("flurb"), hopeless("blorp"), GOOD.into(), GOOD.into()];
    let querymend = Querymend::new(engine, Arc::new(ScriptedModel::new(lines)), quiet(Config::default()));
    let (_, events) = listen(&querymend, QUESTION, &CancellationToken::new()).await;
    let linked = events.iter().filter(|e| matches!(e, Event::SchemaLinked { .. })).count();
    assert_eq!(linked, 1, "of three attempts");
    listen(&querymend, QUESTION, &CancellationToken::new()).await;
    assert_eq!(reads.load(std::sync::atomic::Ordering::SeqCst), 1, "of two questions");
}

/// One question for each way to ask again.
async fn every_way() -> Vec<(&'static str, Told)> {
    let config = Config::default;
    let refused = |message: &str| Shop::new().hooked(refusing([refusal(message)]));
    let mut all = Vec::new();
    all.push(("start_over", ask(["I would rather not.", GOOD], config(), QUESTION).await));
    let nowhere = "SELECT name FROM products WHERE category = 'electronic'";
    all.push(("show_values", ask([nowhere, GOOD], config(), QUESTION).await));
    let large = "SELECT name FROM products";
    all.push((
        "timeout",
        ask_engine(refused("string or blob too big"), [large, "SELECT price FROM products"], config(), QUESTION).await,
    ));
    all.push((
        "aggregation",
        ask(["SELECT count(*) FROM orders WHERE max(sum(order_id)) > 1", GOOD], config(), QUESTION).await,
    ));
    let ambiguous = refused("ambiguous column name: city");
    all.push(("join", ask_engine(ambiguous, ["SELECT city FROM customers", GOOD], config(), QUESTION).await));
    let two = config().with_max_attempts(3);
    all.push(("simplify", ask([hopeless("flurb"), hopeless("blorp"), GOOD.into()], two, QUESTION).await));
    all.push(("explain_findings", ask([hopeless("flurb"), GOOD.into()], config(), QUESTION).await));

    // A model with a small window is shown part of the tables; the rest comes when it is missed.
    let shop = Shop::new();
    let script = ScriptedModel::new(["SELECT stars FROM reviews", "SELECT name FROM customers"]);
    let script = Arc::new(script.with_limits(ModelLimits { context: Some(200), ..ModelLimits::default() }));
    let engine = Hooked { inner: shop.engine(), hook: Box::new(refusing([refusal("no such column: stars")])) };
    let querymend = Querymend::new(Arc::new(engine), script.clone(), quiet(config()));
    let (answer, events) = listen(&querymend, "Which customers are there?", &CancellationToken::new()).await;
    all.push(("widen_schema", Told { answer, events, asked: script.requests() }));
    all
}

#[tokio::test]
async fn reaches_every_retry_strategy() {
    let all = every_way().await;
    for (way, told) in &all {
        assert_eq!(told.strategies().last(), Some(way), "{:?}", told.answer);
        assert_eq!(told.answer.status, AnswerStatus::Answered, "{way}: {:?}", told.answer);
        let feedback = told.feedback();
        assert!(feedback.iter().all(|(kind, text)| !kind.is_empty() && !text.is_empty()), "{way}: {feedback:?}");
        assert!(!feedback.is_empty(), "{way}");
        assert_eq!(told.answer.attempts.last().unwrap().strategy, *way);
    }
    let known: HashSet<&str> = STRATEGIES.iter().map(|s| s.name).collect();
    assert_eq!(all.iter().map(|(way, _)| *way).collect::<HashSet<_>>(), known);

    let says = |way: &str, words: &str| {
        let (_, told) = all.iter().find(|(name, _)| *name == way).unwrap();
        let message = &told.asked.last().unwrap().messages.last().unwrap().text;
        assert!(message.contains(words), "{way}: {message}");
    };
    says("start_over", "Answer with one SQL query and nothing else.");
    says("show_values", "products.category never holds 'electronic'. Some of its values: 'Electronics'.");
    says("timeout", "Ask for less");
    says("aggregation", "Keep every aggregate (COUNT, SUM, AVG, MIN, MAX); only add the missing columns to GROUP BY.");
    says("join", "Keys: orders.customer_id = customers.customer_id");
    says("simplify", "Write it more simply");
    says("explain_findings", "There is no column flurb.");
    says("widen_schema", "There is also reviews(review_id, product_id,");
}

#[tokio::test]
async fn sends_feedback_specific_to_each_error() {
    for (draft, kind, words) in [
        ("SELECT 1 FROM flurb", "unknown-table", "Tables: customers, products"),
        ("SELECT flurb FROM products", "unknown-column", "Columns in reach"),
        ("SELECT glorp(name) FROM products", "unknown-function", "glorp"),
        ("DROP TABLE products", "writes-data", ""),
        ("DELETE FROM products WHERE 1 = 1", "writes-data", ""),
        ("SELECT load_extension('x')", "forbidden-function", "load_extension"),
        ("SELECT name FROM products WHERE (((", "unfinished", "cut off"),
        ("SELECT name FROM products WHERE = = 3", "syntax-error", ""),
        ("SELECT count(*) FROM orders WHERE max(sum(order_id)) > 1", "aggregate-in-where", "HAVING"),
    ] {
        let told = ask([draft, GOOD], Config::default(), QUESTION).await;
        assert_eq!(told.answer.status, AnswerStatus::Answered, "{draft}: {:?}", told.answer);
        let feedback = told.feedback();
        let found = feedback.iter().find(|(k, _)| k == kind).unwrap_or_else(|| panic!("{draft}: {feedback:?}"));
        assert!(found.1.contains(words), "{draft}: {found:?}");
        assert!(told.message(1).text.contains(&found.1) || found.1.len() > 300, "{draft}: {:?}", told.message(1));
    }
}

#[tokio::test]
async fn sends_rule_advice_with_engine_errors() {
    for (draft, error, kind, words) in [
        ("SELECT price FROM products", "ambiguous column name: price", "ambiguous-column", "before the column"),
        ("SELECT price FROM products", "no such column: price", "unknown-column", "columns of the tables shown"),
    ] {
        let engine = Shop::new().hooked(refusing([refusal(error), refusal(error)]));
        let told = ask_engine(engine, [draft, GOOD], Config::default(), QUESTION).await;
        let feedback = told.feedback();
        assert!(feedback.iter().any(|(k, text)| k == kind && text.contains(words)), "{error}: {feedback:?}");
        assert!(told.message(1).text.contains(words), "{error}: {:?}", told.message(1));
    }
}

#[tokio::test]
async fn sends_feedback_on_comments_and_multiple_statements() {
    let rejecting = querymend_sql::Policy { comments: querymend_sql::CommentPolicy::Reject, ..Default::default() };
    for (draft, policy, kind, words) in [
        ("SELECT name FROM products; DROP TABLE products", None, "many-statements", "one"),
        ("SELECT name FROM products -- all", Some(rejecting), "comments", "comment"),
    ] {
        let config = policy.map_or_else(Config::default, |policy| Config::default().with_policy(policy));
        let told = ask([draft, GOOD], config, QUESTION).await;
        let feedback = told.feedback();
        assert!(feedback.iter().any(|(k, text)| k == kind && text.contains(words)), "{draft}: {feedback:?}");
    }
}

#[tokio::test]
async fn drops_prose_replies_from_the_conversation() {
    let drafts = ["I cannot do that.", "SELECT flurb FROM products", "", GOOD];
    let told = ask(drafts, Config::default().with_max_attempts(4), QUESTION).await;
    assert_eq!(told.answer.status, AnswerStatus::Answered, "{:?}", told.answer);
    assert_eq!(told.strategies(), ["start_over", "explain_findings", "start_over"]);
    for request in [&told.asked[1], &told.asked[3]] {
        assert_eq!(request.messages.len(), 2);
        assert!(!request.messages[1].text.contains("cannot"));
        let nagging = request.messages[1].text.matches("nothing else").count();
        assert_eq!(nagging, 1, "it is said once");
    }
}

#[tokio::test]
async fn reports_model_changes_as_diff_snippets() {
    let told = ask([hopeless("flurb"), "SELECT price FROM products".into()], Config::default(), QUESTION).await;
    let changes = told.events.iter().find_map(|e| match e {
        Event::Changed { attempt, changes } => {
            Some((*attempt, changes.iter().map(ToString::to_string).collect::<Vec<_>>()))
        }
        _ => None,
    });
    assert_eq!(changes, Some((2, vec!["'flurb' → 'price'".to_string()])));
}

#[tokio::test]
async fn requests_json_drafts_when_configured() {
    for wanted in [true, false] {
        let config = Config { structured_output: wanted, ..Config::default() };
        let told = ask(
            [r#"{"sql": "SELECT flurb FROM products"}"#, r#"{"sql": "SELECT name FROM products"}"#],
            config,
            QUESTION,
        )
        .await;
        assert_eq!(told.sql(), "SELECT name FROM products");
        assert_eq!(told.asked.len(), 2);
        for request in &told.asked {
            assert_eq!(request.schema.is_some(), wanted);
            assert_eq!(request.messages[0].text.contains("JSON"), wanted);
        }
    }
}
