//! Tasks of requests. They outlive a client that disconnects: its work is cancelled, but still
//! reaches the audit log.

use std::sync::Arc;

use querymend::{Answer, CancellationToken, Problem};
use tracing::Instrument;

use crate::caller::Caller;
use crate::error::panic_problem;
use crate::service::{AskRequest, Service};

/// Cancels the work of a request when dropped, which happens if the client disconnects.
pub struct CancelOnDisconnect(pub CancellationToken);

impl Drop for CancelOnDisconnect {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

/// Runs a future in a separate task.
///
/// If the client disconnects, the work is cancelled but still reaches the audit log.
pub async fn run_to_completion<T, E>(
    cancel: CancellationToken,
    work: impl Future<Output = Result<T, E>> + Send + 'static,
) -> Result<T, E>
where
    T: Send + 'static,
    E: From<Problem> + Send + 'static,
{
    let guard = CancelOnDisconnect(cancel);
    let done = tokio::spawn(work.in_current_span()).await;
    drop(guard);
    done.unwrap_or_else(|_| Err(panic_problem().into()))
}

/// Answers a question in a separate task.
pub async fn run_ask(service: Arc<Service>, caller: Arc<Caller>, request: AskRequest) -> Result<Answer, Problem> {
    let cancel = CancellationToken::new();
    let work = {
        let cancel = cancel.clone();
        async move { service.ask(&caller.context(), &request, &mut |_| {}, &cancel).await }
    };
    run_to_completion(cancel, work).await
}
