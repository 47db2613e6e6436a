//! Units of time and date parts, under the names that dialects use for them.

/// Unit of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Unit {
    /// Any unit, for templates that apply to all units.
    Any,
    Second,
    Minute,
    Hour,
    Day,
    Week,
    Month,
    Quarter,
    Year,
}

impl Unit {
    /// Parses the name of a unit: `day`, `DAYS`, `dd`.
    pub(crate) fn from_name(word: &str) -> Option<Unit> {
        let lower = word.to_ascii_lowercase();
        // BigQuery can specify the first day of the week.
        let lower = lower.strip_suffix("(monday)").unwrap_or(&lower);
        Some(match lower.strip_suffix('s').filter(|w| w.len() > 2).unwrap_or(lower) {
            "second" | "sec" | "ss" => Unit::Second,
            "minute" | "min" | "mi" => Unit::Minute,
            "hour" | "hh" => Unit::Hour,
            "day" | "dd" => Unit::Day,
            "week" | "isoweek" | "wk" | "ww" => Unit::Week,
            "month" | "mon" | "mm" => Unit::Month,
            "quarter" | "qq" => Unit::Quarter,
            "year" | "yy" | "yyyy" => Unit::Year,
            _ => return None,
        })
    }

    /// Returns the name in lower case; empty for [`Unit::Any`].
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Unit::Any => "",
            Unit::Second => "second",
            Unit::Minute => "minute",
            Unit::Hour => "hour",
            Unit::Day => "day",
            Unit::Week => "week",
            Unit::Month => "month",
            Unit::Quarter => "quarter",
            Unit::Year => "year",
        }
    }
}

/// Numeric part of a date.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum DatePart {
    /// Any part, for signatures that apply to all parts.
    Any,
    Year,
    Quarter,
    Month,
    /// ISO week of the year.
    Week,
    Day,
    Hour,
    Minute,
    Second,
    DayOfYear,
    /// Day of the week, Sunday is 0.
    DayOfWeekSunday0,
    /// Day of the week, Sunday is 1.
    DayOfWeekSunday1,
    /// Day of the week, Monday is 0.
    DayOfWeekMonday0,
    /// Day of the week, Monday is 1 and Sunday 7.
    DayOfWeekMonday1,
    /// Seconds since 1970.
    Epoch,
}

impl DatePart {
    /// Parses the name of a date part: `YEAR`, `dow`, `weekday`.
    pub(crate) fn from_name(word: &str) -> Option<DatePart> {
        Some(match word.to_ascii_lowercase().as_str() {
            "dow" => DatePart::DayOfWeekSunday0,
            "dayofweek" | "weekday" | "dw" => DatePart::DayOfWeekSunday1,
            "isodow" | "dayofweekiso" | "dayofweek_iso" | "day_of_week" => DatePart::DayOfWeekMonday1,
            "doy" | "dayofyear" | "dy" | "day_of_year" => DatePart::DayOfYear,
            "epoch" | "epoch_second" => DatePart::Epoch,
            other => match Unit::from_name(other)? {
                Unit::Second => DatePart::Second,
                Unit::Minute => DatePart::Minute,
                Unit::Hour => DatePart::Hour,
                Unit::Day => DatePart::Day,
                Unit::Week => DatePart::Week,
                Unit::Month => DatePart::Month,
                Unit::Quarter => DatePart::Quarter,
                Unit::Year => DatePart::Year,
                Unit::Any => return None,
            },
        })
    }
}
