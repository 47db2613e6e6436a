//! Adds a rule of your own: it blocks queries, and its advice goes to the model, which tries again.
//!
//! ```sh
//! cargo run -p querymend-examples --example custom_rule
//! ```
//!
//! The output is:
//!
//! ```text
//! error[date-range-required]: `orders` is large: a query must restrict `ordered_on`
//! attempt 1: SELECT count(*) FROM orders -> date-range-required
//! attempt 2: SELECT count(*) FROM orders WHERE ordered_on >= '2024-01-01' -> ok
//! model received the advice: true
//! last check: date-range-required
//! rows: [[49]]
//! ```

#![allow(clippy::print_stdout, reason = "the output of the example")]

use std::error::Error;
use std::sync::Arc;

use querymend::{Config, Querymend};
use querymend_model::ScriptedModel;
use querymend_sql::diff::normalized_tokens;
use querymend_sql::validator::ValidationTarget;
use querymend_sql::{Finding, Policy, ReviewContext, Severity, Span, Validator, dialect, review};

/// Rejects queries on a large table that do not mention its date.
struct DateRangeRequired {
    table: &'static str,
    date: &'static str,
}

impl Validator for DateRangeRequired {
    fn name(&self) -> &'static str {
        "date-range-required"
    }

    fn validate(&self, target: &ValidationTarget<'_>) -> Vec<Finding> {
        // Tables of FROM as written: possibly qualified or quoted. CTEs are not among them.
        let is_table = |name: &&String| name.rsplit('.').next().is_some_and(|last| is_identifier(last, self.table));
        let Some(table) = target.references.tables.iter().find(is_table) else { return Vec::new() };
        // Tokens, so that the name in a comment or a string does not count.
        let tokens = normalized_tokens(&target.references.sql, target.dialect);
        if tokens.iter().any(|token| is_identifier(token, self.date)) {
            return Vec::new();
        }
        let start = target.text.find(table.as_str()).unwrap_or_default();
        let message = format!("`{table}` is large: a query must restrict `{}`", self.date);
        // An error blocks the query; a warning is returned with the answer.
        let finding = Finding::new(self.name(), Severity::Error, Span::new(start, start + table.len()), table, message);
        vec![finding.with_advice(format!("Add a condition on {}.{}.", self.table, self.date))]
    }
}

/// Returns whether a token is the identifier, in any case, with or without quotes.
fn is_identifier(token: &str, name: &str) -> bool {
    token.trim_matches(['"', '`']).eq_ignore_ascii_case(name)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let rule = Arc::new(DateRangeRequired { table: "orders", date: "ordered_on" });

    // In a review, the rule is part of the policy.
    let mut policy = Policy::default();
    policy.validators.register(rule.clone());
    let context = ReviewContext { schema: None, dialect: &dialect::SQLITE, policy: &policy, question: None };
    for finding in review("SELECT status FROM orders", &context).findings {
        println!("{}[{}]: {}", finding.severity.as_str(), finding.code, finding.message);
    }

    // In a question, it applies to every query that the model writes.
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("shop.db");
    querymend_engine::demo::write(&file)?;
    let engine = querymend_engine::open(&file.to_string_lossy())?;
    let model = Arc::new(ScriptedModel::new([
        "SELECT count(*) FROM orders",
        "SELECT count(*) FROM orders WHERE ordered_on >= '2024-01-01'",
    ]));
    let querymend = Querymend::new(Arc::from(engine), model.clone(), Config::default()).with_validator(rule);
    let answer = querymend.ask("How many orders were there in 2024?").await;

    for attempt in &answer.attempts {
        println!("attempt {}: {} -> {}", attempt.number, attempt.sql, attempt.finding.as_deref().unwrap_or("ok"));
    }
    let requests = model.requests();
    let feedback = requests.last().and_then(|request| request.messages.last()).map_or("", |message| &message.text);
    println!("model received the advice: {}", feedback.contains("Add a condition on orders.ordered_on."));
    println!("last check: {}", answer.metadata.guardrails_checked.last().map_or("", String::as_str));
    println!("rows: {}", serde_json::to_string(&answer.rows.unwrap_or_default().rows)?);
    Ok(())
}
