//! Queries: CTEs, set operations, ORDER BY and LIMIT.

use std::borrow::Cow;
use std::rc::Rc;

use sqlparser::ast::{
    Cte as CteNode, Expr, Fetch, Ident, LimitClause, OrderBy, OrderByKind, Query, SetExpr, SetOperator, Spanned,
    Value as Literal,
};
use sqlparser::tokenizer::Span as Place;

use super::{Arity, ArityKind, BlockId, Clause, Columns, Cte, Meaning, Output, Resolver, Shape, Spot};
use crate::dialect::Feature;
use crate::schema::Type;

/// What the body of a query gives, and the blocks that ORDER BY may look into.
struct Body<'a> {
    columns: Columns<'a>,
    single_row: bool,
    first_block: Option<BlockId>,
    is_set_operation: bool,
    blocks: Vec<BlockId>,
}

impl<'a> Resolver<'a> {
    /// A query with its CTEs; `parent` is the block whose names it also sees.
    pub(super) fn query(&mut self, query: &'a Query, parent: Option<BlockId>) -> Shape<'a> {
        let (ctes, later) = (self.ctes.len(), self.later_ctes.len());
        if let Some(with) = &query.with {
            let recursive = with.recursive || self.dialect.recursion_needs_no_keyword;
            if with.recursive {
                self.later_ctes.extend(with.cte_tables.iter().map(|c| &c.alias.name));
            }
            for cte in &with.cte_tables {
                self.cte(cte, recursive, parent);
            }
        }
        let body = self.body(&query.body, parent);
        if let Some(order_by) = &query.order_by {
            self.order_by(order_by, &body);
        }
        let limited_to_one = self.limit(query, body.first_block);
        let open = !query.pipe_operators.is_empty();
        self.ctes.truncate(ctes);
        self.later_ctes.truncate(later);
        Shape {
            columns: if open { Columns::Open } else { body.columns },
            single_row: body.single_row || limited_to_one,
        }
    }

    fn cte(&mut self, cte: &'a CteNode, recursive: bool, parent: Option<BlockId>) {
        let name = &cte.alias.name;
        self.facts.ctes.push(name);
        if let (true, SetExpr::SetOperation { .. }) = (recursive, &*cte.query.body) {
            return self.recursive_cte(cte, parent);
        }
        let shape = self.query(&cte.query, parent);
        self.define(cte, shape.columns);
    }

    fn define(&mut self, cte: &'a CteNode, columns: Columns<'a>) {
        let columns = if cte.alias.columns.is_empty() { columns } else { self.renamed(columns, &cte.alias) };
        self.ctes.push(Cte { name: &cte.alias.name, columns });
    }

    /// The first part of the set operation says what the CTE's columns are; the others may read it.
    fn recursive_cte(&mut self, cte: &'a CteNode, parent: Option<BlockId>) {
        let (ctes, later) = (self.ctes.len(), self.later_ctes.len());
        if let Some(with) = &cte.query.with {
            for inner in &with.cte_tables {
                self.cte(inner, with.recursive, parent);
            }
        }
        let mut parts = Vec::new();
        leaves(&cte.query.body, &mut parts);
        let Some((first, rest)) = parts.split_first() else { return };
        let mut body = self.body(first, parent);
        self.define(cte, body.columns.clone());
        let own = self.ctes.len() - 1;
        for part in rest {
            let right = self.body(part, parent);
            self.compare_arity(&body.columns, &right.columns, part.span());
            body.blocks.extend(right.blocks);
        }
        body.is_set_operation = true;
        body.single_row = false;
        if let Some(order_by) = &cte.query.order_by {
            self.order_by(order_by, &body);
        }
        self.limit(&cte.query, body.first_block);
        let this = self.ctes.swap_remove(own);
        self.ctes.truncate(ctes);
        self.later_ctes.truncate(later);
        self.ctes.push(this);
    }

    fn body(&mut self, body: &'a SetExpr, parent: Option<BlockId>) -> Body<'a> {
        match body {
            SetExpr::Select(select) => {
                let (block, columns, single_row) = self.select(select, parent);
                Body { columns, single_row, first_block: Some(block), is_set_operation: false, blocks: vec![block] }
            }
            SetExpr::Query(query) => {
                let shape = self.query(query, parent);
                Body {
                    columns: shape.columns,
                    single_row: shape.single_row,
                    first_block: None,
                    is_set_operation: true,
                    blocks: Vec::new(),
                }
            }
            SetExpr::SetOperation { op, left, right, .. } => {
                for side in [left, right] {
                    if let SetExpr::Query(query) = &**side {
                        self.feature(Feature::QueryInParentheses, query.span());
                    }
                }
                let mut left = self.body(left, parent);
                let place = right.span();
                if *op == SetOperator::Minus {
                    self.feature(Feature::Minus, place);
                }
                let takes_away = usize::from(matches!(op, SetOperator::Except | SetOperator::Minus));
                self.negated += takes_away;
                let right = self.body(right, parent);
                self.negated -= takes_away;
                self.compare_arity(&left.columns, &right.columns, place);
                left.blocks.extend(right.blocks);
                let columns = match (left.columns, op) {
                    // The other parts of a UNION may hold what the column of the first does not.
                    (Columns::Listed(outputs), SetOperator::Union) => Columns::Listed(
                        outputs.iter().map(|output| Output { origin: None, ..output.clone() }).collect(),
                    ),
                    (known, _) => known,
                };
                Body {
                    columns,
                    single_row: false,
                    first_block: left.first_block,
                    is_set_operation: true,
                    blocks: left.blocks,
                }
            }
            SetExpr::Values(values) => {
                let spot = Spot {
                    block: parent,
                    clause: Clause::Select,
                    in_aggregate: false,
                    in_key: false,
                    required: false,
                    inside: false,
                };
                let mut kinds: Vec<Type> = Vec::new();
                for (n, row) in values.rows.iter().enumerate() {
                    let row_kinds: Vec<Type> = row.content.iter().map(|e| self.expression(e, spot).kind).collect();
                    if n == 0 {
                        kinds = row_kinds;
                    }
                }
                let outputs: Vec<Output<'a>> = kinds
                    .into_iter()
                    .enumerate()
                    .map(|(i, kind)| Output {
                        name: Some(Cow::Owned(format!("column{}", i + 1))),
                        kind,
                        origin: None,
                        explicit: false,
                    })
                    .collect();
                let single_row = values.rows.len() == 1;
                Body {
                    columns: Columns::Listed(Rc::from(outputs)),
                    single_row,
                    first_block: None,
                    is_set_operation: true,
                    blocks: Vec::new(),
                }
            }
            // Statements that change data are refused before anyone asks what they give.
            SetExpr::Insert(_) | SetExpr::Update(_) | SetExpr::Delete(_) | SetExpr::Merge(_) | SetExpr::Table(_) => {
                Body {
                    columns: Columns::Open,
                    single_row: false,
                    first_block: None,
                    is_set_operation: true,
                    blocks: Vec::new(),
                }
            }
        }
    }

    fn compare_arity(&mut self, left: &Columns<'a>, right: &Columns<'a>, place: Place) {
        if let (Some(left), Some(right)) = (width(left), width(right))
            && left != right
        {
            self.facts.arities.push(Arity { kind: ArityKind::SetOperation, left, right, place });
        }
    }

    fn order_by(&mut self, order_by: &'a OrderBy, body: &Body<'a>) {
        let OrderByKind::Expressions(terms) = &order_by.kind else { return };
        for term in terms {
            match (&term.expr, body.first_block) {
                (Expr::Value(_), _) => {}
                (Expr::Identifier(name), Some(block)) if !body.is_set_operation => {
                    let implicit = self.dialect.aliases.order_by_finds_plain_columns;
                    match self.alias(name, block, implicit) {
                        Some(item) => {
                            if name.quote_style.is_none() {
                                self.facts.plain_names.push(name);
                            }
                            self.refer(
                                None,
                                name,
                                block,
                                Spot::new(block, Clause::OrderBy),
                                Meaning::Alias(item),
                                name.span,
                            );
                        }
                        None => _ = self.expression(&term.expr, Spot::new(block, Clause::OrderBy)),
                    }
                }
                (expr, Some(block)) if !body.is_set_operation => {
                    _ = self.expression(expr, Spot::new(block, Clause::OrderBy))
                }
                (expr, _) => self.order_set_operation(expr, body),
            }
        }
    }

    /// ORDER BY behind a set operation sees the names of the result; SQLite also takes names and expressions of any part.
    fn order_set_operation(&mut self, expr: &'a Expr, body: &Body<'a>) {
        let in_result = match (expr, &body.columns) {
            (_, Columns::Open) => true,
            (Expr::Identifier(name), Columns::Table(table)) => table.columns.iter().any(|c| self.same(name, &c.name)),
            (Expr::Identifier(name), Columns::Listed(outputs)) => {
                outputs.iter().any(|o| o.name.as_ref().is_none_or(|n| self.same(name, n)))
            }
            _ => false,
        };
        let in_part = body.blocks.iter().any(|&b| match expr {
            Expr::Identifier(name) => self.alias(name, b, true).is_some(),
            Expr::CompoundIdentifier(parts) if self.dialect.set_order_by_sees_parts => self.is_item(parts, b),
            _ => self.facts.blocks[b].items.iter().any(|i| i.expression == Some(expr)),
        });
        if in_result || in_part {
            return;
        }
        if self.dialect.set_order_by_names_only && !body.blocks.is_empty() {
            self.facts.stray_order_terms.push(expr);
        } else if let Some(block) = body.first_block {
            self.expression(expr, Spot::new(block, Clause::OrderBy));
        }
    }

    /// Whether a name with its table is an item of a block, written with the table or without.
    fn is_item(&self, parts: &[Ident], block: BlockId) -> bool {
        let [table, column] = parts else { return false };
        let sources = &self.facts.blocks[block].sources;
        let of_table = sources.iter().any(|&s| self.same(table, self.facts.sources[s].called()));
        self.facts.blocks[block].items.iter().any(|item| match item.expression {
            Some(Expr::Identifier(name)) => of_table && self.same(column, &name.value),
            Some(Expr::CompoundIdentifier(own)) => own == parts,
            _ => false,
        })
    }

    /// LIMIT and OFFSET; true if at most one row is left.
    fn limit(&mut self, query: &'a Query, block: Option<BlockId>) -> bool {
        let spot =
            Spot { block, clause: Clause::Limit, in_aggregate: false, in_key: false, required: false, inside: false };
        let one = |e: Option<&Expr>| matches!(e, Some(Expr::Value(v)) if matches!(&v.value, Literal::Number(n, _) if n == "1"));
        let fetched = matches!(&query.fetch, Some(Fetch { quantity, with_ties: false, percent: false }) if quantity.is_none() || one(quantity.as_ref()));
        let limit = match &query.limit_clause {
            Some(LimitClause::LimitOffset { limit, offset, limit_by }) => {
                for e in limit.iter().chain(offset.iter().map(|o| &o.value)).chain(limit_by) {
                    self.expression(e, spot);
                }
                limit.as_ref()
            }
            Some(LimitClause::OffsetCommaLimit { offset, limit }) => {
                self.expression(offset, spot);
                self.expression(limit, spot);
                Some(limit)
            }
            None => None,
        };
        fetched || one(limit)
    }

    /// Counts the columns of a subquery that stands where `wanted` values are wanted.
    pub(super) fn expect_width(&mut self, columns: &Columns<'a>, wanted: usize, place: Place) {
        if let Some(given) = width(columns).filter(|g| *g != wanted) {
            self.facts.arities.push(Arity { kind: ArityKind::Subquery, left: wanted, right: given, place });
        }
    }
}

fn leaves<'a>(body: &'a SetExpr, out: &mut Vec<&'a SetExpr>) {
    match body {
        SetExpr::SetOperation { left, right, .. } => {
            leaves(left, out);
            leaves(right, out);
        }
        other => out.push(other),
    }
}

pub(super) fn width(columns: &Columns) -> Option<usize> {
    match columns {
        Columns::Table(table) => Some(table.columns.len()),
        Columns::Listed(outputs) => Some(outputs.len()),
        Columns::Open => None,
    }
}
