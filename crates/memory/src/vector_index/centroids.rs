//! Training of IVF centroids by spherical k-means.

use super::dot_product::{QuantizedQuery, dot_products};
use super::quantize::{padded_width, quantize, to_signed};

/// Number of k-means iterations; more change little.
const KMEANS_ITERATIONS: usize = 6;
/// Number of sampled rows per centroid.
pub(super) const ROWS_PER_CENTROID: usize = 20;

/// Quantized centroids.
#[derive(Debug, Clone, PartialEq)]
pub struct Centroids {
    dimensions: usize,
    scales: Vec<f32>,
    codes: Vec<u8>,
}

/// Sample of rows for training.
#[derive(Debug)]
pub struct TrainingSample {
    pub(super) dimensions: usize,
    pub(super) centroids: usize,
    pub(super) scales: Vec<f32>,
    pub(super) codes: Vec<u8>,
}

impl Centroids {
    /// Trains centroids, which takes seconds; returns `None` if `stop` returned `true`.
    pub fn train(sample: &TrainingSample, stop: impl Fn() -> bool) -> Option<Self> {
        let (dimensions, width, rows) = (sample.dimensions, padded_width(sample.dimensions), sample.scales.len());
        let row = |at: usize| &sample.codes[at * width..(at + 1) * width];
        let mut this = Self { dimensions, scales: Vec::new(), codes: Vec::new() };
        // The sample is in pseudo-random order, so its first rows are a fair initialization.
        for at in 0..sample.centroids.min(rows) {
            this.scales.push(sample.scales[at]);
            this.codes.extend_from_slice(row(at));
        }
        let mut reseed_row = 0;
        for _ in 0..KMEANS_ITERATIONS {
            let mut sums = vec![0.0_f32; this.len() * dimensions];
            let mut counts = vec![0_usize; this.len()];
            for at in 0..rows {
                if at % 1024 == 0 && stop() {
                    return None;
                }
                let centre = this.nearest(&QuantizedQuery::from_codes(1.0, row(at)));
                counts[centre] += 1;
                for (sum, code) in sums[centre * dimensions..].iter_mut().zip(&row(at)[..dimensions]) {
                    *sum += f32::from(to_signed(*code)) * sample.scales[at];
                }
            }
            for (centre, count) in counts.into_iter().enumerate() {
                let vector = &mut sums[centre * dimensions..(centre + 1) * dimensions];
                let length = vector.iter().map(|number| number * number).sum::<f32>().sqrt();
                if count == 0 || length < 1e-12 {
                    // Empty cluster: restart it at another row.
                    reseed_row = (reseed_row + 7919) % rows;
                    this.scales[centre] = sample.scales[reseed_row];
                    this.codes[centre * width..(centre + 1) * width].copy_from_slice(row(reseed_row));
                    continue;
                }
                vector.iter_mut().for_each(|number| *number /= length);
                let coded = quantize(vector);
                this.scales[centre] = coded.scale;
                this.codes[centre * width..(centre + 1) * width].copy_from_slice(&coded.codes);
            }
        }
        Some(this)
    }

    /// Returns the number of centroids.
    pub fn len(&self) -> usize {
        self.scales.len()
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.scales.is_empty()
    }

    /// Returns the index of the nearest centroid.
    pub fn nearest(&self, query: &QuantizedQuery) -> usize {
        let mut best = (0, f32::NEG_INFINITY);
        self.for_each_similarity(query, |centre, similarity| {
            if similarity > best.1 {
                best = (centre, similarity);
            }
        });
        best.0
    }

    /// Returns the indices of the `limit` nearest centroids, nearest first.
    pub fn nearest_first(&self, query: &QuantizedQuery, limit: usize) -> Vec<usize> {
        let mut all = Vec::with_capacity(self.len());
        self.for_each_similarity(query, |centre, similarity| all.push((similarity, centre)));
        if (1..all.len()).contains(&limit) {
            all.select_nth_unstable_by(limit - 1, |a, b| b.0.total_cmp(&a.0));
            all.truncate(limit);
        }
        all.sort_unstable_by(|a, b| b.0.total_cmp(&a.0));
        all.into_iter().map(|(_, centre)| centre).collect()
    }

    fn for_each_similarity(&self, query: &QuantizedQuery, mut on_similarity: impl FnMut(usize, f32)) {
        let width = query.width();
        let mut products = [0; 128];
        for (block, (rows, scales)) in self.codes.chunks(128 * width).zip(self.scales.chunks(128)).enumerate() {
            let products = &mut products[..scales.len()];
            dot_products(query, rows, products);
            for (at, (product, scale)) in products.iter().zip(scales).enumerate() {
                on_similarity(block * 128 + at, *product as f32 * scale);
            }
        }
    }

    /// Returns the scale and codes of a centroid, for serialization.
    pub fn get(&self, at: usize) -> (f32, &[u8]) {
        let width = padded_width(self.dimensions);
        (self.scales[at], &self.codes[at * width..(at + 1) * width])
    }

    /// Restores centroids from the values of [`get`](Self::get); returns `None` if they are
    /// invalid.
    pub fn from_parts<'c>(dimensions: usize, centres: impl Iterator<Item = (f32, &'c [u8])>) -> Option<Self> {
        let mut this = Self { dimensions, scales: Vec::new(), codes: Vec::new() };
        for (scale, codes) in centres {
            if codes.len() != padded_width(dimensions) || !scale.is_finite() {
                return None;
            }
            this.scales.push(scale);
            this.codes.extend_from_slice(codes);
        }
        (!this.is_empty()).then_some(this)
    }
}
