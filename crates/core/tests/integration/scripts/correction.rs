//! Queries that come without a question: corrected by rules, by the model, and checked by validators of one's own.

use std::sync::Arc;

use querymend::correction::CorrectionRequest;
use querymend::{AnswerStatus, CancellationToken, Config, ProblemCode, Querymend};
use querymend_model::{ScriptedModel, ScriptedReply};
use querymend_sql::validator::{ValidationTarget, Validator};
use querymend_sql::{Finding, RepairStatus, Severity, Span};
use serde_json::json;

use super::support::{QUESTION, Shop, hopeless, quiet, unreachable_model};

/// What no rule can correct.
const HOPELESS: &str = "SELECT flurb FROM products";

#[tokio::test]
async fn model_rewrites_queries_that_rules_cannot_repair() {
    let reply =
        |sql: &str| ScriptedReply::from(json!({"corrected_sql": sql, "correction_applied": "named it"}).to_string());
    for (line, success, sql) in [
        (reply("SELECT name FROM products"), true, "SELECT name FROM products"),
        // Prose and fences are read as well, and rules mend the rewrite.
        (ScriptedReply::from("Sure:\n```sql\nSELECT id FROM products\n```"), true, "SELECT product_id FROM products"),
        // Nothing passes that would fail, write, ask something else, or change nothing.
        (reply("SELECT blorp FROM products"), false, ""),
        (reply("DELETE FROM products"), false, ""),
        (reply("SELECT 1"), false, ""),
        (reply("select FLURB from products"), false, ""),
        (ScriptedReply::from("I cannot do that."), false, ""),
        (ScriptedReply::Fail(unreachable_model()), false, ""),
    ] {
        let said = format!("{line:?}");
        let script = Arc::new(ScriptedModel::new([line]));
        let shop = Shop::new();
        let querymend = Querymend::new(shop.engine(), script.clone(), quiet(Config::default()));
        let corrected =
            querymend.correct_with_model(&CorrectionRequest::new(HOPELESS), &CancellationToken::new()).await.unwrap();
        assert_eq!((corrected.success, corrected.corrected_sql.as_str()), (success, sql), "{said}: {corrected:?}");
        assert_eq!(corrected.correction_applied.starts_with("rewritten by the model"), success, "{said}");
        let [request] = &script.requests()[..] else { panic!("{said}") };
        assert_eq!(request.schema.as_ref().unwrap()["required"], json!(["corrected_sql", "correction_applied"]));
    }
}

#[tokio::test]
async fn skips_the_model_when_it_cannot_help() {
    let refused = CorrectionRequest::new("DELETE FROM products");
    let mended = CorrectionRequest::new("SELECT id FROM products");
    let safe = CorrectionRequest { apply: querymend_sql::Applicability::Safe, ..CorrectionRequest::new(HOPELESS) };
    let spent = CorrectionRequest { retry_count: 3, ..CorrectionRequest::new(HOPELESS) };
    for asked in [refused, mended, safe, spent] {
        let script = Arc::new(ScriptedModel::new(["SELECT name FROM products"]));
        let shop = Shop::new();
        let querymend = Querymend::new(shop.engine(), script.clone(), quiet(Config::default()));
        let corrected = querymend.correct_with_model(&asked, &CancellationToken::new()).await.unwrap();
        assert!(script.requests().is_empty(), "{asked:?}");
        assert_ne!(corrected.corrected_sql, "SELECT name FROM products");
    }
}

#[tokio::test]
async fn accepts_schema_context_with_its_own_dialect() {
    let shop = Shop::new();
    let querymend = Querymend::new(shop.engine(), Arc::new(ScriptedModel::new([""; 0])), quiet(Config::default()));
    let asked = |dialect: &str| CorrectionRequest {
        schema_context: Some(json!("CREATE TABLE people (name TEXT)")),
        dialect: Some(dialect.into()),
        ..CorrectionRequest::new("SELECT nme FROM people")
    };
    let corrected = querymend.correct(&asked("postgres")).await.unwrap();
    assert_eq!((corrected.status, corrected.corrected_sql.as_str()), (RepairStatus::Mended, "SELECT name FROM people"));
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

    fn validate(&self, subject: &ValidationTarget<'_>) -> Vec<Finding> {
        let Some(at) = subject.text.find('*') else { return Vec::new() };
        let message = "all columns are selected; name those that are needed";
        vec![Finding::new("", Severity::Error, Span::new(at, at + 1), "*", message).with_advice("Name the columns.")]
    }
}

#[tokio::test]
async fn registered_validator_blocks_queries() {
    let lines = ["SELECT * FROM products", "SELECT name FROM products"];
    let script = Arc::new(ScriptedModel::new(lines));
    let shop = Shop::new();
    let querymend = Querymend::new(shop.engine(), script.clone(), quiet(Config::default()));
    let querymend = querymend.with_validator(Arc::new(NoStar));
    let answer = querymend.ask(QUESTION).await;
    assert_eq!((answer.status, answer.sql.as_deref()), (AnswerStatus::Answered, Some(lines[1])), "{answer:?}");
    assert_eq!(answer.attempts[0].finding.as_deref(), Some("no-star"));
    assert!(script.requests()[1].messages.last().unwrap().text.contains("Name the columns."));
    let guardrails = &answer.metadata.guardrails_checked;
    assert!(guardrails.starts_with(&["llm_output".into(), "safety".into()]), "{guardrails:?}");
    assert_eq!(guardrails.last().map(String::as_str), Some("no-star"));
}

#[tokio::test]
async fn skipped_rules_are_not_checked() {
    let config = Config::from_yaml("policy: {skip_rules: [names]}").unwrap();
    let shop = Shop::new();
    let querymend = Querymend::new(shop.engine(), Arc::new(ScriptedModel::new([hopeless("flurb")])), quiet(config));
    let answer = querymend.ask(QUESTION).await;
    // The database finds what nobody looked for before.
    assert!(!answer.attempts[0].held_back, "{answer:?}");
    assert!(!answer.metadata.guardrails_checked.contains(&"names".to_string()));
    for (wrong, words) in [("safety", "always checked"), ("writes-data", "always checked"), ("nmes", "no rule")] {
        let error = Config::from_yaml(&format!("policy: {{skip_rules: [{wrong}]}}")).unwrap_err().to_string();
        assert!(error.contains(words), "{wrong}: {error}");
    }
}
