//! The locks and counters of a breaker. `tests/race` compiles the breaker with others in their place, which let it try many orders
//! of its threads; nothing else is to be taken from the standard library where threads meet.

pub(super) use std::sync::atomic::AtomicU64;
pub(super) use std::sync::{Mutex, MutexGuard};
