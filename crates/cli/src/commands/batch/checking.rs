//! `check --batch`: a verdict for every line.

use querymend_sql::{NotIndexed, Verdict, review};
use serde::Serialize;

use super::job::{Answer, Asked, Found, Job};
use crate::failure::Failure;

/// Reviews every line.
pub struct Checking;

#[derive(Serialize)]
struct Body {
    verdict: Verdict,
    findings: Vec<Found>,
    /// Columns of the query's tables whose values are not indexed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    not_indexed: Vec<NotIndexed>,
}

impl Job for Checking {
    const OUTCOMES: &'static [&'static str] = &["approved", "refused"];

    type Tools = ();

    fn tools(&self) {}

    fn answer(&self, asked: &Asked<'_>, (): &mut ()) -> Result<Answer<impl Serialize>, Failure> {
        let review = review(asked.sql, &asked.context());
        let verdict = review.verdict();
        let outcome = match verdict {
            Verdict::Approved => "approved",
            Verdict::Refused => "refused",
        };
        let not_indexed = asked.known.not_indexed(&review.extracted.tables);
        let findings = review.findings.into_iter().map(Found::from).collect();
        Ok(Answer { outcome, body: Body { verdict, findings, not_indexed } })
    }

    /// What was not reviewed is not run.
    fn unseen(&self, _sql: &str) -> impl Serialize {
        Body { verdict: Verdict::Refused, findings: Vec::new(), not_indexed: Vec::new() }
    }
}
