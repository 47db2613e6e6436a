//! Arithmetic on embedding vectors.

/// Adds a scaled vector to another.
pub(crate) fn add_scaled(sum: &mut [f32], vector: &[f32], times: f32) {
    for (sum, number) in sum.iter_mut().zip(vector) {
        *sum += times * number;
    }
}

/// Normalizes a vector to unit length, unless it is zero.
pub(crate) fn normalize(vector: &mut [f32]) {
    let length = dot(vector, vector).sqrt();
    if length > 0.0 {
        vector.iter_mut().for_each(|number| *number /= length);
    }
}

/// Returns the dot product of two vectors, computed in lanes for SIMD.
pub(crate) fn dot(a: &[f32], b: &[f32]) -> f32 {
    let mut lanes = [0.0_f32; 16];
    let (a, b) = (a.as_chunks::<16>().0, b.as_chunks::<16>().0);
    for (a, b) in a.iter().zip(b) {
        for lane in 0..16 {
            lanes[lane] += a[lane] * b[lane];
        }
    }
    lanes.iter().sum()
}
