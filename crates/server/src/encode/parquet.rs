//! Rows as a Parquet file.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use parquet::basic::{Compression, LogicalType, Repetition, Type as PhysicalType};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::Result;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::{Type, TypePtr};
use querymend_sql::{Cell, Rows};

use super::column_types::{self, ColumnType};

/// Media type of a Parquet file.
pub const MEDIA_TYPE: &str = "application/vnd.apache.parquet";

/// Encodes rows.
///
/// Parquet columns are addressed by name, so the second of two equal names becomes `name_2`.
pub fn encode(rows: &Rows, kinds: &[ColumnType]) -> Result<Vec<u8>> {
    let names = distinct_names(&rows.columns);
    let fields = names.iter().zip(kinds).map(|(name, kind)| field(name, *kind)).collect::<Result<_>>()?;
    let schema = Arc::new(Type::group_type_builder("schema").with_fields(fields).build()?);
    let properties = Arc::new(WriterProperties::builder().set_compression(Compression::SNAPPY).build());
    let mut file = Vec::new();
    let mut writer = SerializedFileWriter::new(&mut file, schema, properties)?;
    for part in column_types::batches(&rows.rows) {
        let mut group = writer.next_row_group()?;
        let mut index = 0;
        while let Some(mut column) = group.next_column()? {
            let kind = kinds.get(index).copied().unwrap_or(ColumnType::Text);
            write_column(&mut column, part, index, kind)?;
            column.close()?;
            index += 1;
        }
        group.close()?;
    }
    writer.close()?;
    Ok(file)
}

fn field(name: &str, kind: ColumnType) -> Result<TypePtr> {
    let (physical, logical) = match kind {
        ColumnType::Boolean => (PhysicalType::BOOLEAN, None),
        ColumnType::Integer => (PhysicalType::INT64, None),
        ColumnType::Float => (PhysicalType::DOUBLE, None),
        ColumnType::Binary => (PhysicalType::BYTE_ARRAY, None),
        ColumnType::Text => (PhysicalType::BYTE_ARRAY, Some(LogicalType::String)),
    };
    let column = Type::primitive_type_builder(name, physical).with_repetition(Repetition::OPTIONAL);
    Ok(Arc::new(column.with_logical_type(logical).build()?))
}

fn write_column(
    column: &mut SerializedColumnWriter<'_>,
    rows: &[Vec<Cell>],
    index: usize,
    kind: ColumnType,
) -> Result<()> {
    let cells = rows.iter().map(|row| row.get(index).unwrap_or(&Cell::Null));
    match kind {
        ColumnType::Boolean => write_values::<BoolType>(column, cells.map(column_types::boolean)),
        ColumnType::Integer => write_values::<Int64Type>(column, cells.map(column_types::integer)),
        ColumnType::Float => write_values::<DoubleType>(column, cells.map(column_types::float)),
        ColumnType::Binary => {
            write_values::<ByteArrayType>(column, cells.map(|cell| column_types::binary(cell).map(ByteArray::from)))
        }
        ColumnType::Text => {
            let bytes = |cell| column_types::text(cell).map(|text| ByteArray::from(text.into_owned().into_bytes()));
            write_values::<ByteArrayType>(column, cells.map(bytes))
        }
    }
}

/// Writes the non-null values and the definition level of every row.
fn write_values<T: DataType>(
    column: &mut SerializedColumnWriter<'_>,
    cells: impl Iterator<Item = Option<T::T>>,
) -> Result<()> {
    let mut levels = Vec::new();
    let mut present = Vec::new();
    for cell in cells {
        levels.push(i16::from(cell.is_some()));
        present.extend(cell);
    }
    column.typed::<T>().write_batch(&present, Some(&levels), None)?;
    Ok(())
}

/// Makes column names unique.
fn distinct_names(names: &[String]) -> Vec<String> {
    let given: HashSet<&String> = names.iter().collect();
    let mut seen: HashMap<&String, usize> = HashMap::new();
    let next = |name| {
        let count = seen.entry(name).or_default();
        loop {
            *count += 1;
            let own = if *count == 1 { name.clone() } else { format!("{name}_{count}") };
            // Skip suffixed names that the query itself uses for another column.
            if *count == 1 || !given.contains(&own) {
                return own;
            }
        }
    };
    names.iter().map(next).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that cannot go on must fail")]
mod tests {
    use bytes::Bytes;
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::Field;

    use super::super::column_types::tests::hostile;
    use super::*;

    fn read(rows: &Rows) -> (Vec<String>, Vec<Vec<Field>>) {
        let bytes = encode(rows, &column_types::column_types(rows)).unwrap();
        let reader = SerializedFileReader::new(Bytes::from(bytes)).unwrap();
        let schema = reader.metadata().file_metadata().schema_descr();
        let names = schema.columns().iter().map(|column| column.name().to_owned()).collect();
        let rows = reader.get_row_iter(None).unwrap();
        (names, rows.map(|row| row.unwrap().get_column_iter().map(|(_, field)| field.clone()).collect()).collect())
    }

    #[test]
    fn cells_round_trip() {
        let (names, rows) = read(&hostile());
        let expected = ["n", "n_2", "nothing", "mixed", "float", "huge", "yes", "bytes", "decimal", "", "ä\"b"];
        assert_eq!(names, expected);
        let text = |text: &str| Field::Str(text.into());
        let bytes = |bytes: &[u8]| Field::Bytes(ByteArray::from(bytes.to_vec()));
        assert_eq!(
            rows,
            [
                vec![
                    Field::Long(i64::MIN),
                    text(""),
                    Field::Null,
                    text("1"),
                    Field::Double(9_007_199_254_740_992.0),
                    text("9223372036854775807"),
                    Field::Bool(true),
                    bytes(&[0, 255]),
                    text("12345678901234567890.10"),
                    text("a\u{0}b"),
                    Field::Null,
                ],
                vec![
                    Field::Null,
                    text("ü\n\""),
                    Field::Null,
                    text("one"),
                    Field::Double(0.5),
                    text("0.5"),
                    Field::Null,
                    bytes(&[]),
                    text("3"),
                    Field::Null,
                    text("x"),
                ],
                vec![
                    Field::Long(7),
                    Field::Null,
                    Field::Null,
                    text("false"),
                    Field::Null,
                    Field::Null,
                    Field::Bool(false),
                    Field::Null,
                    Field::Null,
                    text("z"),
                    Field::Null,
                ],
            ]
        );
    }

    #[test]
    fn encodes_empty_results_and_keeps_row_order() {
        let none = Rows { columns: vec!["a".into(), "a".into()], ..Rows::default() };
        assert_eq!(read(&none), (vec!["a".to_owned(), "a_2".to_owned()], Vec::new()));
        let count = 20_000;
        let rows = (0..count).map(|n| vec![Cell::Integer(n)]).collect();
        let (_, rows) = read(&Rows { columns: vec!["n".into()], rows, truncated: false });
        assert!(rows.into_iter().eq((0..count).map(|n| vec![Field::Long(n)])));
    }

    #[test]
    fn distinct_names_do_not_collide() {
        let names = ["a", "a", "a_2", "a", "A"].map(String::from);
        assert_eq!(distinct_names(&names), ["a", "a_3", "a_2", "a_4", "A"]);
    }
}
