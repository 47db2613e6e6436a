//! Scalar quantization: 8-bit codes for the search, and 8-bit residuals for reranking the nearest
//! rows.

/// Vectors are padded to a multiple of this, so that no loop over them has a remainder.
const WIDTH_MULTIPLE: usize = 64;
/// Zero point of the codes, because SIMD instructions multiply unsigned by signed integers.
const ZERO_POINT: u8 = 128;

/// Quantized vector: each component is about `scale * (code + residual / 256)`.
#[derive(Debug, Clone, PartialEq)]
pub struct QuantizedVector {
    /// Value of one code step.
    pub scale: f32,
    /// Upper eight bits of each component.
    pub codes: Vec<u8>,
    /// Next eight bits of each component.
    pub residual: Vec<u8>,
}

/// Returns the length of the codes for vectors of this length.
pub fn padded_width(dimensions: usize) -> usize {
    dimensions.next_multiple_of(WIDTH_MULTIPLE)
}

/// Quantizes a vector; one with a non-finite component becomes the zero vector, which is similar to
/// nothing.
pub fn quantize(vector: &[f32]) -> QuantizedVector {
    let top = vector.iter().fold(0.0_f32, |top, number| top.max(number.abs()));
    let is_finite = vector.iter().all(|number| number.is_finite());
    let scale = if is_finite { top / 127.0 } else { 0.0 };
    let width = padded_width(vector.len());
    let mut coded = QuantizedVector { scale, codes: vec![ZERO_POINT; width], residual: vec![ZERO_POINT; width] };
    if scale > 0.0 {
        for ((number, code), rest) in vector.iter().zip(&mut coded.codes).zip(&mut coded.residual) {
            let steps = number / scale;
            let nearest_code = round_to_i32(steps).clamp(-127, 127);
            *code = ZERO_POINT.wrapping_add_signed(nearest_code as i8);
            *rest = ZERO_POINT
                .wrapping_add_signed(round_to_i32((steps - nearest_code as f32) * 256.0).clamp(-128, 127) as i8);
        }
    }
    coded
}

/// Rounds to the nearest integer.
///
/// The standard library's `round` is a function call on older processors and takes ten times as
/// long.
fn round_to_i32(number: f32) -> i32 {
    (number + 0.5_f32.copysign(number)) as i32
}

/// Converts a code to its signed value, in steps.
pub fn to_signed(code: u8) -> i8 {
    code.wrapping_sub(ZERO_POINT).cast_signed()
}

/// Returns the dot product of a vector and a quantized one from all 16 bits, accurate to 1e-5.
pub fn refined_similarity(vector: &[f32], scale: f32, codes: &[u8], residual: &[u8]) -> f32 {
    let sum: f32 = vector
        .iter()
        .zip(codes.iter().zip(residual))
        .map(|(number, (code, rest))| number * (f32::from(to_signed(*code)) + f32::from(to_signed(*rest)) / 256.0))
        .sum();
    sum * scale
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sixteen_bit_quantization_preserves_similarity() {
        let vector = |seed: u32| -> Vec<f32> {
            let numbers: Vec<f32> =
                (0..384_u32).map(|at| ((at * 7919 + seed * 104_729) % 1000) as f32 / 500.0 - 1.0).collect();
            let length = numbers.iter().map(|number| number * number).sum::<f32>().sqrt();
            numbers.iter().map(|number| number / length).collect()
        };
        for seed in 1..50 {
            let (a, b) = (vector(seed), vector(seed * 31 + 7));
            let kept = quantize(&b);
            let right: f32 = a.iter().zip(&b).map(|(a, b)| a * b).sum();
            assert!((refined_similarity(&a, kept.scale, &kept.codes, &kept.residual) - right).abs() < 1e-5);
        }
        for odd in [vec![0.0; 5], vec![f32::NAN; 5], vec![f32::INFINITY, 1.0]] {
            let kept = quantize(&odd);
            assert_eq!((kept.scale, kept.codes), (0.0, vec![ZERO_POINT; 64]));
        }
    }
}
