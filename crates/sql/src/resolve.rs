//! Name resolution: the scope and the binding of each name.
//!
//! [`resolve`] walks a statement once and records facts: every SELECT block, every reference to a
//! table or column, every function call, every operation with the types of its operands. Rules read
//! these facts and walk nothing. If something cannot be known (a table function, a PIVOT, a query
//! without a schema), the columns of a source are *unknown*: it may have any column, and no finding
//! results from it.

mod call;
mod expression;
mod from;
mod names;
mod query;
mod resolution;
mod select;
pub(crate) mod spans;

use sqlparser::ast::{Ident, Query as QueryNode, Statement};

pub(crate) use self::expression::expr_span;
pub(crate) use self::resolution::literal_text;
pub use self::resolution::{
    ArityKind, ArityMismatch, BinaryOperation, BlockId, Clause, ColumnBinding, ColumnReference, ExprInfo, FunctionCall,
    JoinKind, OutputColumn, ProjectionItem, QuerySource, Resolution, SelectBlock, SourceColumns, SourceId,
    TableBinding, TableReference,
};
use crate::dialect::Dialect;
use crate::schema::Schema;

/// Resolves the names of a statement. Without a `schema`, any table name is accepted.
pub fn resolve<'a>(statement: &'a Statement, schema: Option<&'a Schema>, dialect: &'static Dialect) -> Resolution<'a> {
    let mut resolver = Resolver {
        schema,
        dialect,
        resolution: Resolution::default(),
        ctes: Vec::new(),
        later_ctes: Vec::new(),
        lambda_params: Vec::new(),
        negation_depth: 0,
    };
    if let Some(query) = statement_query(statement) {
        resolver.resolve_query(query, None);
    }
    resolver.resolution.drop_self_aliases();
    resolver.resolution.cap_unresolved();
    resolver.resolution
}

/// Returns the query of a statement, also inside EXPLAIN.
pub fn statement_query(statement: &Statement) -> Option<&QueryNode> {
    match statement {
        Statement::Query(query) => Some(query),
        Statement::Explain { statement, .. } => statement_query(statement),
        _ => None,
    }
}

/// A CTE in scope.
struct VisibleCte<'a> {
    name: &'a Ident,
    columns: SourceColumns<'a>,
}

struct Resolver<'a> {
    schema: Option<&'a Schema>,
    dialect: &'static Dialect,
    resolution: Resolution<'a>,
    ctes: Vec<VisibleCte<'a>>,
    later_ctes: Vec<&'a Ident>,
    lambda_params: Vec<&'a Ident>,
    /// Number of negations around the current node.
    negation_depth: usize,
}

/// Output of a query.
struct QueryOutput<'a> {
    columns: SourceColumns<'a>,
    is_single_row: bool,
}

/// Position of an expression.
#[derive(Clone, Copy)]
struct ExprContext {
    block: Option<BlockId>,
    clause: Clause,
    in_aggregate: bool,
    in_group_key: bool,
    is_conjunct: bool,
    /// `true` inside an expression, `false` at the top of its clause.
    is_nested: bool,
}

impl ExprContext {
    fn new(block: BlockId, clause: Clause) -> Self {
        Self {
            block: Some(block),
            clause,
            in_aggregate: false,
            in_group_key: false,
            is_conjunct: matches!(clause, Clause::Where | Clause::On),
            is_nested: false,
        }
    }
}
