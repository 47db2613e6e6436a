//! Parquet.
//!
//! The crate that reads it goes as deep as a file's columns are nested, so that a small file could end the program. How deep they
//! are is looked at first.

use std::borrow::Cow;
use std::fs::File;
use std::io::{Cursor, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use parquet::basic::{LogicalType, TimeUnit};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::{Field, Row};
use thrift::protocol::{TCompactInputProtocol, TInputProtocol, TType};

use super::sheet::{Each, Raw, Sheet, broken, guarded};
use crate::Error;

struct Columns {
    path: PathBuf,
    reader: SerializedFileReader<File>,
}

/// Opens a file.
pub(super) fn open(path: &Path) -> Result<Vec<Box<dyn Sheet>>, Error> {
    let mut file = File::open(path).map_err(|error| broken(path, &error))?;
    is_flat_enough(&mut file).map_err(|why| broken(path, &why))?;
    let reader = guarded(path, || SerializedFileReader::new(file))?.map_err(|error| broken(path, &error))?;
    Ok(vec![Box::new(Columns { path: path.to_path_buf(), reader })])
}

/// Columns are not nested deeper than this.
const DEEPEST: usize = 64;
/// What a file says about itself is not longer than this.
const LONGEST_FOOTER: u64 = 64 << 20;

/// Reads how columns are nested, which a file says at its end: one after the other, each with the number of those within it.
fn is_flat_enough(file: &mut File) -> Result<(), String> {
    let told = |error: std::io::Error| error.to_string();
    let mut end = [0; 8];
    file.seek(SeekFrom::End(-8)).and_then(|_| file.read_exact(&mut end)).map_err(told)?;
    let length = u64::from(u32::from_le_bytes([end[0], end[1], end[2], end[3]]));
    if &end[4..] != b"PAR1" || length > LONGEST_FOOTER {
        return Err("it does not end like a Parquet file".into());
    }
    // A file that is shorter than that has no such place, and no memory is set aside for it.
    file.seek(SeekFrom::End(-8 - length as i64)).map_err(told)?;
    let mut footer = vec![0; length as usize];
    file.read_exact(&mut footer).and_then(|()| file.rewind()).map_err(told)?;
    match nesting(&footer) {
        Ok(deepest) if deepest <= DEEPEST => Ok(()),
        Ok(_) => Err("its columns are nested too deeply".into()),
        Err(error) => Err(format!("what it says about itself cannot be read: {error}")),
    }
}

/// How deep columns are nested, or one more than they may be.
fn nesting(footer: &[u8]) -> thrift::Result<usize> {
    const SCHEMA: i16 = 2;
    const CHILDREN: i16 = 5;
    let mut said = TCompactInputProtocol::new(Cursor::new(footer));
    said.read_struct_begin()?;
    loop {
        let field = said.read_field_begin()?;
        match (field.field_type, field.id) {
            (TType::Stop, _) => return Ok(0),
            (TType::List, Some(SCHEMA)) => {
                let mut deepest = 0;
                // How many are still to come at each level.
                let mut levels: Vec<i32> = Vec::new();
                for _ in 0..said.read_list_begin()?.size {
                    while levels.pop_if(|left| *left <= 0).is_some() {}
                    if let Some(left) = levels.last_mut() {
                        *left -= 1;
                    }
                    said.read_struct_begin()?;
                    loop {
                        let field = said.read_field_begin()?;
                        match (field.field_type, field.id) {
                            (TType::Stop, _) => break,
                            (TType::I32, Some(CHILDREN)) => levels.push(said.read_i32()?),
                            (kind, _) => said.skip(kind)?,
                        }
                    }
                    said.read_struct_end()?;
                    deepest = deepest.max(levels.len());
                    if deepest > DEEPEST {
                        break;
                    }
                }
                return Ok(deepest);
            }
            (kind, _) => said.skip(kind)?,
        }
    }
}

impl Sheet for Columns {
    fn name(&self) -> Option<&str> {
        None
    }

    fn columns(&self) -> Vec<String> {
        let fields = self.reader.metadata().file_metadata().schema().get_fields();
        fields.iter().map(|field| field.name().to_string()).collect()
    }

    fn rows(&mut self, each: Each<'_>) -> Result<(), Error> {
        let fields = self.reader.metadata().file_metadata().schema().get_fields();
        let nanos: Vec<bool> = fields.iter().map(|field| is_in_nanoseconds(field)).collect();
        let rows = guarded(&self.path, || self.reader.get_row_iter(None))?;
        let mut rows = rows.map_err(|error| broken(&self.path, &error))?;
        while let Some(row) = guarded(&self.path, || rows.next())? {
            let row: Row = row.map_err(|error| broken(&self.path, &error))?;
            let cells: Vec<Raw<'_>> = row
                .get_column_iter()
                .zip(&nanos)
                .map(|((_, field), nanos)| match field {
                    Field::Long(number) if *nanos => Raw::Timestamp(moment(i128::from(*number))),
                    field => raw(field),
                })
                .collect();
            each(&cells)?;
        }
        Ok(())
    }
}

/// Whether a column holds moments that the crate gives as mere numbers.
fn is_in_nanoseconds(field: &parquet::schema::types::Type) -> bool {
    let kind = field.get_basic_info().logical_type_ref();
    matches!(kind, Some(LogicalType::Timestamp(moment)) if moment.unit == TimeUnit::NANOS)
}

fn raw(field: &Field) -> Raw<'_> {
    match field {
        Field::Null => Raw::Nothing,
        Field::Bool(truth) => Raw::Boolean(*truth),
        Field::Byte(number) => Raw::Integer((*number).into()),
        Field::Short(number) => Raw::Integer((*number).into()),
        Field::Int(number) => Raw::Integer((*number).into()),
        Field::Long(number) => Raw::Integer(*number),
        Field::UByte(number) => Raw::Integer((*number).into()),
        Field::UShort(number) => Raw::Integer((*number).into()),
        Field::UInt(number) => Raw::Integer((*number).into()),
        Field::ULong(number) => {
            i64::try_from(*number).map_or_else(|_| Raw::Text(Cow::Owned(number.to_string())), Raw::Integer)
        }
        Field::Float16(number) => Raw::Number(number.to_f64()),
        // By its digits: as a double, 0.1 would become 0.10000000149.
        Field::Float(number) => Raw::Number(number.to_string().parse().unwrap_or_else(|_| f64::from(*number))),
        Field::Double(number) => Raw::Number(*number),
        Field::Decimal(_) => decimal(field.to_string()),
        Field::Str(text) => Raw::Text(Cow::Borrowed(text)),
        Field::Bytes(bytes) => Raw::Bytes(bytes.data()),
        Field::Date(_) => Raw::Date(date(field)),
        Field::TimestampMillis(milli) => Raw::Timestamp(moment(i128::from(*milli) * 1_000_000)),
        Field::TimestampMicros(micro) => Raw::Timestamp(moment(i128::from(*micro) * 1_000)),
        Field::Group(_) | Field::ListInternal(_) | Field::MapInternal(_) => {
            Raw::Text(Cow::Owned(field.to_json_value().to_string()))
        }
        other => Raw::Text(Cow::Owned(other.to_string())),
    }
}

/// A decimal number as a float where that holds its digits, else as text.
fn decimal(text: String) -> Raw<'static> {
    let digits = text.bytes().filter(u8::is_ascii_digit).count();
    match text.parse::<f64>() {
        Ok(number) if digits <= 15 => Raw::Number(number),
        _ => Raw::Text(Cow::Owned(text)),
    }
}

fn date(field: &Field) -> String {
    let Field::Date(days) = field else { return String::new() };
    let (year, month, day) = civil(i64::from(*days));
    format!("{year:04}-{month:02}-{day:02}")
}

/// Nanoseconds since 1970, in UTC.
fn moment(nanos: i128) -> String {
    const DAY: i128 = 86_400_000_000_000;
    let (year, month, day) = civil(i64::try_from(nanos.div_euclid(DAY)).unwrap_or_default());
    let time = nanos.rem_euclid(DAY);
    let (seconds, fraction) = (time / 1_000_000_000, time % 1_000_000_000);
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    let text = format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}");
    match fraction {
        0 => text,
        _ => format!("{text}.{}", format!("{fraction:09}").trim_end_matches('0')),
    }
}

/// The date of a day, counted from 1970. Years begin in March here, so that the leap day is the last.
fn civil(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let of_era = days.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_and_moments_are_written_as_databases_do() {
        assert_eq!(date(&Field::Date(0)), "1970-01-01");
        assert_eq!(date(&Field::Date(19_782)), "2024-02-29");
        assert_eq!(date(&Field::Date(-1)), "1969-12-31");
        assert_eq!(moment(1_709_212_455_678_000_000), "2024-02-29 13:14:15.678");
        assert_eq!(moment(-1_000_000_000), "1969-12-31 23:59:59");
    }
}
