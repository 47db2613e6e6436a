//! Converts the column-oriented results of a server to rows of cells.

use querymend_net::to_hex;
use querymend_sql::Cell;

use super::hive_error::HiveError;
use super::thrift_value::ThriftValue;
use crate::Limits;
use crate::row_collector::RowCollector;

/// Thrift type ids of values that need conversion.
const TIMESTAMP: i64 = 8;
const BINARY: i64 = 9;
const DECIMAL: i64 = 15;
const TIMESTAMP_TZ: i64 = 22;

/// Rows fetched so far, within the limits.
pub(super) struct FetchedRows {
    pub(super) collector: RowCollector,
    column_types: Vec<i64>,
}

/// One column of a batch of rows.
struct ColumnBatch {
    values: std::vec::IntoIter<ThriftValue>,
    nulls: Vec<u8>,
    type_id: i64,
}

impl FetchedRows {
    pub(super) fn new(columns: Vec<(String, i64)>, limits: &Limits) -> Self {
        let (columns, kinds) = columns.into_iter().unzip();
        Self { collector: RowCollector::new(columns, limits), column_types: kinds }
    }

    /// Appends a batch of columns within the limits. Returns the number of rows in the batch.
    pub(super) fn append_batch(&mut self, columns: Vec<ThriftValue>) -> Result<usize, HiveError> {
        let invalid_response = |what: &str| HiveError::InvalidResponse(what.to_string());
        let mut read = Vec::with_capacity(columns.len());
        for (column, kind) in columns.into_iter().zip(&self.column_types) {
            let (_, column) = column.take_union_field().ok_or_else(|| invalid_response("a column without values"))?;
            let nulls = match column.field(2) {
                Some(ThriftValue::Bytes(nulls)) => nulls.clone(),
                _ => Vec::new(),
            };
            let values = column.take_field(1).map(ThriftValue::into_list).unwrap_or_default().into_iter();
            read.push(ColumnBatch { values, nulls, type_id: *kind });
        }
        let count = read.first().map_or(0, |column| column.values.len());
        if count > 0 && read.len() != self.column_types.len() {
            return Err(invalid_response("rows with other columns than declared"));
        }
        if read.iter().any(|column| column.values.len() != count) {
            return Err(invalid_response("columns of different lengths"));
        }
        for row in 0..count {
            let mut cells = Vec::with_capacity(read.len());
            for column in &mut read {
                let is_null = column.nulls.get(row / 8).is_some_and(|bits| bits >> (row % 8) & 1 == 1);
                let value = column.values.next().ok_or_else(|| invalid_response("columns of different lengths"))?;
                cells.push(if is_null { Cell::Null } else { to_cell(value, column.type_id) });
            }
            if !self.collector.push(cells) {
                break;
            }
        }
        Ok(count)
    }
}

fn to_cell(value: ThriftValue, type_id: i64) -> Cell {
    match value {
        ThriftValue::Bool(value) => Cell::Boolean(value),
        ThriftValue::Double(number) => Cell::Number(number),
        ThriftValue::Bytes(bytes) if type_id == BINARY => Cell::Binary(to_hex(&bytes)),
        ThriftValue::Bytes(bytes) => {
            let text =
                String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
            match type_id {
                DECIMAL => Cell::Decimal(text),
                TIMESTAMP => Cell::Text(trim_fraction(&text).to_string()),
                TIMESTAMP_TZ => Cell::Text(normalize_zone(&text)),
                _ => Cell::Text(text),
            }
        }
        other => other.as_i64().map_or(Cell::Null, Cell::Integer),
    }
}

/// Removes trailing zeros from the fraction of a timestamp. Hive always writes a fraction.
fn trim_fraction(moment: &str) -> &str {
    match moment.split_once('.') {
        Some((_, fraction)) if fraction.bytes().all(|c| c.is_ascii_digit()) => {
            moment.trim_end_matches('0').trim_end_matches('.')
        }
        _ => moment,
    }
}

/// Replaces a UTC suffix by an offset. Hive appends the name of the time zone, and sessions use
/// UTC.
fn normalize_zone(moment: &str) -> String {
    match moment.strip_suffix(" UTC").or_else(|| moment.strip_suffix(" Z")) {
        Some(moment) => format!("{}+00:00", trim_fraction(moment)),
        None => moment.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use std::mem::size_of;

    use super::*;

    fn column(kind: i16, values: Vec<ThriftValue>, nulls: &[u8]) -> ThriftValue {
        let inner = ThriftValue::Struct(vec![(1, ThriftValue::List(values)), (2, ThriftValue::Bytes(nulls.to_vec()))]);
        ThriftValue::Struct(vec![(kind, inner)])
    }

    fn gathered(kinds: &[i64], limits: &Limits) -> FetchedRows {
        FetchedRows::new(kinds.iter().map(|kind| (kind.to_string(), *kind)).collect(), limits)
    }

    #[test]
    fn converts_columns_to_rows() {
        let mut all = gathered(&[0, 15, 8, 9, 22], &Limits::default());
        let texts = |texts: [&str; 2]| texts.iter().map(|text| ThriftValue::from_text(text)).collect::<Vec<_>>();
        let came = all.append_batch(vec![
            column(1, vec![ThriftValue::Bool(true), ThriftValue::Bool(false)], &[0b10]),
            column(7, texts(["12345678901234567890.50", "0.10"]), &[0]),
            column(7, texts(["2024-02-29 13:14:15.0", "2024-02-29 10:00:00.250"]), &[]),
            column(8, vec![ThriftValue::Bytes(vec![0x0f, 0xa0]), ThriftValue::Bytes(vec![])], &[]),
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
        assert_eq!(all.collector.into_rows().rows, expected);
    }

    #[test]
    fn rejects_columns_of_unequal_length() {
        let numbers = |count: i32| column(4, (0..count).map(ThriftValue::Int).collect(), &[]);
        for columns in [vec![numbers(1)], vec![numbers(2), numbers(1)], vec![numbers(1), ThriftValue::Struct(vec![])]] {
            assert!(gathered(&[3, 3], &Limits::default()).append_batch(columns).is_err());
        }
        let mut all = gathered(&[3], &Limits { bytes: 3 * size_of::<Cell>(), ..Limits::default() });
        assert_eq!(all.append_batch(vec![numbers(5)]), Ok(5));
        assert_eq!((all.collector.row_count(), all.collector.is_truncated()), (3, true));
    }
}
