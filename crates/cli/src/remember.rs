//! Where answers are remembered, and which memory belongs to which database.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use querymend::{Config, Memory};
use querymend_engine::Engine;
use querymend_memory::{Error, ExampleStore};
use tokio::runtime::Runtime;

use crate::failure::Failure;
use crate::out::Out;
use crate::{setup, state};

/// The options on what is remembered.
#[derive(Debug, Clone, Default, Args)]
pub struct Remembering {
    /// Memory of answers: a file, chroma://HOST:PORT/COLLECTION or postgres://… [default: memory.db in the state folder]
    #[arg(long, value_name = "STORE")]
    pub store: Option<String>,
    /// Ask the model, even if the same question was answered before
    #[arg(long)]
    pub fresh: bool,
    /// Recall nothing and keep nothing
    #[arg(long, conflicts_with_all = ["store", "fresh"])]
    pub no_memory: bool,
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure { hint: error.hint().map(str::to_string), ..Failure::new(error.to_string()) }
    }
}

/// Where answers are remembered.
pub fn place(named: Option<&str>, config: &Config) -> Result<String, Failure> {
    if let Some(store) = named.or(config.memory.store.as_deref()) {
        return Ok(store.to_string());
    }
    let folder = state::folder().ok_or_else(state::nowhere)?;
    Ok(folder.join("memory.db").to_string_lossy().into_owned())
}

/// Opens it; a file is made if it is not there.
pub async fn open(named: Option<&str>, config: &Config) -> Result<Arc<dyn ExampleStore>, Failure> {
    let place = place(named, config)?;
    if let Some(folder) = Path::new(&place).parent().filter(|_| named.is_none() && !place.contains("://")) {
        std::fs::create_dir_all(folder).ok();
    }
    let embedder = querymend_model::open_embedder(&config.memory.embedder, &setup::providers(config)?)?;
    Ok(querymend_memory::open(&place, embedder).await?)
}

impl Remembering {
    /// The memory of a database, where there is one. That the user's own cannot be opened is told, and no reason not to answer;
    /// one that was asked for must be there. Unless something may be kept, no file is made.
    pub fn memory(
        &self,
        engine: &dyn Engine,
        address: &str,
        keeps: bool,
        config: &Config,
        runtime: &Runtime,
        out: &Out,
    ) -> Result<Option<Memory>, Failure> {
        let open = || runtime.block_on(self.store(keeps, config));
        match open() {
            Ok(None) => Ok(None),
            Ok(Some(store)) => Ok(Some(of(store, engine, address, config))),
            Err(failure) if self.store.is_some() => Err(failure),
            Err(failure) => {
                out.note(&format!("note: nothing is remembered: {}", failure.what));
                Ok(None)
            }
        }
    }

    /// The store, where it is wanted and there is anything in it.
    pub async fn store(&self, keeps: bool, config: &Config) -> Result<Option<Arc<dyn ExampleStore>>, Failure> {
        if self.no_memory || !config.memory.enabled {
            return Ok(None);
        }
        let named = self.store.as_deref();
        // Without a folder for it there is nothing to remember, and that is no trouble.
        let Ok(place) = place(named, config) else { return Ok(None) };
        let file = !place.contains("://");
        if file && !keeps && named.is_none() && !Path::new(&place).exists() {
            return Ok(None);
        }
        open(named, config).await.map(Some)
    }
}

/// The memory of a database in a store.
pub fn of(store: Arc<dyn ExampleStore>, engine: &dyn Engine, address: &str, config: &Config) -> Memory {
    Memory::new(store, identity(engine, address), engine.dialect().name, &config.memory)
}

/// A name that means this database alone: the whole path of a file, or the address of a server without who asks.
pub fn identity(engine: &dyn Engine, address: &str) -> String {
    let path = address.strip_prefix("sqlite:").unwrap_or(address);
    let path = PathBuf::from(path.strip_prefix("//").unwrap_or(path));
    match std::fs::canonicalize(&path) {
        Ok(whole) => whole.to_string_lossy().into_owned(),
        Err(_) => engine.name().to_string(),
    }
}
