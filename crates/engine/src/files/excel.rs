//! Excel workbooks.
//!
//! The `calamine` crate trusts the sizes that a file declares, so that a small file could make it
//! allocate unbounded memory. The declared sizes are checked first.

use std::borrow::Cow;
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

use calamine::{Data, Range, Reader, SheetType, Xlsx, XlsxError, open_workbook};

use super::csv::is_header;
use super::table_source::{RawValue, RowCallback, TableSource, unreadable_file};
use crate::Error;

/// Maximum size of a workbook. Larger files are not spreadsheets that people work with.
const MAX_FILE_BYTES: u64 = 64 << 20;
/// Maximum unpacked size of a workbook.
const MAX_UNPACKED_BYTES: u64 = 1 << 30;
/// Maximum number of cells of all sheets together. A sheet is held in memory from its first to its
/// last cell, including the empty cells between them.
const MAX_CELLS: u64 = 20_000_000;

struct ExcelSheet {
    name: Option<String>,
    names: Option<Vec<String>>,
    cells: Range<Data>,
}

/// Opens a workbook, with one table for each sheet that is not empty.
pub(super) fn open(path: &Path) -> Result<Vec<Box<dyn TableSource>>, Error> {
    check_archive(path)?;
    let wrong = |error: XlsxError| unreadable_file(path, &error);
    let mut book: Xlsx<BufReader<File>> = open_workbook(path).map_err(wrong)?;
    let sheets: Vec<String> = book
        .sheets_metadata()
        .iter()
        .filter(|sheet| sheet.typ == SheetType::WorkSheet)
        .map(|sheet| sheet.name.clone())
        .collect();
    let mut all = 0;
    for name in &sheets {
        all += count_spanned_cells(&mut book, name).map_err(wrong)?;
        if all > MAX_CELLS {
            return Err(unreadable_file(
                path,
                &format!("up to the sheet `{name}` it spans {all} cells; save it as .csv"),
            ));
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
    let table = |(name, cells): (String, Range<Data>)| -> Box<dyn TableSource> {
        let first = cells.rows().next().unwrap_or_default();
        let text = first.iter().all(|cell| matches!(cell, Data::String(_) | Data::Empty));
        let head: Vec<String> = first.iter().map(|cell| cell.to_string().trim().to_string()).collect();
        let names = (text && is_header(&head)).then_some(head);
        Box::new(ExcelSheet { name: (!alone).then_some(name), names, cells })
    };
    Ok(tables.into_iter().map(table).collect())
}

/// Returns an error if a workbook is too large, packed or unpacked (zip bomb).
///
/// Also rejects workbooks that declare more shared strings than they have room for.
fn check_archive(path: &Path) -> Result<(), Error> {
    let wrong = |why: &dyn std::fmt::Display| unreadable_file(path, why);
    let file = File::open(path).map_err(|error| wrong(&error))?;
    if file.metadata().map_err(|error| wrong(&error))?.len() > MAX_FILE_BYTES {
        return Err(wrong(&"it is too large for a workbook; save its sheets as .csv"));
    }
    let mut archive = zip::ZipArchive::new(BufReader::new(file)).map_err(|error| wrong(&error))?;
    let mut left = MAX_UNPACKED_BYTES;
    for i in 0..archive.len() {
        let mut member = archive.by_index(i).map_err(|error| wrong(&error))?;
        let name = member.name().map(|name| name.to_ascii_lowercase()).map_err(|error| wrong(&error))?;
        let texts = name.ends_with("sharedstrings.xml");
        let mut start = Vec::new();
        member.by_ref().take(4 << 10).read_to_end(&mut start).map_err(|error| wrong(&error))?;
        // Decompressed and discarded, because the size that a member declares need not be true.
        let rest = std::io::copy(&mut member.take(left), &mut std::io::sink()).map_err(|error| wrong(&error))?;
        let size = rest + start.len() as u64;
        left = left.saturating_sub(size);
        if left == 0 {
            return Err(wrong(&"it is too large when decompressed; save its sheets as .csv"));
        }
        // The shortest shared string takes five bytes.
        if texts && attribute_number(&start, b"uniqueCount=").max(attribute_number(&start, b" count=")) > 2 * size {
            return Err(wrong(&"it declares more strings than fit into the file"));
        }
    }
    Ok(())
}

/// Returns the number in quotes after an attribute name, or `u64::MAX` if it is not a number.
fn attribute_number(text: &[u8], word: &[u8]) -> u64 {
    let Some(at) = text.windows(word.len()).position(|part| part == word) else { return 0 };
    let rest = &text[at + word.len()..];
    let digits: Vec<u8> = rest.iter().skip(1).copied().take_while(u8::is_ascii_digit).collect();
    String::from_utf8_lossy(&digits).parse().unwrap_or(u64::MAX)
}

/// Returns the number of cells between the first and the last one. Two cells can span billions.
fn count_spanned_cells(book: &mut Xlsx<BufReader<File>>, name: &str) -> Result<u64, XlsxError> {
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

impl TableSource for ExcelSheet {
    fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    fn column_names(&self) -> Vec<String> {
        self.names.clone().unwrap_or_default()
    }

    fn for_each_row(&mut self, each: RowCallback<'_>) -> Result<(), Error> {
        for row in self.cells.rows().skip(usize::from(self.names.is_some())) {
            let row: Vec<RawValue<'_>> = row.iter().map(to_raw).collect();
            // Empty rows are only layout.
            if row.iter().any(|cell| *cell != RawValue::Null) {
                each(&row)?;
            }
        }
        Ok(())
    }
}

/// Integers below this limit are represented exactly by an `f64` (2^53).
const MAX_EXACT_INTEGER: f64 = 9_007_199_254_740_992.0;

fn to_raw(cell: &Data) -> RawValue<'_> {
    match cell {
        Data::Int(number) => RawValue::Integer(*number),
        // Excel stores all numbers as floats, also where people mean integers.
        Data::Float(number) if number.fract() == 0.0 && number.abs() < MAX_EXACT_INTEGER => {
            RawValue::Integer(*number as i64)
        }
        Data::Float(number) => RawValue::Number(*number),
        Data::Bool(truth) => RawValue::Boolean(*truth),
        Data::DateTime(moment) if moment.is_duration() => RawValue::Number(moment.as_f64()),
        Data::DateTime(moment) => {
            let (year, month, day, hour, minute, second, milli) = moment.to_ymd_hms_milli();
            let date = format!("{year:04}-{month:02}-{day:02}");
            match (hour, minute, second, milli) {
                (0, 0, 0, 0) => RawValue::Date(date),
                (_, _, _, 0) => RawValue::Timestamp(format!("{date} {hour:02}:{minute:02}:{second:02}")),
                _ => RawValue::Timestamp(format!("{date} {hour:02}:{minute:02}:{second:02}.{milli:03}")),
            }
        }
        Data::DateTimeIso(text) => RawValue::Timestamp(text.clone()),
        Data::String(text) | Data::DurationIso(text) if text.trim().is_empty() => RawValue::Null,
        Data::String(text) | Data::DurationIso(text) => RawValue::Text(Cow::Borrowed(text)),
        // A formula error is not a value.
        Data::Error(_) | Data::Empty => RawValue::Null,
    }
}
