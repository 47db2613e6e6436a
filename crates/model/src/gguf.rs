//! Reader for the header of GGUF files, without the weights.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

use serde::Serialize;

/// Header of a GGUF file. Fields that it does not specify are `None`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Gguf {
    /// Version of the format.
    pub version: u32,
    /// Number of tensors.
    pub tensors: u64,
    /// Model architecture: `llama`, `qwen2`, …
    pub family: Option<String>,
    /// Name of the model, as published.
    pub name: Option<String>,
    /// Licence of the model.
    pub licence: Option<String>,
    /// Context length that the model was trained for, in tokens.
    pub context: Option<u64>,
    /// Number of layers.
    pub layers: Option<u64>,
    /// Embedding dimension.
    pub width: Option<u64>,
    /// Number of tokens in the vocabulary.
    pub vocabulary: Option<u64>,
}

/// Upper bounds on entries, strings and arrays; larger claims are treated as corruption.
const MAX_ENTRIES: u64 = 100_000;
const MAX_STRING_BYTES: u64 = 1 << 24;
const MAX_ARRAY_LENGTH: u64 = 1 << 26;

/// Type ids of metadata values.
const TYPE_STRING: u32 = 8;
const TYPE_ARRAY: u32 = 9;

impl Gguf {
    /// Reads the header of a file; an error is a message for the user.
    pub fn read(path: &Path) -> Result<Self, String> {
        let file = File::open(path).map_err(|error| error.to_string())?;
        Self::read_header(&mut BufReader::with_capacity(1 << 20, file)).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => "it ends inside its header".to_owned(),
            _ => error.to_string(),
        })
    }

    fn read_header(from: &mut impl Read) -> io::Result<Self> {
        if &read_bytes::<4>(from)? != b"GGUF" {
            return Err(invalid_data("it is not a GGUF file"));
        }
        let version = read_u32(from)?;
        if !(2..=3).contains(&version) {
            return Err(invalid_data("its format version is not supported"));
        }
        let tensors = read_u64(from)?;
        let entries = read_u64(from)?;
        if entries > MAX_ENTRIES {
            return Err(invalid_data("it declares too many entries"));
        }
        let mut gguf = Gguf { version, tensors, ..Gguf::default() };
        for _ in 0..entries {
            let key = read_string(from)?;
            let kind = read_u32(from)?;
            let last = key.rsplit('.').next().unwrap_or_default();
            match (kind, key.as_str()) {
                (TYPE_STRING, "general.architecture") => gguf.family = Some(read_string(from)?),
                (TYPE_STRING, "general.name") => gguf.name = Some(read_string(from)?),
                (TYPE_STRING, "general.license") => gguf.licence = Some(read_string(from)?),
                (TYPE_ARRAY, "tokenizer.ggml.tokens") => gguf.vocabulary = Some(skip_array(from)?),
                (TYPE_ARRAY, _) => drop(skip_array(from)?),
                (TYPE_STRING, _) => skip_string(from)?,
                (4 | 5 | 10 | 11, key) if !key.starts_with("tokenizer.") && key.matches('.').count() == 1 => {
                    let value = if kind < TYPE_STRING { read_u32(from)?.into() } else { read_u64(from)? };
                    match last {
                        "context_length" => gguf.context = Some(value),
                        "block_count" => gguf.layers = Some(value),
                        "embedding_length" => gguf.width = Some(value),
                        _ => {}
                    }
                }
                _ => skip_bytes(from, value_size(kind)?)?,
            }
        }
        Ok(gguf)
    }
}

fn invalid_data(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

fn read_bytes<const N: usize>(from: &mut impl Read) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    from.read_exact(&mut bytes)?;
    Ok(bytes)
}

fn read_u32(from: &mut impl Read) -> io::Result<u32> {
    Ok(u32::from_le_bytes(read_bytes(from)?))
}

fn read_u64(from: &mut impl Read) -> io::Result<u64> {
    Ok(u64::from_le_bytes(read_bytes(from)?))
}

/// Returns the size of a numeric type, in bytes.
fn value_size(kind: u32) -> io::Result<u64> {
    match kind {
        0 | 1 | 7 => Ok(1),
        2 | 3 => Ok(2),
        4..=6 => Ok(4),
        10..=12 => Ok(8),
        _ => Err(invalid_data("it contains a value of an unknown type")),
    }
}

fn skip_bytes(from: &mut impl Read, count: u64) -> io::Result<()> {
    match io::copy(&mut from.take(count), &mut io::sink())? {
        skipped if skipped == count => Ok(()),
        _ => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

fn read_length(from: &mut impl Read) -> io::Result<u64> {
    let length = read_u64(from)?;
    if length > MAX_STRING_BYTES { Err(invalid_data("it contains a string that is too long")) } else { Ok(length) }
}

fn read_string(from: &mut impl Read) -> io::Result<String> {
    let length = read_length(from)?;
    let mut text = Vec::new();
    from.take(length).read_to_end(&mut text)?;
    if text.len() as u64 != length {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(String::from_utf8_lossy(&text).into_owned())
}

fn skip_string(from: &mut impl Read) -> io::Result<()> {
    let length = read_length(from)?;
    skip_bytes(from, length)
}

/// Skips an array and returns its length.
fn skip_array(from: &mut impl Read) -> io::Result<u64> {
    let (kind, length) = (read_u32(from)?, read_u64(from)?);
    if length > MAX_ARRAY_LENGTH {
        return Err(invalid_data("it contains an array that is too long"));
    }
    match kind {
        TYPE_STRING => (0..length).try_for_each(|_| skip_string(from))?,
        TYPE_ARRAY => return Err(invalid_data("it contains nested arrays")),
        kind => skip_bytes(from, length * value_size(kind)?)?,
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
    fn reads_the_header_of_a_file() {
        let gguf = Gguf::read_header(&mut file().as_slice()).unwrap();
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
        let inputs = if querymend_testing::is_full_suite() { 20_000 } else { 5_000 };
        let target =
            querymend_testing::FuzzTarget::new("gguf", env!("CARGO_MANIFEST_DIR")).seeds([file()]).inputs(inputs);
        target.run(&mut querymend_testing::mutate_bytes, &|input| {
            crate::fuzz::assert_peak_memory((1 << 16) + 8 * input.len(), || drop(Gguf::read_header(&mut &*input)));
        });
    }

    #[test]
    fn truncated_or_corrupt_files_are_errors() {
        let whole = file();
        for end in 0..whole.len() {
            assert!(Gguf::read_header(&mut &whole[..end]).is_err(), "{end}");
        }
        for at in 0..whole.len() {
            for value in [0, 0x7f, 0xff] {
                let mut other = whole.clone();
                other[at] = value;
                // Any result is fine, as long as parsing terminates.
                let _ = Gguf::read_header(&mut other.as_slice());
                other[at..].fill(value);
                let _ = Gguf::read_header(&mut other.as_slice());
            }
        }
    }
}
