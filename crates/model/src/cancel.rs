//! The means to stop a request from elsewhere.

use std::sync::Arc;

use tokio::sync::watch;

/// A way to stop requests from elsewhere: clones share one flag, and what is cancelled stays cancelled.
#[derive(Debug, Clone)]
pub struct Cancel(Arc<watch::Sender<bool>>);

impl Default for Cancel {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(false)))
    }
}

impl Cancel {
    /// One that is not cancelled.
    pub fn new() -> Self {
        Self::default()
    }

    /// Stops every request that holds a clone of this one.
    pub fn cancel(&self) {
        self.0.send_replace(true);
    }

    /// Whether [`Cancel::cancel`] was called.
    pub fn is_cancelled(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits until [`Cancel::cancel`] is called. It returns at once if that has happened already.
    pub async fn cancelled(&self) {
        // The wait can only fail when the sender is gone, and the sender is ours.
        let _ = self.0.subscribe().wait_for(|cancelled| *cancelled).await;
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn clones_share_one_flag_and_all_who_wait_are_woken() {
        let cancel = Cancel::new();
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
