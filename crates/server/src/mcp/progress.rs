//! Progress of a question, for clients that asked for it: one notification for each stage.

use std::time::Duration;

use querymend::Event;
use rmcp::RoleServer;
use rmcp::model::ProgressNotificationParam;
use rmcp::service::RequestContext;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::service::word;

/// Stages that wait for a client that reads slowly. What does not fit is left out: the answer does not depend on it.
const WAITING: usize = 64;
/// How long an answer waits for its stages to be told first.
const PATIENCE: Duration = Duration::from_secs(2);

/// Tells a client how far its question is; nothing, where it did not ask for it.
pub struct Progress(Option<(mpsc::Sender<String>, JoinHandle<()>)>);

impl Progress {
    /// For the client that sent a request.
    pub fn of(context: &RequestContext<RoleServer>) -> Self {
        let Some(token) = context.meta.get_progress_token() else { return Self(None) };
        let peer = context.peer.clone();
        let (tell, mut hear) = mpsc::channel::<String>(WAITING);
        let task = tokio::spawn(async move {
            let mut step = 0.0;
            while let Some(message) = hear.recv().await {
                step += 1.0;
                let told = ProgressNotificationParam::new(token.clone(), step).with_message(message);
                if peer.notify_progress(told).await.is_err() {
                    // The client is gone.
                    break;
                }
            }
        });
        Self(Some((tell, task)))
    }

    /// Something happened.
    pub fn hear(&self, event: &Event) {
        if let (Some((tell, _)), Event::Stage { stage, attempt }) = (&self.0, event) {
            let attempt = if *attempt > 1 { format!(" (attempt {attempt})") } else { String::new() };
            tell.try_send(format!("{}{attempt}", word(stage).replace('_', " "))).ok();
        }
    }

    /// Nothing more will: what was heard is told before the answer is.
    pub async fn end(self) {
        if let Some((tell, task)) = self.0 {
            drop(tell);
            tokio::time::timeout(PATIENCE, task).await.ok();
        }
    }
}
