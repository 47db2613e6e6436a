//! Files of local models.

use std::path::{Path, PathBuf};

use crate::adapters::{self, AdapterSource};
use crate::error::Error;
use crate::model_cache::ModelCache;
use crate::providers::Providers;

/// Files of a local model.
#[derive(Debug, Clone)]
pub struct LocalFiles {
    /// Model in the GGUF format.
    pub model: PathBuf,
    /// LoRA adapter to apply to it.
    pub adapter: Option<AdapterSource>,
    /// Directory for weights repacked for the CPU. Without it they are repacked on every load.
    pub repacked_dir: Option<PathBuf>,
}

impl LocalFiles {
    /// Resolves a pulled model's name, or a model file with an optional adapter after a plus sign, to
    /// files.
    pub(crate) fn resolve(spec: &str, providers: &Providers) -> Result<Self, Error> {
        let cache = ModelCache::user_default();
        let prepared = cache.as_ref().map(ModelCache::repacked_dir);
        if let Some((model, adapter)) = spec.split_once(".gguf+") {
            return Ok(Self {
                model: format!("{model}.gguf").into(),
                adapter: Some(AdapterSource::File(adapter.into())),
                repacked_dir: prepared,
            });
        }
        if spec.ends_with(".gguf") || Path::new(spec).components().count() > 1 {
            return Ok(Self { model: spec.into(), adapter: None, repacked_dir: prepared });
        }
        let entry = providers.registry.get(spec)?;
        match cache.filter(|cache| cache.has(entry)) {
            Some(cache) => {
                let adapter = entry.adapter.as_deref().map(|name| match adapters::bundled_adapter(name) {
                    Some((name, _)) => Ok(AdapterSource::Bundled(name)),
                    None => Err(Error::configuration(
                        format!("there is no adapter `{name}` for the model {}", entry.name),
                        "remove it from the list of models, or name the files: local:MODEL.gguf+ADAPTER.safetensors",
                    )),
                });
                Ok(Self { model: cache.model_path(entry), adapter: adapter.transpose()?, repacked_dir: prepared })
            }
            None => Err(Error::configuration(
                format!("the model {} is not downloaded", entry.name),
                format!("fetch it with `querymend model pull {}`", entry.name),
            )),
        }
    }
}
