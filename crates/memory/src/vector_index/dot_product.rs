//! SIMD dot products of one 8-bit vector with many.
//!
//! The only module with `unsafe`: the SIMD instructions are four to ten times as fast as the
//! compiler's output for the scalar loop at the bottom, which is the fallback for other processors.
#![allow(unsafe_code)]

use super::quantize::{QuantizedVector, to_signed};

/// Query vector, prepared for dot products with stored rows.
#[derive(Debug)]
pub struct QuantizedQuery {
    pub(super) scale: f32,
    bytes: Vec<i8>,
    #[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
    widened: Vec<i16>,
    /// Excess in every product that is due to the zero point of 128 in stored codes.
    zero_point_correction: i32,
}

impl QuantizedQuery {
    /// Creates a query from the codes of a stored vector.
    pub fn from_codes(scale: f32, codes: &[u8]) -> Self {
        let bytes: Vec<i8> = codes.iter().map(|code| to_signed(*code)).collect();
        let words = bytes.iter().map(|byte| i16::from(*byte)).collect();
        let excess = bytes.iter().map(|byte| i32::from(*byte) * 128).sum();
        Self { scale, bytes, widened: words, zero_point_correction: excess }
    }

    /// Returns the padded length.
    pub fn width(&self) -> usize {
        self.bytes.len()
    }
}

impl From<&QuantizedVector> for QuantizedQuery {
    fn from(coded: &QuantizedVector) -> Self {
        Self::from_codes(coded.scale, &coded.codes)
    }
}

/// Computes the dot products of a query with contiguous rows.
pub(super) fn dot_products(query: &QuantizedQuery, rows: &[u8], products: &mut [i32]) {
    let width = query.width();
    assert!(width.is_multiple_of(64) && rows.len() == width * products.len(), "rows that are as long as the vector");
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx512bw") && is_x86_feature_detected!("avx512vnni") {
            // SAFETY: the processor supports these instructions, and the lengths were checked
            // above.
            return unsafe { avx512(query, rows, products) };
        }
        if is_x86_feature_detected!("avx2") {
            // SAFETY: the processor supports these instructions, and the lengths were checked
            // above.
            return unsafe { avx2(query, rows, products) };
        }
    }
    scalar(query, rows, products);
}

/// Processes four rows at a time: the query is loaded once for all of them, and their sums are
/// reduced together.
///
/// # Safety
/// The processor must support the enabled target features; rows are as long as the query, a
/// multiple of 64.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
unsafe fn avx512(query: &QuantizedQuery, rows: &[u8], products: &mut [i32]) {
    use std::arch::x86_64::{
        _mm_add_epi32, _mm_set1_epi32, _mm_storeu_si128, _mm_sub_epi32, _mm256_add_epi32, _mm256_castsi256_si128,
        _mm256_extracti128_si256, _mm512_add_epi32, _mm512_castsi512_si256, _mm512_dpbusd_epi32,
        _mm512_extracti64x4_epi64, _mm512_loadu_si512, _mm512_reduce_add_epi32, _mm512_setzero_si512,
        _mm512_unpackhi_epi32, _mm512_unpackhi_epi64, _mm512_unpacklo_epi32, _mm512_unpacklo_epi64,
    };
    let width = query.bytes.len();
    let together = products.len() - products.len() % 4;
    let (first, last) = products.split_at_mut(together);
    for (rows, products) in rows.chunks_exact(4 * width).zip(first.chunks_exact_mut(4)) {
        let zero = _mm512_setzero_si512();
        let (mut a, mut b, mut c, mut d) = (zero, zero, zero, zero);
        let (two, others) = rows.split_at(2 * width);
        let ((row_a, row_b), (row_c, row_d)) = (two.split_at(width), others.split_at(width));
        let pairs = row_a.chunks_exact(64).zip(row_b.chunks_exact(64));
        let others = row_c.chunks_exact(64).zip(row_d.chunks_exact(64));
        for (by, ((part_a, part_b), (part_c, part_d))) in query.bytes.chunks_exact(64).zip(pairs.zip(others)) {
            // SAFETY: all slices are 64 bytes long.
            unsafe {
                let by = _mm512_loadu_si512(by.as_ptr().cast());
                a = _mm512_dpbusd_epi32(a, _mm512_loadu_si512(part_a.as_ptr().cast()), by);
                b = _mm512_dpbusd_epi32(b, _mm512_loadu_si512(part_b.as_ptr().cast()), by);
                c = _mm512_dpbusd_epi32(c, _mm512_loadu_si512(part_c.as_ptr().cast()), by);
                d = _mm512_dpbusd_epi32(d, _mm512_loadu_si512(part_d.as_ptr().cast()), by);
            }
        }
        let ab = _mm512_add_epi32(_mm512_unpacklo_epi32(a, b), _mm512_unpackhi_epi32(a, b));
        let cd = _mm512_add_epi32(_mm512_unpacklo_epi32(c, d), _mm512_unpackhi_epi32(c, d));
        let all = _mm512_add_epi32(_mm512_unpacklo_epi64(ab, cd), _mm512_unpackhi_epi64(ab, cd));
        let half = _mm256_add_epi32(_mm512_castsi512_si256(all), _mm512_extracti64x4_epi64::<1>(all));
        let four = _mm_add_epi32(_mm256_castsi256_si128(half), _mm256_extracti128_si256::<1>(half));
        let four = _mm_sub_epi32(four, _mm_set1_epi32(query.zero_point_correction));
        // SAFETY: there are four products of four bytes.
        unsafe { _mm_storeu_si128(products.as_mut_ptr().cast(), four) };
    }
    for (row, product) in rows[together * width..].chunks_exact(width).zip(last) {
        let mut sum = _mm512_setzero_si512();
        for (part, by) in row.chunks_exact(64).zip(query.bytes.chunks_exact(64)) {
            // SAFETY: both slices are 64 bytes long.
            let (part, by) =
                unsafe { (_mm512_loadu_si512(part.as_ptr().cast()), _mm512_loadu_si512(by.as_ptr().cast())) };
            sum = _mm512_dpbusd_epi32(sum, part, by);
        }
        *product = _mm512_reduce_add_epi32(sum) - query.zero_point_correction;
    }
}

/// # Safety
/// The processor must support the enabled target features; rows are as long as the query, a
/// multiple of 64.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
unsafe fn avx2(query: &QuantizedQuery, rows: &[u8], products: &mut [i32]) {
    use std::arch::x86_64::{
        _mm_add_epi32, _mm_cvtsi128_si32, _mm_loadu_si128, _mm_shuffle_epi32, _mm256_add_epi32, _mm256_castsi256_si128,
        _mm256_cvtepu8_epi16, _mm256_extracti128_si256, _mm256_loadu_si256, _mm256_madd_epi16, _mm256_setzero_si256,
    };
    for (row, product) in rows.chunks_exact(query.widened.len()).zip(products) {
        let mut sums = [_mm256_setzero_si256(); 2];
        for (at, (part, by)) in row.chunks_exact(16).zip(query.widened.chunks_exact(16)).enumerate() {
            // SAFETY: one slice is 16 bytes long, the other has 16 elements of two bytes.
            let (part, by) = unsafe { (_mm_loadu_si128(part.as_ptr().cast()), _mm256_loadu_si256(by.as_ptr().cast())) };
            sums[at % 2] = _mm256_add_epi32(sums[at % 2], _mm256_madd_epi16(_mm256_cvtepu8_epi16(part), by));
        }
        let sum = _mm256_add_epi32(sums[0], sums[1]);
        let half = _mm_add_epi32(_mm256_castsi256_si128(sum), _mm256_extracti128_si256::<1>(sum));
        let pair = _mm_add_epi32(half, _mm_shuffle_epi32::<0b00_00_11_10>(half));
        let one = _mm_add_epi32(pair, _mm_shuffle_epi32::<0b00_00_00_01>(pair));
        *product = _mm_cvtsi128_si32(one) - query.zero_point_correction;
    }
}

fn scalar(query: &QuantizedQuery, rows: &[u8], products: &mut [i32]) {
    for (row, product) in rows.chunks_exact(query.bytes.len()).zip(products) {
        let sum: i32 = row.iter().zip(&query.bytes).map(|(code, by)| i32::from(*code) * i32::from(*by)).sum();
        *product = sum - query.zero_point_correction;
    }
}

#[cfg(test)]
mod tests {
    use super::super::quantize::quantize;
    use super::*;

    #[test]
    fn simd_and_scalar_dot_products_agree() {
        for dimensions in [1, 63, 64, 256, 384, 1000] {
            let vector = |seed: usize| -> Vec<f32> {
                (0..dimensions).map(|at| ((at * 31 + seed * 17) % 255) as f32 - 127.0).collect()
            };
            let query = QuantizedQuery::from(&quantize(&vector(3)));
            let rows: Vec<u8> = (0..7).flat_map(|seed| quantize(&vector(seed)).codes).collect();
            let mut expected = [0; 7];
            scalar(&query, &rows, &mut expected);
            let mut got = [0; 7];
            dot_products(&query, &rows, &mut got);
            assert_eq!(got, expected);
            #[cfg(target_arch = "x86_64")]
            if is_x86_feature_detected!("avx2") {
                // SAFETY: the processor supports AVX2, and the rows are as long as the query.
                unsafe { avx2(&query, &rows, &mut got) };
                assert_eq!(got, expected);
            }
        }
    }
}
