//! Fuzzes the decoding of server responses.

use querymend_testing::{FuzzTarget, mutate_text};

use super::cells::{TrinoType, to_cell};
use super::protocol::TrinoPage;
use crate::fuzz::assert_peak_memory;

const SEEDS: &[&str] = &[
    r#"{"id":"1","nextUri":"http://localhost/v1/next","columns":[{"name":"x","type":"row(a bigint, b array(varchar))","typeSignature":{"rawType":"row","arguments":[{"kind":"NAMED_TYPE","value":{"fieldName":{"name":"a"},"typeSignature":{"rawType":"array","arguments":[{"kind":"TYPE","value":{"rawType":"decimal","arguments":[{"kind":"LONG","value":2}]}}]}}},{"kind":"NAMED_TYPE","value":{"fieldName":{"name":"b"},"typeSignature":{"rawType":"varbinary","arguments":[]}}}]}}],"data":[[[["12345678901234567890.50",null],"D6A="]]]}"#,
    r#"{"columns":[{"name":"t","type":"timestamp(3) with time zone"},{"name":"m","type":"map(varchar(3), array(double))"},{"name":"r","type":"row(a timestamp(3) with time zone, \"b, (c\" array(row(d varbinary)))"},{"name":"j","type":"json"}],"data":[["2024-02-29 13:14:15.100 Europe/Berlin",{"k":["NaN",1.5]},"[ 1, \"[ \\\"x y\\\", null ]\" ]","{\"a\":1}"],["13:14:15.500+02:00",null,[null,[]],"x"]]}"#,
    r#"{"error":{"message":"line 1:15: Table 'a.b.c' does not exist","errorName":"TABLE_NOT_FOUND","errorType":"USER_ERROR","errorLocation":{"lineNumber":1,"columnNumber":15}}}"#,
];

const WORDS: &[&str] = &[
    "array(",
    "map(",
    "row(",
    "row(a ",
    "decimal(38, 2)",
    "timestamp(12) with time zone",
    "time",
    "varbinary",
    "json",
    "double",
    "bigint",
    "\"rawType\":",
    "\"arguments\":[",
    "\"value\":",
    "\"fieldName\":{\"name\":\"a\"}",
    "null",
    "true",
    "[[",
    "]]",
    "{}",
    "\\\"",
    "\\u0000",
    "D6A=",
    "2024-02-29 13:14:15.123456789 +02:00",
    "UTC",
    "Infinity",
    "\"data\":",
    "\"columns\":",
    "\"type\":",
    "1e400",
    "-0",
];

#[test]
fn fuzz_trino() {
    let target = FuzzTarget::new("trino", env!("CARGO_MANIFEST_DIR")).seeds(SEEDS.iter().copied()).inputs(6_000);
    target.run(&mut |random, pool| mutate_text(random, pool, WORDS), &|input| {
        assert_peak_memory((1 << 20) + 400 * input.len(), || {
            let Ok(step) = serde_json::from_slice::<TrinoPage>(input) else { return };
            let kinds: Vec<TrinoType> = step.columns.unwrap_or_default().iter().map(TrinoType::from_column).collect();
            for row in step.data.unwrap_or_default() {
                for (value, kind) in row.into_iter().zip(kinds.iter().chain(std::iter::repeat(&TrinoType::Verbatim))) {
                    // With every conversion, because a value need not match the type of its column.
                    for other in [kind, &TrinoType::DateTime, &TrinoType::Bytes, &TrinoType::Decimal] {
                        to_cell(value.clone(), other);
                    }
                }
            }
        });
    });
}
