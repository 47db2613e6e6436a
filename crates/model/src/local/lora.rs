//! LoRA adapters: low-rank updates of a model's weight matrices.

use std::borrow::Cow;

use candle_core::{Device, Tensor};
use safetensors::{Dtype, SafeTensors};

use super::error::LocalModelError;
use crate::adapters::{self, AdapterSource};

/// Maximum size of an adapter.
const MAX_ADAPTER_BYTES: u64 = 256 << 20;

/// Adapter in the safetensors format.
pub(super) struct LoraAdapter {
    bytes: Cow<'static, [u8]>,
}

impl LoraAdapter {
    pub(super) fn read(source: &AdapterSource) -> Result<Self, LocalModelError> {
        let path = match source {
            AdapterSource::File(path) => path,
            AdapterSource::Bundled(name) => {
                let bytes = adapters::bundled_adapter(name).map(|(_, bytes)| bytes).unwrap_or_default();
                return Self::from_bytes(Cow::Borrowed(bytes));
            }
        };
        let unreadable = |error: std::io::Error| {
            LocalModelError::AdapterMismatch(format!("{} cannot be read: {error}", path.display()))
        };
        if std::fs::metadata(path).map_err(unreadable)?.len() > MAX_ADAPTER_BYTES {
            return Err(LocalModelError::AdapterMismatch(format!("{} is larger than any adapter", path.display())));
        }
        Self::from_bytes(Cow::Owned(std::fs::read(path).map_err(unreadable)?))
    }

    pub(super) fn from_bytes(bytes: Cow<'static, [u8]>) -> Result<Self, LocalModelError> {
        SafeTensors::deserialize(&bytes).map_err(|error| LocalModelError::AdapterMismatch(error.to_string()))?;
        Ok(Self { bytes })
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the update of the weight matrix with this GGUF name, if the adapter has one.
    pub(super) fn weight_delta(
        &self,
        name: &str,
        rows: usize,
        columns: usize,
    ) -> Result<Option<Tensor>, LocalModelError> {
        let Some(name) = peft_tensor_name(name) else { return Ok(None) };
        let tensors = SafeTensors::deserialize(&self.bytes)
            .map_err(|error| LocalModelError::AdapterMismatch(error.to_string()))?;
        let (flat, tall) = (format!("{name}.lora_A.weight"), format!("{name}.lora_B.weight"));
        if tensors.tensor(&flat).is_err() && tensors.tensor(&tall).is_err() {
            return Ok(None);
        }
        let (flat, tall) = (read_matrix(&tensors, &flat)?, read_matrix(&tensors, &tall)?);
        let (rank, wide) = flat.dims2()?;
        if tall.dims() != [rows, rank] || wide != columns {
            let message =
                format!("{name} is {:?} times {:?} for a matrix of {rows} by {columns}", tall.dims(), flat.dims());
            return Err(LocalModelError::AdapterMismatch(message));
        }
        Ok(Some(tall.matmul(&flat)?))
    }
}

/// Reads a matrix of f16, bf16, f32, or i8 with one scale per row.
fn read_matrix(tensors: &SafeTensors<'_>, name: &str) -> Result<Tensor, LocalModelError> {
    let wrong = |what: String| LocalModelError::AdapterMismatch(format!("{name} {what}"));
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
        other => return Err(wrong(format!("has numbers of the type {other:?}"))),
    };
    if numbers.iter().any(|number| !number.is_finite()) {
        return Err(wrong("contains numbers that are not finite".into()));
    }
    Ok(Tensor::from_vec(numbers, (rows, columns), &Device::Cpu)?)
}

/// Maps a GGUF tensor name `blk.N.PART` to its name in PEFT adapters.
fn peft_tensor_name(name: &str) -> Option<String> {
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
