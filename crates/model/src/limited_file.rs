//! Reading of files up to a size limit.

use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Reads a text file of at most `max_bytes`; returns `None` if it is larger.
///
/// The size in the file's metadata is not used, because it is 0 for devices and pipes.
pub(crate) fn read_limited(file: &Path, max_bytes: u64) -> std::io::Result<Option<String>> {
    let mut text = String::new();
    let read = File::open(file)?.take(max_bytes + 1).read_to_string(&mut text)?;
    Ok((read as u64 <= max_bytes).then_some(text))
}
