//! A question that is sent twice with the same `Idempotency-Key` is answered once: the second time gets the first answer again.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::http::{HeaderMap, Response as Plain, StatusCode};
use axum::response::Response;
use bytes::Bytes;
use querymend::{Problem, ProblemCode};

use crate::sync::{Mutex, MutexGuard};
use crate::user::User;

/// How long an answer is kept.
const AGE: Duration = Duration::from_secs(600);
/// Answers that are kept, and how long they may be.
const MOST: usize = 1_000;
/// Of these, answers to one user.
const MOST_OF_ONE: usize = 50;
const LONGEST: usize = 1 << 20;

/// By the user, with the role that they had, and the key.
type Name = (String, Option<String>, String);

/// The answers of a server that are given again to whoever asks again.
#[derive(Default)]
pub struct Answers(Arc<Mutex<Seats>>);

#[derive(Default)]
struct Seats {
    /// After how many changes of the rules answers were last let go of.
    rules: u64,
    seats: HashMap<Name, Kept>,
}

enum Kept {
    /// Somebody has the seat. It stays theirs, however long it takes, until they drop it.
    Running,
    Done {
        at: Instant,
        status: StatusCode,
        headers: HeaderMap,
        body: Bytes,
    },
}

impl Kept {
    fn is_old(&self) -> bool {
        matches!(self, Self::Done { at, .. } if at.elapsed() >= AGE)
    }
}

/// What is known of a key.
pub enum Replay {
    /// The answer that was given.
    Known(Response),
    /// Nothing yet; where there is a key, its seat is taken now.
    New(Option<Seat>),
}

/// The right to answer for a key.
pub struct Seat {
    answers: Arc<Mutex<Seats>>,
    /// Nothing once there is an answer.
    name: Option<Name>,
    rules: u64,
}

fn locked(seats: &Mutex<Seats>) -> MutexGuard<'_, Seats> {
    seats.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Answers {
    /// Lets go of all answers to what was asked before so many changes of the rules, also of those that are still on their way.
    pub fn forget(&self, rules: u64) {
        let mut seats = locked(&self.0);
        seats.rules = seats.rules.max(rules);
        seats.seats.retain(|_, kept| matches!(kept, Kept::Running));
    }

    /// Looks the key of a request up that began after so many changes of the rules.
    pub fn seat(&self, headers: &HeaderMap, user: &User, rules: u64) -> Result<Replay, Problem> {
        let Some(key) = headers.get("idempotency-key") else { return Ok(Replay::New(None)) };
        let key = key.to_str().ok().filter(|key| (1..=255).contains(&key.len()));
        let key =
            key.ok_or_else(|| Problem::new(ProblemCode::BadRequest, "Idempotency-Key is 1 to 255 plain letters"))?;
        // Whoever has another role by now may have been allowed more before.
        let name = (user.name().to_owned(), user.role_name.clone(), key.to_owned());
        let mut locked = locked(&self.0);
        let seats = &mut locked.seats;
        match seats.get(&name).filter(|kept| !kept.is_old()) {
            Some(Kept::Running) => {
                Err(Problem::new(ProblemCode::Conflict, "a request with this Idempotency-Key is still running"))
            }
            Some(Kept::Done { status, headers, body, .. }) => {
                let mut response = Plain::new(Body::from(body.clone()));
                *response.status_mut() = *status;
                *response.headers_mut() = headers.clone();
                Ok(Replay::Known(response))
            }
            None => {
                if seats.len() >= MOST {
                    seats.retain(|_, kept| !kept.is_old());
                    make_room(seats, MOST, |_| true);
                }
                make_room(seats, MOST_OF_ONE, |name| name.0 == user.name());
                seats.insert(name.clone(), Kept::Running);
                Ok(Replay::New(Some(Seat { answers: Arc::clone(&self.0), name: Some(name), rules })))
            }
        }
    }
}

/// Lets go of the oldest answer of some, where there are too many of them.
fn make_room(seats: &mut HashMap<Name, Kept>, most: usize, of: impl Fn(&Name) -> bool) {
    let those = || seats.iter().filter(|(name, _)| of(name));
    if those().count() >= most {
        let done = those().filter_map(|(name, kept)| match kept {
            Kept::Done { at, .. } => Some((at, name)),
            Kept::Running => None,
        });
        let oldest = done.min_by_key(|(at, _)| *at).map(|(_, name)| name.clone());
        oldest.and_then(|name| seats.remove(&name));
    }
}

impl Seat {
    /// Keeps the answer, and gives it back. What failed for now, is very long, or was asked for under rules that have changed
    /// since, is not kept: the next one may try again.
    pub async fn keep(mut self, response: Response) -> Response {
        let (head, body) = response.into_parts();
        let body = axum::body::to_bytes(body, usize::MAX).await.unwrap_or_default();
        let lasting = !head.status.is_server_error() && head.status != StatusCode::TOO_MANY_REQUESTS;
        if lasting && body.len() <= LONGEST {
            let (status, headers) = (head.status, head.headers.clone());
            let mut seats = locked(&self.answers);
            if self.rules >= seats.rules
                && let Some(name) = self.name.take()
            {
                seats.seats.insert(name, Kept::Done { at: Instant::now(), status, headers, body: body.clone() });
            }
        }
        Response::from_parts(head, Body::from(body))
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        if let Some(name) = self.name.take() {
            locked(&self.answers).seats.remove(&name);
        }
    }
}
