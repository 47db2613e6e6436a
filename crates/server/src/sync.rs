//! Locks and counters of state shared between requests.
//!
//! `tests/integration/race` compiles the modules of `limits` with replacements for them, to explore
//! many thread interleavings.

pub(crate) use std::sync::atomic::AtomicUsize;
pub(crate) use std::sync::{Mutex, MutexGuard};
