//! The gRPC face, asked by real clients over TCP. The database is a real SQLite file, and the model says what it was told to.

mod calls;
mod errors;
mod hostile;
mod python;
mod support;
