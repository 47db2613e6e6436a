//! Constructors of audit log entries.

use crate::audit::log::AuditEntry;
use crate::audit::query_log::ExecutedQuery;
use crate::clock::unix_ms;
use crate::request_context::RequestContext;

pub(crate) fn audit_entry<'l>(
    ctx: &'l RequestContext<'_>,
    action: &'static str,
    database: &'l str,
    outcome: &'l str,
) -> AuditEntry<'l> {
    AuditEntry {
        at_ms: unix_ms(),
        request_id: ctx.request_id,
        user: ctx.user.id(),
        action,
        database,
        question: None,
        sql: None,
        rows: None,
        outcome,
        trace_id: None,
    }
}

/// Returns one entry per executed query.
pub(crate) fn query_entries<'l>(
    executed: &'l [ExecutedQuery],
    ctx: &'l RequestContext<'_>,
    database: &'l str,
    trace_id: Option<&'l str>,
) -> Vec<AuditEntry<'l>> {
    let each = executed.iter().map(|one| AuditEntry {
        at_ms: one.at_ms,
        sql: Some(&one.sql),
        rows: one.rows,
        trace_id,
        ..audit_entry(ctx, "query", database, one.outcome)
    });
    each.collect()
}
