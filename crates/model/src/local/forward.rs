//! The arithmetic of a transformer: tokens in, a score for every possible next token out.

use candle_core::{Device, Result, Tensor};
use candle_nn::{ops, rotary_emb};

use super::weights::{Family, Layer, Linear, Measures, Weights};

/// How many tokens of a prompt are worked on at a time: enough to keep the kernels busy, few enough to stop in between.
pub(super) const STRIDE: usize = 256;

/// What the model has read so far: keys and values of each layer.
#[derive(Default)]
pub(super) struct Memory {
    layers: Vec<(Tensor, Tensor)>,
    length: usize,
}

impl Memory {
    /// How many tokens it holds.
    pub(super) fn len(&self) -> usize {
        self.length
    }

    /// Forgets everything after the first `length` tokens.
    pub(super) fn truncate(&mut self, length: usize) {
        self.length = self.length.min(length);
    }

    /// A copy that can go its own way.
    pub(super) fn fork(&self) -> Result<Self> {
        let mut layers = Vec::with_capacity(self.layers.len());
        for (keys, values) in &self.layers {
            layers.push((keys.copy()?, values.copy()?));
        }
        Ok(Self { layers, length: self.length })
    }

    /// Room for `more` tokens in every layer.
    fn reserve(&mut self, measures: &Measures, more: usize) -> Result<()> {
        let capacity = self.layers.first().map_or(0, |(keys, _)| keys.dims()[1]);
        if self.layers.len() == measures.layers && self.length + more <= capacity {
            return Ok(());
        }
        let room = (self.length + more)
            .max(capacity * 2)
            .next_multiple_of(STRIDE)
            .min(measures.context.max(self.length + more));
        let fresh = |old: Option<&Tensor>| -> Result<Tensor> {
            let tensor =
                Tensor::zeros((measures.kv_heads, room, measures.head_size), candle_core::DType::F32, &Device::Cpu)?;
            if let Some(old) = old.filter(|_| self.length > 0) {
                tensor.slice_set(&old.narrow(1, 0, self.length)?.contiguous()?, 1, 0)?;
            }
            Ok(tensor)
        };
        let mut layers = Vec::with_capacity(measures.layers);
        for index in 0..measures.layers {
            let old = self.layers.get(index);
            layers.push((fresh(old.map(|(keys, _)| keys))?, fresh(old.map(|(_, values)| values))?));
        }
        self.layers = layers;
        Ok(())
    }
}

/// A model that can be run.
pub(super) struct Transformer {
    weights: Weights,
    /// Cosines and sines of the rotary positions, up to the longest context that is used.
    turns: (Tensor, Tensor),
}

/// One text that goes on: what was read, and the tokens that come now.
pub(super) struct Run<'a> {
    pub(super) memory: &'a mut Memory,
    pub(super) tokens: &'a [u32],
}

impl Transformer {
    pub(super) fn new(weights: Weights, context: usize) -> Result<Self> {
        let Measures { head_size, rope_base, .. } = weights.measures;
        let rates: Vec<f32> =
            (0..head_size).step_by(2).map(|i| 1.0 / rope_base.powf(i as f32 / head_size as f32)).collect();
        let half = rates.len();
        let rates = Tensor::from_vec(rates, (1, half), &Device::Cpu)?;
        let places = Tensor::arange(0, context as u32, &Device::Cpu)?
            .to_dtype(candle_core::DType::F32)?
            .reshape((context, 1))?;
        let angles = places.matmul(&rates)?;
        Ok(Self { turns: (angles.cos()?, angles.sin()?), weights })
    }

    pub(super) fn measures(&self) -> &Measures {
        &self.weights.measures
    }

    /// Reads the tokens of every run and gives, one row a run, the scores of the token after its last one. Runs share the
    /// multiplications, so that eight texts cost little more than one.
    pub(super) fn forward(&self, runs: &mut [Run<'_>]) -> Result<Tensor> {
        let measures = &self.weights.measures;
        let tokens: Vec<u32> = runs.iter().flat_map(|run| run.tokens.iter().copied()).collect();
        for run in runs.iter_mut() {
            run.memory.reserve(measures, run.tokens.len())?;
        }
        let mut rows = self.weights.embed(&tokens)?;
        for (index, layer) in self.weights.layers.iter().enumerate() {
            let normed = ops::rms_norm(&rows, &layer.attention_norm, measures.epsilon)?;
            let attended = self.attend(layer, index, &normed, runs)?;
            rows = (rows + layer.attention_out.apply(&attended)?)?;
            let normed = ops::rms_norm(&rows, &layer.feed_norm, measures.epsilon)?;
            let both = together(&layer.gate_up, &normed)?;
            let half = both.dim(1)? / 2;
            let fed = (ops::silu(&both.narrow(1, 0, half)?.contiguous()?)? * both.narrow(1, half, half)?)?;
            rows = (rows + layer.down.apply(&fed)?)?;
        }
        let mut last = Vec::with_capacity(runs.len());
        let mut end = 0;
        for run in runs.iter_mut() {
            run.memory.length += run.tokens.len();
            end += run.tokens.len();
            last.push(rows.narrow(0, end - 1, 1)?);
        }
        let last = if last.len() == 1 { last.remove(0).contiguous()? } else { Tensor::cat(&last, 0)? };
        let last = ops::rms_norm(&last, &self.weights.norm, measures.epsilon)?;
        self.weights.output.apply(&last)
    }

    fn attend(&self, layer: &Layer, index: usize, normed: &Tensor, runs: &mut [Run<'_>]) -> Result<Tensor> {
        let &Measures { heads, kv_heads, head_size, epsilon, .. } = self.measures();
        let mixed = together(&layer.query_key_value, normed)?;
        let mut out = Vec::with_capacity(runs.len());
        let mut start = 0;
        for run in runs.iter_mut() {
            let count = run.tokens.len();
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
            let before = run.memory.length;
            let queries = self.turn(&queries, before)?;
            let keys = self.turn(&keys, before)?;
            let (kept_keys, kept_values) = &run.memory.layers[index];
            kept_keys.slice_set(&keys, 1, before)?;
            kept_values.slice_set(&values, 1, before)?;
            let all_keys = kept_keys.narrow(1, 0, before + count)?;
            let all_values = kept_values.narrow(1, 0, before + count)?;
            // Several queries look at the same keys: they are put under each other, so that no key is copied.
            let group = heads / kv_heads;
            let queries = (queries.reshape((kv_heads, group * count, head_size))? * (1.0 / (head_size as f64).sqrt()))?;
            let mut scores = queries.matmul(&all_keys.transpose(1, 2)?)?;
            if count > 1 {
                let mask = mask(count, before)?;
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

    /// Turns each head by its token's place. Takes (tokens, heads, size), gives (heads, tokens, size).
    fn turn(&self, rows: &Tensor, before: usize) -> Result<Tensor> {
        let rows = rows.transpose(0, 1)?.contiguous()?.unsqueeze(0)?;
        let count = rows.dim(2)?;
        let (cos, sin) = (self.turns.0.narrow(0, before, count)?, self.turns.1.narrow(0, before, count)?);
        let turned = match self.measures().family {
            Family::Llama => rotary_emb::rope_i(&rows, &cos, &sin)?,
            Family::Qwen2 | Family::Qwen3 => rotary_emb::rope(&rows, &cos, &sin)?,
        };
        turned.squeeze(0)
    }
}

fn together(parts: &[Linear], rows: &Tensor) -> Result<Tensor> {
    match parts {
        [one] => one.apply(rows),
        parts => {
            let done: Result<Vec<Tensor>> = parts.iter().map(|part| part.apply(rows)).collect();
            Tensor::cat(&done?, 1)
        }
    }
}

/// A token sees itself and what came before it.
fn mask(count: usize, before: usize) -> Result<Tensor> {
    let total = before + count;
    let mut mask = vec![0f32; count * total];
    for row in 0..count {
        for place in mask[row * total + before + row + 1..(row + 1) * total].iter_mut() {
            *place = f32::NEG_INFINITY;
        }
    }
    Tensor::from_vec(mask, (1, count, total), &Device::Cpu)
}
