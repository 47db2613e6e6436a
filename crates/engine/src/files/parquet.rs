//! Parquet files.
//!
//! The `parquet` crate recurses as deeply as columns are nested, so that a small file could
//! overflow the stack. The nesting depth is checked first.

use std::borrow::Cow;
use std::fs::File;
use std::io::{Cursor, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use parquet::basic::{LogicalType, TimeUnit};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::{Field, Row};
use thrift::protocol::{TCompactInputProtocol, TInputProtocol, TType};

use super::table_source::{RawValue, RowCallback, TableSource, catch_panic, unreadable_file};
use crate::Error;

struct ParquetSource {
    path: PathBuf,
    reader: SerializedFileReader<File>,
}

pub(super) fn open(path: &Path) -> Result<Vec<Box<dyn TableSource>>, Error> {
    let mut file = File::open(path).map_err(|error| unreadable_file(path, &error))?;
    check_nesting(&mut file).map_err(|why| unreadable_file(path, &why))?;
    let reader =
        catch_panic(path, || SerializedFileReader::new(file))?.map_err(|error| unreadable_file(path, &error))?;
    Ok(vec![Box::new(ParquetSource { path: path.to_path_buf(), reader })])
}

/// Maximum nesting depth of columns.
const MAX_NESTING: usize = 64;
/// Maximum size of the file metadata.
const MAX_FOOTER_BYTES: u64 = 64 << 20;

/// Returns an error if columns are nested too deeply.
///
/// The schema in the footer is a depth-first list of elements, each with its number of children.
fn check_nesting(file: &mut File) -> Result<(), String> {
    let to_message = |error: std::io::Error| error.to_string();
    let mut end = [0; 8];
    file.seek(SeekFrom::End(-8)).and_then(|_| file.read_exact(&mut end)).map_err(to_message)?;
    let length = u64::from(u32::from_le_bytes([end[0], end[1], end[2], end[3]]));
    if &end[4..] != b"PAR1" || length > MAX_FOOTER_BYTES {
        return Err("it has no Parquet footer".into());
    }
    // Seeking fails if the file is shorter than the declared length, so that no memory is allocated
    // for it.
    file.seek(SeekFrom::End(-8 - length as i64)).map_err(to_message)?;
    let mut footer = vec![0; length as usize];
    file.read_exact(&mut footer).and_then(|()| file.rewind()).map_err(to_message)?;
    match nesting_depth(&footer) {
        Ok(deepest) if deepest <= MAX_NESTING => Ok(()),
        Ok(_) => Err("its columns are nested too deeply".into()),
        Err(error) => Err(format!("its metadata cannot be read: {error}")),
    }
}

/// Returns the nesting depth of the columns, capped at `MAX_NESTING + 1`.
fn nesting_depth(footer: &[u8]) -> thrift::Result<usize> {
    const SCHEMA: i16 = 2;
    const CHILDREN: i16 = 5;
    let mut protocol = TCompactInputProtocol::new(Cursor::new(footer));
    protocol.read_struct_begin()?;
    loop {
        let field = protocol.read_field_begin()?;
        match (field.field_type, field.id) {
            (TType::Stop, _) => return Ok(0),
            (TType::List, Some(SCHEMA)) => {
                let mut deepest = 0;
                // Number of remaining children at each level.
                let mut levels: Vec<i32> = Vec::new();
                for _ in 0..protocol.read_list_begin()?.size {
                    while levels.pop_if(|left| *left <= 0).is_some() {}
                    if let Some(left) = levels.last_mut() {
                        *left -= 1;
                    }
                    protocol.read_struct_begin()?;
                    loop {
                        let field = protocol.read_field_begin()?;
                        match (field.field_type, field.id) {
                            (TType::Stop, _) => break,
                            (TType::I32, Some(CHILDREN)) => levels.push(protocol.read_i32()?),
                            (kind, _) => protocol.skip(kind)?,
                        }
                    }
                    protocol.read_struct_end()?;
                    deepest = deepest.max(levels.len());
                    if deepest > MAX_NESTING {
                        break;
                    }
                }
                return Ok(deepest);
            }
            (kind, _) => protocol.skip(kind)?,
        }
    }
}

impl TableSource for ParquetSource {
    fn name(&self) -> Option<&str> {
        None
    }

    fn column_names(&self) -> Vec<String> {
        let fields = self.reader.metadata().file_metadata().schema().get_fields();
        fields.iter().map(|field| field.name().to_string()).collect()
    }

    fn for_each_row(&mut self, each: RowCallback<'_>) -> Result<(), Error> {
        let fields = self.reader.metadata().file_metadata().schema().get_fields();
        let nanos: Vec<bool> = fields.iter().map(|field| is_in_nanoseconds(field)).collect();
        let rows = catch_panic(&self.path, || self.reader.get_row_iter(None))?;
        let mut rows = rows.map_err(|error| unreadable_file(&self.path, &error))?;
        while let Some(row) = catch_panic(&self.path, || rows.next())? {
            let row: Row = row.map_err(|error| unreadable_file(&self.path, &error))?;
            let cells: Vec<RawValue<'_>> = row
                .get_column_iter()
                .zip(&nanos)
                .map(|((_, field), nanos)| match field {
                    Field::Long(number) if *nanos => RawValue::Timestamp(format_timestamp(i128::from(*number))),
                    field => to_raw(field),
                })
                .collect();
            each(&cells)?;
        }
        Ok(())
    }
}

/// Returns whether a column holds nanosecond timestamps, which the crate returns as plain integers.
fn is_in_nanoseconds(field: &parquet::schema::types::Type) -> bool {
    let kind = field.get_basic_info().logical_type_ref();
    matches!(kind, Some(LogicalType::Timestamp(moment)) if moment.unit == TimeUnit::NANOS)
}

fn to_raw(field: &Field) -> RawValue<'_> {
    match field {
        Field::Null => RawValue::Null,
        Field::Bool(truth) => RawValue::Boolean(*truth),
        Field::Byte(number) => RawValue::Integer((*number).into()),
        Field::Short(number) => RawValue::Integer((*number).into()),
        Field::Int(number) => RawValue::Integer((*number).into()),
        Field::Long(number) => RawValue::Integer(*number),
        Field::UByte(number) => RawValue::Integer((*number).into()),
        Field::UShort(number) => RawValue::Integer((*number).into()),
        Field::UInt(number) => RawValue::Integer((*number).into()),
        Field::ULong(number) => {
            i64::try_from(*number).map_or_else(|_| RawValue::Text(Cow::Owned(number.to_string())), RawValue::Integer)
        }
        Field::Float16(number) => RawValue::Number(number.to_f64()),
        // Through its decimal digits: widened to a double, 0.1 would become 0.10000000149.
        Field::Float(number) => RawValue::Number(number.to_string().parse().unwrap_or_else(|_| f64::from(*number))),
        Field::Double(number) => RawValue::Number(*number),
        Field::Decimal(_) => decimal_to_raw(field.to_string()),
        Field::Str(text) => RawValue::Text(Cow::Borrowed(text)),
        Field::Bytes(bytes) => RawValue::Bytes(bytes.data()),
        Field::Date(_) => RawValue::Date(format_date(field)),
        Field::TimestampMillis(milli) => RawValue::Timestamp(format_timestamp(i128::from(*milli) * 1_000_000)),
        Field::TimestampMicros(micro) => RawValue::Timestamp(format_timestamp(i128::from(*micro) * 1_000)),
        Field::Group(_) | Field::ListInternal(_) | Field::MapInternal(_) => {
            RawValue::Text(Cow::Owned(field.to_json_value().to_string()))
        }
        other => RawValue::Text(Cow::Owned(other.to_string())),
    }
}

/// Returns a decimal as a float if that keeps all its digits, and otherwise as text.
fn decimal_to_raw(text: String) -> RawValue<'static> {
    let digits = text.bytes().filter(u8::is_ascii_digit).count();
    match text.parse::<f64>() {
        Ok(number) if digits <= 15 => RawValue::Number(number),
        _ => RawValue::Text(Cow::Owned(text)),
    }
}

fn format_date(field: &Field) -> String {
    let Field::Date(days) = field else { return String::new() };
    let (year, month, day) = civil_from_days(i64::from(*days));
    format!("{year:04}-{month:02}-{day:02}")
}

/// Formats nanoseconds since the Unix epoch as a UTC timestamp.
fn format_timestamp(nanos: i128) -> String {
    const DAY: i128 = 86_400_000_000_000;
    let (year, month, day) = civil_from_days(i64::try_from(nanos.div_euclid(DAY)).unwrap_or_default());
    let time = nanos.rem_euclid(DAY);
    let (seconds, fraction) = (time / 1_000_000_000, time % 1_000_000_000);
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    let text = format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}");
    match fraction {
        0 => text,
        _ => format!("{text}.{}", format!("{fraction:09}").trim_end_matches('0')),
    }
}

/// Returns the year, month and day of a day since the Unix epoch. Internally, years begin in March,
/// so that the leap day comes last.
fn civil_from_days(days: i64) -> (i64, i64, i64) {
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
    fn formats_dates_and_timestamps_as_databases_do() {
        assert_eq!(format_date(&Field::Date(0)), "1970-01-01");
        assert_eq!(format_date(&Field::Date(19_782)), "2024-02-29");
        assert_eq!(format_date(&Field::Date(-1)), "1969-12-31");
        assert_eq!(format_timestamp(1_709_212_455_678_000_000), "2024-02-29 13:14:15.678");
        assert_eq!(format_timestamp(-1_000_000_000), "1969-12-31 23:59:59");
    }
}
