//! Adapters that travel with the program: what was learned for a model, to be added to it when it is loaded. `models/README.md` says
//! how each was made and what it is worth.

use std::path::PathBuf;

/// The adapters, by the names that `models.toml` uses.
static ADAPTERS: &[(&str, &[u8])] =
    &[("qwen2.5-coder-0.5b-sql-r16", include_bytes!("../../../models/qwen2.5-coder-0.5b-sql-r16.safetensors"))];

/// A change to a model that was learned apart (LoRA, in the safetensors format).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AdapterSource {
    /// A file of the user's own.
    File(PathBuf),
    /// One that travels with the program.
    Own(&'static str),
}

/// The adapter of that name.
pub(crate) fn own(name: &str) -> Option<(&'static str, &'static [u8])> {
    ADAPTERS.iter().find(|(known, _)| *known == name).copied()
}
