//! Values come back as they are, whatever their kind.

use querymend_engine::Engine;
use querymend_sql::Cell;

use crate::engines::subjects;
use crate::support::ask;

async fn one(engine: &dyn Engine, sql: &str) -> Cell {
    let rows = ask(engine, sql).await.unwrap_or_else(|error| panic!("{}: {sql}: {error}", engine.name()));
    assert_eq!((rows.rows.len(), rows.rows[0].len()), (1, 1), "{sql}");
    rows.rows[0][0].clone()
}

fn text(text: &str) -> Cell {
    Cell::Text(text.into())
}

#[tokio::test]
async fn returns_each_common_type_unchanged() {
    for subject in subjects() {
        let engine = &*subject.open();
        let kinds = &subject.kinds;
        let mut expected = vec![
            (kinds.largest_integer, Cell::Integer(i64::MAX)),
            (kinds.smallest_integer, Cell::Integer(i64::MIN)),
            (kinds.float, Cell::Number(0.1)),
            (kinds.text, text("Ελληνικά, עברית, 日本語, 🦀 and O'Clock")),
            (kinds.null, Cell::Null),
        ];
        let mut also = |sql: Option<&'static str>, cell: Cell| expected.extend(sql.map(|sql| (sql, cell)));
        also(kinds.decimal, Cell::Decimal("12345678901234567890.50".into()));
        also(kinds.date, text("2024-02-29"));
        also(kinds.time, text("13:14:15.5"));
        also(kinds.timestamp, text("2024-02-29 13:14:15.678"));
        also(kinds.truth, Cell::Boolean(true));
        also(kinds.bytes, Cell::Binary("0fa0".into()));
        also(kinds.list, text("[1,2,null]"));
        if let Some((sql, back)) = kinds.zoned {
            also(Some(sql), text(back));
        }
        expected.extend(kinds.own.iter().cloned());
        for (sql, cell) in expected {
            assert_eq!(one(engine, sql).await, cell, "{}: {sql}", subject.name);
        }
        if let Some(sql) = kinds.json {
            let Cell::Text(json) = one(engine, sql).await else { panic!("{}: {sql}", subject.name) };
            assert_eq!(json.replace(' ', ""), r#"{"a":[1,"x"]}"#, "{}: {sql}", subject.name);
        }
    }
}

#[tokio::test]
async fn accepts_identifiers_of_all_scripts() {
    for subject in subjects() {
        let engine = &*subject.open();
        let table = engine.dialect().quote_identifier(subject.unicode_table);
        let (first, second) = (engine.dialect().quote_identifier("naïve col"), engine.dialect().quote_identifier("Σ"));
        let rows = ask(engine, &format!("SELECT {first}, {second} FROM {table}")).await.unwrap();
        assert_eq!(rows.columns, ["naïve col", "Σ"], "{}", subject.name);
        assert_eq!(rows.rows, [[Cell::Integer(7), Cell::Integer(8)]], "{}", subject.name);
    }
}
