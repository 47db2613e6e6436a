//! Who calls a tool: the caller of the HTTP request that it came with, or whoever sits at the other end of the pipe.

use std::sync::Arc;

use axum::http::request::Parts;
use querymend::{Problem, ProblemCode};
use rmcp::RoleServer;
use rmcp::service::RequestContext;

use crate::http::Caller;
use crate::service::{Asking, Service};
use crate::user::{Credentials, User};

/// Who calls.
pub struct Who {
    user: User,
    request_id: String,
    traceparent: Option<String>,
    /// Somebody who was let in over HTTP. As long as this is held, their request counts as running.
    _caller: Option<Arc<Caller>>,
}

impl Who {
    /// Who sent a request.
    pub async fn sent(context: &RequestContext<RoleServer>, service: &Service) -> Result<Self, Problem> {
        let caller = match context.extensions.get::<Parts>() {
            Some(parts) => {
                let nobody = || Problem::new(ProblemCode::Internal, "nobody knows who sent the request");
                Some(parts.extensions.get::<Arc<Caller>>().cloned().ok_or_else(nobody)?)
            }
            None => None,
        };
        // What a message says of its trace is nearer to it than what the connection says.
        let said = context.meta.get("traceparent").and_then(|value| value.as_str()).filter(|text| text.len() == 55);
        let of_caller = caller.as_ref().and_then(|caller| caller.traceparent.as_deref());
        let traceparent = said.or(of_caller).map(str::to_owned);
        let (user, request_id) = match &caller {
            Some(caller) => (caller.user.clone(), caller.request_id.clone()),
            None => (service.user(&Credentials::default()).await?, querymend::trace_id()),
        };
        Ok(Self { user, request_id, traceparent, _caller: caller })
    }

    /// The user.
    pub fn user(&self) -> &User {
        &self.user
    }

    /// The same, as the service wants it.
    pub fn asking(&self) -> Asking<'_> {
        Asking { user: &self.user, request_id: &self.request_id, traceparent: self.traceparent.as_deref() }
    }
}
