//! From the columns that a server sends to rows of cells.

use querymend_sql::Cell;

use super::fault::Fault;
use super::value::Value;
use crate::Limits;
use crate::bytes::hexadecimal;
use crate::taking::Taking;

/// Numbers of types that need more than their value.
const TIMESTAMP: i64 = 8;
const BINARY: i64 = 9;
const DECIMAL: i64 = 15;
const ZONED: i64 = 22;

/// Rows as they come in, until there are enough of them.
pub(super) struct Gathered {
    pub(super) taking: Taking,
    kinds: Vec<i64>,
}

/// One column of the rows that came together.
struct Column {
    values: std::vec::IntoIter<Value>,
    nulls: Vec<u8>,
    kind: i64,
}

impl Gathered {
    pub(super) fn new(columns: Vec<(String, i64)>, limits: &Limits) -> Self {
        let (columns, kinds) = columns.into_iter().unzip();
        Self { taking: Taking::new(columns, limits), kinds }
    }

    /// Adds what came, as far as it is allowed. Gives the number of rows that came.
    pub(super) fn add(&mut self, columns: Vec<Value>) -> Result<usize, Fault> {
        let strange = |what: &str| Fault::Strange(what.to_string());
        let mut read = Vec::with_capacity(columns.len());
        for (column, kind) in columns.into_iter().zip(&self.kinds) {
            let (_, column) = column.take_only().ok_or_else(|| strange("a column without values"))?;
            let nulls = match column.field(2) {
                Some(Value::Bytes(nulls)) => nulls.clone(),
                _ => Vec::new(),
            };
            let values = column.take(1).map(Value::into_list).unwrap_or_default().into_iter();
            read.push(Column { values, nulls, kind: *kind });
        }
        let count = read.first().map_or(0, |column| column.values.len());
        if count > 0 && read.len() != self.kinds.len() {
            return Err(strange("rows with other columns than were announced"));
        }
        if read.iter().any(|column| column.values.len() != count) {
            return Err(strange("columns of different lengths"));
        }
        for row in 0..count {
            let mut cells = Vec::with_capacity(read.len());
            for column in &mut read {
                let is_null = column.nulls.get(row / 8).is_some_and(|bits| bits >> (row % 8) & 1 == 1);
                let value = column.values.next().ok_or_else(|| strange("columns of different lengths"))?;
                cells.push(if is_null { Cell::Null } else { cell(value, column.kind) });
            }
            if !self.taking.weigh_and_take(cells) {
                break;
            }
        }
        Ok(count)
    }
}

fn cell(value: Value, kind: i64) -> Cell {
    match value {
        Value::Bool(value) => Cell::Boolean(value),
        Value::Double(number) => Cell::Number(number),
        Value::Bytes(bytes) if kind == BINARY => Cell::Binary(hexadecimal(&bytes)),
        Value::Bytes(bytes) => {
            let text =
                String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
            match kind {
                DECIMAL => Cell::Decimal(text),
                TIMESTAMP => Cell::Text(without_zeros(&text).to_string()),
                ZONED => Cell::Text(zoned(&text)),
                _ => Cell::Text(text),
            }
        }
        other => other.number().map_or(Cell::Null, Cell::Integer),
    }
}

/// A moment without the zeros at the end of its fraction. Hive always writes a fraction.
fn without_zeros(moment: &str) -> &str {
    match moment.split_once('.') {
        Some((_, fraction)) if fraction.bytes().all(|c| c.is_ascii_digit()) => {
            moment.trim_end_matches('0').trim_end_matches('.')
        }
        _ => moment,
    }
}

/// Hive names the zone behind the moment; sessions are in UTC.
fn zoned(moment: &str) -> String {
    match moment.strip_suffix(" UTC").or_else(|| moment.strip_suffix(" Z")) {
        Some(moment) => format!("{}+00:00", without_zeros(moment)),
        None => moment.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use std::mem::size_of;

    use super::*;

    fn column(kind: i16, values: Vec<Value>, nulls: &[u8]) -> Value {
        let inner = Value::Struct(vec![(1, Value::List(values)), (2, Value::Bytes(nulls.to_vec()))]);
        Value::Struct(vec![(kind, inner)])
    }

    fn gathered(kinds: &[i64], limits: &Limits) -> Gathered {
        Gathered::new(kinds.iter().map(|kind| (kind.to_string(), *kind)).collect(), limits)
    }

    #[test]
    fn f03_columns_become_rows() {
        let mut all = gathered(&[0, 15, 8, 9, 22], &Limits::default());
        let texts = |texts: [&str; 2]| texts.iter().map(|text| Value::text(text)).collect::<Vec<_>>();
        let came = all.add(vec![
            column(1, vec![Value::Bool(true), Value::Bool(false)], &[0b10]),
            column(7, texts(["12345678901234567890.50", "0.10"]), &[0]),
            column(7, texts(["2024-02-29 13:14:15.0", "2024-02-29 10:00:00.250"]), &[]),
            column(8, vec![Value::Bytes(vec![0x0f, 0xa0]), Value::Bytes(vec![])], &[]),
            column(7, texts(["2024-02-29 11:14:15.0 UTC", "2024-02-29 11:14:15.5 Europe/Berlin"]), &[]),
        ]);
        assert_eq!(came, Ok(2));
        let text = |text: &str| Cell::Text(text.into());
        let decimal = |text: &str| Cell::Decimal(text.into());
        let expected = [
            vec![
                Cell::Boolean(true),
                decimal("12345678901234567890.50"),
                text("2024-02-29 13:14:15"),
                Cell::Binary("0fa0".into()),
                text("2024-02-29 11:14:15+00:00"),
            ],
            vec![
                Cell::Null,
                decimal("0.10"),
                text("2024-02-29 10:00:00.25"),
                Cell::Binary(String::new()),
                text("2024-02-29 11:14:15.5 Europe/Berlin"),
            ],
        ];
        assert_eq!(all.taking.done().rows, expected);
    }

    #[test]
    fn l12_columns_that_do_not_fit_are_refused() {
        let numbers = |count: i32| column(4, (0..count).map(Value::Int).collect(), &[]);
        for columns in [vec![numbers(1)], vec![numbers(2), numbers(1)], vec![numbers(1), Value::Struct(vec![])]] {
            assert!(gathered(&[3, 3], &Limits::default()).add(columns).is_err());
        }
        let mut all = gathered(&[3], &Limits { bytes: 3 * size_of::<Cell>(), ..Limits::default() });
        assert_eq!(all.add(vec![numbers(5)]), Ok(5));
        assert_eq!((all.taking.count(), all.taking.is_cut()), (3, true));
    }
}
