//! What FROM brings into scope.

use std::borrow::Cow;
use std::rc::Rc;

use sqlparser::ast::{
    Expr, FunctionArg, Ident, Join, JoinConstraint, JoinOperator, ObjectName, Spanned, TableAlias, TableFactor,
    TableWithJoins,
};
use sqlparser::tokenizer::Span as Place;

use super::{BlockId, Clause, Columns, JoinKind, Output, Resolver, Source, SourceId, Spot, TableMeaning, TableUse};
use crate::dialect::Feature;
use crate::schema::{Table, Type};

impl<'a> Resolver<'a> {
    /// Adds all items of FROM to a block and resolves their conditions.
    pub(super) fn from(&mut self, from: &'a [TableWithJoins], block: BlockId) {
        let mut conditions: Vec<&'a Expr> = Vec::new();
        for (i, item) in from.iter().enumerate() {
            let kind = if i == 0 { JoinKind::First } else { JoinKind::Comma };
            let tree = self.facts.blocks[block].sources.len();
            self.tree(item, kind, block, tree, &mut conditions);
        }
        for condition in conditions {
            self.expression(condition, Spot::new(block, Clause::On));
        }
    }

    /// One table with what is joined to it; `tree` is the first source that its ON conditions see.
    fn tree(
        &mut self,
        item: &'a TableWithJoins,
        kind: JoinKind,
        block: BlockId,
        tree: usize,
        later: &mut Vec<&'a Expr>,
    ) {
        self.factor(&item.relation, kind, false, block, tree, later);
        for join in &item.joins {
            self.join(join, block, tree, later);
        }
    }

    fn join(&mut self, join: &'a Join, block: BlockId, tree: usize, later: &mut Vec<&'a Expr>) {
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
            J::FullOuter(_) => self.feature(Feature::FullJoin, join.relation.span()),
            J::CrossApply | J::OuterApply => self.feature(Feature::Apply, join.relation.span()),
            _ => {}
        }
        let has_condition = !matches!(constraint, None | Some(JoinConstraint::None));
        let before = self.facts.blocks[block].sources.len();
        self.factor(&join.relation, kind, has_condition, block, tree, later);
        match constraint {
            Some(JoinConstraint::On(condition)) if self.dialect.on_sees_all_tables => later.push(condition),
            Some(JoinConstraint::On(condition)) => {
                let end = self.facts.blocks[block].sources.len();
                let seen = std::mem::replace(&mut self.facts.blocks[block].visible, tree..end);
                self.expression(condition, Spot::new(block, Clause::On));
                self.facts.blocks[block].visible = seen;
            }
            Some(JoinConstraint::Using(names)) => names.iter().for_each(|name| self.using(name, block, tree, before)),
            Some(JoinConstraint::Natural) => self.natural(block, tree, before),
            Some(JoinConstraint::None) | None => {}
        }
    }

    /// A USING column must be on both sides, and is one column from then on.
    fn using(&mut self, name: &'a ObjectName, block: BlockId, tree: usize, right: usize) {
        let Some(ident) = name.0.last().and_then(|p| p.as_ident()) else { return };
        let count = self.facts.blocks[block].sources.len();
        let lower = ident.value.to_lowercase();
        for side in [tree..right, right..count] {
            let sources: Vec<SourceId> = self.facts.blocks[block].sources[side.clone()].to_vec();
            if sources.iter().any(|&s| self.has_column(s, ident) != Some(false)) {
                continue;
            }
            let owner = sources.last().copied();
            let meaning = owner.map_or(super::Meaning::Nowhere, super::Meaning::NotInSource);
            self.refer(None, ident, block, Spot::new(block, Clause::On), meaning, ident.span);
        }
        self.facts.blocks[block].merged.push(lower);
    }

    fn natural(&mut self, block: BlockId, tree: usize, right: usize) {
        let sources = self.facts.blocks[block].sources.clone();
        let names = |r: &[SourceId]| -> Vec<String> {
            r.iter()
                .flat_map(|&s| {
                    self.facts.sources[s].column_names().into_iter().map(str::to_lowercase).collect::<Vec<_>>()
                })
                .collect()
        };
        let left = names(&sources[tree..right]);
        let common: Vec<String> = names(&sources[right..]).into_iter().filter(|n| left.contains(n)).collect();
        self.facts.blocks[block].merged.extend(common);
    }

    /// `None` if that cannot be known.
    fn has_column(&self, source: SourceId, name: &Ident) -> Option<bool> {
        let source = &self.facts.sources[source];
        match &source.columns {
            Columns::Table(table) => Some(table.columns.iter().any(|c| self.same(name, &c.name))),
            Columns::Listed(outputs) if outputs.iter().any(|o| o.name.is_none()) => None,
            Columns::Listed(outputs) => {
                Some(outputs.iter().any(|o| o.name.as_ref().is_some_and(|n| self.same(name, n))))
            }
            Columns::Open => None,
        }
    }

    fn factor(
        &mut self,
        factor: &'a TableFactor,
        join: JoinKind,
        has_condition: bool,
        block: BlockId,
        tree: usize,
        later: &mut Vec<&'a Expr>,
    ) {
        use TableFactor as F;
        let lateral_spot = Spot::new(block, Clause::From);
        match factor {
            F::Table { name, alias, args: None, .. } => {
                let columns = self.table(name);
                let own = name.0.last().and_then(|p| p.as_ident());
                let place = name.span();
                self.source(columns, alias.as_ref(), own, place, join, has_condition, false, block);
            }
            F::Table { name, alias, args: Some(args), .. } => {
                self.table_function(name, &args.args, alias.as_ref(), join, block);
            }
            F::Function { name, args, alias, .. } => self.table_function(name, args, alias.as_ref(), join, block),
            F::Derived { lateral, subquery, alias, .. } => {
                let parent = if *lateral { Some(block) } else { self.facts.blocks[block].parent };
                if *lateral {
                    self.feature(Feature::Lateral, subquery.span());
                }
                let shape = self.query(subquery, parent);
                let place = alias.as_ref().map_or(Place::empty(), |a| a.name.span);
                let join = if *lateral { JoinKind::Lateral } else { join };
                self.source(shape.columns, alias.as_ref(), None, place, join, has_condition, shape.single_row, block);
            }
            F::TableFunction { expr, alias } => {
                self.expression(expr, lateral_spot);
                self.open_source(alias.as_ref(), None, block);
            }
            F::UNNEST { alias, array_exprs, with_offset_alias, with_ordinality, with_offset, .. } => {
                for e in array_exprs {
                    self.expression(e, lateral_spot);
                }
                let plain = !with_ordinality && !with_offset && with_offset_alias.is_none();
                let columns = alias.as_ref().filter(|a| !a.columns.is_empty() && plain).map(|a| self.listed_alias(a));
                let place = alias.as_ref().map_or(Place::empty(), |a| a.name.span);
                self.source(
                    columns.unwrap_or(Columns::Open),
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
                let start = self.facts.blocks[block].sources.len();
                self.tree(table_with_joins, join, block, tree.min(start), later);
                let inside = self.facts.blocks[block].sources.clone();
                for &s in &inside[start..] {
                    self.facts.sources[s].has_condition |= has_condition;
                }
                if alias.is_some() {
                    self.open_source(alias.as_ref(), None, block);
                }
            }
            F::Pivot { table, alias, .. }
            | F::Unpivot { table, alias, .. }
            | F::MatchRecognize { table, alias, .. } => {
                if matches!(factor, F::Pivot { .. } | F::Unpivot { .. }) {
                    self.feature(Feature::Pivot, table.span());
                }
                // The inner table's name is still checked; what comes out is not followed.
                let hidden = self.block(self.facts.blocks[block].parent);
                self.factor(table, JoinKind::First, false, hidden, 0, later);
                let own = match &**table {
                    F::Table { name, alias: None, .. } => name.0.last().and_then(|p| p.as_ident()),
                    F::Table { alias: Some(inner), .. } => Some(&inner.name),
                    _ => None,
                };
                self.open_source(alias.as_ref(), own, block);
            }
            F::JsonTable { json_expr, alias, .. } | F::OpenJsonTable { json_expr, alias, .. } => {
                self.expression(json_expr, lateral_spot);
                self.open_source(alias.as_ref(), None, block);
            }
            F::XmlTable { row_expression, passing, alias, .. } => {
                self.expression(row_expression, lateral_spot);
                for argument in &passing.arguments {
                    self.expression(&argument.expr, lateral_spot);
                }
                self.open_source(alias.as_ref(), None, block);
            }
            F::UnpivotExpr { expression, .. } => {
                self.expression(expression, lateral_spot);
                self.open_source(None, None, block);
            }
            F::SemanticView { alias, .. } => self.open_source(alias.as_ref(), None, block),
        }
    }

    fn table_function(
        &mut self,
        name: &'a ObjectName,
        args: &'a [FunctionArg],
        alias: Option<&'a TableAlias>,
        join: JoinKind,
        block: BlockId,
    ) {
        self.call_in_from(name, args, block);
        let own = name.0.last().and_then(|p| p.as_ident());
        let columns = alias.filter(|a| !a.columns.is_empty()).map_or(Columns::Open, |a| self.listed_alias(a));
        let join = if join == JoinKind::First { join } else { JoinKind::Lateral };
        self.source(columns, alias, own, name.span(), join, true, false, block);
    }

    pub(super) fn open_source(&mut self, alias: Option<&'a TableAlias>, own: Option<&'a Ident>, block: BlockId) {
        let place = alias.map(|a| a.name.span).or(own.map(|o| o.span)).unwrap_or(Place::empty());
        self.source(Columns::Open, alias, own, place, JoinKind::Lateral, true, false, block);
    }

    #[allow(clippy::too_many_arguments)]
    pub(super) fn source(
        &mut self,
        columns: Columns<'a>,
        alias: Option<&'a TableAlias>,
        own: Option<&'a Ident>,
        place: Place,
        join: JoinKind,
        has_condition: bool,
        single_row: bool,
        block: BlockId,
    ) {
        let columns = match alias {
            Some(alias) if !alias.columns.is_empty() => self.renamed(columns, alias),
            _ => columns,
        };
        if let Some(alias) = alias.filter(|a| a.name.quote_style.is_none()) {
            self.facts.plain_names.push(&alias.name);
        }
        let name = alias.map(|a| &a.name).or(own);
        let id = self.facts.sources.len();
        self.facts.sources.push(Source { block, name, place, columns, join, has_condition, single_row });
        let block = &mut self.facts.blocks[block];
        block.sources.push(id);
        block.visible = 0..block.sources.len();
    }

    /// What a table name in FROM means; whatever is not known is open.
    fn table(&mut self, name: &'a ObjectName) -> Columns<'a> {
        let parts: Vec<&'a Ident> = name.0.iter().filter_map(|p| p.as_ident()).collect();
        for part in parts.iter().filter(|p| p.quote_style.is_none()) {
            self.facts.plain_names.push(part);
        }
        let (columns, meaning) = self.table_meaning(&parts);
        self.facts.tables.push(TableUse { name, meaning, place: name.span() });
        columns
    }

    /// Whether a name is one of those that tables without a schema may be qualified with.
    fn may_stand_before(&self, qualifier: &Ident) -> bool {
        let only = self.dialect.only_schemas;
        only.is_empty() || only.iter().any(|s| s.eq_ignore_ascii_case(&qualifier.value))
    }

    fn table_meaning(&self, parts: &[&'a Ident]) -> (Columns<'a>, TableMeaning<'a>) {
        let Some(last) = parts.last() else { return (Columns::Open, TableMeaning::Unlisted) };
        if parts.len() == 1 {
            if let Some(cte) = self.ctes.iter().rev().find(|c| self.same_cte(c.name, last)) {
                return (cte.columns.clone(), TableMeaning::Cte);
            }
            // Not every engine lets a CTE read a later one: it may be the table of that name, and is guarded like it.
            if self.later_ctes.iter().any(|c| self.same_cte(c, last)) {
                return (Columns::Open, TableMeaning::Unlisted);
            }
        }
        let Some(schema) = self.schema else { return (Columns::Open, TableMeaning::Unlisted) };
        let qualifier = parts.len().checked_sub(2).map(|i| parts[i]);
        let fits = |table: &&Table| {
            self.same(last, &table.name)
                && match (qualifier, &table.schema) {
                    (Some(q), Some(s)) => self.same(q, s),
                    (Some(q), None) => self.may_stand_before(q),
                    (None, _) => true,
                }
        };
        if let Some(table) = schema.tables_like(&last.value.to_lowercase()).find(fits) {
            return (Columns::Table(table), TableMeaning::Stored(table));
        }
        let is_system = match qualifier {
            Some(q) => {
                self.dialect.system_schemas.iter().any(|s| s.eq_ignore_ascii_case(&q.value))
                    && !self.dialect.hidden_columns.contains(&"rowid")
            }
            None => self.dialect.system_schemas.contains(&"pg_catalog") && last.value.to_lowercase().starts_with("pg_"),
        };
        if is_system || self.dialect.system_tables.iter().any(|t| t.eq_ignore_ascii_case(&last.value)) {
            return (Columns::Open, TableMeaning::Unlisted);
        }
        // Table-valued functions without arguments may stand without parentheses (pragma_database_list).
        if self.dialect.functions.get(&last.value.to_lowercase()).is_some_and(|f| f.table) {
            return (Columns::Open, TableMeaning::Unlisted);
        }
        (Columns::Open, TableMeaning::Unknown)
    }

    fn listed_alias(&self, alias: &'a TableAlias) -> Columns<'a> {
        Columns::Listed(alias.columns.iter().map(|c| self.named_output(&c.name)).collect())
    }

    fn named_output(&self, name: &'a Ident) -> Output<'a> {
        Output { name: Some(self.actual(name)), kind: Type::Any, origin: None, explicit: true }
    }

    /// `AS t(a, b)` renames the first columns and leaves the rest.
    pub(super) fn renamed(&self, columns: Columns<'a>, alias: &'a TableAlias) -> Columns<'a> {
        let before: Vec<Output<'a>> = match &columns {
            Columns::Open => return Columns::Open,
            Columns::Table(table) => table
                .columns
                .iter()
                .map(|c| Output {
                    name: Some(Cow::Borrowed(c.name.as_str())),
                    kind: c.kind(),
                    origin: Some((*table, c)),
                    explicit: false,
                })
                .collect(),
            Columns::Listed(outputs) => outputs.to_vec(),
        };
        let mut outputs = before;
        for (i, column) in alias.columns.iter().enumerate() {
            match outputs.get_mut(i) {
                Some(o) => o.name = Some(self.actual(&column.name)),
                None => outputs.push(self.named_output(&column.name)),
            }
        }
        Columns::Listed(Rc::from(outputs))
    }
}
