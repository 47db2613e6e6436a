//! Fuzzes the file readers: an error or rows, no panic, and memory bounded by the file's size.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use ::parquet::basic::Compression;
use ::parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int32Type, Int64Type};
use ::parquet::file::properties::WriterProperties;
use ::parquet::file::writer::SerializedFileWriter;
use ::parquet::schema::parser::parse_message_type;
use querymend_testing::{FuzzTarget, mutate_bytes, mutate_text};

use super::table_source::{RawValue, TableSource};
use super::{csv, excel, json, parquet};
use crate::Error;
use crate::fuzz::assert_peak_memory;

/// Reads a file completely, twice, as loading does.
fn read_all(sheets: Result<Vec<Box<dyn TableSource>>, Error>) {
    for mut sheet in sheets.into_iter().flatten() {
        for _ in 0..2 {
            drop(sheet.column_names());
            let mut rows = 0_u64;
            // No corrupted file here can have that many rows: a reader that returns more would
            // never stop.
            let each = &mut |_: &[RawValue<'_>]| {
                rows += 1;
                if rows > 1_000_000 { Err(Error::Cancelled) } else { Ok(()) }
            };
            drop(sheet.for_each_row(each));
        }
    }
}

fn parquet_file(compression: Compression) -> Vec<u8> {
    let message =
        "message m { REQUIRED INT64 id; REQUIRED BYTE_ARRAY name (UTF8); OPTIONAL DOUBLE w; REQUIRED INT32 d (DATE);
        REQUIRED INT64 t (TIMESTAMP_MICROS); REQUIRED INT32 price (DECIMAL(9,2)); }";
    let schema = Arc::new(parse_message_type(message).unwrap());
    let properties = Arc::new(WriterProperties::builder().set_compression(compression).build());
    let mut out = Vec::new();
    let mut writer = SerializedFileWriter::new(&mut out, schema, properties).unwrap();
    let mut group = writer.next_row_group().unwrap();
    for number in 0.. {
        let Some(mut column) = group.next_column().unwrap() else { break };
        match number {
            0 | 4 => column.typed::<Int64Type>().write_batch(&[1, i64::MAX], None, None),
            1 => column.typed::<ByteArrayType>().write_batch(
                &[ByteArray::from("one"), ByteArray::from("日本")],
                None,
                None,
            ),
            2 => column.typed::<DoubleType>().write_batch(&[0.1], Some(&[1, 0]), None),
            _ => column.typed::<Int32Type>().write_batch(&[19_782, -1], None, None),
        }
        .unwrap();
        column.close().unwrap();
    }
    group.close().unwrap();
    writer.close().unwrap();
    out
}

#[test]
fn fuzz_parquet() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.parquet");
    let seeds = [Compression::UNCOMPRESSED, Compression::SNAPPY].map(parquet_file);
    let target = FuzzTarget::new("parquet", env!("CARGO_MANIFEST_DIR")).seeds(seeds).inputs(1_500);
    target.run(&mut mutate_bytes, &|input| {
        fs::write(&file, input).unwrap();
        assert_peak_memory(64 << 20, || read_all(parquet::open(&file)));
    });
}

#[test]
fn fuzz_separated() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.csv");
    let wide: Vec<u8> = "\u{feff}a;b\n1;\"x\ny\"\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let seeds = [b"\xef\xbb\xbfid,name\n1,\"a \"\"b\"\"\"\n2,\n".to_vec(), b"a\tb\n1\t2024-02-29\n".to_vec(), wide];
    FuzzTarget::new("separated", env!("CARGO_MANIFEST_DIR")).seeds(seeds).inputs(1_500).run(
        &mut mutate_bytes,
        &|input| {
            fs::write(&file, input).unwrap();
            for tabs in [false, true] {
                assert_peak_memory(8 << 20, || read_all(csv::open(&file, tabs)));
            }
        },
    );
}

#[test]
fn fuzz_json() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.json");
    let seeds = [
        r#"[{"a": 1, "b": "x"}, {"a": null, "c": [1, {"d": 2.5}]}]"#,
        "{\"a\": 1}\n{\"a\": true, \"b\": \"2024-02-29\"}\n",
    ];
    let words = ["[", "]", "{", "}", "\"a\":", "null", "1e400", "\\u0000", "\\ud800", ",", "[[", "true"];
    let target = FuzzTarget::new("json", env!("CARGO_MANIFEST_DIR")).seeds(seeds).inputs(1_500);
    target.run(&mut |random, pool| mutate_text(random, pool, &words), &|input| {
        fs::write(&file, input).unwrap();
        assert_peak_memory(8 << 20, || {
            read_all(json::open(&file));
            read_all(json::open_lines(&file));
        });
    });
}

/// Writes a workbook with one sheet, given as XML.
///
/// The archive itself stays intact: a corrupted archive fails at once, corrupted contents do not.
fn write_workbook(path: &Path, sheet: &[u8]) {
    let main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main";
    let office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships";
    let package = "http://schemas.openxmlformats.org/package/2006";
    let mut zip = zip::ZipWriter::new(File::create(path).unwrap());
    for (name, text) in [
        (
            "_rels/.rels",
            format!(
                "<Relationships xmlns=\"{package}/relationships\"><Relationship Id=\"r\" Type=\"{office}/officeDocument\" Target=\"xl/workbook.xml\"/></Relationships>"
            ),
        ),
        (
            "xl/workbook.xml",
            format!(
                "<workbook xmlns=\"{main}\" xmlns:r=\"{office}\"><sheets><sheet name=\"s\" sheetId=\"1\" r:id=\"r1\"/></sheets></workbook>"
            ),
        ),
        (
            "xl/_rels/workbook.xml.rels",
            format!(
                "<Relationships xmlns=\"{package}/relationships\"><Relationship Id=\"r1\" Type=\"{office}/worksheet\" Target=\"worksheets/sheet1.xml\"/></Relationships>"
            ),
        ),
        ("xl/sharedStrings.xml", format!("<sst xmlns=\"{main}\" uniqueCount=\"1\"><si><t>a</t></si></sst>")),
        (
            "xl/styles.xml",
            format!(
                "<styleSheet xmlns=\"{main}\"><cellXfs><xf numFmtId=\"0\"/><xf numFmtId=\"14\"/></cellXfs></styleSheet>"
            ),
        ),
        ("xl/worksheets/sheet1.xml", String::from_utf8_lossy(sheet).into_owned()),
    ] {
        let stored = zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
        zip.start_file(name, stored).unwrap();
        zip.write_all(text.as_bytes()).unwrap();
    }
    zip.finish().unwrap();
}

#[test]
fn fuzz_excel() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.xlsx");
    let sheet = "<worksheet xmlns=\"http://schemas.openxmlformats.org/spreadsheetml/2006/main\"><dimension ref=\"A1:B3\"/><sheetData>\
        <row r=\"1\"><c r=\"A1\" t=\"inlineStr\"><is><t>name</t></is></c><c r=\"B1\" t=\"s\"><v>0</v></c></row>\
        <row r=\"2\"><c r=\"A2\" s=\"1\"><v>45351.5</v></c><c r=\"B2\" t=\"b\"><v>1</v></c></row>\
        <row r=\"3\"><c r=\"A3\" t=\"e\"><v>#DIV/0!</v></c><c r=\"B3\" t=\"str\"><f>A1</f><v>x</v></c></row></sheetData>\
        <mergeCells count=\"1\"><mergeCell ref=\"A1:B1\"/></mergeCells></worksheet>";
    let words = [
        "XFD1048576",
        "A0",
        "A",
        "1",
        "ZZZZ1",
        "B99999999999",
        "<c r=\"",
        "<row r=\"",
        "</row>",
        "t=\"s\"",
        "t=\"d\"",
        "s=\"9\"",
        "<v>",
        "</v>",
        "-1",
        "1e308",
        "&#0;",
        "&amp;",
        "<!--",
        "]]>",
    ];
    let target = FuzzTarget::new("excel", env!("CARGO_MANIFEST_DIR")).seeds([sheet]).inputs(800);
    target.run(&mut |random, pool| mutate_text(random, pool, &words), &|input| {
        write_workbook(&file, input);
        // The number of cells that a sheet spans is checked before they are allocated.
        assert_peak_memory(1 << 30, || read_all(excel::open(&file)));
    });
}
