//! PostgreSQL; its tables are made by `scripts/engines/postgres.sh`.

use querymend_sql::Cell;

use super::{Kinds, Server, Subject};

pub fn subject() -> Option<Subject> {
    let address = std::env::var("QUERYMEND_TEST_POSTGRES").ok()?;
    let text = |text: &str| Cell::Text(text.into());
    let decimal = |digits: &str| Cell::Decimal(digits.into());
    Some(Subject {
        name: "postgres",
        endless: "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i FROM n) SELECT count(*) FROM n",
        flood: "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i, 'padding' FROM n",
        kinds: Kinds {
            largest_integer: "SELECT 9223372036854775807",
            smallest_integer: "SELECT -9223372036854775807 - 1",
            decimal: Some("SELECT 12345678901234567890.50"),
            float: "SELECT CAST(0.1 AS DOUBLE PRECISION)",
            text: "SELECT 'Ελληνικά, עברית, 日本語, 🦀 and O''Clock'",
            date: Some("SELECT DATE '2024-02-29'"),
            time: Some("SELECT TIME '13:14:15.5'"),
            timestamp: Some("SELECT TIMESTAMP '2024-02-29 13:14:15.678'"),
            zoned: Some(("SELECT TIMESTAMPTZ '2024-02-29 13:14:15+02:00'", "2024-02-29 11:14:15+00:00")),
            truth: Some("SELECT TRUE"),
            null: "SELECT NULL",
            bytes: Some("SELECT '\\x0FA0'::bytea"),
            list: Some("SELECT ARRAY[1, 2, NULL]"),
            json: Some("SELECT '{\"a\": [1, \"x\"]}'::jsonb"),
            own: vec![
                ("SELECT CAST(7 AS SMALLINT)", Cell::Integer(7)),
                ("SELECT CAST(-7 AS INTEGER)", Cell::Integer(-7)),
                ("SELECT CAST(0.1 AS REAL)", Cell::Number(0.1)),
                ("SELECT CAST('-Infinity' AS DOUBLE PRECISION)", Cell::Number(f64::NEG_INFINITY)),
                ("SELECT CAST('NaN' AS NUMERIC)", decimal("NaN")),
                ("SELECT CAST('-Infinity' AS NUMERIC)", decimal("-Infinity")),
                ("SELECT CAST(0 AS NUMERIC)", decimal("0")),
                ("SELECT CAST(-0.00012 AS NUMERIC(20, 8))", decimal("-0.00012000")),
                ("SELECT 100000000.0000", decimal("100000000.0000")),
                ("SELECT 1e30::numeric", decimal("1000000000000000000000000000000")),
                ("SELECT 1e-30::numeric", decimal("0.000000000000000000000000000001")),
                ("SELECT INTERVAL '1 year 2 months 3 days 04:05:06.5'", text("1 year 2 mons 3 days 04:05:06.5")),
                ("SELECT 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid", text("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11")),
                ("SELECT '{\"b\": 1.50}'::json", text("{\"b\":1.50}")),
                ("SELECT 'happy'::mood", text("happy")),
                ("SELECT ARRAY['sad', NULL, 'so so']::mood[]", text("[\"sad\",null,\"so so\"]")),
                ("SELECT ARRAY[[1.50, 2], [3, NULL]]", text("[[1.50,2],[3,null]]")),
                ("SELECT 5::positive", Cell::Integer(5)),
                ("SELECT '10.0.0.1/8'::inet", text("10.0.0.1/8")),
                ("SELECT int4range(1, 5)", text("[1,5)")),
                ("SELECT ROW(1, 'a b')::pair", text("(1,\"a b\")")),
                ("SELECT B'101'", text("101")),
                ("SELECT 'infinity'::timestamp", text("infinity")),
                ("SELECT '-infinity'::date", text("-infinity")),
                ("SELECT DATE '0044-03-15 BC'", text("0044-03-15 BC")),
                ("SELECT TIMESTAMPTZ '12024-12-31 23:59:59.999999+00'", text("12024-12-31 23:59:59.999999+00:00")),
                ("SELECT TIME '24:00'", text("24:00:00")),
                ("SELECT TIME WITH TIME ZONE '13:14:15.5+02'", text("13:14:15.5+02:00")),
                ("SELECT 'pg_class'::regclass", text("pg_class")),
                ("SELECT CAST('ab' AS CHAR(4))", text("ab  ")),
                ("SELECT ''", text("")),
            ],
        },
        has_keys: true,
        server: Some(Server {
            script: "postgres",
            wrong_password: Some(address.replacen(":reader@", ":wrong-password@", 1)),
        }),
        folder: None,
        address,
    })
}
