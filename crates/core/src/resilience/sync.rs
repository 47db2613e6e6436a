//! Locks and atomics of the circuit breaker.
//!
//! `tests/race` compiles the breaker with the types of shuttle, which explore many thread
//! interleavings, so all synchronization must use these types and nothing else from the standard
//! library.

pub(super) use std::sync::atomic::AtomicU64;
pub(super) use std::sync::{Mutex, MutexGuard};
