//! Rows as a Parquet file.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use parquet::basic::{Compression, LogicalType, Repetition, Type as Physical};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::Result;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::{Type, TypePtr};
use querymend_sql::{Cell, Rows};

use super::columns::{self, Kind};

/// What it is called in HTTP.
pub const TYPE: &str = "application/vnd.apache.parquet";

/// Writes rows. Columns of Parquet are found by their names: of two with the same name the second becomes `name_2`.
pub fn written(rows: &Rows, kinds: &[Kind]) -> Result<Vec<u8>> {
    let names = distinct(&rows.columns);
    let fields = names.iter().zip(kinds).map(|(name, kind)| field(name, *kind)).collect::<Result<_>>()?;
    let schema = Arc::new(Type::group_type_builder("schema").with_fields(fields).build()?);
    let properties = Arc::new(WriterProperties::builder().set_compression(Compression::SNAPPY).build());
    let mut file = Vec::new();
    let mut writer = SerializedFileWriter::new(&mut file, schema, properties)?;
    for part in columns::parts(&rows.rows) {
        let mut group = writer.next_row_group()?;
        let mut place = 0;
        while let Some(mut column) = group.next_column()? {
            let kind = kinds.get(place).copied().unwrap_or(Kind::Text);
            write(&mut column, part, place, kind)?;
            column.close()?;
            place += 1;
        }
        group.close()?;
    }
    writer.close()?;
    Ok(file)
}

fn field(name: &str, kind: Kind) -> Result<TypePtr> {
    let (physical, logical) = match kind {
        Kind::Boolean => (Physical::BOOLEAN, None),
        Kind::Integer => (Physical::INT64, None),
        Kind::Float => (Physical::DOUBLE, None),
        Kind::Binary => (Physical::BYTE_ARRAY, None),
        Kind::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
    };
    let column = Type::primitive_type_builder(name, physical).with_repetition(Repetition::OPTIONAL);
    Ok(Arc::new(column.with_logical_type(logical).build()?))
}

fn write(column: &mut SerializedColumnWriter<'_>, rows: &[Vec<Cell>], place: usize, kind: Kind) -> Result<()> {
    let cells = rows.iter().map(|row| row.get(place).unwrap_or(&Cell::Null));
    match kind {
        Kind::Boolean => values::<BoolType>(column, cells.map(columns::boolean)),
        Kind::Integer => values::<Int64Type>(column, cells.map(columns::integer)),
        Kind::Float => values::<DoubleType>(column, cells.map(columns::float)),
        Kind::Binary => values::<ByteArrayType>(column, cells.map(|cell| columns::binary(cell).map(ByteArray::from))),
        Kind::Text => {
            let bytes = |cell| columns::text(cell).map(|text| ByteArray::from(text.into_owned().into_bytes()));
            values::<ByteArrayType>(column, cells.map(bytes))
        }
    }
}

/// Values, and for each row whether it has one.
fn values<T: DataType>(
    column: &mut SerializedColumnWriter<'_>,
    cells: impl Iterator<Item = Option<T::T>>,
) -> Result<()> {
    let mut levels = Vec::new();
    let mut there = Vec::new();
    for cell in cells {
        levels.push(i16::from(cell.is_some()));
        there.extend(cell);
    }
    column.typed::<T>().write_batch(&there, Some(&levels), None)?;
    Ok(())
}

/// Names of which no two are the same.
fn distinct(names: &[String]) -> Vec<String> {
    let given: HashSet<&String> = names.iter().collect();
    let mut seen: HashMap<&String, usize> = HashMap::new();
    let next = |name| {
        let count = seen.entry(name).or_default();
        loop {
            *count += 1;
            let own = if *count == 1 { name.clone() } else { format!("{name}_{count}") };
            // A name that the query itself gave to another column is not taken from it.
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

    use super::super::columns::tests::hostile;
    use super::*;

    fn read(rows: &Rows) -> (Vec<String>, Vec<Vec<Field>>) {
        let bytes = written(rows, &columns::kinds(rows)).unwrap();
        let reader = SerializedFileReader::new(Bytes::from(bytes)).unwrap();
        let schema = reader.metadata().file_metadata().schema_descr();
        let names = schema.columns().iter().map(|column| column.name().to_owned()).collect();
        let rows = reader.get_row_iter(None).unwrap();
        (names, rows.map(|row| row.unwrap().get_column_iter().map(|(_, field)| field.clone()).collect()).collect())
    }

    #[test]
    fn every_cell_is_read_back() {
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
    fn results_without_rows_are_results_and_many_rows_come_in_order() {
        let none = Rows { columns: vec!["a".into(), "a".into()], ..Rows::default() };
        assert_eq!(read(&none), (vec!["a".to_owned(), "a_2".to_owned()], Vec::new()));
        let count = 20_000;
        let rows = (0..count).map(|n| vec![Cell::Integer(n)]).collect();
        let (_, rows) = read(&Rows { columns: vec!["n".into()], rows, truncated: false });
        assert!(rows.into_iter().eq((0..count).map(|n| vec![Field::Long(n)])));
    }

    #[test]
    fn names_are_made_distinct_without_taking_one_from_another() {
        let names = ["a", "a", "a_2", "a", "A"].map(String::from);
        assert_eq!(distinct(&names), ["a", "a_3", "a_2", "a_4", "A"]);
    }
}
