//! The embedder that is compiled in: a vector for each word piece, added up.
//!
//! A vector has two halves. The *topic* is what a text is about: one row for each piece, tuned towards the sentence vectors
//! of all-MiniLM-L6-v2. The *shape* is how something is asked ("how many … for each … at least"): one row for each word that
//! questions to many databases share and for some pairs of neighbours, while all other words are one word, "something".
//! `scripts/embedder/distil.py` makes the file. All numbers in it are little-endian:
//!
//! | what | how much |
//! |---|---|
//! | `QMEMBED1` | 8 bytes |
//! | pieces, bytes of their text, topic dimensions, words, pairs, shape dimensions | 6 × u32 |
//! | the share of the shape in a similarity | f32 |
//! | FNV-1a of every 61st byte of what follows | u64 |
//! | the pieces, in order, a line end between two | text |
//! | the word that each piece is for the shape: 0 something, 1 a number, from 3 on a word | pieces × u16 |
//! | the pairs of words, in order; 2 is the beginning and the end | pairs × 2 × u16 |
//! | the scales of the rows | (pieces + words + pairs) × f32 |
//! | the rows of the topic, then of words and pairs | 1 byte for each number |

use std::collections::HashMap;
use std::sync::OnceLock;

use super::{Embedder, pieces, to_unit};
use crate::Answer;
use crate::error::Error;

static FILE: &[u8] = include_bytes!("../../data/embedder.bin");

/// Static word-piece embeddings, compiled in: no file, no server, a few microseconds for a question.
#[derive(Debug, Clone, Copy)]
pub struct Static(&'static Table);

impl Static {
    /// The embedder that is compiled in. Its file is checked at the first use.
    pub fn builtin() -> Result<Self, Error> {
        static TABLE: OnceLock<Result<Table, &'static str>> = OnceLock::new();
        match TABLE.get_or_init(|| Table::read(FILE)) {
            Ok(table) => Ok(Self(table)),
            Err(why) => Err(Error::configuration(
                format!("the embedder that is compiled in cannot be used: {why}"),
                "build again from a clean checkout",
            )),
        }
    }

    /// The vector of one text, at once.
    pub fn vector(&self, text: &str) -> Vec<f32> {
        self.0.vector(text)
    }

    /// What a text is about, without how it is asked: the part of its vector that tells names of things apart, of length one.
    pub fn topic(&self, text: &str) -> Vec<f32> {
        let mut topic = vec![0.0; self.0.topic.dimensions];
        pieces::each(text, &self.0.vocabulary, self.0.unknown, |piece| self.0.topic.add(piece as usize, &mut topic));
        to_unit(&mut topic);
        topic
    }
}

impl Embedder for Static {
    fn name(&self) -> &str {
        "static"
    }

    fn dimensions(&self) -> Option<usize> {
        Some(self.0.topic.dimensions + self.0.shape.dimensions)
    }

    fn embed<'a>(&'a self, texts: &'a [&'a str]) -> Answer<'a, Vec<Vec<f32>>> {
        Box::pin(async move { Ok(texts.iter().map(|text| self.vector(text)).collect()) })
    }
}

/// Rows of numbers of 8 bits, a scale for each row.
#[derive(Debug)]
struct Rows {
    dimensions: usize,
    scales: Vec<f32>,
    numbers: &'static [u8],
}

impl Rows {
    fn add(&self, row: usize, to: &mut [f32]) {
        let numbers = self.numbers.get(row * self.dimensions..(row + 1) * self.dimensions);
        if let (Some(scale), Some(numbers)) = (self.scales.get(row), numbers) {
            for (sum, number) in to.iter_mut().zip(numbers) {
                *sum += f32::from(number.cast_signed()) * scale;
            }
        }
    }
}

#[derive(Debug)]
struct Table {
    vocabulary: HashMap<&'static str, u32>,
    unknown: u32,
    /// The word of each piece.
    word_of: Vec<u16>,
    words: usize,
    /// Pairs of words, in order.
    pairs: Vec<(u16, u16)>,
    topic: Rows,
    shape: Rows,
    /// The share of the shape in a similarity.
    share: f32,
}

const MAGIC: &[u8] = b"QMEMBED1";
/// Words that are no pieces.
const OTHER: u16 = 0;
const NUMBER: u16 = 1;
const EDGE: u16 = 2;
/// Larger ones are a damaged file, not an embedder.
const MOST: usize = 1 << 20;

impl Table {
    fn read(file: &'static [u8]) -> Result<Self, &'static str> {
        let mut rest = Reader(file);
        if rest.take(MAGIC.len())? != MAGIC {
            return Err("it is no embedder, or of another version");
        }
        let mut size = || match rest.u32()? as usize {
            size if size <= MOST << 3 => Ok(size),
            _ => Err("a size in it is out of bounds"),
        };
        let (count, bytes, topic, words, pairs, shape) = (size()?, size()?, size()?, size()?, size()?, size()?);
        let share = f32::from_bits(rest.u32()?);
        let check = u64::from(rest.u32()?) | u64::from(rest.u32()?) << 32;
        let fine = |size: usize, most: usize| (1..=most).contains(&size);
        if !(fine(count, MOST)
            && fine(topic, 4096)
            && fine(shape, 4096)
            && (3..=MOST).contains(&words)
            && pairs <= MOST)
        {
            return Err("a size in it is out of bounds");
        }
        if !(0.0..=1.0).contains(&share) {
            return Err("the share of the shape is not between 0 and 1");
        }
        let sum = rest
            .0
            .iter()
            .step_by(61)
            .fold(0xcbf2_9ce4_8422_2325_u64, |sum, byte| (sum ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3));
        if sum != check {
            return Err("its checksum is another");
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
        let topic = Rows { dimensions: topic, numbers: rest.take(count * topic)?, scales: topic_scales };
        let shape = Rows { dimensions: shape, numbers: rest.take(shape_scales.len() * shape)?, scales: shape_scales };
        if !rest.0.is_empty() {
            return Err("there is more in it than there should be");
        }
        if word_of.iter().any(|word| usize::from(*word) >= words) || !pairs.is_sorted() {
            return Err("its words or pairs are not in order");
        }
        let vocabulary: HashMap<&str, u32> = text.split('\n').zip(0..).collect();
        if vocabulary.len() != count {
            return Err("its pieces are not as many as it says");
        }
        let unknown = *vocabulary.get("[UNK]").ok_or("it has no piece for what is unknown")?;
        Ok(Self { vocabulary, unknown, word_of, words, pairs, topic, shape, share })
    }

    fn vector(&self, text: &str) -> Vec<f32> {
        let mut vector = vec![0.0; self.topic.dimensions + self.shape.dimensions];
        let (topic, shape) = vector.split_at_mut(self.topic.dimensions);
        let mut last = EDGE;
        pieces::each(text, &self.vocabulary, self.unknown, |piece| {
            let piece = piece as usize;
            self.topic.add(piece, topic);
            let word = self.word_of.get(piece).copied().unwrap_or(OTHER);
            // Several words that are "something", or pieces of one number, are one.
            if word != last || !matches!(word, OTHER | NUMBER) {
                self.shape.add(usize::from(word), shape);
                self.add_pair(last, word, shape);
                last = word;
            }
        });
        if last != EDGE {
            self.add_pair(last, EDGE, shape);
        }
        for (half, share) in [(topic, 1.0 - self.share), (shape, self.share)] {
            to_unit(half);
            half.iter_mut().for_each(|number| *number *= share.sqrt());
        }
        // Where one half has nothing to say, the other is the whole.
        to_unit(&mut vector);
        vector
    }

    fn add_pair(&self, a: u16, b: u16, to: &mut [f32]) {
        if let Ok(at) = self.pairs.binary_search(&(a, b)) {
            self.shape.add(self.words + at, to);
        }
    }
}

/// Reads a file piece by piece, and never beyond its end.
struct Reader(&'static [u8]);

const SHORT: &str = "it ends too early";

impl Reader {
    fn take(&mut self, count: usize) -> Result<&'static [u8], &'static str> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or(SHORT)?;
        self.0 = rest;
        Ok(taken)
    }

    fn u32(&mut self) -> Result<u32, &'static str> {
        self.numbers(1)?.next().map(u32::from_le_bytes).ok_or(SHORT)
    }

    /// So many numbers of so many bytes.
    fn numbers<const BYTES: usize>(
        &mut self,
        count: usize,
    ) -> Result<impl Iterator<Item = [u8; BYTES]> + use<BYTES>, &'static str> {
        let taken = self.take(count.checked_mul(BYTES).ok_or(SHORT)?)?;
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
    fn the_file_is_small_and_whole() {
        assert!(FILE.len() <= 8_000_000);
        let table = Table::read(FILE).unwrap();
        assert_eq!(table.word_of.len(), table.vocabulary.len());
    }

    #[test]
    fn damaged_files_are_said_to_be() {
        for length in [0, 7, 8, 20, 43, 44, 100, 300_000, FILE.len() - 1] {
            assert!(Table::read(leak(FILE[..length].to_vec())).is_err(), "{length}");
        }
        let mut longer = FILE.to_vec();
        longer.push(0);
        assert!(Table::read(leak(longer)).is_err());
        for at in 0..44 {
            for bit in [1, 0x80] {
                let mut bytes = FILE.to_vec();
                bytes[at] ^= bit;
                // A share of the shape that is a little different is the one thing that cannot be told.
                assert!(Table::read(leak(bytes)).is_err() || (32..36).contains(&at), "{at}");
            }
        }
        let mut bytes = FILE.to_vec();
        bytes[44 + 61 * 5] ^= 1;
        assert_eq!(Table::read(leak(bytes)).err(), Some("its checksum is another"));
    }

    #[test]
    fn any_text_has_a_vector() {
        let embedder = Static::builtin().unwrap();
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
    fn questions_that_ask_alike_are_near() {
        let embedder = Static::builtin().unwrap();
        let near = |a: &str, b: &str| similarity(&embedder.vector(a), &embedder.vector(b));
        let asked = "How many singers are there for each country?";
        assert!(
            near(asked, "Show the number of singers in every country.") > near(asked, "List the names of all singers.")
        );
        assert!(near(asked, "How many cars are there for each maker?") > near(asked, "What is the weather in Paris?"));
    }
}
