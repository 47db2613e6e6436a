//! Resolves queries: CTEs, set operations, ORDER BY and LIMIT.

use std::borrow::Cow;
use std::rc::Rc;

use sqlparser::ast::{
    Cte as CteNode, Expr, Fetch, Ident, LimitClause, OrderBy, OrderByKind, Query, SetExpr, SetOperator, Spanned,
    Value as Literal,
};
use sqlparser::tokenizer::Span as TokenSpan;

use super::{
    ArityKind, ArityMismatch, BlockId, Clause, ColumnBinding, ExprContext, OutputColumn, QueryOutput, Resolver,
    SourceColumns, VisibleCte,
};
use crate::dialect::Feature;
use crate::schema::Type;

/// Output columns of a query body, and the blocks that ORDER BY may refer to.
struct QueryBody<'a> {
    columns: SourceColumns<'a>,
    is_single_row: bool,
    first_block: Option<BlockId>,
    is_set_operation: bool,
    blocks: Vec<BlockId>,
}

impl<'a> Resolver<'a> {
    /// Resolves a query with its CTEs. Names of the `parent` block are also visible.
    pub(super) fn resolve_query(&mut self, query: &'a Query, parent: Option<BlockId>) -> QueryOutput<'a> {
        let (ctes, later) = (self.ctes.len(), self.later_ctes.len());
        if let Some(with) = &query.with {
            let recursive = with.recursive || self.dialect.recursion_needs_no_keyword;
            if with.recursive {
                self.later_ctes.extend(with.cte_tables.iter().map(|c| &c.alias.name));
            }
            for cte in &with.cte_tables {
                self.resolve_cte(cte, recursive, parent);
            }
        }
        let body = self.resolve_body(&query.body, parent);
        if let Some(order_by) = &query.order_by {
            self.resolve_order_by(order_by, &body);
        }
        let limited_to_one = self.resolve_limit(query, body.first_block);
        let has_unknown_columns = !query.pipe_operators.is_empty();
        self.ctes.truncate(ctes);
        self.later_ctes.truncate(later);
        QueryOutput {
            columns: if has_unknown_columns { SourceColumns::Unknown } else { body.columns },
            is_single_row: body.is_single_row || limited_to_one,
        }
    }

    fn resolve_cte(&mut self, cte: &'a CteNode, recursive: bool, parent: Option<BlockId>) {
        let name = &cte.alias.name;
        self.resolution.ctes.push(name);
        if let (true, SetExpr::SetOperation { .. }) = (recursive, &*cte.query.body) {
            return self.resolve_recursive_cte(cte, parent);
        }
        let shape = self.resolve_query(&cte.query, parent);
        self.define_cte(cte, shape.columns);
    }

    fn define_cte(&mut self, cte: &'a CteNode, columns: SourceColumns<'a>) {
        let columns = if cte.alias.columns.is_empty() { columns } else { self.rename_columns(columns, &cte.alias) };
        self.ctes.push(VisibleCte { name: &cte.alias.name, columns });
    }

    /// Resolves a recursive CTE. The first operand of its set operation determines its columns; the
    /// others may read it.
    fn resolve_recursive_cte(&mut self, cte: &'a CteNode, parent: Option<BlockId>) {
        let (ctes, later) = (self.ctes.len(), self.later_ctes.len());
        if let Some(with) = &cte.query.with {
            for inner in &with.cte_tables {
                self.resolve_cte(inner, with.recursive, parent);
            }
        }
        let mut parts = Vec::new();
        set_operands(&cte.query.body, &mut parts);
        let Some((first, rest)) = parts.split_first() else { return };
        let mut body = self.resolve_body(first, parent);
        self.define_cte(cte, body.columns.clone());
        let own = self.ctes.len() - 1;
        for part in rest {
            let right = self.resolve_body(part, parent);
            self.check_set_arity(&body.columns, &right.columns, part.span());
            body.blocks.extend(right.blocks);
        }
        body.is_set_operation = true;
        body.is_single_row = false;
        if let Some(order_by) = &cte.query.order_by {
            self.resolve_order_by(order_by, &body);
        }
        self.resolve_limit(&cte.query, body.first_block);
        let this = self.ctes.swap_remove(own);
        self.ctes.truncate(ctes);
        self.later_ctes.truncate(later);
        self.ctes.push(this);
    }

    fn resolve_body(&mut self, body: &'a SetExpr, parent: Option<BlockId>) -> QueryBody<'a> {
        match body {
            SetExpr::Select(select) => {
                let (block, columns, single_row) = self.resolve_select(select, parent);
                QueryBody {
                    columns,
                    is_single_row: single_row,
                    first_block: Some(block),
                    is_set_operation: false,
                    blocks: vec![block],
                }
            }
            SetExpr::Query(query) => {
                let shape = self.resolve_query(query, parent);
                QueryBody {
                    columns: shape.columns,
                    is_single_row: shape.is_single_row,
                    first_block: None,
                    is_set_operation: true,
                    blocks: Vec::new(),
                }
            }
            SetExpr::SetOperation { op, left, right, .. } => {
                for side in [left, right] {
                    if let SetExpr::Query(query) = &**side {
                        self.record_feature(Feature::ParenthesizedSetOperand, query.span());
                    }
                }
                let mut left = self.resolve_body(left, parent);
                let span = right.span();
                if *op == SetOperator::Minus {
                    self.record_feature(Feature::Minus, span);
                }
                let takes_away = usize::from(matches!(op, SetOperator::Except | SetOperator::Minus));
                self.negation_depth += takes_away;
                let right = self.resolve_body(right, parent);
                self.negation_depth -= takes_away;
                self.check_set_arity(&left.columns, &right.columns, span);
                left.blocks.extend(right.blocks);
                let columns = match (left.columns, op) {
                    // Other operands of a UNION may contain values that the column of the first
                    // does not.
                    (SourceColumns::Derived(outputs), SetOperator::Union) => SourceColumns::Derived(
                        outputs.iter().map(|output| OutputColumn { origin: None, ..output.clone() }).collect(),
                    ),
                    (known, _) => known,
                };
                QueryBody {
                    columns,
                    is_single_row: false,
                    first_block: left.first_block,
                    is_set_operation: true,
                    blocks: left.blocks,
                }
            }
            SetExpr::Values(values) => {
                let context = ExprContext {
                    block: parent,
                    clause: Clause::Select,
                    in_aggregate: false,
                    in_group_key: false,
                    is_conjunct: false,
                    is_nested: false,
                };
                let mut kinds: Vec<Type> = Vec::new();
                for (n, row) in values.rows.iter().enumerate() {
                    let row_kinds: Vec<Type> = row.content.iter().map(|e| self.resolve_expr(e, context).kind).collect();
                    if n == 0 {
                        kinds = row_kinds;
                    }
                }
                let outputs: Vec<OutputColumn<'a>> = kinds
                    .into_iter()
                    .enumerate()
                    .map(|(i, kind)| OutputColumn {
                        name: Some(Cow::Owned(format!("column{}", i + 1))),
                        kind,
                        origin: None,
                        has_alias: false,
                    })
                    .collect();
                let single_row = values.rows.len() == 1;
                QueryBody {
                    columns: SourceColumns::Derived(Rc::from(outputs)),
                    is_single_row: single_row,
                    first_block: None,
                    is_set_operation: true,
                    blocks: Vec::new(),
                }
            }
            // Statements that modify data are rejected before their output matters.
            SetExpr::Insert(_) | SetExpr::Update(_) | SetExpr::Delete(_) | SetExpr::Merge(_) | SetExpr::Table(_) => {
                QueryBody {
                    columns: SourceColumns::Unknown,
                    is_single_row: false,
                    first_block: None,
                    is_set_operation: true,
                    blocks: Vec::new(),
                }
            }
        }
    }

    fn check_set_arity(&mut self, left: &SourceColumns<'a>, right: &SourceColumns<'a>, span: TokenSpan) {
        if let (Some(left), Some(right)) = (column_count(left), column_count(right))
            && left != right
        {
            self.resolution.arity_mismatches.push(ArityMismatch { kind: ArityKind::SetOperation, left, right, span });
        }
    }

    fn resolve_order_by(&mut self, order_by: &'a OrderBy, body: &QueryBody<'a>) {
        let OrderByKind::Expressions(terms) = &order_by.kind else { return };
        for term in terms {
            match (&term.expr, body.first_block) {
                (Expr::Value(_), _) => {}
                (Expr::Identifier(name), Some(block)) if !body.is_set_operation => {
                    let implicit = self.dialect.alias_visibility.order_by_finds_plain_columns;
                    match self.find_alias(name, block, implicit) {
                        Some(item) => {
                            if name.quote_style.is_none() {
                                self.resolution.unquoted_identifiers.push(name);
                            }
                            self.record_reference(
                                None,
                                name,
                                block,
                                ExprContext::new(block, Clause::OrderBy),
                                ColumnBinding::Alias(item),
                                name.span,
                            );
                        }
                        None => _ = self.resolve_expr(&term.expr, ExprContext::new(block, Clause::OrderBy)),
                    }
                }
                (expr, Some(block)) if !body.is_set_operation => {
                    _ = self.resolve_expr(expr, ExprContext::new(block, Clause::OrderBy))
                }
                (expr, _) => self.resolve_set_order_by(expr, body),
            }
        }
    }

    /// Resolves ORDER BY after a set operation, which sees the names of the result. SQLite also
    /// accepts names and expressions of any operand.
    fn resolve_set_order_by(&mut self, expr: &'a Expr, body: &QueryBody<'a>) {
        let in_result = match (expr, &body.columns) {
            (_, SourceColumns::Unknown) => true,
            (Expr::Identifier(name), SourceColumns::Table(table)) => {
                table.columns.iter().any(|c| self.is_same_name(name, &c.name))
            }
            (Expr::Identifier(name), SourceColumns::Derived(outputs)) => {
                outputs.iter().any(|o| o.name.as_ref().is_none_or(|n| self.is_same_name(name, n)))
            }
            _ => false,
        };
        let in_part = body.blocks.iter().any(|&b| match expr {
            Expr::Identifier(name) => self.find_alias(name, b, true).is_some(),
            Expr::CompoundIdentifier(parts) if self.dialect.set_order_by_sees_parts => self.is_projected(parts, b),
            _ => self.resolution.blocks[b].items.iter().any(|i| i.expression == Some(expr)),
        });
        if in_result || in_part {
            return;
        }
        if self.dialect.set_order_by_names_only && !body.blocks.is_empty() {
            self.resolution.unresolved_order_terms.push(expr);
        } else if let Some(block) = body.first_block {
            self.resolve_expr(expr, ExprContext::new(block, Clause::OrderBy));
        }
    }

    /// Returns whether a qualified column is an item of a block, written with its table or without.
    fn is_projected(&self, parts: &[Ident], block: BlockId) -> bool {
        let [table, column] = parts else { return false };
        let sources = &self.resolution.blocks[block].sources;
        let of_table = sources.iter().any(|&s| self.is_same_name(table, self.resolution.sources[s].display_name()));
        self.resolution.blocks[block].items.iter().any(|item| match item.expression {
            Some(Expr::Identifier(name)) => of_table && self.is_same_name(column, &name.value),
            Some(Expr::CompoundIdentifier(own)) => own == parts,
            _ => false,
        })
    }

    /// Resolves LIMIT and OFFSET. Returns whether at most one row remains.
    fn resolve_limit(&mut self, query: &'a Query, block: Option<BlockId>) -> bool {
        let context = ExprContext {
            block,
            clause: Clause::Limit,
            in_aggregate: false,
            in_group_key: false,
            is_conjunct: false,
            is_nested: false,
        };
        let one = |e: Option<&Expr>| matches!(e, Some(Expr::Value(v)) if matches!(&v.value, Literal::Number(n, _) if n == "1"));
        let fetched = matches!(&query.fetch, Some(Fetch { quantity, with_ties: false, percent: false }) if quantity.is_none() || one(quantity.as_ref()));
        let limit = match &query.limit_clause {
            Some(LimitClause::LimitOffset { limit, offset, limit_by }) => {
                for e in limit.iter().chain(offset.iter().map(|o| &o.value)).chain(limit_by) {
                    self.resolve_expr(e, context);
                }
                limit.as_ref()
            }
            Some(LimitClause::OffsetCommaLimit { offset, limit }) => {
                self.resolve_expr(offset, context);
                self.resolve_expr(limit, context);
                Some(limit)
            }
            None => None,
        };
        fetched || one(limit)
    }

    /// Checks that a subquery returns `wanted` columns.
    pub(super) fn check_subquery_arity(&mut self, columns: &SourceColumns<'a>, wanted: usize, span: TokenSpan) {
        if let Some(given) = column_count(columns).filter(|g| *g != wanted) {
            self.resolution.arity_mismatches.push(ArityMismatch {
                kind: ArityKind::Subquery,
                left: wanted,
                right: given,
                span,
            });
        }
    }
}

fn set_operands<'a>(body: &'a SetExpr, out: &mut Vec<&'a SetExpr>) {
    match body {
        SetExpr::SetOperation { left, right, .. } => {
            set_operands(left, out);
            set_operands(right, out);
        }
        other => out.push(other),
    }
}

pub(super) fn column_count(columns: &SourceColumns) -> Option<usize> {
    match columns {
        SourceColumns::Table(table) => Some(table.columns.len()),
        SourceColumns::Derived(outputs) => Some(outputs.len()),
        SourceColumns::Unknown => None,
    }
}
