//! How a date is written out: the same format in the letters of each family of dialects.

/// A family of letters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    /// `%Y-%m-%d %H:%M`: BigQuery, DataFusion.
    Percent,
    /// `%Y-%m-%d %H:%i`: MySQL, Trino.
    MySql,
    /// `YYYY-MM-DD HH24:MI`: PostgreSQL, Oracle, Snowflake.
    Template,
    /// `yyyy-MM-dd HH:mm`: Spark, Hive, and SQL Server's FORMAT.
    Java,
    /// `%Y-%m-%d %H:%M`, and no names of months and days: SQLite.
    Sqlite,
}

/// What stands for what: in the order of [`Style`]; an empty text where a family cannot say it.
#[rustfmt::skip]
const LETTERS: &[[&str; 5]] = &[
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
/// Other spellings of a family for what stands in a row above, given in the letters of the first family.
#[rustfmt::skip]
const ALSO: &[(Style, &str, &str)] = &[
    (Style::Percent, "%F", "%Y-%m-%d"), (Style::Percent, "%T", "%H:%M:%S"), (Style::Percent, "%R", "%H:%M"),
    (Style::MySql, "%T", "%H:%M:%S"), (Style::MySql, "%S", "%S"), (Style::MySql, "%I", "%I"),
    (Style::Template, "Month", "%B"), (Style::Template, "MONTH", "%B"), (Style::Template, "month", "%B"),
    (Style::Template, "Day", "%A"), (Style::Template, "DAY", "%A"), 
    (Style::Template, "PM", "%p"), (Style::Template, "yyyy", "%Y"), (Style::Template, "mm", "%m"), (Style::Template, "dd", "%d"),
    (Style::Template, "hh24", "%H"), (Style::Template, "mi", "%M"), (Style::Template, "ss", "%S"),
    (Style::Java, "tt", "%p"), (Style::Java, "dddd", "%A"), (Style::Java, "ddd", "%a"),
];

/// The letters of a family that a format begins with, and what they are in the first family.
fn letter(style: Style, text: &str) -> Option<(usize, &'static str)> {
    let rows = LETTERS.iter().map(|row| (row[style as usize], row[0])).filter(|(here, _)| !here.is_empty());
    let also = ALSO.iter().filter(|(family, _, _)| *family == style).map(|(_, here, first)| (*here, *first));
    let fitting = rows.chain(also).filter(|(here, _)| text.starts_with(here));
    fitting.max_by_key(|(here, _)| here.len()).map(|(here, first)| (here.len(), first))
}

/// A format in the letters of the first family. `None` if it says something that is not in the table.
pub(crate) fn read(style: Style, mut format: &str) -> Option<String> {
    let mut read = String::new();
    while let Some(first) = format.chars().next() {
        if let Some((length, letters)) = letter(style, format) {
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

/// A format of the first family in the letters of another.
pub(crate) fn write(style: Style, mut format: &str) -> Option<String> {
    let mut written = String::new();
    while let Some(first) = format.chars().next() {
        let length = if first == '%' { format.chars().take(2).map(char::len_utf8).sum() } else { first.len_utf8() };
        match first {
            '%' => {
                let row = LETTERS.iter().find(|row| row[0] == &format[..length])?;
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
    fn a_format_is_the_same_in_all_letters() {
        let every = [
            (Style::Percent, "%Y-%m-%d %H:%M:%S"),
            (Style::MySql, "%Y-%m-%d %H:%i:%s"),
            (Style::Template, "YYYY-MM-DD HH24:MI:SS"),
            (Style::Java, "yyyy-MM-dd HH:mm:ss"),
            (Style::Sqlite, "%Y-%m-%d %H:%M:%S"),
        ];
        for (style, format) in every {
            assert_eq!(read(style, format).as_deref(), Some("%Y-%m-%d %H:%M:%S"), "{format}");
            assert_eq!(write(style, "%Y-%m-%d %H:%M:%S").as_deref(), Some(format));
        }
        assert_eq!(read(Style::MySql, "%M %Y").as_deref(), Some("%B %Y"));
        assert_eq!(read(Style::Template, "Mon YY").as_deref(), Some("%b %y"));
        assert_eq!(read(Style::Template, "FMMonth").as_deref(), Some("%B"));
    }

    #[test]
    fn what_is_not_in_the_table_is_not_guessed() {
        assert_eq!(read(Style::Template, "J"), None);
        assert_eq!(read(Style::Percent, "%Q"), None);
        assert_eq!(read(Style::Java, "yyyy-'W'ww"), None);
        assert_eq!(write(Style::Java, "%V"), None);
        assert_eq!(write(Style::Sqlite, "%B"), None);
    }
}
