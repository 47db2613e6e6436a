//! Text embeddings.
//!
//! [`open_embedder`] takes a spec such as `static` or `openai:text-embedding-3-small` and returns
//! an [`Embedder`]. The default needs neither a file nor a server: its vectors are compiled in
//! (docs/design/embeddings.md describes their training and quality).

mod minilm;
mod remote;
mod static_embedding;
mod wordpiece;

use std::path::Path;
use std::sync::Arc;

pub use minilm::MiniLm;
pub use static_embedding::StaticEmbedder;

use crate::BoxFuture;
use crate::error::Error;
use crate::providers::Providers;

/// Computes embeddings of texts.
///
/// Only vectors of the same embedder can be compared with [`similarity`].
pub trait Embedder: Send + Sync {
    /// Returns the name for messages and for stores of its vectors. It never contains a key.
    fn name(&self) -> &str;

    /// Returns the length of the vectors, or `None` if it is unknown before the first request to a
    /// server.
    fn dimensions(&self) -> Option<usize>;

    /// Embeds texts in order, as unit vectors; a text without tokens gets the zero vector.
    ///
    /// Dropping the future cancels the computation.
    fn embed<'a>(&'a self, texts: &'a [&'a str]) -> BoxFuture<'a, Vec<Vec<f32>>>;
}

/// Returns the cosine similarity of two vectors of the same embedder: 1 is identical, 0 is
/// unrelated.
pub fn similarity(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Opens the embedder for a spec.
///
/// | spec | embedder |
/// |---|---|
/// | `static`, or empty | the built-in embedder |
/// | `minilm:FOLDER` | all-MiniLM-L6-v2 from `model.safetensors` and `tokenizer.json` in this folder |
/// | `openai:text-embedding-3-small`, `ollama:nomic-embed-text`, … | a model of an OpenAI-compatible provider in `providers.toml` |
/// | `http://127.0.0.1:8080/v1#name` | a model of an OpenAI-compatible server at this address |
///
/// Nothing is sent yet, but a missing file or key is reported immediately.
pub fn open_embedder(spec: &str, providers: &Providers) -> Result<Arc<dyn Embedder>, Error> {
    let spec = spec.trim();
    if spec.is_empty() || spec == "static" {
        return Ok(Arc::new(StaticEmbedder::builtin()?));
    }
    if let Some(folder) = spec.strip_prefix("minilm:").filter(|folder| !folder.is_empty()) {
        return Ok(Arc::new(MiniLm::read(Path::new(folder))?));
    }
    if spec == "minilm" || spec == "minilm:" {
        return Err(Error::configuration(
            "`minilm` needs the folder of the model",
            "write it as minilm:FOLDER, with model.safetensors and tokenizer.json of all-MiniLM-L6-v2 in it",
        ));
    }
    Ok(Arc::new(remote::RemoteEmbedder::open(spec, providers)?))
}

/// Normalizes a vector to unit length; one that is zero or not finite becomes zero.
fn normalize(vector: &mut [f32]) {
    let length = similarity(vector, vector).sqrt();
    let factor = if length.is_finite() && length > 1e-12 { 1.0 / length } else { 0.0 };
    for number in vector {
        *number = if factor == 0.0 { 0.0 } else { *number * factor };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn normalizes_vectors_without_length_to_zero() {
        for (mut given, expected) in [
            (vec![3.0, 4.0], vec![0.6, 0.8]),
            (vec![0.0, 0.0], vec![0.0, 0.0]),
            (vec![f32::NAN, 1.0], vec![0.0, 0.0]),
            (vec![f32::INFINITY, 1.0], vec![0.0, 0.0]),
        ] {
            normalize(&mut given);
            assert_eq!(given, expected);
        }
    }

    #[test]
    fn opens_embedders_by_spec() {
        let providers = Providers::builtin().unwrap().with_variables(|_| None);
        for spec in ["", "static", " static "] {
            assert_eq!(open_embedder(spec, &providers).unwrap().name(), "static");
        }
        for (spec, expected) in [
            ("minilm", "folder"),
            ("minilm:/nowhere/at/all", "/nowhere/at/all"),
            ("openai:text-embedding-3-small", "OPENAI_API_KEY"),
            ("anthropic:x", "no supported embeddings API"),
            ("nobody:x", "there is no provider `nobody`"),
            ("nobody:x", "static, or minilm:FOLDER"),
            ("openai", "names a provider but no model"),
            ("http://127.0.0.1:1/v1", "the name of the model"),
            ("http://me:secret@127.0.0.1/v1#m", "password"),
        ] {
            let error = open_embedder(spec, &providers).err().unwrap();
            let all = format!("{error} {}", error.hint().unwrap());
            assert!(all.contains(expected) && !all.contains("secret"), "{spec}: {all}");
        }
    }
}
