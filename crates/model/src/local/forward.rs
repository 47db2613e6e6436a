//! Transformer forward pass: tokens in, logits of the next token out.

use candle_core::{Device, Result, Tensor};
use candle_nn::{ops, rotary_emb};

use super::weights::{Architecture, Layer, Linear, ModelHyperparameters, ModelWeights};

/// Number of prompt tokens per forward pass: enough to keep the kernels busy, few enough to cancel
/// in between.
pub(super) const PREFILL_CHUNK_TOKENS: usize = 256;

/// Keys and values of the processed tokens, for each layer.
#[derive(Default)]
pub(super) struct KvCache {
    layers: Vec<(Tensor, Tensor)>,
    length: usize,
}

impl KvCache {
    /// Returns the number of tokens.
    pub(super) fn len(&self) -> usize {
        self.length
    }

    /// Discards everything after the first `length` tokens.
    pub(super) fn truncate(&mut self, length: usize) {
        self.length = self.length.min(length);
    }

    /// Returns an independent copy.
    pub(super) fn fork(&self) -> Result<Self> {
        let mut layers = Vec::with_capacity(self.layers.len());
        for (keys, values) in &self.layers {
            layers.push((keys.copy()?, values.copy()?));
        }
        Ok(Self { layers, length: self.length })
    }

    /// Ensures capacity for `more` tokens in every layer.
    fn reserve(&mut self, hyperparameters: &ModelHyperparameters, more: usize) -> Result<()> {
        let capacity = self.layers.first().map_or(0, |(keys, _)| keys.dims()[1]);
        if self.layers.len() == hyperparameters.layers && self.length + more <= capacity {
            return Ok(());
        }
        let capacity_needed = (self.length + more)
            .max(capacity * 2)
            .next_multiple_of(PREFILL_CHUNK_TOKENS)
            .min(hyperparameters.context.max(self.length + more));
        let fresh = |old: Option<&Tensor>| -> Result<Tensor> {
            let tensor = Tensor::zeros(
                (hyperparameters.kv_heads, capacity_needed, hyperparameters.head_size),
                candle_core::DType::F32,
                &Device::Cpu,
            )?;
            if let Some(old) = old.filter(|_| self.length > 0) {
                tensor.slice_set(&old.narrow(1, 0, self.length)?.contiguous()?, 1, 0)?;
            }
            Ok(tensor)
        };
        let mut layers = Vec::with_capacity(hyperparameters.layers);
        for index in 0..hyperparameters.layers {
            let old = self.layers.get(index);
            layers.push((fresh(old.map(|(keys, _)| keys))?, fresh(old.map(|(_, values)| values))?));
        }
        self.layers = layers;
        Ok(())
    }
}

/// Transformer with loaded weights.
pub(super) struct Transformer {
    weights: ModelWeights,
    /// Cosine and sine tables of the rotary position embeddings, up to the maximum context length.
    rope_tables: (Tensor, Tensor),
}

/// Sequence in a batch: its KV cache and the new tokens.
pub(super) struct ForwardInput<'a> {
    pub(super) kv_cache: &'a mut KvCache,
    pub(super) tokens: &'a [u32],
}

impl Transformer {
    pub(super) fn new(weights: ModelWeights, context: usize) -> Result<Self> {
        let ModelHyperparameters { head_size, rope_base, .. } = weights.hyperparameters;
        let rates: Vec<f32> =
            (0..head_size).step_by(2).map(|i| 1.0 / rope_base.powf(i as f32 / head_size as f32)).collect();
        let half = rates.len();
        let rates = Tensor::from_vec(rates, (1, half), &Device::Cpu)?;
        let positions = Tensor::arange(0, context as u32, &Device::Cpu)?
            .to_dtype(candle_core::DType::F32)?
            .reshape((context, 1))?;
        let angles = positions.matmul(&rates)?;
        Ok(Self { rope_tables: (angles.cos()?, angles.sin()?), weights })
    }

    pub(super) fn hyperparameters(&self) -> &ModelHyperparameters {
        &self.weights.hyperparameters
    }

    /// Processes the new tokens of each sequence; returns one row of next-token logits per
    /// sequence.
    ///
    /// Sequences share the matrix multiplications, so that eight cost little more than one.
    pub(super) fn forward(&self, inputs: &mut [ForwardInput<'_>]) -> Result<Tensor> {
        let hyperparameters = &self.weights.hyperparameters;
        let tokens: Vec<u32> = inputs.iter().flat_map(|input| input.tokens.iter().copied()).collect();
        for input in inputs.iter_mut() {
            input.kv_cache.reserve(hyperparameters, input.tokens.len())?;
        }
        let mut rows = self.weights.embed(&tokens)?;
        for (index, layer) in self.weights.layers.iter().enumerate() {
            let normed = ops::rms_norm(&rows, &layer.attention_norm, hyperparameters.epsilon)?;
            let attended = self.attend(layer, index, &normed, inputs)?;
            rows = (rows + layer.attention_out.apply(&attended)?)?;
            let normed = ops::rms_norm(&rows, &layer.feed_norm, hyperparameters.epsilon)?;
            let both = apply_concatenated(&layer.gate_up, &normed)?;
            let half = both.dim(1)? / 2;
            let fed = (ops::silu(&both.narrow(1, 0, half)?.contiguous()?)? * both.narrow(1, half, half)?)?;
            rows = (rows + layer.down.apply(&fed)?)?;
        }
        let mut last = Vec::with_capacity(inputs.len());
        let mut end = 0;
        for input in inputs.iter_mut() {
            input.kv_cache.length += input.tokens.len();
            end += input.tokens.len();
            last.push(rows.narrow(0, end - 1, 1)?);
        }
        let last = if last.len() == 1 { last.remove(0).contiguous()? } else { Tensor::cat(&last, 0)? };
        let last = ops::rms_norm(&last, &self.weights.norm, hyperparameters.epsilon)?;
        self.weights.output.apply(&last)
    }

    fn attend(&self, layer: &Layer, index: usize, normed: &Tensor, inputs: &mut [ForwardInput<'_>]) -> Result<Tensor> {
        let &ModelHyperparameters { heads, kv_heads, head_size, epsilon, .. } = self.hyperparameters();
        let mixed = apply_concatenated(&layer.query_key_value, normed)?;
        let mut out = Vec::with_capacity(inputs.len());
        let mut start = 0;
        for input in inputs.iter_mut() {
            let count = input.tokens.len();
            let mine = mixed.narrow(0, start, count)?;
            start += count;
            let part = |from: usize, heads: usize| {
                mine.narrow(1, from * head_size, heads * head_size)?.contiguous()?.reshape((count, heads, head_size))
            };
            let mut queries = part(0, heads)?;
            let mut keys = part(heads, kv_heads)?;
            let values = part(heads + kv_heads, kv_heads)?.transpose(0, 1)?.contiguous()?;
            if let Some(norm) = &layer.query_norm {
                queries = ops::rms_norm(&queries, norm, epsilon)?;
            }
            if let Some(norm) = &layer.key_norm {
                keys = ops::rms_norm(&keys, norm, epsilon)?;
            }
            let before = input.kv_cache.length;
            let queries = self.apply_rope(&queries, before)?;
            let keys = self.apply_rope(&keys, before)?;
            let (kept_keys, kept_values) = &input.kv_cache.layers[index];
            kept_keys.slice_set(&keys, 1, before)?;
            kept_values.slice_set(&values, 1, before)?;
            let all_keys = kept_keys.narrow(1, 0, before + count)?;
            let all_values = kept_values.narrow(1, 0, before + count)?;
            // Grouped-query attention: queries that share keys are stacked, so that no keys are
            // copied.
            let group = heads / kv_heads;
            let queries = (queries.reshape((kv_heads, group * count, head_size))? * (1.0 / (head_size as f64).sqrt()))?;
            let mut scores = queries.matmul(&all_keys.transpose(1, 2)?)?;
            if count > 1 {
                let mask = causal_mask(count, before)?;
                scores = scores.reshape((heads, count, before + count))?.broadcast_add(&mask)?.reshape((
                    kv_heads,
                    group * count,
                    before + count,
                ))?;
            }
            let shares = ops::softmax_last_dim(&scores)?;
            let seen = shares.matmul(&all_values)?.reshape((heads, count, head_size))?;
            out.push(seen.transpose(0, 1)?.reshape((count, heads * head_size))?);
        }
        if out.len() == 1 { Ok(out.remove(0)) } else { Tensor::cat(&out, 0) }
    }

    /// Applies rotary position embeddings to (tokens, heads, size); returns (heads, tokens, size).
    fn apply_rope(&self, rows: &Tensor, before: usize) -> Result<Tensor> {
        let rows = rows.transpose(0, 1)?.contiguous()?.unsqueeze(0)?;
        let count = rows.dim(2)?;
        let (cos, sin) = (self.rope_tables.0.narrow(0, before, count)?, self.rope_tables.1.narrow(0, before, count)?);
        let turned = match self.hyperparameters().architecture {
            Architecture::Llama => rotary_emb::rope_i(&rows, &cos, &sin)?,
            Architecture::Qwen2 | Architecture::Qwen3 => rotary_emb::rope(&rows, &cos, &sin)?,
        };
        turned.squeeze(0)
    }
}

fn apply_concatenated(parts: &[Linear], rows: &Tensor) -> Result<Tensor> {
    match parts {
        [one] => one.apply(rows),
        parts => {
            let done: Result<Vec<Tensor>> = parts.iter().map(|part| part.apply(rows)).collect();
            Tensor::cat(&done?, 1)
        }
    }
}

/// Builds the causal mask: a token attends to itself and all earlier tokens.
fn causal_mask(count: usize, before: usize) -> Result<Tensor> {
    let total = before + count;
    let mut mask = vec![0f32; count * total];
    for row in 0..count {
        for place in mask[row * total + before + row + 1..(row + 1) * total].iter_mut() {
            *place = f32::NEG_INFINITY;
        }
    }
    Tensor::from_vec(mask, (1, count, total), &Device::Cpu)
}
