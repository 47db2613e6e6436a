//! Texts as vectors: which texts are alike, without asking a language model.
//!
//! [`open_embedder`] takes a word such as `static` or `openai:text-embedding-3-small` and gives an [`Embedder`]. The default
//! needs no file and no server: its vectors are compiled in (docs/embeddings.md says how they were made and what they are worth).

mod fixed;
mod minilm;
mod pieces;
mod server;

use std::path::Path;
use std::sync::Arc;

pub use fixed::Static;
pub use minilm::MiniLm;

use crate::Answer;
use crate::error::Error;
use crate::providers::Providers;

/// Makes vectors of texts. Vectors of one embedder can be compared with [`similarity`], those of different ones cannot.
pub trait Embedder: Send + Sync {
    /// What to call it in messages and in files that keep its vectors. Never holds a key.
    fn name(&self) -> &str;

    /// How long its vectors are; `None` where a server was not asked yet.
    fn dimensions(&self) -> Option<usize>;

    /// One vector of length one for each text, in their order; a text without any word has a vector of zeros.
    /// Dropping the future gives the work up.
    fn embed<'a>(&'a self, texts: &'a [&'a str]) -> Answer<'a, Vec<Vec<f32>>>;
}

/// How alike two texts are, by their vectors of one embedder: 1 is the same, 0 has nothing in common.
pub fn similarity(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Opens the embedder that a word means.
///
/// | word | embedder |
/// |---|---|
/// | `static`, or nothing | the one that is compiled in |
/// | `minilm:FOLDER` | all-MiniLM-L6-v2 from `model.safetensors` and `tokenizer.json` in this folder |
/// | `openai:text-embedding-3-small`, `ollama:nomic-embed-text`, … | a model of a provider in `providers.toml` that speaks like OpenAI |
/// | `http://127.0.0.1:8080/v1#name` | a model of a server at this address |
///
/// Nothing is sent yet, but a file or a key that is missing is an error here already.
pub fn open_embedder(spec: &str, providers: &Providers) -> Result<Arc<dyn Embedder>, Error> {
    let spec = spec.trim();
    if spec.is_empty() || spec == "static" {
        return Ok(Arc::new(Static::builtin()?));
    }
    if let Some(folder) = spec.strip_prefix("minilm:").filter(|folder| !folder.is_empty()) {
        return Ok(Arc::new(MiniLm::read(Path::new(folder))?));
    }
    if spec == "minilm" || spec == "minilm:" {
        return Err(Error::configuration(
            "`minilm` needs the folder that holds the model",
            "write it as minilm:FOLDER, with model.safetensors and tokenizer.json of all-MiniLM-L6-v2 in it",
        ));
    }
    Ok(Arc::new(server::Server::open(spec, providers)?))
}

/// Brings a vector to length one. One that has no length, or no number in it, is left as zeros.
fn to_unit(vector: &mut [f32]) {
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
    fn a_vector_without_length_stays_a_vector() {
        for (mut given, expected) in [
            (vec![3.0, 4.0], vec![0.6, 0.8]),
            (vec![0.0, 0.0], vec![0.0, 0.0]),
            (vec![f32::NAN, 1.0], vec![0.0, 0.0]),
            (vec![f32::INFINITY, 1.0], vec![0.0, 0.0]),
        ] {
            to_unit(&mut given);
            assert_eq!(given, expected);
        }
    }

    #[test]
    fn words_open_embedders() {
        let providers = Providers::builtin().unwrap().with_variables(|_| None);
        for spec in ["", "static", " static "] {
            assert_eq!(open_embedder(spec, &providers).unwrap().name(), "static");
        }
        for (spec, said) in [
            ("minilm", "folder"),
            ("minilm:/nowhere/at/all", "/nowhere/at/all"),
            ("openai:text-embedding-3-small", "OPENAI_API_KEY"),
            ("anthropic:x", "no embeddings"),
            ("nobody:x", "there is no provider `nobody`"),
            ("nobody:x", "static, or minilm:FOLDER"),
            ("openai", "names a provider and no model"),
            ("http://127.0.0.1:1/v1", "name behind it"),
            ("http://me:secret@127.0.0.1/v1#m", "password"),
        ] {
            let error = open_embedder(spec, &providers).err().unwrap();
            let all = format!("{error} {}", error.hint().unwrap());
            assert!(all.contains(said) && !all.contains("secret"), "{spec}: {all}");
        }
    }
}
