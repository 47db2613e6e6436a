//! Context of a request, passed to every operation of the service.

use crate::auth::user::User;

/// Context common to all requests.
#[derive(Debug, Clone, Copy)]
pub struct RequestContext<'a> {
    /// Authenticated user.
    pub user: &'a User,
    /// Id of the request in logs.
    pub request_id: &'a str,
    /// W3C `traceparent` of the client.
    pub traceparent: Option<&'a str>,
}
