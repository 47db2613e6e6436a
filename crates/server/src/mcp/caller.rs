//! Caller of a tool: the authenticated caller of the HTTP request, or the local user of the pipe.

use std::sync::Arc;

use axum::http::request::Parts;
use querymend::{Problem, ProblemCode};
use rmcp::RoleServer;

use crate::auth::user::{Credentials, User};
use crate::caller::{Caller, TRACEPARENT_LENGTH};
use crate::request_context::RequestContext;
use crate::service::Service;

/// Caller of a tool.
pub struct McpCaller {
    user: User,
    request_id: String,
    traceparent: Option<String>,
    /// Caller over HTTP. Its request counts as in flight until this is dropped.
    _caller: Option<Arc<Caller>>,
}

impl McpCaller {
    /// Returns the caller of an MCP request.
    pub async fn from_request(
        context: &rmcp::service::RequestContext<RoleServer>,
        service: &Service,
    ) -> Result<Self, Problem> {
        let caller = match context.extensions.get::<Parts>() {
            Some(parts) => {
                let missing = || Problem::new(ProblemCode::Internal, "the request has no authenticated caller");
                Some(parts.extensions.get::<Arc<Caller>>().cloned().ok_or_else(missing)?)
            }
            None => None,
        };
        // A message's own trace context is more specific than that of the HTTP request.
        let of_message = context.meta.get("traceparent").and_then(|value| value.as_str());
        let of_message = of_message.filter(|text| text.len() == TRACEPARENT_LENGTH);
        let of_caller = caller.as_ref().and_then(|caller| caller.traceparent.as_deref());
        let traceparent = of_message.or(of_caller).map(str::to_owned);
        let (user, request_id) = match &caller {
            Some(caller) => (caller.user.clone(), caller.request_id.clone()),
            None => (service.authenticate(&Credentials::default()).await?, querymend::trace_id()),
        };
        Ok(Self { user, request_id, traceparent, _caller: caller })
    }

    /// Returns the user.
    pub fn user(&self) -> &User {
        &self.user
    }

    /// Returns the request context for calls to the service.
    pub fn context(&self) -> RequestContext<'_> {
        RequestContext { user: &self.user, request_id: &self.request_id, traceparent: self.traceparent.as_deref() }
    }
}
