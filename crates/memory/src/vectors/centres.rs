//! Where in the space of vectors there are many: centres around which rows are put into lists (k-means on the sphere).

use super::code::{code, signed, width};
use super::dot::{Query, dots};

/// So many rounds; more change little.
const ROUNDS: usize = 6;
/// So many rows for each centre are looked at.
pub(super) const SAMPLED: usize = 20;

/// Centres, as vectors are kept.
#[derive(Debug, Clone, PartialEq)]
pub struct Centres {
    dimensions: usize,
    scales: Vec<f32>,
    codes: Vec<u8>,
}

/// Rows to find centres in.
#[derive(Debug)]
pub struct Sample {
    pub(super) dimensions: usize,
    pub(super) centres: usize,
    pub(super) scales: Vec<f32>,
    pub(super) codes: Vec<u8>,
}

impl Centres {
    /// Finds centres; `None` if it was told to stop. Takes seconds.
    pub fn find(sample: &Sample, stop: impl Fn() -> bool) -> Option<Self> {
        let (dimensions, width, rows) = (sample.dimensions, width(sample.dimensions), sample.scales.len());
        let row = |at: usize| &sample.codes[at * width..(at + 1) * width];
        let mut this = Self { dimensions, scales: Vec::new(), codes: Vec::new() };
        // The sample is in no order, so that any of its rows are as good to begin with.
        for at in 0..sample.centres.min(rows) {
            this.scales.push(sample.scales[at]);
            this.codes.extend_from_slice(row(at));
        }
        let mut other = 0;
        for _ in 0..ROUNDS {
            let mut sums = vec![0.0_f32; this.len() * dimensions];
            let mut counts = vec![0_usize; this.len()];
            for at in 0..rows {
                if at % 1024 == 0 && stop() {
                    return None;
                }
                let centre = this.nearest(&Query::of(1.0, row(at)));
                counts[centre] += 1;
                for (sum, code) in sums[centre * dimensions..].iter_mut().zip(&row(at)[..dimensions]) {
                    *sum += f32::from(signed(*code)) * sample.scales[at];
                }
            }
            for (centre, count) in counts.into_iter().enumerate() {
                let vector = &mut sums[centre * dimensions..(centre + 1) * dimensions];
                let length = vector.iter().map(|number| number * number).sum::<f32>().sqrt();
                if count == 0 || length < 1e-12 {
                    // Nothing is near it: it begins again at some row.
                    other = (other + 7919) % rows;
                    this.scales[centre] = sample.scales[other];
                    this.codes[centre * width..(centre + 1) * width].copy_from_slice(row(other));
                    continue;
                }
                vector.iter_mut().for_each(|number| *number /= length);
                let coded = code(vector);
                this.scales[centre] = coded.scale;
                this.codes[centre * width..(centre + 1) * width].copy_from_slice(&coded.codes);
            }
        }
        Some(this)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.scales.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.scales.is_empty()
    }

    /// Which one is nearest.
    pub fn nearest(&self, query: &Query) -> usize {
        let mut best = (0, f32::NEG_INFINITY);
        self.each(query, |centre, similarity| {
            if similarity > best.1 {
                best = (centre, similarity);
            }
        });
        best.0
    }

    /// So many of them, nearest first.
    pub fn nearest_first(&self, query: &Query, most: usize) -> Vec<usize> {
        let mut all = Vec::with_capacity(self.len());
        self.each(query, |centre, similarity| all.push((similarity, centre)));
        if (1..all.len()).contains(&most) {
            all.select_nth_unstable_by(most - 1, |a, b| b.0.total_cmp(&a.0));
            all.truncate(most);
        }
        all.sort_unstable_by(|a, b| b.0.total_cmp(&a.0));
        all.into_iter().map(|(_, centre)| centre).collect()
    }

    fn each(&self, query: &Query, mut seen: impl FnMut(usize, f32)) {
        let width = query.width();
        let mut products = [0; 128];
        for (block, (rows, scales)) in self.codes.chunks(128 * width).zip(self.scales.chunks(128)).enumerate() {
            let products = &mut products[..scales.len()];
            dots(query, rows, products);
            for (at, (product, scale)) in products.iter().zip(scales).enumerate() {
                seen(block * 128 + at, *product as f32 * scale);
            }
        }
    }

    /// As they are kept in files: one after the other, a scale and its codes.
    pub fn centre(&self, at: usize) -> (f32, &[u8]) {
        let width = width(self.dimensions);
        (self.scales[at], &self.codes[at * width..(at + 1) * width])
    }

    /// From what [`centre`](Self::centre) gave; `None` if they do not fit.
    pub fn read<'c>(dimensions: usize, centres: impl Iterator<Item = (f32, &'c [u8])>) -> Option<Self> {
        let mut this = Self { dimensions, scales: Vec::new(), codes: Vec::new() };
        for (scale, codes) in centres {
            if codes.len() != width(dimensions) || !scale.is_finite() {
                return None;
            }
            this.scales.push(scale);
            this.codes.extend_from_slice(codes);
        }
        (!this.is_empty()).then_some(this)
    }
}
