//! Built-in static embeddings: the sum of one vector per word piece.
//!
//! A vector has two halves. The *topic* is the subject of a text: one row per word piece, distilled
//! from the sentence vectors of all-MiniLM-L6-v2. The *shape* is the form of the question ("how
//! many … for each … at least"): one row per word that questions to many databases share and per
//! frequent pair of neighbours, while all other words map to one placeholder word.
//! `scripts/embedder/distil.py` creates the file. All numbers are little-endian:
//!
//! | content | size |
//! |---|---|
//! | `QMEMBED1` | 8 bytes |
//! | number of pieces, bytes of their text, topic dimensions, words, pairs, shape dimensions | 6 × u32 |
//! | weight of the shape in a similarity | f32 |
//! | FNV-1a of every 61st byte of the rest | u64 |
//! | pieces in order, separated by newlines | text |
//! | shape word of each piece: 0 placeholder, 1 number, from 3 on a word | pieces × u16 |
//! | word pairs in order; 2 is the start and the end | pairs × 2 × u16 |
//! | scales of the rows | (pieces + words + pairs) × f32 |
//! | rows of the topic, then of words and pairs | 1 byte per number |

use std::collections::HashMap;
use std::hash::Hasher;
use std::sync::OnceLock;

use querymend_net::Fnv1aHasher;

use super::{Embedder, normalize, wordpiece};
use crate::BoxFuture;
use crate::error::Error;

static EMBEDDER_FILE: &[u8] = include_bytes!("../../data/embedder.bin");

/// Built-in static word-piece embeddings: no file, no server, a few microseconds per question.
#[derive(Debug, Clone, Copy)]
pub struct StaticEmbedder(&'static EmbeddingTable);

impl StaticEmbedder {
    /// Returns the built-in embedder. Its data is validated on first use.
    pub fn builtin() -> Result<Self, Error> {
        static TABLE: OnceLock<Result<EmbeddingTable, &'static str>> = OnceLock::new();
        match TABLE.get_or_init(|| EmbeddingTable::read(EMBEDDER_FILE)) {
            Ok(table) => Ok(Self(table)),
            Err(why) => Err(Error::configuration(
                format!("the built-in embedder cannot be used: {why}"),
                "build again from a clean checkout",
            )),
        }
    }

    /// Embeds one text synchronously.
    pub fn vector(&self, text: &str) -> Vec<f32> {
        self.0.vector(text)
    }

    /// Returns the topic half of a text's vector, normalized, which distinguishes names regardless
    /// of the form of the question.
    pub fn topic(&self, text: &str) -> Vec<f32> {
        let mut topic = vec![0.0; self.0.topic.dimensions];
        wordpiece::for_each_piece(text, &self.0.vocabulary, self.0.unknown, |piece| {
            self.0.topic.add_row_to(piece as usize, &mut topic)
        });
        normalize(&mut topic);
        topic
    }
}

impl Embedder for StaticEmbedder {
    fn name(&self) -> &str {
        "static"
    }

    fn dimensions(&self) -> Option<usize> {
        Some(self.0.topic.dimensions + self.0.shape.dimensions)
    }

    fn embed<'a>(&'a self, texts: &'a [&'a str]) -> BoxFuture<'a, Vec<Vec<f32>>> {
        Box::pin(async move { Ok(texts.iter().map(|text| self.vector(text)).collect()) })
    }
}

/// Rows of 8-bit numbers with one scale per row.
#[derive(Debug)]
struct QuantizedRows {
    dimensions: usize,
    scales: Vec<f32>,
    numbers: &'static [u8],
}

impl QuantizedRows {
    fn add_row_to(&self, row: usize, to: &mut [f32]) {
        let numbers = self.numbers.get(row * self.dimensions..(row + 1) * self.dimensions);
        if let (Some(scale), Some(numbers)) = (self.scales.get(row), numbers) {
            for (sum, number) in to.iter_mut().zip(numbers) {
                *sum += f32::from(number.cast_signed()) * scale;
            }
        }
    }
}

#[derive(Debug)]
struct EmbeddingTable {
    vocabulary: HashMap<&'static str, u32>,
    unknown: u32,
    /// Shape word of each piece.
    word_of: Vec<u16>,
    words: usize,
    /// Sorted word pairs.
    pairs: Vec<(u16, u16)>,
    topic: QuantizedRows,
    shape: QuantizedRows,
    /// Weight of the shape in a similarity.
    shape_weight: f32,
}

const MAGIC: &[u8] = b"QMEMBED1";
/// Reserved words: placeholder, number, and start or end of the text.
const OTHER_WORD: u16 = 0;
const NUMBER_WORD: u16 = 1;
const BOUNDARY_WORD: u16 = 2;
/// Maximum number of entries; more indicate a corrupt file.
const MAX_ENTRIES: usize = 1 << 20;

impl EmbeddingTable {
    fn read(file: &'static [u8]) -> Result<Self, &'static str> {
        let mut rest = EmbeddingFileReader(file);
        if rest.take(MAGIC.len())? != MAGIC {
            return Err("it is not an embedder, or has another version");
        }
        let mut size = || match rest.u32()? as usize {
            size if size <= MAX_ENTRIES << 3 => Ok(size),
            _ => Err("a size in it is out of bounds"),
        };
        let (count, bytes, topic, words, pairs, shape) = (size()?, size()?, size()?, size()?, size()?, size()?);
        let share = f32::from_bits(rest.u32()?);
        let check = u64::from(rest.u32()?) | u64::from(rest.u32()?) << 32;
        let fine = |size: usize, most: usize| (1..=most).contains(&size);
        if !(fine(count, MAX_ENTRIES)
            && fine(topic, 4096)
            && fine(shape, 4096)
            && (3..=MAX_ENTRIES).contains(&words)
            && pairs <= MAX_ENTRIES)
        {
            return Err("a size in it is out of bounds");
        }
        if !(0.0..=1.0).contains(&share) {
            return Err("the share of the shape is not between 0 and 1");
        }
        let mut hasher = Fnv1aHasher::default();
        rest.0.iter().step_by(61).for_each(|byte| hasher.write_u8(*byte));
        if hasher.finish() != check {
            return Err("its checksum differs");
        }
        let text = std::str::from_utf8(rest.take(bytes)?).map_err(|_| "its pieces are not text")?;
        let word_of: Vec<u16> = rest.numbers(count)?.map(u16::from_le_bytes).collect();
        let pairs: Vec<(u16, u16)> =
            rest.numbers(pairs)?.map(|[a, b, c, d]| (u16::from_le_bytes([a, b]), u16::from_le_bytes([c, d]))).collect();
        let mut scales = |count: usize| -> Result<Vec<f32>, &'static str> {
            let all: Vec<f32> = rest.numbers(count)?.map(f32::from_le_bytes).collect();
            if all.iter().all(|scale| scale.is_finite()) { Ok(all) } else { Err("a scale is not a number") }
        };
        let (topic_scales, shape_scales) = (scales(count)?, scales(words + pairs.len())?);
        let topic = QuantizedRows { dimensions: topic, numbers: rest.take(count * topic)?, scales: topic_scales };
        let shape =
            QuantizedRows { dimensions: shape, numbers: rest.take(shape_scales.len() * shape)?, scales: shape_scales };
        if !rest.0.is_empty() {
            return Err("it has trailing data");
        }
        if word_of.iter().any(|word| usize::from(*word) >= words) || !pairs.is_sorted() {
            return Err("its words or pairs are not in order");
        }
        let vocabulary: HashMap<&str, u32> = text.split('\n').zip(0..).collect();
        if vocabulary.len() != count {
            return Err("its number of pieces differs from the declared one");
        }
        let unknown = *vocabulary.get("[UNK]").ok_or("it has no [UNK] token")?;
        Ok(Self { vocabulary, unknown, word_of, words, pairs, topic, shape, shape_weight: share })
    }

    fn vector(&self, text: &str) -> Vec<f32> {
        let mut vector = vec![0.0; self.topic.dimensions + self.shape.dimensions];
        let (topic, shape) = vector.split_at_mut(self.topic.dimensions);
        let mut last = BOUNDARY_WORD;
        wordpiece::for_each_piece(text, &self.vocabulary, self.unknown, |piece| {
            let piece = piece as usize;
            self.topic.add_row_to(piece, topic);
            let word = self.word_of.get(piece).copied().unwrap_or(OTHER_WORD);
            // Consecutive placeholders, or pieces of one number, count once.
            if word != last || !matches!(word, OTHER_WORD | NUMBER_WORD) {
                self.shape.add_row_to(usize::from(word), shape);
                self.add_pair(last, word, shape);
                last = word;
            }
        });
        if last != BOUNDARY_WORD {
            self.add_pair(last, BOUNDARY_WORD, shape);
        }
        for (half, share) in [(topic, 1.0 - self.shape_weight), (shape, self.shape_weight)] {
            normalize(half);
            half.iter_mut().for_each(|number| *number *= share.sqrt());
        }
        // If one half is zero, the other makes up the whole vector.
        normalize(&mut vector);
        vector
    }

    fn add_pair(&self, a: u16, b: u16, to: &mut [f32]) {
        if let Ok(at) = self.pairs.binary_search(&(a, b)) {
            self.shape.add_row_to(self.words + at, to);
        }
    }
}

/// Bounds-checked reader of the embedding file.
struct EmbeddingFileReader(&'static [u8]);

const TRUNCATED_FILE: &str = "it ends too early";

impl EmbeddingFileReader {
    fn take(&mut self, count: usize) -> Result<&'static [u8], &'static str> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or(TRUNCATED_FILE)?;
        self.0 = rest;
        Ok(taken)
    }

    fn u32(&mut self) -> Result<u32, &'static str> {
        self.numbers(1)?.next().map(u32::from_le_bytes).ok_or(TRUNCATED_FILE)
    }

    /// Reads `count` numbers of `BYTES` bytes each.
    fn numbers<const BYTES: usize>(
        &mut self,
        count: usize,
    ) -> Result<impl Iterator<Item = [u8; BYTES]> + use<BYTES>, &'static str> {
        let taken = self.take(count.checked_mul(BYTES).ok_or(TRUNCATED_FILE)?)?;
        Ok(taken.as_chunks::<BYTES>().0.iter().copied())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::embed::similarity;

    fn leak(bytes: Vec<u8>) -> &'static [u8] {
        Box::leak(bytes.into_boxed_slice())
    }

    #[test]
    fn embedded_table_is_small_and_complete() {
        assert!(EMBEDDER_FILE.len() <= 8_000_000);
        let table = EmbeddingTable::read(EMBEDDER_FILE).unwrap();
        assert_eq!(table.word_of.len(), table.vocabulary.len());
    }

    #[test]
    fn reports_damaged_files() {
        for length in [0, 7, 8, 20, 43, 44, 100, 300_000, EMBEDDER_FILE.len() - 1] {
            assert!(EmbeddingTable::read(leak(EMBEDDER_FILE[..length].to_vec())).is_err(), "{length}");
        }
        let mut longer = EMBEDDER_FILE.to_vec();
        longer.push(0);
        assert!(EmbeddingTable::read(leak(longer)).is_err());
        for at in 0..44 {
            for bit in [1, 0x80] {
                let mut bytes = EMBEDDER_FILE.to_vec();
                bytes[at] ^= bit;
                // The weight of the shape is outside the checksum, so a small change to it goes
                // undetected.
                assert!(EmbeddingTable::read(leak(bytes)).is_err() || (32..36).contains(&at), "{at}");
            }
        }
        let mut bytes = EMBEDDER_FILE.to_vec();
        bytes[44 + 61 * 5] ^= 1;
        assert_eq!(EmbeddingTable::read(leak(bytes)).err(), Some("its checksum differs"));
    }

    #[test]
    fn embeds_any_text() {
        let embedder = StaticEmbedder::builtin().unwrap();
        let long = "how many ".repeat(20_000);
        for text in ["", " ", "?", "\u{0}", "中文", "Ünïcödé ß ﬁ İ", "🦀🦀", "1234567890", "[UNK] ## ###", &long]
        {
            let vector = embedder.vector(text);
            assert_eq!(Some(vector.len()), embedder.dimensions());
            let length = similarity(&vector, &vector);
            assert!((length - 1.0).abs() < 1e-4 || text.trim().is_empty() || text == "\u{0}", "{text}: {length}");
            assert_eq!(vector, embedder.vector(text));
        }
    }

    #[test]
    fn similar_questions_have_similar_vectors() {
        let embedder = StaticEmbedder::builtin().unwrap();
        let near = |a: &str, b: &str| similarity(&embedder.vector(a), &embedder.vector(b));
        let asked = "How many singers are there for each country?";
        assert!(
            near(asked, "Show the number of singers in every country.") > near(asked, "List the names of all singers.")
        );
        assert!(near(asked, "How many cars are there for each maker?") > near(asked, "What is the weather in Paris?"));
    }
}
