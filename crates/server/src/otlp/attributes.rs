//! What is said about spans and figures.

use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, ArrayValue, KeyValue};

fn of(name: &str, value: Value) -> KeyValue {
    KeyValue { key: name.to_owned(), value: Some(AnyValue { value: Some(value) }), ..KeyValue::default() }
}

pub fn text(name: &str, value: impl Into<String>) -> KeyValue {
    of(name, Value::StringValue(value.into()))
}

pub fn whole(name: &str, value: impl TryInto<i64>) -> KeyValue {
    of(name, Value::IntValue(value.try_into().unwrap_or(i64::MAX)))
}

pub fn number(name: &str, value: f64) -> KeyValue {
    of(name, Value::DoubleValue(value))
}

pub fn truth(name: &str, value: bool) -> KeyValue {
    of(name, Value::BoolValue(value))
}

pub fn list<'l>(name: &str, values: impl IntoIterator<Item = &'l str>) -> KeyValue {
    let value = |text: &str| AnyValue { value: Some(Value::StringValue(text.to_owned())) };
    of(name, Value::ArrayValue(ArrayValue { values: values.into_iter().map(value).collect() }))
}
