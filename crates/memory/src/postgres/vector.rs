//! Binary format of pgvector: dimension and zero as two 16-bit integers, then one 32-bit float per
//! dimension.

use std::error::Error;

use tokio_postgres::types::private::BytesMut;
use tokio_postgres::types::{IsNull, ToSql, Type};

/// Vector parameter of a statement.
#[derive(Debug)]
pub(super) struct PgVector(pub Vec<f32>);

impl ToSql for PgVector {
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
        if Self::accepts(kind) { self.to_sql(kind, out) } else { Err(format!("a vector is not a {kind}").into()) }
    }
}
