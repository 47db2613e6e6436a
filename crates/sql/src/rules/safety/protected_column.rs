#![doc = include_str!("protected_column.md")]

use sqlparser::ast::Ident;
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Span as Place, Token};

use crate::finding::{Finding, Severity};
use crate::policy::DeniedColumn;
use crate::rules::{Rule, Subject};
use crate::safety::{Hazard, Mentions, Star};
use crate::schema::Table;
use crate::scope::{BlockId, Meaning, Reference, Source, SourceId, TableMeaning};

/// See the page.
pub static RULE: Rule =
    Rule { code: "protected-column", group: "safety", page: include_str!("protected_column.md"), check };

/// So many columns that may be read are listed.
const MOST_LISTED: usize = 20;

/// Tables beside a table that tell what stands in its columns: their least and greatest values, or how it is divided.
const BESIDE: &[&str] = &[
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

fn check(subject: &Subject<'_>, out: &mut Vec<Finding>) {
    if subject.context.policy.deny_columns.is_empty() {
        return;
    }
    let [statement] = subject.query.statements.as_slice() else { return };
    let guarded = guarded(subject);
    if guarded.is_empty() {
        return;
    }
    let called: Vec<String> =
        guarded.iter().filter_map(|g| g.source(subject)?.name).map(|n| n.value.to_lowercase()).collect();
    let wanted = |name: &str| {
        guarded.iter().any(|g| g.hides(name)) || called.contains(&name.to_lowercase()) || looks_like_a_pattern(name)
    };
    let mentions = Mentions::of(statement, &wanted);
    let look = Look { subject, guarded: &guarded, mentions: &mentions };
    look.ways(out);
    look.stars(out);
    look.names(out);
    look.rows(out);
}

/// A use of a table some of whose columns may not be read.
struct Guarded<'s> {
    place: Place,
    name: String,
    denied: Vec<DeniedColumn>,
    table: Option<&'s Table>,
    source: Option<SourceId>,
    /// Columns that every table has without saying so, and that may tell of the denied ones.
    implicit: Vec<&'static str>,
    /// What is read is not the table, but what is written down about it.
    beside: bool,
    longest_name: usize,
}

impl Guarded<'_> {
    /// Whether a written name may mean one of the columns.
    fn hides(&self, written: &str) -> bool {
        let denied = |name: &str| self.denied.iter().any(|d| d.fits(name));
        let implicit = |name: &str| {
            self.implicit.iter().any(|i| i.eq_ignore_ascii_case(name))
                && self.table.is_none_or(|t| t.column(name).is_none())
        };
        if denied(written) || implicit(written) {
            return true;
        }
        // Longer names are cut off.
        let cut = self.longest_name;
        if cut > 0 && written.len() > cut {
            let end = (0..=cut).rev().find(|&i| written.is_char_boundary(i)).unwrap_or(0);
            if denied(&written[..end]) {
                return true;
            }
        }
        // Servers differ in which letters beyond ASCII are the capitals of others.
        !written.is_ascii()
            && (denied(&written.to_uppercase().to_lowercase())
                || denied(&written.to_lowercase().replace('\u{307}', "")))
    }

    fn source<'a>(&self, subject: &'a Subject<'_>) -> Option<&'a Source<'a>> {
        self.source.and_then(|id| subject.facts.sources.get(id))
    }

    /// What may be read of it, for whoever has to name columns.
    fn readable(&self) -> String {
        let Some(table) = self.table else { return String::new() };
        let names: Vec<&str> = table.columns.iter().map(|c| c.name.as_str()).filter(|c| !self.hides(c)).collect();
        let more = if names.len() > MOST_LISTED { ", …" } else { "" };
        match names.is_empty() {
            true => " None of its columns may be read.".to_string(),
            false => format!(" It may be asked for: {}{more}.", names[..names.len().min(MOST_LISTED)].join(", ")),
        }
    }
}

/// The tables of the query that have columns to hide, or may have.
fn guarded<'s>(subject: &'s Subject<'_>) -> Vec<Guarded<'s>> {
    let (context, facts) = (subject.context, subject.facts);
    let dialect = context.dialect;
    let mut out = Vec::new();
    for hazard in subject.hazards {
        let Hazard::Names(parts, place) = hazard else { continue };
        let meaning = facts.tables.iter().find(|t| t.place == *place).map(|t| t.meaning);
        // Only a CTE that is spelled the same surely hides the table.
        let spelled = facts.ctes.iter().any(|c| parts.last().is_some_and(|p| *p == c.value));
        if matches!(meaning, Some(TableMeaning::Cte)) && spelled {
            continue;
        }
        let mut full: Vec<&str> = parts.iter().map(String::as_str).collect();
        let table = match meaning {
            Some(TableMeaning::Stored(table)) => Some(table),
            _ => None,
        };
        if let (1, Some(schema)) = (full.len(), table.and_then(|t| t.schema.as_deref())) {
            full.insert(0, schema);
        }
        let mut denied = context.policy.denied_columns(&full);
        // An entry that speaks of every table means those that have such a column.
        if let (Some(table), Some(schema)) = (table, context.schema) {
            let has = |d: &DeniedColumn| {
                let names =
                    table.columns.iter().map(|c| c.name.as_str()).chain(table.hidden.iter().map(String::as_str));
                names.chain(schema.withheld(table)).any(|name| d.fits(name))
            };
            denied.retain(|d| d.names_the_table || has(d));
        }
        if denied.is_empty() {
            continue;
        }
        let last = full.last().copied().unwrap_or_default();
        let beside = table.is_none()
            && (last.contains('$') || (full.len() > 2 && BESIDE.iter().any(|b| b.eq_ignore_ascii_case(last))));
        // A key of one column is also the number of the row, where that has a name.
        let key_shown = table.is_some_and(|t| {
            !t.primary_key.is_empty() && !t.primary_key.iter().any(|k| denied.iter().any(|d| d.fits(k)))
        });
        let numbers_rows = |name: &str| name.contains("rowid") || name == "oid";
        let named = dialect.hidden_columns.iter().any(|name| denied.iter().any(|d| d.fits(name)));
        let implicit = dialect.hidden_columns.iter().copied();
        let implicit =
            implicit.filter(|name| named || !(dialect.rows_are_values || key_shown && numbers_rows(name))).collect();
        // What was walked twice is not known well enough to say which of the two a name means.
        let mut walked = (0..facts.sources.len()).filter(|&id| facts.sources[id].place == *place);
        let source = walked.next().filter(|_| walked.next().is_none());
        let name = parts.join(".");
        out.push(Guarded {
            place: *place,
            name,
            denied,
            table,
            source,
            implicit,
            beside,
            longest_name: dialect.longest_name,
        });
    }
    out
}

fn looks_like_a_pattern(name: &str) -> bool {
    name.contains(['*', '+', '?', '|', '^', '[', '\\', '.'])
}

struct Look<'l> {
    subject: &'l Subject<'l>,
    guarded: &'l [Guarded<'l>],
    mentions: &'l Mentions,
}

impl<'l> Look<'l> {
    fn report(&self, out: &mut Vec<Finding>, place: Place, about: &str, message: String, advice: String) {
        let span = self.subject.query.span(place);
        let span = if span.start == span.end { crate::review::whole(&self.subject.query.source) } else { span };
        out.push(Finding::new(RULE.code, Severity::Error, span, about, message).advise(advice));
    }

    /// What is not followed shows whatever the tables have.
    fn ways(&self, out: &mut Vec<Finding>) {
        let tokens = &self.subject.query.tokens;
        let natural = tokens
            .iter()
            .find(|t| matches!(&t.token, Token::Word(w) if w.keyword == Keyword::NATURAL && w.quote_style.is_none()));
        if let (Some(token), Some(g)) = (natural, self.guarded.first()) {
            self.report(
                out,
                token.span,
                "NATURAL",
                format!(
                    "NATURAL JOIN compares columns that are not named, and `{}` has some that may not be read",
                    g.name
                ),
                format!("Write the condition of the join with ON.{}", g.readable()),
            );
        }
        for (what, place) in &self.mentions.unfollowed {
            let Some(g) = self.guarded.first() else { continue };
            self.report(
                out,
                *place,
                what,
                format!("{what} cannot be used with `{}`, some of whose columns may not be read", g.name),
                format!("Write it without {what}.{}", g.readable()),
            );
        }
        for g in self.guarded {
            let bent = self.mentions.bent.iter().find(|(_, place)| *place == g.place).map(|(why, _)| *why);
            let why = match bent {
                Some(why) => why,
                None if g.beside => "tells of all columns of",
                None if g.source.is_none() => "stands where it is not followed, and reads",
                None => continue,
            };
            self.report(
                out,
                g.place,
                &g.name,
                format!("this {why} `{}`, some of whose columns may not be read", g.name),
                format!("Read {} plainly, by its name, and name the columns you want.{}", g.name, g.readable()),
            );
        }
    }

    fn stars(&self, out: &mut Vec<Finding>) {
        let facts = self.subject.facts;
        let mut stars = self.subject.query.tokens.iter().filter(|t| t.token == Token::Mul);
        if stars.clone().count() != self.mentions.known_stars
            && let (Some(token), Some(g)) = (stars.next(), self.guarded.first())
        {
            self.star(out, token.span, "*", g);
        }
        for star in &self.mentions.stars {
            match star {
                Star::All(place) => {
                    let block = facts.blocks.iter().position(|b| b.place == *place && place.start.line > 0);
                    let shown = |g: &&Guarded<'_>| match (block, g.source) {
                        (Some(block), Some(source)) => facts.blocks[block].sources.contains(&source),
                        _ => true,
                    };
                    if let Some(g) = self.guarded.iter().find(shown) {
                        self.star(out, *place, "*", g);
                    }
                }
                Star::Of(place) => {
                    let of = facts.references.iter().find(|r| r.wildcard && r.place == *place);
                    let shown = match of {
                        // A star of what nobody knows may be one of anything.
                        Some(r) if r.meaning == Meaning::Local => {
                            self.in_scope(r.block, Some(r.name), None).first().copied()
                        }
                        _ => self.guarded.first(),
                    };
                    if let Some(g) = shown {
                        self.star(out, *place, &format!("{}.*", of.map_or("", |r| r.name.value.as_str())), g);
                    }
                }
                Star::Other(place) => {
                    if let Some(g) = self.guarded.first() {
                        self.star(out, *place, "*", g);
                    }
                }
            }
        }
    }

    fn star(&self, out: &mut Vec<Finding>, place: Place, star: &str, g: &Guarded<'_>) {
        self.report(
            out,
            place,
            &g.name,
            format!("`{star}` would show columns of `{}` that may not be read", g.name),
            format!("Not all columns of {} may be read: name those you want.{}", g.name, g.readable()),
        );
    }

    /// The guarded tables that a block sees, from the inside out; only those that are called like this, if a name is given, and
    /// only up to the block of a source that is surely meant.
    fn in_scope(&self, block: BlockId, called: Option<&Ident>, until: Option<SourceId>) -> Vec<&'l Guarded<'l>> {
        let facts = self.subject.facts;
        let last = until.map(|id| facts.sources[id].block);
        let mut out = Vec::new();
        let mut at = Some(block);
        while let Some(b) = at {
            let here = &facts.blocks[b];
            let is_called = |id: SourceId| {
                let name = facts.sources[id].name.map(|n| n.value.to_lowercase());
                called.is_none_or(|c| name.is_some_and(|n| n == c.value.to_lowercase()))
            };
            out.extend(
                self.guarded.iter().filter(|g| g.source.is_some_and(|id| here.sources.contains(&id) && is_called(id))),
            );
            // The innermost of that name hides those around it.
            if last == Some(b) || (called.is_some() && until.is_none() && here.sources.iter().any(|&id| is_called(id)))
            {
                break;
            }
            at = here.parent;
        }
        out
    }

    /// Whether it stands where no column can be meant: it names a table or a function, or gives a name.
    fn is_given(&self, name: &Ident) -> bool {
        let (facts, mentions) = (self.subject.facts, self.mentions);
        let holds = |place: &Place| place.start <= name.span.start && name.span.end <= place.end;
        mentions.given.contains(&name.span)
            || mentions.calls.iter().any(holds)
            || facts.ctes.iter().any(|c| c.span == name.span)
            || facts.sources.iter().any(|s| s.name.is_some_and(|n| n.span == name.span))
            || self.subject.hazards.iter().any(|h| matches!(h, Hazard::Names(_, place) if holds(place)))
    }

    fn names(&self, out: &mut Vec<Finding>) {
        for (text, place) in &self.mentions.quoted {
            if let Some(g) = self.guarded.iter().find(|g| g.hides(text)) {
                self.named(out, *place, text, g);
            }
        }
        for name in &self.mentions.names {
            let pattern = self.is_pattern(name);
            let Some(first) = self.guarded.iter().find(|g| pattern || g.hides(&name.value)) else { continue };
            if self.is_given(name) || self.is_qualifier(name) {
                continue;
            }
            let meant = match self.reference(name) {
                Some(r) => self.meant(r).into_iter().find(|g| pattern || g.hides(&name.value)),
                None => Some(first),
            };
            if let Some(g) = meant {
                self.named(out, name.span, &name.value, g);
            }
        }
    }

    /// Whether a name in quotes may be a pattern of names; one that the schema lists is none.
    fn is_pattern(&self, name: &Ident) -> bool {
        self.subject.context.dialect.quoted_names_may_be_patterns
            && name.quote_style.is_some()
            && looks_like_a_pattern(&name.value)
            && !self.reference(name).is_some_and(|r| matches!(r.meaning, Meaning::Column(..)))
    }

    fn named(&self, out: &mut Vec<Finding>, place: Place, name: &str, g: &Guarded<'_>) {
        self.report(
            out,
            place,
            name,
            format!("the column `{name}` of `{}` may not be read", g.name),
            format!(
                "The column {name} of {} may neither be shown nor tested; answer without it.{}",
                g.name,
                g.readable()
            ),
        );
    }

    /// Whose column a reference may be, of the guarded tables.
    fn meant(&self, r: &Reference<'_>) -> Vec<&'l Guarded<'l>> {
        let shown = |id: SourceId| self.guarded.iter().all(|g| g.source != Some(id) || !g.hides(&r.name.value));
        match r.meaning {
            Meaning::Column(id, _) if shown(id) => self.in_scope(r.block, r.qualifier, Some(id)),
            Meaning::Column(..)
            | Meaning::Open
            | Meaning::Hidden(_)
            | Meaning::Alias(_)
            | Meaning::Local
            | Meaning::Text => self.in_scope(r.block, None, None),
            Meaning::Field(..)
            | Meaning::Ambiguous(_)
            | Meaning::HiddenAlias(_)
            | Meaning::NotInSource(_)
            | Meaning::Nowhere
            | Meaning::UnknownQualifier => self.guarded.iter().collect(),
        }
    }

    fn reference(&self, name: &Ident) -> Option<&'l Reference<'l>> {
        self.subject.facts.references.iter().find(|r| r.name.span == name.span && !r.wildcard)
    }

    /// `t` in `t.x`, where it is surely a table: a struct has fields, too.
    fn is_qualifier(&self, name: &Ident) -> bool {
        let facts = self.subject.facts;
        facts.references.iter().any(|r| {
            let sure = match r.meaning {
                Meaning::Column(..) | Meaning::NotInSource(_) | Meaning::Hidden(_) => true,
                // Where no column is known, the name is only that of a table if one is called so.
                Meaning::Open | Meaning::Ambiguous(_) => facts.sources.iter().any(|s| {
                    s.name.is_some_and(|n| n.value.eq_ignore_ascii_case(&name.value))
                        && !self.subject.context.dialect.struct_fields
                }),
                Meaning::Local if r.wildcard => true,
                _ => false,
            };
            sure && r.qualifier.is_some_and(|q| q.span == name.span)
        })
    }

    /// A table's name where a value stands is its whole row, and a function that stands where a column could is given that row.
    fn rows(&self, out: &mut Vec<Finding>) {
        let facts = self.subject.facts;
        for name in &self.mentions.names {
            let is_called = |g: &&Guarded<'_>| {
                let called = g.source(self.subject).and_then(|s| s.name);
                called.is_some_and(|n| n.value.to_lowercase() == name.value.to_lowercase())
            };
            let Some(first) = self.guarded.iter().find(is_called) else { continue };
            if self.is_given(name) {
                continue;
            }
            let qualifies = facts.references.iter().find(|r| r.qualifier.is_some_and(|q| q.span == name.span));
            let meant = match (qualifies, self.reference(name)) {
                (Some(r), _) if r.wildcard || !self.may_be_called(r) => None,
                (Some(r), _) => self.in_scope(r.block, Some(name), None).first().copied(),
                // A column of that name comes before the row.
                (None, Some(r)) if matches!(r.meaning, Meaning::Column(..)) => None,
                (None, Some(r)) => self.in_scope(r.block, Some(name), None).first().copied(),
                // A qualifier further left, as in `schema.table.column`, is a name that leads to one that was looked at.
                (None, None) => Some(first),
            };
            if let Some(g) = meant {
                self.report(
                    out,
                    name.span,
                    &name.value,
                    format!(
                        "`{}` stands for whole rows of `{}`, some of whose columns may not be read",
                        name.value, g.name
                    ),
                    format!("Name the columns you want instead of {}.{}", name.value, g.readable()),
                );
            }
        }
    }

    /// Whether `t.x` may be the function x of the row t.
    fn may_be_called(&self, r: &Reference<'_>) -> bool {
        let context = self.subject.context;
        if !context.dialect.rows_are_values || matches!(r.meaning, Meaning::Column(..) | Meaning::Hidden(_)) {
            return false;
        }
        let lower = r.name.value.to_lowercase();
        context.dialect.functions.get(&lower).is_some()
            || context.policy.allow_functions.iter().any(|f| f.eq_ignore_ascii_case(&lower))
            || context.schema.is_some_and(|s| s.has_function(&lower) || !s.lists_functions())
    }
}
