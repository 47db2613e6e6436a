//! Operations on SQL that clients write: check, correct, run, find values, explain empty results.

use std::time::Instant;

use querymend::correction::{CorrectionRequest, CorrectionResponse};
use querymend::sql_api::{CheckReport, EmptyResultReport, MatchingValue, QueryError, QueryResult};
use querymend::{CancellationToken, Problem, ProblemCode};
use querymend_engine::Limits;

use super::{Service, SqlRequest};
use crate::audit::entries::{audit_entry, query_entries};
use crate::audit::log::AuditEntry;
use crate::audit::query_log::QueryLog;
use crate::request_context::RequestContext;
use crate::wire_name::wire_name;

/// Maximum length of a search text for values, in bytes.
const MAX_VALUE_BYTES: usize = 1_000;

impl Service {
    /// Reviews a query without executing it.
    pub async fn check(&self, ctx: &RequestContext<'_>, query: &SqlRequest) -> Result<CheckReport, Problem> {
        let tenant = self.tenant(ctx.user, query.database.as_deref())?;
        tenant.querymend.check(&query.sql, query.question.as_deref()).await
    }

    /// Corrects a query by rules.
    ///
    /// If they give up and `with_model` is set, the model is asked, if there is one.
    pub async fn correct(
        &self,
        ctx: &RequestContext<'_>,
        database: Option<&str>,
        mut request: CorrectionRequest,
        with_model: bool,
        cancel: &CancellationToken,
    ) -> Result<CorrectionResponse, Problem> {
        // The request brings its own tables, so any database that the user may query has the right
        // policy.
        let any = match (database, &request.schema_context) {
            (None, Some(_)) => self.any_database(ctx.user, request.dialect.as_deref())?,
            _ => None,
        };
        let tenant = self.tenant(ctx.user, database.or(any.as_deref()))?;
        // The authenticated user overrides the one that the request claims.
        if self.requires_credentials() {
            request.user_id.clone_from(&ctx.user.id);
        }
        let dialect = tenant.querymend.engine().dialect();
        self.fill_last_error(ctx.user, &mut request, dialect)?;
        let began = Instant::now();
        let query_log = QueryLog::default();
        let corrected = if with_model {
            query_log.scope(tenant.querymend.correct_with_model(&request, cancel)).await
        } else {
            query_log.scope(tenant.querymend.correct(&request)).await
        };
        let (executed, failed) = (query_log.take(), corrected.as_ref().err().map(|problem| wire_name(&problem.code)));
        let mut entries = query_entries(&executed, ctx, &tenant.name, None);
        let sql = Some(request.original_query.as_str());
        if let Some(outcome) = &failed {
            entries.push(AuditEntry { sql, ..audit_entry(ctx, "correct", &tenant.name, outcome) });
            self.audit.write_all(&entries).await?;
        }
        let corrected = corrected?;
        self.record_error(ctx.user, &request, &corrected, dialect);
        let (origin, took) = (tenant.origin(ctx), began.elapsed());
        self.observers.iter().for_each(|observer| observer.on_correction(&origin, &corrected, took));
        let outcome = wire_name(&corrected.status);
        let trace_id = Some(corrected.trace_id.as_str());
        entries.push(AuditEntry { sql, trace_id, ..audit_entry(ctx, "correct", &tenant.name, &outcome) });
        self.audit.write_all(&entries).await?;
        Ok(corrected)
    }

    /// Reviews a query and executes it without changes.
    pub async fn run(
        &self,
        ctx: &RequestContext<'_>,
        query: &SqlRequest,
        cancel: &CancellationToken,
    ) -> Result<QueryResult, QueryError> {
        let tenant = self.tenant(ctx.user, query.database.as_deref())?;
        let own = tenant.querymend.config().limits();
        let limits = Limits { rows: query.max_rows.unwrap_or(own.rows).clamp(1, own.rows), ..own };
        let began = Instant::now();
        let ran = tenant.querymend.run(&query.sql, &limits, cancel).await;
        let (origin, took) = (tenant.origin(ctx), began.elapsed());
        self.observers.iter().for_each(|observer| observer.on_run(&origin, &ran, took));
        let (sql, rows, outcome) = match &ran {
            Ok(ran) => (ran.sql.as_str(), Some(ran.rows.rows.len()), "ran".to_string()),
            Err(error) => (query.sql.as_str(), None, wire_name(&error.problem.code)),
        };
        self.audit
            .write(&AuditEntry { sql: Some(sql), rows, ..audit_entry(ctx, "run", &tenant.name, &outcome) })
            .await?;
        ran
    }

    /// Returns the database values that match a text.
    pub async fn find_values(
        &self,
        ctx: &RequestContext<'_>,
        database: Option<&str>,
        text: &str,
        target_column: Option<(&str, &str)>,
    ) -> Result<Vec<MatchingValue>, Problem> {
        if text.len() > MAX_VALUE_BYTES {
            return Err(Problem::new(ProblemCode::TooLarge, format!("`word` has more than {MAX_VALUE_BYTES} bytes")));
        }
        let tenant = self.tenant(ctx.user, database)?;
        let found = tenant.querymend.find_values(text, target_column).await;
        let outcome = found.as_ref().map_or_else(|problem| wire_name(&problem.code), |_| "ran".to_string());
        let rows = found.as_ref().ok().map(Vec::len);
        let line = AuditEntry { question: Some(text), rows, ..audit_entry(ctx, "values", &tenant.name, &outcome) };
        self.audit.write(&line).await?;
        found
    }

    /// Explains an empty result.
    pub async fn explain_empty(
        &self,
        ctx: &RequestContext<'_>,
        query: &SqlRequest,
        cancel: &CancellationToken,
    ) -> Result<EmptyResultReport, QueryError> {
        let tenant = self.tenant(ctx.user, query.database.as_deref())?;
        let query_log = QueryLog::default();
        let report = query_log.scope(tenant.querymend.explain_empty(&query.sql, cancel)).await;
        let outcome = report.as_ref().map_or_else(|error| wire_name(&error.problem.code), |_| "ran".to_string());
        let executed = query_log.take();
        let mut entries = query_entries(&executed, ctx, &tenant.name, None);
        entries.push(AuditEntry { sql: Some(&query.sql), ..audit_entry(ctx, "explain", &tenant.name, &outcome) });
        self.audit.write_all(&entries).await?;
        report
    }
}
