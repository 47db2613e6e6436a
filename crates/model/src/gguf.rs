//! What a GGUF file says about itself: the head alone, never the weights.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

use serde::Serialize;

/// What a GGUF file says about itself. A field that it does not name is absent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Gguf {
    /// The version of the format.
    pub version: u32,
    /// How many tensors it holds.
    pub tensors: u64,
    /// The kind of network: `llama`, `qwen2`, …
    pub family: Option<String>,
    /// What its makers call it.
    pub name: Option<String>,
    /// The licence it names.
    pub licence: Option<String>,
    /// The longest text it was made for, in tokens.
    pub context: Option<u64>,
    /// How many layers it has.
    pub layers: Option<u64>,
    /// How many numbers stand for a token.
    pub width: Option<u64>,
    /// How many tokens it knows.
    pub vocabulary: Option<u64>,
}

/// No file has more entries, longer texts or longer lists; numbers beyond these are garbage that must not be believed.
const MOST_ENTRIES: u64 = 100_000;
const LONGEST_TEXT: u64 = 1 << 24;
const LONGEST_LIST: u64 = 1 << 26;

/// The kinds of values.
const TEXT: u32 = 8;
const LIST: u32 = 9;

impl Gguf {
    /// Reads the head of a file. What is wrong with it is said in words.
    pub fn read(path: &Path) -> Result<Self, String> {
        let file = File::open(path).map_err(|error| error.to_string())?;
        Self::head(&mut BufReader::with_capacity(1 << 20, file)).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => "it ends in the middle of its head".to_owned(),
            _ => error.to_string(),
        })
    }

    fn head(from: &mut impl Read) -> io::Result<Self> {
        if &bytes::<4>(from)? != b"GGUF" {
            return Err(garbage("it is no GGUF file"));
        }
        let version = number32(from)?;
        if !(2..=3).contains(&version) {
            return Err(garbage("its version of the format is not known here"));
        }
        let tensors = number64(from)?;
        let entries = number64(from)?;
        if entries > MOST_ENTRIES {
            return Err(garbage("it says that it has more entries than any file"));
        }
        let mut gguf = Gguf { version, tensors, ..Gguf::default() };
        for _ in 0..entries {
            let key = text(from)?;
            let kind = number32(from)?;
            let last = key.rsplit('.').next().unwrap_or_default();
            match (kind, key.as_str()) {
                (TEXT, "general.architecture") => gguf.family = Some(text(from)?),
                (TEXT, "general.name") => gguf.name = Some(text(from)?),
                (TEXT, "general.license") => gguf.licence = Some(text(from)?),
                (LIST, "tokenizer.ggml.tokens") => gguf.vocabulary = Some(list(from)?),
                (LIST, _) => drop(list(from)?),
                (TEXT, _) => skip_text(from)?,
                (4 | 5 | 10 | 11, key) if !key.starts_with("tokenizer.") && key.matches('.').count() == 1 => {
                    let value = if kind < TEXT { number32(from)?.into() } else { number64(from)? };
                    match last {
                        "context_length" => gguf.context = Some(value),
                        "block_count" => gguf.layers = Some(value),
                        "embedding_length" => gguf.width = Some(value),
                        _ => {}
                    }
                }
                _ => skip(from, width(kind)?)?,
            }
        }
        Ok(gguf)
    }
}

fn garbage(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

fn bytes<const N: usize>(from: &mut impl Read) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    from.read_exact(&mut bytes)?;
    Ok(bytes)
}

fn number32(from: &mut impl Read) -> io::Result<u32> {
    Ok(u32::from_le_bytes(bytes(from)?))
}

fn number64(from: &mut impl Read) -> io::Result<u64> {
    Ok(u64::from_le_bytes(bytes(from)?))
}

/// How many bytes a number takes.
fn width(kind: u32) -> io::Result<u64> {
    match kind {
        0 | 1 | 7 => Ok(1),
        2 | 3 => Ok(2),
        4..=6 => Ok(4),
        10..=12 => Ok(8),
        _ => Err(garbage("it holds a value of a kind that is not known")),
    }
}

fn skip(from: &mut impl Read, count: u64) -> io::Result<()> {
    match io::copy(&mut from.take(count), &mut io::sink())? {
        skipped if skipped == count => Ok(()),
        _ => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

fn length(from: &mut impl Read) -> io::Result<u64> {
    let length = number64(from)?;
    if length > LONGEST_TEXT { Err(garbage("it holds a text that is longer than any")) } else { Ok(length) }
}

fn text(from: &mut impl Read) -> io::Result<String> {
    let length = length(from)?;
    let mut text = Vec::new();
    from.take(length).read_to_end(&mut text)?;
    if text.len() as u64 != length {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(String::from_utf8_lossy(&text).into_owned())
}

fn skip_text(from: &mut impl Read) -> io::Result<()> {
    let length = length(from)?;
    skip(from, length)
}

/// Skips a list and says how long it is.
fn list(from: &mut impl Read) -> io::Result<u64> {
    let (kind, length) = (number32(from)?, number64(from)?);
    if length > LONGEST_LIST {
        return Err(garbage("it holds a list that is longer than any"));
    }
    match kind {
        TEXT => (0..length).try_for_each(|_| skip_text(from))?,
        LIST => return Err(garbage("it holds a list of lists")),
        kind => skip(from, length * width(kind)?)?,
    }
    Ok(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word(text: &str) -> Vec<u8> {
        [&(text.len() as u64).to_le_bytes()[..], text.as_bytes()].concat()
    }

    fn entry(key: &str, kind: u32, value: &[u8]) -> Vec<u8> {
        [word(key), kind.to_le_bytes().to_vec(), value.to_vec()].concat()
    }

    fn file() -> Vec<u8> {
        let tokens = [&8u32.to_le_bytes()[..], &2u64.to_le_bytes(), &word("a"), &word("bc")].concat();
        let scores = [&6u32.to_le_bytes()[..], &2u64.to_le_bytes(), &[0; 8]].concat();
        let entries = [
            entry("general.architecture", 8, &word("qwen2")),
            entry("general.name", 8, &word("Small")),
            entry("qwen2.context_length", 4, &32768u32.to_le_bytes()),
            entry("qwen2.block_count", 10, &24u64.to_le_bytes()),
            entry("qwen2.rope.freq_base", 6, &[0; 4]),
            entry("tokenizer.ggml.tokens", 9, &tokens),
            entry("tokenizer.ggml.scores", 9, &scores),
            entry("tokenizer.ggml.add_bos_token", 7, &[1]),
            entry("tokenizer.chat_template", 8, &word("{{ x }}")),
        ];
        let head = [b"GGUF".as_slice(), &3u32.to_le_bytes(), &290u64.to_le_bytes(), &9u64.to_le_bytes()].concat();
        [head, entries.concat()].concat()
    }

    #[test]
    fn the_head_of_a_file_is_read() {
        let gguf = Gguf::head(&mut file().as_slice()).unwrap();
        let expected = Gguf {
            version: 3,
            tensors: 290,
            family: Some("qwen2".to_owned()),
            name: Some("Small".to_owned()),
            context: Some(32768),
            layers: Some(24),
            vocabulary: Some(2),
            ..Gguf::default()
        };
        assert_eq!(gguf, expected);
    }

    #[test]
    fn fuzz_gguf() {
        let inputs = if querymend_testing::is_full() { 20_000 } else { 5_000 };
        let target = querymend_testing::Fuzz::new("gguf", env!("CARGO_MANIFEST_DIR")).seeds([file()]).inputs(inputs);
        target.run(&mut querymend_testing::bytes, &|input| {
            crate::fuzz::within((1 << 16) + 8 * input.len(), || drop(Gguf::head(&mut &*input)));
        });
    }

    #[test]
    fn files_that_are_cut_off_or_full_of_garbage_are_errors_and_nothing_worse() {
        let whole = file();
        for end in 0..whole.len() {
            assert!(Gguf::head(&mut &whole[..end]).is_err(), "{end}");
        }
        for at in 0..whole.len() {
            for value in [0, 0x7f, 0xff] {
                let mut other = whole.clone();
                other[at] = value;
                // Whether this can still be read depends on the place; that it ends is what counts.
                let _ = Gguf::head(&mut other.as_slice());
                other[at..].fill(value);
                let _ = Gguf::head(&mut other.as_slice());
            }
        }
    }
}
