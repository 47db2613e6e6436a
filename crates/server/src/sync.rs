//! The locks and counters of what many requests share. `tests/integration/race` compiles `rates`, `results` and `http/idempotency`
//! with others in their place, which let it try many orders of their threads.

pub(crate) use std::sync::atomic::AtomicUsize;
pub(crate) use std::sync::{Mutex, MutexGuard};
