//! `fix --batch`: every line mended, where it can be.

use querymend::correct::succeeded;
use querymend_sql::{Applicability, Applied, MeaningClaim, NotIndexed, Status};
use serde::{Deserialize, Serialize};

use super::job::{Answer, Asked, Found, Job};
use crate::failure::Failure;
use crate::mend::{Broken, Judge, Judges, mend};
use querymend::trace_id;

/// Mends every line.
pub struct Mending {
    /// The most doubtful fix that is applied.
    pub apply: Applicability,
    /// Whether the database of a line is asked if it would run what was mended.
    pub dry_run: bool,
    /// Databases that each thread keeps open.
    pub open: usize,
}

/// What only `fix` reads of a line.
#[derive(Deserialize)]
struct More {
    error: Option<String>,
}

#[derive(Serialize)]
struct Body {
    status: Status,
    sql: String,
    fixes: Vec<Applied>,
    findings: Vec<Found>,
    names_resolved: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    meaning: Option<MeaningClaim>,
    doubts: Vec<String>,
    trace_id: String,
    /// Columns of the query's tables whose values are not indexed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    not_indexed: Vec<NotIndexed>,
    /// Lookups that the database did not answer in time; they count as unknown.
    #[serde(skip_serializing_if = "is_zero")]
    unanswered_lookups: usize,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &usize) -> bool {
    *number == 0
}

impl Job for Mending {
    const OUTCOMES: &'static [&'static str] = &["untouched", "mended", "given up", "refused"];

    type Tools = Judges;

    fn tools(&self) -> Judges {
        Judges::new(self.open)
    }

    fn answer(&self, asked: &Asked<'_>, judges: &mut Judges) -> Result<Answer<impl Serialize>, Failure> {
        let more: More = serde_json::from_str(asked.line)
            .map_err(|error| Failure::new(format!("the line cannot be read: {error}")).hint("error is a text"))?;
        let broken = Broken {
            text: asked.sql,
            context: asked.context(),
            question: asked.question.as_deref(),
            error: more.error.as_deref(),
            apply: self.apply,
        };
        let database = asked.known.database.as_deref().filter(|_| self.dry_run);
        let judge = database.map(|address| judges.judge(address)).transpose()?;
        let repair = mend(&broken, judge.as_ref())?;
        let outcome = match repair.status {
            Status::Untouched => "untouched",
            Status::Mended => "mended",
            Status::GaveUp => "given up",
            Status::Refused => "refused",
        };
        let not_indexed = asked.known.not_indexed_in(&repair.sql, &asked.context());
        let body = Body {
            names_resolved: succeeded(repair.status),
            meaning: repair.meaning(),
            doubts: repair.doubts,
            status: repair.status,
            sql: repair.sql,
            fixes: repair.applied,
            findings: repair.findings.into_iter().map(Found::from).collect(),
            trace_id: trace_id(),
            not_indexed,
            unanswered_lookups: judge.as_ref().map_or(0, Judge::timeouts),
        };
        Ok(Answer { outcome, body })
    }

    /// What was not reviewed is not run.
    fn unseen(&self, sql: &str) -> impl Serialize {
        Body {
            status: Status::Refused,
            sql: sql.to_string(),
            fixes: Vec::new(),
            findings: Vec::new(),
            names_resolved: false,
            meaning: None,
            doubts: Vec::new(),
            trace_id: trace_id(),
            not_indexed: Vec::new(),
            unanswered_lookups: 0,
        }
    }
}
