//! One module per command, with its options, its help and its implementation.

pub mod ask;
pub mod batch;
pub mod chat;
pub mod check;
pub mod completions;
pub mod demo;
pub mod dialects;
pub mod doctor;
pub mod eval;
pub mod explain;
pub mod fix;
pub mod key;
pub mod man;
pub mod mcp;
pub mod memory;
pub mod model;
pub mod run;
pub mod schema;
pub mod serve;
pub mod trace;
