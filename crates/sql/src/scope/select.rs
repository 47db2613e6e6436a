//! SELECT blocks: what they group by, what they give.

use std::borrow::Cow;
use std::rc::Rc;

use sqlparser::ast::{
    BinaryOperator, Expr, GroupByExpr, NamedWindowExpr, Select, SelectItem, SelectItemQualifiedWildcardKind, Spanned,
    Value as Literal, WildcardAdditionalOptions,
};
use sqlparser::tokenizer::Span as Place;

use super::{Arity, ArityKind, Block, BlockId, Clause, Columns, Item, JoinKind, Output, Resolver, Spot, Value};
use crate::dialect::{Feature, NameCase};
use crate::schema::{Schema, Type};

/// No engine gives more columns than this; a query that multiplies its columns at every step is not followed further.
const MOST_COLUMNS: usize = 4_096;

impl<'a> Resolver<'a> {
    pub(super) fn block(&mut self, parent: Option<BlockId>) -> BlockId {
        self.facts.blocks.push(Block {
            parent,
            sources: Vec::new(),
            merged: Vec::new(),
            items: Vec::new(),
            keys: Vec::new(),
            grouped: false,
            fancy_grouping: false,
            aggregates: false,
            distinct: false,
            place: Place::empty(),
            from: Place::empty().start,
            visible: 0..0,
        });
        self.facts.blocks.len() - 1
    }

    pub(super) fn select(&mut self, select: &'a Select, parent: Option<BlockId>) -> (BlockId, Columns<'a>, bool) {
        let block = self.block(parent);
        self.facts.blocks[block].distinct = select.distinct.is_some();
        self.facts.blocks[block].place = select.select_token.0.span;
        self.facts.blocks[block].from = select.from.first().map_or(Place::empty().start, |f| f.relation.span().start);
        self.from(&select.from, block);
        for view in &select.lateral_views {
            self.expression(&view.lateral_view, Spot::new(block, Clause::From));
            let own = view.lateral_view_name.0.last().and_then(|p| p.as_ident());
            let columns = if view.lateral_col_alias.is_empty() {
                Columns::Open
            } else {
                Columns::Listed(
                    view.lateral_col_alias
                        .iter()
                        .map(|c| Output { name: Some(self.actual(c)), kind: Type::Any, origin: None, explicit: true })
                        .collect(),
                )
            };
            self.source(columns, None, own, view.lateral_view_name.span(), JoinKind::Lateral, true, false, block);
        }
        self.facts.blocks[block].items = select.projection.iter().map(item).collect();
        self.group_keys(select, block);

        for condition in select.prewhere.iter().chain(&select.selection) {
            self.expression(condition, Spot::new(block, Clause::Where));
        }
        if !select.connect_by.is_empty() {
            // Hierarchical queries bring pseudo-columns of their own.
            self.open_source(None, None, block);
        }
        if let GroupByExpr::Expressions(keys, _) = &select.group_by {
            for key in keys {
                self.group_key(key, block);
            }
        }
        let columns = self.projection(select, block);
        let clauses = [(&select.having, Clause::Having), (&select.qualify, Clause::Qualify)];
        for (condition, clause) in clauses {
            if let Some(condition) = condition {
                self.expression(condition, Spot::new(block, clause));
            }
        }
        if let Some(qualify) = &select.qualify {
            self.feature(Feature::Qualify, qualify.span());
        }
        if let Some(sqlparser::ast::Distinct::On(keys)) = &select.distinct {
            self.feature(Feature::DistinctOn, select.select_token.0.span);
            keys.iter().for_each(|k| _ = self.expression(k, Spot::new(block, Clause::OrderBy)));
        }
        for expr in select.cluster_by.iter().chain(&select.distribute_by).chain(select.sort_by.iter().map(|s| &s.expr))
        {
            self.expression(expr, Spot::new(block, Clause::OrderBy));
        }
        for window in &select.named_window {
            if let NamedWindowExpr::WindowSpec(spec) = &window.1 {
                self.window(spec, Spot::new(block, Clause::Select));
            }
        }
        let b = &self.facts.blocks[block];
        let single_row = (b.aggregates && !b.grouped)
            || (b.sources.is_empty() && select.selection.is_none())
            || self.key_is_fixed(block);
        (block, columns, single_row)
    }

    /// Whether WHERE fixes a unique key of the block's only table.
    fn key_is_fixed(&self, block: BlockId) -> bool {
        let [source] = self.facts.blocks[block].sources.as_slice() else { return false };
        let Some(table) = self.facts.sources[*source].table() else { return false };
        let mut fixed: Vec<&str> = Vec::new();
        for o in self
            .facts
            .operations
            .iter()
            .filter(|o| o.block == Some(block) && o.required && *o.operator == BinaryOperator::Eq)
        {
            for (side, other) in [(o.left, o.right), (o.right, o.left)] {
                if let Some((s, i)) = side.column.filter(|(s, _)| s == source)
                    && other.touches & 1u64.checked_shl(s as u32).unwrap_or(0) == 0
                {
                    fixed.push(&table.columns[i].name);
                }
            }
        }
        // What no key says the rows may: where every one of them was read.
        let values = self.schema.and_then(Schema::values);
        let held = |column: &&str| values.and_then(|values| values.of(&table.full_name(), column));
        table.is_unique(&fixed) || fixed.iter().any(|column| held(column).is_some_and(|held| held.unique))
    }

    /// What the block groups by, with ordinals and aliases followed to the items they stand for.
    fn group_keys(&mut self, select: &'a Select, block: BlockId) {
        let GroupByExpr::Expressions(keys, modifiers) = &select.group_by else {
            self.facts.blocks[block].grouped = true;
            self.facts.blocks[block].fancy_grouping = true;
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
                        && let Some(Some(e)) =
                            n.checked_sub(1).and_then(|i| self.facts.blocks[block].items.get(i)).map(|i| i.expression)
                    {
                        followed.push(e);
                    } else {
                        fancy = true;
                    }
                }
                Expr::Identifier(name) => {
                    followed.push(key);
                    if let Some(e) =
                        self.alias(name, block, false).and_then(|i| self.facts.blocks[block].items[i].expression)
                    {
                        followed.push(e);
                    }
                }
                _ => followed.push(key),
            }
        }
        let b = &mut self.facts.blocks[block];
        (b.keys, b.grouped, b.fancy_grouping) = (followed, !keys.is_empty() || fancy, fancy);
    }

    fn group_key(&mut self, key: &'a Expr, block: BlockId) {
        let inside = !matches!(key, Expr::Identifier(_));
        let spot = Spot { in_key: true, inside, ..Spot::new(block, Clause::GroupBy) };
        match key {
            Expr::GroupingSets(sets) | Expr::Cube(sets) | Expr::Rollup(sets) => {
                self.feature(Feature::GroupingSets, key.span());
                sets.iter().flatten().for_each(|e| _ = self.expression(e, spot));
            }
            _ => _ = self.expression(key, spot),
        }
    }

    /// The SELECT list: walks it and says what it gives.
    fn projection(&mut self, select: &'a Select, block: BlockId) -> Columns<'a> {
        let spot = Spot::new(block, Clause::Select);
        let mut outputs: Vec<Output<'a>> = Vec::with_capacity(select.projection.len());
        let mut open = select.exclude.is_some() || select.value_table_mode.is_some();
        for item in &select.projection {
            match item {
                SelectItem::UnnamedExpr(expr) => {
                    self.expect_scalar(expr);
                    let value = self.expression(expr, spot);
                    outputs.push(self.output(self.unnamed(expr), value, false));
                }
                SelectItem::ExprWithAlias { expr, alias } => {
                    self.expect_scalar(expr);
                    let value = self.expression(expr, spot);
                    if alias.quote_style.is_none() && !self.dialect.reserved_behind_as {
                        self.facts.plain_names.push(alias);
                    }
                    outputs.push(self.output(Some(self.actual(alias)), value, true));
                }
                SelectItem::ExprWithAliases { expr, .. } => {
                    self.expression(expr, spot);
                    open = true;
                }
                SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), options) => {
                    match self.wildcard_of(name, spot) {
                        Some(source) => open |= self.expand(source, options, &mut outputs),
                        None => open = true,
                    }
                }
                SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::Expr(expr), _) => {
                    self.expression(expr, spot);
                    open = true;
                }
                SelectItem::Wildcard(options) => {
                    for source in self.facts.blocks[block].sources.clone() {
                        open |= self.expand(source, options, &mut outputs);
                    }
                    open |= !self.facts.blocks[block].merged.is_empty();
                }
            }
        }
        if open || outputs.len() > MOST_COLUMNS { Columns::Open } else { Columns::Listed(Rc::from(outputs)) }
    }

    /// `SELECT (a, b)` is a row, which only some dialects take for a value.
    fn expect_scalar(&mut self, expr: &Expr) {
        if let Expr::Tuple(members) = expr
            && !self.dialect.rows_are_values
            && !self.dialect.struct_fields
        {
            self.facts.arities.push(Arity {
                kind: ArityKind::Subquery,
                left: 1,
                right: members.len(),
                place: expr.span(),
            });
        }
    }

    /// Adds the columns of a source; true if they are not known exactly.
    fn expand(&self, source: usize, options: &WildcardAdditionalOptions, outputs: &mut Vec<Output<'a>>) -> bool {
        let changed = options.opt_ilike.is_some()
            || options.opt_exclude.is_some()
            || options.opt_except.is_some()
            || options.opt_replace.is_some()
            || options.opt_rename.is_some();
        match &self.facts.sources[source].columns {
            _ if changed => return true,
            Columns::Table(table) => outputs.extend(table.columns.iter().map(|c| Output {
                name: Some(Cow::Borrowed(c.name.as_str())),
                kind: c.kind(),
                origin: Some((*table, c)),
                explicit: false,
            })),
            Columns::Listed(listed) => outputs.extend(listed.iter().cloned()),
            Columns::Open => return true,
        }
        false
    }

    fn output(&self, name: Option<Cow<'a, str>>, value: Value<'a>, explicit: bool) -> Output<'a> {
        let origin = value.column.and_then(|(source, i)| self.facts.sources[source].origin(i));
        Output { name, kind: value.kind, origin, explicit }
    }

    /// The name that a dialect gives to an item without AS; `None` where we do not know it.
    fn unnamed(&self, expr: &'a Expr) -> Option<Cow<'a, str>> {
        match expr {
            Expr::Identifier(ident) => Some(self.actual(ident)),
            Expr::CompoundIdentifier(parts) => parts.last().map(|p| self.actual(p)),
            Expr::Function(f) if self.dialect.names == NameCase::LowerUnlessQuoted => {
                Some(Cow::Owned(super::call::function_name(&f.name)))
            }
            _ if self.dialect.names == NameCase::LowerUnlessQuoted => None,
            other => Some(Cow::Owned(other.to_string())),
        }
    }
}

fn item<'a>(item: &'a SelectItem) -> Item<'a> {
    match item {
        SelectItem::ExprWithAlias { expr, alias } => Item { name: Some(alias), explicit: true, expression: Some(expr) },
        SelectItem::UnnamedExpr(expr) => {
            let name = match expr {
                Expr::Identifier(ident) => Some(ident),
                Expr::CompoundIdentifier(parts) => parts.last(),
                _ => None,
            };
            Item { name, explicit: false, expression: Some(expr) }
        }
        SelectItem::ExprWithAliases { expr, .. } => Item { name: None, explicit: true, expression: Some(expr) },
        SelectItem::QualifiedWildcard(..) | SelectItem::Wildcard(_) => {
            Item { name: None, explicit: false, expression: None }
        }
    }
}
