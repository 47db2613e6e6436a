//! CSV files whose values are separated by commas, semicolons, tabs or pipes.

use std::borrow::Cow;
use std::cell::Cell;
use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Cursor, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use csv::{ByteRecord, Reader, ReaderBuilder};

use super::table_source::{RawValue, RowCallback, TableSource, unreadable_file};
use super::type_inference::{InferredType, infer_text};
use crate::Error;

/// Number of bytes that are sampled to detect the format.
const SNIFF_BYTES: u64 = 64 << 10;
/// Maximum size of UTF-16 files, which are transcoded in memory.
const MAX_UTF16_BYTES: u64 = 512 << 20;
/// Maximum size of a row. A longer row is missing a closing quote.
const MAX_ROW_BYTES: u64 = 64 << 20;
/// Supported separators.
const SEPARATORS: [u8; 4] = [b',', b';', b'\t', b'|'];

pub(super) struct CsvSource {
    path: PathBuf,
    bytes: CsvBytes,
    separator: u8,
    /// `None` if the first row is not a header.
    names: Option<Vec<String>>,
}

/// Source of the bytes.
enum CsvBytes {
    /// The file, starting at this offset.
    FileFrom(u64),
    /// UTF-16 file transcoded to UTF-8.
    Transcoded(Vec<u8>),
}

/// Opens a file. Detects the separator and whether the first row is a header.
pub(super) fn open(path: &Path, tabs: bool) -> Result<Vec<Box<dyn TableSource>>, Error> {
    let wrong = |error: std::io::Error| unreadable_file(path, &error);
    let mut file = File::open(path).map_err(wrong)?;
    let mut mark = [0; 3];
    let read = file.read(&mut mark).map_err(wrong)?;
    let bytes = match &mark[..read] {
        [0xef, 0xbb, 0xbf] => CsvBytes::FileFrom(3),
        [0xff, 0xfe, ..] => CsvBytes::Transcoded(decode_utf16(path, u16::from_le_bytes)?),
        [0xfe, 0xff, ..] => CsvBytes::Transcoded(decode_utf16(path, u16::from_be_bytes)?),
        _ => CsvBytes::FileFrom(0),
    };
    let mut this = CsvSource { path: path.to_path_buf(), bytes, separator: b',', names: None };
    let mut sample = Vec::new();
    this.open_bytes()?.take(SNIFF_BYTES).read_to_end(&mut sample).map_err(wrong)?;
    this.separator = if tabs { b'\t' } else { detect_separator(&sample) };
    let first = this.first_row()?;
    this.names = is_header(&first).then_some(first);
    Ok(vec![Box::new(this)])
}

impl CsvSource {
    fn open_bytes(&self) -> Result<Box<dyn Read + '_>, Error> {
        Ok(match &self.bytes {
            CsvBytes::Transcoded(bytes) => Box::new(Cursor::new(bytes)),
            CsvBytes::FileFrom(start) => {
                let wrong = |error: std::io::Error| unreadable_file(&self.path, &error);
                let mut file = File::open(&self.path).map_err(wrong)?;
                file.seek(SeekFrom::Start(*start)).map_err(wrong)?;
                Box::new(file)
            }
        })
    }

    fn first_row(&self) -> Result<Vec<String>, Error> {
        let mut record = ByteRecord::new();
        self.csv_reader()?.0.read_byte_record(&mut record).map_err(|error| unreadable_file(&self.path, &error))?;
        Ok(record.iter().map(|cell| decode_text(cell).trim().to_string()).collect())
    }

    /// Returns a reader and its counter of the bytes read since the counter was last reset.
    fn csv_reader(&self) -> Result<(Reader<RowLimitReader<'_>>, Rc<Cell<u64>>), Error> {
        let row_bytes = Rc::new(Cell::new(0));
        let counted = RowLimitReader { inner: self.open_bytes()?, row_bytes: Rc::clone(&row_bytes) };
        Ok((reader_builder(self.separator).buffer_capacity(256 << 10).from_reader(counted), row_bytes))
    }
}

/// Reader that limits the size of a row, so that one row cannot exhaust memory.
struct RowLimitReader<'a> {
    inner: Box<dyn Read + 'a>,
    row_bytes: Rc<Cell<u64>>,
}

impl Read for RowLimitReader<'_> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        if self.row_bytes.get() > MAX_ROW_BYTES {
            return Err(io::Error::other("a row is too long; is a closing quote missing?"));
        }
        let count = self.inner.read(to)?;
        self.row_bytes.set(self.row_bytes.get() + count as u64);
        Ok(count)
    }
}

impl TableSource for CsvSource {
    fn name(&self) -> Option<&str> {
        None
    }

    fn column_names(&self) -> Vec<String> {
        self.names.clone().unwrap_or_default()
    }

    fn for_each_row(&mut self, each: RowCallback<'_>) -> Result<(), Error> {
        let (mut reader, since) = self.csv_reader()?;
        let mut record = ByteRecord::new();
        let mut head = self.names.is_some();
        loop {
            let more = reader.read_byte_record(&mut record).map_err(|error| unreadable_file(&self.path, &error))?;
            if !more {
                return Ok(());
            }
            since.set(0);
            if std::mem::take(&mut head) {
                continue;
            }
            let cells: Vec<Cow<'_, str>> = record.iter().map(decode_text).collect();
            let raw: Vec<RawValue<'_>> = cells
                .iter()
                .map(|cell| if cell.trim().is_empty() { RawValue::Null } else { RawValue::Untyped(cell) })
                .collect();
            each(&raw)?;
        }
    }
}

fn reader_builder(separator: u8) -> ReaderBuilder {
    let mut builder = ReaderBuilder::new();
    builder.has_headers(false).flexible(true).delimiter(separator);
    builder
}

/// Detects the separator of a sample.
///
/// Prefers the largest share of rows as wide as the first one (at least two values), then the
/// widest rows.
fn detect_separator(sample: &[u8]) -> u8 {
    let score = |separator: u8| {
        let reader = reader_builder(separator).from_reader(sample);
        let mut widths: Vec<usize> = reader.into_byte_records().take(50).flatten().map(|r| r.len()).collect();
        // The last row may be truncated.
        if widths.len() > 1 && sample.len() as u64 == SNIFF_BYTES {
            widths.pop();
        }
        let first = widths.first().copied().unwrap_or_default();
        let same = widths.iter().filter(|width| **width == first).count();
        if first < 2 { (0, 0) } else { (same * 100 / widths.len(), first) }
    };
    // Ties go to the earlier, more common separator.
    let mut best = (SEPARATORS[0], (0, 0));
    for separator in SEPARATORS {
        let score = score(separator);
        if score > best.1 {
            best = (separator, score);
        }
    }
    best.0
}

/// Returns whether a row is a header.
///
/// The names of a header are distinct, and none is a number, a date or a boolean. Some may be
/// missing, because programs omit the name of a row number column.
pub(super) fn is_header(cells: &[String]) -> bool {
    let named: Vec<String> = cells.iter().filter(|cell| !cell.is_empty()).map(|cell| cell.to_lowercase()).collect();
    let differ = named.iter().collect::<HashSet<_>>().len() == named.len();
    named.len() * 2 > cells.len() && differ && named.iter().all(|cell| infer_text(cell) == InferredType::Text)
}

/// Decodes UTF-8, and falls back to Windows-1252.
fn decode_text(bytes: &[u8]) -> Cow<'_, str> {
    std::str::from_utf8(bytes)
        .map_or_else(|_| Cow::Owned(bytes.iter().map(|byte| decode_windows_1252(*byte)).collect()), Cow::Borrowed)
}

fn decode_windows_1252(byte: u8) -> char {
    const ABOVE: [char; 32] = [
        '€', '\u{81}', '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', '\u{8d}', 'Ž', '\u{8f}', '\u{90}', '‘',
        '’', '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ', '\u{9d}', 'ž', 'Ÿ',
    ];
    match byte {
        0x80..=0x9f => ABOVE[usize::from(byte - 0x80)],
        _ => char::from(byte),
    }
}

/// Transcodes a UTF-16 file, which Excel writes as "Unicode text", to UTF-8.
fn decode_utf16(path: &Path, unit: fn([u8; 2]) -> u16) -> Result<Vec<u8>, Error> {
    let wrong = |error: std::io::Error| unreadable_file(path, &error);
    let mut bytes = Vec::new();
    File::open(path).map_err(wrong)?.take(MAX_UTF16_BYTES + 1).read_to_end(&mut bytes).map_err(wrong)?;
    if bytes.len() as u64 > MAX_UTF16_BYTES {
        return Err(unreadable_file(path, &"it is too large for a file in UTF-16; save it in UTF-8"));
    }
    let units = bytes[2..].chunks_exact(2).map(|pair| unit([pair[0], pair[1]]));
    let text: String = char::decode_utf16(units).map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER)).collect();
    Ok(text.into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn detects_separators() {
        for (text, separator_expected) in [
            ("a,b\n1,2\n", b','),
            ("a;b\n1,5;2\n2,5;3\n", b';'),
            ("a\tb, c\n1\t2\n", b'\t'),
            ("a|b\n1|2\n", b'|'),
            ("just one\nword, or two\n", b','),
            ("\"x;y;z\",b\n\"1;2;3\",2\n", b','),
        ] {
            assert_eq!(detect_separator(text.as_bytes()), separator_expected, "{text}");
        }
    }

    #[test]
    fn decodes_windows_1252_bytes() {
        assert_eq!(decode_text(b"M\xfcller \x80 5"), "Müller € 5");
        assert_eq!(decode_text("Müller".as_bytes()), "Müller");
    }
}
