//! Files as a database.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int32Type, Int64Type};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use querymend_engine::{CancelFlag, Engine, Error, Limits, open};
use querymend_sql::Cell;

use crate::support::{approve, ask, in_time, limits, long_limits};

fn text(text: &str) -> Cell {
    Cell::Text(text.into())
}

/// The table and its columns with their types, as the engine tells them.
async fn columns(engine: &dyn Engine, table: &str) -> Vec<String> {
    let schema = engine.schema().await.unwrap();
    let table = schema.table(table).unwrap_or_else(|| panic!("no table {table}"));
    table.columns.iter().map(|column| format!("{} {}", column.name, column.type_name)).collect()
}

async fn rows(engine: &dyn Engine, sql: &str) -> Vec<Vec<Cell>> {
    ask(engine, sql).await.unwrap().rows
}

#[tokio::test]
async fn infers_csv_types_from_all_values() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("orders.csv");
    let lines = [
        "\u{feff}id;zip; amount ;share;paid;day;at;note",
        "1;01067;1,50;0.5;TRUE;2024-02-29;2024-02-29T10:00;\"a;\"\"b\"\"\nc\"",
        "2;50667;2;1;false;;2024-03-01 11:30:00;",
        "",
        "3;10115;;;;2024-12-31;;\"\"",
    ];
    fs::write(&file, lines.join("\n")).unwrap();
    let engine = open(file.to_str().unwrap()).unwrap();
    assert_eq!(engine.dialect().name, "sqlite");
    assert_eq!(
        columns(&*engine, "orders").await,
        [
            "id INTEGER",
            "zip TEXT",
            "amount TEXT",
            "share REAL",
            "paid BOOLEAN",
            "day DATE",
            "at TIMESTAMP",
            "note TEXT"
        ]
    );
    assert_eq!(
        rows(&*engine, "SELECT * FROM orders ORDER BY id").await,
        [
            vec![
                Cell::Integer(1),
                text("01067"),
                text("1,50"),
                Cell::Number(0.5),
                Cell::Integer(1),
                text("2024-02-29"),
                text("2024-02-29T10:00"),
                text("a;\"b\"\nc"),
            ],
            vec![
                Cell::Integer(2),
                text("50667"),
                text("2"),
                Cell::Number(1.0),
                Cell::Integer(0),
                Cell::Null,
                text("2024-03-01 11:30:00"),
                Cell::Null,
            ],
            vec![
                Cell::Integer(3),
                text("10115"),
                Cell::Null,
                Cell::Null,
                Cell::Null,
                text("2024-12-31"),
                Cell::Null,
                Cell::Null,
            ],
        ]
    );
    // The first column holds no number twice and is called as keys are.
    assert_eq!(engine.schema().await.unwrap().table("orders").unwrap().unique, [["id"]]);
}

#[tokio::test]
async fn keeps_all_cells_of_headerless_and_ragged_files() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("bare.tsv"), "1\tBonn\n2\tKöln\textra\n3\n").unwrap();
    fs::write(folder.path().join("twice.csv"), "name,Name,\nx,y,z\n").unwrap();
    fs::write(folder.path().join("numbered.csv"), ",a,b\n0,1,2\n1,3,4\n").unwrap();
    fs::write(folder.path().join("latin.csv"), b"name,n\nM\xfcller,1\n").unwrap();
    fs::write(folder.path().join("empty.csv"), "").unwrap();
    fs::write(folder.path().join("head only.csv"), "a,b\n").unwrap();
    let wide: Vec<u8> = "\u{feff}stadt\tzahl\nKöln\t5\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    fs::write(folder.path().join("wide.csv"), wide).unwrap();
    let engine = open(folder.path().to_str().unwrap()).unwrap();
    assert_eq!(columns(&*engine, "bare").await, ["column_1 INTEGER", "column_2 TEXT", "column_3 TEXT"]);
    assert_eq!(
        rows(&*engine, "SELECT * FROM bare WHERE column_1 > 1").await,
        [[Cell::Integer(2), text("Köln"), text("extra")], [Cell::Integer(3), Cell::Null, Cell::Null]]
    );
    // Some programs leave out the name of a row's number.
    assert_eq!(columns(&*engine, "numbered").await, ["column_1 INTEGER", "a INTEGER", "b INTEGER"]);
    // Names that are the same are no names.
    assert_eq!(columns(&*engine, "twice").await, ["column_1 TEXT", "column_2 TEXT", "column_3 TEXT"]);
    assert_eq!(rows(&*engine, "SELECT name FROM latin").await, [[text("Müller")]]);
    assert_eq!(rows(&*engine, "SELECT zahl FROM wide WHERE stadt = 'Köln'").await, [[Cell::Integer(5)]]);
    assert_eq!(columns(&*engine, "head only").await, ["a TEXT", "b TEXT"]);
    assert!(engine.schema().await.unwrap().table("empty").is_none());
}

#[tokio::test]
async fn reads_json_objects_as_rows() {
    let folder = tempfile::tempdir().unwrap();
    let lines = "{\"id\": 1, \"tags\": [\"a\", 2], \"at\": \"2024-02-29\"}\n\n{\"id\": 2.5, \"more\": true, \"big\": 18446744073709551615}\n";
    fs::write(folder.path().join("events.jsonl"), lines).unwrap();
    fs::write(folder.path().join("list.json"), "[{\"a\": 1}, {\"a\": \"x\"}, {\"a\": null}]").unwrap();
    let engine = open(folder.path().to_str().unwrap()).unwrap();
    assert_eq!(columns(&*engine, "events").await, ["id REAL", "tags TEXT", "at DATE", "more BOOLEAN", "big TEXT"]);
    assert_eq!(
        rows(&*engine, "SELECT * FROM events ORDER BY id").await,
        [
            vec![Cell::Number(1.0), text("[\"a\",2]"), text("2024-02-29"), Cell::Null, Cell::Null],
            vec![Cell::Number(2.5), Cell::Null, Cell::Null, Cell::Integer(1), text("18446744073709551615")],
        ]
    );
    assert_eq!(rows(&*engine, "SELECT a FROM list").await, [[text("1")], [text("x")], [Cell::Null]]);
}

fn parquet(path: &Path) {
    let message =
        "message m { REQUIRED INT64 id; REQUIRED BYTE_ARRAY name (UTF8); OPTIONAL DOUBLE w; REQUIRED INT32 d (DATE);
        REQUIRED INT64 t (TIMESTAMP_MICROS); REQUIRED INT32 price (DECIMAL(9,2)); }";
    let schema = Arc::new(parse_message_type(message).unwrap());
    let mut writer = SerializedFileWriter::new(File::create(path).unwrap(), schema, Default::default()).unwrap();
    let mut group = writer.next_row_group().unwrap();
    let mut number = 0;
    while let Some(mut column) = group.next_column().unwrap() {
        match number {
            0 => column.typed::<Int64Type>().write_batch(&[1, i64::MAX], None, None).map(drop),
            1 => {
                let names = [ByteArray::from("one"), ByteArray::from("日本")];
                column.typed::<ByteArrayType>().write_batch(&names, None, None).map(drop)
            }
            2 => column.typed::<DoubleType>().write_batch(&[0.1], Some(&[1, 0]), None).map(drop),
            3 => column.typed::<Int32Type>().write_batch(&[19_782, -1], None, None).map(drop),
            4 => column.typed::<Int64Type>().write_batch(&[1_709_212_455_678_000, 0], None, None).map(drop),
            _ => column.typed::<Int32Type>().write_batch(&[1_250, -5], None, None).map(drop),
        }
        .unwrap();
        column.close().unwrap();
        number += 1;
    }
    group.close().unwrap();
    writer.close().unwrap();
}

#[tokio::test]
async fn reads_parquet_with_its_types() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("sales.parquet");
    parquet(&file);
    let engine = open(&format!("file:{}", file.display())).unwrap();
    assert_eq!(
        columns(&*engine, "sales").await,
        ["id INTEGER", "name TEXT", "w REAL", "d DATE", "t TIMESTAMP", "price REAL"]
    );
    assert_eq!(
        rows(&*engine, "SELECT * FROM sales").await,
        [
            vec![
                Cell::Integer(1),
                text("one"),
                Cell::Number(0.1),
                text("2024-02-29"),
                text("2024-02-29 13:14:15.678"),
                Cell::Number(12.5),
            ],
            vec![
                Cell::Integer(i64::MAX),
                text("日本"),
                Cell::Null,
                text("1969-12-31"),
                text("1970-01-01 00:00:00"),
                Cell::Number(-0.05),
            ],
        ]
    );
}

/// A workbook with sheets, each given by the XML of its rows.
fn workbook(path: &Path, sheets: &[(&str, &str)]) {
    let mut zip = zip::ZipWriter::new(File::create(path).unwrap());
    let mut put = |name: &str, text: String| {
        zip.start_file(name, zip::write::SimpleFileOptions::default()).unwrap();
        zip.write_all(text.as_bytes()).unwrap();
    };
    let main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main";
    let office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships";
    let package = "http://schemas.openxmlformats.org/package/2006";
    let numbered = |form: &dyn Fn(usize, &str) -> String| -> String {
        sheets.iter().enumerate().map(|(i, (name, _))| form(i + 1, name)).collect()
    };
    put(
        "[Content_Types].xml",
        format!(
            "<Types xmlns=\"{package}/content-types\"><Default Extension=\"xml\" ContentType=\"application/xml\"/></Types>"
        ),
    );
    put(
        "_rels/.rels",
        format!(
            "<Relationships xmlns=\"{package}/relationships\"><Relationship Id=\"r\" Type=\"{office}/officeDocument\" Target=\"xl/workbook.xml\"/></Relationships>"
        ),
    );
    let named = numbered(&|i, name| format!("<sheet name=\"{name}\" sheetId=\"{i}\" r:id=\"r{i}\"/>"));
    put(
        "xl/workbook.xml",
        format!("<workbook xmlns=\"{main}\" xmlns:r=\"{office}\"><sheets>{named}</sheets></workbook>"),
    );
    let related = numbered(&|i, _| {
        format!("<Relationship Id=\"r{i}\" Type=\"{office}/worksheet\" Target=\"worksheets/sheet{i}.xml\"/>")
    });
    put(
        "xl/_rels/workbook.xml.rels",
        format!("<Relationships xmlns=\"{package}/relationships\">{related}</Relationships>"),
    );
    put(
        "xl/styles.xml",
        format!(
            "<styleSheet xmlns=\"{main}\"><cellXfs><xf numFmtId=\"0\"/><xf numFmtId=\"14\"/></cellXfs></styleSheet>"
        ),
    );
    for (i, (_, rows)) in sheets.iter().enumerate() {
        let name = format!("xl/worksheets/sheet{}.xml", i + 1);
        put(&name, format!("<worksheet xmlns=\"{main}\"><sheetData>{rows}</sheetData></worksheet>"));
    }
    zip.finish().unwrap();
}

const STAFF: &str = "<row r=\"1\"><c r=\"A1\" t=\"inlineStr\"><is><t>name</t></is></c><c r=\"B1\" t=\"inlineStr\"><is><t>since</t></is></c>\
    <c r=\"C1\" t=\"inlineStr\"><is><t>pay</t></is></c></row>\
    <row r=\"3\"><c r=\"A3\" t=\"inlineStr\"><is><t>Ana</t></is></c><c r=\"B3\" s=\"1\"><v>45351</v></c><c r=\"C3\"><v>10</v></c></row>\
    <row r=\"4\"><c r=\"A4\" t=\"inlineStr\"><is><t>Bo</t></is></c><c r=\"C4\"><v>2.5</v></c></row>";

#[tokio::test]
async fn reads_excel_sheets_as_tables() {
    let folder = tempfile::tempdir().unwrap();
    let one = folder.path().join("staff.xlsx");
    workbook(&one, &[("Sheet1", STAFF), ("Empty", "")]);
    let engine = open(one.to_str().unwrap()).unwrap();
    assert_eq!(columns(&*engine, "staff").await, ["name TEXT", "since DATE", "pay REAL"]);
    assert_eq!(
        rows(&*engine, "SELECT * FROM staff").await,
        [[text("Ana"), text("2024-02-29"), Cell::Number(10.0)], [text("Bo"), Cell::Null, Cell::Number(2.5)]]
    );
    let two = folder.path().join("book.xlsx");
    workbook(&two, &[("Staff 2024", STAFF), ("Other", STAFF)]);
    let engine = open(two.to_str().unwrap()).unwrap();
    let schema = engine.schema().await.unwrap();
    let names: Vec<&str> = schema.tables().iter().map(|table| table.name.as_str()).collect();
    assert_eq!(names, ["book_Staff 2024", "book_Other"]);
}

#[tokio::test]
async fn reports_files_of_another_format_without_a_crash() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["a.parquet", "a.xlsx", "a.json", "a.jsonl"] {
        for bytes in [
            &b""[..],
            b"PK\x03\x04",
            b"PAR1....PAR1",
            b"[1, 2]",
            b"{\"a\": ",
            b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1",
            &[0; 4096],
        ] {
            let file = folder.path().join(name);
            fs::write(&file, bytes).unwrap();
            let outcome = open(file.to_str().unwrap()).unwrap().test_connection().await;
            // No line at all is an empty table for JSON.
            if bytes.is_empty() && name.contains("json") {
                assert_eq!(outcome, Ok(()), "{name}");
                continue;
            }
            let error = outcome.err().unwrap_or_else(|| panic!("{name}: {bytes:?}"));
            assert!(error.to_string().contains(name) && error.hint().is_some(), "{name}: {error}");
        }
    }
    // Two cells that make a sheet of seventeen billion.
    let far = "<row r=\"1\"><c r=\"A1\"><v>1</v></c></row><row r=\"1048576\"><c r=\"XFD1048576\"><v>1</v></c></row>";
    let file = folder.path().join("far.xlsx");
    workbook(&file, &[("far", far)]);
    let error = open(file.to_str().unwrap()).unwrap().test_connection().await.unwrap_err();
    assert!(error.to_string().contains("17179869184"), "{error}");
    // A sheet each of which is allowed, and all together are not.
    let wide = "<row r=\"1\"><c r=\"A1\"><v>1</v></c></row><row r=\"1000000\"><c r=\"J1000000\"><v>1</v></c></row>";
    let many: Vec<String> = (0..5).map(|i| format!("s{i}")).collect();
    let sheets: Vec<(&str, &str)> = many.iter().map(|name| (name.as_str(), wide)).collect();
    workbook(&file, &sheets);
    assert!(open(file.to_str().unwrap()).unwrap().test_connection().await.is_err());
}

#[tokio::test]
async fn rejects_files_over_the_limits_before_allocation() {
    let folder = tempfile::tempdir().unwrap();
    let refuse = async |name: &str, said: &str| {
        let error = open(folder.path().join(name).to_str().unwrap()).unwrap().test_connection().await.unwrap_err();
        assert!(error.to_string().contains(said), "{name}: {error}");
    };
    // More texts than a file of this size could hold.
    let mut zip = zip::ZipWriter::new(File::create(folder.path().join("texts.xlsx")).unwrap());
    zip.start_file("xl/sharedStrings.xml", zip::write::SimpleFileOptions::default()).unwrap();
    zip.write_all(b"<sst uniqueCount=\"10000000000000\"><si><t>a</t></si></sst>").unwrap();
    zip.finish().unwrap();
    refuse("texts.xlsx", "more strings").await;
    // Columns within columns within columns: the compact form of the schema, written by hand.
    let depth = 200_000_u32;
    let mut footer = vec![0x15, 0x02, 0x19, 0xfc];
    let mut count = depth;
    while count >= 0x80 {
        footer.push((count & 0x7f) as u8 | 0x80);
        count >>= 7;
    }
    footer.push(count as u8);
    for _ in 0..depth {
        footer.extend([0x48, 0x01, b'g', 0x15, 0x02, 0x00]);
    }
    footer.push(0);
    let mut file = b"PAR1".to_vec();
    let length = u32::try_from(footer.len()).unwrap();
    file.extend(footer);
    file.extend(length.to_le_bytes());
    file.extend(b"PAR1");
    fs::write(folder.path().join("deep.parquet"), file).unwrap();
    refuse("deep.parquet", "nested too deeply").await;
    let names: Vec<String> = (0..40_000).map(|i| format!("c{i}")).collect();
    fs::write(folder.path().join("wide.csv"), format!("{}\n{}1\n", names.join(","), "1,".repeat(39_999))).unwrap();
    refuse("wide.csv", "too many columns").await;
    let keys: Vec<String> = (0..2_000).map(|i| format!("{{\"k{i}\": 1}}")).collect();
    fs::write(folder.path().join("keys.jsonl"), keys.join("\n")).unwrap();
    refuse("keys.jsonl", "too many columns").await;
    fs::write(folder.path().join("open.csv"), format!("a,b\n1,\"{}", "x".repeat(70 << 20))).unwrap();
    refuse("open.csv", "closing quote").await;
}

#[tokio::test]
async fn rereads_changed_files_and_writes_none() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("n.csv");
    fs::write(&file, "n\n1\n2\n").unwrap();
    let engine = open(folder.path().to_str().unwrap()).unwrap();
    assert_eq!(rows(&*engine, "SELECT sum(n) FROM n").await, [[Cell::Integer(3)]]);
    fs::write(&file, "n\n1\n2\n30\n").unwrap();
    assert_eq!(rows(&*engine, "SELECT sum(n) FROM n").await, [[Cell::Integer(33)]]);
    fs::write(folder.path().join("m.csv"), "m\n5\n").unwrap();
    assert_eq!(rows(&*engine, "SELECT m FROM m").await, [[Cell::Integer(5)]]);
    fs::remove_file(&file).unwrap();
    assert!(ask(&*engine, "SELECT n FROM n").await.is_err());
    let mut left: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, ["m.csv"]);
}

#[tokio::test]
async fn file_loading_counts_toward_the_query_deadline() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("n.csv");
    let lines: String = (0..100_000).map(|i| format!("{i},name of {i}\n")).collect();
    fs::write(&file, format!("id,name\n{lines}")).unwrap();
    let address = folder.path().to_str().unwrap();
    let engine = open(address).unwrap();
    let query = approve(&*engine, "SELECT count(*) FROM n");
    let short = Limits { time: Duration::from_millis(5), ..Limits::default() };
    let outcome = engine.execute(&query, &short, &CancelFlag::new()).await;
    assert_eq!(outcome, Err(Error::TimedOut { after: short.time }));
    // Whoever has more time gets the answer.
    assert_eq!(rows(&*engine, "SELECT count(*) FROM n").await, [[Cell::Integer(100_000)]]);
    let lookup = Limits { time: limits().time, ..Limits::lookup(5) };
    assert!(engine.execute(&query, &lookup, &CancelFlag::new()).await.is_ok());

    let (engine, cancel, limits) = (open(address).unwrap(), CancelFlag::new(), long_limits());
    // Reading has begun when the other is polled.
    let asked = async { tokio::join!(engine.execute(&query, &limits, &cancel), async { cancel.cancel() }).0 };
    assert_eq!(in_time("the cancel", asked).await, Err(Error::Cancelled));
    assert_eq!(rows(&*engine, "SELECT count(*) FROM n").await, [[Cell::Integer(100_000)]]);
}

#[test]
fn lists_supported_formats_for_an_empty_folder() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("shop.db"), "").unwrap();
    let error = open(&format!("file:{}", folder.path().display())).err().unwrap();
    assert!(error.to_string().contains("without any CSV, TSV, JSON, JSON lines, Parquet or Excel file"), "{error}");
}
