//! One file for each command: its options, its help and what it does.

pub mod batch;
pub mod check;
