//! When a run began: its id says so.

/// The time in an id, to the second and in UTC: `2026-11-16T09:34:08Z`. An id that is no UUID of version 7 has none.
pub fn began(id: &str) -> Option<String> {
    let parts: Vec<&str> = id.split('-').collect();
    let [high, low, version, _, _] = parts.as_slice() else { return None };
    if high.len() != 8 || low.len() != 4 || !version.starts_with('7') {
        return None;
    }
    // The first 48 bits are milliseconds since 1970.
    let millis = u64::from_str_radix(&format!("{high}{low}"), 16).ok()?;
    Some(written(millis / 1_000))
}

/// Seconds since 1970 as a date and a time of day.
fn written(seconds: u64) -> String {
    let (days, of_day) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = date(days);
    let (hour, minute, second) = (of_day / 3_600, of_day / 60 % 60, of_day % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// The date so many days after the first of 1970. Years are counted from March, so that the leap day is the last of one, and in
/// eras of 400 years, which are all equally long.
fn date(days: u64) -> (u64, u64, u64) {
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
    fn dates_are_those_of_the_calendar() {
        for (seconds, words) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (951_868_800, "2000-03-01T00:00:00Z"),
            (1_735_689_599, "2024-12-31T23:59:59Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(written(seconds), words);
        }
    }

    #[test]
    fn only_ids_of_version_7_have_a_time() {
        // The example of RFC 9562.
        assert_eq!(began("017f22e2-79b0-7cc3-98c4-dc0c0c07398f").as_deref(), Some("2022-02-22T19:22:22Z"));
        for id in ["", "last", "017f22e2-79b0-4cc3-98c4-dc0c0c07398f", "017f22e2-79b0", "é17f22e-79b0-7cc3-98c4-dc0c0c"]
        {
            assert_eq!(began(id), None, "{id}");
        }
    }
}
