//! Decodes PostgreSQL's binary format for common types. The output must be the same as the server's
//! text format.

use std::error::Error;
use std::fmt::Write;

use querymend_net::to_hex;
use querymend_sql::Cell;
use tokio_postgres::types::{FromSql, Kind, Type};

use super::text::compact_json;

/// Undecoded value.
pub(super) struct RawBytes<'a>(pub &'a [u8]);

impl<'a> FromSql<'a> for RawBytes<'a> {
    fn from_sql(_: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        Ok(RawBytes(raw))
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}

/// Decoder of a type.
#[derive(Clone, Copy)]
pub(super) struct BinaryDecoder {
    /// Returns `None` if the bytes are invalid for the type.
    pub decode: fn(&[u8]) -> Option<Cell>,
    /// Factor by which a value grows when it is decoded into a cell.
    pub growth: usize,
}

/// Returns the decoder of a type, or `None` for types that are fetched in text format.
pub(super) fn binary_decoder(kind: &Type) -> Option<BinaryDecoder> {
    let read: fn(&[u8]) -> Option<Cell> = match *kind {
        Type::BOOL => |bytes| Some(Cell::Boolean(*bytes.first()? != 0)),
        Type::INT2 => |bytes| Some(Cell::Integer(i16::from_be_bytes(bytes.try_into().ok()?).into())),
        Type::INT4 => |bytes| Some(Cell::Integer(i32::from_be_bytes(bytes.try_into().ok()?).into())),
        Type::INT8 => |bytes| Some(Cell::Integer(i64::from_be_bytes(bytes.try_into().ok()?))),
        Type::OID => |bytes| Some(Cell::Integer(u32::from_be_bytes(bytes.try_into().ok()?).into())),
        // Shortest digits that identify the float, as the server writes it, and not those of the
        // nearest double.
        Type::FLOAT4 => {
            |bytes| Some(Cell::Number(f32::from_be_bytes(bytes.try_into().ok()?).to_string().parse().ok()?))
        }
        Type::FLOAT8 => |bytes| Some(Cell::Number(f64::from_be_bytes(bytes.try_into().ok()?))),
        Type::NUMERIC => |bytes| Some(Cell::Decimal(decode_numeric(bytes)?)),
        Type::TEXT | Type::VARCHAR | Type::BPCHAR | Type::NAME | Type::UNKNOWN | Type::XML => decode_text,
        Type::JSON => |bytes| Some(Cell::Text(compact_json(&String::from_utf8_lossy(bytes)))),
        // The first byte is a version number.
        Type::JSONB => |bytes| Some(Cell::Text(compact_json(&String::from_utf8_lossy(bytes.get(1..)?)))),
        Type::BYTEA => return Some(BinaryDecoder { decode: |bytes| Some(Cell::Binary(to_hex(bytes))), growth: 2 }),
        Type::UUID => |bytes| Some(Cell::Text(decode_uuid(bytes)?)),
        Type::DATE => |bytes| Some(Cell::Text(decode_date(bytes)?)),
        Type::TIME => |bytes| Some(Cell::Text(decode_time(bytes)?)),
        Type::TIMESTAMP => |bytes| Some(Cell::Text(decode_timestamp(bytes, "")?)),
        Type::TIMESTAMPTZ => |bytes| Some(Cell::Text(decode_timestamp(bytes, "+00:00")?)),
        _ if matches!(kind.kind(), Kind::Enum(_)) => decode_text,
        _ => return None,
    };
    Some(BinaryDecoder { decode: read, growth: 1 })
}

fn decode_text(bytes: &[u8]) -> Option<Cell> {
    Some(Cell::Text(String::from_utf8_lossy(bytes).into_owned()))
}

fn decode_uuid(bytes: &[u8]) -> Option<String> {
    let hex = to_hex(bytes);
    Some([hex.get(..8)?, hex.get(8..12)?, hex.get(12..16)?, hex.get(16..20)?, hex.get(20..32)?].join("-"))
}

/// Reads the `i`-th big-endian 16-bit integer.
fn read_i16(bytes: &[u8], i: usize) -> Option<i16> {
    Some(i16::from_be_bytes(bytes.get(i * 2..i * 2 + 2)?.try_into().ok()?))
}

/// Decodes a `numeric`.
///
/// It consists of the number of base-10000 digits, the weight of the first, the sign, the display
/// scale, and then the digits.
fn decode_numeric(bytes: &[u8]) -> Option<String> {
    let (groups, first, sign, scale) =
        (read_i16(bytes, 0)?, read_i16(bytes, 1)?, read_i16(bytes, 2)?, read_i16(bytes, 3)?);
    let mut text = match sign.cast_unsigned() {
        0x0000 => String::new(),
        0x4000 => "-".to_string(),
        0xd000 => return Some("Infinity".into()),
        0xf000 => return Some("-Infinity".into()),
        _ => return Some("NaN".into()),
    };
    let group = |place: i32| -> i16 {
        let i = i32::from(first) - place;
        if i < 0 || i >= i32::from(groups) {
            0
        } else {
            usize::try_from(i).ok().and_then(|i| read_i16(bytes, i + 4)).unwrap_or(0)
        }
    };
    let highest = i32::from(first).max(0);
    // Writing to a string cannot fail.
    let _ = write!(text, "{}", group(highest));
    for place in (0..highest).rev() {
        let _ = write!(text, "{:04}", group(place));
    }
    let scale = usize::try_from(scale).ok()?;
    if scale > 0 {
        text.push('.');
        let end = text.len() + scale;
        let mut place = -1;
        while text.len() < end {
            let _ = write!(text, "{:04}", group(place));
            place -= 1;
        }
        text.truncate(end);
    }
    Some(text)
}

const MICROS_PER_DAY: i64 = 86_400_000_000;

fn decode_date(bytes: &[u8]) -> Option<String> {
    Some(match i32::from_be_bytes(bytes.try_into().ok()?) {
        i32::MAX => "infinity".into(),
        i32::MIN => "-infinity".into(),
        days => {
            let mut buffer = DateTimeBuffer::new();
            let before_christ = buffer.push_date(days.into());
            buffer.push_str(before_christ);
            buffer.finish()
        }
    })
}

fn decode_time(bytes: &[u8]) -> Option<String> {
    let mut buffer = DateTimeBuffer::new();
    buffer.push_time(i64::from_be_bytes(bytes.try_into().ok()?));
    Some(buffer.finish())
}

fn decode_timestamp(bytes: &[u8], zone: &str) -> Option<String> {
    Some(match i64::from_be_bytes(bytes.try_into().ok()?) {
        i64::MAX => "infinity".into(),
        i64::MIN => "-infinity".into(),
        microseconds => {
            let mut buffer = DateTimeBuffer::new();
            let before_christ = buffer.push_date(microseconds.div_euclid(MICROS_PER_DAY));
            buffer.push_str(" ");
            buffer.push_time(microseconds.rem_euclid(MICROS_PER_DAY));
            buffer.push_str(zone);
            buffer.push_str(before_christ);
            buffer.finish()
        }
    })
}

/// Buffer for formatting dates and times. `format!` would take half of the time of a result full of
/// dates.
struct DateTimeBuffer {
    bytes: [u8; 64],
    length: usize,
}

impl DateTimeBuffer {
    fn new() -> Self {
        Self { bytes: [b'0'; 64], length: 0 }
    }

    fn push_str(&mut self, text: &str) {
        if let Some(place) = self.bytes.get_mut(self.length..self.length + text.len()) {
            place.copy_from_slice(text.as_bytes());
            self.length += text.len();
        }
    }

    /// Appends a number as two digits.
    fn push_two_digits(&mut self, number: i64) {
        if let Some(place) = self.bytes.get_mut(self.length..self.length + 2) {
            place.copy_from_slice(&[b'0' + (number / 10 % 10) as u8, b'0' + (number % 10) as u8]);
            self.length += 2;
        }
    }

    /// Appends the date of a day since 2000-01-01 in the proleptic Gregorian calendar. Returns the
    /// suffix for years BC.
    fn push_date(&mut self, days: i64) -> &'static str {
        // Years begin in March here, so that the leap day comes last. A cycle of 400 years has
        // 146,097 days.
        let days = days + 730_425;
        let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
        let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
        let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let month = (5 * of_year + 2) / 153;
        let of_month = of_year - (153 * month + 2) / 5 + 1;
        let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
        let year = era * 400 + year_of_era + next;
        let (year, before_christ) = if year > 0 { (year, "") } else { (1 - year, " BC") };
        if year < 10_000 {
            self.push_two_digits(year / 100);
            self.push_two_digits(year % 100);
        } else {
            self.push_str(&year.to_string());
        }
        self.push_str("-");
        self.push_two_digits(month);
        self.push_str("-");
        self.push_two_digits(of_month);
        before_christ
    }

    fn push_time(&mut self, microseconds: i64) {
        let (seconds, fraction) = (microseconds / 1_000_000, microseconds % 1_000_000);
        self.push_two_digits(seconds / 3_600);
        self.push_str(":");
        self.push_two_digits(seconds / 60 % 60);
        self.push_str(":");
        self.push_two_digits(seconds % 60);
        if fraction != 0 {
            self.push_str(".");
            self.push_two_digits(fraction / 10_000);
            self.push_two_digits(fraction / 100 % 100);
            self.push_two_digits(fraction % 100);
            while self.length > 0 && self.bytes[self.length - 1] == b'0' {
                self.length -= 1;
            }
        }
    }

    fn finish(&self) -> String {
        std::str::from_utf8(&self.bytes[..self.length]).unwrap_or_default().to_string()
    }
}
