//! Date formats and their translation between the format styles of dialects.

/// Syntax of date formats, shared by several dialects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DateFormatStyle {
    /// `%Y-%m-%d %H:%M`: BigQuery, DataFusion.
    Percent,
    /// `%Y-%m-%d %H:%i`: MySQL, Trino.
    MySql,
    /// `YYYY-MM-DD HH24:MI`: PostgreSQL, Oracle, Snowflake.
    Template,
    /// `yyyy-MM-dd HH:mm`: Spark, Hive, and SQL Server's FORMAT.
    Java,
    /// `%Y-%m-%d %H:%M`, without names of months and days: SQLite.
    Sqlite,
}

/// Equivalent specifiers in the order of [`DateFormatStyle`]; empty if a style has none.
#[rustfmt::skip]
const SPECIFIERS: &[[&str; 5]] = &[
    ["%Y", "%Y", "YYYY", "yyyy", "%Y"],
    ["%y", "%y", "YY", "yy", ""],
    ["%m", "%m", "MM", "MM", "%m"],
    ["%B", "%M", "FMMonth", "MMMM", ""],
    ["%b", "%b", "Mon", "MMM", ""],
    ["%d", "%d", "DD", "dd", "%d"],
    ["%e", "%e", "FMDD", "d", "%e"],
    ["%H", "%H", "HH24", "HH", "%H"],
    ["%I", "%h", "HH12", "hh", "%I"],
    ["%M", "%i", "MI", "mm", "%M"],
    ["%S", "%s", "SS", "ss", "%S"],
    ["%p", "%p", "AM", "a", "%p"],
    ["%A", "%W", "FMDay", "EEEE", ""],
    ["%a", "%a", "Dy", "EEE", ""],
    ["%j", "%j", "DDD", "DDD", "%j"],
    ["%V", "%v", "IW", "", "%V"],
    ["%G", "%x", "IYYY", "", "%G"],
];
/// Alternative specifiers of a style, with their equivalent in [`DateFormatStyle::Percent`].
#[rustfmt::skip]
const SPECIFIER_ALIASES: &[(DateFormatStyle, &str, &str)] = &[
    (DateFormatStyle::Percent, "%F", "%Y-%m-%d"), (DateFormatStyle::Percent, "%T", "%H:%M:%S"), (DateFormatStyle::Percent, "%R", "%H:%M"),
    (DateFormatStyle::MySql, "%T", "%H:%M:%S"), (DateFormatStyle::MySql, "%S", "%S"), (DateFormatStyle::MySql, "%I", "%I"),
    (DateFormatStyle::Template, "Month", "%B"), (DateFormatStyle::Template, "MONTH", "%B"), (DateFormatStyle::Template, "month", "%B"),
    (DateFormatStyle::Template, "Day", "%A"), (DateFormatStyle::Template, "DAY", "%A"), 
    (DateFormatStyle::Template, "PM", "%p"), (DateFormatStyle::Template, "yyyy", "%Y"), (DateFormatStyle::Template, "mm", "%m"), (DateFormatStyle::Template, "dd", "%d"),
    (DateFormatStyle::Template, "hh24", "%H"), (DateFormatStyle::Template, "mi", "%M"), (DateFormatStyle::Template, "ss", "%S"),
    (DateFormatStyle::Java, "tt", "%p"), (DateFormatStyle::Java, "dddd", "%A"), (DateFormatStyle::Java, "ddd", "%a"),
];

/// Returns the length of the longest specifier at the start of a format, and its equivalent in
/// [`DateFormatStyle::Percent`].
fn match_specifier(style: DateFormatStyle, text: &str) -> Option<(usize, &'static str)> {
    let rows = SPECIFIERS.iter().map(|row| (row[style as usize], row[0])).filter(|(here, _)| !here.is_empty());
    let also =
        SPECIFIER_ALIASES.iter().filter(|(family, _, _)| *family == style).map(|(_, here, first)| (*here, *first));
    let fitting = rows.chain(also).filter(|(here, _)| text.starts_with(here));
    fitting.max_by_key(|(here, _)| here.len()).map(|(here, first)| (here.len(), first))
}

/// Converts a format to [`DateFormatStyle::Percent`]; `None` if it contains an unknown specifier.
pub(crate) fn parse_format(style: DateFormatStyle, mut format: &str) -> Option<String> {
    let mut read = String::new();
    while let Some(first) = format.chars().next() {
        if let Some((length, letters)) = match_specifier(style, format) {
            read.push_str(letters);
            format = &format[length..];
        } else if first.is_ascii_alphanumeric() || matches!(first, '%' | '"' | '\'' | '\\') {
            return None;
        } else {
            read.push(first);
            format = &format[first.len_utf8()..];
        }
    }
    Some(read)
}

/// Converts a format from [`DateFormatStyle::Percent`] to another style; `None` if that style lacks
/// a specifier.
pub(crate) fn render_format(style: DateFormatStyle, mut format: &str) -> Option<String> {
    let mut written = String::new();
    while let Some(first) = format.chars().next() {
        let length = if first == '%' { format.chars().take(2).map(char::len_utf8).sum() } else { first.len_utf8() };
        match first {
            '%' => {
                let row = SPECIFIERS.iter().find(|row| row[0] == &format[..length])?;
                written.push_str(Some(row[style as usize]).filter(|letters| !letters.is_empty())?);
            }
            _ => written.push(first),
        }
        format = &format[length..];
    }
    Some(written)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn translates_date_formats_between_all_styles() {
        let every = [
            (DateFormatStyle::Percent, "%Y-%m-%d %H:%M:%S"),
            (DateFormatStyle::MySql, "%Y-%m-%d %H:%i:%s"),
            (DateFormatStyle::Template, "YYYY-MM-DD HH24:MI:SS"),
            (DateFormatStyle::Java, "yyyy-MM-dd HH:mm:ss"),
            (DateFormatStyle::Sqlite, "%Y-%m-%d %H:%M:%S"),
        ];
        for (style, format) in every {
            assert_eq!(parse_format(style, format).as_deref(), Some("%Y-%m-%d %H:%M:%S"), "{format}");
            assert_eq!(render_format(style, "%Y-%m-%d %H:%M:%S").as_deref(), Some(format));
        }
        assert_eq!(parse_format(DateFormatStyle::MySql, "%M %Y").as_deref(), Some("%B %Y"));
        assert_eq!(parse_format(DateFormatStyle::Template, "Mon YY").as_deref(), Some("%b %y"));
        assert_eq!(parse_format(DateFormatStyle::Template, "FMMonth").as_deref(), Some("%B"));
    }

    #[test]
    fn rejects_unknown_date_format_specifiers() {
        assert_eq!(parse_format(DateFormatStyle::Template, "J"), None);
        assert_eq!(parse_format(DateFormatStyle::Percent, "%Q"), None);
        assert_eq!(parse_format(DateFormatStyle::Java, "yyyy-'W'ww"), None);
        assert_eq!(render_format(DateFormatStyle::Java, "%V"), None);
        assert_eq!(render_format(DateFormatStyle::Sqlite, "%B"), None);
    }
}
