//! In-process all-MiniLM-L6-v2: six BERT layers and mean pooling.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use candle_core::{D, DType, Device, Tensor};
use candle_nn::ops::{layer_norm, softmax_last_dim};
use tokenizers::{Tokenizer, TruncationParams};

use super::{Embedder, normalize};
use crate::BoxFuture;
use crate::error::Error;

/// Sentence embedder all-MiniLM-L6-v2, loaded from its published files.
#[derive(Debug, Clone)]
pub struct MiniLm(Arc<Bert>);

struct Bert {
    name: String,
    tokenizer: Tokenizer,
    weights: HashMap<String, Tensor>,
}

impl fmt::Debug for Bert {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bert").field("name", &self.name).finish_non_exhaustive()
    }
}

const HIDDEN_SIZE: usize = 384;
const HEADS: usize = 12;
const LAYERS: usize = 6;
/// Maximum number of tokens per text; longer texts are truncated, as in the reference
/// implementation.
const MAX_TOKENS: usize = 256;
/// Number of tokens per forward pass.
const BATCH_TOKENS: usize = 2048;
const EPSILON: f32 = 1e-12;

impl MiniLm {
    /// Reads `model.safetensors` and `tokenizer.json` from a folder.
    pub fn read(folder: &Path) -> Result<Self, Error> {
        let wrong = |why: &dyn fmt::Display| {
            Error::configuration(
                format!("{} does not contain all-MiniLM-L6-v2: {why}", folder.display()),
                "it needs model.safetensors and tokenizer.json of sentence-transformers/all-MiniLM-L6-v2",
            )
        };
        let file = |name: &str| {
            std::fs::read(folder.join(name)).map_err(|why| wrong(&format!("{name} cannot be read: {why}")))
        };
        let mut tokenizer = Tokenizer::from_bytes(file("tokenizer.json")?).map_err(|why| wrong(&why))?;
        tokenizer.with_padding(None);
        let cut = TruncationParams { max_length: MAX_TOKENS, ..TruncationParams::default() };
        tokenizer.with_truncation(Some(cut)).map_err(|why| wrong(&why))?;
        let weights = candle_core::safetensors::load_buffer(&file("model.safetensors")?, &Device::Cpu);
        let mut weights = weights.map_err(|why| wrong(&why))?;
        weights.retain(|_, tensor| tensor.dtype() == DType::F32);
        for (name, shape) in expected_shapes() {
            match weights.get(&name) {
                Some(tensor) if tensor.dims() == shape => {}
                Some(tensor) => return Err(wrong(&format!("{name} is {:?} and not {shape:?}", tensor.dims()))),
                None => return Err(wrong(&format!("{name} is missing"))),
            }
        }
        let words = weights.get(WORD_EMBEDDINGS).map_or(0, |table| table.dims().first().copied().unwrap_or(0));
        if tokenizer.get_vocab_size(true) > words {
            return Err(wrong(&"the tokenizer has more tokens than the model"));
        }
        Ok(Self(Arc::new(Bert { name: "minilm".to_owned(), tokenizer, weights })))
    }

    /// Embeds texts synchronously, which takes some milliseconds of CPU time per text.
    pub fn vectors(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, Error> {
        self.0.vectors(texts)
    }
}

impl Embedder for MiniLm {
    fn name(&self) -> &str {
        &self.0.name
    }

    fn dimensions(&self) -> Option<usize> {
        Some(HIDDEN_SIZE)
    }

    fn embed<'a>(&'a self, texts: &'a [&'a str]) -> BoxFuture<'a, Vec<Vec<f32>>> {
        Box::pin(async move {
            // Runs on a blocking thread, because it would stall the other tasks on this one.
            let Ok(runtime) = tokio::runtime::Handle::try_current() else { return self.vectors(texts) };
            let model = self.clone();
            let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
            let work = runtime.spawn_blocking(move || {
                let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
                model.vectors(&texts)
            });
            work.await.unwrap_or(Err(Error::Cancelled))
        })
    }
}

const WORD_EMBEDDINGS: &str = "embeddings.word_embeddings.weight";

/// Returns the names and shapes of all tensors that are read.
fn expected_shapes() -> Vec<(String, Vec<usize>)> {
    let norm = |name: &str| ["weight", "bias"].map(|part| (format!("{name}.LayerNorm.{part}"), vec![HIDDEN_SIZE]));
    let mut all = vec![
        (WORD_EMBEDDINGS.to_owned(), vec![30_522, HIDDEN_SIZE]),
        ("embeddings.position_embeddings.weight".to_owned(), vec![512, HIDDEN_SIZE]),
        ("embeddings.token_type_embeddings.weight".to_owned(), vec![2, HIDDEN_SIZE]),
    ];
    all.extend(norm("embeddings"));
    for layer in 0..LAYERS {
        let layer = format!("encoder.layer.{layer}");
        for (name, out, from) in [
            ("attention.self.query", HIDDEN_SIZE, HIDDEN_SIZE),
            ("attention.self.key", HIDDEN_SIZE, HIDDEN_SIZE),
            ("attention.self.value", HIDDEN_SIZE, HIDDEN_SIZE),
            ("attention.output.dense", HIDDEN_SIZE, HIDDEN_SIZE),
            ("intermediate.dense", 4 * HIDDEN_SIZE, HIDDEN_SIZE),
            ("output.dense", HIDDEN_SIZE, 4 * HIDDEN_SIZE),
        ] {
            all.push((format!("{layer}.{name}.weight"), vec![out, from]));
            all.push((format!("{layer}.{name}.bias"), vec![out]));
        }
        all.extend(norm(&format!("{layer}.attention.output")));
        all.extend(norm(&format!("{layer}.output")));
    }
    all
}

impl Bert {
    fn vectors(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, Error> {
        let failed = |why: &dyn fmt::Display| Error::BadResponse { model: self.name.clone(), message: why.to_string() };
        let mut vectors = vec![vec![0.0; HIDDEN_SIZE]; texts.len()];
        // Texts of equal length are batched together, so that no padding or masking is needed.
        let mut by_length: BTreeMap<usize, Vec<(usize, Vec<u32>)>> = BTreeMap::new();
        for (at, text) in texts.iter().enumerate().filter(|(_, text)| !text.trim().is_empty()) {
            let tokens = self.tokenizer.encode_fast(*text, true).map_err(|why| failed(&why))?;
            by_length.entry(tokens.get_ids().len()).or_default().push((at, tokens.get_ids().to_vec()));
        }
        for (length, members) in by_length {
            for some in members.chunks((BATCH_TOKENS / length.max(1)).max(1)) {
                let ids: Vec<u32> = some.iter().flat_map(|(_, ids)| ids).copied().collect();
                let means = self.mean_pool(ids, some.len(), length).map_err(|why| failed(&why))?;
                for ((at, _), mut mean) in some.iter().zip(means) {
                    normalize(&mut mean);
                    if let Some(place) = vectors.get_mut(*at) {
                        *place = mean;
                    }
                }
            }
        }
        Ok(vectors)
    }

    /// Returns the mean over the tokens of the last layer, for rows of equal length.
    fn mean_pool(&self, ids: Vec<u32>, rows: usize, length: usize) -> candle_core::Result<Vec<Vec<f32>>> {
        let ids = Tensor::from_vec(ids, rows * length, &Device::Cpu)?;
        let words = self.weight(WORD_EMBEDDINGS)?.index_select(&ids, 0)?.reshape((rows, length, HIDDEN_SIZE))?;
        let places = self.weight("embeddings.position_embeddings.weight")?.narrow(0, 0, length)?;
        let kind = self.weight("embeddings.token_type_embeddings.weight")?.narrow(0, 0, 1)?;
        let mut x = words.broadcast_add(&places.broadcast_add(&kind)?)?.reshape((rows * length, HIDDEN_SIZE))?;
        x = self.norm(&x, "embeddings")?;
        for layer in 0..LAYERS {
            let name = |part: &str| format!("encoder.layer.{layer}.{part}");
            let heads = |part: &str| {
                let all = self.linear(&x, &name(part))?.reshape((rows, length, HEADS, HIDDEN_SIZE / HEADS))?;
                all.transpose(1, 2)?.contiguous()
            };
            let (query, key) = (heads("attention.self.query")?, heads("attention.self.key")?);
            let scores = (query.matmul(&key.t()?)? / ((HIDDEN_SIZE / HEADS) as f64).sqrt())?;
            let heard = softmax_last_dim(&scores)?.matmul(&heads("attention.self.value")?)?;
            let heard = heard.transpose(1, 2)?.contiguous()?.reshape((rows * length, HIDDEN_SIZE))?;
            x = self.norm(&(&x + self.linear(&heard, &name("attention.output.dense"))?)?, &name("attention.output"))?;
            let wide = self.linear(&x, &name("intermediate.dense"))?.gelu_erf()?;
            x = self.norm(&(&x + self.linear(&wide, &name("output.dense"))?)?, &name("output"))?;
        }
        x.reshape((rows, length, HIDDEN_SIZE))?.mean(D::Minus2)?.to_vec2()
    }

    fn weight(&self, name: &str) -> candle_core::Result<&Tensor> {
        self.weights.get(name).ok_or_else(|| candle_core::Error::Msg(format!("{name} is missing")))
    }

    fn linear(&self, x: &Tensor, name: &str) -> candle_core::Result<Tensor> {
        let product = x.matmul(&self.weight(&format!("{name}.weight"))?.t()?)?;
        product.broadcast_add(self.weight(&format!("{name}.bias"))?)
    }

    fn norm(&self, x: &Tensor, name: &str) -> candle_core::Result<Tensor> {
        let part = |part: &str| self.weight(&format!("{name}.LayerNorm.{part}"));
        layer_norm(x, part("weight")?, part("bias")?, EPSILON)
    }
}
