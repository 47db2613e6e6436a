//! Rows as an Arrow IPC stream.

use std::sync::Arc;

use arrow_array::{
    ArrayRef, BinaryArray, BooleanArray, Float64Array, Int64Array, RecordBatch, RecordBatchOptions, StringArray,
};
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{ArrowError, DataType, Field, Schema};
use querymend_sql::{Cell, Rows};

use super::column_types::{self, ColumnType};

/// Media type of an Arrow IPC stream.
pub const MEDIA_TYPE: &str = "application/vnd.apache.arrow.stream";

/// Encodes rows. Column names are those of the query and may repeat.
pub fn encode(rows: &Rows, kinds: &[ColumnType]) -> Result<Vec<u8>, ArrowError> {
    let field = |(name, kind): (&String, &ColumnType)| Field::new(name, data_type(*kind), true);
    let schema = Arc::new(Schema::new(rows.columns.iter().zip(kinds).map(field).collect::<Vec<_>>()));
    let mut writer = StreamWriter::try_new(Vec::new(), &schema)?;
    for part in column_types::batches(&rows.rows) {
        let arrays = kinds.iter().enumerate().map(|(index, kind)| array(part, index, *kind)).collect();
        // The row count is explicit because a result may have rows but no columns.
        let options = RecordBatchOptions::new().with_row_count(Some(part.len()));
        writer.write(&RecordBatch::try_new_with_options(Arc::clone(&schema), arrays, &options)?)?;
    }
    writer.into_inner()
}

fn data_type(kind: ColumnType) -> DataType {
    match kind {
        ColumnType::Boolean => DataType::Boolean,
        ColumnType::Integer => DataType::Int64,
        ColumnType::Float => DataType::Float64,
        ColumnType::Binary => DataType::Binary,
        ColumnType::Text => DataType::Utf8,
    }
}

fn array(rows: &[Vec<Cell>], index: usize, kind: ColumnType) -> ArrayRef {
    let cells = rows.iter().map(|row| row.get(index).unwrap_or(&Cell::Null));
    match kind {
        ColumnType::Boolean => Arc::new(cells.map(column_types::boolean).collect::<BooleanArray>()),
        ColumnType::Integer => Arc::new(cells.map(column_types::integer).collect::<Int64Array>()),
        ColumnType::Float => Arc::new(cells.map(column_types::float).collect::<Float64Array>()),
        ColumnType::Binary => Arc::new(cells.map(column_types::binary).collect::<BinaryArray>()),
        ColumnType::Text => Arc::new(cells.map(column_types::text).collect::<StringArray>()),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that cannot go on must fail")]
mod tests {
    use arrow_array::Array;
    use arrow_array::cast::AsArray;
    use arrow_array::types::{Float64Type, Int64Type};
    use arrow_ipc::reader::StreamReader;

    use super::super::column_types::tests::hostile;
    use super::*;

    fn read(rows: &Rows) -> (Arc<Schema>, Vec<RecordBatch>) {
        let bytes = encode(rows, &column_types::column_types(rows)).unwrap();
        let reader = StreamReader::try_new(&bytes[..], None).unwrap();
        (reader.schema(), reader.map(Result::unwrap).collect())
    }

    #[test]
    fn cells_round_trip() {
        let rows = hostile();
        let (schema, batches) = read(&rows);
        let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
        assert_eq!(names, rows.columns);
        let [batch] = &batches[..] else { unreachable!("one part: {}", batches.len()) };
        let texts = |index: usize| batch.column(index).as_string::<i32>().iter().collect::<Vec<_>>();
        let integers = batch.column(0).as_primitive::<Int64Type>().iter().collect::<Vec<_>>();
        assert_eq!(integers, [Some(i64::MIN), None, Some(7)]);
        assert_eq!(texts(1), [Some(""), Some("ü\n\""), None]);
        assert_eq!(texts(2), [None; 3]);
        assert_eq!(texts(3), [Some("1"), Some("one"), Some("false")]);
        let floats = batch.column(4).as_primitive::<Float64Type>().iter().collect::<Vec<_>>();
        assert_eq!(floats, [Some(9_007_199_254_740_992.0), Some(0.5), None]);
        assert_eq!(texts(5), [Some("9223372036854775807"), Some("0.5"), None]);
        let truths = batch.column(6).as_boolean().iter().collect::<Vec<_>>();
        assert_eq!(truths, [Some(true), None, Some(false)]);
        let bytes = batch.column(7).as_binary::<i32>().iter().collect::<Vec<_>>();
        assert_eq!(bytes, [Some(&[0, 255][..]), Some(&[][..]), None]);
        assert_eq!(texts(8), [Some("12345678901234567890.10"), Some("3"), None]);
        assert_eq!(texts(9), [Some("a\u{0}b"), None, Some("z")]);
    }

    #[test]
    fn encodes_results_without_rows_or_columns() {
        let none = Rows { columns: vec!["a".into(), "a".into()], ..Rows::default() };
        let (schema, batches) = read(&none);
        assert_eq!((schema.fields().len(), batches.len()), (2, 0));
        let bare = Rows { rows: vec![Vec::new(); 3], ..Rows::default() };
        let (schema, batches) = read(&bare);
        assert_eq!((schema.fields().len(), batches.iter().map(RecordBatch::num_rows).sum::<usize>()), (0, 3));
    }

    #[test]
    fn encodes_many_rows_as_ordered_batches() {
        let count = 20_000;
        let rows = (0..count).map(|n| vec![Cell::Integer(n)]).collect();
        let (_, batches) = read(&Rows { columns: vec!["n".into()], rows, truncated: false });
        assert!(batches.len() > 1);
        let all = batches.iter().flat_map(|batch| batch.column(0).as_primitive::<Int64Type>().values().to_vec());
        assert!(all.eq(0..count));
        assert!(batches.iter().all(|batch| batch.column(0).null_count() == 0));
    }
}
