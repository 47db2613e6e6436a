//! Resolves SELECT blocks: group keys and output columns.

use std::borrow::Cow;
use std::rc::Rc;

use sqlparser::ast::{
    BinaryOperator, Expr, GroupByExpr, NamedWindowExpr, Select, SelectItem, SelectItemQualifiedWildcardKind, Spanned,
    Value as Literal, WildcardAdditionalOptions,
};
use sqlparser::tokenizer::Span as TokenSpan;

use super::{
    ArityKind, ArityMismatch, BlockId, Clause, ExprContext, ExprInfo, JoinKind, OutputColumn, ProjectionItem, Resolver,
    SelectBlock, SourceColumns,
};
use crate::dialect::{Feature, IdentifierCase};
use crate::schema::{Schema, Type};

/// Maximum number of output columns. No engine returns more, and a query that multiplies its
/// columns at every step is not tracked further.
const MAX_COLUMNS: usize = 4_096;

impl<'a> Resolver<'a> {
    pub(super) fn add_block(&mut self, parent: Option<BlockId>) -> BlockId {
        self.resolution.blocks.push(SelectBlock {
            parent,
            sources: Vec::new(),
            using_columns: Vec::new(),
            items: Vec::new(),
            group_keys: Vec::new(),
            is_grouped: false,
            has_grouping_sets: false,
            has_aggregates: false,
            is_distinct: false,
            select_span: TokenSpan::empty(),
            from_start: TokenSpan::empty().start,
            visible_range: 0..0,
        });
        self.resolution.blocks.len() - 1
    }

    pub(super) fn resolve_select(
        &mut self,
        select: &'a Select,
        parent: Option<BlockId>,
    ) -> (BlockId, SourceColumns<'a>, bool) {
        let block = self.add_block(parent);
        self.resolution.blocks[block].is_distinct = select.distinct.is_some();
        self.resolution.blocks[block].select_span = select.select_token.0.span;
        self.resolution.blocks[block].from_start =
            select.from.first().map_or(TokenSpan::empty().start, |f| f.relation.span().start);
        self.resolve_from(&select.from, block);
        for view in &select.lateral_views {
            self.resolve_expr(&view.lateral_view, ExprContext::new(block, Clause::From));
            let own = view.lateral_view_name.0.last().and_then(|p| p.as_ident());
            let columns = if view.lateral_col_alias.is_empty() {
                SourceColumns::Unknown
            } else {
                SourceColumns::Derived(
                    view.lateral_col_alias
                        .iter()
                        .map(|c| OutputColumn {
                            name: Some(self.output_name(c)),
                            kind: Type::Any,
                            origin: None,
                            has_alias: true,
                        })
                        .collect(),
                )
            };
            self.add_source(columns, None, own, view.lateral_view_name.span(), JoinKind::Lateral, true, false, block);
        }
        self.resolution.blocks[block].items = select.projection.iter().map(projection_item).collect();
        self.collect_group_keys(select, block);

        for condition in select.prewhere.iter().chain(&select.selection) {
            self.resolve_expr(condition, ExprContext::new(block, Clause::Where));
        }
        if !select.connect_by.is_empty() {
            // Hierarchical queries have pseudo-columns of their own.
            self.add_unknown_source(None, None, block);
        }
        if let GroupByExpr::Expressions(keys, _) = &select.group_by {
            for key in keys {
                self.resolve_group_key(key, block);
            }
        }
        let columns = self.resolve_projection(select, block);
        let clauses = [(&select.having, Clause::Having), (&select.qualify, Clause::Qualify)];
        for (condition, clause) in clauses {
            if let Some(condition) = condition {
                self.resolve_expr(condition, ExprContext::new(block, clause));
            }
        }
        if let Some(qualify) = &select.qualify {
            self.record_feature(Feature::Qualify, qualify.span());
        }
        if let Some(sqlparser::ast::Distinct::On(keys)) = &select.distinct {
            self.record_feature(Feature::DistinctOn, select.select_token.0.span);
            keys.iter().for_each(|k| _ = self.resolve_expr(k, ExprContext::new(block, Clause::OrderBy)));
        }
        for expr in select.cluster_by.iter().chain(&select.distribute_by).chain(select.sort_by.iter().map(|s| &s.expr))
        {
            self.resolve_expr(expr, ExprContext::new(block, Clause::OrderBy));
        }
        for window in &select.named_window {
            if let NamedWindowExpr::WindowSpec(spec) = &window.1 {
                self.resolve_window(spec, ExprContext::new(block, Clause::Select));
            }
        }
        let b = &self.resolution.blocks[block];
        let single_row = (b.has_aggregates && !b.is_grouped)
            || (b.sources.is_empty() && select.selection.is_none())
            || self.is_unique_key_fixed(block);
        (block, columns, single_row)
    }

    /// Returns whether WHERE fixes a unique key of the block's only table.
    fn is_unique_key_fixed(&self, block: BlockId) -> bool {
        let [source] = self.resolution.blocks[block].sources.as_slice() else { return false };
        let Some(table) = self.resolution.sources[*source].table() else { return false };
        let mut fixed: Vec<&str> = Vec::new();
        for o in self
            .resolution
            .operations
            .iter()
            .filter(|o| o.block == Some(block) && o.is_conjunct && *o.operator == BinaryOperator::Eq)
        {
            for (side, other) in [(o.left, o.right), (o.right, o.left)] {
                if let Some((s, i)) = side.column.filter(|(s, _)| s == source)
                    && other.source_mask & 1u64.checked_shl(s as u32).unwrap_or(0) == 0
                {
                    fixed.push(&table.columns[i].name);
                }
            }
        }
        // Without a declared key, the value index may know that a column is unique, if it read
        // every row.
        let values = self.schema.and_then(Schema::value_index);
        let indexed = |column: &&str| values.and_then(|values| values.column(&table.full_name(), column));
        table.is_unique(&fixed) || fixed.iter().any(|column| indexed(column).is_some_and(|values| values.unique))
    }

    /// Collects the expressions of GROUP BY, resolving ordinals and aliases to SELECT items.
    fn collect_group_keys(&mut self, select: &'a Select, block: BlockId) {
        let GroupByExpr::Expressions(keys, modifiers) = &select.group_by else {
            self.resolution.blocks[block].is_grouped = true;
            self.resolution.blocks[block].has_grouping_sets = true;
            return;
        };
        let mut followed: Vec<&'a Expr> = Vec::new();
        let mut fancy = !modifiers.is_empty();
        for key in keys {
            match key {
                Expr::GroupingSets(_) | Expr::Cube(_) | Expr::Rollup(_) => fancy = true,
                Expr::Tuple(members) => followed.extend(members),
                Expr::Value(v) => {
                    if let Literal::Number(n, _) = &v.value
                        && let Ok(n) = n.parse::<usize>()
                        && let Some(Some(e)) = n
                            .checked_sub(1)
                            .and_then(|i| self.resolution.blocks[block].items.get(i))
                            .map(|i| i.expression)
                    {
                        followed.push(e);
                    } else {
                        fancy = true;
                    }
                }
                Expr::Identifier(name) => {
                    followed.push(key);
                    if let Some(e) = self
                        .find_alias(name, block, false)
                        .and_then(|i| self.resolution.blocks[block].items[i].expression)
                    {
                        followed.push(e);
                    }
                }
                _ => followed.push(key),
            }
        }
        let b = &mut self.resolution.blocks[block];
        (b.group_keys, b.is_grouped, b.has_grouping_sets) = (followed, !keys.is_empty() || fancy, fancy);
    }

    fn resolve_group_key(&mut self, key: &'a Expr, block: BlockId) {
        let inside = !matches!(key, Expr::Identifier(_));
        let context = ExprContext { in_group_key: true, is_nested: inside, ..ExprContext::new(block, Clause::GroupBy) };
        match key {
            Expr::GroupingSets(sets) | Expr::Cube(sets) | Expr::Rollup(sets) => {
                self.record_feature(Feature::GroupingSets, key.span());
                sets.iter().flatten().for_each(|e| _ = self.resolve_expr(e, context));
            }
            _ => _ = self.resolve_expr(key, context),
        }
    }

    /// Resolves the SELECT list and returns its output columns.
    fn resolve_projection(&mut self, select: &'a Select, block: BlockId) -> SourceColumns<'a> {
        let context = ExprContext::new(block, Clause::Select);
        let mut outputs: Vec<OutputColumn<'a>> = Vec::with_capacity(select.projection.len());
        let mut has_unknown_columns = select.exclude.is_some() || select.value_table_mode.is_some();
        for item in &select.projection {
            match item {
                SelectItem::UnnamedExpr(expr) => {
                    self.expect_scalar(expr);
                    let value = self.resolve_expr(expr, context);
                    outputs.push(self.output_column(self.implicit_name(expr), value, false));
                }
                SelectItem::ExprWithAlias { expr, alias } => {
                    self.expect_scalar(expr);
                    let value = self.resolve_expr(expr, context);
                    if alias.quote_style.is_none() && !self.dialect.any_word_after_as {
                        self.resolution.unquoted_identifiers.push(alias);
                    }
                    outputs.push(self.output_column(Some(self.output_name(alias)), value, true));
                }
                SelectItem::ExprWithAliases { expr, .. } => {
                    self.resolve_expr(expr, context);
                    has_unknown_columns = true;
                }
                SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), options) => {
                    match self.resolve_wildcard(name, context) {
                        Some(source) => has_unknown_columns |= self.expand_wildcard(source, options, &mut outputs),
                        None => has_unknown_columns = true,
                    }
                }
                SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::Expr(expr), _) => {
                    self.resolve_expr(expr, context);
                    has_unknown_columns = true;
                }
                SelectItem::Wildcard(options) => {
                    for source in self.resolution.blocks[block].sources.clone() {
                        has_unknown_columns |= self.expand_wildcard(source, options, &mut outputs);
                    }
                    has_unknown_columns |= !self.resolution.blocks[block].using_columns.is_empty();
                }
            }
        }
        if has_unknown_columns || outputs.len() > MAX_COLUMNS {
            SourceColumns::Unknown
        } else {
            SourceColumns::Derived(Rc::from(outputs))
        }
    }

    /// Rejects `SELECT (a, b)`: a row, which only some dialects accept as a value.
    fn expect_scalar(&mut self, expr: &Expr) {
        if let Expr::Tuple(members) = expr
            && !self.dialect.rows_are_values
            && !self.dialect.struct_fields
        {
            self.resolution.arity_mismatches.push(ArityMismatch {
                kind: ArityKind::Subquery,
                left: 1,
                right: members.len(),
                span: expr.span(),
            });
        }
    }

    /// Adds the columns of a source. Returns `true` if they are not known exactly.
    fn expand_wildcard(
        &self,
        source: usize,
        options: &WildcardAdditionalOptions,
        outputs: &mut Vec<OutputColumn<'a>>,
    ) -> bool {
        let changed = options.opt_ilike.is_some()
            || options.opt_exclude.is_some()
            || options.opt_except.is_some()
            || options.opt_replace.is_some()
            || options.opt_rename.is_some();
        match &self.resolution.sources[source].columns {
            _ if changed => return true,
            SourceColumns::Table(table) => outputs.extend(table.columns.iter().map(|c| OutputColumn {
                name: Some(Cow::Borrowed(c.name.as_str())),
                kind: c.kind(),
                origin: Some((*table, c)),
                has_alias: false,
            })),
            SourceColumns::Derived(listed) => outputs.extend(listed.iter().cloned()),
            SourceColumns::Unknown => return true,
        }
        false
    }

    fn output_column(&self, name: Option<Cow<'a, str>>, value: ExprInfo<'a>, explicit: bool) -> OutputColumn<'a> {
        let origin = value.column.and_then(|(source, i)| self.resolution.sources[source].origin(i));
        OutputColumn { name, kind: value.kind, origin, has_alias: explicit }
    }

    /// Returns the name that the dialect gives to an item without AS; `None` if unknown.
    fn implicit_name(&self, expr: &'a Expr) -> Option<Cow<'a, str>> {
        match expr {
            Expr::Identifier(ident) => Some(self.output_name(ident)),
            Expr::CompoundIdentifier(parts) => parts.last().map(|p| self.output_name(p)),
            Expr::Function(f) if self.dialect.identifier_case == IdentifierCase::LowerUnlessQuoted => {
                Some(Cow::Owned(super::call::function_name(&f.name)))
            }
            _ if self.dialect.identifier_case == IdentifierCase::LowerUnlessQuoted => None,
            other => Some(Cow::Owned(other.to_string())),
        }
    }
}

fn projection_item<'a>(item: &'a SelectItem) -> ProjectionItem<'a> {
    match item {
        SelectItem::ExprWithAlias { expr, alias } => {
            ProjectionItem { name: Some(alias), has_alias: true, expression: Some(expr) }
        }
        SelectItem::UnnamedExpr(expr) => {
            let name = match expr {
                Expr::Identifier(ident) => Some(ident),
                Expr::CompoundIdentifier(parts) => parts.last(),
                _ => None,
            };
            ProjectionItem { name, has_alias: false, expression: Some(expr) }
        }
        SelectItem::ExprWithAliases { expr, .. } => {
            ProjectionItem { name: None, has_alias: true, expression: Some(expr) }
        }
        SelectItem::QualifiedWildcard(..) | SelectItem::Wildcard(_) => {
            ProjectionItem { name: None, has_alias: false, expression: None }
        }
    }
}
