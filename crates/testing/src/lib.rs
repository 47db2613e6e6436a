//! Test helpers for all crates: fuzz targets, a counting allocator, timeouts that scale with the
//! machine, suite sizes, and deadlock detection.

// Failing inputs are reported as tests report failures.
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

pub use alloc::{CountingAllocator, peak_memory, peak_memory_all_threads};
pub use fuzz::{FuzzTarget, InputGenerator};
pub use mutate::{mutate_bytes, mutate_text};
pub use random::Random;
pub use server_lock::{ServerLock, lock_server};
pub use suite::is_full_suite;
pub use timing::{hang_timeout, scaled, slowdown, wait_until};
