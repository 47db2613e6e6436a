//! Small changes to a model's matrices, learned apart from it (LoRA): each is the product of a tall and a flat matrix.

use std::borrow::Cow;

use candle_core::{Device, Tensor};
use safetensors::{Dtype, SafeTensors};

use super::trouble::Trouble;
use crate::adapters::{self, AdapterSource};

/// No adapter is larger than this.
const LARGEST: u64 = 256 << 20;

/// An adapter as its file holds it.
pub(super) struct Adapter {
    bytes: Cow<'static, [u8]>,
}

impl Adapter {
    pub(super) fn read(source: &AdapterSource) -> Result<Self, Trouble> {
        let path = match source {
            AdapterSource::File(path) => path,
            AdapterSource::Own(name) => {
                let bytes = adapters::own(name).map(|(_, bytes)| bytes).unwrap_or_default();
                return Self::from_bytes(Cow::Borrowed(bytes));
            }
        };
        let unreadable = |error: std::io::Error| Trouble::Misfit(format!("{} cannot be read: {error}", path.display()));
        if std::fs::metadata(path).map_err(unreadable)?.len() > LARGEST {
            return Err(Trouble::Misfit(format!("{} is larger than any adapter", path.display())));
        }
        Self::from_bytes(Cow::Owned(std::fs::read(path).map_err(unreadable)?))
    }

    pub(super) fn from_bytes(bytes: Cow<'static, [u8]>) -> Result<Self, Trouble> {
        SafeTensors::deserialize(&bytes).map_err(|error| Trouble::Misfit(error.to_string()))?;
        Ok(Self { bytes })
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// What is added to the matrix of that name (as GGUF calls it), if anything is.
    pub(super) fn change(&self, name: &str, rows: usize, columns: usize) -> Result<Option<Tensor>, Trouble> {
        let Some(name) = elsewhere(name) else { return Ok(None) };
        let tensors = SafeTensors::deserialize(&self.bytes).map_err(|error| Trouble::Misfit(error.to_string()))?;
        let (flat, tall) = (format!("{name}.lora_A.weight"), format!("{name}.lora_B.weight"));
        if tensors.tensor(&flat).is_err() && tensors.tensor(&tall).is_err() {
            return Ok(None);
        }
        let (flat, tall) = (matrix(&tensors, &flat)?, matrix(&tensors, &tall)?);
        let (rank, wide) = flat.dims2()?;
        if tall.dims() != [rows, rank] || wide != columns {
            let message =
                format!("{name} is {:?} times {:?} for a matrix of {rows} by {columns}", tall.dims(), flat.dims());
            return Err(Trouble::Misfit(message));
        }
        Ok(Some(tall.matmul(&flat)?))
    }
}

/// A matrix in halves, singles, or bytes with a scale for each row.
fn matrix(tensors: &SafeTensors<'_>, name: &str) -> Result<Tensor, Trouble> {
    let wrong = |what: String| Trouble::Misfit(format!("{name} {what}"));
    let view = tensors.tensor(name).map_err(|error| wrong(error.to_string()))?;
    let &[rows, columns] = view.shape() else { return Err(wrong("is not a matrix".into())) };
    let numbers: Vec<f32> = match view.dtype() {
        Dtype::F32 => view.data().chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect(),
        Dtype::F16 => view.data().chunks_exact(2).map(|b| half::f16::from_le_bytes([b[0], b[1]]).to_f32()).collect(),
        Dtype::BF16 => view.data().chunks_exact(2).map(|b| half::bf16::from_le_bytes([b[0], b[1]]).to_f32()).collect(),
        Dtype::I8 => {
            let scales = tensors.tensor(&format!("{name}.scale")).map_err(|error| wrong(error.to_string()))?;
            if scales.dtype() != Dtype::F32 || scales.shape() != [rows] {
                return Err(wrong("has bytes without a scale for each row".into()));
            }
            let scales: Vec<f32> =
                scales.data().chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect();
            view.data()
                .iter()
                .enumerate()
                .map(|(i, byte)| f32::from(*byte as i8) * scales[i / columns.max(1)])
                .collect()
        }
        other => return Err(wrong(format!("has numbers of the kind {other:?}"))),
    };
    if numbers.iter().any(|number| !number.is_finite()) {
        return Err(wrong("holds numbers that are not finite".into()));
    }
    Ok(Tensor::from_vec(numbers, (rows, columns), &Device::Cpu)?)
}

/// What adapters call the matrix that GGUF calls `blk.N.PART`.
fn elsewhere(name: &str) -> Option<String> {
    let (layer, part) = name.strip_prefix("blk.")?.split_once('.')?;
    let part = match part {
        "attn_q" => "self_attn.q_proj",
        "attn_k" => "self_attn.k_proj",
        "attn_v" => "self_attn.v_proj",
        "attn_output" => "self_attn.o_proj",
        "ffn_gate" => "mlp.gate_proj",
        "ffn_up" => "mlp.up_proj",
        "ffn_down" => "mlp.down_proj",
        _ => return None,
    };
    Some(format!("model.layers.{layer}.{part}"))
}
