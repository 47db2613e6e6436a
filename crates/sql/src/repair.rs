//! Repairs a query without a model.
//!
//! Defines the request and the outcome, and runs the search (`search.rs`) against a synchronous
//! database.

pub(crate) mod candidates;
pub(crate) mod interpretations;
pub(crate) mod node;
pub(crate) mod search;
use schemars::JsonSchema;
use serde::Serialize;

use crate::context::ReviewContext;
use crate::dialect::{ClassifiedError, EngineError};
use crate::finding::{Applicability, Finding};
use crate::repair::search::{RepairSearch, SearchStep};
use crate::review::Approved;

/// Input of a repair.
#[derive(Clone, Copy)]
pub struct RepairRequest<'r> {
    /// Text that failed or may fail.
    pub text: &'r str,
    /// Schema, dialect and policy.
    pub context: ReviewContext<'r>,
    /// Question that the query answers, with related knowledge; used to rank candidates.
    pub question: Option<&'r str>,
    /// Least certain fix that may be applied.
    pub max_applicability: Applicability,
    /// Error that the database reported for the text.
    ///
    /// With it, rules can repair a query that a review alone considers fine.
    pub error: Option<&'r ClassifiedError>,
}

/// Status of a repair.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
// The schema name is part of the API contract.
#[schemars(rename = "CorrectStatus")]
pub enum RepairStatus {
    /// Nothing is wrong with the query, so it was not changed.
    Untouched,
    /// All errors were repaired, and the database, if there is one, would run the query.
    Mended,
    /// Some error could not be repaired.
    GaveUp,
    /// The text is not a read query, or it reads protected data.
    Refused,
}

/// Claim about the meaning of a repaired query.
///
/// It is proved that the names resolve; that the query asks what its author meant is an estimate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MeaningClaim {
    /// The fixes preserve the meaning, the database returns rows, and there are no warnings.
    Likely,
    /// There are doubts about the meaning; `doubts` lists them.
    Doubtful,
}

/// Fix that was applied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct AppliedFix {
    /// Code of the rule whose finding it repairs.
    pub code: &'static str,
    /// Certainty of the fix.
    pub applicability: Applicability,
    /// Reason for the fix, in one sentence.
    pub why: String,
}

/// Result of a repair.
#[derive(Debug, Clone)]
pub struct RepairOutcome {
    /// Status of the repair.
    pub status: RepairStatus,
    /// Repaired query, or the best attempt if repair gave up.
    ///
    /// If repair gave up and `applied` contains a Suggested fix, the query runs, but nothing proves
    /// that it is what was meant.
    pub sql: String,
    /// Applied fixes, in order.
    pub applied: Vec<AppliedFix>,
    /// Remaining findings.
    pub findings: Vec<Finding>,
    /// Doubts about the meaning of the changes; empty if nothing was changed.
    pub doubts: Vec<String>,
}

impl RepairOutcome {
    /// Returns the claim about the meaning; `None` if nothing was changed.
    pub fn meaning(&self) -> Option<MeaningClaim> {
        match self.status {
            RepairStatus::Mended if self.doubts.is_empty() => Some(MeaningClaim::Likely),
            RepairStatus::Mended => Some(MeaningClaim::Doubtful),
            RepairStatus::GaveUp if !self.applied.is_empty() => Some(MeaningClaim::Doubtful),
            RepairStatus::Untouched | RepairStatus::GaveUp | RepairStatus::Refused => None,
        }
    }
}

/// Database that answers safe queries during a repair.
pub trait DatabaseOracle {
    /// Returns an error if the database would not run the query.
    fn dry_run(&self, query: &Approved) -> Result<(), EngineError>;

    /// Returns whether the query returns any row; `None` if that is too expensive to determine.
    fn returns_rows(&self, query: &Approved) -> Option<bool> {
        let _ = query;
        None
    }
}

/// Repairs a query. Deterministic: equal requests have equal outcomes.
pub fn repair(request: &RepairRequest<'_>, oracle: Option<&dyn DatabaseOracle>) -> RepairOutcome {
    let mut search = RepairSearch::new(*request, oracle.is_some()).with_speculative_fixes();
    loop {
        match search.advance() {
            SearchStep::DryRun(query) => search.answer_dry_run(oracle.map_or(Ok(()), |o| o.dry_run(&query))),
            SearchStep::ReturnsRows(query) => search.answer_returns_rows(oracle.and_then(|o| o.returns_rows(&query))),
            SearchStep::Done(repair) => return *repair,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::{MYSQL, POSTGRES, SQLITE, classify};

    #[test]
    fn uses_engine_error_to_steer_repair() {
        let policy = crate::Policy::default();
        for (dialect, sql, error, repaired) in [
            (
                &SQLITE,
                "SELECT CONCAT(name, '!') FROM products",
                "no such function: CONCAT",
                Some("SELECT (name || '!') FROM products"),
            ),
            // A database that is too old for one function is too old for others introduced with it.
            (
                &SQLITE,
                "SELECT IF(stock > 3, CONCAT(name, stock + 1), STRING_AGG(name, ', ')) FROM products",
                "no such function: STRING_AGG",
                Some(
                    "SELECT iif(stock > 3, (COALESCE(name, '') || COALESCE(stock + 1, '')), group_concat(name, ', ')) FROM products",
                ),
            ),
            (
                &SQLITE,
                "SELECT CONCAT_WS(', ', category, name) FROM product",
                "no such table: product",
                Some("SELECT SUBSTR(COALESCE(', ' || category, '') || COALESCE(', ' || name, ''), 3) FROM products"),
            ),
            // ORDER BY in the aggregate is as recent as the function, and has no older equivalent.
            (
                &SQLITE,
                "SELECT STRING_AGG(name, ', ' ORDER BY name) FROM products",
                "no such function: STRING_AGG",
                None,
            ),
            (
                &POSTGRES,
                "SELECT price / (stock - 1) FROM products",
                "division by zero",
                Some("SELECT price / NULLIF((stock - 1), 0) FROM products"),
            ),
            (
                &MYSQL,
                "SELECT name FROM products WHERE product_id = (SELECT product_id FROM reviews)",
                "Subquery returns more than 1 row",
                Some("SELECT name FROM products WHERE product_id IN (SELECT product_id FROM reviews)"),
            ),
            (
                &SQLITE,
                "SELECT o.order_id FROM orders AS o JOIN customers AS c ON o.customer_id = c.customer_id \
                 WHERE signed_up = (SELECT MAX(order_date) FROM products WHERE price > 3)",
                "misuse of aggregate: MAX()",
                None,
            ),
            (
                &SQLITE,
                "SELECT name FROM products WHERE stock = (SELECT MAX(price) FROM order_items)",
                "misuse of aggregate: MAX()",
                Some("SELECT name FROM products WHERE stock = (SELECT MAX(unit_price) FROM order_items)"),
            ),
            // No rule can repair these.
            (&SQLITE, "SELECT name FROM products", "database is locked", None),
            (&SQLITE, "SELECT upper(name) FROM products", "no such function: lower", None),
        ] {
            let ddl = include_str!("../tests/pages/shop.sql").replace('"', &dialect.identifier_quote.to_string());
            let schema = crate::Schema::from_ddl(&ddl, dialect).unwrap();
            let classified = classify(dialect, &EngineError { message: error.into(), ..EngineError::default() });
            let request = RepairRequest {
                text: sql,
                context: ReviewContext { schema: Some(&schema), dialect, policy: &policy, question: None },
                question: None,
                max_applicability: Applicability::Likely,
                error: Some(&classified),
            };
            let repair = repair(&request, None);
            let status = if repaired.is_some() { RepairStatus::Mended } else { RepairStatus::Untouched };
            assert_eq!((repair.status, repair.sql.as_str()), (status, repaired.unwrap_or(sql)));
        }
    }
}
