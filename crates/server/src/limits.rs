//! Limits of the server: request rates, cached results, idempotency keys.

pub(crate) mod idempotency;
pub mod rate_limit;
pub mod result_cache;
