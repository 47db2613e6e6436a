//! Tokio runtimes of commands.

use querymend_engine::EngineFuture;
use tokio::runtime::Runtime;

use crate::error::CliError;

/// Builds the runtime for model and database I/O, so that the main thread can wait for Ctrl-C.
pub fn build_runtime() -> Result<Runtime, CliError> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.map_err(|error| CliError::new(format!("cannot start a thread: {error}")))
}

/// Blocks on a future of the engine, with a single-threaded runtime.
pub fn block_on<T>(answer: EngineFuture<'_, T>) -> Result<T, CliError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| CliError::new(format!("cannot start a thread: {error}")))?;
    Ok(runtime.block_on(answer)?)
}
