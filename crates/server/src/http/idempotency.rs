//! A question that is sent twice with the same `Idempotency-Key` is answered once: the second time gets the first answer again.

use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::http::{HeaderMap, Response as Plain, StatusCode};
use axum::response::Response;
use bytes::Bytes;
use querymend::{Problem, ProblemCode};

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

static SEATS: LazyLock<Mutex<HashMap<Name, (Instant, Kept)>>> = LazyLock::new(Mutex::default);

enum Kept {
    Running,
    Done { status: StatusCode, headers: HeaderMap, body: Bytes },
}

/// What is known of a key.
pub enum Replay {
    /// The answer that was given.
    Known(Response),
    /// Nothing yet; where there is a key, its seat is taken now.
    New(Option<Seat>),
}

/// The right to answer for a key.
pub struct Seat(Option<Name>);

fn seats() -> MutexGuard<'static, HashMap<Name, (Instant, Kept)>> {
    SEATS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Lets go of all answers: rules have changed since they were given.
pub fn forget() {
    seats().retain(|_, (_, kept)| matches!(kept, Kept::Running));
}

/// Looks a request's key up.
pub fn seat(headers: &HeaderMap, user: &User) -> Result<Replay, Problem> {
    let Some(key) = headers.get("idempotency-key") else { return Ok(Replay::New(None)) };
    let key = key.to_str().ok().filter(|key| (1..=255).contains(&key.len()));
    let key = key.ok_or_else(|| Problem::new(ProblemCode::BadRequest, "Idempotency-Key is 1 to 255 plain letters"))?;
    // Whoever has another role by now may have been allowed more before.
    let key = (user.name().to_owned(), user.role_name.clone(), key.to_owned());
    let mut seats = seats();
    match seats.get(&key).filter(|(at, _)| at.elapsed() < AGE) {
        Some((_, Kept::Running)) => {
            Err(Problem::new(ProblemCode::Conflict, "a request with this Idempotency-Key is still running"))
        }
        Some((_, Kept::Done { status, headers, body })) => {
            let mut response = Plain::new(Body::from(body.clone()));
            *response.status_mut() = *status;
            *response.headers_mut() = headers.clone();
            Ok(Replay::Known(response))
        }
        None => {
            if seats.len() >= MOST {
                seats.retain(|_, (at, _)| at.elapsed() < AGE);
                make_room(&mut seats, MOST, |_| true);
            }
            make_room(&mut seats, MOST_OF_ONE, |name| name.0 == user.name());
            seats.insert(key.clone(), (Instant::now(), Kept::Running));
            Ok(Replay::New(Some(Seat(Some(key)))))
        }
    }
}

/// Lets go of the oldest answer of some, where there are too many of them.
fn make_room(seats: &mut HashMap<Name, (Instant, Kept)>, most: usize, of: impl Fn(&Name) -> bool) {
    let those = || seats.iter().filter(|(name, _)| of(name));
    if those().count() >= most {
        let done = those().filter(|(_, (_, kept))| matches!(kept, Kept::Done { .. }));
        let oldest = done.min_by_key(|(_, (at, _))| *at).map(|(name, _)| name.clone());
        oldest.and_then(|name| seats.remove(&name));
    }
}

impl Seat {
    /// Keeps the answer, and gives it back. What failed for now, or is very long, is not kept: the next one may try again.
    pub async fn keep(mut self, response: Response) -> Response {
        let (head, body) = response.into_parts();
        let body = axum::body::to_bytes(body, usize::MAX).await.unwrap_or_default();
        let lasting = !head.status.is_server_error() && head.status != StatusCode::TOO_MANY_REQUESTS;
        if lasting
            && body.len() <= LONGEST
            && let Some(key) = self.0.take()
        {
            let done = Kept::Done { status: head.status, headers: head.headers.clone(), body: body.clone() };
            seats().insert(key, (Instant::now(), done));
        }
        Response::from_parts(head, Body::from(body))
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        if let Some(key) = self.0.take() {
            seats().remove(&key);
        }
    }
}
