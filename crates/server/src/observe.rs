//! Observability: run observers, metrics, traces, logs.

pub mod logging;
pub mod metrics;
pub mod observer;
pub mod otlp;
