//! Example store selection, and the identity of a database within the store.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use querymend::{Config, Memory};
use querymend_engine::Engine;
use querymend_memory::ExampleStore;
use tokio::runtime::Runtime;

use crate::args::model::load_providers;
use crate::error::CliError;
use crate::output::Out;
use crate::state_dir;

/// Options that control the memory of answers.
#[derive(Debug, Clone, Default, Args)]
pub struct MemoryArgs {
    /// Memory of answers: a file, chroma://HOST:PORT/COLLECTION or postgres://… [default: memory.db
    /// in the state folder]
    #[arg(long, value_name = "STORE")]
    pub store: Option<String>,
    /// Ask the model, even if the same question was answered before
    #[arg(long)]
    pub fresh: bool,
    /// Neither read from memory nor write to it
    #[arg(long, conflicts_with_all = ["store", "fresh"])]
    pub no_memory: bool,
}

/// Returns the location of the example store: the given one, the configured one, or `memory.db` in
/// the state folder.
pub fn store_location(named: Option<&str>, config: &Config) -> Result<String, CliError> {
    if let Some(store) = named.or(config.memory.store.as_deref()) {
        return Ok(store.to_string());
    }
    let folder = state_dir::state_dir().ok_or_else(state_dir::no_state_dir)?;
    Ok(folder.join("memory.db").to_string_lossy().into_owned())
}

/// Opens the example store, and creates the file if it does not exist.
pub async fn open_store(named: Option<&str>, config: &Config) -> Result<Arc<dyn ExampleStore>, CliError> {
    let location = store_location(named, config)?;
    if let Some(folder) = Path::new(&location).parent().filter(|_| named.is_none() && !location.contains("://")) {
        std::fs::create_dir_all(folder).ok();
    }
    let embedder = querymend_model::open_embedder(&config.memory.embedder, &load_providers(config)?)?;
    Ok(querymend_memory::open(&location, embedder).await?)
}

impl MemoryArgs {
    /// Opens the memory of a database, if memory is enabled.
    ///
    /// A failure to open the default store is reported but does not prevent an answer; a store that
    /// was requested explicitly must open. Creates a file only if `create` is set.
    pub fn open_memory(
        &self,
        engine: &dyn Engine,
        address: &str,
        create: bool,
        config: &Config,
        runtime: &Runtime,
        out: &Out,
    ) -> Result<Option<Memory>, CliError> {
        let open = || runtime.block_on(self.open_if_enabled(create, config));
        match open() {
            Ok(None) => Ok(None),
            Ok(Some(store)) => Ok(Some(memory_for(store, engine, address, config))),
            Err(failure) if self.store.is_some() => Err(failure),
            Err(failure) => {
                out.note(&format!("note: memory is disabled: {}", failure.message));
                Ok(None)
            }
        }
    }

    /// Opens the store, if memory is enabled and the store exists or may be created.
    pub async fn open_if_enabled(
        &self,
        keeps: bool,
        config: &Config,
    ) -> Result<Option<Arc<dyn ExampleStore>>, CliError> {
        if self.no_memory || !config.memory.enabled {
            return Ok(None);
        }
        let named = self.store.as_deref();
        // Without a state folder there is nothing to recall, which is not an error.
        let Ok(place) = store_location(named, config) else { return Ok(None) };
        let file = !place.contains("://");
        if file && !keeps && named.is_none() && !Path::new(&place).exists() {
            return Ok(None);
        }
        open_store(named, config).await.map(Some)
    }
}

/// Returns the memory of one database within a store.
pub fn memory_for(store: Arc<dyn ExampleStore>, engine: &dyn Engine, address: &str, config: &Config) -> Memory {
    Memory::new(store, database_identity(engine, address), engine.dialect().name, &config.memory)
}

/// Returns a name that identifies the database: the absolute path of a file, or the address of a
/// server without the user.
pub fn database_identity(engine: &dyn Engine, address: &str) -> String {
    let path = address.strip_prefix("sqlite:").unwrap_or(address);
    let path = PathBuf::from(path.strip_prefix("//").unwrap_or(path));
    match std::fs::canonicalize(&path) {
        Ok(whole) => whole.to_string_lossy().into_owned(),
        Err(_) => engine.name().to_string(),
    }
}
