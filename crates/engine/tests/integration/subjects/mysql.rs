//! MySQL and MariaDB.

use querymend_sql::Cell;

use super::{Kinds, Server, Subject};

pub fn subject() -> Option<Subject> {
    let address = std::env::var("QUERYMEND_TEST_MYSQL").ok()?;
    let text = |text: &str| Cell::Text(text.into());
    Some(Subject {
        name: "mysql",
        // Recursion ends by itself after a thousand rounds, so that rows are multiplied instead: three to the thirtieth.
        endless: "SELECT count(*) FROM things a, things b, things c, things d, things e, things f, things g, things h, things i, \
                  things j, things k, things l, things m, things n, things o, things p, things q, things r, things s, things t, \
                  things u, things v, things w, things x, things y, things z, things aa, things ab, things ac, things ad \
                  WHERE a.weight + b.weight > ad.weight + 100",
        flood: "SELECT a.id, 'padding' FROM things a, things b, things c, things d, things e, things f, things g, things h, \
                things i, things j, things k, things l, things m, things n, things o",
        kinds: Kinds {
            largest_integer: "SELECT 9223372036854775807",
            smallest_integer: "SELECT -9223372036854775807 - 1",
            decimal: Some("SELECT CAST('12345678901234567890.50' AS DECIMAL(30, 2))"),
            float: "SELECT 0.1e0",
            text: "SELECT 'Ελληνικά, עברית, 日本語, 🦀 and O''Clock'",
            date: Some("SELECT DATE '2024-02-29'"),
            time: Some("SELECT TIME '13:14:15.500'"),
            timestamp: Some("SELECT TIMESTAMP '2024-02-29 13:14:15.678000'"),
            // Moments carry no zone; the session's is UTC.
            zoned: None,
            // TRUE is the number 1.
            truth: None,
            null: "SELECT NULL",
            bytes: Some("SELECT x'0FA0'"),
            list: None,
            json: Some("SELECT JSON_OBJECT('a', JSON_ARRAY(1, 'x'))"),
            own: vec![
                ("SELECT TRUE", Cell::Integer(1)),
                ("SELECT CAST(18446744073709551615 AS UNSIGNED)", Cell::Decimal("18446744073709551615".into())),
                ("SELECT 12.50", Cell::Decimal("12.50".into())),
                ("SELECT b'101' + 0", Cell::Integer(5)),
                ("SELECT TIME '-838:59:59'", text("-838:59:59")),
                // Backslashes escape, double quotes are text, and texts side by side are one.
                ("SELECT 'it\\'s' \"double\"", text("it'sdouble")),
                ("SELECT CAST('x' AS BINARY)", Cell::Binary("78".into())),
                ("SELECT FROM_UNIXTIME(1)", text("1970-01-01 00:00:01")),
            ],
        },
        has_keys: true,
        server: Some(Server {
            script: "mysql",
            wrong_password: Some(address.replace("reader:reader@", "reader:wrong-password@")),
        }),
        folder: None,
        address,
    })
}
