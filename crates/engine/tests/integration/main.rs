//! Tests of the engines, most of them on real servers.
//!
//!     eval "$(scripts/engines.sh up NAMES)"
//!     cargo test -p querymend-engine --test integration -- --nocapture

// Helpers of tests fail loudly, and tests say what they skip and what they saw.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stderr)]

mod attacks;
mod conformance;
mod demo;
mod encrypted;
mod engines;
mod faults;
mod files;
mod mysql;
mod postgres;
mod sqlite;
mod support;
