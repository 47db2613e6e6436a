//! Spark, through its Thrift server. Hive speaks the same protocol.

use querymend_sql::Cell;

use super::{Kinds, Server, Subject};

pub fn subject() -> Option<Subject> {
    let text = |text: &str| Cell::Text(text.into());
    Some(Subject {
        name: "spark",
        address: std::env::var("QUERYMEND_TEST_SPARK").ok()?,
        endless: "SELECT count(*) FROM range(1000000000000) AS a CROSS JOIN range(1000000000000) AS b WHERE a.id * b.id = -1",
        flood: "SELECT id, 'padding' FROM range(1000000)",
        kinds: Kinds {
            largest_integer: "SELECT 9223372036854775807",
            smallest_integer: "SELECT -9223372036854775807 - 1",
            decimal: Some("SELECT CAST('12345678901234567890.50' AS DECIMAL(38, 2))"),
            float: "SELECT CAST(0.1 AS DOUBLE)",
            text: "SELECT 'Ελληνικά, עברית, 日本語, 🦀 and O\\'Clock'",
            date: Some("SELECT DATE '2024-02-29'"),
            time: None,
            timestamp: Some("SELECT TIMESTAMP '2024-02-29 13:14:15.678'"),
            // Moments are kept without a zone and shown in that of the session, which is UTC.
            zoned: Some(("SELECT TIMESTAMP '2024-02-29 13:14:15+02:00'", "2024-02-29 11:14:15")),
            truth: Some("SELECT 1 < 2"),
            null: "SELECT NULL",
            bytes: Some("SELECT x'0FA0'"),
            list: Some("SELECT array(1, 2, NULL)"),
            json: Some("SELECT get_json_object('{\"x\": {\"a\": [1, \"x\"]}}', '$.x')"),
            own: vec![
                ("SELECT CAST(-128 AS TINYINT)", Cell::Integer(-128)),
                ("SELECT CAST(0.1 AS FLOAT)", Cell::Number(0.1)),
                ("SELECT CAST('Infinity' AS DOUBLE)", Cell::Number(f64::INFINITY)),
                ("SELECT 0.10", Cell::Decimal("0.10".into())),
                ("SELECT map('a', 1)", text("{\"a\":1}")),
                ("SELECT named_struct('a', array(1, 2), 'b', 'x')", text("{\"a\":[1,2],\"b\":\"x\"}")),
                ("SELECT INTERVAL '1 02:03:04' DAY TO SECOND", text("1 02:03:04.000000000")),
            ],
        },
        has_keys: false,
        // It believes every password; one that does not is imitated in the tests of the engine.
        server: Some(Server { script: "spark", wrong_password: None }),
        folder: None,
    })
}
