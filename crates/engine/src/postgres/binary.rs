//! Values as PostgreSQL sends them in binary, for the common kinds. What is written here must read as the server would write it.

use std::error::Error;
use std::fmt::Write;

use querymend_sql::Cell;
use tokio_postgres::types::{FromSql, Kind, Type};

use super::text::compact;
use crate::bytes::hexadecimal;

/// A value as it came.
pub(super) struct Raw<'a>(pub &'a [u8]);

impl<'a> FromSql<'a> for Raw<'a> {
    fn from_sql(_: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        Ok(Raw(raw))
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}

/// How one kind of value is read.
#[derive(Clone, Copy)]
pub(super) struct Reader {
    /// Nothing, if the bytes are not of this kind.
    pub read: fn(&[u8]) -> Option<Cell>,
    /// So many times more memory it takes as a cell.
    pub growth: usize,
}

/// How values of a type are read; nothing for those that only the server can write.
pub(super) fn reader(kind: &Type) -> Option<Reader> {
    let read: fn(&[u8]) -> Option<Cell> = match *kind {
        Type::BOOL => |bytes| Some(Cell::Boolean(*bytes.first()? != 0)),
        Type::INT2 => |bytes| Some(Cell::Integer(i16::from_be_bytes(bytes.try_into().ok()?).into())),
        Type::INT4 => |bytes| Some(Cell::Integer(i32::from_be_bytes(bytes.try_into().ok()?).into())),
        Type::INT8 => |bytes| Some(Cell::Integer(i64::from_be_bytes(bytes.try_into().ok()?))),
        Type::OID => |bytes| Some(Cell::Integer(u32::from_be_bytes(bytes.try_into().ok()?).into())),
        // The digits that tell it from its neighbours, as the server writes it, and not those of the nearest double.
        Type::FLOAT4 => {
            |bytes| Some(Cell::Number(f32::from_be_bytes(bytes.try_into().ok()?).to_string().parse().ok()?))
        }
        Type::FLOAT8 => |bytes| Some(Cell::Number(f64::from_be_bytes(bytes.try_into().ok()?))),
        Type::NUMERIC => |bytes| Some(Cell::Decimal(numeric(bytes)?)),
        Type::TEXT | Type::VARCHAR | Type::BPCHAR | Type::NAME | Type::UNKNOWN | Type::XML => text,
        Type::JSON => |bytes| Some(Cell::Text(compact(&String::from_utf8_lossy(bytes)))),
        // A version stands before it.
        Type::JSONB => |bytes| Some(Cell::Text(compact(&String::from_utf8_lossy(bytes.get(1..)?)))),
        Type::BYTEA => return Some(Reader { read: |bytes| Some(Cell::Binary(hexadecimal(bytes))), growth: 2 }),
        Type::UUID => |bytes| Some(Cell::Text(uuid(bytes)?)),
        Type::DATE => |bytes| Some(Cell::Text(date(bytes)?)),
        Type::TIME => |bytes| Some(Cell::Text(time(bytes)?)),
        Type::TIMESTAMP => |bytes| Some(Cell::Text(timestamp(bytes, "")?)),
        Type::TIMESTAMPTZ => |bytes| Some(Cell::Text(timestamp(bytes, "+00:00")?)),
        _ if matches!(kind.kind(), Kind::Enum(_)) => text,
        _ => return None,
    };
    Some(Reader { read, growth: 1 })
}

fn text(bytes: &[u8]) -> Option<Cell> {
    Some(Cell::Text(String::from_utf8_lossy(bytes).into_owned()))
}

fn uuid(bytes: &[u8]) -> Option<String> {
    let hex = hexadecimal(bytes);
    Some([hex.get(..8)?, hex.get(8..12)?, hex.get(12..16)?, hex.get(16..20)?, hex.get(20..32)?].join("-"))
}

/// The `i`th of the numbers of two bytes that something is made of.
fn short(bytes: &[u8], i: usize) -> Option<i16> {
    Some(i16::from_be_bytes(bytes.get(i * 2..i * 2 + 2)?.try_into().ok()?))
}

/// A decimal number comes as groups of four digits: how many there are, the place of the first, the sign, how many digits are shown
/// behind the point, and then the groups.
fn numeric(bytes: &[u8]) -> Option<String> {
    let (groups, first, sign, scale) = (short(bytes, 0)?, short(bytes, 1)?, short(bytes, 2)?, short(bytes, 3)?);
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
            usize::try_from(i).ok().and_then(|i| short(bytes, i + 4)).unwrap_or(0)
        }
    };
    let highest = i32::from(first).max(0);
    // Writing to a text cannot fail.
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

const MICROSECONDS_OF_A_DAY: i64 = 86_400_000_000;

fn date(bytes: &[u8]) -> Option<String> {
    Some(match i32::from_be_bytes(bytes.try_into().ok()?) {
        i32::MAX => "infinity".into(),
        i32::MIN => "-infinity".into(),
        days => {
            let mut written = Written::new();
            let before_christ = written.day(days.into());
            written.text(before_christ);
            written.done()
        }
    })
}

fn time(bytes: &[u8]) -> Option<String> {
    let mut written = Written::new();
    written.of_day(i64::from_be_bytes(bytes.try_into().ok()?));
    Some(written.done())
}

fn timestamp(bytes: &[u8], zone: &str) -> Option<String> {
    Some(match i64::from_be_bytes(bytes.try_into().ok()?) {
        i64::MAX => "infinity".into(),
        i64::MIN => "-infinity".into(),
        microseconds => {
            let mut written = Written::new();
            let before_christ = written.day(microseconds.div_euclid(MICROSECONDS_OF_A_DAY));
            written.text(" ");
            written.of_day(microseconds.rem_euclid(MICROSECONDS_OF_A_DAY));
            written.text(zone);
            written.text(before_christ);
            written.done()
        }
    })
}

/// A date or a time on its way to a text. Much quicker than formatting, which half of the time of an answer full of dates would go
/// into.
struct Written {
    bytes: [u8; 64],
    length: usize,
}

impl Written {
    fn new() -> Self {
        Self { bytes: [b'0'; 64], length: 0 }
    }

    fn text(&mut self, text: &str) {
        if let Some(place) = self.bytes.get_mut(self.length..self.length + text.len()) {
            place.copy_from_slice(text.as_bytes());
            self.length += text.len();
        }
    }

    /// A number of two digits, with a zero before it if it has one.
    fn two(&mut self, number: i64) {
        if let Some(place) = self.bytes.get_mut(self.length..self.length + 2) {
            place.copy_from_slice(&[b'0' + (number / 10 % 10) as u8, b'0' + (number % 10) as u8]);
            self.length += 2;
        }
    }

    /// A day, counted from the first of the year 2000, in the calendar that is counted back before it was there; and what is written
    /// behind all if it was before the year one.
    fn day(&mut self, days: i64) -> &'static str {
        // Years begin in March here, so that the day that some have more comes last. 400 of them are 146,097 days.
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
            self.two(year / 100);
            self.two(year % 100);
        } else {
            self.text(&year.to_string());
        }
        self.text("-");
        self.two(month);
        self.text("-");
        self.two(of_month);
        before_christ
    }

    fn of_day(&mut self, microseconds: i64) {
        let (seconds, fraction) = (microseconds / 1_000_000, microseconds % 1_000_000);
        self.two(seconds / 3_600);
        self.text(":");
        self.two(seconds / 60 % 60);
        self.text(":");
        self.two(seconds % 60);
        if fraction != 0 {
            self.text(".");
            self.two(fraction / 10_000);
            self.two(fraction / 100 % 100);
            self.two(fraction % 100);
            while self.length > 0 && self.bytes[self.length - 1] == b'0' {
                self.length -= 1;
            }
        }
    }

    fn done(&self) -> String {
        std::str::from_utf8(&self.bytes[..self.length]).unwrap_or_default().to_string()
    }
}
