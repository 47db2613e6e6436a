//! What is told piece by piece. A client that goes away stops what is done for it; one that stops reading is not waited for.

use std::pin::Pin;
use std::time::Duration;

use futures_util::{Stream, stream};
use tokio::sync::mpsc::{self, Receiver, Sender};
use tonic::Status;

use crate::http::Gone;

/// Who takes nothing for so long has stopped reading.
const PATIENCE: Duration = Duration::from_secs(10);

/// The pieces, in order; an error ends them.
pub type Told<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

enum Piece<T> {
    More(T),
    Last(Option<T>, Option<Status>),
}

/// Tells a client something, piece by piece.
pub struct Teller<T>(Sender<Piece<T>>);

impl<T> Teller<T> {
    /// Tells a piece if there is room for it.
    pub fn offer(&self, piece: T) -> bool {
        self.0.try_send(Piece::More(piece)).is_ok()
    }

    /// Tells a piece as soon as there is room, and gives up if there is none for long. Gives back whether it is told.
    pub async fn send(&self, piece: T) -> bool {
        self.0.send_timeout(Piece::More(piece), PATIENCE).await.is_ok()
    }

    /// Tells the last piece, and the error that it ends with. A stream that does not get this far says that it was cut off.
    pub async fn end(self, piece: Option<T>, status: Option<Status>) {
        self.0.send_timeout(Piece::Last(piece, status), PATIENCE).await.ok();
    }
}

enum State<T> {
    Hearing(Receiver<Piece<T>>, Gone),
    Ending(Status),
    Over,
}

/// Both ends, with room for so many pieces that nobody read yet. When the client lets go of its end, `gone` is dropped.
pub fn pieces<T: Send + 'static>(room: usize, gone: Gone) -> (Teller<T>, Told<T>) {
    let (tell, hear) = mpsc::channel(room);
    let told = stream::unfold(State::Hearing(hear, gone), |state| async move {
        match state {
            State::Over => None,
            State::Ending(status) => Some((Err(status), State::Over)),
            State::Hearing(mut hear, gone) => match hear.recv().await {
                Some(Piece::More(piece)) => Some((Ok(piece), State::Hearing(hear, gone))),
                Some(Piece::Last(Some(piece), None)) => Some((Ok(piece), State::Over)),
                Some(Piece::Last(Some(piece), Some(status))) => Some((Ok(piece), State::Ending(status))),
                Some(Piece::Last(None, status)) => status.map(|status| (Err(status), State::Over)),
                None => {
                    let message = "the stream was cut off: it was not read in time, or something went wrong here";
                    Some((Err(Status::aborted(message)), State::Over))
                }
            },
        }
    });
    (Teller(tell), Box::pin(told))
}
