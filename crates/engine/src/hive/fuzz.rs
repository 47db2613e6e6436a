//! What a server may say, damaged.

use std::io::Cursor;

use querymend_testing::{Fuzz, bytes};
use thrift::protocol::{TBinaryInputProtocol, TBinaryOutputProtocol};

use super::cells::Gathered;
use super::value::{Allowance, Value};
use crate::Limits;
use crate::fuzz::within;

/// What an answer may take here, so that one which takes more is quick to see.
const ALLOWED: usize = 64 << 10;

fn written(value: &Value) -> Vec<u8> {
    let mut bytes = Vec::new();
    value.write(&mut TBinaryOutputProtocol::new(&mut bytes, true)).unwrap();
    bytes
}

fn read(bytes: &[u8], allowed: usize) -> thrift::Result<Value> {
    Value::read(&mut TBinaryInputProtocol::new(Cursor::new(bytes), true), &mut Allowance(allowed))
}

#[test]
fn fuzz_hive() {
    let column = |kind: i16, values: Vec<Value>| {
        Value::Struct(vec![(kind, Value::Struct(vec![(1, Value::List(values)), (2, Value::Bytes(vec![0b10]))]))])
    };
    let columns = vec![
        column(1, vec![Value::Bool(true), Value::Bool(false)]),
        column(7, vec![Value::text("2024-02-29 13:14:15.0 UTC"), Value::text("0.10")]),
        column(5, vec![Value::Long(i64::MIN), Value::Long(1)]),
        column(6, vec![Value::Double(0.5), Value::Double(f64::MAX)]),
    ];
    let status = Value::Struct(vec![(1, Value::Int(0)), (5, Value::text("words"))]);
    let rows = Value::Struct(vec![(1, Value::Long(0)), (2, Value::List(Vec::new())), (3, Value::List(columns))]);
    let answer = Value::Struct(vec![(0, Value::Struct(vec![(1, status), (2, Value::Bool(true)), (3, rows)]))]);
    let settings =
        Value::Struct(vec![(0, Value::texts(&[("a", "ä"), ("b", "")])), (1, Value::Byte(1)), (2, Value::Short(2))]);
    let target =
        Fuzz::new("hive", env!("CARGO_MANIFEST_DIR")).seeds([written(&answer), written(&settings)]).inputs(20_000);
    target.run(&mut bytes, &|input| {
        // A vector that grows holds its old place and its new one, each up to twice as large as what is in it.
        let Ok(value) = within(4 * ALLOWED + 16 * input.len(), || read(input, ALLOWED)) else { return };
        let again = written(&value);
        if let Ok(read) = read(&again, 16 * ALLOWED) {
            assert_eq!(written(&read), again, "what is written is read otherwise");
        }
        let limits = Limits { rows: 100, ..Limits::default() };
        let mut gathered = Gathered::new([0, 8, 9, 15, 22].map(|kind| (kind.to_string(), kind)).to_vec(), &limits);
        let columns = value.take(0).and_then(|answer| answer.take(3)).and_then(|rows| rows.take(3));
        // Whether it is an answer or strange, what is said about it is not worth a crash.
        drop(gathered.add(columns.map(Value::into_list).unwrap_or_default()));
    });
}
