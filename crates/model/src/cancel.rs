//! Cancellation of requests.

use std::sync::Arc;

use tokio::sync::watch;

/// Cancellation signal for requests; clones share one flag, which cannot be reset. Asynchronous:
/// requests await it.
#[derive(Debug, Clone)]
pub struct CancelSignal(Arc<watch::Sender<bool>>);

impl Default for CancelSignal {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(false)))
    }
}

impl CancelSignal {
    /// Creates a signal that is not cancelled.
    pub fn new() -> Self {
        Self::default()
    }

    /// Cancels every request that holds a clone of this signal.
    pub fn cancel(&self) {
        self.0.send_replace(true);
    }

    /// Returns whether [`CancelSignal::cancel`] was called.
    pub fn is_cancelled(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits until [`CancelSignal::cancel`] is called; returns immediately if it already was.
    pub async fn cancelled(&self) {
        // The wait fails only if the sender is dropped, and `self` owns it.
        let _ = self.0.subscribe().wait_for(|cancelled| *cancelled).await;
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn clones_share_one_flag_and_wake_all_waiters() {
        let cancel = CancelSignal::new();
        let waiting: Vec<_> = (0..8)
            .map(|_| {
                let cancel = cancel.clone();
                tokio::spawn(async move { cancel.cancelled().await })
            })
            .collect();
        assert!(!cancel.is_cancelled());
        assert!(tokio::time::timeout(Duration::from_millis(5), cancel.cancelled()).await.is_err());
        cancel.clone().cancel();
        for one in waiting {
            one.await.unwrap();
        }
        assert!(cancel.is_cancelled());
        cancel.cancelled().await;
    }
}
