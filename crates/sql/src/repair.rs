//! Mends a query without a model: what is asked, what comes of it, and the search (`search.rs`) carried out with a database
//! that answers at once.

use schemars::JsonSchema;
use serde::Serialize;

use crate::dialect::{Classified, EngineError};
use crate::finding::{Applicability, Finding};
use crate::review::{Approved, Context};
use crate::search::{Next, Search};

/// What is asked.
#[derive(Clone, Copy)]
pub struct Request<'r> {
    /// The text that failed, or may fail.
    pub text: &'r str,
    /// Schema, dialect and policy.
    pub context: Context<'r>,
    /// The question that the query answers, and what is known about it; words that tell candidates apart.
    pub question: Option<&'r str>,
    /// The most doubtful fix that may be applied.
    pub apply: Applicability,
    /// What the database said against the text, where it did: rules may then mend what a review alone takes for fine.
    pub error: Option<&'r Classified>,
}

/// What became of a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Nothing is wrong with it, so nothing was changed.
    Untouched,
    /// Every error is gone, and the database, if one was asked, would run it.
    Mended,
    /// Some error could not be mended.
    GaveUp,
    /// It is not a question, or asks for what may not be read.
    Refused,
}

/// Whether a repaired query probably asks what its author meant. That its names resolve is proved; this is judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MeaningClaim {
    /// The fixes left the meaning alone, the database returns rows, and no warning is left.
    Likely,
    /// Something speaks against it: the doubts say what.
    Doubtful,
}

/// A fix that was applied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Applied {
    /// The rule whose finding it mends.
    pub code: &'static str,
    /// How sure it is.
    pub applicability: Applicability,
    /// Why it is right.
    pub why: String,
}

/// The outcome.
#[derive(Debug, Clone)]
pub struct Repair {
    /// What became of the query.
    pub status: Status,
    /// The query now; the best attempt if it was given up. One that was given up and has a Suggested fix among `applied` runs,
    /// but nothing proves that it is what was meant.
    pub sql: String,
    /// What was done, in order.
    pub applied: Vec<Applied>,
    /// What is still to say about it.
    pub findings: Vec<Finding>,
    /// What speaks against the meaning of what was changed; nothing for a query that was not changed.
    pub doubts: Vec<String>,
}

impl Repair {
    /// Returns what is claimed of the meaning; `None` where nothing was changed.
    pub fn meaning(&self) -> Option<MeaningClaim> {
        match self.status {
            Status::Mended if self.doubts.is_empty() => Some(MeaningClaim::Likely),
            Status::Mended => Some(MeaningClaim::Doubtful),
            Status::GaveUp if !self.applied.is_empty() => Some(MeaningClaim::Doubtful),
            Status::Untouched | Status::GaveUp | Status::Refused => None,
        }
    }
}

/// A database that is asked about harmless queries while one is mended.
pub trait Judge {
    /// Its own dry run: whether it would run the query.
    fn runs(&self, query: &Approved) -> Result<(), EngineError>;

    /// Whether the query gives any row; `None` if that cannot be found out cheaply.
    fn gives_rows(&self, query: &Approved) -> Option<bool> {
        let _ = query;
        None
    }
}

/// Mends a query. Deterministic: the same request gives the same answer.
pub fn repair(request: &Request<'_>, judge: Option<&dyn Judge>) -> Repair {
    let mut search = Search::new(*request, judge.is_some()).with_guesses();
    loop {
        match search.next() {
            Next::Runs(query) => search.runs(judge.map_or(Ok(()), |j| j.runs(&query))),
            Next::Rows(query) => search.rows(judge.and_then(|j| j.gives_rows(&query))),
            Next::Done(repair) => return *repair,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::{MYSQL, POSTGRES, SQLITE, classify};

    #[test]
    fn l02_l05_what_the_database_said_steers_the_repair() {
        let policy = crate::Policy::default();
        for (dialect, sql, error, mended) in [
            (
                &SQLITE,
                "SELECT CONCAT(name, '!') FROM products",
                "no such function: CONCAT",
                Some("SELECT (name || '!') FROM products"),
            ),
            // A database that is too old for one function is too old for the others of its time.
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
            // The order of texts is as late, and no older words say it.
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
            // What no rule can mend is left as it is.
            (&SQLITE, "SELECT name FROM products", "database is locked", None),
            (&SQLITE, "SELECT upper(name) FROM products", "no such function: lower", None),
        ] {
            let ddl = include_str!("../tests/pages/shop.sql").replace('"', &dialect.quote.to_string());
            let schema = crate::Schema::from_ddl(&ddl, dialect).unwrap();
            let said = classify(dialect, &EngineError { message: error.into(), ..EngineError::default() });
            let request = Request {
                text: sql,
                context: Context { schema: Some(&schema), dialect, policy: &policy, question: None },
                question: None,
                apply: Applicability::Likely,
                error: Some(&said),
            };
            let repair = repair(&request, None);
            let status = if mended.is_some() { Status::Mended } else { Status::Untouched };
            assert_eq!((repair.status, repair.sql.as_str()), (status, mended.unwrap_or(sql)));
        }
    }
}
