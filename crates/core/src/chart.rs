//! The picture that fits some rows, if any does. It only says what is to be drawn; surfaces draw it.

use std::collections::HashSet;

use querymend_sql::{Cell, Rows};
use schemars::JsonSchema;
use serde::Serialize;

/// A picture of the rows of an answer. Columns are named by their place, since two may have one name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Chart {
    /// What is drawn.
    pub kind: ChartKind,
    /// The column along which it is drawn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub x: Option<usize>,
    /// The columns with the figures.
    pub y: Vec<usize>,
    /// The column that parts the figures into series.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub series: Option<usize>,
}

/// The kinds of picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ChartKind {
    /// One figure, written large.
    Figure,
    /// A bar for each name.
    Bar,
    /// A line over time.
    Line,
    /// A point for each pair of figures.
    Scatter,
    /// How often figures of each size come up.
    Histogram,
}

/// More bars cannot be told apart.
const MOST_BARS: usize = 40;
/// More lines, or bars side by side, cannot be told apart.
const MOST_SERIES: usize = 8;
/// More points are not looked at for what they name.
const MOST_POINTS: usize = 2_000;
/// Fewer points say no more than a table.
const FEWEST_POINTS: usize = 5;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Names of things; numbers that only name things too.
    Name,
    Time,
    Number,
    /// NULL alone, bytes, or several kinds.
    Other,
}

impl Chart {
    /// The picture that fits; none where a table says it better.
    pub fn of(rows: &Rows) -> Option<Self> {
        let kinds: Vec<Kind> = (0..rows.columns.len()).map(|column| kind(rows, column)).collect();
        let of = |wanted: Kind| -> Vec<usize> {
            kinds.iter().enumerate().filter(|(_, kind)| **kind == wanted).map(|(column, _)| column).collect()
        };
        let (names, times, numbers) = (of(Kind::Name), of(Kind::Time), of(Kind::Number));
        let all = names.len() + times.len() + numbers.len() == kinds.len();
        let chart = |kind, x: Option<usize>, y: &[usize], series| Some(Self { kind, x, y: y.to_vec(), series });
        let count = rows.rows.len();
        if !all || count == 0 {
            return None;
        }
        match (names.as_slice(), times.as_slice(), numbers.as_slice()) {
            ([], [], [_]) if count == 1 => chart(ChartKind::Figure, None, &numbers, None),
            _ if count == 1 => None,
            ([], [], [_]) if count >= FEWEST_POINTS => chart(ChartKind::Histogram, None, &numbers, None),
            ([], [], [x, y]) if count >= FEWEST_POINTS => chart(ChartKind::Scatter, Some(*x), &[*y], None),
            _ if count > MOST_POINTS => None,
            ([name], [], [x, y]) if count > MOST_BARS && distinct(rows, *name) == count => {
                chart(ChartKind::Scatter, Some(*x), &[*y], None)
            }
            ([], [time], ys) if !ys.is_empty() && ys.len() <= MOST_SERIES && distinct(rows, *time) == count => {
                chart(ChartKind::Line, Some(*time), ys, None)
            }
            ([name], [time], [y]) if distinct(rows, *name) <= MOST_SERIES => {
                chart(ChartKind::Line, Some(*time), &[*y], Some(*name))
            }
            ([name], [], ys) if !ys.is_empty() && ys.len() <= MOST_SERIES && count <= MOST_BARS => {
                (distinct(rows, *name) == count).then(|| chart(ChartKind::Bar, Some(*name), ys, None)).flatten()
            }
            ([a, b], [], [y]) if count <= MOST_BARS => {
                // The one with fewer values parts the bars of the other.
                let (x, series) = if distinct(rows, *a) >= distinct(rows, *b) { (*a, *b) } else { (*b, *a) };
                let few = distinct(rows, series) <= MOST_SERIES;
                few.then(|| chart(ChartKind::Bar, Some(x), &[*y], Some(series))).flatten()
            }
            _ => None,
        }
    }
}

fn distinct(rows: &Rows, column: usize) -> usize {
    let text = |row: &Vec<Cell>| row.get(column).map(|cell| format!("{cell:?}"));
    rows.rows.iter().filter_map(text).collect::<HashSet<_>>().len()
}

fn kind(rows: &Rows, column: usize) -> Kind {
    let name = rows.columns.get(column).map(|name| name.to_lowercase()).unwrap_or_default();
    let is = |word: &str| name == word || name.ends_with(&format!("_{word}")) || name.starts_with(&format!("{word}_"));
    let cells = || rows.rows.iter().filter_map(|row| row.get(column)).filter(|cell| **cell != Cell::Null);
    if cells().next().is_none() {
        return Kind::Other;
    }
    let whole = cells().all(|cell| matches!(cell, Cell::Integer(_)));
    let number = cells().all(|cell| matches!(cell, Cell::Integer(_) | Cell::Number(_) | Cell::Decimal(_)));
    let text = cells().all(|cell| matches!(cell, Cell::Text(_) | Cell::Boolean(_)));
    let year = cells().all(|cell| matches!(cell, Cell::Integer(1000..=2999)));
    let time = text && cells().all(|cell| matches!(cell, Cell::Text(text) if is_time(text)));
    // What merely names a thing is not added up or drawn by its size.
    let names = ["id", "code", "key", "zip", "phone"].into_iter().any(is) || (whole && name.ends_with("id"));
    match () {
        () if time || (year && name.contains("year")) => Kind::Time,
        () if number && !names => Kind::Number,
        () if text || whole => Kind::Name,
        () => Kind::Other,
    }
}

/// A year, a month, a day or a moment, as databases write them.
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

    /// What is drawn, along which column, which figures, parted by which column.
    type Drawn = (ChartKind, Option<usize>, Vec<usize>, Option<usize>);

    fn text(text: impl Into<String>) -> Cell {
        Cell::Text(text.into())
    }

    #[test]
    fn c07_rows_get_the_picture_that_fits_them() {
        let n = |n: usize| Cell::Integer(n as i64);
        let check = |name: &str, rows: Rows, expected: Option<Drawn>| {
            let found = Chart::of(&rows).map(|chart| (chart.kind, chart.x, chart.y, chart.series));
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
