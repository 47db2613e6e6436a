//! Rates and pages as they are, one after the other and in sixty-four real threads.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use querymend::config::ServerLimits;
use querymend_server::limits::rate_limit::RateLimiter;
use querymend_server::limits::result_cache::ResultCache;
use querymend_sql::{Cell, Rows};
use querymend_testing::watchdog::{THREADS, run_concurrently, run_watched};

use crate::timing::most_admitted;

#[test]
fn each_user_has_separate_limits() {
    let limits = ServerLimits { requests_per_minute: 3, max_concurrent_per_user: 2, ..ServerLimits::default() };
    let (rates, begun) = (RateLimiter::default(), Instant::now());
    let first = rates.acquire("ann", &limits);
    let second = rates.acquire("ann", &limits);
    assert!(first.is_ok() && second.is_ok());
    let third = rates.acquire("ann", &limits);
    assert!(third.is_err_and(|problem| problem.message.contains("concurrent")));
    drop((first, second));
    // The refused one counted as a request too: only the time since then can let in more.
    let mut admitted = 3;
    let refused = loop {
        match rates.acquire("ann", &limits) {
            Ok(_) => admitted += 1,
            Err(problem) => break problem,
        }
        assert!(admitted <= most_admitted(3, begun), "{admitted}");
    };
    assert!(refused.retry_after_s.is_some_and(|wait| (1..=20).contains(&wait)), "{refused:?}");
    assert!(rates.acquire("bob", &limits).is_ok());
    assert_eq!(rates.in_flight(), 0);
}

#[test]
fn pages_are_ordered_and_belong_to_one_user() {
    let rows =
        Rows { columns: vec!["n".into()], rows: (0..5).map(|n| vec![Cell::Integer(n)]).collect(), truncated: true };
    let results = ResultCache::default();
    let first = results.first_page("ann", 0, rows, 2);
    assert_eq!((first.rows.rows.len(), first.rows.truncated), (2, false));
    let cursor = first.cursor.unwrap_or_default();
    assert!(results.next_page("bob", &cursor, 2).is_none());
    let last = results.next_page("ann", &cursor, 9);
    let last = last.map(|page| (page.rows.rows, page.rows.truncated, page.cursor));
    assert_eq!(last, Some(((2..5).map(|n| vec![Cell::Integer(n)]).collect(), true, None)));
    for wrong in ["", ".", "x.1", "x", &format!("{cursor}9")] {
        assert!(results.next_page("ann", wrong, 2).is_none(), "{wrong}");
    }
    for n in 0..20 {
        let rows = Rows { rows: vec![vec![Cell::Integer(n)]; 3], ..Rows::default() };
        results.first_page("ann", 0, rows, 1);
    }
    assert!(results.next_page("ann", &cursor, 2).is_none(), "old ones make room");
}

#[test]
fn never_exceeds_the_concurrency_limit() {
    const TIMES: usize = 2_000;
    run_watched("rates", || {
        let limits = ServerLimits {
            requests_per_minute: 0,
            max_concurrent_per_user: 3,
            max_concurrent: 10,
            ..ServerLimits::default()
        };
        let rates = RateLimiter::default();
        let (all, users) = (AtomicUsize::new(0), [(); 8].map(|()| AtomicUsize::new(0)));
        let told = run_concurrently(|thread| {
            let (user, mut let_in, mut refused) = (thread % users.len(), 0, 0);
            for _ in 0..TIMES {
                let Ok(ticket) = rates.acquire(&format!("user {user}"), &limits) else {
                    refused += 1;
                    continue;
                };
                let_in += 1;
                assert!(users[user].fetch_add(1, Ordering::SeqCst) < limits.max_concurrent_per_user);
                assert!(all.fetch_add(1, Ordering::SeqCst) < limits.max_concurrent);
                std::thread::yield_now();
                users[user].fetch_sub(1, Ordering::SeqCst);
                all.fetch_sub(1, Ordering::SeqCst);
                drop(ticket);
            }
            (let_in, refused)
        });
        let (let_in, refused) = told.iter().fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        assert_eq!((let_in + refused, rates.in_flight()), (TIMES * THREADS, 0));
        assert!(let_in > 0 && refused > 0, "{let_in} let in, {refused} refused");
        println!("{let_in} let in, {refused} refused, none left running");
    });
}

#[test]
fn users_get_pages_of_their_own_results() {
    run_watched("results", || {
        let results = ResultCache::default();
        let kept = run_concurrently(|thread| {
            let user = format!("user {thread}");
            let mut last = Vec::new();
            for n in 0..50 {
                let number = 1_000 * thread as i64 + n;
                let rows =
                    Rows { rows: (0..3).map(|at| vec![Cell::Integer(number + 100 * at)]).collect(), ..Rows::default() };
                let cursor = results.first_page(&user, 0, rows, 1).cursor.unwrap();
                let page = results.next_page(&user, &cursor, 1).unwrap();
                assert_eq!(page.rows.rows, [[Cell::Integer(number + 100)]]);
                assert!(results.next_page(&format!("user {}", (thread + 1) % THREADS), &cursor, 1).is_none());
                last.push(cursor);
            }
            last.iter().filter(|cursor| results.next_page(&user, cursor, 1).is_some()).count()
        });
        assert_eq!(kept, [8; THREADS], "the newest of each");
    });
}
