//! Helpers for the tests of all crates: fuzz targets, a counting allocator, timeouts that scale with the machine, sizes of suites, and
//! threads that are watched for deadlocks.

// What is wrong with an input is said as a test says it.
#![allow(clippy::panic, clippy::print_stderr)]

mod alloc;
mod coverage;
mod fuzz;
mod mutate;
mod random;
mod server_lock;
mod suite;
mod timing;
pub mod watchdog;

pub use alloc::{Counted, peak, peak_everywhere};
pub use fuzz::{Fuzz, Make};
pub use mutate::{bytes, text};
pub use random::Random;
pub use server_lock::{ServerLock, exclusive};
pub use suite::is_full;
pub use timing::{hang_timeout, scaled, slowdown, wait_until};
