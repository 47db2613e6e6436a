//! Runs a test under many orders of its threads. One that fails says which order it was, and it can be run again.

use querymend_testing::is_full_suite;
use querymend_testing::watchdog::run_watched;
use shuttle::scheduler::{DfsScheduler, PctScheduler, RandomScheduler, Scheduler};
use shuttle::{Config, Runner};

/// Changes of thread in an order of the second kind of [`many_orders`].
const CHANGES: usize = 3;

/// All orders of very few threads. A test of which they are more than so many fails: it would not have tried all.
pub fn all_orders(what: &'static str, test: impl Fn() + Send + Sync + 'static) {
    const MOST: usize = 500_000;
    let tried = run_watched(what, move || run(DfsScheduler::new(Some(MOST), false), test));
    assert!(tried < MOST, "{what}: more than {MOST} orders");
    println!("{what}: all {tried} orders");
}

/// Many orders of a few threads: random ones, and as many of which each is whole but for a few changes of thread at odd moments.
pub fn many_orders(what: &'static str, test: impl Fn() + Send + Sync + Clone + 'static) {
    let orders = if is_full_suite() { 2_500 } else { 600 };
    let again = test.clone();
    let tried = run_watched(what, move || run(RandomScheduler::new(orders), test));
    let tried = tried + run_watched(what, move || run(PctScheduler::new(CHANGES, orders), again));
    println!("{what}: {tried} orders");
}

fn run(scheduler: impl Scheduler + 'static, test: impl Fn() + Send + Sync + 'static) -> usize {
    let mut config = Config::new();
    // It takes every access for one that all threads see at once, and would say so each time.
    config.silence_warnings = true;
    Runner::new(scheduler, config).run(test)
}
