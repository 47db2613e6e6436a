//! Sheets of Excel.

use std::borrow::Cow;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use calamine::{Data, Range, Reader, Xls, Xlsx, open_workbook};

use super::separated::is_head;
use super::sheet::{Each, Raw, Sheet, broken};
use crate::Error;

/// Larger files are something else than sheets that people work with.
const MOST_BYTES: u64 = 256 << 20;
/// A sheet is held in memory from its first cell to its last, also where there is nothing between them.
const MOST_CELLS: u64 = 50_000_000;

struct Table {
    name: Option<String>,
    names: Option<Vec<String>>,
    cells: Range<Data>,
}

/// Opens a workbook: one table for each sheet that holds anything.
pub(super) fn open(path: &Path) -> Result<Vec<Box<dyn Sheet>>, Error> {
    let size = std::fs::metadata(path).map_err(|error| broken(path, &error))?.len();
    if size > MOST_BYTES {
        return Err(broken(path, &"it is too large for a workbook; save its sheets as .csv"));
    }
    let ending = path.extension().map(|ending| ending.to_ascii_lowercase());
    let sheets = if ending.is_some_and(|ending| ending == "xls") { old(path)? } else { new(path)? };
    let sheets: Vec<(String, Range<Data>)> = sheets.into_iter().filter(|(_, cells)| !cells.is_empty()).collect();
    let alone = sheets.len() == 1;
    let table = |(name, cells): (String, Range<Data>)| -> Box<dyn Sheet> {
        let first: Vec<String> = cells.rows().next().unwrap_or_default().iter().map(head).collect();
        let text = cells.rows().next().unwrap_or_default().iter().all(|cell| matches!(cell, Data::String(_)));
        let names = (text && is_head(&first)).then_some(first);
        Box::new(Table { name: (!alone).then_some(name), names, cells })
    };
    Ok(sheets.into_iter().map(table).collect())
}

fn old(path: &Path) -> Result<Vec<(String, Range<Data>)>, Error> {
    let mut book: Xls<BufReader<File>> = open_workbook(path).map_err(|error| broken(path, &error))?;
    Ok(book.worksheets())
}

fn new(path: &Path) -> Result<Vec<(String, Range<Data>)>, Error> {
    let wrong = |error: calamine::XlsxError| broken(path, &error);
    let mut book: Xlsx<BufReader<File>> = open_workbook(path).map_err(wrong)?;
    let mut sheets = Vec::new();
    for name in book.sheet_names() {
        // A sheet of charts alone has no cells.
        let Ok(cells) = bounded(&mut book, &name, path) else { continue };
        cells?;
        sheets.push((name.clone(), book.worksheet_range(&name).map_err(wrong)?));
    }
    Ok(sheets)
}

/// That a sheet is not larger than it may be, as told by where its cells are. Two cells are enough to make one of billions.
fn bounded(
    book: &mut Xlsx<BufReader<File>>,
    name: &str,
    path: &Path,
) -> Result<Result<(), Error>, calamine::XlsxError> {
    let mut reader = book.worksheet_cells_reader(name)?;
    let (mut top, mut left, mut bottom, mut right) = (u32::MAX, u32::MAX, 0, 0);
    while let Some(cell) = reader.next_cell()? {
        let (row, column) = cell.get_position();
        (top, left, bottom, right) = (top.min(row), left.min(column), bottom.max(row), right.max(column));
    }
    if top > bottom {
        return Ok(Ok(()));
    }
    let cells = (u64::from(bottom - top) + 1) * (u64::from(right - left) + 1);
    Ok(if cells <= MOST_CELLS {
        Ok(())
    } else {
        Err(broken(path, &format!("the sheet `{name}` spans {cells} cells; save it as .csv")))
    })
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

fn head(cell: &Data) -> String {
    cell.to_string().trim().to_string()
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
