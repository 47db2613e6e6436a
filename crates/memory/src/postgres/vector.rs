//! Vectors as pgvector sends them: two numbers of two bytes, how long it is and nothing, then four bytes for each number.

use std::error::Error;

use tokio_postgres::types::private::BytesMut;
use tokio_postgres::types::{IsNull, ToSql, Type};

/// A vector on its way to the server.
#[derive(Debug)]
pub(super) struct Vector(pub Vec<f32>);

impl ToSql for Vector {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        out.extend_from_slice(&u16::try_from(self.0.len())?.to_be_bytes());
        out.extend_from_slice(&[0, 0]);
        for number in &self.0 {
            out.extend_from_slice(&number.to_be_bytes());
        }
        Ok(IsNull::No)
    }

    fn accepts(kind: &Type) -> bool {
        kind.name() == "vector"
    }

    fn to_sql_checked(&self, kind: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        if Self::accepts(kind) { self.to_sql(kind, out) } else { Err(format!("a vector is no {kind}").into()) }
    }
}
