//! Ctrl-C: the first stops the question, the second does not wait for it.

use std::sync::Arc;

use querymend::Cancel;
use tokio::runtime::Runtime;
use tokio::sync::Notify;

/// Does some work until it is done. Ctrl-C cancels it; nothing comes back if it is pressed again before that has worked.
pub fn guarded<T>(runtime: &Runtime, cancel: &Cancel, work: impl Future<Output = T>) -> Option<T> {
    let impatient = Arc::new(Notify::new());
    let listener = runtime.spawn({
        let (cancel, impatient) = (cancel.clone(), Arc::clone(&impatient));
        async move {
            // Without a handler the system stops the program itself.
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
