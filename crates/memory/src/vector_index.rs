//! In-memory nearest-neighbour search with an inverted file (IVF) index.
//!
//! Small sets are scanned exhaustively, which is exact. From [`MIN_INDEXED_ROWS`] on, rows are
//! assigned to inverted lists around centroids, and only the nearest lists are scanned. Rows that
//! are not assigned yet are always scanned, so that a partial or missing index loses nothing.

mod centroids;
mod dot_product;
mod quantize;

use centroids::ROWS_PER_CENTROID;
pub use centroids::{Centroids, TrainingSample};
pub use dot_product::QuantizedQuery;
use dot_product::dot_products;
pub use quantize::{QuantizedVector, padded_width, quantize, refined_similarity};

/// Minimum number of rows for which an index is built; a scan of fewer rows takes less than half a
/// millisecond.
pub const MIN_INDEXED_ROWS: usize = 20_000;
/// Number of lists, and of rows scanned per search, as multiples of the square root of the number
/// of rows.
///
/// With these values the recall is 99 % from 30,000 rows to a million (docs/measurements/memory.md).
const LISTS_PER_SQRT_ROW: f64 = 4.0;
const SCANNED_PER_SQRT_ROW: f64 = 14.0;
/// Growth of the number of rows since the last training that triggers a new one.
const RETRAIN_GROWTH_FACTOR: usize = 4;
/// Maximum number of rows that are left unassigned; scanning them is cheaper than assigning them.
pub const MAX_UNASSIGNED_ROWS: usize = 2_048;
/// Number of rows per block of dot products.
const SCAN_BLOCK_ROWS: usize = 256;

/// Returns the number of rows from which an index is built.
///
/// Quick unit tests build a smaller one: k-means over [`MIN_INDEXED_ROWS`] rows takes 15 s without
/// optimisation.
pub(crate) fn min_indexed_rows() -> usize {
    #[cfg(test)]
    if !querymend_testing::is_full_suite() {
        return MIN_INDEXED_ROWS / 4;
    }
    MIN_INDEXED_ROWS
}

/// Position of a row: its list and the index in that list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct RowSlot {
    list: u32,
    at: u32,
}

const NO_LIST: u32 = u32::MAX;
const UNASSIGNED_LIST: u32 = u32::MAX - 1;

/// Rows stored contiguously.
#[derive(Debug, Default)]
struct InvertedList {
    rows: Vec<u32>,
    scales: Vec<f32>,
    codes: Vec<u8>,
}

impl InvertedList {
    fn push(&mut self, row: u32, scale: f32, codes: &[u8]) {
        if self.codes.capacity() - self.codes.len() < codes.len() {
            // Grow by a quarter instead of doubling: this is most of the memory of a store.
            let more = (self.rows.len() / 4).clamp(8, 65_536);
            self.codes.reserve_exact(more * codes.len());
            self.rows.reserve_exact(more);
            self.scales.reserve_exact(more);
        }
        self.rows.push(row);
        self.scales.push(scale);
        self.codes.extend_from_slice(codes);
    }

    fn codes(&self, at: usize, width: usize) -> &[u8] {
        &self.codes[at * width..(at + 1) * width]
    }

    /// Removes a row; the last row takes its position and is returned.
    fn remove(&mut self, at: usize, width: usize) -> Option<u32> {
        let last = self.rows.len() - 1;
        self.rows.swap_remove(at);
        self.scales.swap_remove(at);
        self.codes.copy_within(last * width.., at * width);
        self.codes.truncate(last * width);
        self.rows.get(at).copied()
    }
}

/// IVF index of quantized vectors, identified by row number.
#[derive(Debug)]
pub struct IvfIndex {
    dimensions: usize,
    count: usize,
    slots: Vec<RowSlot>,
    unassigned: InvertedList,
    lists: Vec<InvertedList>,
    centroids: Option<Centroids>,
    /// Approximate number of rows at the time of training.
    trained_rows: usize,
}

impl IvfIndex {
    /// Creates an empty index for vectors of this length.
    pub fn new(dimensions: usize) -> Self {
        Self {
            dimensions,
            count: 0,
            slots: Vec::new(),
            unassigned: InvertedList::default(),
            lists: Vec::new(),
            centroids: None,
            trained_rows: 0,
        }
    }

    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Returns whether the index is empty.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Returns the length of the vectors.
    pub fn dimensions(&self) -> usize {
        self.dimensions
    }

    /// Returns the number of rows that are not assigned to a list.
    pub fn unassigned_count(&self) -> usize {
        self.unassigned.rows.len()
    }

    /// Returns whether searches skip rows that are probably far away.
    pub fn is_approximate(&self) -> bool {
        self.centroids.is_some()
    }

    /// Returns the memory use of the rows, in bytes.
    pub fn bytes(&self) -> usize {
        let of = |list: &InvertedList| list.codes.capacity() + 4 * (list.rows.capacity() + list.scales.capacity());
        of(&self.unassigned) + self.lists.iter().map(of).sum::<usize>() + self.slots.capacity() * size_of::<RowSlot>()
    }

    /// Inserts or replaces a row.
    pub fn insert(&mut self, row: u32, scale: f32, codes: &[u8]) {
        assert_eq!(codes.len(), padded_width(self.dimensions), "codes of this set");
        self.remove(row);
        if self.slots.len() <= row as usize {
            self.slots.resize(row as usize + 1, RowSlot { list: NO_LIST, at: 0 });
        }
        self.slots[row as usize] = RowSlot { list: UNASSIGNED_LIST, at: self.unassigned.rows.len() as u32 };
        self.unassigned.push(row, scale, codes);
        self.count += 1;
    }

    /// Removes a row, if it exists.
    pub fn remove(&mut self, row: u32) {
        let width = padded_width(self.dimensions);
        let Some(slot) = self.slot(row) else { return };
        let list =
            if slot.list == UNASSIGNED_LIST { &mut self.unassigned } else { &mut self.lists[slot.list as usize] };
        if let Some(moved) = list.remove(slot.at as usize, width) {
            self.slots[moved as usize] = slot;
        }
        self.slots[row as usize].list = NO_LIST;
        self.count -= 1;
    }

    fn slot(&self, row: u32) -> Option<RowSlot> {
        self.slots.get(row as usize).copied().filter(|slot| slot.list != NO_LIST)
    }

    fn list(&self, slot: RowSlot) -> &InvertedList {
        if slot.list == UNASSIGNED_LIST { &self.unassigned } else { &self.lists[slot.list as usize] }
    }

    /// Returns the scale and codes of a row.
    pub fn quantized(&self, row: u32) -> Option<(f32, &[u8])> {
        let slot = self.slot(row)?;
        let list = self.list(slot);
        Some((list.scales[slot.at as usize], list.codes(slot.at as usize, padded_width(self.dimensions))))
    }

    /// Returns the similarity of a row, accurate to two or three digits.
    pub fn approximate_similarity(&self, row: u32, query: &QuantizedQuery) -> Option<f32> {
        let (scale, codes) = self.quantized(row)?;
        let mut product = [0];
        dot_products(query, codes, &mut product);
        Some(product[0] as f32 * scale * query.scale)
    }

    /// Returns the nearest rows that satisfy a predicate, nearest first, with their approximate
    /// similarity.
    ///
    /// If the index finds fewer than `limit`, all rows are scanned.
    pub fn nearest(&self, query: &QuantizedQuery, limit: usize, fits: impl Fn(u32) -> bool) -> Vec<(u32, f32)> {
        let scan_rows = SCANNED_PER_SQRT_ROW * (self.count as f64).sqrt();
        self.nearest_probing(query, limit, scan_rows as usize, fits)
    }

    /// Like [`Self::nearest`], but scans lists until they hold `scan_rows` rows.
    pub fn nearest_probing(
        &self,
        query: &QuantizedQuery,
        limit: usize,
        scan_rows: usize,
        fits: impl Fn(u32) -> bool,
    ) -> Vec<(u32, f32)> {
        let Some(centroids) = &self.centroids else { return self.nearest_exhaustive(query, limit, fits) };
        let mut top = TopK::new(limit);
        scan(&self.unassigned, query, &mut top, &fits);
        let mut scanned = 0;
        // List lengths vary, so more lists are prepared than should be needed.
        let near = centroids.len() * 4 * scan_rows / self.count.max(1) + 16;
        for list in centroids.nearest_first(query, near) {
            let list = &self.lists[list];
            scan(list, query, &mut top, &fits);
            scanned += list.rows.len();
            if scanned >= scan_rows {
                break;
            }
        }
        if top.len() < limit && scanned + self.unassigned_count() < self.count {
            return self.nearest_exhaustive(query, limit, fits);
        }
        top.into_sorted(query.scale)
    }

    /// Returns the nearest rows that satisfy a predicate, without the index.
    pub fn nearest_exhaustive(
        &self,
        query: &QuantizedQuery,
        limit: usize,
        fits: impl Fn(u32) -> bool,
    ) -> Vec<(u32, f32)> {
        let mut top = TopK::new(limit);
        for list in self.lists.iter().chain([&self.unassigned]) {
            scan(list, query, &mut top, &fits);
        }
        top.into_sorted(query.scale)
    }

    /// Returns the nearest among these rows that satisfy a predicate.
    pub fn nearest_among(
        &self,
        rows: &[u32],
        query: &QuantizedQuery,
        limit: usize,
        fits: impl Fn(u32) -> bool,
    ) -> Vec<(u32, f32)> {
        let mut top = TopK::new(limit);
        for row in rows {
            if let Some(similarity) = self.approximate_similarity(*row, query)
                && top.accepts(similarity)
                && fits(*row)
            {
                top.push(*row, similarity);
            }
        }
        top.into_sorted(1.0)
    }

    /// Returns whether the centroids must be trained, for the first time or again.
    pub fn needs_training(&self) -> bool {
        let fine = self.centroids.is_some() && self.count <= self.trained_rows.saturating_mul(RETRAIN_GROWTH_FACTOR);
        self.count >= min_indexed_rows() && !fine
    }

    /// Returns a sample of rows for training, if it is due.
    pub fn training_sample(&self) -> Option<TrainingSample> {
        if !self.needs_training() {
            return None;
        }
        let centroid_count = (LISTS_PER_SQRT_ROW * (self.count as f64).sqrt()) as usize;
        let rows = (centroid_count * ROWS_PER_CENTROID).min(self.count);
        let mut sample = TrainingSample {
            dimensions: self.dimensions,
            centroids: centroid_count,
            scales: Vec::new(),
            codes: Vec::new(),
        };
        // A step coprime to the number of slots visits each of them once, in pseudo-random order.
        let slots = self.slots.len();
        let mut step = (slots as f64 * 0.618) as usize | 1;
        while gcd(step, slots) != 1 {
            step += 2;
        }
        let mut at = 0;
        for _ in 0..slots {
            at = (at + step) % slots;
            if let Some((scale, codes)) = self.quantized(at as u32) {
                sample.scales.push(scale);
                sample.codes.extend_from_slice(codes);
                if sample.scales.len() == rows {
                    break;
                }
            }
        }
        Some(sample)
    }

    /// Replaces the centroids. All rows are unassigned until [`assign`](Self::assign) is called.
    pub fn set_centroids(&mut self, centroids: Centroids) {
        let width = padded_width(self.dimensions);
        for mut list in std::mem::take(&mut self.lists) {
            for (at, row) in list.rows.iter().enumerate() {
                self.slots[*row as usize] =
                    RowSlot { list: UNASSIGNED_LIST, at: (self.unassigned.rows.len() + at) as u32 };
            }
            debug_assert_eq!(list.codes.len(), list.rows.len() * width);
            self.unassigned.rows.append(&mut list.rows);
            self.unassigned.scales.append(&mut list.scales);
            self.unassigned.codes.append(&mut list.codes);
        }
        self.lists.resize_with(centroids.len(), InvertedList::default);
        self.trained_rows = (centroids.len() as f64 / LISTS_PER_SQRT_ROW).powi(2) as usize;
        self.centroids = Some(centroids);
    }

    /// Returns the centroids, if they have been trained.
    pub fn centroids(&self) -> Option<&Centroids> {
        self.centroids.as_ref()
    }

    /// Returns unassigned rows with their codes, for [`assign`](Self::assign).
    pub fn unassigned_rows(&self, limit: usize) -> Vec<(u32, Vec<u8>)> {
        let width = padded_width(self.dimensions);
        let from = self.unassigned.rows.len().saturating_sub(limit);
        (from..self.unassigned.rows.len())
            .map(|at| (self.unassigned.rows[at], self.unassigned.codes(at, width).to_vec()))
            .collect()
    }

    /// Assigns rows to lists; rows that are already assigned and lists that do not exist are
    /// skipped.
    pub fn assign(&mut self, rows: impl IntoIterator<Item = (u32, u32)>) {
        let width = padded_width(self.dimensions);
        for (row, to) in rows {
            let Some(slot) = self.slot(row).filter(|place| place.list == UNASSIGNED_LIST) else { continue };
            let Some(list) = self.lists.get_mut(to as usize) else { continue };
            let at = slot.at as usize;
            self.slots[row as usize] = RowSlot { list: to, at: list.rows.len() as u32 };
            list.push(row, self.unassigned.scales[at], self.unassigned.codes(at, width));
            if let Some(moved) = self.unassigned.remove(at, width) {
                self.slots[moved as usize] = slot;
            }
        }
        if self.unassigned.codes.capacity() > 4 * self.unassigned.codes.len().max(MAX_UNASSIGNED_ROWS * width) {
            let room = 2 * self.unassigned.rows.len();
            self.unassigned.rows.shrink_to(room);
            self.unassigned.scales.shrink_to(room);
            self.unassigned.codes.shrink_to(room * width);
        }
    }

    /// Returns the rows of a list.
    pub fn list_rows(&self, list: usize) -> &[u32] {
        self.lists.get(list).map_or(&[], |list| &list.rows)
    }
}

fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}

fn scan(list: &InvertedList, query: &QuantizedQuery, top: &mut TopK, fits: &impl Fn(u32) -> bool) {
    let width = query.width();
    let mut products = [0; SCAN_BLOCK_ROWS];
    for (block, scales) in list.scales.chunks(SCAN_BLOCK_ROWS).enumerate() {
        let from = block * SCAN_BLOCK_ROWS;
        let products = &mut products[..scales.len()];
        dot_products(query, &list.codes[from * width..(from + scales.len()) * width], products);
        for (at, (product, scale)) in products.iter().zip(scales).enumerate() {
            let similarity = *product as f32 * scale;
            if top.accepts(similarity) && fits(list.rows[from + at]) {
                top.push(list.rows[from + at], similarity);
            }
        }
    }
}

/// The best rows seen so far.
struct TopK {
    limit: usize,
    worst: f32,
    rows: Vec<(u32, f32)>,
}

impl TopK {
    fn new(limit: usize) -> Self {
        Self { limit, worst: f32::NEG_INFINITY, rows: Vec::with_capacity(4 * limit) }
    }

    fn accepts(&self, similarity: f32) -> bool {
        similarity > self.worst
    }

    fn len(&self) -> usize {
        self.rows.len()
    }

    fn push(&mut self, row: u32, similarity: f32) {
        self.rows.push((row, similarity));
        if self.rows.len() >= 4 * self.limit.max(1) {
            self.prune();
        }
    }

    fn prune(&mut self) {
        if self.limit == 0 {
            self.rows.clear();
        } else if self.rows.len() > self.limit {
            let (_, (_, worst), _) = self.rows.select_nth_unstable_by(self.limit - 1, |a, b| b.1.total_cmp(&a.1));
            self.worst = *worst;
            self.rows.truncate(self.limit);
        }
    }

    fn into_sorted(mut self, scale: f32) -> Vec<(u32, f32)> {
        self.prune();
        self.rows.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        self.rows.iter_mut().for_each(|(_, similarity)| *similarity *= scale);
        self.rows
    }
}

#[cfg(test)]
mod tests;
