#![doc = include_str!("protected_column.md")]

use sqlparser::ast::Ident;
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Span as TokenSpan, Token};

use crate::finding::{Finding, Severity};
use crate::resolve::{BlockId, ColumnBinding, ColumnReference, QuerySource, SourceId, TableBinding};
use crate::rule::{ErrorType, Rule, RuleContext};
use crate::rule_group::RuleGroup;
use crate::safety::column_access::{ColumnAccess, Wildcard};
use crate::safety::policy::DeniedColumn;
use crate::safety::side_effects::SideEffect;
use crate::schema::Table;

/// The `protected-column` rule, described in the module documentation.
pub static RULE: Rule = Rule {
    code: "protected-column",
    group: RuleGroup::Safety,
    error_type: ErrorType::Unknown,
    page: include_str!("protected_column.md"),
    check,
    ..Rule::DEFAULTS
};

/// Maximum number of readable columns that are listed.
const MAX_LISTED_COLUMNS: usize = 20;

/// Metadata tables that reveal the contents of a table's columns: minimum and maximum values, or
/// partitions.
const METADATA_TABLES: &[&str] = &[
    "files",
    "all_files",
    "data_files",
    "all_data_files",
    "delete_files",
    "all_delete_files",
    "partitions",
    "entries",
    "all_entries",
    "manifests",
    "all_manifests",
    "position_deletes",
    "history",
    "snapshots",
    "metadata_log_entries",
    "refs",
    "properties",
];

fn check(ctx: &RuleContext<'_>, out: &mut Vec<Finding>) {
    if ctx.context.policy.deny_columns.is_empty() {
        return;
    }
    let [statement] = ctx.query.statements.as_slice() else { return };
    let tables = protected_tables(ctx);
    if tables.is_empty() {
        return;
    }
    let called: Vec<String> =
        tables.iter().filter_map(|g| g.source(ctx)?.name).map(|n| n.value.to_lowercase()).collect();
    let wanted = |name: &str| {
        tables.iter().any(|g| g.matches_denied(name)) || called.contains(&name.to_lowercase()) || is_name_pattern(name)
    };
    let access = ColumnAccess::collect(statement, &wanted);
    let look = ColumnAccessCheck { ctx, tables: &tables, access: &access };
    look.check_indirect_reads(out);
    look.check_wildcards(out);
    look.check_names(out);
    look.check_whole_rows(out);
}

/// A use of a table with columns that may not be read.
struct ProtectedTable<'s> {
    place: TokenSpan,
    name: String,
    denied: Vec<DeniedColumn>,
    table: Option<&'s Table>,
    source: Option<SourceId>,
    /// Columns that every table has implicitly, and that may reveal the denied ones.
    implicit_columns: Vec<&'static str>,
    /// `true` if the query reads metadata of the table rather than the table itself.
    is_metadata: bool,
    max_name_len: usize,
}

impl ProtectedTable<'_> {
    /// Returns whether a written name may refer to one of the columns.
    fn matches_denied(&self, written: &str) -> bool {
        let denied = |name: &str| self.denied.iter().any(|d| d.matches(name));
        let implicit = |name: &str| {
            self.implicit_columns.iter().any(|i| i.eq_ignore_ascii_case(name))
                && self.table.is_none_or(|t| t.column(name).is_none())
        };
        if denied(written) || implicit(written) {
            return true;
        }
        // Servers truncate longer names.
        let cut = self.max_name_len;
        if cut > 0 && written.len() > cut {
            let end = (0..=cut).rev().find(|&i| written.is_char_boundary(i)).unwrap_or(0);
            if denied(&written[..end]) {
                return true;
            }
        }
        // Servers differ in case folding beyond ASCII.
        !written.is_ascii()
            && (denied(&written.to_uppercase().to_lowercase())
                || denied(&written.to_lowercase().replace('\u{307}', "")))
    }

    fn source<'a>(&self, subject: &'a RuleContext<'_>) -> Option<&'a QuerySource<'a>> {
        self.source.and_then(|id| subject.resolution.sources.get(id))
    }

    /// Returns a hint with the columns that may be read.
    fn readable_columns_hint(&self) -> String {
        let Some(table) = self.table else { return String::new() };
        let names: Vec<&str> =
            table.columns.iter().map(|c| c.name.as_str()).filter(|c| !self.matches_denied(c)).collect();
        let more = if names.len() > MAX_LISTED_COLUMNS { ", …" } else { "" };
        match names.is_empty() {
            true => " None of its columns may be read.".to_string(),
            false => {
                format!(" It may be asked for: {}{more}.", names[..names.len().min(MAX_LISTED_COLUMNS)].join(", "))
            }
        }
    }
}

/// Returns the tables of the query that have denied columns, or may have.
fn protected_tables<'s>(ctx: &'s RuleContext<'_>) -> Vec<ProtectedTable<'s>> {
    let (context, resolution) = (ctx.context, ctx.resolution);
    let dialect = context.dialect;
    let mut out = Vec::new();
    for effect in ctx.side_effects {
        let SideEffect::TableName(parts, place) = effect else { continue };
        let binding = resolution.tables.iter().find(|t| t.span == *place).map(|t| t.binding);
        // Only a CTE with the same spelling certainly shadows the table.
        let spelled = resolution.ctes.iter().any(|c| parts.last().is_some_and(|p| *p == c.value));
        if matches!(binding, Some(TableBinding::Cte)) && spelled {
            continue;
        }
        let mut full: Vec<&str> = parts.iter().map(String::as_str).collect();
        let table = match binding {
            Some(TableBinding::Stored(table)) => Some(table),
            _ => None,
        };
        if let (1, Some(schema)) = (full.len(), table.and_then(|t| t.schema.as_deref())) {
            full.insert(0, schema);
        }
        let mut denied = context.policy.denied_columns(&full);
        // An entry for every table applies to those that have such a column.
        if let (Some(table), Some(schema)) = (table, context.schema) {
            let has = |d: &DeniedColumn| {
                let names =
                    table.columns.iter().map(|c| c.name.as_str()).chain(table.hidden.iter().map(String::as_str));
                names.chain(schema.withheld_columns(table)).any(|name| d.matches(name))
            };
            denied.retain(|d| d.names_table || has(d));
        }
        if denied.is_empty() {
            continue;
        }
        let last = full.last().copied().unwrap_or_default();
        let beside = table.is_none()
            && (last.contains('$') || (full.len() > 2 && METADATA_TABLES.iter().any(|b| b.eq_ignore_ascii_case(last))));
        // A key of one column is also the row number, if that has a name.
        let key_shown = table.is_some_and(|t| {
            !t.primary_key.is_empty() && !t.primary_key.iter().any(|k| denied.iter().any(|d| d.matches(k)))
        });
        let numbers_rows = |name: &str| name.contains("rowid") || name == "oid";
        let named = dialect.system_columns.iter().any(|name| denied.iter().any(|d| d.matches(name)));
        let implicit = dialect.system_columns.iter().copied();
        let implicit =
            implicit.filter(|name| named || !(dialect.rows_are_values || key_shown && numbers_rows(name))).collect();
        // If a source was resolved twice, it is unclear which of the two a name refers to.
        let mut walked = (0..resolution.sources.len()).filter(|&id| resolution.sources[id].span == *place);
        let source = walked.next().filter(|_| walked.next().is_none());
        let name = parts.join(".");
        out.push(ProtectedTable {
            place: *place,
            name,
            denied,
            table,
            source,
            implicit_columns: implicit,
            is_metadata: beside,
            max_name_len: dialect.max_identifier_bytes,
        });
    }
    out
}

fn is_name_pattern(name: &str) -> bool {
    name.contains(['*', '+', '?', '|', '^', '[', '\\', '.'])
}

struct ColumnAccessCheck<'l> {
    ctx: &'l RuleContext<'l>,
    tables: &'l [ProtectedTable<'l>],
    access: &'l ColumnAccess,
}

impl<'l> ColumnAccessCheck<'l> {
    fn report(&self, out: &mut Vec<Finding>, place: TokenSpan, about: &str, message: String, advice: String) {
        let span = self.ctx.query.span(place);
        let span = if span.start == span.end { crate::finding::trimmed_span(&self.ctx.query.source) } else { span };
        out.push(Finding::new(RULE.code, Severity::Error, span, about, message).with_advice(advice));
    }

    /// Reports constructs that are not tracked, which show any column of the tables.
    fn check_indirect_reads(&self, out: &mut Vec<Finding>) {
        let tokens = &self.ctx.query.tokens;
        let natural = tokens
            .iter()
            .find(|t| matches!(&t.token, Token::Word(w) if w.keyword == Keyword::NATURAL && w.quote_style.is_none()));
        if let (Some(token), Some(g)) = (natural, self.tables.first()) {
            self.report(
                out,
                token.span,
                "NATURAL",
                format!(
                    "NATURAL JOIN compares columns that are not named, and `{}` has some that may not be read",
                    g.name
                ),
                format!("Write the condition of the join with ON.{}", g.readable_columns_hint()),
            );
        }
        for (what, place) in &self.access.opaque_constructs {
            let Some(g) = self.tables.first() else { continue };
            self.report(
                out,
                *place,
                what,
                format!("{what} cannot be used with `{}`, some of whose columns may not be read", g.name),
                format!("Write it without {what}.{}", g.readable_columns_hint()),
            );
        }
        for g in self.tables {
            let bent = self.access.indirect_reads.iter().find(|(_, place)| *place == g.place).map(|(why, _)| *why);
            let why = match bent {
                Some(why) => why,
                None if g.is_metadata => "exposes all columns of",
                None if g.source.is_none() => "is in a position that is not analyzed, and reads",
                None => continue,
            };
            self.report(
                out,
                g.place,
                &g.name,
                format!("this {why} `{}`, some of whose columns may not be read", g.name),
                format!(
                    "Read {} plainly, by its name, and name the columns you want.{}",
                    g.name,
                    g.readable_columns_hint()
                ),
            );
        }
    }

    fn check_wildcards(&self, out: &mut Vec<Finding>) {
        let resolution = self.ctx.resolution;
        let mut stars = self.ctx.query.tokens.iter().filter(|t| t.token == Token::Mul);
        if stars.clone().count() != self.access.accounted_asterisks
            && let (Some(token), Some(g)) = (stars.next(), self.tables.first())
        {
            self.report_wildcard(out, token.span, "*", g);
        }
        for star in &self.access.wildcards {
            match star {
                Wildcard::All(place) => {
                    let block = resolution.blocks.iter().position(|b| b.select_span == *place && place.start.line > 0);
                    let shown = |g: &&ProtectedTable<'_>| match (block, g.source) {
                        (Some(block), Some(source)) => resolution.blocks[block].sources.contains(&source),
                        _ => true,
                    };
                    if let Some(g) = self.tables.iter().find(shown) {
                        self.report_wildcard(out, *place, "*", g);
                    }
                }
                Wildcard::Qualified(place) => {
                    let of = resolution.references.iter().find(|r| r.is_wildcard && r.span == *place);
                    let shown = match of {
                        // A wildcard of an unknown source may refer to any table.
                        Some(r) if r.binding == ColumnBinding::Untracked => {
                            self.tables_in_scope(r.block, Some(r.name), None).first().copied()
                        }
                        _ => self.tables.first(),
                    };
                    if let Some(g) = shown {
                        self.report_wildcard(
                            out,
                            *place,
                            &format!("{}.*", of.map_or("", |r| r.name.value.as_str())),
                            g,
                        );
                    }
                }
                Wildcard::Other(place) => {
                    if let Some(g) = self.tables.first() {
                        self.report_wildcard(out, *place, "*", g);
                    }
                }
            }
        }
    }

    fn report_wildcard(&self, out: &mut Vec<Finding>, place: TokenSpan, star: &str, g: &ProtectedTable<'_>) {
        self.report(
            out,
            place,
            &g.name,
            format!("`{star}` would show columns of `{}` that may not be read", g.name),
            format!("Not all columns of {} may be read: name those you want.{}", g.name, g.readable_columns_hint()),
        );
    }

    /// Returns the protected tables visible in a block, innermost first: only those named `called`,
    /// if given, and only up to the block of the source `until`, which is certainly meant.
    fn tables_in_scope(
        &self,
        block: BlockId,
        called: Option<&Ident>,
        until: Option<SourceId>,
    ) -> Vec<&'l ProtectedTable<'l>> {
        let resolution = self.ctx.resolution;
        let last = until.map(|id| resolution.sources[id].block);
        let mut out = Vec::new();
        let mut at = Some(block);
        while let Some(b) = at {
            let here = &resolution.blocks[b];
            let is_called = |id: SourceId| {
                let name = resolution.sources[id].name.map(|n| n.value.to_lowercase());
                called.is_none_or(|c| name.is_some_and(|n| n == c.value.to_lowercase()))
            };
            out.extend(
                self.tables.iter().filter(|g| g.source.is_some_and(|id| here.sources.contains(&id) && is_called(id))),
            );
            // The innermost source of that name shadows those around it.
            if last == Some(b) || (called.is_some() && until.is_none() && here.sources.iter().any(|&id| is_called(id)))
            {
                break;
            }
            at = here.parent;
        }
        out
    }

    /// Returns whether a name cannot refer to a column: it names a table or a function, or is an
    /// alias.
    fn is_alias_or_table(&self, name: &Ident) -> bool {
        let (resolution, mentions) = (self.ctx.resolution, self.access);
        let holds = |place: &TokenSpan| place.start <= name.span.start && name.span.end <= place.end;
        mentions.aliases.contains(&name.span)
            || mentions.call_names.iter().any(holds)
            || resolution.ctes.iter().any(|c| c.span == name.span)
            || resolution.sources.iter().any(|s| s.name.is_some_and(|n| n.span == name.span))
            || self.ctx.side_effects.iter().any(|h| matches!(h, SideEffect::TableName(_, place) if holds(place)))
    }

    fn check_names(&self, out: &mut Vec<Finding>) {
        for (text, place) in &self.access.quoted_strings {
            if let Some(g) = self.tables.iter().find(|g| g.matches_denied(text)) {
                self.report_column(out, *place, text, g);
            }
        }
        for name in &self.access.identifiers {
            let pattern = self.is_pattern(name);
            let Some(first) = self.tables.iter().find(|g| pattern || g.matches_denied(&name.value)) else { continue };
            if self.is_alias_or_table(name) || self.is_qualifier(name) {
                continue;
            }
            let meant = match self.reference(name) {
                Some(r) => self.possible_tables(r).into_iter().find(|g| pattern || g.matches_denied(&name.value)),
                None => Some(first),
            };
            if let Some(g) = meant {
                self.report_column(out, name.span, &name.value, g);
            }
        }
    }

    /// Returns whether a quoted name may be a pattern of names; one that the schema lists is not.
    fn is_pattern(&self, name: &Ident) -> bool {
        self.ctx.context.dialect.quoted_names_may_be_patterns
            && name.quote_style.is_some()
            && is_name_pattern(&name.value)
            && !self.reference(name).is_some_and(|r| matches!(r.binding, ColumnBinding::Column(..)))
    }

    fn report_column(&self, out: &mut Vec<Finding>, place: TokenSpan, name: &str, g: &ProtectedTable<'_>) {
        self.report(
            out,
            place,
            name,
            format!("the column `{name}` of `{}` may not be read", g.name),
            format!(
                "The column {name} of {} may neither be shown nor tested; answer without it.{}",
                g.name,
                g.readable_columns_hint()
            ),
        );
    }

    /// Returns the protected tables whose column a reference may be.
    fn possible_tables(&self, r: &ColumnReference<'_>) -> Vec<&'l ProtectedTable<'l>> {
        let shown = |id: SourceId| self.tables.iter().all(|g| g.source != Some(id) || !g.matches_denied(&r.name.value));
        match r.binding {
            ColumnBinding::Column(id, _) if shown(id) => self.tables_in_scope(r.block, r.qualifier, Some(id)),
            ColumnBinding::Column(..)
            | ColumnBinding::UnknownSource
            | ColumnBinding::SystemColumn(_)
            | ColumnBinding::Alias(_)
            | ColumnBinding::Untracked
            | ColumnBinding::StringLiteral => self.tables_in_scope(r.block, None, None),
            ColumnBinding::StructField(..)
            | ColumnBinding::Ambiguous(_)
            | ColumnBinding::AliasNotVisible(_)
            | ColumnBinding::NotInSource(_)
            | ColumnBinding::Unresolved
            | ColumnBinding::UnknownQualifier => self.tables.iter().collect(),
        }
    }

    fn reference(&self, name: &Ident) -> Option<&'l ColumnReference<'l>> {
        self.ctx.resolution.references.iter().find(|r| r.name.span == name.span && !r.is_wildcard)
    }

    /// Returns whether a name is `t` in `t.x` and certainly a table: a struct has fields, too.
    fn is_qualifier(&self, name: &Ident) -> bool {
        let resolution = self.ctx.resolution;
        resolution.references.iter().any(|r| {
            let sure = match r.binding {
                ColumnBinding::Column(..) | ColumnBinding::NotInSource(_) | ColumnBinding::SystemColumn(_) => true,
                // If no column is known, the name refers to a table only if one is called so.
                ColumnBinding::UnknownSource | ColumnBinding::Ambiguous(_) => resolution.sources.iter().any(|s| {
                    s.name.is_some_and(|n| n.value.eq_ignore_ascii_case(&name.value))
                        && !self.ctx.context.dialect.struct_fields
                }),
                ColumnBinding::Untracked if r.is_wildcard => true,
                _ => false,
            };
            sure && r.qualifier.is_some_and(|q| q.span == name.span)
        })
    }

    /// Reports reads of whole rows: a table's name used as a value is its whole row, and a function
    /// in place of a column receives that row.
    fn check_whole_rows(&self, out: &mut Vec<Finding>) {
        let resolution = self.ctx.resolution;
        for name in &self.access.identifiers {
            let is_called = |g: &&ProtectedTable<'_>| {
                let called = g.source(self.ctx).and_then(|s| s.name);
                called.is_some_and(|n| n.value.to_lowercase() == name.value.to_lowercase())
            };
            let Some(first) = self.tables.iter().find(is_called) else { continue };
            if self.is_alias_or_table(name) {
                continue;
            }
            let qualifies = resolution.references.iter().find(|r| r.qualifier.is_some_and(|q| q.span == name.span));
            let meant = match (qualifies, self.reference(name)) {
                (Some(r), _) if r.is_wildcard || !self.is_possible_call(r) => None,
                (Some(r), _) => self.tables_in_scope(r.block, Some(name), None).first().copied(),
                // A column of that name takes precedence over the row.
                (None, Some(r)) if matches!(r.binding, ColumnBinding::Column(..)) => None,
                (None, Some(r)) => self.tables_in_scope(r.block, Some(name), None).first().copied(),
                // A qualifier further left, as in `schema.table.column`, leads to a name that was
                // checked.
                (None, None) => Some(first),
            };
            if let Some(g) = meant {
                self.report(
                    out,
                    name.span,
                    &name.value,
                    format!(
                        "`{}` refers to whole rows of `{}`, some of whose columns may not be read",
                        name.value, g.name
                    ),
                    format!("Name the columns you want instead of {}.{}", name.value, g.readable_columns_hint()),
                );
            }
        }
    }

    /// Returns whether `t.x` may be the function `x` of the row `t`.
    fn is_possible_call(&self, r: &ColumnReference<'_>) -> bool {
        let context = self.ctx.context;
        if !context.dialect.rows_are_values
            || matches!(r.binding, ColumnBinding::Column(..) | ColumnBinding::SystemColumn(_))
        {
            return false;
        }
        let lower = r.name.value.to_lowercase();
        context.dialect.functions.get(&lower).is_some()
            || context.policy.allow_functions.iter().any(|f| f.eq_ignore_ascii_case(&lower))
            || context.schema.is_some_and(|s| s.has_function(&lower) || !s.has_function_list())
    }
}
