//! Vectors as small numbers. Eight bits find them, eight more put the nearest in order.

/// Vectors are made as long as a multiple of this, so that no loop over them has a rest.
const STEP: usize = 64;
/// Numbers are kept with this added, because processors multiply unsigned numbers by signed ones.
const ZERO: u8 = 128;

/// A vector as it is kept: each number is about `scale * (code + rest / 256)`.
#[derive(Debug, Clone, PartialEq)]
pub struct Coded {
    /// What one step of a code is worth.
    pub scale: f32,
    /// The first eight bits of each number.
    pub codes: Vec<u8>,
    /// The next eight bits of each number.
    pub rest: Vec<u8>,
}

/// How long the codes of vectors with so many numbers are.
pub fn width(dimensions: usize) -> usize {
    dimensions.next_multiple_of(STEP)
}

/// A vector as it is kept. One with a number that is none becomes a vector that is like no other.
pub fn code(vector: &[f32]) -> Coded {
    let top = vector.iter().fold(0.0_f32, |top, number| top.max(number.abs()));
    let whole = vector.iter().all(|number| number.is_finite());
    let scale = if whole { top / 127.0 } else { 0.0 };
    let width = width(vector.len());
    let mut coded = Coded { scale, codes: vec![ZERO; width], rest: vec![ZERO; width] };
    if scale > 0.0 {
        for ((number, code), rest) in vector.iter().zip(&mut coded.codes).zip(&mut coded.rest) {
            let steps = number / scale;
            let near = rounded(steps).clamp(-127, 127);
            *code = ZERO.wrapping_add_signed(near as i8);
            *rest = ZERO.wrapping_add_signed(rounded((steps - near as f32) * 256.0).clamp(-128, 127) as i8);
        }
    }
    coded
}

/// The nearest whole number. The standard library's `round` is a call on older processors, and takes ten times as long.
fn rounded(number: f32) -> i32 {
    (number + 0.5_f32.copysign(number)) as i32
}

/// What a code stands for, in steps.
pub fn signed(code: u8) -> i8 {
    code.wrapping_sub(ZERO).cast_signed()
}

/// How alike a vector and a kept one are, from all sixteen bits: right to a hundred-thousandth.
pub fn similarity(vector: &[f32], scale: f32, codes: &[u8], rest: &[u8]) -> f32 {
    let sum: f32 = vector
        .iter()
        .zip(codes.iter().zip(rest))
        .map(|(number, (code, rest))| number * (f32::from(signed(*code)) + f32::from(signed(*rest)) / 256.0))
        .sum();
    sum * scale
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f06_sixteen_bits_are_as_good_as_the_vector() {
        let vector = |seed: u32| -> Vec<f32> {
            let numbers: Vec<f32> =
                (0..384_u32).map(|at| ((at * 7919 + seed * 104_729) % 1000) as f32 / 500.0 - 1.0).collect();
            let length = numbers.iter().map(|number| number * number).sum::<f32>().sqrt();
            numbers.iter().map(|number| number / length).collect()
        };
        for seed in 1..50 {
            let (a, b) = (vector(seed), vector(seed * 31 + 7));
            let kept = code(&b);
            let right: f32 = a.iter().zip(&b).map(|(a, b)| a * b).sum();
            assert!((similarity(&a, kept.scale, &kept.codes, &kept.rest) - right).abs() < 1e-5);
        }
        for odd in [vec![0.0; 5], vec![f32::NAN; 5], vec![f32::INFINITY, 1.0]] {
            let kept = code(&odd);
            assert_eq!((kept.scale, kept.codes), (0.0, vec![ZERO; 64]));
        }
    }
}
