//! Trino and Presto, on servers that `scripts/engines.sh up trino presto` starts.

use querymend_sql::Cell;

use super::{Kinds, Server, Subject};

pub fn trino() -> Option<Subject> {
    let address = std::env::var("QUERYMEND_TEST_TRINO").ok()?;
    let wrong_password = Some(address.replacen("reader:reader@", "reader:wrong-password@", 1));
    Some(subject("trino", address, Server { script: "trino", wrong_password }))
}

pub fn presto() -> Option<Subject> {
    let address = std::env::var("QUERYMEND_TEST_PRESTO").ok()?;
    Some(subject("presto", address, Server { script: "presto", wrong_password: None }))
}

fn subject(name: &'static str, address: String, server: Server) -> Subject {
    let text = |text: &str| Cell::Text(text.into());
    Subject {
        name,
        address,
        endless: "SELECT count(*) FROM tpch.sf1000.lineitem AS a CROSS JOIN tpch.sf1000.lineitem AS b WHERE a.comment < b.comment",
        flood: "SELECT orderkey, 'padding' FROM tpch.sf100.lineitem",
        kinds: Kinds {
            largest_integer: "SELECT 9223372036854775807",
            smallest_integer: "SELECT -9223372036854775807 - 1",
            decimal: Some("SELECT DECIMAL '12345678901234567890.50'"),
            float: "SELECT DOUBLE '0.1'",
            text: "SELECT 'Ελληνικά, עברית, 日本語, 🦀 and O''Clock'",
            date: Some("SELECT DATE '2024-02-29'"),
            time: Some("SELECT TIME '13:14:15.500'"),
            timestamp: Some("SELECT TIMESTAMP '2024-02-29 13:14:15.678'"),
            zoned: Some(("SELECT TIMESTAMP '2024-02-29 13:14:15 +02:00'", "2024-02-29 13:14:15+02:00")),
            truth: Some("SELECT true"),
            null: "SELECT NULL",
            bytes: Some("SELECT X'0FA0'"),
            list: Some("SELECT ARRAY[1, 2, NULL]"),
            json: Some("SELECT json_parse('{\"a\": [1, \"x\"]}')"),
            own: vec![
                ("SELECT infinity()", Cell::Number(f64::INFINITY)),
                ("SELECT CAST(1 AS TINYINT)", Cell::Integer(1)),
                ("SELECT REAL '1.5'", Cell::Number(1.5)),
                ("SELECT DOUBLE '1'", Cell::Number(1.0)),
                ("SELECT DOUBLE '0.30000000000000004'", Cell::Number(0.1 + 0.2)),
                ("SELECT INTERVAL '2' DAY", text("2 00:00:00.000")),
                (
                    "SELECT MAP(ARRAY['a'], ARRAY[DECIMAL '12345678901234567890.50'])",
                    text(r#"{"a":12345678901234567890.50}"#),
                ),
                ("SELECT CAST(ROW(1, 'x') AS ROW(a BIGINT, b VARCHAR))", text(r#"{"a":1,"b":"x"}"#)),
                ("SELECT ARRAY[ARRAY[X'0FA0']]", text(r#"[["0fa0"]]"#)),
                ("SELECT ARRAY[TIMESTAMP '2024-02-29 13:14:15.500']", text(r#"["2024-02-29 13:14:15.5"]"#)),
            ],
        },
        has_keys: false,
        server: Some(server),
        folder: None,
    }
}
