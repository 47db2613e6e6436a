//! Values as they travel: Thrift's binary protocol, read and written without generated code.
//!
//! A server is not trusted with our memory: what an answer takes is counted while it is read, and nothing is set aside for a
//! length before its bytes are there.

use std::io::Read;
use std::mem::size_of;

use thrift::protocol::{
    TBinaryInputProtocol, TBinaryOutputProtocol, TFieldIdentifier, TInputProtocol, TListIdentifier, TMapIdentifier,
    TOutputProtocol, TStructIdentifier, TType,
};
use thrift::transport::{TReadTransport, TWriteTransport};

/// Answers nest six levels deep at most.
const DEEPEST: usize = 16;

/// One value of the protocol.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value {
    Bool(bool),
    Byte(i8),
    Short(i16),
    Int(i32),
    Long(i64),
    Double(f64),
    Bytes(Vec<u8>),
    List(Vec<Value>),
    Map(Vec<(Value, Value)>),
    Struct(Vec<(i16, Value)>),
}

/// So much memory may an answer take that is being read.
pub(super) struct Allowance(pub(super) usize);

impl Allowance {
    fn take(&mut self, bytes: usize) -> thrift::Result<()> {
        self.0 = self.0.checked_sub(bytes).ok_or_else(|| {
            let kind = thrift::ProtocolErrorKind::SizeLimit;
            thrift::Error::Protocol(thrift::ProtocolError::new(kind, "the answer is too large"))
        })?;
        Ok(())
    }
}

impl Value {
    pub(super) fn text(text: &str) -> Self {
        Value::Bytes(text.as_bytes().to_vec())
    }

    /// A map of texts.
    pub(super) fn texts(pairs: &[(&str, &str)]) -> Self {
        Value::Map(pairs.iter().map(|(key, value)| (Value::text(key), Value::text(value))).collect())
    }

    /// A field of a struct.
    pub(super) fn field(&self, id: i16) -> Option<&Value> {
        let Value::Struct(fields) = self else { return None };
        fields.iter().find(|(known, _)| *known == id).map(|(_, value)| value)
    }

    /// The same, taken out of it.
    pub(super) fn take(self, id: i16) -> Option<Value> {
        let Value::Struct(fields) = self else { return None };
        fields.into_iter().find(|(known, _)| *known == id).map(|(_, value)| value)
    }

    /// The only field of a struct that is one of several kinds.
    pub(super) fn take_only(self) -> Option<(i16, Value)> {
        let Value::Struct(fields) = self else { return None };
        fields.into_iter().next()
    }

    pub(super) fn number(&self) -> Option<i64> {
        match *self {
            Value::Byte(number) => Some(number.into()),
            Value::Short(number) => Some(number.into()),
            Value::Int(number) => Some(number.into()),
            Value::Long(number) => Some(number),
            _ => None,
        }
    }

    pub(super) fn string(&self) -> Option<String> {
        let Value::Bytes(bytes) = self else { return None };
        Some(String::from_utf8_lossy(bytes).into_owned())
    }

    pub(super) fn list(&self) -> &[Value] {
        if let Value::List(items) = self { items } else { &[] }
    }

    pub(super) fn into_list(self) -> Vec<Value> {
        if let Value::List(items) = self { items } else { Vec::new() }
    }

    fn kind(&self) -> TType {
        match self {
            Value::Bool(_) => TType::Bool,
            Value::Byte(_) => TType::I08,
            Value::Short(_) => TType::I16,
            Value::Int(_) => TType::I32,
            Value::Long(_) => TType::I64,
            Value::Double(_) => TType::Double,
            Value::Bytes(_) => TType::String,
            Value::List(_) => TType::List,
            Value::Map(_) => TType::Map,
            Value::Struct(_) => TType::Struct,
        }
    }

    pub(super) fn write<T: TWriteTransport>(&self, to: &mut TBinaryOutputProtocol<T>) -> thrift::Result<()> {
        let length = |length: usize| i32::try_from(length).unwrap_or(i32::MAX);
        match self {
            Value::Bool(value) => to.write_bool(*value),
            Value::Byte(number) => to.write_i8(*number),
            Value::Short(number) => to.write_i16(*number),
            Value::Int(number) => to.write_i32(*number),
            Value::Long(number) => to.write_i64(*number),
            Value::Double(number) => to.write_double(*number),
            Value::Bytes(bytes) => to.write_bytes(bytes),
            Value::List(items) => {
                let kind = items.first().map_or(TType::String, Value::kind);
                to.write_list_begin(&TListIdentifier::new(kind, length(items.len())))?;
                items.iter().try_for_each(|item| item.write(to))?;
                to.write_list_end()
            }
            Value::Map(pairs) => {
                let kinds = pairs.first().map_or((TType::String, TType::String), |(k, v)| (k.kind(), v.kind()));
                to.write_map_begin(&TMapIdentifier::new(kinds.0, kinds.1, length(pairs.len())))?;
                for (key, value) in pairs {
                    key.write(to)?;
                    value.write(to)?;
                }
                to.write_map_end()
            }
            Value::Struct(fields) => {
                to.write_struct_begin(&TStructIdentifier::new(""))?;
                for (id, value) in fields {
                    to.write_field_begin(&TFieldIdentifier::new("", value.kind(), *id))?;
                    value.write(to)?;
                    to.write_field_end()?;
                }
                to.write_field_stop()?;
                to.write_struct_end()
            }
        }
    }

    /// Reads a struct, which every answer is.
    pub(super) fn read<T: TReadTransport>(
        from: &mut TBinaryInputProtocol<T>,
        allowance: &mut Allowance,
    ) -> thrift::Result<Value> {
        read(from, TType::Struct, allowance, 0)
    }
}

fn read<T: TReadTransport>(
    from: &mut TBinaryInputProtocol<T>,
    kind: TType,
    allowance: &mut Allowance,
    depth: usize,
) -> thrift::Result<Value> {
    if depth == DEEPEST {
        return Err(wrong("the answer nests too deep"));
    }
    allowance.take(size_of::<Value>())?;
    Ok(match kind {
        TType::Bool => Value::Bool(from.read_bool()?),
        TType::I08 => Value::Byte(from.read_i8()?),
        TType::I16 => Value::Short(from.read_i16()?),
        TType::I32 => Value::Int(from.read_i32()?),
        TType::I64 => Value::Long(from.read_i64()?),
        TType::Double => Value::Double(from.read_double()?),
        TType::String => Value::Bytes(bytes(from, allowance)?),
        TType::List | TType::Set => {
            let list = from.read_list_begin()?;
            let mut items = Vec::new();
            for _ in 0..list.size {
                items.push(read(from, list.element_type, allowance, depth + 1)?);
            }
            Value::List(items)
        }
        TType::Map => {
            let map = from.read_map_begin()?;
            let (Some(key), Some(value)) = (map.key_type, map.value_type) else {
                return Err(wrong("a map without kinds"));
            };
            let mut pairs = Vec::new();
            for _ in 0..map.size {
                pairs.push((read(from, key, allowance, depth + 1)?, read(from, value, allowance, depth + 1)?));
            }
            Value::Map(pairs)
        }
        TType::Struct => {
            let mut fields = Vec::new();
            loop {
                let field = from.read_field_begin()?;
                if field.field_type == TType::Stop {
                    break Value::Struct(fields);
                }
                fields.push((field.id.unwrap_or_default(), read(from, field.field_type, allowance, depth + 1)?));
            }
        }
        _ => return Err(wrong("a kind of value that is not known")),
    })
}

/// Bytes behind their length. They are taken as they come: a length alone costs nothing.
fn bytes<T: TReadTransport>(from: &mut TBinaryInputProtocol<T>, allowance: &mut Allowance) -> thrift::Result<Vec<u8>> {
    let length = usize::try_from(from.read_i32()?).map_err(|_| wrong("a length below zero"))?;
    allowance.take(length)?;
    let mut bytes = Vec::new();
    (&mut from.transport).take(length as u64).read_to_end(&mut bytes)?;
    if bytes.len() < length {
        return Err(std::io::Error::from(std::io::ErrorKind::UnexpectedEof).into());
    }
    Ok(bytes)
}

fn wrong(what: &str) -> thrift::Error {
    thrift::Error::Protocol(thrift::ProtocolError::new(thrift::ProtocolErrorKind::InvalidData, what))
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    fn read_back(bytes: Vec<u8>, allowed: usize) -> thrift::Result<Value> {
        Value::read(&mut TBinaryInputProtocol::new(Cursor::new(bytes), true), &mut Allowance(allowed))
    }

    #[test]
    fn what_is_written_is_read() {
        let value = Value::Struct(vec![
            (1, Value::texts(&[("a", "ä")])),
            (2, Value::List(vec![Value::Double(0.1), Value::Double(-1.0)])),
            (3, Value::Struct(vec![(9, Value::Bool(true)), (10, Value::Byte(-1)), (11, Value::Short(-2))])),
            (4, Value::Int(-3)),
            (5, Value::Long(i64::MIN)),
        ]);
        let mut bytes = Vec::new();
        value.write(&mut TBinaryOutputProtocol::new(&mut bytes, true)).unwrap();
        assert_eq!(read_back(bytes, 10_000).unwrap(), value);
    }

    #[test]
    fn l12_lengths_that_lie_cost_no_memory() {
        let huge = i32::MAX.to_be_bytes();
        let field = |kind: u8| vec![kind, 0, 1];
        let text = [field(11), huge.to_vec(), b"short".to_vec()].concat();
        assert!(read_back(text.clone(), usize::MAX).is_err());
        assert!(read_back(text, 1 << 20).is_err());
        // A list of truths, of texts, of structs and of lists; then a map.
        for element in [2, 11, 12, 15] {
            let list = [field(15), vec![element], huge.to_vec(), vec![0; 1 << 16]].concat();
            assert!(read_back(list, 1 << 20).is_err());
        }
        assert!(read_back([field(13), vec![2, 2], huge.to_vec(), vec![0; 1 << 16]].concat(), 1 << 20).is_err());
        assert!(read_back([field(11), (-1_i32).to_be_bytes().to_vec()].concat(), 1 << 20).is_err());
        // Structs in structs without end, and a kind that does not exist.
        assert!(read_back(field(12).repeat(10_000), 1 << 20).is_err());
        assert!(read_back(field(99), 1 << 20).is_err());
    }
}
