//! Resolves FROM: the relations that it brings into scope.

use std::borrow::Cow;
use std::rc::Rc;

use sqlparser::ast::{
    Expr, FunctionArg, Ident, Join, JoinConstraint, JoinOperator, ObjectName, Spanned, TableAlias, TableFactor,
    TableWithJoins,
};
use sqlparser::tokenizer::Span as TokenSpan;

use super::{
    BlockId, Clause, ExprContext, JoinKind, OutputColumn, QuerySource, Resolver, SourceColumns, SourceId, TableBinding,
    TableReference,
};
use crate::dialect::Feature;
use crate::schema::{Table, Type};

impl<'a> Resolver<'a> {
    /// Adds all items of FROM to a block and resolves their conditions.
    pub(super) fn resolve_from(&mut self, from: &'a [TableWithJoins], block: BlockId) {
        let mut conditions: Vec<&'a Expr> = Vec::new();
        for (i, item) in from.iter().enumerate() {
            let kind = if i == 0 { JoinKind::First } else { JoinKind::Comma };
            let tree = self.resolution.blocks[block].sources.len();
            self.resolve_join_tree(item, kind, block, tree, &mut conditions);
        }
        for condition in conditions {
            self.resolve_expr(condition, ExprContext::new(block, Clause::On));
        }
    }

    /// Resolves a table with its joins; `tree` is the first source that its ON conditions see.
    fn resolve_join_tree(
        &mut self,
        item: &'a TableWithJoins,
        kind: JoinKind,
        block: BlockId,
        tree: usize,
        later: &mut Vec<&'a Expr>,
    ) {
        self.resolve_table_factor(&item.relation, kind, false, block, tree, later);
        for join in &item.joins {
            self.resolve_join(join, block, tree, later);
        }
    }

    fn resolve_join(&mut self, join: &'a Join, block: BlockId, tree: usize, later: &mut Vec<&'a Expr>) {
        use JoinOperator as J;
        let (kind, constraint) = match &join.join_operator {
            J::Join(c) | J::Inner(c) | J::StraightJoin(c) => (JoinKind::Inner, Some(c)),
            J::CrossJoin(c) => (JoinKind::Cross, Some(c)),
            J::Semi(c) | J::LeftSemi(c) | J::RightSemi(c) | J::Anti(c) | J::LeftAnti(c) | J::RightAnti(c) => {
                (JoinKind::Inner, Some(c))
            }
            J::Left(c) | J::LeftOuter(c) | J::Right(c) | J::RightOuter(c) | J::FullOuter(c) => {
                (JoinKind::Outer, Some(c))
            }
            J::AsOf { match_condition, constraint } => {
                later.push(match_condition);
                (JoinKind::Outer, Some(constraint))
            }
            J::CrossApply | J::OuterApply | J::ArrayJoin | J::LeftArrayJoin | J::InnerArrayJoin => {
                (JoinKind::Lateral, None)
            }
        };
        match &join.join_operator {
            J::FullOuter(_) => self.record_feature(Feature::FullJoin, join.relation.span()),
            J::CrossApply | J::OuterApply => self.record_feature(Feature::Apply, join.relation.span()),
            _ => {}
        }
        let has_condition = !matches!(constraint, None | Some(JoinConstraint::None));
        let before = self.resolution.blocks[block].sources.len();
        self.resolve_table_factor(&join.relation, kind, has_condition, block, tree, later);
        match constraint {
            Some(JoinConstraint::On(condition)) if self.dialect.on_sees_all_tables => later.push(condition),
            Some(JoinConstraint::On(condition)) => {
                let end = self.resolution.blocks[block].sources.len();
                let seen = std::mem::replace(&mut self.resolution.blocks[block].visible_range, tree..end);
                self.resolve_expr(condition, ExprContext::new(block, Clause::On));
                self.resolution.blocks[block].visible_range = seen;
            }
            Some(JoinConstraint::Using(names)) => {
                names.iter().for_each(|name| self.resolve_using(name, block, tree, before))
            }
            Some(JoinConstraint::Natural) => self.resolve_natural(block, tree, before),
            Some(JoinConstraint::None) | None => {}
        }
    }

    /// Resolves a USING column, which must exist on both sides and is a single column from then on.
    fn resolve_using(&mut self, name: &'a ObjectName, block: BlockId, tree: usize, right: usize) {
        let Some(ident) = name.0.last().and_then(|p| p.as_ident()) else { return };
        let count = self.resolution.blocks[block].sources.len();
        let lower = ident.value.to_lowercase();
        for side in [tree..right, right..count] {
            let sources: Vec<SourceId> = self.resolution.blocks[block].sources[side.clone()].to_vec();
            if sources.iter().any(|&s| self.has_column(s, ident) != Some(false)) {
                continue;
            }
            let owner = sources.last().copied();
            let binding = owner.map_or(super::ColumnBinding::Unresolved, super::ColumnBinding::NotInSource);
            self.record_reference(None, ident, block, ExprContext::new(block, Clause::On), binding, ident.span);
        }
        self.resolution.blocks[block].using_columns.push(lower);
    }

    fn resolve_natural(&mut self, block: BlockId, tree: usize, right: usize) {
        let sources = self.resolution.blocks[block].sources.clone();
        let names = |r: &[SourceId]| -> Vec<String> {
            r.iter()
                .flat_map(|&s| {
                    self.resolution.sources[s].column_names().into_iter().map(str::to_lowercase).collect::<Vec<_>>()
                })
                .collect()
        };
        let left = names(&sources[tree..right]);
        let common: Vec<String> = names(&sources[right..]).into_iter().filter(|n| left.contains(n)).collect();
        self.resolution.blocks[block].using_columns.extend(common);
    }

    /// Returns whether a source has a column; `None` if its columns are unknown.
    fn has_column(&self, source: SourceId, name: &Ident) -> Option<bool> {
        let source = &self.resolution.sources[source];
        match &source.columns {
            SourceColumns::Table(table) => Some(table.columns.iter().any(|c| self.is_same_name(name, &c.name))),
            SourceColumns::Derived(outputs) if outputs.iter().any(|o| o.name.is_none()) => None,
            SourceColumns::Derived(outputs) => {
                Some(outputs.iter().any(|o| o.name.as_ref().is_some_and(|n| self.is_same_name(name, n))))
            }
            SourceColumns::Unknown => None,
        }
    }

    fn resolve_table_factor(
        &mut self,
        factor: &'a TableFactor,
        join: JoinKind,
        has_condition: bool,
        block: BlockId,
        tree: usize,
        later: &mut Vec<&'a Expr>,
    ) {
        use TableFactor as F;
        let lateral_spot = ExprContext::new(block, Clause::From);
        match factor {
            F::Table { name, alias, args: None, .. } => {
                let columns = self.resolve_table(name);
                let own = name.0.last().and_then(|p| p.as_ident());
                let place = name.span();
                self.add_source(columns, alias.as_ref(), own, place, join, has_condition, false, block);
            }
            F::Table { name, alias, args: Some(args), .. } => {
                self.resolve_table_function(name, &args.args, alias.as_ref(), join, block);
            }
            F::Function { name, args, alias, .. } => {
                self.resolve_table_function(name, args, alias.as_ref(), join, block)
            }
            F::Derived { lateral, subquery, alias, .. } => {
                let parent = if *lateral { Some(block) } else { self.resolution.blocks[block].parent };
                if *lateral {
                    self.record_feature(Feature::Lateral, subquery.span());
                }
                let shape = self.resolve_query(subquery, parent);
                let place = alias.as_ref().map_or(TokenSpan::empty(), |a| a.name.span);
                let join = if *lateral { JoinKind::Lateral } else { join };
                self.add_source(
                    shape.columns,
                    alias.as_ref(),
                    None,
                    place,
                    join,
                    has_condition,
                    shape.is_single_row,
                    block,
                );
            }
            F::TableFunction { expr, alias } => {
                self.resolve_expr(expr, lateral_spot);
                self.add_unknown_source(alias.as_ref(), None, block);
            }
            F::UNNEST { alias, array_exprs, with_offset_alias, with_ordinality, with_offset, .. } => {
                for e in array_exprs {
                    self.resolve_expr(e, lateral_spot);
                }
                let plain = !with_ordinality && !with_offset && with_offset_alias.is_none();
                let columns = alias.as_ref().filter(|a| !a.columns.is_empty() && plain).map(|a| self.alias_columns(a));
                let place = alias.as_ref().map_or(TokenSpan::empty(), |a| a.name.span);
                self.add_source(
                    columns.unwrap_or(SourceColumns::Unknown),
                    alias.as_ref(),
                    None,
                    place,
                    JoinKind::Lateral,
                    true,
                    false,
                    block,
                );
            }
            F::NestedJoin { table_with_joins, alias } => {
                let start = self.resolution.blocks[block].sources.len();
                self.resolve_join_tree(table_with_joins, join, block, tree.min(start), later);
                let inside = self.resolution.blocks[block].sources.clone();
                for &s in &inside[start..] {
                    self.resolution.sources[s].has_condition |= has_condition;
                }
                if alias.is_some() {
                    self.add_unknown_source(alias.as_ref(), None, block);
                }
            }
            F::Pivot { table, alias, .. }
            | F::Unpivot { table, alias, .. }
            | F::MatchRecognize { table, alias, .. } => {
                if matches!(factor, F::Pivot { .. } | F::Unpivot { .. }) {
                    self.record_feature(Feature::Pivot, table.span());
                }
                // The inner table's name is checked, but the output columns are not tracked.
                let hidden = self.add_block(self.resolution.blocks[block].parent);
                self.resolve_table_factor(table, JoinKind::First, false, hidden, 0, later);
                let own = match &**table {
                    F::Table { name, alias: None, .. } => name.0.last().and_then(|p| p.as_ident()),
                    F::Table { alias: Some(inner), .. } => Some(&inner.name),
                    _ => None,
                };
                self.add_unknown_source(alias.as_ref(), own, block);
            }
            F::JsonTable { json_expr, alias, .. } | F::OpenJsonTable { json_expr, alias, .. } => {
                self.resolve_expr(json_expr, lateral_spot);
                self.add_unknown_source(alias.as_ref(), None, block);
            }
            F::XmlTable { row_expression, passing, alias, .. } => {
                self.resolve_expr(row_expression, lateral_spot);
                for argument in &passing.arguments {
                    self.resolve_expr(&argument.expr, lateral_spot);
                }
                self.add_unknown_source(alias.as_ref(), None, block);
            }
            F::UnpivotExpr { expression, .. } => {
                self.resolve_expr(expression, lateral_spot);
                self.add_unknown_source(None, None, block);
            }
            F::SemanticView { alias, .. } => self.add_unknown_source(alias.as_ref(), None, block),
        }
    }

    fn resolve_table_function(
        &mut self,
        name: &'a ObjectName,
        args: &'a [FunctionArg],
        alias: Option<&'a TableAlias>,
        join: JoinKind,
        block: BlockId,
    ) {
        self.record_table_function(name, args, block);
        let own = name.0.last().and_then(|p| p.as_ident());
        let columns = alias.filter(|a| !a.columns.is_empty()).map_or(SourceColumns::Unknown, |a| self.alias_columns(a));
        let join = if join == JoinKind::First { join } else { JoinKind::Lateral };
        self.add_source(columns, alias, own, name.span(), join, true, false, block);
    }

    pub(super) fn add_unknown_source(&mut self, alias: Option<&'a TableAlias>, own: Option<&'a Ident>, block: BlockId) {
        let span = alias.map(|a| a.name.span).or(own.map(|o| o.span)).unwrap_or(TokenSpan::empty());
        self.add_source(SourceColumns::Unknown, alias, own, span, JoinKind::Lateral, true, false, block);
    }

    #[allow(clippy::too_many_arguments)]
    pub(super) fn add_source(
        &mut self,
        columns: SourceColumns<'a>,
        alias: Option<&'a TableAlias>,
        own: Option<&'a Ident>,
        span: TokenSpan,
        join: JoinKind,
        has_condition: bool,
        single_row: bool,
        block: BlockId,
    ) {
        let columns = match alias {
            Some(alias) if !alias.columns.is_empty() => self.rename_columns(columns, alias),
            _ => columns,
        };
        if let Some(alias) = alias.filter(|a| a.name.quote_style.is_none()) {
            self.resolution.unquoted_identifiers.push(&alias.name);
        }
        let name = alias.map(|a| &a.name).or(own);
        let id = self.resolution.sources.len();
        self.resolution.sources.push(QuerySource {
            block,
            name,
            span,
            columns,
            join,
            has_condition,
            is_single_row: single_row,
        });
        let block = &mut self.resolution.blocks[block];
        block.sources.push(id);
        block.visible_range = 0..block.sources.len();
    }

    /// Resolves a table name in FROM. An unknown table has unknown columns.
    fn resolve_table(&mut self, name: &'a ObjectName) -> SourceColumns<'a> {
        let parts: Vec<&'a Ident> = name.0.iter().filter_map(|p| p.as_ident()).collect();
        for part in parts.iter().filter(|p| p.quote_style.is_none()) {
            self.resolution.unquoted_identifiers.push(part);
        }
        let (columns, binding) = self.bind_table(&parts);
        self.resolution.tables.push(TableReference { name, binding, span: name.span() });
        columns
    }

    /// Returns whether tables without a schema may be qualified with this name.
    fn is_allowed_qualifier(&self, qualifier: &Ident) -> bool {
        let only = self.dialect.allowed_qualifiers;
        only.is_empty() || only.iter().any(|s| s.eq_ignore_ascii_case(&qualifier.value))
    }

    fn bind_table(&self, parts: &[&'a Ident]) -> (SourceColumns<'a>, TableBinding<'a>) {
        let Some(last) = parts.last() else { return (SourceColumns::Unknown, TableBinding::Unlisted) };
        if parts.len() == 1 {
            if let Some(cte) = self.ctes.iter().rev().find(|c| self.is_same_cte_name(c.name, last)) {
                return (cte.columns.clone(), TableBinding::Cte);
            }
            // Not every engine lets a CTE read a later one: the name may be a stored table, and is
            // subject to the same access policy.
            if self.later_ctes.iter().any(|c| self.is_same_cte_name(c, last)) {
                return (SourceColumns::Unknown, TableBinding::Unlisted);
            }
        }
        let Some(schema) = self.schema else { return (SourceColumns::Unknown, TableBinding::Unlisted) };
        let qualifier = parts.len().checked_sub(2).map(|i| parts[i]);
        let fits = |table: &&Table| {
            self.is_same_name(last, &table.name)
                && match (qualifier, &table.schema) {
                    (Some(q), Some(s)) => self.is_same_name(q, s),
                    (Some(q), None) => self.is_allowed_qualifier(q),
                    (None, _) => true,
                }
        };
        if let Some(table) = schema.tables_ignoring_case(&last.value.to_lowercase()).find(fits) {
            return (SourceColumns::Table(table), TableBinding::Stored(table));
        }
        let is_system = match qualifier {
            Some(q) => {
                self.dialect.system_schemas.iter().any(|s| s.eq_ignore_ascii_case(&q.value))
                    && !self.dialect.system_columns.contains(&"rowid")
            }
            None => self.dialect.system_schemas.contains(&"pg_catalog") && last.value.to_lowercase().starts_with("pg_"),
        };
        if is_system || self.dialect.system_tables.iter().any(|t| t.eq_ignore_ascii_case(&last.value)) {
            return (SourceColumns::Unknown, TableBinding::Unlisted);
        }
        // Table-valued functions without arguments may be written without parentheses
        // (pragma_database_list).
        if self.dialect.functions.get(&last.value.to_lowercase()).is_some_and(|f| f.table) {
            return (SourceColumns::Unknown, TableBinding::Unlisted);
        }
        (SourceColumns::Unknown, TableBinding::Unknown)
    }

    fn alias_columns(&self, alias: &'a TableAlias) -> SourceColumns<'a> {
        SourceColumns::Derived(alias.columns.iter().map(|c| self.aliased_output(&c.name)).collect())
    }

    fn aliased_output(&self, name: &'a Ident) -> OutputColumn<'a> {
        OutputColumn { name: Some(self.output_name(name)), kind: Type::Any, origin: None, has_alias: true }
    }

    /// Renames the leading columns, as in `AS t(a, b)`; the rest keep their names.
    pub(super) fn rename_columns(&self, columns: SourceColumns<'a>, alias: &'a TableAlias) -> SourceColumns<'a> {
        let before: Vec<OutputColumn<'a>> = match &columns {
            SourceColumns::Unknown => return SourceColumns::Unknown,
            SourceColumns::Table(table) => table
                .columns
                .iter()
                .map(|c| OutputColumn {
                    name: Some(Cow::Borrowed(c.name.as_str())),
                    kind: c.kind(),
                    origin: Some((*table, c)),
                    has_alias: false,
                })
                .collect(),
            SourceColumns::Derived(outputs) => outputs.to_vec(),
        };
        let mut outputs = before;
        for (i, column) in alias.columns.iter().enumerate() {
            match outputs.get_mut(i) {
                Some(o) => o.name = Some(self.output_name(&column.name)),
                None => outputs.push(self.aliased_output(&column.name)),
            }
        }
        SourceColumns::Derived(Rc::from(outputs))
    }
}
