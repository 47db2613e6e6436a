//! What a server says about itself, read by programs of others: figures by Prometheus' own reader, spans by a collector.
#![allow(clippy::unwrap_used)] // In a test that is how a failure is told.

mod collector;
mod figures;
mod house;
mod logs;
mod spans;
