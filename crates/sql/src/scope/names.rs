//! Looking names up: innermost block first, then outward.

use std::borrow::Cow;

use sqlparser::ast::{Ident, Spanned};
use sqlparser::tokenizer::Span as Place;

use super::{BlockId, Clause, Columns, Meaning, Reference, Resolver, SourceId, Spot, Value};
use crate::dialect::{DoubleQuotes, NameCase};
use crate::schema::Type;

/// What a source says to a name.
enum Found {
    Yes(usize),
    Twice,
    Maybe,
    No,
}

impl<'a> Resolver<'a> {
    /// Whether a written name and an actual one are the same in this dialect.
    pub(super) fn same(&self, written: &Ident, actual: &str) -> bool {
        match self.dialect.names {
            NameCase::Ignored => {
                written.value.eq_ignore_ascii_case(actual)
                    || (!actual.is_ascii() && written.value.to_lowercase() == actual.to_lowercase())
            }
            NameCase::LowerUnlessQuoted if written.quote_style.is_some() => written.value == actual,
            NameCase::LowerUnlessQuoted => written.value.to_lowercase() == actual,
        }
    }

    /// Whether two written names are the same.
    pub(super) fn same_written(&self, a: &Ident, b: &Ident) -> bool {
        match self.dialect.names {
            NameCase::Ignored => {
                a.value.eq_ignore_ascii_case(&b.value) || a.value.to_lowercase() == b.value.to_lowercase()
            }
            NameCase::LowerUnlessQuoted => self.folded(a) == self.folded(b),
        }
    }

    /// Whether a name means a CTE. Letters beyond ASCII are not folded: engines differ, and a CTE that hides a table for us
    /// must hide it for all of them.
    pub(super) fn same_cte(&self, cte: &Ident, name: &Ident) -> bool {
        match self.dialect.names {
            NameCase::Ignored => cte.value.eq_ignore_ascii_case(&name.value),
            NameCase::LowerUnlessQuoted => {
                let fold =
                    |i: &Ident| if i.quote_style.is_some() { i.value.clone() } else { i.value.to_ascii_lowercase() };
                fold(cte) == fold(name)
            }
        }
    }

    /// The name under which a written name can be found again.
    pub(super) fn actual(&self, name: &'a Ident) -> Cow<'a, str> {
        let folds = self.dialect.names == NameCase::LowerUnlessQuoted && name.quote_style.is_none();
        if folds && name.value.chars().any(char::is_uppercase) {
            Cow::Owned(name.value.to_lowercase())
        } else {
            Cow::Borrowed(&name.value)
        }
    }

    pub(super) fn folded(&self, name: &Ident) -> String {
        match self.dialect.names {
            NameCase::LowerUnlessQuoted if name.quote_style.is_some() => name.value.clone(),
            NameCase::LowerUnlessQuoted | NameCase::Ignored => name.value.to_lowercase(),
        }
    }

    /// An unqualified name.
    pub(super) fn name(&mut self, name: &'a Ident, spot: Spot) -> Value<'a> {
        if name.quote_style.is_none() {
            self.facts.plain_names.push(name);
        }
        if self.locals.iter().any(|l| self.same_written(l, name)) {
            return Value::of(Type::Any);
        }
        let Some(block) = spot.block else { return Value::of(Type::Any) };
        let mut meaning = self.look_up(name, block, spot.clause, spot.inside);
        if self.dialect.rows_are_values
            && matches!(meaning, Meaning::Nowhere | Meaning::Open)
            && self.source_called(name, block).is_some()
        {
            meaning = Meaning::Local;
        }
        self.refer(None, name, block, spot, meaning, name.span)
    }

    fn look_up(&self, name: &'a Ident, block: BlockId, clause: Clause, inside: bool) -> Meaning {
        let mut at = Some(block);
        let mut hidden_alias = None;
        while let Some(b) = at {
            let (meaning, open) = self.look_in(name, b);
            if let Some(meaning) = meaning {
                return meaning;
            }
            if open {
                // A table whose columns are not known may have it: nothing further out can be meant for sure.
                return Meaning::Open;
            }
            if let Some(item) = self.alias(name, b, false) {
                if b != block && self.dialect.aliases.in_where {
                    // SQLite lets a subquery use the result names of the query around it, as within one query.
                    return Meaning::Local;
                } else if b == block && self.alias_visible(clause, inside) {
                    return Meaning::Alias(item);
                } else if b == block {
                    hidden_alias = Some(item);
                }
            }
            if b == block && !self.sees_outer(clause) {
                break;
            }
            at = self.facts.blocks[b].parent;
        }
        if let Some(meaning) = self.hidden_column(name, block) {
            return meaning;
        }
        if name.quote_style == Some('"') && self.dialect.double_quotes != DoubleQuotes::Name {
            return Meaning::Text;
        }
        match hidden_alias {
            Some(item) => Meaning::HiddenAlias(item),
            None => Meaning::Nowhere,
        }
    }

    /// Whether a clause looks into the blocks around its own.
    fn sees_outer(&self, clause: Clause) -> bool {
        self.dialect.grouping_sees_outer || !matches!(clause, Clause::GroupBy | Clause::OrderBy)
    }

    /// Looks in one block. The flag says that a source with unknown columns may have the name.
    fn look_in(&self, name: &Ident, block: BlockId) -> (Option<Meaning>, bool) {
        let b = &self.facts.blocks[block];
        let mut hits: Vec<(SourceId, usize)> = Vec::new();
        let mut open = false;
        for &id in b.sources.get(b.visible.clone()).unwrap_or(&[]) {
            match self.column_in(id, name) {
                Found::Yes(i) => hits.push((id, i)),
                Found::Twice => return (Some(Meaning::Ambiguous(vec![id, id])), false),
                Found::Maybe => open = true,
                Found::No => {}
            }
        }
        match hits.as_slice() {
            [] => (None, open),
            [(id, i)] => (Some(Meaning::Column(*id, *i)), false),
            [(id, i), ..] => {
                if b.merged.iter().any(|m| m.eq_ignore_ascii_case(&name.value)) {
                    (Some(Meaning::Column(*id, *i)), false)
                } else {
                    (Some(Meaning::Ambiguous(hits.iter().map(|(id, _)| *id).collect())), false)
                }
            }
        }
    }

    fn column_in(&self, source: SourceId, name: &Ident) -> Found {
        match &self.facts.sources[source].columns {
            Columns::Table(table) => match table.columns.iter().position(|c| self.same(name, &c.name)) {
                Some(i) => Found::Yes(i),
                None if table.hidden.iter().any(|h| self.same(name, h)) => Found::Maybe,
                None => Found::No,
            },
            Columns::Listed(outputs) => {
                let mut hits =
                    outputs.iter().enumerate().filter(|(_, o)| o.name.as_ref().is_some_and(|n| self.same(name, n)));
                match (hits.next(), hits.next()) {
                    (Some(_), Some(_)) if !self.dialect.duplicate_columns_allowed => Found::Twice,
                    (Some((i, _)), _) => Found::Yes(i),
                    (None, _) if outputs.iter().any(|o| o.name.is_none()) => Found::Maybe,
                    (None, _) => Found::No,
                }
            }
            Columns::Open => Found::Maybe,
        }
    }

    /// The item of the SELECT list that carries the name.
    pub(super) fn alias(&self, name: &Ident, block: BlockId, plain_columns_too: bool) -> Option<usize> {
        let items = &self.facts.blocks[block].items;
        items
            .iter()
            .position(|i| (i.explicit || plain_columns_too) && i.name.is_some_and(|n| self.same_written(n, name)))
    }

    /// Whether a clause sees the names of the SELECT list; `inside` an expression fewer do.
    fn alias_visible(&self, clause: Clause, inside: bool) -> bool {
        let aliases = self.dialect.aliases;
        match clause {
            Clause::Where | Clause::On => aliases.in_where,
            Clause::GroupBy => aliases.in_group_by && (!inside || aliases.in_group_by_expression),
            Clause::Having => aliases.in_having,
            Clause::OrderBy => aliases.in_order_by_expression,
            Clause::Select => aliases.in_select,
            Clause::Qualify => aliases.in_qualify,
            Clause::From | Clause::Limit => false,
        }
    }

    fn hidden_column(&self, name: &Ident, block: BlockId) -> Option<Meaning> {
        if !self.dialect.hidden_columns.iter().any(|h| h.eq_ignore_ascii_case(&name.value)) {
            return None;
        }
        let table = self.facts.visible(block).into_iter().find(|&s| self.facts.sources[s].table().is_some());
        table.map(Meaning::Hidden)
    }

    /// `t.x`, `schema.t.x` or, where the dialect has structs, `column.field`.
    pub(super) fn qualified_name(&mut self, parts: &'a [Ident], spot: Spot) -> Value<'a> {
        let [.., qualifier, name] = parts else {
            return parts.first().map_or(Value::of(Type::Any), |n| self.name(n, spot));
        };
        if qualifier.quote_style.is_none() {
            self.facts.plain_names.push(qualifier);
        }
        let place = Place::new(parts[0].span.start, name.span.end);
        if parts.first().is_some_and(|p| self.locals.iter().any(|l| self.same_written(l, p))) {
            return Value::of(Type::Any);
        }
        let Some(block) = spot.block else { return Value::of(Type::Any) };
        let mut meaning = self.look_up_qualified(qualifier, name, block, spot.clause);
        if meaning == Meaning::UnknownQualifier && self.dialect.struct_fields {
            meaning = self.field(parts, block).unwrap_or(meaning);
        }
        self.refer(Some(qualifier), name, block, spot, meaning, place)
    }

    /// The source that a qualifier names, seen from a block; inner ones first.
    pub(super) fn source_called(&self, qualifier: &Ident, block: BlockId) -> Option<SourceId> {
        let mut at = Some(block);
        while let Some(b) = at {
            let block = &self.facts.blocks[b];
            let visible = block.sources.get(block.visible.clone()).unwrap_or(&[]);
            if let Some(&id) = visible.iter().find(|&&id| self.is_called(id, qualifier)) {
                return Some(id);
            }
            at = block.parent;
        }
        None
    }

    fn is_called(&self, source: SourceId, qualifier: &Ident) -> bool {
        let source = &self.facts.sources[source];
        source.name.is_some_and(|n| self.same_written(n, qualifier))
    }

    fn look_up_qualified(&self, qualifier: &Ident, name: &Ident, block: BlockId, clause: Clause) -> Meaning {
        let mut missing = None;
        let mut at = Some(block);
        while let Some(b) = at {
            let here = &self.facts.blocks[b];
            let mut hits: Vec<(SourceId, usize)> = Vec::new();
            for &id in here.sources.get(here.visible.clone()).unwrap_or(&[]) {
                if !self.is_called(id, qualifier) {
                    continue;
                }
                match self.column_in(id, name) {
                    Found::Yes(i) => hits.push((id, i)),
                    Found::Twice => return Meaning::Ambiguous(vec![id, id]),
                    Found::Maybe => return Meaning::Open,
                    Found::No => {
                        let hidden = self.dialect.hidden_columns.iter().any(|h| h.eq_ignore_ascii_case(&name.value));
                        if hidden && self.facts.sources[id].table().is_some() {
                            return Meaning::Hidden(id);
                        }
                        missing = missing.or(Some(id));
                    }
                }
            }
            match hits.as_slice() {
                [] => {}
                [(id, i)] => return Meaning::Column(*id, *i),
                // The same table twice under one name.
                several => return Meaning::Ambiguous(several.iter().map(|(id, _)| *id).collect()),
            }
            if (missing.is_some() && !self.dialect.qualified_names_look_outward)
                || (b == block && !self.sees_outer(clause))
            {
                break;
            }
            at = here.parent;
        }
        missing.map_or(Meaning::UnknownQualifier, Meaning::NotInSource)
    }

    fn field(&self, parts: &'a [Ident], block: BlockId) -> Option<Meaning> {
        if parts.len() > 2 {
            // `t.column.field`
            if let Meaning::Column(id, i) = self.look_up_qualified(&parts[0], &parts[1], block, Clause::Where) {
                return Some(Meaning::Field(id, i));
            }
        }
        match self.look_up(&parts[0], block, Clause::Where, true) {
            Meaning::Column(id, i)
                if matches!(self.facts.sources[id].column_type(i), Type::Any | Type::Json | Type::Array) =>
            {
                Some(Meaning::Field(id, i))
            }
            Meaning::Open => Some(Meaning::Open),
            _ => None,
        }
    }

    pub(super) fn refer(
        &mut self,
        qualifier: Option<&'a Ident>,
        name: &'a Ident,
        block: BlockId,
        spot: Spot,
        meaning: Meaning,
        place: Place,
    ) -> Value<'a> {
        let mut value = Value::of(Type::Any);
        match meaning {
            Meaning::Column(id, i) => {
                value.kind = self.facts.sources[id].column_type(i);
                value.column = Some((id, i));
                value.touches = 1u64.checked_shl(id as u32).unwrap_or(0);
            }
            Meaning::Text => value.kind = Type::Text,
            Meaning::Hidden(_) => value.kind = Type::Integer,
            _ => {}
        }
        self.facts.references.push(Reference {
            qualifier,
            name,
            block,
            clause: spot.clause,
            meaning,
            in_aggregate: spot.in_aggregate,
            in_key: spot.in_key,
            wildcard: false,
            place,
        });
        value
    }

    /// `t.*` in a SELECT list or an argument.
    pub(super) fn wildcard_of(&mut self, name: &'a sqlparser::ast::ObjectName, spot: Spot) -> Option<SourceId> {
        let qualifier = name.0.last().and_then(|p| p.as_ident())?;
        let block = spot.block?;
        let found = self.source_called(qualifier, block);
        let meaning = match found {
            Some(_) => Meaning::Local,
            None if self.dialect.struct_fields => match self.look_up(qualifier, block, Clause::Where, true) {
                Meaning::Nowhere => Meaning::UnknownQualifier,
                _ => Meaning::Open,
            },
            None => Meaning::UnknownQualifier,
        };
        self.facts.references.push(Reference {
            qualifier: Some(qualifier),
            name: qualifier,
            block,
            clause: spot.clause,
            meaning,
            in_aggregate: spot.in_aggregate,
            in_key: spot.in_key,
            wildcard: true,
            place: name.span(),
        });
        found
    }
}
