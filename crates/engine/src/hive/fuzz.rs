//! Fuzzes the decoding of server responses.

use std::io::Cursor;

use querymend_testing::{FuzzTarget, mutate_bytes};
use thrift::protocol::{TBinaryInputProtocol, TBinaryOutputProtocol};

use super::cells::FetchedRows;
use super::thrift_value::{ReadBudget, ThriftValue};
use crate::Limits;
use crate::fuzz::assert_peak_memory;

/// Memory budget of a response, small so that violations are quick to detect.
const MAX_BYTES: usize = 64 << 10;

fn encode(value: &ThriftValue) -> Vec<u8> {
    let mut bytes = Vec::new();
    value.write(&mut TBinaryOutputProtocol::new(&mut bytes, true)).unwrap();
    bytes
}

fn decode(bytes: &[u8], allowed: usize) -> thrift::Result<ThriftValue> {
    ThriftValue::read(&mut TBinaryInputProtocol::new(Cursor::new(bytes), true), &mut ReadBudget(allowed))
}

#[test]
fn fuzz_hive() {
    let column = |kind: i16, values: Vec<ThriftValue>| {
        ThriftValue::Struct(vec![(
            kind,
            ThriftValue::Struct(vec![(1, ThriftValue::List(values)), (2, ThriftValue::Bytes(vec![0b10]))]),
        )])
    };
    let columns = vec![
        column(1, vec![ThriftValue::Bool(true), ThriftValue::Bool(false)]),
        column(7, vec![ThriftValue::from_text("2024-02-29 13:14:15.0 UTC"), ThriftValue::from_text("0.10")]),
        column(5, vec![ThriftValue::Long(i64::MIN), ThriftValue::Long(1)]),
        column(6, vec![ThriftValue::Double(0.5), ThriftValue::Double(f64::MAX)]),
    ];
    let status = ThriftValue::Struct(vec![(1, ThriftValue::Int(0)), (5, ThriftValue::from_text("words"))]);
    let rows = ThriftValue::Struct(vec![
        (1, ThriftValue::Long(0)),
        (2, ThriftValue::List(Vec::new())),
        (3, ThriftValue::List(columns)),
    ]);
    let answer =
        ThriftValue::Struct(vec![(0, ThriftValue::Struct(vec![(1, status), (2, ThriftValue::Bool(true)), (3, rows)]))]);
    let settings = ThriftValue::Struct(vec![
        (0, ThriftValue::from_text_pairs(&[("a", "ä"), ("b", "")])),
        (1, ThriftValue::Byte(1)),
        (2, ThriftValue::Short(2)),
    ]);
    let target =
        FuzzTarget::new("hive", env!("CARGO_MANIFEST_DIR")).seeds([encode(&answer), encode(&settings)]).inputs(20_000);
    target.run(&mut mutate_bytes, &|input| {
        // A growing vector holds its old and its new buffer, each up to twice as large as its
        // contents.
        let Ok(value) = assert_peak_memory(4 * MAX_BYTES + 16 * input.len(), || decode(input, MAX_BYTES)) else {
            return;
        };
        let again = encode(&value);
        if let Ok(read) = decode(&again, 16 * MAX_BYTES) {
            assert_eq!(encode(&read), again, "what is written is read otherwise");
        }
        let limits = Limits { rows: 100, ..Limits::default() };
        let mut gathered = FetchedRows::new([0, 8, 9, 15, 22].map(|kind| (kind.to_string(), kind)).to_vec(), &limits);
        let columns = value.take_field(0).and_then(|answer| answer.take_field(3)).and_then(|rows| rows.take_field(3));
        // Valid or not, it must not panic.
        drop(gathered.append_batch(columns.map(ThriftValue::into_list).unwrap_or_default()));
    });
}
