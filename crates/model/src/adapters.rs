//! Bundled LoRA adapters, applied to a model when it is loaded.
//!
//! `models/README.md` documents the training and evaluation of each.

use std::path::PathBuf;

/// Adapters by the names used in `models.toml`.
static BUNDLED_ADAPTERS: &[(&str, &[u8])] =
    &[("qwen2.5-coder-0.5b-sql-r16", include_bytes!("../../../models/qwen2.5-coder-0.5b-sql-r16.safetensors"))];

/// LoRA adapter for a model, in the safetensors format.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AdapterSource {
    /// A file supplied by the user.
    File(PathBuf),
    /// An adapter compiled into the program.
    Bundled(&'static str),
}

/// Returns the name and content of a bundled adapter.
pub(crate) fn bundled_adapter(name: &str) -> Option<(&'static str, &'static [u8])> {
    BUNDLED_ADAPTERS.iter().find(|(known, _)| *known == name).copied()
}
