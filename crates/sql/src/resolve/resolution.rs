//! Result of name resolution, which the rules read.

use std::borrow::Cow;
use std::rc::Rc;

use sqlparser::ast::{BinaryOperator, Expr, Function as CallNode, Ident, ObjectName, Spanned, Value as Literal};
use sqlparser::tokenizer::{Location, Span as TokenSpan};

use crate::dialect::{Feature, Function};
use crate::schema::{Column, Table, Type};

/// Index of a block in [`Resolution::blocks`].
pub type BlockId = usize;
/// Index of a source in [`Resolution::sources`].
pub type SourceId = usize;

/// Clause of a SELECT.
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
    /// Returns the keyword as written in SQL.
    pub fn keyword(self) -> &'static str {
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

/// Kind of join that adds a source to FROM.
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

/// An output column of a block or derived table.
#[derive(Debug, Clone)]
pub struct OutputColumn<'a> {
    /// Name; `None` if the column cannot be referred to by name.
    pub name: Option<Cow<'a, str>>,
    /// Type, as far as it is known.
    pub kind: Type,
    /// Stored column that is passed through unchanged.
    pub origin: Option<(&'a Table, &'a Column)>,
    /// `true` if named with AS.
    pub has_alias: bool,
}

/// Columns of a source.
#[derive(Debug, Clone)]
pub enum SourceColumns<'a> {
    /// Columns of a stored table or view.
    Table(&'a Table),
    /// Columns listed by a subquery, a CTE or an alias.
    Derived(Rc<[OutputColumn<'a>]>),
    /// Columns are not known.
    Unknown,
}

/// An item of FROM.
#[derive(Debug)]
pub struct QuerySource<'a> {
    /// Block whose FROM contains it.
    pub block: BlockId,
    /// Name that refers to it: its alias, or else its own name.
    pub name: Option<&'a Ident>,
    /// Span of its name.
    pub span: TokenSpan,
    /// Columns that it provides.
    pub columns: SourceColumns<'a>,
    /// Join that adds it to FROM.
    pub join: JoinKind,
    /// `true` if it has its own ON, USING or NATURAL.
    pub has_condition: bool,
    /// `true` if it returns at most one row.
    pub is_single_row: bool,
}

impl<'a> QuerySource<'a> {
    /// Returns the stored table, if it is one.
    pub fn table(&self) -> Option<&'a Table> {
        match self.columns {
            SourceColumns::Table(table) => Some(table),
            SourceColumns::Derived(_) | SourceColumns::Unknown => None,
        }
    }

    /// Returns the name shown to users.
    pub fn display_name(&self) -> &str {
        match (self.name, self.table()) {
            (Some(name), _) => &name.value,
            (None, Some(table)) => &table.name,
            (None, None) => "a subquery",
        }
    }

    /// Returns the names of its columns; empty if they are unknown.
    pub fn column_names(&self) -> Vec<&str> {
        match &self.columns {
            SourceColumns::Table(table) => table.columns.iter().map(|c| c.name.as_str()).collect(),
            SourceColumns::Derived(outputs) => outputs.iter().filter_map(|o| o.name.as_deref()).collect(),
            SourceColumns::Unknown => Vec::new(),
        }
    }

    /// Returns the type of a column by its index.
    pub fn column_type(&self, index: usize) -> Type {
        match &self.columns {
            SourceColumns::Table(table) => table.columns.get(index).map_or(Type::Any, Column::kind),
            SourceColumns::Derived(outputs) => outputs.get(index).map_or(Type::Any, |o| o.kind),
            SourceColumns::Unknown => Type::Any,
        }
    }

    /// Returns the stored column that a column of this source passes through.
    pub fn origin(&self, index: usize) -> Option<(&'a Table, &'a Column)> {
        match &self.columns {
            SourceColumns::Table(table) => table.columns.get(index).map(|c| (*table, c)),
            SourceColumns::Derived(outputs) => outputs.get(index).and_then(|o| o.origin),
            SourceColumns::Unknown => None,
        }
    }
}

/// A SELECT block with its FROM.
#[derive(Debug)]
pub struct SelectBlock<'a> {
    /// Enclosing block, whose names are also visible.
    pub parent: Option<BlockId>,
    /// Items of its FROM.
    pub sources: Vec<SourceId>,
    /// Names of the columns merged by USING or NATURAL, in lower case.
    pub using_columns: Vec<String>,
    /// Items of the SELECT list.
    pub items: Vec<ProjectionItem<'a>>,
    /// Expressions of GROUP BY, with ordinals and aliases resolved.
    pub group_keys: Vec<&'a Expr>,
    /// `true` if it has GROUP BY.
    pub is_grouped: bool,
    /// `true` if GROUP BY has ROLLUP, CUBE, GROUPING SETS or ALL, which are not tracked.
    pub has_grouping_sets: bool,
    /// `true` if it has an aggregate outside of WHERE, ON and GROUP BY.
    pub has_aggregates: bool,
    /// `true` for SELECT DISTINCT.
    pub is_distinct: bool,
    /// Span of its SELECT keyword.
    pub select_span: TokenSpan,
    /// Start of the first item of FROM; line 0 if there is none.
    pub from_start: Location,
    /// Range of `sources` that is visible while FROM is being resolved.
    pub(crate) visible_range: std::ops::Range<usize>,
}

/// An item of a SELECT list.
#[derive(Debug)]
pub struct ProjectionItem<'a> {
    /// Alias, or else the column's own name.
    pub name: Option<&'a Ident>,
    /// `true` if named with AS.
    pub has_alias: bool,
    /// Expression; `None` for a wildcard.
    pub expression: Option<&'a Expr>,
}

/// Binding of a column name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ColumnBinding {
    /// A column of a source, by index.
    Column(SourceId, usize),
    /// A column that a source with unknown columns may have.
    UnknownSource,
    /// A system column that each table has implicitly.
    SystemColumn(SourceId),
    /// An item of the SELECT list of the reference's block.
    Alias(usize),
    /// Double-quoted text that the dialect treats as a string.
    StringLiteral,
    /// A field of a struct column.
    StructField(SourceId, usize),
    /// A name bound by a lambda or by a query feature that is not tracked.
    Untracked,
    /// A column that several sources have.
    Ambiguous(Vec<SourceId>),
    /// An item of the SELECT list that is not visible in this clause.
    AliasNotVisible(usize),
    /// The qualifier resolves to a source that has no such column.
    NotInSource(SourceId),
    /// No source in scope has the column.
    Unresolved,
    /// The qualifier does not resolve.
    UnknownQualifier,
}

/// A reference to a column.
#[derive(Debug)]
pub struct ColumnReference<'a> {
    /// `t` in `t.x`.
    pub qualifier: Option<&'a Ident>,
    /// `x` in `t.x`; the qualifier for `t.*`.
    pub name: &'a Ident,
    /// Block that contains it.
    pub block: BlockId,
    /// Clause that contains it.
    pub clause: Clause,
    /// Binding of the name.
    pub binding: ColumnBinding,
    /// `true` inside an aggregate of its block.
    pub in_aggregate: bool,
    /// `true` inside an expression that the block groups by.
    pub in_group_key: bool,
    /// `true` for `t.*`.
    pub is_wildcard: bool,
    /// Span, including the qualifier.
    pub span: TokenSpan,
}

/// A call of a function.
#[derive(Debug)]
pub struct FunctionCall<'a> {
    /// Name in lower case, without its schema.
    pub lower_name: String,
    /// Name as written.
    pub name: &'a ObjectName,
    /// AST node; `None` for calls in FROM and for functions with their own grammar.
    pub node: Option<&'a CallNode>,
    /// Block that contains it; `None` outside of any block (VALUES).
    pub block: Option<BlockId>,
    /// Clause that contains it.
    pub clause: Clause,
    /// Definition in the dialect; `None` if the function is unknown.
    pub definition: Option<&'static Function>,
    /// `true` if it aggregates here and is not a window function.
    pub is_aggregate: bool,
    /// `true` inside another aggregate.
    pub is_inside_aggregate: bool,
    /// Inferred properties of its first argument.
    pub first_argument: ExprInfo<'a>,
    /// Number of arguments.
    pub argument_count: usize,
    /// `true` if it has OVER.
    pub has_over: bool,
    /// `true` for `COUNT(DISTINCT …)` and the like.
    pub is_distinct: bool,
    /// Span of its name.
    pub span: TokenSpan,
}

/// Inferred properties of an expression.
#[derive(Debug, Clone, Copy)]
pub struct ExprInfo<'a> {
    /// Type of the value.
    pub kind: Type,
    /// Column, if the expression is one.
    pub column: Option<(SourceId, usize)>,
    /// Literal, if the expression is one.
    pub literal: Option<&'a Literal>,
    /// `true` for a subquery that may return more than one row.
    pub may_return_many_rows: bool,
    /// `true` if it contains an aggregate of its block.
    pub has_aggregate: bool,
    /// Bit mask of the sources that it refers to, among the first 64.
    pub source_mask: u64,
}

/// A binary operator with its operands.
#[derive(Debug)]
pub struct BinaryOperation<'a> {
    /// Operator; IN and BETWEEN count as `=`, LIKE in all its forms as `~~`.
    pub operator: &'a BinaryOperator,
    /// Left operand.
    pub left: ExprInfo<'a>,
    /// Right operand.
    pub right: ExprInfo<'a>,
    /// AST node of the right operand.
    pub right_node: &'a Expr,
    /// AST node of the left operand.
    pub left_node: &'a Expr,
    /// Block that contains it; `None` outside of any block.
    pub block: Option<BlockId>,
    /// Clause that contains it.
    pub clause: Clause,
    /// `true` if a row must satisfy it: it is a top-level conjunct of ON or WHERE.
    pub is_conjunct: bool,
    /// `true` for `IN (…)`, which compares with each member.
    pub is_in: bool,
    /// `true` for a bound of BETWEEN.
    pub is_between_bound: bool,
    /// `true` inside a NOT or after an EXCEPT, so that a match excludes rows.
    pub is_negated: bool,
}

/// A reference to a table in FROM.
#[derive(Debug)]
pub struct TableReference<'a> {
    /// Name as written.
    pub name: &'a ObjectName,
    /// Binding of the name.
    pub binding: TableBinding<'a>,
    /// Span of the name.
    pub span: TokenSpan,
}

/// Binding of a table name.
#[derive(Debug, Clone, Copy)]
pub enum TableBinding<'a> {
    /// A table or view of the schema.
    Stored(&'a Table),
    /// A CTE of the query.
    Cte,
    /// A system table, or any table if there is no schema.
    Unlisted,
    /// No table of that name exists.
    Unknown,
}

/// A mismatch between two numbers of columns that should be equal.
#[derive(Debug)]
pub struct ArityMismatch {
    /// Set operation, or subquery used as a value.
    pub kind: ArityKind,
    /// Number of columns on the left, or expected.
    pub left: usize,
    /// Number of columns on the right, or returned.
    pub right: usize,
    /// Span of the right operand, or of the subquery.
    pub span: TokenSpan,
}

/// Construct whose columns are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArityKind {
    /// UNION, INTERSECT, EXCEPT.
    SetOperation,
    /// A subquery used as a value.
    Subquery,
}

/// Result of name resolution.
#[derive(Debug, Default)]
pub struct Resolution<'a> {
    /// SELECT blocks, outer before inner.
    pub blocks: Vec<SelectBlock<'a>>,
    /// Items of every FROM.
    pub sources: Vec<QuerySource<'a>>,
    /// References to columns.
    pub references: Vec<ColumnReference<'a>>,
    /// Calls of functions.
    pub calls: Vec<FunctionCall<'a>>,
    /// Binary operations; AND and OR only if an operand is a number.
    pub operations: Vec<BinaryOperation<'a>>,
    /// References to tables.
    pub tables: Vec<TableReference<'a>>,
    /// Mismatches between numbers of columns.
    pub arity_mismatches: Vec<ArityMismatch>,
    /// Names of CTEs.
    pub ctes: Vec<&'a Ident>,
    /// Terms of an ORDER BY after a set operation that are not columns of the result.
    pub unresolved_order_terms: Vec<&'a Expr>,
    /// Syntax that not every dialect supports, with its span.
    pub features: Vec<(Feature, TokenSpan)>,
    /// Unquoted identifiers in positions that do not allow reserved words.
    pub unquoted_identifiers: Vec<&'a Ident>,
}

impl SelectBlock<'_> {
    /// Returns whether USING or NATURAL joins a source to the others.
    pub fn is_joined_by_using(&self, facts: &Resolution<'_>, source: SourceId) -> bool {
        let names = facts.sources[source].column_names();
        self.using_columns.iter().any(|m| names.iter().any(|n| n.eq_ignore_ascii_case(m)))
    }
}

/// Maximum number of unresolved references: a query with more is garbage, and listing all of them
/// does not help.
const MAX_UNRESOLVED: usize = 200;

impl Resolution<'_> {
    /// Marks a name inside the expression of its own alias as unresolved: it cannot refer to that
    /// alias.
    pub(super) fn drop_self_aliases(&mut self) {
        for r in self.references.iter_mut().filter(|r| r.clause == Clause::Select) {
            let ColumnBinding::AliasNotVisible(item) = r.binding else { continue };
            let own = self.blocks[r.block].items.get(item).and_then(|i| i.expression).map(Spanned::span);
            if own.is_some_and(|o| o.start <= r.span.start && r.span.end <= o.end) {
                r.binding = ColumnBinding::Unresolved;
            }
        }
    }

    /// Drops unresolved references beyond `MAX_UNRESOLVED`.
    pub(super) fn cap_unresolved(&mut self) {
        let mut faults = 0;
        self.references.retain(|r| {
            let fault = matches!(
                r.binding,
                ColumnBinding::Ambiguous(_)
                    | ColumnBinding::AliasNotVisible(_)
                    | ColumnBinding::NotInSource(_)
                    | ColumnBinding::Unresolved
                    | ColumnBinding::UnknownQualifier
            );
            faults += usize::from(fault);
            !fault || faults <= MAX_UNRESOLVED
        });
    }

    /// Returns the sources visible in a block: its own first, then those of the enclosing blocks.
    pub fn visible_sources(&self, block: BlockId) -> Vec<SourceId> {
        let mut out = Vec::new();
        let mut at = Some(block);
        while let Some(b) = at {
            out.extend(&self.blocks[b].sources);
            at = self.blocks[b].parent;
        }
        out
    }
}

impl ExprInfo<'_> {
    pub(super) fn of_type(kind: Type) -> Self {
        Self { kind, column: None, literal: None, may_return_many_rows: false, has_aggregate: false, source_mask: 0 }
    }
}

/// Returns the text of a literal, or of a double-quoted name that the dialect treats as one.
pub(crate) fn literal_text<'a>(value: ExprInfo<'a>, node: &'a Expr) -> Option<&'a str> {
    match (value.literal, node) {
        (Some(Literal::SingleQuotedString(text) | Literal::DoubleQuotedString(text)), _) => Some(text),
        (None, Expr::Identifier(name)) if value.kind == Type::Text && value.column.is_none() => {
            name.quote_style.is_some().then_some(name.value.as_str())
        }
        _ => None,
    }
}
