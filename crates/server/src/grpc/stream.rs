//! Server-side streams.
//!
//! A client that disconnects cancels the work; a client that stops reading is not waited for.

use std::pin::Pin;
use std::time::Duration;

use futures_util::{Stream, stream};
use tokio::sync::mpsc::{self, Receiver, Sender};
use tonic::Status;

use crate::request_task::CancelOnDisconnect;

/// Timeout for sending an item, after which the client is considered stalled.
const SEND_TIMEOUT: Duration = Duration::from_secs(10);

/// Stream of response items, ended by an error status.
pub type ResponseStream<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

enum StreamMessage<T> {
    Item(T),
    End(Option<T>, Option<Status>),
}

/// Sending half of a response stream.
pub struct StreamSender<T>(Sender<StreamMessage<T>>);

impl<T> StreamSender<T> {
    /// Sends an item if the queue has room, and returns whether it was queued.
    pub fn try_send(&self, item: T) -> bool {
        self.0.try_send(StreamMessage::Item(item)).is_ok()
    }

    /// Sends an item, waiting for room up to the timeout, and returns whether it was queued.
    pub async fn send(&self, item: T) -> bool {
        self.0.send_timeout(StreamMessage::Item(item), SEND_TIMEOUT).await.is_ok()
    }

    /// Sends the last item and the final status.
    ///
    /// A stream dropped before this reports that it was cut off.
    pub async fn finish(self, item: Option<T>, status: Option<Status>) {
        self.0.send_timeout(StreamMessage::End(item, status), SEND_TIMEOUT).await.ok();
    }
}

enum StreamPhase<T> {
    Receiving(Receiver<StreamMessage<T>>, CancelOnDisconnect),
    Failing(Status),
    Done,
}

/// Creates a stream with a queue of `capacity` items.
///
/// If the client drops its end, `guard` is dropped.
pub fn channel<T: Send + 'static>(capacity: usize, guard: CancelOnDisconnect) -> (StreamSender<T>, ResponseStream<T>) {
    let (sender, receiver) = mpsc::channel(capacity);
    let responses = stream::unfold(StreamPhase::Receiving(receiver, guard), |phase| async move {
        match phase {
            StreamPhase::Done => None,
            StreamPhase::Failing(status) => Some((Err(status), StreamPhase::Done)),
            StreamPhase::Receiving(mut receiver, guard) => match receiver.recv().await {
                Some(StreamMessage::Item(item)) => Some((Ok(item), StreamPhase::Receiving(receiver, guard))),
                Some(StreamMessage::End(Some(item), None)) => Some((Ok(item), StreamPhase::Done)),
                Some(StreamMessage::End(Some(item), Some(status))) => Some((Ok(item), StreamPhase::Failing(status))),
                Some(StreamMessage::End(None, status)) => status.map(|status| (Err(status), StreamPhase::Done)),
                None => {
                    let message =
                        "the stream was aborted: the client did not read in time, or an internal error occurred";
                    Some((Err(Status::aborted(message)), StreamPhase::Done))
                }
            },
        }
    });
    (StreamSender(sender), Box::pin(responses))
}
