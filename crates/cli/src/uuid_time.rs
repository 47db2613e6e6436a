//! Start time of a run, from its UUIDv7 id.

/// Returns the timestamp of a UUIDv7 in UTC, to the second: `2026-11-16T09:34:08Z`. Returns `None`
/// for other ids.
pub fn uuid_timestamp(id: &str) -> Option<String> {
    let parts: Vec<&str> = id.split('-').collect();
    let [high, low, version, _, _] = parts.as_slice() else { return None };
    if high.len() != 8 || low.len() != 4 || !version.starts_with('7') {
        return None;
    }
    // The first 48 bits are milliseconds since the Unix epoch.
    let millis = u64::from_str_radix(&format!("{high}{low}"), 16).ok()?;
    Some(format_utc(millis / 1_000))
}

/// Formats seconds since the Unix epoch as an ISO 8601 timestamp.
fn format_utc(seconds: u64) -> String {
    let (days, of_day) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = civil_from_days(days);
    let (hour, minute, second) = (of_day / 3_600, of_day / 60 % 60, of_day % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// Returns year, month and day for a number of days since the Unix epoch.
///
/// Years start in March, so that the leap day is the last day of a year, and are grouped in eras of
/// 400 years, which all have the same length.
fn civil_from_days(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let year = era * 400 + year_of_era + u64::from(month >= 10);
    (year, if month < 10 { month + 3 } else { month - 9 }, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_calendar_dates() {
        for (seconds, words) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (951_868_800, "2000-03-01T00:00:00Z"),
            (1_735_689_599, "2024-12-31T23:59:59Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(format_utc(seconds), words);
        }
    }

    #[test]
    fn only_version_7_ids_have_a_time() {
        // Example of RFC 9562.
        assert_eq!(uuid_timestamp("017f22e2-79b0-7cc3-98c4-dc0c0c07398f").as_deref(), Some("2022-02-22T19:22:22Z"));
        for id in ["", "last", "017f22e2-79b0-4cc3-98c4-dc0c0c07398f", "017f22e2-79b0", "é17f22e-79b0-7cc3-98c4-dc0c0c"]
        {
            assert_eq!(uuid_timestamp(id), None, "{id}");
        }
    }
}
