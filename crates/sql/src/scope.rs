//! Which names are visible where, and what each one means.
//!
//! [`resolve`] walks a statement once and writes down facts: every SELECT block, every table and column it names, every
//! function it calls, every operation with the types of its sides. Rules read the facts and walk nothing. Where
//! something cannot be known (a table function, a PIVOT, a query without a schema) a source is *open*: any column may
//! be in it, and no finding comes of it.

mod call;
mod expression;
mod facts;
mod from;
mod names;
mod query;
mod select;

use sqlparser::ast::{Ident, Query as QueryNode, Statement};

pub(crate) use self::expression::place;
pub use self::facts::{
    Arity, ArityKind, Block, BlockId, Call, Clause, Columns, Facts, Item, JoinKind, Meaning, Operation, Output,
    Reference, Source, SourceId, TableMeaning, TableUse, Value,
};
use crate::dialect::Dialect;
use crate::schema::Schema;

/// Walks a statement and binds its names. `schema` may be absent: then tables are taken as they come.
pub fn resolve<'a>(statement: &'a Statement, schema: Option<&'a Schema>, dialect: &'static Dialect) -> Facts<'a> {
    let mut resolver = Resolver {
        schema,
        dialect,
        facts: Facts::default(),
        ctes: Vec::new(),
        later_ctes: Vec::new(),
        locals: Vec::new(),
        negated: 0,
    };
    if let Some(query) = query_of(statement) {
        resolver.query(query, None);
    }
    resolver.facts.forget_own_aliases();
    resolver.facts.forget_surplus_faults();
    resolver.facts
}

/// The query that a statement asks, also behind EXPLAIN.
pub fn query_of(statement: &Statement) -> Option<&QueryNode> {
    match statement {
        Statement::Query(query) => Some(query),
        Statement::Explain { statement, .. } => query_of(statement),
        _ => None,
    }
}

/// A CTE in scope.
struct Cte<'a> {
    name: &'a Ident,
    columns: Columns<'a>,
}

struct Resolver<'a> {
    schema: Option<&'a Schema>,
    dialect: &'static Dialect,
    facts: Facts<'a>,
    ctes: Vec<Cte<'a>>,
    later_ctes: Vec<&'a Ident>,
    locals: Vec<&'a Ident>,
    /// How many negations stand around the place that is walked.
    negated: usize,
}

/// What a query gives.
struct Shape<'a> {
    columns: Columns<'a>,
    single_row: bool,
}

/// Where an expression stands.
#[derive(Clone, Copy)]
struct Spot {
    block: Option<BlockId>,
    clause: Clause,
    in_aggregate: bool,
    in_key: bool,
    required: bool,
    /// Inside an expression, not at the top of its clause.
    inside: bool,
}

impl Spot {
    fn new(block: BlockId, clause: Clause) -> Self {
        Self {
            block: Some(block),
            clause,
            in_aggregate: false,
            in_key: false,
            required: matches!(clause, Clause::Where | Clause::On),
            inside: false,
        }
    }
}
