//! Progress notifications, one per stage of a question, for clients that request them.

use std::time::Duration;

use querymend::Event;
use rmcp::RoleServer;
use rmcp::model::ProgressNotificationParam;
use rmcp::service::RequestContext;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::wire_name::wire_name;

/// Maximum number of stages queued for a slow client. Further ones are dropped, because the answer
/// does not depend on them.
const QUEUE_SIZE: usize = 64;
/// Maximum time that the answer waits for pending notifications.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(2);

/// Sends progress notifications; does nothing if the client did not request them.
pub struct ProgressReporter(Option<(mpsc::Sender<String>, JoinHandle<()>)>);

impl ProgressReporter {
    /// Creates the reporter for a request.
    pub fn from_request(context: &RequestContext<RoleServer>) -> Self {
        let Some(token) = context.meta.get_progress_token() else { return Self(None) };
        let peer = context.peer.clone();
        let (sender, mut receiver) = mpsc::channel::<String>(QUEUE_SIZE);
        let task = tokio::spawn(async move {
            let mut step = 0.0;
            while let Some(message) = receiver.recv().await {
                step += 1.0;
                let notification = ProgressNotificationParam::new(token.clone(), step).with_message(message);
                if peer.notify_progress(notification).await.is_err() {
                    break;
                }
            }
        });
        Self(Some((sender, task)))
    }

    /// Queues a notification if the event begins a stage.
    pub fn on_event(&self, event: &Event) {
        if let (Some((sender, _)), Event::Stage { stage, attempt }) = (&self.0, event) {
            let attempt = if *attempt > 1 { format!(" (attempt {attempt})") } else { String::new() };
            sender.try_send(format!("{}{attempt}", wire_name(stage).replace('_', " "))).ok();
        }
    }

    /// Flushes pending notifications, so that they precede the answer.
    pub async fn finish(self) {
        if let Some((sender, task)) = self.0 {
            drop(sender);
            tokio::time::timeout(FLUSH_TIMEOUT, task).await.ok();
        }
    }
}
