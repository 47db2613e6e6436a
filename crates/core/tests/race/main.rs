//! Many threads at once: a breaker under every order of its threads that there is time for, and breakers and past runs under
//! sixty-four real ones.
//!
//! A binary of its own: sources of the product are compiled again with the locks of shuttle, which also sets a panic hook for the
//! whole process.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test that cannot go on must fail, and one that tries many orders says how many"
)]

mod explore;
mod orders;
mod runs;
mod threads;

// The breaker as the product has it, with locks and counters that let a test choose which thread goes on.
#[allow(dead_code, reason = "not all of it is tried in all orders")]
#[path = "../../src/resilience/breaker.rs"]
mod breaker;
#[allow(dead_code, reason = "this clock stands still")]
#[path = "../../src/resilience/clock.rs"]
mod clock;
mod breaker_open {
    pub use querymend::resilience::BreakerOpen;
}
mod settings {
    pub use querymend::resilience::BreakerSettings;
}
mod sync {
    pub use shuttle::sync::atomic::AtomicU64;
    pub use shuttle::sync::{Mutex, MutexGuard};
}
