//! Queries that come without a question: corrected by rules, by the model, and checked by validators of one's own.

use std::sync::Arc;

use querymend::correct::Correct;
use querymend::{Cancel, Config, ProblemCode, Querymend, Status};
use querymend_model::{Line, Script};
use querymend_sql::validator::{Subject, Validator};
use querymend_sql::{Finding, Severity, Span, Status as Mending};
use serde_json::json;

use super::support::{QUESTION, Shop, hopeless, quiet, unreachable_model};

/// What no rule can correct.
const HOPELESS: &str = "SELECT flurb FROM products";

#[tokio::test]
async fn model_rewrites_what_rules_give_up() {
    let reply = |sql: &str| Line::from(json!({"corrected_sql": sql, "correction_applied": "named it"}).to_string());
    for (line, success, sql) in [
        (reply("SELECT name FROM products"), true, "SELECT name FROM products"),
        // Prose and fences are read as well, and rules mend the rewrite.
        (Line::from("Sure:\n```sql\nSELECT id FROM products\n```"), true, "SELECT product_id FROM products"),
        // Nothing passes that would fail, write, ask something else, or change nothing.
        (reply("SELECT blorp FROM products"), false, ""),
        (reply("DELETE FROM products"), false, ""),
        (reply("SELECT 1"), false, ""),
        (reply("select FLURB from products"), false, ""),
        (Line::from("I cannot do that."), false, ""),
        (Line::Fail(unreachable_model()), false, ""),
    ] {
        let said = format!("{line:?}");
        let script = Arc::new(Script::new([line]));
        let shop = Shop::new();
        let querymend = Querymend::new(shop.engine(), script.clone(), quiet(Config::default()));
        let corrected = querymend.correct_with_model(&Correct::new(HOPELESS), &Cancel::new()).await.unwrap();
        assert_eq!((corrected.success, corrected.corrected_sql.as_str()), (success, sql), "{said}: {corrected:?}");
        assert_eq!(corrected.correction_applied.starts_with("rewritten by the model"), success, "{said}");
        let [request] = &script.asked()[..] else { panic!("{said}") };
        assert_eq!(request.schema.as_ref().unwrap()["required"], json!(["corrected_sql", "correction_applied"]));
    }
}

#[tokio::test]
async fn model_is_not_asked_where_it_may_not_help() {
    let refused = Correct::new("DELETE FROM products");
    let mended = Correct::new("SELECT id FROM products");
    let safe = Correct { apply: querymend_sql::Applicability::Safe, ..Correct::new(HOPELESS) };
    let spent = Correct { retry_count: 3, ..Correct::new(HOPELESS) };
    for asked in [refused, mended, safe, spent] {
        let script = Arc::new(Script::new(["SELECT name FROM products"]));
        let shop = Shop::new();
        let querymend = Querymend::new(shop.engine(), script.clone(), quiet(Config::default()));
        let corrected = querymend.correct_with_model(&asked, &Cancel::new()).await.unwrap();
        assert!(script.asked().is_empty(), "{asked:?}");
        assert_ne!(corrected.corrected_sql, "SELECT name FROM products");
    }
}

#[tokio::test]
async fn schema_context_has_a_dialect_of_its_own() {
    let shop = Shop::new();
    let querymend = Querymend::new(shop.engine(), Arc::new(Script::new([""; 0])), quiet(Config::default()));
    let asked = |dialect: &str| Correct {
        schema_context: Some(json!("CREATE TABLE people (name TEXT)")),
        dialect: Some(dialect.into()),
        ..Correct::new("SELECT nme FROM people")
    };
    let corrected = querymend.correct(&asked("postgres")).await.unwrap();
    assert_eq!((corrected.status, corrected.corrected_sql.as_str()), (Mending::Mended, "SELECT name FROM people"));
    let problem = querymend.correct(&asked("klingon")).await.unwrap_err();
    assert_eq!(problem.code, ProblemCode::BadRequest);
    assert!(problem.hint.unwrap().contains("postgres"));
}

/// A house rule: nobody reads all columns.
struct NoStar;

impl Validator for NoStar {
    fn name(&self) -> &'static str {
        "no-star"
    }

    fn validate(&self, subject: &Subject<'_>) -> Vec<Finding> {
        let Some(at) = subject.text.find('*') else { return Vec::new() };
        let message = "all columns are selected; name those that are needed";
        vec![Finding::new("", Severity::Error, Span::new(at, at + 1), "*", message).advise("Name the columns.")]
    }
}

#[tokio::test]
async fn registered_validator_holds_queries_back() {
    let lines = ["SELECT * FROM products", "SELECT name FROM products"];
    let script = Arc::new(Script::new(lines));
    let shop = Shop::new();
    let querymend = Querymend::new(shop.engine(), script.clone(), quiet(Config::default()));
    let querymend = querymend.with_validator(Arc::new(NoStar));
    let answer = querymend.ask(QUESTION).await;
    assert_eq!((answer.status, answer.sql.as_deref()), (Status::Answered, Some(lines[1])), "{answer:?}");
    assert_eq!(answer.attempts[0].finding.as_deref(), Some("no-star"));
    assert!(script.asked()[1].messages.last().unwrap().text.contains("Name the columns."));
    let guardrails = &answer.metadata.guardrails_checked;
    assert!(guardrails.starts_with(&["artefact".into(), "safety".into()]), "{guardrails:?}");
    assert_eq!(guardrails.last().map(String::as_str), Some("no-star"));
}

#[tokio::test]
async fn skipped_rules_are_not_checked() {
    let config = Config::from_yaml("policy: {skip_rules: [names]}").unwrap();
    let shop = Shop::new();
    let querymend = Querymend::new(shop.engine(), Arc::new(Script::new([hopeless("flurb")])), quiet(config));
    let answer = querymend.ask(QUESTION).await;
    // The database finds what nobody looked for before.
    assert!(!answer.attempts[0].held_back, "{answer:?}");
    assert!(!answer.metadata.guardrails_checked.contains(&"names".to_string()));
    for (wrong, words) in [("safety", "always checked"), ("writes-data", "always checked"), ("nmes", "no rule")] {
        let error = Config::from_yaml(&format!("policy: {{skip_rules: [{wrong}]}}")).unwrap_err().to_string();
        assert!(error.contains(words), "{wrong}: {error}");
    }
}
