//! Units of time and parts of a date, under all the names that dialects have for them.

/// A unit of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Unit {
    /// Whichever it is: in tables of phrases, where one template serves all units.
    Each,
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
    /// The unit that a word names: `day`, `DAYS`, `dd`.
    pub(crate) fn from_word(word: &str) -> Option<Unit> {
        let lower = word.to_ascii_lowercase();
        // BigQuery says which day a week begins with.
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

    /// Its name.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Unit::Each => "",
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

/// A number that can be read off a date.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Part {
    /// Whichever it is.
    Each,
    Year,
    Quarter,
    Month,
    /// The week of the year as ISO counts it.
    Week,
    Day,
    Hour,
    Minute,
    Second,
    DayOfYear,
    /// The day of the week, Sunday 0.
    Sunday0,
    /// The day of the week, Sunday 1.
    Sunday1,
    /// The day of the week, Monday 0.
    Monday0,
    /// The day of the week, Monday 1 and Sunday 7.
    Monday1,
    /// Seconds since 1970.
    Epoch,
}

impl Part {
    /// The part that a word names: `YEAR`, `dow`, `weekday`.
    pub(crate) fn from_word(word: &str) -> Option<Part> {
        Some(match word.to_ascii_lowercase().as_str() {
            "dow" => Part::Sunday0,
            "dayofweek" | "weekday" | "dw" => Part::Sunday1,
            "isodow" | "dayofweekiso" | "dayofweek_iso" | "day_of_week" => Part::Monday1,
            "doy" | "dayofyear" | "dy" | "day_of_year" => Part::DayOfYear,
            "epoch" | "epoch_second" => Part::Epoch,
            other => match Unit::from_word(other)? {
                Unit::Second => Part::Second,
                Unit::Minute => Part::Minute,
                Unit::Hour => Part::Hour,
                Unit::Day => Part::Day,
                Unit::Week => Part::Week,
                Unit::Month => Part::Month,
                Unit::Quarter => Part::Quarter,
                Unit::Year => Part::Year,
                Unit::Each => return None,
            },
        })
    }
}
