//! What a server says about itself, read by programs of others: figures by Prometheus' own reader, spans by a collector.

mod collector;
mod figures;
mod house;
mod logs;
mod spans;
