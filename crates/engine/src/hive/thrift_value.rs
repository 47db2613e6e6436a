//! Dynamic values of Thrift's binary protocol, read and written without generated code.
//!
//! The server is not trusted: memory is charged to a budget while a response is read, and a
//! declared length allocates nothing before its bytes arrive.

use std::io::Read;
use std::mem::size_of;

use thrift::protocol::{
    TBinaryInputProtocol, TBinaryOutputProtocol, TFieldIdentifier, TInputProtocol, TListIdentifier, TMapIdentifier,
    TOutputProtocol, TStructIdentifier, TType,
};
use thrift::transport::{TReadTransport, TWriteTransport};

/// Maximum nesting depth. Valid responses nest at most six levels.
const MAX_DEPTH: usize = 16;

/// Value of the protocol.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum ThriftValue {
    Bool(bool),
    Byte(i8),
    Short(i16),
    Int(i32),
    Long(i64),
    Double(f64),
    Bytes(Vec<u8>),
    List(Vec<ThriftValue>),
    Map(Vec<(ThriftValue, ThriftValue)>),
    Struct(Vec<(i16, ThriftValue)>),
}

/// Remaining number of bytes that reading a response may allocate.
pub(super) struct ReadBudget(pub(super) usize);

impl ReadBudget {
    fn spend(&mut self, bytes: usize) -> thrift::Result<()> {
        self.0 = self.0.checked_sub(bytes).ok_or_else(|| {
            let kind = thrift::ProtocolErrorKind::SizeLimit;
            thrift::Error::Protocol(thrift::ProtocolError::new(kind, "the response is too large"))
        })?;
        Ok(())
    }
}

impl ThriftValue {
    pub(super) fn from_text(text: &str) -> Self {
        ThriftValue::Bytes(text.as_bytes().to_vec())
    }

    /// Creates a map of strings.
    pub(super) fn from_text_pairs(pairs: &[(&str, &str)]) -> Self {
        ThriftValue::Map(
            pairs.iter().map(|(key, value)| (ThriftValue::from_text(key), ThriftValue::from_text(value))).collect(),
        )
    }

    /// Returns a field of a struct.
    pub(super) fn field(&self, id: i16) -> Option<&ThriftValue> {
        let ThriftValue::Struct(fields) = self else { return None };
        fields.iter().find(|(known, _)| *known == id).map(|(_, value)| value)
    }

    /// Takes a field out of a struct.
    pub(super) fn take_field(self, id: i16) -> Option<ThriftValue> {
        let ThriftValue::Struct(fields) = self else { return None };
        fields.into_iter().find(|(known, _)| *known == id).map(|(_, value)| value)
    }

    /// Takes the only field out of a union.
    pub(super) fn take_union_field(self) -> Option<(i16, ThriftValue)> {
        let ThriftValue::Struct(fields) = self else { return None };
        fields.into_iter().next()
    }

    pub(super) fn as_i64(&self) -> Option<i64> {
        match *self {
            ThriftValue::Byte(number) => Some(number.into()),
            ThriftValue::Short(number) => Some(number.into()),
            ThriftValue::Int(number) => Some(number.into()),
            ThriftValue::Long(number) => Some(number),
            _ => None,
        }
    }

    pub(super) fn as_string(&self) -> Option<String> {
        let ThriftValue::Bytes(bytes) = self else { return None };
        Some(String::from_utf8_lossy(bytes).into_owned())
    }

    pub(super) fn as_list(&self) -> &[ThriftValue] {
        if let ThriftValue::List(items) = self { items } else { &[] }
    }

    pub(super) fn into_list(self) -> Vec<ThriftValue> {
        if let ThriftValue::List(items) = self { items } else { Vec::new() }
    }

    fn thrift_type(&self) -> TType {
        match self {
            ThriftValue::Bool(_) => TType::Bool,
            ThriftValue::Byte(_) => TType::I08,
            ThriftValue::Short(_) => TType::I16,
            ThriftValue::Int(_) => TType::I32,
            ThriftValue::Long(_) => TType::I64,
            ThriftValue::Double(_) => TType::Double,
            ThriftValue::Bytes(_) => TType::String,
            ThriftValue::List(_) => TType::List,
            ThriftValue::Map(_) => TType::Map,
            ThriftValue::Struct(_) => TType::Struct,
        }
    }

    pub(super) fn write<T: TWriteTransport>(&self, to: &mut TBinaryOutputProtocol<T>) -> thrift::Result<()> {
        let length = |length: usize| i32::try_from(length).unwrap_or(i32::MAX);
        match self {
            ThriftValue::Bool(value) => to.write_bool(*value),
            ThriftValue::Byte(number) => to.write_i8(*number),
            ThriftValue::Short(number) => to.write_i16(*number),
            ThriftValue::Int(number) => to.write_i32(*number),
            ThriftValue::Long(number) => to.write_i64(*number),
            ThriftValue::Double(number) => to.write_double(*number),
            ThriftValue::Bytes(bytes) => to.write_bytes(bytes),
            ThriftValue::List(items) => {
                let kind = items.first().map_or(TType::String, ThriftValue::thrift_type);
                to.write_list_begin(&TListIdentifier::new(kind, length(items.len())))?;
                items.iter().try_for_each(|item| item.write(to))?;
                to.write_list_end()
            }
            ThriftValue::Map(pairs) => {
                let kinds =
                    pairs.first().map_or((TType::String, TType::String), |(k, v)| (k.thrift_type(), v.thrift_type()));
                to.write_map_begin(&TMapIdentifier::new(kinds.0, kinds.1, length(pairs.len())))?;
                for (key, value) in pairs {
                    key.write(to)?;
                    value.write(to)?;
                }
                to.write_map_end()
            }
            ThriftValue::Struct(fields) => {
                to.write_struct_begin(&TStructIdentifier::new(""))?;
                for (id, value) in fields {
                    to.write_field_begin(&TFieldIdentifier::new("", value.thrift_type(), *id))?;
                    value.write(to)?;
                    to.write_field_end()?;
                }
                to.write_field_stop()?;
                to.write_struct_end()
            }
        }
    }

    /// Reads a struct, the top-level type of every response.
    pub(super) fn read<T: TReadTransport>(
        from: &mut TBinaryInputProtocol<T>,
        budget: &mut ReadBudget,
    ) -> thrift::Result<ThriftValue> {
        read_value(from, TType::Struct, budget, 0)
    }
}

fn read_value<T: TReadTransport>(
    from: &mut TBinaryInputProtocol<T>,
    kind: TType,
    budget: &mut ReadBudget,
    depth: usize,
) -> thrift::Result<ThriftValue> {
    if depth == MAX_DEPTH {
        return Err(invalid_data("the response is nested too deeply"));
    }
    budget.spend(size_of::<ThriftValue>())?;
    Ok(match kind {
        TType::Bool => ThriftValue::Bool(from.read_bool()?),
        TType::I08 => ThriftValue::Byte(from.read_i8()?),
        TType::I16 => ThriftValue::Short(from.read_i16()?),
        TType::I32 => ThriftValue::Int(from.read_i32()?),
        TType::I64 => ThriftValue::Long(from.read_i64()?),
        TType::Double => ThriftValue::Double(from.read_double()?),
        TType::String => ThriftValue::Bytes(read_bytes(from, budget)?),
        TType::List | TType::Set => {
            let list = from.read_list_begin()?;
            let mut items = Vec::new();
            for _ in 0..list.size {
                items.push(read_value(from, list.element_type, budget, depth + 1)?);
            }
            ThriftValue::List(items)
        }
        TType::Map => {
            let map = from.read_map_begin()?;
            let (Some(key), Some(value)) = (map.key_type, map.value_type) else {
                return Err(invalid_data("a map without types"));
            };
            let mut pairs = Vec::new();
            for _ in 0..map.size {
                pairs.push((read_value(from, key, budget, depth + 1)?, read_value(from, value, budget, depth + 1)?));
            }
            ThriftValue::Map(pairs)
        }
        TType::Struct => {
            let mut fields = Vec::new();
            loop {
                let field = from.read_field_begin()?;
                if field.field_type == TType::Stop {
                    break ThriftValue::Struct(fields);
                }
                fields.push((field.id.unwrap_or_default(), read_value(from, field.field_type, budget, depth + 1)?));
            }
        }
        _ => return Err(invalid_data("a value of an unknown type")),
    })
}

/// Reads a length-prefixed byte string. The buffer grows with the received bytes, not with the
/// declared length.
fn read_bytes<T: TReadTransport>(
    from: &mut TBinaryInputProtocol<T>,
    budget: &mut ReadBudget,
) -> thrift::Result<Vec<u8>> {
    let length = usize::try_from(from.read_i32()?).map_err(|_| invalid_data("a negative length"))?;
    budget.spend(length)?;
    let mut bytes = Vec::new();
    (&mut from.transport).take(length as u64).read_to_end(&mut bytes)?;
    if bytes.len() < length {
        return Err(std::io::Error::from(std::io::ErrorKind::UnexpectedEof).into());
    }
    Ok(bytes)
}

fn invalid_data(what: &str) -> thrift::Error {
    thrift::Error::Protocol(thrift::ProtocolError::new(thrift::ProtocolErrorKind::InvalidData, what))
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    fn read_back(bytes: Vec<u8>, allowed: usize) -> thrift::Result<ThriftValue> {
        ThriftValue::read(&mut TBinaryInputProtocol::new(Cursor::new(bytes), true), &mut ReadBudget(allowed))
    }

    #[test]
    fn thrift_values_round_trip() {
        let value = ThriftValue::Struct(vec![
            (1, ThriftValue::from_text_pairs(&[("a", "ä")])),
            (2, ThriftValue::List(vec![ThriftValue::Double(0.1), ThriftValue::Double(-1.0)])),
            (
                3,
                ThriftValue::Struct(vec![
                    (9, ThriftValue::Bool(true)),
                    (10, ThriftValue::Byte(-1)),
                    (11, ThriftValue::Short(-2)),
                ]),
            ),
            (4, ThriftValue::Int(-3)),
            (5, ThriftValue::Long(i64::MIN)),
        ]);
        let mut bytes = Vec::new();
        value.write(&mut TBinaryOutputProtocol::new(&mut bytes, true)).unwrap();
        assert_eq!(read_back(bytes, 10_000).unwrap(), value);
    }

    #[test]
    fn false_lengths_allocate_no_memory() {
        let huge = i32::MAX.to_be_bytes();
        let field = |kind: u8| vec![kind, 0, 1];
        let text = [field(11), huge.to_vec(), b"short".to_vec()].concat();
        assert!(read_back(text.clone(), usize::MAX).is_err());
        assert!(read_back(text, 1 << 20).is_err());
        // Lists of booleans, strings, structs and lists; then a map.
        for element in [2, 11, 12, 15] {
            let list = [field(15), vec![element], huge.to_vec(), vec![0; 1 << 16]].concat();
            assert!(read_back(list, 1 << 20).is_err());
        }
        assert!(read_back([field(13), vec![2, 2], huge.to_vec(), vec![0; 1 << 16]].concat(), 1 << 20).is_err());
        assert!(read_back([field(11), (-1_i32).to_be_bytes().to_vec()].concat(), 1 << 20).is_err());
        // Endlessly nested structs, and an unknown type.
        assert!(read_back(field(12).repeat(10_000), 1 << 20).is_err());
        assert!(read_back(field(99), 1 << 20).is_err());
    }
}
