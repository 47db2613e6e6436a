//! Mutations of inputs: text by tokens, files by bytes.

use crate::random::Random;

/// Characters that code often mishandles: quotes, line breaks, multi-byte characters, characters
/// that change their length with their case, invisible characters.
const TRICKY_CHARACTERS: &[&str] = &[
    "'", "\"", "`", "''", "\\", "\\'", ";", "--", "/*", "*/", "/*!", "#", "$$", "$a$", "(", ")", "[", "]", "{", "}",
    ",", ".", "..", ":", "::", "?", "%", "_", "*", "=", "<>", "||", "\n", "\r\n", "\r", "\t", "\u{b}", "\u{c}", "\0",
    "\u{a0}", "\u{2028}", "\u{200b}", "\u{202e}", "\u{feff}", "é", "ß", "ẞ", "İ", "ı", "ﬁ", "K", "e\u{301}", "ǰ", "名",
    "🦀", "𝕊", "’", "“", "”", "；", "＇",
];

/// Numeric edge cases.
const EDGE_NUMBERS: &[&str] = &[
    "0",
    "-1",
    "1e999",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775808",
    "4294967296",
    "1.",
    ".5",
    "0x1F",
    "1_000",
    "99999999999999999999999999999999999999",
    "1e-400",
    "NaN",
    "00",
    "1..2",
];

/// Maximum length of a generated text; long inputs are tested elsewhere
/// (`sql/tests/integration/robustness.rs`).
const MAX_TEXT_BYTES: usize = 4_000;

/// Creates a text from the pool with one to five mutations, some of which insert one of `tokens`.
pub fn mutate_text(random: &mut Random, pool: &[Vec<u8>], tokens: &[&str]) -> Vec<u8> {
    let other = |random: &mut Random| {
        let one = random.pick(pool).map(Vec::as_slice).unwrap_or_default();
        split_tokens(&String::from_utf8_lossy(one))
    };
    let mut text = other(random);
    for _ in 0..=random.below(5) {
        let (from, to) = random_range(random, text.len(), 8);
        let far = random.below(text.len() + 1);
        match random.below(16) {
            0 | 1 => insert_token(&mut text, from, random.pick(tokens).copied().unwrap_or_default()),
            2 | 3 => {
                if let (Some(piece), Some(word)) = (text.get_mut(from), random.pick(tokens)) {
                    *piece = (*word).to_owned();
                }
            }
            4 | 5 => drop(text.drain(from..to)),
            6 => {
                let again: Vec<String> = text[from..to].to_vec();
                text.splice(far..far, again);
            }
            // Cross over: the start of one text and the end of another.
            7 | 8 => {
                let rest = other(random);
                let at = random.below(rest.len());
                text.truncate(from);
                text.extend_from_slice(&rest[at..]);
            }
            // Splice in a slice of another text.
            9 => {
                let rest = other(random);
                let (start, end) = random_range(random, rest.len(), 30);
                text.splice(from..to, rest[start..end].iter().cloned());
            }
            10 if from < text.len() && far < text.len() => text.swap(from, far),
            11 | 12 => insert_token(&mut text, from, random.pick(TRICKY_CHARACTERS).copied().unwrap_or_default()),
            13 => {
                if let Some(piece) = text.get_mut(from) {
                    *piece = mutate_word(random, piece);
                }
            }
            14 => insert_token(&mut text, from, random.pick(EDGE_NUMBERS).copied().unwrap_or_default()),
            // Wrap a range in delimiters.
            _ => {
                let around = [
                    ("(", ")"),
                    ("```sql\n", "\n```"),
                    ("{\"sql\": \"", "\"}"),
                    ("'", "'"),
                    ("\"", "\""),
                    ("/* ", " */"),
                ];
                let (open, close) = random.pick(&around).copied().unwrap_or_default();
                insert_token(&mut text, to, close);
                insert_token(&mut text, from, open);
            }
        }
    }
    let mut made = text.concat();
    made.truncate(made.floor_char_boundary(MAX_TEXT_BYTES));
    made.into_bytes()
}

/// Creates bytes from the pool with one to four mutations.
pub fn mutate_bytes(random: &mut Random, pool: &[Vec<u8>]) -> Vec<u8> {
    let mut made = random.pick(pool).cloned().unwrap_or_default();
    for _ in 0..=random.below(4) {
        let at = random.below(made.len() + 1);
        match random.below(10) {
            0 => made.truncate(at),
            1 | 2 => made.iter_mut().skip(at).take(1).for_each(|byte| *byte ^= 1 << (at % 8)),
            3 => {
                let value = random.next_u64() as u8;
                made.iter_mut().skip(at).take(1).for_each(|byte| *byte = value);
            }
            // Length or count at an edge value, in each width and byte order.
            4..=6 => {
                let edges = [
                    0,
                    1,
                    0x7f,
                    0x80,
                    0xff,
                    0x7fff,
                    0xffff,
                    0x7fff_ffff,
                    0x8000_0000,
                    0xffff_ffff,
                    1 << 40,
                    i64::MAX as u64,
                    u64::MAX,
                ];
                let number = random.pick(&edges).copied().unwrap_or_default();
                let width = 1 << random.below(4);
                let (little, big) = (number.to_le_bytes(), number.to_be_bytes());
                let written = if random.below(2) == 0 { &little[..width] } else { &big[8 - width..] };
                for (byte, new) in made.iter_mut().skip(at).zip(written) {
                    *byte = *new;
                }
            }
            7 => {
                let (from, to) = random_range(random, made.len(), 64);
                drop(made.drain(from..to));
            }
            8 => {
                let (from, to) = random_range(random, made.len(), 64);
                let again = made[from..to].to_vec();
                made.splice(at..at, again);
            }
            _ => {
                let other = random.pick(pool).cloned().unwrap_or_default();
                let (from, to) = random_range(random, other.len(), 200);
                made.splice(at..at, other[from..to].iter().copied());
            }
        }
    }
    made
}

/// Returns a random range, rarely longer than `usual`.
fn random_range(random: &mut Random, length: usize, usual: usize) -> (usize, usize) {
    let from = random.below(length + 1);
    let most = if random.below(8) == 0 { length } else { usual };
    (from, (from + random.below(most + 1)).min(length))
}

fn insert_token(text: &mut Vec<String>, at: usize, piece: &str) {
    text.insert(at.min(text.len()), piece.to_owned());
}

/// Splits text into words, runs of spaces, and single other characters.
fn split_tokens(text: &str) -> Vec<String> {
    let kind = |c: char| match c {
        c if c.is_alphanumeric() || c == '_' => 0,
        ' ' => 1,
        _ => 2,
    };
    let mut out: Vec<String> = Vec::new();
    let mut last = 2;
    for c in text.chars() {
        let here = kind(c);
        match out.last_mut() {
            Some(piece) if here == last && here != 2 => piece.push(c),
            _ => out.push(c.to_string()),
        }
        last = here;
    }
    out
}

/// Mutates a word: removes, doubles or inserts a character, or changes its case.
fn mutate_word(random: &mut Random, word: &str) -> String {
    let mut letters: Vec<char> = word.chars().collect();
    let at = random.below(letters.len());
    match random.below(5) {
        0 if !letters.is_empty() => drop(letters.remove(at)),
        1 if !letters.is_empty() => letters.insert(at, letters[at]),
        2 => return word.to_uppercase(),
        3 => return word.to_lowercase(),
        _ => {
            let odd = random.pick(TRICKY_CHARACTERS).copied().unwrap_or_default();
            letters.splice(at..at, odd.chars());
        }
    }
    letters.into_iter().collect()
}
