//! Reads a GGUF file into matrices that the CPU multiplies quickly.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use std::sync::Arc;

use candle_core::quantized::gguf_file::{Content, Value};
use candle_core::quantized::{GgmlDType, QMatMul, QStorage, QTensor};
use candle_core::{DType, Device, Module, Tensor};

use super::adapter::Adapter;
use super::trouble::Trouble;

/// The block of numbers that the fast kernels take at a time. Rows are filled up with zeros to a multiple of it: the 0.5B
/// model of the Qwen family has rows of 896 numbers. Filled up to 1024 it reads prompts four to five times as fast, and writes
/// half as fast again.
const BLOCK: usize = 256;

/// The families of models whose arithmetic is known here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Family {
    Llama,
    Qwen2,
    Qwen3,
}

impl Family {
    fn named(name: &str) -> Option<Self> {
        match name {
            "llama" => Some(Self::Llama),
            "qwen2" => Some(Self::Qwen2),
            "qwen3" => Some(Self::Qwen3),
            _ => None,
        }
    }
}

/// The measures of a model.
#[derive(Debug, Clone)]
pub(super) struct Measures {
    pub(super) family: Family,
    pub(super) heads: usize,
    pub(super) kv_heads: usize,
    pub(super) head_size: usize,
    pub(super) width: usize,
    pub(super) layers: usize,
    pub(super) context: usize,
    pub(super) epsilon: f32,
    pub(super) rope_base: f32,
    pub(super) vocabulary: usize,
}

/// A matrix that rows are multiplied with, kept in a quantised form.
pub(super) struct Linear {
    matrix: QMatMul,
    bias: Option<Tensor>,
    /// How many zeros each row of the input needs to fit.
    fill: usize,
}

impl Linear {
    pub(super) fn apply(&self, rows: &Tensor) -> candle_core::Result<Tensor> {
        let out = if self.fill > 0 {
            self.matrix.forward(&rows.pad_with_zeros(1, 0, self.fill)?)?
        } else {
            self.matrix.forward(rows)?
        };
        match &self.bias {
            Some(bias) => out.broadcast_add(bias),
            None => Ok(out),
        }
    }
}

/// One layer: attention, then the two-sided feed-forward part.
pub(super) struct Layer {
    pub(super) attention_norm: Tensor,
    /// Queries, keys and values in one matrix where the file keeps them in one form, else three.
    pub(super) query_key_value: Vec<Linear>,
    pub(super) query_norm: Option<Tensor>,
    pub(super) key_norm: Option<Tensor>,
    pub(super) attention_out: Linear,
    pub(super) feed_norm: Tensor,
    /// Gate and up in one matrix where possible, else two.
    pub(super) gate_up: Vec<Linear>,
    pub(super) down: Linear,
}

/// A model's numbers.
pub(super) struct Weights {
    pub(super) measures: Measures,
    embedding: Arc<QTensor>,
    pub(super) layers: Vec<Layer>,
    pub(super) norm: Tensor,
    pub(super) output: Linear,
}

impl Weights {
    /// The rows that stand for these tokens.
    pub(super) fn embed(&self, tokens: &[u32]) -> candle_core::Result<Tensor> {
        let (_, width) = self.embedding.shape().dims2()?;
        let dtype = self.embedding.dtype();
        let row_bytes = width / dtype.block_size() * dtype.type_size();
        let data = self.embedding.data()?;
        let mut picked = Vec::with_capacity(tokens.len() * row_bytes);
        for token in tokens {
            let from = *token as usize * row_bytes;
            let row = data
                .get(from..from + row_bytes)
                .ok_or_else(|| candle_core::Error::Msg(format!("token {token} is not in the model's vocabulary")))?;
            picked.extend_from_slice(row);
        }
        let storage = QStorage::from_data(Cow::Owned(picked), &Device::Cpu, dtype)?;
        let rows = QTensor::new(storage, (tokens.len(), width))?.dequantize(&Device::Cpu)?;
        rows.narrow(1, 0, self.measures.width)?.contiguous()
    }
}

/// Reads the file's head and its matrices.
pub(super) struct Source {
    content: Content,
    reader: BufReader<File>,
}

impl Source {
    pub(super) fn open(path: &Path) -> Result<Self, Trouble> {
        let file = File::open(path).map_err(|error| Trouble::Unreadable(error.to_string()))?;
        let mut reader = BufReader::with_capacity(1 << 20, file);
        let content = Content::read(&mut reader).map_err(|error| Trouble::NotGguf(error.to_string()))?;
        Ok(Self { content, reader })
    }

    pub(super) fn content(&self) -> &Content {
        &self.content
    }

    fn number(&self, key: &str) -> Option<usize> {
        match self.content.metadata.get(key)? {
            Value::U8(n) => Some(*n as usize),
            Value::U16(n) => Some(*n as usize),
            Value::U32(n) => Some(*n as usize),
            Value::U64(n) => usize::try_from(*n).ok(),
            Value::I32(n) => usize::try_from(*n).ok(),
            Value::I64(n) => usize::try_from(*n).ok(),
            _ => None,
        }
    }

    fn float(&self, key: &str) -> Option<f32> {
        match self.content.metadata.get(key)? {
            Value::F32(n) => Some(*n),
            Value::F64(n) => Some(*n as f32),
            _ => None,
        }
    }

    pub(super) fn text(&self, key: &str) -> Option<&str> {
        match self.content.metadata.get(key)? {
            Value::String(text) => Some(text),
            _ => None,
        }
    }

    pub(super) fn measures(&self) -> Result<Measures, Trouble> {
        let name = self
            .text("general.architecture")
            .ok_or_else(|| Trouble::NotGguf("it does not say what kind of model it is".into()))?;
        let family = Family::named(name).ok_or_else(|| Trouble::OtherFamily(name.chars().take(40).collect()))?;
        let need = |key: &str| {
            let value = self.number(&format!("{name}.{key}")).filter(|n| *n > 0 && *n < 1 << 24);
            value.ok_or_else(|| Trouble::NotGguf(format!("{name}.{key} is missing or makes no sense")))
        };
        let (heads, width) = (need("attention.head_count")?, need("embedding_length")?);
        let kv_heads = self.number(&format!("{name}.attention.head_count_kv")).unwrap_or(heads);
        let head_size = self.number(&format!("{name}.attention.key_length")).unwrap_or(width / heads);
        if kv_heads == 0
            || !heads.is_multiple_of(kv_heads)
            || head_size == 0
            || !head_size.is_multiple_of(2)
            || head_size > 1024
        {
            return Err(Trouble::NotGguf(format!(
                "{heads} heads over {kv_heads} keys of {head_size} numbers make no sense"
            )));
        }
        let vocabulary =
            self.content.tensor_infos.get("token_embd.weight").and_then(|info| info.shape.dims().first().copied());
        Ok(Measures {
            family,
            heads,
            kv_heads,
            head_size,
            width,
            layers: need("block_count")?,
            context: need("context_length")?,
            epsilon: self.float(&format!("{name}.attention.layer_norm_rms_epsilon")).unwrap_or(1e-6),
            rope_base: self.float(&format!("{name}.rope.freq_base")).unwrap_or(10_000.0),
            vocabulary: vocabulary.ok_or_else(|| Trouble::NotGguf("token_embd.weight is missing".into()))?,
        })
    }

    /// Whether this is a file that [`super::prepared`] wrote, in today's form.
    pub(super) fn is_prepared(&self, form: u32) -> bool {
        self.number(FORM_KEY) == Some(form as usize)
    }

    fn tensor(&mut self, name: &str) -> Result<QTensor, Trouble> {
        let tensor = self.content.tensor(&mut self.reader, name, &Device::Cpu);
        tensor.map_err(|error| Trouble::NotGguf(format!("{name}: {error}")))
    }

    fn has(&self, name: &str) -> bool {
        self.content.tensor_infos.contains_key(name)
    }

    /// A row of numbers of the file.
    fn row(&mut self, name: &str, length: usize) -> Result<QTensor, Trouble> {
        let tensor = self.tensor(name)?;
        if tensor.shape().dims() != [length] {
            return Err(Trouble::NotGguf(format!(
                "{name} has the shape {:?} instead of [{length}]",
                tensor.shape().dims()
            )));
        }
        Ok(tensor)
    }

    /// A matrix of the file in the form that the kernels like, with the adapter's change added.
    fn matrix(
        &mut self,
        name: &str,
        (rows, columns): (usize, usize),
        adapter: Option<&Adapter>,
    ) -> Result<QTensor, Trouble> {
        let tensor = self.tensor(&format!("{name}.weight"))?;
        let padded = columns.next_multiple_of(BLOCK);
        let dims = tensor.shape().dims();
        if dims != [rows, columns] && dims != [rows, padded] {
            return Err(Trouble::NotGguf(format!("{name} has the shape {dims:?} instead of [{rows}, {columns}]")));
        }
        let change = match adapter {
            Some(adapter) => adapter.change(name, rows, columns)?,
            None => None,
        };
        let fast = matches!(tensor.dtype(), GgmlDType::Q4K | GgmlDType::Q6K | GgmlDType::Q8_0);
        if change.is_none() && fast && dims == [rows, padded] {
            return Ok(tensor);
        }
        let mut plain = tensor.dequantize(&Device::Cpu)?;
        drop(tensor);
        if let Some(change) = change {
            plain = (plain + change)?;
        }
        if padded > columns {
            plain = plain.pad_with_zeros(1, 0, padded - columns)?;
        }
        Ok(QTensor::quantize(&plain, GgmlDType::Q8_0)?)
    }

    /// Everything that the arithmetic needs, in the form that it needs.
    pub(super) fn parts(mut self, adapter: Option<&Adapter>) -> Result<Parts, Trouble> {
        let measures = self.measures()?;
        let Measures { heads, kv_heads, head_size, width, vocabulary, .. } = measures;
        if adapter.is_some() && measures.family == Family::Llama {
            // Their queries and keys lie in another order in a GGUF file than where adapters are trained.
            return Err(Trouble::Misfit("adapters work with models of the Qwen families only".into()));
        }
        let (queries, keys) = (heads * head_size, kv_heads * head_size);
        let mut tensors = BTreeMap::new();
        tensors.insert("token_embd.weight".to_owned(), self.matrix("token_embd", (vocabulary, width), None)?);
        if self.has("output.weight") {
            tensors.insert("output.weight".to_owned(), self.matrix("output", (vocabulary, width), None)?);
        }
        tensors.insert("output_norm.weight".to_owned(), self.row("output_norm.weight", width)?);
        for index in 0..measures.layers {
            let at = |part: &str| format!("blk.{index}.{part}");
            let feed = self
                .content
                .tensor_infos
                .get(&at("ffn_gate.weight"))
                .and_then(|info| info.shape.dims().first().copied());
            let feed = feed.ok_or_else(|| Trouble::NotGguf(format!("layer {index} is missing")))?;
            for (part, shape) in [
                ("attn_q", (queries, width)),
                ("attn_k", (keys, width)),
                ("attn_v", (keys, width)),
                ("attn_output", (width, queries)),
                ("ffn_gate", (feed, width)),
                ("ffn_up", (feed, width)),
                ("ffn_down", (width, feed)),
            ] {
                let name = at(part);
                tensors.insert(format!("{name}.weight"), self.matrix(&name, shape, adapter)?);
            }
            for part in ["attn_norm.weight", "ffn_norm.weight"] {
                tensors.insert(at(part), self.row(&at(part), width)?);
            }
            let optional = [
                ("attn_q.bias", queries),
                ("attn_k.bias", keys),
                ("attn_v.bias", keys),
                ("attn_q_norm.weight", head_size),
                ("attn_k_norm.weight", head_size),
            ];
            for (part, length) in optional {
                let name = at(part);
                if self.has(&name) {
                    let row = self.row(&name, length)?;
                    tensors.insert(name, row);
                }
            }
        }
        let prefix = format!("{}.", self.text("general.architecture").unwrap_or_default());
        let mut head = self.content.metadata;
        head.retain(|key, _| key == "general.architecture" || key.starts_with(&prefix));
        Ok(Parts { measures, head, tensors })
    }
}

/// The mark of a prepared file.
pub(super) const FORM_KEY: &str = "querymend.form";

/// A model in parts: what its file says about it, and its numbers by name.
pub(super) struct Parts {
    measures: Measures,
    pub(super) head: HashMap<String, Value>,
    pub(super) tensors: BTreeMap<String, QTensor>,
}

impl Parts {
    fn take(&mut self, name: &str) -> Result<QTensor, Trouble> {
        self.tensors.remove(name).ok_or_else(|| Trouble::NotGguf(format!("{name} is missing")))
    }

    fn row(&mut self, name: &str) -> Result<Tensor, Trouble> {
        Ok(self.take(name)?.dequantize(&Device::Cpu)?.to_dtype(DType::F32)?)
    }

    fn optional(&mut self, name: &str) -> Result<Option<Tensor>, Trouble> {
        if self.tensors.contains_key(name) { self.row(name).map(Some) } else { Ok(None) }
    }

    /// Puts them together.
    pub(super) fn weights(mut self) -> Result<Weights, Trouble> {
        let measures = self.measures.clone();
        let width = measures.width;
        let embedding = Arc::new(self.take("token_embd.weight")?);
        let output = if self.tensors.contains_key("output.weight") {
            Arc::new(self.take("output.weight")?)
        } else {
            embedding.clone()
        };
        let mut layers = Vec::with_capacity(measures.layers);
        for index in 0..measures.layers {
            let at = |part: &str| format!("blk.{index}.{part}");
            let mut heads = Vec::new();
            for part in ["attn_q", "attn_k", "attn_v"] {
                heads.push((self.take(&at(&format!("{part}.weight")))?, self.optional(&at(&format!("{part}.bias")))?));
            }
            let feed = vec![(self.take(&at("ffn_gate.weight"))?, None), (self.take(&at("ffn_up.weight"))?, None)];
            let inner = feed.first().map_or(0, |(gate, _)| gate.shape().dims()[0]);
            layers.push(Layer {
                attention_norm: self.row(&at("attn_norm.weight"))?,
                query_key_value: joined(heads, width)?,
                query_norm: self.optional(&at("attn_q_norm.weight"))?,
                key_norm: self.optional(&at("attn_k_norm.weight"))?,
                attention_out: linear(
                    self.take(&at("attn_output.weight"))?,
                    None,
                    measures.heads * measures.head_size,
                )?,
                feed_norm: self.row(&at("ffn_norm.weight"))?,
                gate_up: joined(feed, width)?,
                down: linear(self.take(&at("ffn_down.weight"))?, None, inner)?,
            });
        }
        let norm = self.row("output_norm.weight")?;
        let fill = output.shape().dims2()?.1 - width;
        let output = Linear { matrix: QMatMul::from_arc(output)?, bias: None, fill };
        Ok(Weights { embedding, layers, norm, output, measures })
    }
}

fn linear(matrix: QTensor, bias: Option<Tensor>, columns: usize) -> Result<Linear, Trouble> {
    let (_, padded) = matrix.shape().dims2()?;
    Ok(Linear { matrix: QMatMul::from_qtensor(matrix)?, bias, fill: padded - columns })
}

/// Puts matrices that are multiplied with the same rows under each other, so that one multiplication does them all.
fn joined(parts: Vec<(QTensor, Option<Tensor>)>, columns: usize) -> Result<Vec<Linear>, Trouble> {
    let Some((first, _)) = parts.first() else { return Ok(Vec::new()) };
    let (dtype, (_, padded)) = (first.dtype(), first.shape().dims2()?);
    let alike = parts.iter().all(|(matrix, bias)| {
        matrix.dtype() == dtype
            && matrix.shape().dims().get(1) == Some(&padded)
            && bias.is_some() == parts.first().is_some_and(|(_, b)| b.is_some())
    });
    if !alike {
        return parts.into_iter().map(|(matrix, bias)| linear(matrix, bias, columns)).collect();
    }
    let (mut bytes, mut rows, mut biases) = (Vec::new(), 0, Vec::new());
    for (matrix, bias) in &parts {
        bytes.extend_from_slice(&matrix.data()?);
        rows += matrix.shape().dims2()?.0;
        biases.extend(bias.clone());
    }
    drop(parts);
    let bias = if biases.is_empty() { None } else { Some(Tensor::cat(&biases, 0)?) };
    let storage = QStorage::from_data(Cow::Owned(bytes), &Device::Cpu, dtype)?;
    Ok(vec![linear(QTensor::new(storage, (rows, padded))?, bias, columns)?])
}
