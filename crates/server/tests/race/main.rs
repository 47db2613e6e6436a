//! Many requests at once: what they share under many orders of its threads, and the service under sixty-four real ones.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test that cannot go on must fail, one that tries many orders says how many, and one that is skipped says so"
)]

mod clients;
mod limits;
mod orders;
mod talks;

#[allow(dead_code, reason = "not all tests of the server want all of it")]
#[path = "../http/house.rs"]
mod house;

#[allow(dead_code, reason = "few threads are tried in all orders here")]
#[path = "../../../core/tests/race/explore.rs"]
mod explore;
#[path = "../../../core/tests/race/watchdog.rs"]
mod watchdog;

// What requests share, as the product has it, with locks and counters that let a test choose which thread goes on.
#[path = "../../src/http/idempotency.rs"]
mod idempotency;
#[path = "../../src/rates.rs"]
mod rates;
#[allow(dead_code, reason = "pages are looked at, not their columns")]
#[path = "../../src/results.rs"]
mod results;
mod http {
    pub use querymend_server::http::{Kind, kinds};
}
mod user {
    pub use querymend_server::User;
}
mod sync {
    pub use shuttle::sync::atomic::AtomicUsize;
    pub use shuttle::sync::{Mutex, MutexGuard};
}
