//! Values between commas, semicolons, tabs or strokes.

use std::borrow::Cow;
use std::cell::Cell;
use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Cursor, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use csv::{ByteRecord, Reader, ReaderBuilder};

use super::kinds::{Kind, of_text};
use super::sheet::{Each, Raw, Sheet, broken};
use crate::Error;

/// So much of a file is looked at to find out how it is written.
const LOOKED_AT: u64 = 64 << 10;
/// Files in two-byte letters are turned into others in memory, up to this size.
const MOST_WIDE: u64 = 512 << 20;
/// A row that is longer has lost a quotation mark.
const LONGEST_ROW: u64 = 64 << 20;
/// What may stand between values.
const SEPARATORS: [u8; 4] = [b',', b';', b'\t', b'|'];

pub(super) struct Separated {
    path: PathBuf,
    bytes: Bytes,
    separator: u8,
    /// None if the first row is one of values.
    names: Option<Vec<String>>,
}

/// Where the bytes come from.
enum Bytes {
    /// The file, from this place on.
    File(u64),
    /// A file in two-byte letters, in the usual ones.
    Turned(Vec<u8>),
}

/// Opens a file. What separates its values, and whether its first row is one of names, is found out.
pub(super) fn open(path: &Path, tabs: bool) -> Result<Vec<Box<dyn Sheet>>, Error> {
    let wrong = |error: std::io::Error| broken(path, &error);
    let mut file = File::open(path).map_err(wrong)?;
    let mut mark = [0; 3];
    let read = file.read(&mut mark).map_err(wrong)?;
    let bytes = match &mark[..read] {
        [0xef, 0xbb, 0xbf] => Bytes::File(3),
        [0xff, 0xfe, ..] => Bytes::Turned(turned(path, u16::from_le_bytes)?),
        [0xfe, 0xff, ..] => Bytes::Turned(turned(path, u16::from_be_bytes)?),
        _ => Bytes::File(0),
    };
    let mut this = Separated { path: path.to_path_buf(), bytes, separator: b',', names: None };
    let mut sample = Vec::new();
    this.begin()?.take(LOOKED_AT).read_to_end(&mut sample).map_err(wrong)?;
    this.separator = if tabs { b'\t' } else { separator(&sample) };
    let first = this.first()?;
    this.names = is_head(&first).then_some(first);
    Ok(vec![Box::new(this)])
}

impl Separated {
    fn begin(&self) -> Result<Box<dyn Read + '_>, Error> {
        Ok(match &self.bytes {
            Bytes::Turned(bytes) => Box::new(Cursor::new(bytes)),
            Bytes::File(start) => {
                let wrong = |error: std::io::Error| broken(&self.path, &error);
                let mut file = File::open(&self.path).map_err(wrong)?;
                file.seek(SeekFrom::Start(*start)).map_err(wrong)?;
                Box::new(file)
            }
        })
    }

    /// The first row.
    fn first(&self) -> Result<Vec<String>, Error> {
        let mut record = ByteRecord::new();
        self.reader()?.0.read_byte_record(&mut record).map_err(|error| broken(&self.path, &error))?;
        Ok(record.iter().map(|cell| text(cell).trim().to_string()).collect())
    }

    /// A reader, and what it has read since it was last set to nothing.
    fn reader(&self) -> Result<(Reader<Counted<'_>>, Rc<Cell<u64>>), Error> {
        let since = Rc::new(Cell::new(0));
        let counted = Counted { inner: self.begin()?, since: Rc::clone(&since) };
        Ok((builder(self.separator).buffer_capacity(256 << 10).from_reader(counted), since))
    }
}

/// Counts what is read, so that one row does not take all memory.
struct Counted<'a> {
    inner: Box<dyn Read + 'a>,
    since: Rc<Cell<u64>>,
}

impl Read for Counted<'_> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        if self.since.get() > LONGEST_ROW {
            return Err(io::Error::other("a row is too long; does it lack a quotation mark?"));
        }
        let count = self.inner.read(to)?;
        self.since.set(self.since.get() + count as u64);
        Ok(count)
    }
}

impl Sheet for Separated {
    fn name(&self) -> Option<&str> {
        None
    }

    fn columns(&self) -> Vec<String> {
        self.names.clone().unwrap_or_default()
    }

    fn rows(&mut self, each: Each<'_>) -> Result<(), Error> {
        let (mut reader, since) = self.reader()?;
        let mut record = ByteRecord::new();
        let mut head = self.names.is_some();
        loop {
            let more = reader.read_byte_record(&mut record).map_err(|error| broken(&self.path, &error))?;
            if !more {
                return Ok(());
            }
            since.set(0);
            if std::mem::take(&mut head) {
                continue;
            }
            let cells: Vec<Cow<'_, str>> = record.iter().map(text).collect();
            let raw: Vec<Raw<'_>> =
                cells.iter().map(|cell| if cell.trim().is_empty() { Raw::Nothing } else { Raw::Loose(cell) }).collect();
            each(&raw)?;
        }
    }
}

fn builder(separator: u8) -> ReaderBuilder {
    let mut builder = ReaderBuilder::new();
    builder.has_headers(false).flexible(true).delimiter(separator);
    builder
}

/// The separator by which the first rows have the same number of values, more than one, and then the most.
fn separator(sample: &[u8]) -> u8 {
    let score = |separator: u8| {
        let reader = builder(separator).from_reader(sample);
        let mut widths: Vec<usize> = reader.into_byte_records().take(50).flatten().map(|r| r.len()).collect();
        // The last row may have been cut.
        if widths.len() > 1 && sample.len() as u64 == LOOKED_AT {
            widths.pop();
        }
        let first = widths.first().copied().unwrap_or_default();
        let same = widths.iter().filter(|width| **width == first).count();
        if first < 2 { (0, 0) } else { (same * 100 / widths.len(), first) }
    };
    // Of those that are as good the first in the list is the likeliest.
    let mut best = (SEPARATORS[0], (0, 0));
    for separator in SEPARATORS {
        let score = score(separator);
        if score > best.1 {
            best = (separator, score);
        }
    }
    best.0
}

/// Whether a row is one of names: those that are there differ, and none is a number, a date or a truth. Some may be missing, as
/// programs leave out the name of a row's number.
pub(super) fn is_head(cells: &[String]) -> bool {
    let named: Vec<String> = cells.iter().filter(|cell| !cell.is_empty()).map(|cell| cell.to_lowercase()).collect();
    let differ = named.iter().collect::<HashSet<_>>().len() == named.len();
    named.len() * 2 > cells.len() && differ && named.iter().all(|cell| of_text(cell) == Kind::Text)
}

/// What bytes say. What is not in UTF-8 is taken for the letters that Windows wrote before.
fn text(bytes: &[u8]) -> Cow<'_, str> {
    std::str::from_utf8(bytes)
        .map_or_else(|_| Cow::Owned(bytes.iter().map(|byte| letter(*byte)).collect()), Cow::Borrowed)
}

/// A letter of Windows-1252.
fn letter(byte: u8) -> char {
    const ABOVE: [char; 32] = [
        '€', '\u{81}', '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', '\u{8d}', 'Ž', '\u{8f}', '\u{90}', '‘',
        '’', '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ', '\u{9d}', 'ž', 'Ÿ',
    ];
    match byte {
        0x80..=0x9f => ABOVE[usize::from(byte - 0x80)],
        _ => char::from(byte),
    }
}

/// A file in two-byte letters, as Excel writes it under the name of Unicode text.
fn turned(path: &Path, unit: fn([u8; 2]) -> u16) -> Result<Vec<u8>, Error> {
    let wrong = |error: std::io::Error| broken(path, &error);
    let mut bytes = Vec::new();
    File::open(path).map_err(wrong)?.take(MOST_WIDE + 1).read_to_end(&mut bytes).map_err(wrong)?;
    if bytes.len() as u64 > MOST_WIDE {
        return Err(broken(path, &"it is too large for a file in UTF-16; save it in UTF-8"));
    }
    let units = bytes[2..].chunks_exact(2).map(|pair| unit([pair[0], pair[1]]));
    let text: String = char::decode_utf16(units).map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER)).collect();
    Ok(text.into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn separators_are_found_out() {
        for (text, separator_expected) in [
            ("a,b\n1,2\n", b','),
            ("a;b\n1,5;2\n2,5;3\n", b';'),
            ("a\tb, c\n1\t2\n", b'\t'),
            ("a|b\n1|2\n", b'|'),
            ("just one\nword, or two\n", b','),
            ("\"x;y;z\",b\n\"1;2;3\",2\n", b','),
        ] {
            assert_eq!(separator(text.as_bytes()), separator_expected, "{text}");
        }
    }

    #[test]
    fn bytes_of_old_files_are_letters() {
        assert_eq!(text(b"M\xfcller \x80 5"), "Müller € 5");
        assert_eq!(text("Müller".as_bytes()), "Müller");
    }
}
