//! Name lookup: innermost block first, then outward.

use std::borrow::Cow;

use sqlparser::ast::{Ident, Spanned};
use sqlparser::tokenizer::Span as TokenSpan;

use super::{
    BlockId, Clause, ColumnBinding, ColumnReference, ExprContext, ExprInfo, Resolver, SourceColumns, SourceId,
};
use crate::dialect::{DoubleQuotes, IdentifierCase};
use crate::schema::Type;

/// Result of looking up a column in a source.
enum ColumnLookup {
    Found(usize),
    Duplicate,
    Unknown,
    NotFound,
}

impl<'a> Resolver<'a> {
    /// Returns whether an identifier of the query matches an actual name in this dialect.
    pub(super) fn is_same_name(&self, written: &Ident, actual: &str) -> bool {
        match self.dialect.identifier_case {
            IdentifierCase::Ignored => {
                written.value.eq_ignore_ascii_case(actual)
                    || (!actual.is_ascii() && written.value.to_lowercase() == actual.to_lowercase())
            }
            IdentifierCase::LowerUnlessQuoted if written.quote_style.is_some() => written.value == actual,
            IdentifierCase::LowerUnlessQuoted => written.value.to_lowercase() == actual,
        }
    }

    /// Returns whether two identifiers of the query are the same in this dialect.
    pub(super) fn is_same_identifier(&self, a: &Ident, b: &Ident) -> bool {
        match self.dialect.identifier_case {
            IdentifierCase::Ignored => {
                a.value.eq_ignore_ascii_case(&b.value) || a.value.to_lowercase() == b.value.to_lowercase()
            }
            IdentifierCase::LowerUnlessQuoted => self.folded_name(a) == self.folded_name(b),
        }
    }

    /// Returns whether a name refers to a CTE.
    ///
    /// Only ASCII letters are folded: engines differ beyond ASCII, and a CTE that shadows a table
    /// here must shadow it in all of them.
    pub(super) fn is_same_cte_name(&self, cte: &Ident, name: &Ident) -> bool {
        match self.dialect.identifier_case {
            IdentifierCase::Ignored => cte.value.eq_ignore_ascii_case(&name.value),
            IdentifierCase::LowerUnlessQuoted => {
                let fold =
                    |i: &Ident| if i.quote_style.is_some() { i.value.clone() } else { i.value.to_ascii_lowercase() };
                fold(cte) == fold(name)
            }
        }
    }

    /// Returns the output name of an identifier, which references to it match.
    pub(super) fn output_name(&self, name: &'a Ident) -> Cow<'a, str> {
        let folds = self.dialect.identifier_case == IdentifierCase::LowerUnlessQuoted && name.quote_style.is_none();
        if folds && name.value.chars().any(char::is_uppercase) {
            Cow::Owned(name.value.to_lowercase())
        } else {
            Cow::Borrowed(&name.value)
        }
    }

    pub(super) fn folded_name(&self, name: &Ident) -> String {
        match self.dialect.identifier_case {
            IdentifierCase::LowerUnlessQuoted if name.quote_style.is_some() => name.value.clone(),
            IdentifierCase::LowerUnlessQuoted | IdentifierCase::Ignored => name.value.to_lowercase(),
        }
    }

    /// Resolves an unqualified name.
    pub(super) fn resolve_name(&mut self, name: &'a Ident, context: ExprContext) -> ExprInfo<'a> {
        if name.quote_style.is_none() {
            self.resolution.unquoted_identifiers.push(name);
        }
        if self.lambda_params.iter().any(|l| self.is_same_identifier(l, name)) {
            return ExprInfo::of_type(Type::Any);
        }
        let Some(block) = context.block else { return ExprInfo::of_type(Type::Any) };
        let mut binding = self.bind_column(name, block, context.clause, context.is_nested);
        if self.dialect.rows_are_values
            && matches!(binding, ColumnBinding::Unresolved | ColumnBinding::UnknownSource)
            && self.find_source(name, block).is_some()
        {
            binding = ColumnBinding::Untracked;
        }
        self.record_reference(None, name, block, context, binding, name.span)
    }

    fn bind_column(&self, name: &'a Ident, block: BlockId, clause: Clause, inside: bool) -> ColumnBinding {
        let mut at = Some(block);
        let mut hidden_alias = None;
        while let Some(b) = at {
            let (binding, has_unknown_columns) = self.lookup_in_block(name, b);
            if let Some(binding) = binding {
                return binding;
            }
            if has_unknown_columns {
                // A source with unknown columns may have it, so no outer binding is certain.
                return ColumnBinding::UnknownSource;
            }
            if let Some(item) = self.find_alias(name, b, false) {
                if b != block && self.dialect.alias_visibility.in_where {
                    // SQLite lets a subquery refer to aliases of the enclosing query, as within one
                    // query.
                    return ColumnBinding::Untracked;
                } else if b == block && self.is_alias_visible(clause, inside) {
                    return ColumnBinding::Alias(item);
                } else if b == block {
                    hidden_alias = Some(item);
                }
            }
            if b == block && !self.sees_outer_blocks(clause) {
                break;
            }
            at = self.resolution.blocks[b].parent;
        }
        if let Some(binding) = self.system_column(name, block) {
            return binding;
        }
        if name.quote_style == Some('"') && self.dialect.double_quotes != DoubleQuotes::Identifier {
            return ColumnBinding::StringLiteral;
        }
        match hidden_alias {
            Some(item) => ColumnBinding::AliasNotVisible(item),
            None => ColumnBinding::Unresolved,
        }
    }

    /// Returns whether names in a clause may refer to enclosing blocks.
    fn sees_outer_blocks(&self, clause: Clause) -> bool {
        self.dialect.grouping_sees_outer || !matches!(clause, Clause::GroupBy | Clause::OrderBy)
    }

    /// Looks a name up in one block. The flag is `true` if a source with unknown columns may have
    /// it.
    fn lookup_in_block(&self, name: &Ident, block: BlockId) -> (Option<ColumnBinding>, bool) {
        let b = &self.resolution.blocks[block];
        let mut hits: Vec<(SourceId, usize)> = Vec::new();
        let mut has_unknown_columns = false;
        for &id in b.sources.get(b.visible_range.clone()).unwrap_or(&[]) {
            match self.lookup_in_source(id, name) {
                ColumnLookup::Found(i) => hits.push((id, i)),
                ColumnLookup::Duplicate => return (Some(ColumnBinding::Ambiguous(vec![id, id])), false),
                ColumnLookup::Unknown => has_unknown_columns = true,
                ColumnLookup::NotFound => {}
            }
        }
        match hits.as_slice() {
            [] => (None, has_unknown_columns),
            [(id, i)] => (Some(ColumnBinding::Column(*id, *i)), false),
            [(id, i), ..] => {
                if b.using_columns.iter().any(|m| m.eq_ignore_ascii_case(&name.value)) {
                    (Some(ColumnBinding::Column(*id, *i)), false)
                } else {
                    (Some(ColumnBinding::Ambiguous(hits.iter().map(|(id, _)| *id).collect())), false)
                }
            }
        }
    }

    fn lookup_in_source(&self, source: SourceId, name: &Ident) -> ColumnLookup {
        match &self.resolution.sources[source].columns {
            SourceColumns::Table(table) => match table.columns.iter().position(|c| self.is_same_name(name, &c.name)) {
                Some(i) => ColumnLookup::Found(i),
                None if table.hidden.iter().any(|h| self.is_same_name(name, h)) => ColumnLookup::Unknown,
                None => ColumnLookup::NotFound,
            },
            SourceColumns::Derived(outputs) => {
                let mut hits = outputs
                    .iter()
                    .enumerate()
                    .filter(|(_, o)| o.name.as_ref().is_some_and(|n| self.is_same_name(name, n)));
                match (hits.next(), hits.next()) {
                    (Some(_), Some(_)) if !self.dialect.duplicate_columns_allowed => ColumnLookup::Duplicate,
                    (Some((i, _)), _) => ColumnLookup::Found(i),
                    (None, _) if outputs.iter().any(|o| o.name.is_none()) => ColumnLookup::Unknown,
                    (None, _) => ColumnLookup::NotFound,
                }
            }
            SourceColumns::Unknown => ColumnLookup::Unknown,
        }
    }

    /// Returns the index of the SELECT item with this name.
    pub(super) fn find_alias(&self, name: &Ident, block: BlockId, plain_columns_too: bool) -> Option<usize> {
        let items = &self.resolution.blocks[block].items;
        items.iter().position(|i| {
            (i.has_alias || plain_columns_too) && i.name.is_some_and(|n| self.is_same_identifier(n, name))
        })
    }

    /// Returns whether a clause sees the aliases of the SELECT list; fewer clauses do `inside` an
    /// expression.
    fn is_alias_visible(&self, clause: Clause, inside: bool) -> bool {
        let aliases = self.dialect.alias_visibility;
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

    fn system_column(&self, name: &Ident, block: BlockId) -> Option<ColumnBinding> {
        if !self.dialect.system_columns.iter().any(|h| h.eq_ignore_ascii_case(&name.value)) {
            return None;
        }
        let table =
            self.resolution.visible_sources(block).into_iter().find(|&s| self.resolution.sources[s].table().is_some());
        table.map(ColumnBinding::SystemColumn)
    }

    /// Resolves `t.x`, `schema.t.x` or, in dialects with structs, `column.struct_field`.
    pub(super) fn resolve_qualified_name(&mut self, parts: &'a [Ident], context: ExprContext) -> ExprInfo<'a> {
        let [.., qualifier, name] = parts else {
            return parts.first().map_or(ExprInfo::of_type(Type::Any), |n| self.resolve_name(n, context));
        };
        if qualifier.quote_style.is_none() {
            self.resolution.unquoted_identifiers.push(qualifier);
        }
        let span = TokenSpan::new(parts[0].span.start, name.span.end);
        if parts.first().is_some_and(|p| self.lambda_params.iter().any(|l| self.is_same_identifier(l, p))) {
            return ExprInfo::of_type(Type::Any);
        }
        let Some(block) = context.block else { return ExprInfo::of_type(Type::Any) };
        let mut binding = self.bind_qualified_column(qualifier, name, block, context.clause);
        if binding == ColumnBinding::UnknownQualifier && self.dialect.struct_fields {
            binding = self.struct_field(parts, block).unwrap_or(binding);
        }
        self.record_reference(Some(qualifier), name, block, context, binding, span)
    }

    /// Returns the source that a qualifier refers to, innermost block first.
    pub(super) fn find_source(&self, qualifier: &Ident, block: BlockId) -> Option<SourceId> {
        let mut at = Some(block);
        while let Some(b) = at {
            let block = &self.resolution.blocks[b];
            let visible = block.sources.get(block.visible_range.clone()).unwrap_or(&[]);
            if let Some(&id) = visible.iter().find(|&&id| self.is_source_named(id, qualifier)) {
                return Some(id);
            }
            at = block.parent;
        }
        None
    }

    fn is_source_named(&self, source: SourceId, qualifier: &Ident) -> bool {
        let source = &self.resolution.sources[source];
        source.name.is_some_and(|n| self.is_same_identifier(n, qualifier))
    }

    fn bind_qualified_column(&self, qualifier: &Ident, name: &Ident, block: BlockId, clause: Clause) -> ColumnBinding {
        let mut missing = None;
        let mut at = Some(block);
        while let Some(b) = at {
            let here = &self.resolution.blocks[b];
            let mut hits: Vec<(SourceId, usize)> = Vec::new();
            for &id in here.sources.get(here.visible_range.clone()).unwrap_or(&[]) {
                if !self.is_source_named(id, qualifier) {
                    continue;
                }
                match self.lookup_in_source(id, name) {
                    ColumnLookup::Found(i) => hits.push((id, i)),
                    ColumnLookup::Duplicate => return ColumnBinding::Ambiguous(vec![id, id]),
                    ColumnLookup::Unknown => return ColumnBinding::UnknownSource,
                    ColumnLookup::NotFound => {
                        let hidden = self.dialect.system_columns.iter().any(|h| h.eq_ignore_ascii_case(&name.value));
                        if hidden && self.resolution.sources[id].table().is_some() {
                            return ColumnBinding::SystemColumn(id);
                        }
                        missing = missing.or(Some(id));
                    }
                }
            }
            match hits.as_slice() {
                [] => {}
                [(id, i)] => return ColumnBinding::Column(*id, *i),
                // The same table occurs twice under one name.
                several => return ColumnBinding::Ambiguous(several.iter().map(|(id, _)| *id).collect()),
            }
            if (missing.is_some() && !self.dialect.qualified_names_look_outward)
                || (b == block && !self.sees_outer_blocks(clause))
            {
                break;
            }
            at = here.parent;
        }
        missing.map_or(ColumnBinding::UnknownQualifier, ColumnBinding::NotInSource)
    }

    fn struct_field(&self, parts: &'a [Ident], block: BlockId) -> Option<ColumnBinding> {
        if parts.len() > 2 {
            // `t.column.struct_field`
            if let ColumnBinding::Column(id, i) = self.bind_qualified_column(&parts[0], &parts[1], block, Clause::Where)
            {
                return Some(ColumnBinding::StructField(id, i));
            }
        }
        match self.bind_column(&parts[0], block, Clause::Where, true) {
            ColumnBinding::Column(id, i)
                if matches!(self.resolution.sources[id].column_type(i), Type::Any | Type::Json | Type::Array) =>
            {
                Some(ColumnBinding::StructField(id, i))
            }
            ColumnBinding::UnknownSource => Some(ColumnBinding::UnknownSource),
            _ => None,
        }
    }

    pub(super) fn record_reference(
        &mut self,
        qualifier: Option<&'a Ident>,
        name: &'a Ident,
        block: BlockId,
        context: ExprContext,
        binding: ColumnBinding,
        span: TokenSpan,
    ) -> ExprInfo<'a> {
        let mut value = ExprInfo::of_type(Type::Any);
        match binding {
            ColumnBinding::Column(id, i) => {
                value.kind = self.resolution.sources[id].column_type(i);
                value.column = Some((id, i));
                value.source_mask = 1u64.checked_shl(id as u32).unwrap_or(0);
            }
            ColumnBinding::StringLiteral => value.kind = Type::Text,
            ColumnBinding::SystemColumn(_) => value.kind = Type::Integer,
            _ => {}
        }
        self.resolution.references.push(ColumnReference {
            qualifier,
            name,
            block,
            clause: context.clause,
            binding,
            in_aggregate: context.in_aggregate,
            in_group_key: context.in_group_key,
            is_wildcard: false,
            span,
        });
        value
    }

    /// Resolves `t.*` in a SELECT list or an argument.
    pub(super) fn resolve_wildcard(
        &mut self,
        name: &'a sqlparser::ast::ObjectName,
        context: ExprContext,
    ) -> Option<SourceId> {
        let qualifier = name.0.last().and_then(|p| p.as_ident())?;
        let block = context.block?;
        let found = self.find_source(qualifier, block);
        let binding = match found {
            Some(_) => ColumnBinding::Untracked,
            None if self.dialect.struct_fields => match self.bind_column(qualifier, block, Clause::Where, true) {
                ColumnBinding::Unresolved => ColumnBinding::UnknownQualifier,
                _ => ColumnBinding::UnknownSource,
            },
            None => ColumnBinding::UnknownQualifier,
        };
        self.resolution.references.push(ColumnReference {
            qualifier: Some(qualifier),
            name: qualifier,
            block,
            clause: context.clause,
            binding,
            in_aggregate: context.in_aggregate,
            in_group_key: context.in_group_key,
            is_wildcard: true,
            span: name.span(),
        });
        found
    }
}
