//! Runs a test under many orders of its threads. One that fails says which order it was, and it can be run again.

use shuttle::scheduler::{DfsScheduler, PctScheduler, RandomScheduler, Scheduler};
use shuttle::{Config, Runner};

use crate::watchdog::watched;

/// Orders that are tried by chance, and as many more of which each is whole but for a few changes of thread at odd moments.
const BY_CHANCE: usize = 2_500;
/// So many changes.
const CHANGES: usize = 3;

/// All orders of very few threads. A test of which they are more than so many fails: it would not have tried all.
pub fn all_orders(what: &'static str, test: impl Fn() + Send + Sync + 'static) {
    const MOST: usize = 500_000;
    let tried = watched(what, move || run(DfsScheduler::new(Some(MOST), false), test));
    assert!(tried < MOST, "{what}: more than {MOST} orders");
    println!("{what}: all {tried} orders");
}

/// Many orders of a few threads.
pub fn many_orders(what: &'static str, test: impl Fn() + Send + Sync + Clone + 'static) {
    let again = test.clone();
    let tried = watched(what, move || run(RandomScheduler::new(BY_CHANCE), test));
    let tried = tried + watched(what, move || run(PctScheduler::new(CHANGES, BY_CHANCE), again));
    println!("{what}: {tried} orders");
}

fn run(scheduler: impl Scheduler + 'static, test: impl Fn() + Send + Sync + 'static) -> usize {
    let mut config = Config::new();
    // It takes every access for one that all threads see at once, and would say so each time.
    config.silence_warnings = true;
    Runner::new(scheduler, config).run(test)
}
