//! What a walk over a query writes down, for rules to read.

use std::borrow::Cow;
use std::rc::Rc;

use sqlparser::ast::{BinaryOperator, Expr, Function as CallNode, Ident, ObjectName, Value as Literal};
use sqlparser::tokenizer::{Location, Span as Place};

use crate::dialect::{Feature, Function};
use crate::schema::{Column, Table, Type};

/// Index of a block in [`Facts::blocks`].
pub type BlockId = usize;
/// Index of a source in [`Facts::sources`].
pub type SourceId = usize;

/// The part of a SELECT that something stands in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Clause {
    From,
    On,
    Where,
    GroupBy,
    Select,
    Having,
    Qualify,
    OrderBy,
    Limit,
}

impl Clause {
    /// As users write it.
    pub fn word(self) -> &'static str {
        match self {
            Clause::From => "FROM",
            Clause::On => "ON",
            Clause::Where => "WHERE",
            Clause::GroupBy => "GROUP BY",
            Clause::Select => "SELECT",
            Clause::Having => "HAVING",
            Clause::Qualify => "QUALIFY",
            Clause::OrderBy => "ORDER BY",
            Clause::Limit => "LIMIT",
        }
    }
}

/// How a source came into FROM.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum JoinKind {
    First,
    Comma,
    Cross,
    Inner,
    Outer,
    Lateral,
}

/// A column that a block or derived table gives.
#[derive(Debug, Clone)]
pub struct Output<'a> {
    /// Its name, where it has one that can be used.
    pub name: Option<Cow<'a, str>>,
    /// Its type, as far as known.
    pub kind: Type,
    /// The stored column it passes on unchanged.
    pub origin: Option<(&'a Table, &'a Column)>,
    /// It was named with AS.
    pub explicit: bool,
}

/// What a source holds.
#[derive(Debug, Clone)]
pub enum Columns<'a> {
    /// The columns of a stored table or view.
    Table(&'a Table),
    /// Listed by a subquery, a CTE or an alias.
    Listed(Rc<[Output<'a>]>),
    /// Not known.
    Open,
}

/// One item of FROM.
#[derive(Debug)]
pub struct Source<'a> {
    /// The block whose FROM it is in.
    pub block: BlockId,
    /// The name it is called by: its alias, else its own.
    pub name: Option<&'a Ident>,
    /// Where it stands.
    pub place: Place,
    /// What it holds.
    pub columns: Columns<'a>,
    /// How it was joined.
    pub join: JoinKind,
    /// It has an ON, USING or NATURAL of its own.
    pub has_condition: bool,
    /// It gives at most one row.
    pub single_row: bool,
}

impl<'a> Source<'a> {
    /// The stored table, if it is one.
    pub fn table(&self) -> Option<&'a Table> {
        match self.columns {
            Columns::Table(table) => Some(table),
            Columns::Listed(_) | Columns::Open => None,
        }
    }

    /// What users call it.
    pub fn called(&self) -> &str {
        match (self.name, self.table()) {
            (Some(name), _) => &name.value,
            (None, Some(table)) => &table.name,
            (None, None) => "a subquery",
        }
    }

    /// Names of its columns; none if it is open.
    pub fn column_names(&self) -> Vec<&str> {
        match &self.columns {
            Columns::Table(table) => table.columns.iter().map(|c| c.name.as_str()).collect(),
            Columns::Listed(outputs) => outputs.iter().filter_map(|o| o.name.as_deref()).collect(),
            Columns::Open => Vec::new(),
        }
    }

    /// Type of a column by its index.
    pub fn column_type(&self, index: usize) -> Type {
        match &self.columns {
            Columns::Table(table) => table.columns.get(index).map_or(Type::Any, Column::kind),
            Columns::Listed(outputs) => outputs.get(index).map_or(Type::Any, |o| o.kind),
            Columns::Open => Type::Any,
        }
    }

    /// The stored column behind a column of this source.
    pub fn origin(&self, index: usize) -> Option<(&'a Table, &'a Column)> {
        match &self.columns {
            Columns::Table(table) => table.columns.get(index).map(|c| (*table, c)),
            Columns::Listed(outputs) => outputs.get(index).and_then(|o| o.origin),
            Columns::Open => None,
        }
    }
}

/// One SELECT with its FROM.
#[derive(Debug)]
pub struct Block<'a> {
    /// The block whose names are visible in this one as well.
    pub parent: Option<BlockId>,
    /// Its sources.
    pub sources: Vec<SourceId>,
    /// Columns that USING or NATURAL made one, in lower case.
    pub merged: Vec<String>,
    /// Items of the SELECT list: name (where it has one), whether it was given with AS, and the expression.
    pub items: Vec<Item<'a>>,
    /// The expressions it groups by; ordinals and aliases are followed.
    pub keys: Vec<&'a Expr>,
    /// It has GROUP BY.
    pub grouped: bool,
    /// It has GROUP BY with ROLLUP, CUBE, GROUPING SETS or ALL, which are not followed.
    pub fancy_grouping: bool,
    /// It aggregates: an aggregate outside of WHERE, ON and GROUP BY.
    pub aggregates: bool,
    /// SELECT DISTINCT.
    pub distinct: bool,
    /// Where its SELECT word stands.
    pub place: Place,
    /// Where the first item of its FROM begins; line 0 if there is none.
    pub from: Location,
    /// Sources that can be seen just now, while FROM is being read.
    pub(crate) visible: std::ops::Range<usize>,
}

/// One item of a SELECT list.
#[derive(Debug)]
pub struct Item<'a> {
    /// Its name: the alias, or the column's own.
    pub name: Option<&'a Ident>,
    /// It was named with AS.
    pub explicit: bool,
    /// What it computes; `None` for a wildcard.
    pub expression: Option<&'a Expr>,
}

/// What a column name turned out to mean.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Meaning {
    /// A column of a source, by index.
    Column(SourceId, usize),
    /// A column that some source with unknown columns may have.
    Open,
    /// A column each table has without saying so.
    Hidden(SourceId),
    /// An item of the SELECT list of the reference's block.
    Alias(usize),
    /// Text in double quotes, which the dialect takes for a string.
    Text,
    /// A field of a struct column.
    Field(SourceId, usize),
    /// A name bound by a lambda or a query feature that is not followed.
    Local,
    /// Several sources have it.
    Ambiguous(Vec<SourceId>),
    /// An item of the SELECT list, which this clause does not see.
    HiddenAlias(usize),
    /// The qualifier is known, but has no such column.
    NotInSource(SourceId),
    /// No source in scope has it.
    Nowhere,
    /// Nothing in scope is called like its qualifier.
    UnknownQualifier,
}

/// One use of a column name.
#[derive(Debug)]
pub struct Reference<'a> {
    /// `t` in `t.x`.
    pub qualifier: Option<&'a Ident>,
    /// `x`; for `t.*` the qualifier again.
    pub name: &'a Ident,
    /// The block it stands in.
    pub block: BlockId,
    /// The clause it stands in.
    pub clause: Clause,
    /// What it means.
    pub meaning: Meaning,
    /// It stands inside an aggregate of its block.
    pub in_aggregate: bool,
    /// It stands inside an expression that the block groups by.
    pub in_key: bool,
    /// It is a `t.*`.
    pub wildcard: bool,
    /// Where it stands, with its qualifier.
    pub place: Place,
}

/// One call of a function.
#[derive(Debug)]
pub struct Call<'a> {
    /// The name in lower case, without its schema.
    pub lower: String,
    /// As written.
    pub name: &'a ObjectName,
    /// The node, unless it stands in FROM or is spelled by the grammar.
    pub node: Option<&'a CallNode>,
    /// The block it stands in; calls outside of any (VALUES) have none.
    pub block: Option<BlockId>,
    /// The clause it stands in.
    pub clause: Clause,
    /// What the dialect knows of it.
    pub known: Option<&'static Function>,
    /// It aggregates here (and is no window function).
    pub aggregate: bool,
    /// It stands inside another aggregate.
    pub nested: bool,
    /// Columns its first argument is.
    pub argument: Value<'a>,
    /// How many arguments it has.
    pub arguments: usize,
    /// It has OVER.
    pub window: bool,
    /// COUNT(DISTINCT …) and the like.
    pub distinct: bool,
    /// Where its name stands.
    pub place: Place,
}

/// What is known of an expression.
#[derive(Debug, Clone, Copy)]
pub struct Value<'a> {
    /// Its type.
    pub kind: Type,
    /// The column it is, if it is one.
    pub column: Option<(SourceId, usize)>,
    /// The literal it is, if it is one.
    pub literal: Option<&'a Literal>,
    /// It is a subquery that can give more than one row.
    pub many_rows: bool,
    /// It contains an aggregate of its block.
    pub aggregate: bool,
    /// Which of the first 64 sources it mentions, one bit each.
    pub touches: u64,
}

/// An operator with what stands on its sides.
#[derive(Debug)]
pub struct Operation<'a> {
    /// Which one; IN and BETWEEN count as `=`, LIKE in all its forms as `~~`.
    pub operator: &'a BinaryOperator,
    /// The left side.
    pub left: Value<'a>,
    /// The right side.
    pub right: Value<'a>,
    /// The node of the right side.
    pub right_node: &'a Expr,
    /// The node of the left side.
    pub left_node: &'a Expr,
    /// The block it stands in.
    pub block: Option<BlockId>,
    /// The clause it stands in.
    pub clause: Clause,
    /// It must hold for the row to stay: it is joined by AND to the top of ON or WHERE.
    pub required: bool,
    /// It is `IN (…)`, which compares with each member.
    pub is_in: bool,
    /// It is an end of BETWEEN.
    pub is_end: bool,
    /// It stands inside of a NOT, or behind an EXCEPT: what it finds keeps rows away.
    pub negated: bool,
}

/// One use of a table name in FROM.
#[derive(Debug)]
pub struct TableUse<'a> {
    /// As written.
    pub name: &'a ObjectName,
    /// What it is.
    pub meaning: TableMeaning<'a>,
    /// Where it stands.
    pub place: Place,
}

/// What a table name turned out to mean.
#[derive(Debug, Clone, Copy)]
pub enum TableMeaning<'a> {
    /// A table or view of the schema.
    Stored(&'a Table),
    /// A CTE of the query.
    Cte,
    /// A table of the system, or any table when there is no schema to look in.
    Unlisted,
    /// Nothing of that name.
    Unknown,
}

/// Two sides that should have the same number of columns, and do not.
#[derive(Debug)]
pub struct Arity {
    /// Set operation, or subquery where one value is wanted.
    pub kind: ArityKind,
    /// Columns on the left, or wanted.
    pub left: usize,
    /// Columns on the right, or given.
    pub right: usize,
    /// Where it stands.
    pub place: Place,
}

/// What the columns are counted for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArityKind {
    /// UNION, INTERSECT, EXCEPT.
    SetOperation,
    /// A subquery used as a value.
    Subquery,
}

/// Everything the walk found.
#[derive(Debug, Default)]
pub struct Facts<'a> {
    /// SELECT blocks, outer before inner.
    pub blocks: Vec<Block<'a>>,
    /// All items of all FROMs.
    pub sources: Vec<Source<'a>>,
    /// All uses of column names.
    pub references: Vec<Reference<'a>>,
    /// All calls of functions.
    pub calls: Vec<Call<'a>>,
    /// All binary operations; AND and OR only where they join what is a number.
    pub operations: Vec<Operation<'a>>,
    /// All uses of table names.
    pub tables: Vec<TableUse<'a>>,
    /// Column counts that do not fit.
    pub arities: Vec<Arity>,
    /// Names of CTEs.
    pub ctes: Vec<&'a Ident>,
    /// Terms of an ORDER BY behind a set operation that are no column of the result.
    pub stray_order_terms: Vec<&'a Expr>,
    /// Syntax that not every dialect has, and where it stands.
    pub features: Vec<(Feature, Place)>,
    /// Names that stand unquoted where a reserved word cannot.
    pub plain_names: Vec<&'a Ident>,
}

impl Block<'_> {
    /// Whether USING or NATURAL ties a source to the others.
    pub fn merged_any(&self, facts: &Facts<'_>, source: SourceId) -> bool {
        let names = facts.sources[source].column_names();
        self.merged.iter().any(|m| names.iter().any(|n| n.eq_ignore_ascii_case(m)))
    }
}

/// A query with more faulty names than this is rubbish, and listing them all helps nobody.
const MOST_FAULTS: usize = 200;

impl Facts<'_> {
    /// A name inside the expression that carries it as its alias does not mean that alias: nothing has the name.
    pub(super) fn forget_own_aliases(&mut self) {
        for r in self.references.iter_mut().filter(|r| r.clause == Clause::Select) {
            let Meaning::HiddenAlias(item) = r.meaning else { continue };
            let own = self.blocks[r.block].items.get(item).and_then(|i| i.expression).map(super::place);
            if own.is_some_and(|o| o.start <= r.place.start && r.place.end <= o.end) {
                r.meaning = Meaning::Nowhere;
            }
        }
    }

    /// Drops references that mean nothing beyond the first few hundred.
    pub(super) fn forget_surplus_faults(&mut self) {
        let mut faults = 0;
        self.references.retain(|r| {
            let fault = matches!(
                r.meaning,
                Meaning::Ambiguous(_)
                    | Meaning::HiddenAlias(_)
                    | Meaning::NotInSource(_)
                    | Meaning::Nowhere
                    | Meaning::UnknownQualifier
            );
            faults += usize::from(fault);
            !fault || faults <= MOST_FAULTS
        });
    }

    /// Sources visible in a block, its own first, then those of the blocks around it.
    pub fn visible(&self, block: BlockId) -> Vec<SourceId> {
        let mut out = Vec::new();
        let mut at = Some(block);
        while let Some(b) = at {
            out.extend(&self.blocks[b].sources);
            at = self.blocks[b].parent;
        }
        out
    }
}

impl Value<'_> {
    pub(super) fn of(kind: Type) -> Self {
        Self { kind, column: None, literal: None, many_rows: false, aggregate: false, touches: 0 }
    }
}
