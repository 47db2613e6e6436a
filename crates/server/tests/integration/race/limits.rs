//! Rates and pages as they are, one after the other and in sixty-four real threads.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use querymend::config::ServerLimits;
use querymend_server::rates::Rates;
use querymend_server::results::Results;
use querymend_sql::{Cell, Rows};
use querymend_testing::watchdog::{THREADS, together, watched};

use crate::timing::most_admitted;

#[test]
fn l12_each_user_has_limits_of_their_own() {
    let limits = ServerLimits { per_minute: 3, concurrent: 2, ..ServerLimits::default() };
    let (rates, begun) = (Rates::default(), Instant::now());
    let first = rates.admit("ann", &limits);
    let second = rates.admit("ann", &limits);
    assert!(first.is_ok() && second.is_ok());
    let third = rates.admit("ann", &limits);
    assert!(third.is_err_and(|problem| problem.message.contains("at once")));
    drop((first, second));
    // The refused one counted as a request too: only the time since then can let in more.
    let mut admitted = 3;
    let refused = loop {
        match rates.admit("ann", &limits) {
            Ok(_) => admitted += 1,
            Err(problem) => break problem,
        }
        assert!(admitted <= most_admitted(3, begun), "{admitted}");
    };
    assert!(refused.retry_after_s.is_some_and(|wait| (1..=20).contains(&wait)), "{refused:?}");
    assert!(rates.admit("bob", &limits).is_ok());
    assert_eq!(rates.running(), 0);
}

#[test]
fn pages_follow_each_other_and_belong_to_one_user() {
    let rows =
        Rows { columns: vec!["n".into()], rows: (0..5).map(|n| vec![Cell::Integer(n)]).collect(), truncated: true };
    let results = Results::default();
    let first = results.first("ann", 0, rows, 2);
    assert_eq!((first.rows.rows.len(), first.rows.truncated), (2, false));
    let cursor = first.cursor.unwrap_or_default();
    assert!(results.next("bob", &cursor, 2).is_none());
    let last = results.next("ann", &cursor, 9);
    let last = last.map(|page| (page.rows.rows, page.rows.truncated, page.cursor));
    assert_eq!(last, Some(((2..5).map(|n| vec![Cell::Integer(n)]).collect(), true, None)));
    for wrong in ["", ".", "x.1", "x", &format!("{cursor}9")] {
        assert!(results.next("ann", wrong, 2).is_none(), "{wrong}");
    }
    for n in 0..20 {
        let rows = Rows { rows: vec![vec![Cell::Integer(n)]; 3], ..Rows::default() };
        results.first("ann", 0, rows, 1);
    }
    assert!(results.next("ann", &cursor, 2).is_none(), "old ones make room");
}

#[test]
fn l12_no_more_run_at_once_than_may_and_each_is_counted() {
    const TIMES: usize = 2_000;
    watched("rates", || {
        let limits = ServerLimits { per_minute: 0, concurrent: 3, concurrent_all: 10, ..ServerLimits::default() };
        let rates = Rates::default();
        let (all, users) = (AtomicUsize::new(0), [(); 8].map(|()| AtomicUsize::new(0)));
        let told = together(|thread| {
            let (user, mut let_in, mut refused) = (thread % users.len(), 0, 0);
            for _ in 0..TIMES {
                let Ok(ticket) = rates.admit(&format!("user {user}"), &limits) else {
                    refused += 1;
                    continue;
                };
                let_in += 1;
                assert!(users[user].fetch_add(1, Ordering::SeqCst) < limits.concurrent);
                assert!(all.fetch_add(1, Ordering::SeqCst) < limits.concurrent_all);
                std::thread::yield_now();
                users[user].fetch_sub(1, Ordering::SeqCst);
                all.fetch_sub(1, Ordering::SeqCst);
                drop(ticket);
            }
            (let_in, refused)
        });
        let (let_in, refused) = told.iter().fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        assert_eq!((let_in + refused, rates.running()), (TIMES * THREADS, 0));
        assert!(let_in > 0 && refused > 0, "{let_in} let in, {refused} refused");
        println!("{let_in} let in, {refused} refused, none left running");
    });
}

#[test]
fn l12_each_gets_the_pages_of_their_own_results() {
    watched("results", || {
        let results = Results::default();
        let kept = together(|thread| {
            let user = format!("user {thread}");
            let mut last = Vec::new();
            for n in 0..50 {
                let number = 1_000 * thread as i64 + n;
                let rows =
                    Rows { rows: (0..3).map(|at| vec![Cell::Integer(number + 100 * at)]).collect(), ..Rows::default() };
                let cursor = results.first(&user, 0, rows, 1).cursor.unwrap();
                let page = results.next(&user, &cursor, 1).unwrap();
                assert_eq!(page.rows.rows, [[Cell::Integer(number + 100)]]);
                assert!(results.next(&format!("user {}", (thread + 1) % THREADS), &cursor, 1).is_none());
                last.push(cursor);
            }
            last.iter().filter(|cursor| results.next(&user, cursor, 1).is_some()).count()
        });
        assert_eq!(kept, [8; THREADS], "the newest of each");
    });
}
