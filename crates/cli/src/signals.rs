//! Ctrl-C handling: the first cancels the question, the second does not wait for it.

use std::sync::Arc;

use querymend::CancellationToken;
use tokio::runtime::Runtime;
use tokio::sync::Notify;

/// Runs a future to completion. Ctrl-C cancels it; returns `None` if Ctrl-C is pressed again before
/// it has stopped.
pub fn run_until_interrupted<T>(
    runtime: &Runtime,
    cancel: &CancellationToken,
    work: impl Future<Output = T>,
) -> Option<T> {
    let impatient = Arc::new(Notify::new());
    let listener = runtime.spawn({
        let (cancel, impatient) = (cancel.clone(), Arc::clone(&impatient));
        async move {
            // Without a handler, the default signal action terminates the process.
            while tokio::signal::ctrl_c().await.is_ok() {
                if cancel.is_cancelled() {
                    impatient.notify_one();
                }
                cancel.cancel();
            }
        }
    });
    let done = runtime.block_on(async {
        tokio::select! {
            biased;
            done = work => Some(done),
            () = impatient.notified() => None,
        }
    });
    listener.abort();
    done
}
