//! Sheets of Excel.
//!
//! The crate that reads them believes what a file says about itself, so that a small file could ask for more memory than there is.
//! What it says is looked at first.

use std::borrow::Cow;
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

use calamine::{Data, Range, Reader, SheetType, Xlsx, XlsxError, open_workbook};

use super::separated::is_head;
use super::sheet::{Each, Raw, Sheet, broken};
use crate::Error;

/// Larger files are something else than sheets that people work with.
const MOST_BYTES: u64 = 64 << 20;
/// What they may be unpacked.
const MOST_UNPACKED: u64 = 1 << 30;
/// A sheet is held in memory from its first cell to its last, also where there is nothing between them; all sheets together.
const MOST_CELLS: u64 = 20_000_000;

struct Table {
    name: Option<String>,
    names: Option<Vec<String>>,
    cells: Range<Data>,
}

/// Opens a workbook: one table for each sheet that holds anything.
pub(super) fn open(path: &Path) -> Result<Vec<Box<dyn Sheet>>, Error> {
    is_sound(path)?;
    let wrong = |error: XlsxError| broken(path, &error);
    let mut book: Xlsx<BufReader<File>> = open_workbook(path).map_err(wrong)?;
    let sheets: Vec<String> = book
        .sheets_metadata()
        .iter()
        .filter(|sheet| sheet.typ == SheetType::WorkSheet)
        .map(|sheet| sheet.name.clone())
        .collect();
    let mut all = 0;
    for name in &sheets {
        all += spanned(&mut book, name).map_err(wrong)?;
        if all > MOST_CELLS {
            return Err(broken(path, &format!("up to the sheet `{name}` it spans {all} cells; save it as .csv")));
        }
    }
    let mut tables = Vec::new();
    for name in sheets {
        let cells = book.worksheet_range(&name).map_err(wrong)?;
        if !cells.is_empty() {
            tables.push((name, cells));
        }
    }
    let alone = tables.len() == 1;
    let table = |(name, cells): (String, Range<Data>)| -> Box<dyn Sheet> {
        let first = cells.rows().next().unwrap_or_default();
        let text = first.iter().all(|cell| matches!(cell, Data::String(_) | Data::Empty));
        let head: Vec<String> = first.iter().map(|cell| cell.to_string().trim().to_string()).collect();
        let names = (text && is_head(&head)).then_some(head);
        Box::new(Table { name: (!alone).then_some(name), names, cells })
    };
    Ok(tables.into_iter().map(table).collect())
}

/// That a workbook is no larger than it may be, packed and unpacked, and has room for the texts that it says it has.
fn is_sound(path: &Path) -> Result<(), Error> {
    let wrong = |why: &dyn std::fmt::Display| broken(path, why);
    let file = File::open(path).map_err(|error| wrong(&error))?;
    if file.metadata().map_err(|error| wrong(&error))?.len() > MOST_BYTES {
        return Err(wrong(&"it is too large for a workbook; save its sheets as .csv"));
    }
    let mut archive = zip::ZipArchive::new(BufReader::new(file)).map_err(|error| wrong(&error))?;
    let mut left = MOST_UNPACKED;
    for i in 0..archive.len() {
        let mut member = archive.by_index(i).map_err(|error| wrong(&error))?;
        let name = member.name().map(|name| name.to_ascii_lowercase()).map_err(|error| wrong(&error))?;
        let texts = name.ends_with("sharedstrings.xml");
        let mut start = Vec::new();
        member.by_ref().take(4 << 10).read_to_end(&mut start).map_err(|error| wrong(&error))?;
        // Unpacked for nothing, because what a member says about its own size need not be true.
        let rest = std::io::copy(&mut member.take(left), &mut std::io::sink()).map_err(|error| wrong(&error))?;
        let size = rest + start.len() as u64;
        left = left.saturating_sub(size);
        if left == 0 {
            return Err(wrong(&"it is too large when it is unpacked; save its sheets as .csv"));
        }
        // The shortest text takes five bytes.
        if texts && said(&start, b"uniqueCount=").max(said(&start, b" count=")) > 2 * size {
            return Err(wrong(&"it says that it holds more texts than it has room for"));
        }
    }
    Ok(())
}

/// The number that stands behind a word, in quotes; the largest there is if it is no number.
fn said(text: &[u8], word: &[u8]) -> u64 {
    let Some(at) = text.windows(word.len()).position(|part| part == word) else { return 0 };
    let rest = &text[at + word.len()..];
    let digits: Vec<u8> = rest.iter().skip(1).copied().take_while(u8::is_ascii_digit).collect();
    String::from_utf8_lossy(&digits).parse().unwrap_or(u64::MAX)
}

/// How many cells a sheet takes, as told by where its first and its last are. Two are enough to make billions.
fn spanned(book: &mut Xlsx<BufReader<File>>, name: &str) -> Result<u64, XlsxError> {
    let mut reader = book.worksheet_cells_reader(name)?;
    let (mut top, mut left, mut bottom, mut right) = (u32::MAX, u32::MAX, 0, 0);
    while let Some(cell) = reader.next_cell()? {
        let (row, column) = cell.get_position();
        (top, left, bottom, right) = (top.min(row), left.min(column), bottom.max(row), right.max(column));
    }
    if top > bottom {
        return Ok(0);
    }
    Ok((u64::from(bottom - top) + 1).saturating_mul(u64::from(right - left) + 1))
}

impl Sheet for Table {
    fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    fn columns(&self) -> Vec<String> {
        self.names.clone().unwrap_or_default()
    }

    fn rows(&mut self, each: Each<'_>) -> Result<(), Error> {
        for row in self.cells.rows().skip(usize::from(self.names.is_some())) {
            let row: Vec<Raw<'_>> = row.iter().map(raw).collect();
            // Sheets have empty rows to be looked at, not to be counted.
            if row.iter().any(|cell| *cell != Raw::Nothing) {
                each(&row)?;
            }
        }
        Ok(())
    }
}

/// The largest number below which a float holds every whole number.
const WHOLE: f64 = 9_007_199_254_740_992.0;

fn raw(cell: &Data) -> Raw<'_> {
    match cell {
        Data::Int(number) => Raw::Integer(*number),
        // Excel knows only floats, and people mean whole numbers.
        Data::Float(number) if number.fract() == 0.0 && number.abs() < WHOLE => Raw::Integer(*number as i64),
        Data::Float(number) => Raw::Number(*number),
        Data::Bool(truth) => Raw::Boolean(*truth),
        Data::DateTime(moment) if moment.is_duration() => Raw::Number(moment.as_f64()),
        Data::DateTime(moment) => {
            let (year, month, day, hour, minute, second, milli) = moment.to_ymd_hms_milli();
            let date = format!("{year:04}-{month:02}-{day:02}");
            match (hour, minute, second, milli) {
                (0, 0, 0, 0) => Raw::Date(date),
                (_, _, _, 0) => Raw::Timestamp(format!("{date} {hour:02}:{minute:02}:{second:02}")),
                _ => Raw::Timestamp(format!("{date} {hour:02}:{minute:02}:{second:02}.{milli:03}")),
            }
        }
        Data::DateTimeIso(text) => Raw::Timestamp(text.clone()),
        Data::String(text) | Data::DurationIso(text) if text.trim().is_empty() => Raw::Nothing,
        Data::String(text) | Data::DurationIso(text) => Raw::Text(Cow::Borrowed(text)),
        // What a formula could not make is no value.
        Data::Error(_) | Data::Empty => Raw::Nothing,
    }
}
