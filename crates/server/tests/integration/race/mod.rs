//! Many requests at once: what they share under many orders of its threads, and the service under sixty-four real ones.

mod clients;
mod limits;
mod orders;
mod talks;

#[allow(dead_code, reason = "few threads are tried in all orders here")]
#[path = "../../../../core/tests/race/explore.rs"]
mod explore;

// What requests share, as the product has it, with locks and counters that let a test choose which thread goes on.
#[path = "../../../src/limits/idempotency.rs"]
mod idempotency;
#[path = "../../../src/limits/rate_limit.rs"]
mod rates;
#[allow(dead_code, reason = "pages are looked at, not their columns")]
#[path = "../../../src/limits/result_cache.rs"]
mod results;
