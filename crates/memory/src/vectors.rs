//! Vectors in memory, and which of them are nearest to another one.
//!
//! Small sets are looked at one by one, which is exact. From [`INDEXED_FROM`] on, rows are put into lists around centres, and
//! only the lists that are near are looked at. Rows that are in no list yet are *loose* and always looked at, so that an index
//! which is half built, or not built at all, loses nothing.

mod centres;
mod code;
mod dot;

use centres::SAMPLED;
pub use centres::{Centres, Sample};
pub use code::{Coded, code, similarity, width};
pub use dot::Query;
use dot::dots;

/// From so many rows on lists are worth their while: below, looking at all of them takes less than half a millisecond.
pub const INDEXED_FROM: usize = 20_000;
/// There are so many times the root of the number of rows lists, and so many times it rows are looked at. With this many of
/// both, 99 of 100 rows that should be found are, from 30,000 rows to a million (docs/memory.md).
const LISTS: f64 = 4.0;
const SEEN: f64 = 14.0;
/// When there are so many times the rows that centres were found for, centres are sought anew.
const GROWN: usize = 4;
/// So many loose rows are left to lie: looking at them costs less than telling them apart.
pub const LOOSE: usize = 2_048;
/// So many rows are multiplied at once.
const BLOCK: usize = 256;

/// Returns the number of rows from which an index is built. Quick unit tests build a smaller one: k-means over [`INDEXED_FROM`] rows
/// takes 15 s without optimisation.
pub(crate) fn indexed_from() -> usize {
    #[cfg(test)]
    if !querymend_testing::is_full() {
        return INDEXED_FROM / 4;
    }
    INDEXED_FROM
}

/// Where a row is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place {
    list: u32,
    at: u32,
}

const NOWHERE: u32 = u32::MAX;
const IN_LOOSE: u32 = u32::MAX - 1;

/// Rows that lie one behind the other.
#[derive(Debug, Default)]
struct List {
    rows: Vec<u32>,
    scales: Vec<f32>,
    codes: Vec<u8>,
}

impl List {
    fn push(&mut self, row: u32, scale: f32, codes: &[u8]) {
        if self.codes.capacity() - self.codes.len() < codes.len() {
            // A quarter more and not twice as much: this is most of the memory that a store takes.
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

    /// Takes a row out; the last one takes its place and is given back.
    fn remove(&mut self, at: usize, width: usize) -> Option<u32> {
        let last = self.rows.len() - 1;
        self.rows.swap_remove(at);
        self.scales.swap_remove(at);
        self.codes.copy_within(last * width.., at * width);
        self.codes.truncate(last * width);
        self.rows.get(at).copied()
    }
}

/// A set of vectors, each known by the number of its row.
#[derive(Debug)]
pub struct Vectors {
    dimensions: usize,
    count: usize,
    places: Vec<Place>,
    loose: List,
    lists: Vec<List>,
    centres: Option<Centres>,
    /// How many rows there were when the centres were found, about.
    found_for: usize,
}

impl Vectors {
    /// An empty set of vectors with so many numbers.
    pub fn new(dimensions: usize) -> Self {
        Self {
            dimensions,
            count: 0,
            places: Vec::new(),
            loose: List::default(),
            lists: Vec::new(),
            centres: None,
            found_for: 0,
        }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// How many numbers the vectors have.
    pub fn dimensions(&self) -> usize {
        self.dimensions
    }

    /// How many rows are in no list.
    pub fn loose(&self) -> usize {
        self.loose.rows.len()
    }

    /// Whether searching leaves rows out that are likely far away.
    pub fn is_approximate(&self) -> bool {
        self.centres.is_some()
    }

    /// How much memory the rows take, in bytes.
    pub fn bytes(&self) -> usize {
        let of = |list: &List| list.codes.capacity() + 4 * (list.rows.capacity() + list.scales.capacity());
        of(&self.loose) + self.lists.iter().map(of).sum::<usize>() + self.places.capacity() * size_of::<Place>()
    }

    /// Puts a row in, in place of the one that had this number.
    pub fn put(&mut self, row: u32, scale: f32, codes: &[u8]) {
        assert_eq!(codes.len(), width(self.dimensions), "codes of this set");
        self.remove(row);
        if self.places.len() <= row as usize {
            self.places.resize(row as usize + 1, Place { list: NOWHERE, at: 0 });
        }
        self.places[row as usize] = Place { list: IN_LOOSE, at: self.loose.rows.len() as u32 };
        self.loose.push(row, scale, codes);
        self.count += 1;
    }

    /// Takes a row out, if it is there.
    pub fn remove(&mut self, row: u32) {
        let width = width(self.dimensions);
        let Some(place) = self.place(row) else { return };
        let list = if place.list == IN_LOOSE { &mut self.loose } else { &mut self.lists[place.list as usize] };
        if let Some(moved) = list.remove(place.at as usize, width) {
            self.places[moved as usize] = place;
        }
        self.places[row as usize].list = NOWHERE;
        self.count -= 1;
    }

    fn place(&self, row: u32) -> Option<Place> {
        self.places.get(row as usize).copied().filter(|place| place.list != NOWHERE)
    }

    fn list(&self, place: Place) -> &List {
        if place.list == IN_LOOSE { &self.loose } else { &self.lists[place.list as usize] }
    }

    /// The scale and the codes of a row.
    pub fn coded(&self, row: u32) -> Option<(f32, &[u8])> {
        let place = self.place(row)?;
        let list = self.list(place);
        Some((list.scales[place.at as usize], list.codes(place.at as usize, width(self.dimensions))))
    }

    /// About how alike a row is, to two or three digits.
    pub fn about(&self, row: u32, query: &Query) -> Option<f32> {
        let (scale, codes) = self.coded(row)?;
        let mut product = [0];
        dots(query, codes, &mut product);
        Some(product[0] as f32 * scale * query.scale)
    }

    /// The nearest rows that fit, nearest first, with how alike they are, about. Where there is an index and it finds fewer
    /// than are wanted, all rows are looked at.
    pub fn nearest(&self, query: &Query, most: usize, fits: impl Fn(u32) -> bool) -> Vec<(u32, f32)> {
        let enough = SEEN * (self.count as f64).sqrt();
        self.nearest_of(query, most, enough as usize, fits)
    }

    /// The same, looking at lists until they hold so many rows.
    pub fn nearest_of(&self, query: &Query, most: usize, enough: usize, fits: impl Fn(u32) -> bool) -> Vec<(u32, f32)> {
        let Some(centres) = &self.centres else { return self.nearest_of_all(query, most, fits) };
        let mut best = Best::new(most);
        scan(&self.loose, query, &mut best, &fits);
        let mut seen = 0;
        // Lists are not of one length, so that more of them are at hand than should be needed.
        let near = centres.len() * 4 * enough / self.count.max(1) + 16;
        for list in centres.nearest_first(query, near) {
            let list = &self.lists[list];
            scan(list, query, &mut best, &fits);
            seen += list.rows.len();
            if seen >= enough {
                break;
            }
        }
        if best.len() < most && seen + self.loose() < self.count {
            return self.nearest_of_all(query, most, fits);
        }
        best.done(query.scale)
    }

    /// The nearest rows that fit, without the index.
    pub fn nearest_of_all(&self, query: &Query, most: usize, fits: impl Fn(u32) -> bool) -> Vec<(u32, f32)> {
        let mut best = Best::new(most);
        for list in self.lists.iter().chain([&self.loose]) {
            scan(list, query, &mut best, &fits);
        }
        best.done(query.scale)
    }

    /// The nearest of these rows that fit.
    pub fn nearest_among(
        &self,
        rows: &[u32],
        query: &Query,
        most: usize,
        fits: impl Fn(u32) -> bool,
    ) -> Vec<(u32, f32)> {
        let mut best = Best::new(most);
        for row in rows {
            if let Some(similarity) = self.about(*row, query)
                && best.wants(similarity)
                && fits(*row)
            {
                best.push(*row, similarity);
            }
        }
        best.done(1.0)
    }

    /// Whether it is time to find centres.
    pub fn sample_is_due(&self) -> bool {
        let fine = self.centres.is_some() && self.count <= self.found_for.saturating_mul(GROWN);
        self.count >= indexed_from() && !fine
    }

    /// Rows to find centres in, if it is time to.
    pub fn sample(&self) -> Option<Sample> {
        if !self.sample_is_due() {
            return None;
        }
        let centres = (LISTS * (self.count as f64).sqrt()) as usize;
        let rows = (centres * SAMPLED).min(self.count);
        let mut sample = Sample { dimensions: self.dimensions, centres, scales: Vec::new(), codes: Vec::new() };
        // Steps that have nothing in common with the number of places visit each of them once, in no order.
        let places = self.places.len();
        let mut step = (places as f64 * 0.618) as usize | 1;
        while common(step, places) != 1 {
            step += 2;
        }
        let mut at = 0;
        for _ in 0..places {
            at = (at + step) % places;
            if let Some((scale, codes)) = self.coded(at as u32) {
                sample.scales.push(scale);
                sample.codes.extend_from_slice(codes);
                if sample.scales.len() == rows {
                    break;
                }
            }
        }
        Some(sample)
    }

    /// Takes these centres from now on. All rows are loose until they are [`settle`](Self::settle)d.
    pub fn adopt(&mut self, centres: Centres) {
        let width = width(self.dimensions);
        for mut list in std::mem::take(&mut self.lists) {
            for (at, row) in list.rows.iter().enumerate() {
                self.places[*row as usize] = Place { list: IN_LOOSE, at: (self.loose.rows.len() + at) as u32 };
            }
            debug_assert_eq!(list.codes.len(), list.rows.len() * width);
            self.loose.rows.append(&mut list.rows);
            self.loose.scales.append(&mut list.scales);
            self.loose.codes.append(&mut list.codes);
        }
        self.lists.resize_with(centres.len(), List::default);
        self.found_for = (centres.len() as f64 / LISTS).powi(2) as usize;
        self.centres = Some(centres);
    }

    /// The centres, if there are any.
    pub fn centres(&self) -> Option<&Centres> {
        self.centres.as_ref()
    }

    /// Some loose rows with their codes, to be [`settle`](Self::settle)d.
    pub fn some_loose(&self, most: usize) -> Vec<(u32, Vec<u8>)> {
        let width = width(self.dimensions);
        let from = self.loose.rows.len().saturating_sub(most);
        (from..self.loose.rows.len()).map(|at| (self.loose.rows[at], self.loose.codes(at, width).to_vec())).collect()
    }

    /// Puts loose rows into lists. Rows that are not loose any more, and lists that there are not, are left alone.
    pub fn settle(&mut self, rows: impl IntoIterator<Item = (u32, u32)>) {
        let width = width(self.dimensions);
        for (row, to) in rows {
            let Some(place) = self.place(row).filter(|place| place.list == IN_LOOSE) else { continue };
            let Some(list) = self.lists.get_mut(to as usize) else { continue };
            let at = place.at as usize;
            self.places[row as usize] = Place { list: to, at: list.rows.len() as u32 };
            list.push(row, self.loose.scales[at], self.loose.codes(at, width));
            if let Some(moved) = self.loose.remove(at, width) {
                self.places[moved as usize] = place;
            }
        }
        if self.loose.codes.capacity() > 4 * self.loose.codes.len().max(LOOSE * width) {
            let room = 2 * self.loose.rows.len();
            self.loose.rows.shrink_to(room);
            self.loose.scales.shrink_to(room);
            self.loose.codes.shrink_to(room * width);
        }
    }

    /// Which rows are in a list.
    pub fn listed(&self, list: usize) -> &[u32] {
        self.lists.get(list).map_or(&[], |list| &list.rows)
    }
}

fn common(a: usize, b: usize) -> usize {
    if b == 0 { a } else { common(b, a % b) }
}

fn scan(list: &List, query: &Query, best: &mut Best, fits: &impl Fn(u32) -> bool) {
    let width = query.width();
    let mut products = [0; BLOCK];
    for (block, scales) in list.scales.chunks(BLOCK).enumerate() {
        let from = block * BLOCK;
        let products = &mut products[..scales.len()];
        dots(query, &list.codes[from * width..(from + scales.len()) * width], products);
        for (at, (product, scale)) in products.iter().zip(scales).enumerate() {
            let similarity = *product as f32 * scale;
            if best.wants(similarity) && fits(list.rows[from + at]) {
                best.push(list.rows[from + at], similarity);
            }
        }
    }
}

/// The best of what was seen.
struct Best {
    most: usize,
    worst: f32,
    rows: Vec<(u32, f32)>,
}

impl Best {
    fn new(most: usize) -> Self {
        Self { most, worst: f32::NEG_INFINITY, rows: Vec::with_capacity(4 * most) }
    }

    fn wants(&self, similarity: f32) -> bool {
        similarity > self.worst
    }

    fn len(&self) -> usize {
        self.rows.len()
    }

    fn push(&mut self, row: u32, similarity: f32) {
        self.rows.push((row, similarity));
        if self.rows.len() >= 4 * self.most.max(1) {
            self.cut();
        }
    }

    fn cut(&mut self) {
        if self.most == 0 {
            self.rows.clear();
        } else if self.rows.len() > self.most {
            let (_, (_, worst), _) = self.rows.select_nth_unstable_by(self.most - 1, |a, b| b.1.total_cmp(&a.1));
            self.worst = *worst;
            self.rows.truncate(self.most);
        }
    }

    fn done(mut self, scale: f32) -> Vec<(u32, f32)> {
        self.cut();
        self.rows.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        self.rows.iter_mut().for_each(|(_, similarity)| *similarity *= scale);
        self.rows
    }
}

#[cfg(test)]
mod tests;
