//! Input of a review: schema, dialect, policy and question.

use crate::dialect::Dialect;
use crate::safety::policy::Policy;
use crate::schema::Schema;

/// Schema, dialect, policy and question that a query is reviewed against.
#[derive(Clone, Copy)]
pub struct ReviewContext<'c> {
    /// Schema of the database. Without one, names of tables and columns are not checked.
    pub schema: Option<&'c Schema>,
    /// Dialect that the query must be valid in.
    pub dialect: &'static Dialect,
    /// Policy that restricts tables, columns and functions.
    pub policy: &'c Policy,
    /// Question that the query answers, if known. Its words rank the fixes of an unknown name.
    pub question: Option<&'c str>,
}
