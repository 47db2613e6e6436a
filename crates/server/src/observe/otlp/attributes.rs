//! Constructors of span and metric attributes.

use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, ArrayValue, KeyValue};

fn attribute(name: &str, value: Value) -> KeyValue {
    KeyValue { key: name.to_owned(), value: Some(AnyValue { value: Some(value) }), ..KeyValue::default() }
}

pub fn text(name: &str, value: impl Into<String>) -> KeyValue {
    attribute(name, Value::StringValue(value.into()))
}

pub fn integer(name: &str, value: impl TryInto<i64>) -> KeyValue {
    attribute(name, Value::IntValue(value.try_into().unwrap_or(i64::MAX)))
}

pub fn float(name: &str, value: f64) -> KeyValue {
    attribute(name, Value::DoubleValue(value))
}

pub fn boolean(name: &str, value: bool) -> KeyValue {
    attribute(name, Value::BoolValue(value))
}

pub fn list<'l>(name: &str, values: impl IntoIterator<Item = &'l str>) -> KeyValue {
    let value = |text: &str| AnyValue { value: Some(Value::StringValue(text.to_owned())) };
    attribute(name, Value::ArrayValue(ArrayValue { values: values.into_iter().map(value).collect() }))
}
