//! Tests of the engines, most of them on real servers.
//!
//!     eval "$(scripts/engines.sh up postgres mysql spark trino)"
//!     cargo test -p querymend-engine --test integration -- --nocapture

// Helpers of tests fail loudly, and tests say what they skip and what they saw.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stderr)]

mod asking;
mod attacks;
mod conformance;
mod demo;
mod encrypted;
mod faults;
mod files;
mod mysql;
mod postgres;
mod sqlite;
#[allow(dead_code, reason = "restart.rs, which kills servers, uses the rest")]
mod subjects;
mod tls;
