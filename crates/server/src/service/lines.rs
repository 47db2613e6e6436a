//! Lines of the audit log.

use super::{Asking, now_ms};
use crate::audit::Line;
use crate::sent::Sent;

pub(super) fn line<'l>(asking: &'l Asking<'_>, action: &'static str, database: &'l str, outcome: &'l str) -> Line<'l> {
    Line {
        at_ms: now_ms(),
        request_id: asking.request_id,
        user: asking.user.name(),
        action,
        database,
        question: None,
        sql: None,
        rows: None,
        outcome,
        trace_id: None,
    }
}

/// A line for each query that was sent.
pub(super) fn lines_of<'l>(
    sent: &'l [Sent],
    asking: &'l Asking<'_>,
    database: &'l str,
    trace_id: Option<&'l str>,
) -> Vec<Line<'l>> {
    let each = sent.iter().map(|one| Line {
        at_ms: one.at_ms,
        sql: Some(&one.sql),
        rows: one.rows,
        trace_id,
        ..line(asking, "query", database, one.outcome)
    });
    each.collect()
}
