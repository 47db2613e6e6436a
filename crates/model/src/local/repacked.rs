//! Disk cache of weights repacked for the CPU, because repacking takes several seconds.

use std::fs::{self, File};
use std::hash::Hasher;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use candle_core::quantized::QTensor;
use candle_core::quantized::gguf_file::{self, Value};
use querymend_net::Fnv1aHasher;

use super::LocalFiles;
use super::error::LocalModelError;
use super::lora::LoraAdapter;
use super::weights::{FORMAT_VERSION_KEY, GgufReader, ModelTensors, ModelWeights};

/// Version of the format; an increment invalidates older files.
const FORMAT_VERSION: u32 = 1;

/// Loads the weights of a model with its adapter, from the cache if possible, else repacks and
/// caches them.
pub(super) fn load_weights(files: &LocalFiles, source: GgufReader) -> Result<ModelWeights, LocalModelError> {
    let adapter = files.adapter.as_ref().map(LoraAdapter::read).transpose()?;
    let path = files.repacked_dir.as_deref().and_then(|folder| repacked_path(files, adapter.as_ref(), folder));
    if let Some(path) = &path
        && let Ok(prepared) = GgufReader::open(path)
        && prepared.is_repacked(FORMAT_VERSION)
        && let Ok(weights) = prepared.load_tensors(None).and_then(ModelTensors::into_weights)
    {
        return Ok(weights);
    }
    let parts = source.load_tensors(adapter.as_ref())?;
    if let Some(path) = path {
        // Best effort: without disk space or permissions the model still works.
        let _ = save(&path, &parts);
    }
    parts.into_weights()
}

/// Returns the path of the cache file, whose name depends on the state of the model file and the
/// adapter.
fn repacked_path(files: &LocalFiles, adapter: Option<&LoraAdapter>, folder: &Path) -> Option<PathBuf> {
    let metadata = fs::metadata(&files.model).ok()?;
    let written = metadata.modified().ok()?.duration_since(std::time::UNIX_EPOCH).ok()?;
    let mut hasher = Fnv1aHasher::default();
    hasher.write(&metadata.len().to_le_bytes());
    hasher.write(&written.as_nanos().to_le_bytes());
    if let Some(adapter) = adapter {
        hasher.write(adapter.bytes());
    }
    let stem = files.model.file_stem()?.to_str()?;
    Some(folder.join(format!("{stem}-{:016x}.gguf", hasher.finish())))
}

/// Writes to a temporary file and renames it, so that the cache file is always complete.
///
/// Older versions of the same model are deleted first to free space.
fn save(path: &Path, parts: &ModelTensors) -> Result<(), Box<dyn std::error::Error>> {
    let folder = path.parent().ok_or("no folder")?;
    fs::create_dir_all(folder)?;
    let name = path.file_name().and_then(|name| name.to_str()).ok_or("no name")?;
    let (stem, _) = name.rsplit_once('-').ok_or("no stem")?;
    for entry in fs::read_dir(folder)?.flatten() {
        if entry.file_name().to_str().and_then(|other| other.rsplit_once('-')).is_some_and(|(other, _)| other == stem) {
            let _ = fs::remove_file(entry.path());
        }
    }
    let beside = folder.join(format!("{name}.{}.part", std::process::id()));
    let written = write_gguf(&beside, parts).and_then(|()| Ok(fs::rename(&beside, path)?));
    if written.is_err() {
        let _ = fs::remove_file(&beside);
    }
    written
}

fn write_gguf(path: &Path, parts: &ModelTensors) -> Result<(), Box<dyn std::error::Error>> {
    let form = Value::U32(FORMAT_VERSION);
    let mut head: Vec<(&str, &Value)> = parts.metadata.iter().map(|(key, value)| (key.as_str(), value)).collect();
    head.push((FORMAT_VERSION_KEY, &form));
    let tensors: Vec<(&str, &QTensor)> = parts.tensors.iter().map(|(name, tensor)| (name.as_str(), tensor)).collect();
    let mut file = BufWriter::with_capacity(1 << 20, File::create(path)?);
    gguf_file::write(&mut file, &head, &tensors)?;
    file.flush()?;
    file.get_ref().sync_all()?;
    Ok(())
}
