//! RateLimiter, pages and seats under many orders of their threads.
//!
//! That these tests see what they are for was tried by hand, with one change of the product at a time:
//! - `IdempotencyStore::seat` lets go of its lock between looking a key up and taking the seat: two run at once;
//! - `Seat::keep` does not look at the rules: an answer from before a change is given out after it;
//! - `RateLimiter::admit` lets go of its lock before it counts a request: three of two are let in;
//! - `ResultCache::first` does not look at the rules: a page from before a change is given out after it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use axum::body::{Body, to_bytes};
use axum::http::{HeaderMap, HeaderValue};
use axum::response::Response;
use querymend::config::ServerLimits;
use querymend_server::User;
use querymend_sql::{Cell, Rows};
use shuttle::future::block_on;
use shuttle::thread;

use super::explore::many_orders;
use super::idempotency::{IdempotencyLookup, IdempotencyStore};
use super::rates::RateLimiter;
use super::results::ResultCache;
use crate::timing::most_admitted;

/// The same in so many threads; what came of it in each.
fn threads<T: Send + 'static>(count: usize, work: impl Fn(usize) -> T + Send + Sync + 'static) -> Vec<T> {
    let work = Arc::new(work);
    let begin = |at| {
        let work = Arc::clone(&work);
        thread::spawn(move || work(at))
    };
    let threads: Vec<_> = (0..count).map(begin).collect();
    threads.into_iter().map(|thread| thread.join().unwrap()).collect()
}

fn limits(requests_per_minute: u32, concurrent: usize, max_concurrent: usize) -> ServerLimits {
    ServerLimits { requests_per_minute, max_concurrent_per_user: concurrent, max_concurrent, ..ServerLimits::default() }
}

#[test]
fn admits_exactly_the_allowed_requests() {
    // A request comes back to one who may make two in a minute after half a minute.
    for (limits, may) in [(limits(0, 2, 9), 2), (limits(0, 9, 3), 3), (limits(2, 9, 9), 2)] {
        many_orders("rates: 4 threads at once", move || {
            let rates = Arc::new(RateLimiter::default());
            let (all, limits) = (Arc::clone(&rates), limits.clone());
            let (requests_per_minute, begun) = (limits.requests_per_minute, Instant::now());
            let tickets = threads(4, move |_| all.acquire("ann", &limits).ok());
            let admitted = tickets.iter().flatten().count();
            let most = if requests_per_minute > 0 { most_admitted(requests_per_minute, begun) } else { may };
            assert!((may..=most).contains(&admitted), "{admitted}");
            assert_eq!(rates.in_flight(), admitted);
            drop(tickets);
            assert_eq!(rates.in_flight(), 0);
        });
    }
}

#[test]
fn finished_request_frees_exactly_one_slot() {
    many_orders("rates: 4 threads come and go", || {
        let rates = Arc::new(RateLimiter::default());
        let all = Arc::clone(&rates);
        let inside = [(); 3].map(|()| AtomicUsize::new(0));
        let told = threads(4, move |thread| {
            let user = thread % 2;
            let mut let_in = 0;
            for _ in 0..2 {
                let Ok(ticket) = all.acquire(["ann", "bob"][user], &limits(0, 1, 2)) else { continue };
                let_in += 1;
                for (who, most) in [(user, 1), (2, 2)] {
                    assert!(inside[who].fetch_add(1, Ordering::SeqCst) < most);
                }
                thread::yield_now();
                for who in [user, 2] {
                    inside[who].fetch_sub(1, Ordering::SeqCst);
                }
                drop(ticket);
            }
            let_in
        });
        assert!(told.iter().sum::<usize>() >= 2, "whoever comes first is let in");
        assert_eq!(rates.in_flight(), 0);
        assert!(rates.acquire("ann", &limits(0, 1, 2)).is_ok());
    });
}

fn rows(first: i64) -> Rows {
    Rows {
        columns: vec!["n".into()],
        rows: vec![vec![Cell::Integer(first)], vec![Cell::Integer(-first)]],
        truncated: false,
    }
}

#[test]
fn result_cache_keeps_only_the_newest_results() {
    many_orders("results: 3 threads, 3 results each of one user", || {
        let results = Arc::new(ResultCache::default());
        let all = Arc::clone(&results);
        let cursors = threads(3, move |thread| {
            [1, 2, 3].map(|n| {
                let number = 10 * thread as i64 + n;
                let cursor = all.first_page("ann", 0, rows(number), 1).cursor.unwrap();
                // Nobody can have kept eight others since.
                let page = all.next_page("ann", &cursor, 1);
                assert!(page.is_none_or(|page| page.rows.rows == [[Cell::Integer(-number)]]));
                assert!(all.next_page("bob", &cursor, 1).is_none());
                cursor
            })
        });
        let kept = cursors.iter().flatten().filter(|cursor| results.next_page("ann", cursor, 1).is_some()).count();
        assert_eq!(kept, 8, "of nine");
    });
}

#[test]
fn no_page_outlives_a_reload() {
    many_orders("results: rules change while 3 threads ask", || {
        let results = Arc::new(ResultCache::default());
        let all = Arc::clone(&results);
        let cursors = threads(4, move |thread| match thread {
            0 => {
                all.clear(1);
                None
            }
            _ => all.first_page("ann", u64::from(thread == 3), rows(1), 1).cursor,
        });
        for (at, cursor) in cursors.into_iter().enumerate().skip(1) {
            // One that was asked for under the new rules may have been cleared with the others; none of the others is there.
            let there = results.next_page("ann", &cursor.unwrap(), 1).is_some();
            assert!(!there || at == 3, "{at}");
        }
    });
}

fn key() -> HeaderMap {
    HeaderMap::from_iter([("idempotency-key".parse().unwrap(), HeaderValue::from_static("k"))])
}

async fn text(response: Response) -> String {
    String::from_utf8(to_bytes(response.into_body(), usize::MAX).await.unwrap().to_vec()).unwrap()
}

/// What came of a request.
#[derive(Debug, PartialEq)]
enum Came {
    Ran(String),
    Again(String),
    Refused,
    Dropped,
}

/// Asks with the one key; `finish` says whether who has the seat answers. Nobody else may be at it meanwhile.
fn ask(answers: &IdempotencyStore, thread: usize, running: &AtomicUsize, finish: bool) -> Came {
    match answers.reserve(&key(), &User::anonymous(), 0) {
        Err(_) => Came::Refused,
        Ok(IdempotencyLookup::Replay(response)) => Came::Again(block_on(text(response))),
        Ok(IdempotencyLookup::New(seat)) => {
            assert_eq!(running.fetch_add(1, Ordering::SeqCst), 0, "two have the same seat");
            thread::yield_now();
            running.fetch_sub(1, Ordering::SeqCst);
            if !finish {
                drop(seat);
                return Came::Dropped;
            }
            let response = Response::new(Body::from(format!("answer of {thread}")));
            Came::Ran(block_on(async { text(seat.unwrap().complete(response).await).await }))
        }
    }
}

#[test]
fn idempotency_key_is_reserved_by_one_request() {
    many_orders("idempotency: 4 threads, one key", || {
        let answers = Arc::new(IdempotencyStore::default());
        let (all, running) = (Arc::clone(&answers), Arc::new(AtomicUsize::new(0)));
        let at_it = Arc::clone(&running);
        // The first one goes away without an answer.
        let came = threads(4, move |thread| ask(&all, thread, &at_it, thread > 0));
        let ran: Vec<&String> =
            came.iter().filter_map(|one| if let Came::Ran(text) = one { Some(text) } else { None }).collect();
        assert!(ran.len() <= 1, "{came:?}");
        let again = came.iter().filter_map(|one| if let Came::Again(text) = one { Some(text) } else { None });
        assert!(again.into_iter().all(|text| ran == [text]), "{came:?}");
        // Whoever comes later is given that answer; where there is none, the seat is free.
        match ran.first() {
            Some(answer) => assert_eq!(ask(&answers, 9, &running, true), Came::Again((*answer).clone())),
            None => assert_eq!(ask(&answers, 9, &running, true), Came::Ran("answer of 9".into())),
        }
    });
}

#[test]
fn no_idempotent_answer_outlives_a_reload() {
    many_orders("idempotency: rules change while 2 threads ask", || {
        let answers = Arc::new(IdempotencyStore::default());
        let all = Arc::clone(&answers);
        let running = AtomicUsize::new(0);
        threads(3, move |thread| match thread {
            0 => all.clear(1),
            _ => drop(ask(&all, thread, &running, true)),
        });
        let after = answers.reserve(&key(), &User::anonymous(), 1);
        assert!(matches!(after, Ok(IdempotencyLookup::New(Some(_)))), "an answer from before is given out");
    });
}
