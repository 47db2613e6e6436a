//! Chooses a chart for the rows of a result. Only describes the chart; surfaces render it.

use std::collections::HashSet;

use querymend_sql::{Cell, Rows};
use schemars::JsonSchema;
use serde::Serialize;

/// Chart for the rows of an answer.
///
/// Columns are referenced by index because two columns may have the same name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Chart {
    /// Kind of chart.
    pub kind: ChartKind,
    /// Index of the x-axis column. Absent for a single figure and a histogram.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub x: Option<usize>,
    /// Indexes of the columns with the plotted numbers.
    pub y: Vec<usize>,
    /// Index of the column that splits the numbers into series. Absent if there is one series per
    /// column of `y`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub series: Option<usize>,
}

/// Kind of chart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ChartKind {
    /// A single number, displayed large.
    Figure,
    /// One bar per category.
    Bar,
    /// A line over time.
    Line,
    /// One point per pair of numbers.
    Scatter,
    /// Frequency distribution of one numeric column.
    Histogram,
}

/// Maximum number of bars; more are indistinguishable.
const MAX_BARS: usize = 40;
/// Maximum number of series (lines, or bars side by side); more are indistinguishable.
const MAX_SERIES: usize = 8;
/// Maximum number of rows whose category or time column is examined.
const MAX_POINTS: usize = 2_000;
/// Minimum number of points; fewer are as readable in a table.
const MIN_POINTS: usize = 5;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ChartColumnKind {
    /// Category labels, including numeric identifiers.
    Name,
    Time,
    Number,
    /// Only NULL, binary data, or mixed types.
    Other,
}

impl Chart {
    /// Returns the chart that fits the rows, or `None` if a table is more readable.
    pub fn from_rows(rows: &Rows) -> Option<Self> {
        let kinds: Vec<ChartColumnKind> = (0..rows.columns.len()).map(|column| column_kind(rows, column)).collect();
        let of = |wanted: ChartColumnKind| -> Vec<usize> {
            kinds.iter().enumerate().filter(|(_, kind)| **kind == wanted).map(|(column, _)| column).collect()
        };
        let (names, times, numbers) =
            (of(ChartColumnKind::Name), of(ChartColumnKind::Time), of(ChartColumnKind::Number));
        let all = names.len() + times.len() + numbers.len() == kinds.len();
        let chart = |kind, x: Option<usize>, y: &[usize], series| Some(Self { kind, x, y: y.to_vec(), series });
        let count = rows.rows.len();
        if !all || count == 0 {
            return None;
        }
        match (names.as_slice(), times.as_slice(), numbers.as_slice()) {
            ([], [], [_]) if count == 1 => chart(ChartKind::Figure, None, &numbers, None),
            _ if count == 1 => None,
            ([], [], [_]) if count >= MIN_POINTS => chart(ChartKind::Histogram, None, &numbers, None),
            ([], [], [x, y]) if count >= MIN_POINTS => chart(ChartKind::Scatter, Some(*x), &[*y], None),
            _ if count > MAX_POINTS => None,
            ([name], [], [x, y]) if count > MAX_BARS && distinct_count(rows, *name) == count => {
                chart(ChartKind::Scatter, Some(*x), &[*y], None)
            }
            ([], [time], ys) if !ys.is_empty() && ys.len() <= MAX_SERIES && distinct_count(rows, *time) == count => {
                chart(ChartKind::Line, Some(*time), ys, None)
            }
            ([name], [time], [y]) if distinct_count(rows, *name) <= MAX_SERIES => {
                chart(ChartKind::Line, Some(*time), &[*y], Some(*name))
            }
            ([name], [], ys) if !ys.is_empty() && ys.len() <= MAX_SERIES && count <= MAX_BARS => {
                (distinct_count(rows, *name) == count).then(|| chart(ChartKind::Bar, Some(*name), ys, None)).flatten()
            }
            ([a, b], [], [y]) if count <= MAX_BARS => {
                // The column with fewer distinct values becomes the series.
                let (x, series) =
                    if distinct_count(rows, *a) >= distinct_count(rows, *b) { (*a, *b) } else { (*b, *a) };
                let few = distinct_count(rows, series) <= MAX_SERIES;
                few.then(|| chart(ChartKind::Bar, Some(x), &[*y], Some(series))).flatten()
            }
            _ => None,
        }
    }
}

fn distinct_count(rows: &Rows, column: usize) -> usize {
    let text = |row: &Vec<Cell>| row.get(column).map(|cell| format!("{cell:?}"));
    rows.rows.iter().filter_map(text).collect::<HashSet<_>>().len()
}

fn column_kind(rows: &Rows, column: usize) -> ChartColumnKind {
    let name = rows.columns.get(column).map(|name| name.to_lowercase()).unwrap_or_default();
    let is = |word: &str| name == word || name.ends_with(&format!("_{word}")) || name.starts_with(&format!("{word}_"));
    let cells = || rows.rows.iter().filter_map(|row| row.get(column)).filter(|cell| **cell != Cell::Null);
    if cells().next().is_none() {
        return ChartColumnKind::Other;
    }
    let whole = cells().all(|cell| matches!(cell, Cell::Integer(_)));
    let number = cells().all(|cell| matches!(cell, Cell::Integer(_) | Cell::Number(_) | Cell::Decimal(_)));
    let text = cells().all(|cell| matches!(cell, Cell::Text(_) | Cell::Boolean(_)));
    let year = cells().all(|cell| matches!(cell, Cell::Integer(1000..=2999)));
    let time = text && cells().all(|cell| matches!(cell, Cell::Text(text) if is_time(text)));
    // Identifiers are labels: their magnitude must not be summed or plotted.
    let names = ["id", "code", "key", "zip", "phone"].into_iter().any(is) || (whole && name.ends_with("id"));
    match () {
        () if time || (year && name.contains("year")) => ChartColumnKind::Time,
        () if number && !names => ChartColumnKind::Number,
        () if text || whole => ChartColumnKind::Name,
        () => ChartColumnKind::Other,
    }
}

/// Returns whether the text is a year, month, date or timestamp in the notation of databases.
fn is_time(text: &str) -> bool {
    let date = text.split([' ', 'T']).next().unwrap_or_default();
    let parts: Vec<&str> = date.split('-').collect();
    let digits = |part: &&str, length: usize| part.len() == length && part.bytes().all(|b| b.is_ascii_digit());
    match parts.as_slice() {
        [year] => digits(year, 4) && ("1000".."3000").contains(year),
        [year, month] | [year, month, _] if digits(year, 4) && digits(month, 2) => {
            ("01"..="12").contains(month) && parts.get(2).is_none_or(|day| digits(day, 2))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(columns: &[&str], row: impl Fn(usize) -> Vec<Cell>, count: usize) -> Rows {
        let columns = columns.iter().map(ToString::to_string).collect();
        Rows { columns, rows: (0..count).map(row).collect(), truncated: false }
    }

    /// Expected kind, x column, y columns and series column.
    type Drawn = (ChartKind, Option<usize>, Vec<usize>, Option<usize>);

    fn text(text: impl Into<String>) -> Cell {
        Cell::Text(text.into())
    }

    #[test]
    fn selects_chart_kind_from_rows() {
        let n = |n: usize| Cell::Integer(n as i64);
        let check = |name: &str, rows: Rows, expected: Option<Drawn>| {
            let found = Chart::from_rows(&rows).map(|chart| (chart.kind, chart.x, chart.y, chart.series));
            assert_eq!(found, expected, "{name}");
        };
        use ChartKind::{Bar, Figure, Histogram, Line, Scatter};
        let city = |i: usize| text(format!("city {i}"));
        let month = |i: usize| text(format!("2024-{:02}", i % 12 + 1));
        check("one figure", rows(&["count(*)"], |_| vec![n(8)], 1), Some((Figure, None, vec![0], None)));
        check("one name", rows(&["name"], |_| vec![text("Ada")], 1), None);
        check("no rows", rows(&["n"], |_| vec![], 0), None);
        check("names", rows(&["name"], |i| vec![city(i)], 9), None);
        check("bars", rows(&["city", "n"], |i| vec![city(i), n(i)], 9), Some((Bar, Some(0), vec![1], None)));
        check("too many bars", rows(&["city", "n"], |i| vec![city(i), n(i)], 99), None);
        check("a name twice", rows(&["city", "n"], |i| vec![city(i % 3), n(i)], 9), None);
        check("a line", rows(&["month", "n"], |i| vec![month(i), n(i)], 12), Some((Line, Some(0), vec![1], None)));
        check(
            "a line over years",
            rows(&["year", "sum", "avg"], |i| vec![Cell::Integer(2000 + i as i64), n(i), Cell::Number(0.5)], 9),
            Some((Line, Some(0), vec![1, 2], None)),
        );
        check(
            "lines",
            rows(&["month", "city", "n"], |i| vec![month(i / 2), city(i % 2), n(i)], 24),
            Some((Line, Some(0), vec![2], Some(1))),
        );
        check(
            "bars in groups",
            rows(&["kind", "city", "n"], |i| vec![city(i % 2), city(i / 2), n(i)], 12),
            Some((Bar, Some(1), vec![2], Some(0))),
        );
        check("points", rows(&["age", "pay"], |i| vec![n(i), n(i * i)], 20), Some((Scatter, Some(0), vec![1], None)));
        check("sizes", rows(&["age"], |i| vec![n(i)], 20), Some((Histogram, None, vec![0], None)));
        check("numbers that name", rows(&["id", "n"], |i| vec![n(i), n(i)], 9), Some((Bar, Some(0), vec![1], None)));
        check("bytes", rows(&["b", "n"], |i| vec![Cell::Binary("00".into()), n(i)], 9), None);
        check("nothing", rows(&["a", "n"], |i| vec![Cell::Null, n(i)], 9), None);
        check("mixed", rows(&["a", "n"], |i| vec![if i == 1 { n(1) } else { city(i) }, n(i)], 9), None);
    }
}
