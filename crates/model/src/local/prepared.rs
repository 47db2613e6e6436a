//! A model's numbers in the form that the CPU likes best, kept on disk: bringing them into it takes several seconds.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use candle_core::quantized::QTensor;
use candle_core::quantized::gguf_file::{self, Value};

use super::LocalFiles;
use super::adapter::Adapter;
use super::trouble::Trouble;
use super::weights::{FORM_KEY, Parts, Source, Weights};

/// Goes up when the form changes, so that older files are made anew.
const FORM: u32 = 1;

/// The weights of a model with its adapter: as prepared earlier, or prepared now and kept for the next time.
pub(super) fn weights(files: &LocalFiles, source: Source) -> Result<Weights, Trouble> {
    let adapter = files.adapter.as_ref().map(Adapter::read).transpose()?;
    let path = files.prepared.as_deref().and_then(|folder| place(files, adapter.as_ref(), folder));
    if let Some(path) = &path
        && let Ok(prepared) = Source::open(path)
        && prepared.is_prepared(FORM)
        && let Ok(weights) = prepared.parts(None).and_then(Parts::weights)
    {
        return Ok(weights);
    }
    let parts = source.parts(adapter.as_ref())?;
    if let Some(path) = path {
        // Where it cannot be kept (no room, no right to), the model works all the same.
        let _ = keep(&path, &parts);
    }
    parts.weights()
}

/// Where the prepared form of these files is kept. Its name changes when one of the files does.
fn place(files: &LocalFiles, adapter: Option<&Adapter>, folder: &Path) -> Option<PathBuf> {
    let about = fs::metadata(&files.model).ok()?;
    let written = about.modified().ok()?.duration_since(std::time::UNIX_EPOCH).ok()?;
    let mut mark = Mark::new();
    mark.add(&about.len().to_le_bytes());
    mark.add(&written.as_nanos().to_le_bytes());
    if let Some(adapter) = adapter {
        mark.add(adapter.bytes());
    }
    let stem = files.model.file_stem()?.to_str()?;
    Some(folder.join(format!("{stem}-{:016x}.gguf", mark.0)))
}

/// Writes beside and renames, so that what lies there is whole; older forms of the same model make room first.
fn keep(path: &Path, parts: &Parts) -> Result<(), Box<dyn std::error::Error>> {
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
    let written = write(&beside, parts).and_then(|()| Ok(fs::rename(&beside, path)?));
    if written.is_err() {
        let _ = fs::remove_file(&beside);
    }
    written
}

fn write(path: &Path, parts: &Parts) -> Result<(), Box<dyn std::error::Error>> {
    let form = Value::U32(FORM);
    let mut head: Vec<(&str, &Value)> = parts.head.iter().map(|(key, value)| (key.as_str(), value)).collect();
    head.push((FORM_KEY, &form));
    let tensors: Vec<(&str, &QTensor)> = parts.tensors.iter().map(|(name, tensor)| (name.as_str(), tensor)).collect();
    let mut file = BufWriter::with_capacity(1 << 20, File::create(path)?);
    gguf_file::write(&mut file, &head, &tensors)?;
    file.flush()?;
    file.get_ref().sync_all()?;
    Ok(())
}

/// A short mark of some bytes (FNV-1a).
struct Mark(u64);

impl Mark {
    fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    fn add(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
}
