//! Ways to mend a reference whose column is not where the query looks for it, the surest first.

use crate::finding::{Applicability, Edit, Fix, Span};
use crate::mend::{self, qualified};
use crate::near::{drops_words, is_nearly, is_negation, is_slip, likeness};
use crate::rules::Subject;
use crate::rules::names::kinship::{evidence, is_bound_otherwise, is_itself};
use crate::rules::names::owner::{Owned, owner_in};
use crate::rules::names::{by_value, date_columns, named_query, self_join, table_fixes};
use crate::scope::{Item, Meaning, Reference, SourceId, place};

/// More than this many ways are no help.
const MOST_FIXES: usize = 6;

/// Least likeness of two names of columns that is evidence by itself.
const MIN_SPELLING: f64 = 0.75;

/// A way to mend a reference, and how good it looks; lower is better.
pub(super) struct Way {
    pub fix: Fix,
    pub doubt: usize,
}

/// All ways for a column that its source, or every source in reach, lacks.
pub(super) fn for_column(reference: &Reference<'_>, owner: Option<SourceId>, subject: &Subject<'_>) -> Vec<Fix> {
    let mut ways = Vec::new();
    // The names of USING stand alone: there is nothing to qualify.
    let before =
        subject.query.source[..subject.query.span(reference.place).start].trim_end().trim_end_matches('(').trim_end();
    if before.len() >= 5 && before.get(before.len() - 5..).is_some_and(|w| w.eq_ignore_ascii_case("using")) {
        return Vec::new();
    }
    named_query::lifted(reference, owner, subject, &mut ways);
    by_value::unquoted(reference, subject, &mut ways);
    by_value::holding(reference, owner, subject, &mut ways);
    self_join::key_of_itself(reference, owner, subject, &mut ways);
    other_sources(reference, owner, subject, &mut ways);
    own_names(reference, owner, subject, &mut ways);
    foreign_keys(reference, owner, subject, &mut ways);
    table_fixes::bridge(reference, subject, &mut ways);
    table_fixes::missing_from(reference, subject, &mut ways);
    table_fixes::unjoined_tables(reference, None, subject, &mut ways);
    table_fixes::other_table(reference, owner, subject, &mut ways);
    date_columns::suggest(reference, owner, subject, &mut ways);
    ranked(ways)
}

/// All ways for a reference whose qualifier nothing in FROM is called.
pub(super) fn for_qualifier(reference: &Reference<'_>, subject: &Subject<'_>) -> Vec<Fix> {
    let mut ways = Vec::new();
    let facts = subject.facts;
    let Some(qualifier) = reference.qualifier else { return Vec::new() };
    let span = subject.query.span(reference.place);
    let partner = mend::partner(subject, reference);
    for source in facts.visible(reference.block) {
        let table = facts.sources[source].table();
        let is_table = table.is_some_and(|t| t.name.eq_ignore_ascii_case(&qualifier.value));
        if is_table && let Some(text) = requalified(reference, source, subject) {
            let why = format!("`{}` is called `{}` here", qualifier.value, facts.sources[source].called());
            // A condition that no key backs may have meant another table.
            let misfit = partner.map_or(0, |p| mend::misfit(subject, Some(p), source, &reference.name.value));
            let applicability = if misfit == 0 { Applicability::Safe } else { Applicability::Likely };
            ways.push(Way { fix: mend::replace(span, text, applicability, why), doubt: misfit });
        }
    }
    if !reference.wildcard && (ways.is_empty() || partner.is_some()) {
        let renamed = ways.len();
        other_sources(reference, None, subject, &mut ways);
        // The alias stands for some table, and that it is this one is a guess.
        for way in &mut ways[renamed..] {
            way.fix.applicability = Applicability::Likely;
            if renamed > 0 && way.doubt >= 9 {
                way.doubt -= 8;
            }
        }
        if renamed == 0 {
            table_fixes::missing_from(reference, subject, &mut ways);
            named_query::not_in_from(reference, subject, &mut ways);
            self_join::joined_again(reference, &qualifier.value, subject, &mut ways);
            table_fixes::unjoined_tables(reference, Some(&qualifier.value), subject, &mut ways);
        }
    }
    ranked(ways)
}

fn requalified(reference: &Reference<'_>, source: SourceId, subject: &Subject<'_>) -> Option<String> {
    if reference.wildcard {
        return qualified(subject, source, "x")
            .map(|q| format!("{}.*", q.trim_end_matches(".x").trim_end_matches(".`x`")));
    }
    let names = subject.facts.sources[source].column_names();
    let column = names.iter().find(|c| c.eq_ignore_ascii_case(&reference.name.value))?;
    qualified(subject, source, column)
}

fn ranked(mut ways: Vec<Way>) -> Vec<Fix> {
    ways.sort_by_key(|w| w.doubt);
    let alone = ways.len() == 1;
    // Two reasons for the same change are one way.
    let mut different: Vec<Way> = Vec::new();
    for way in ways {
        if !different.iter().any(|d| d.fix.edits == way.fix.edits) {
            different.push(way);
        }
    }
    let ways = different;
    let doubts: Vec<usize> = ways.iter().map(|w| w.doubt).collect();
    let mut fixes: Vec<Fix> = ways.into_iter().map(|w| w.fix).take(MOST_FIXES).collect();
    for (i, fix) in fixes.iter_mut().enumerate() {
        fix.tied = i > 0 && doubts[i] == doubts[i - 1];
        // Only what has no rival can be proved.
        if i > 0 || !alone {
            fix.applicability = fix.applicability.max(Applicability::Likely);
        }
    }
    fixes
}

/// Another source in reach has a column of exactly that name.
fn other_sources(reference: &Reference<'_>, owner: Option<SourceId>, subject: &Subject<'_>, ways: &mut Vec<Way>) {
    let facts = subject.facts;
    let name = reference.name.value.as_str();
    let span = subject.query.span(reference.place);
    let partner = mend::partner(subject, reference);
    for (n, source) in facts.visible(reference.block).into_iter().enumerate() {
        if Some(source) == owner {
            continue;
        }
        for column in facts.sources[source].column_names() {
            // The same word written otherwise counts; a similar word does not.
            if !is_nearly(name, column, 0.98)
                || is_itself(reference, source, column, subject)
                || is_bound_otherwise(reference, source, column, subject)
            {
                continue;
            }
            let Some(text) = qualified(subject, source, column) else { continue };
            let inner = facts.sources[source].block == reference.block;
            let why = format!("`{}` has the column `{column}`", facts.sources[source].called());
            let misfit = mend::misfit(subject, partner, source, column);
            // What a key ties to something here is what a query around this one reads.
            let correlates =
                !inner && misfit == 0 && partner.is_some_and(|(p, _)| facts.sources[p].block == reference.block);
            let doubt = misfit
                + n.min(3)
                + usize::from(!is_nearly(name, column, 1.0))
                + usize::from(!inner) * 3
                + usize::from(reference.meaning == Meaning::UnknownQualifier && !correlates) * 9;
            let doubt = doubt.saturating_add_signed(-evidence(reference, source, column, subject));
            // In a condition each use has a partner of its own; elsewhere the same name means the same thing throughout.
            let fix = match partner {
                Some(_) => mend::replace(span, text, Applicability::Safe, why),
                None => everywhere(reference, source, &text, Applicability::Safe, why, subject),
            };
            ways.push(Way { fix, doubt });
        }
    }
}

/// The source that was named, or any in reach, has a column of nearly that name.
fn own_names(reference: &Reference<'_>, owner: Option<SourceId>, subject: &Subject<'_>, ways: &mut Vec<Way>) {
    let facts = subject.facts;
    let name = reference.name.value.as_str();
    let partner = mend::partner(subject, reference);
    let known = subject.context.schema.is_some_and(|s| s.tables().iter().any(|t| t.column(name).is_some()));
    let candidates: Vec<SourceId> = match owner {
        Some(owner) => vec![owner],
        None => facts.visible(reference.block),
    };
    for source in candidates {
        let key = facts.sources[source].table().and_then(|t| match t.primary_key.as_slice() {
            [key] => Some(key.as_str()),
            _ => None,
        });
        for column in facts.sources[source].column_names() {
            let like = likeness(name, column);
            let is_key = name.eq_ignore_ascii_case("id") && key == Some(column);
            if like < 0.5 && !is_key
                || is_itself(reference, source, column, subject)
                || self_join::is_same_row(reference, source, column, subject)
            {
                continue;
            }
            let text = match reference.qualifier {
                Some(q) => format!(
                    "{}.{}",
                    subject.query.text(subject.query.span(q.span)),
                    subject.context.dialect.quoted(column)
                ),
                None => match qualified(subject, source, column) {
                    Some(text) if facts.blocks[reference.block].sources.len() > 1 => text,
                    _ => subject.context.dialect.quoted(column),
                },
            };
            let asked = usize::from(mend::asked_for(subject, column));
            let misfit = if partner.is_some() { mend::misfit(subject, partner, source, column) } else { 0 };
            // One letter is a slip, whatever the column is compared with, unless that is of the same table; what some table
            // has is no slip.
            let slip =
                like >= 0.65 && column.len() > 3 && is_slip(&name.to_lowercase(), &column.to_lowercase()) && !known;
            let misfit = if slip && misfit < 12 { 0 } else { misfit };
            let owned = owner_in(name, column, source, subject);
            let backed = partner.is_some() && mend::misfit(subject, partner, source, column) == 0;
            let doubt = misfit
                + owned.doubt()
                + match like {
                    _ if slip => 1,
                    l if l >= 0.98 || is_key => 1,
                    _ if owned == Owned::Here && !known => 2,
                    _ if backed => 2,
                    l if l >= 0.88 => 6 - asked,
                    l if l >= 0.75 => 11 - 2 * asked,
                    l => 26 - (l * 10.0) as usize - 4 * asked,
                };
            // Half of the letters are no evidence: something else must speak for the column.
            let is_spelled_alike = like >= MIN_SPELLING && !drops_words(name, column);
            let has_evidence = is_spelled_alike || slip || is_key || backed || asked > 0 || owned == Owned::Here;
            let applicability = match owned {
                Owned::Elsewhere | Owned::Otherwise => Applicability::Suggested,
                _ if !has_evidence || is_negation(name, column) => Applicability::Suggested,
                Owned::Unsaid | Owned::Here if like >= 0.85 => Applicability::Safe,
                Owned::Unsaid | Owned::Here | Owned::Unknown => Applicability::Likely,
            };
            let why = format!("`{column}` is the column of `{}` nearest to `{name}`", facts.sources[source].called());
            ways.push(Way { fix: everywhere(reference, source, &text, applicability, why, subject), doubt });
        }
    }
}

/// The name is the key of another table, and a column here points at it: they hold the same value.
fn foreign_keys(reference: &Reference<'_>, owner: Option<SourceId>, subject: &Subject<'_>, ways: &mut Vec<Way>) {
    let facts = subject.facts;
    let name = reference.name.value.as_str();
    let candidates = match owner {
        Some(owner) => vec![owner],
        None => facts.blocks[reference.block].sources.clone(),
    };
    for source in candidates {
        let Some(table) = facts.sources[source].table() else { continue };
        for key in &table.foreign_keys {
            let ([own], [there]) = (key.columns.as_slice(), key.references.as_slice()) else { continue };
            if !is_nearly(name, there, 0.98) || name.eq_ignore_ascii_case("id") {
                continue;
            }
            let Some(text) = qualified(subject, source, own) else { continue };
            let single = facts.blocks[reference.block].sources.len() == 1 && reference.qualifier.is_none();
            let text = if single { subject.context.dialect.quoted(own) } else { text };
            let misfit = match mend::partner(subject, reference) {
                Some(partner) => mend::misfit(subject, Some(partner), source, own),
                None => 0,
            };
            let why = format!("`{}.{own}` holds the `{there}` of `{}`", table.name, key.table);
            let doubt = misfit + 1 + usize::from(key.inferred) * 2;
            let applicability = if key.inferred { Applicability::Likely } else { Applicability::Safe };
            ways.push(Way { fix: everywhere(reference, source, &text, applicability, why, subject), doubt });
        }
    }
}

/// The name is replaced wherever the block uses it: left alone, a use that a query around it can also answer would quietly
/// mean something else.
pub(super) fn everywhere(
    reference: &Reference<'_>,
    source: SourceId,
    text: &str,
    applicability: Applicability,
    why: String,
    subject: &Subject<'_>,
) -> Fix {
    let own = subject.facts.sources[source].block == reference.block;
    let mut spans: Vec<Span> = if own { uses(reference, subject) } else { Vec::new() };
    spans.push(subject.query.span(reference.place));
    spans.sort_by_key(|s| s.start);
    spans.dedup();
    let named = |span: Span| match is_output(reference, span, subject) {
        true => format!("{text} AS {}", subject.context.dialect.quoted(&reference.name.value)),
        false => text.to_string(),
    };
    let edits = spans.into_iter().map(|span| Edit { span, text: named(span) }).collect();
    Fix { edits, applicability, why, tied: false }
}

/// Whether a name stands alone in a SELECT list, and a query around it asks for the column by that very name.
fn is_output(reference: &Reference<'_>, span: Span, subject: &Subject<'_>) -> bool {
    let facts = subject.facts;
    let item = |i: &Item<'_>| !i.explicit && i.expression.is_some_and(|e| subject.query.span(place(e)) == span);
    let asked = |r: &Reference<'_>| {
        let listed = match r.meaning {
            Meaning::Column(s, _) => facts.sources[s].table().is_none(),
            _ => false,
        };
        listed && r.block != reference.block && r.name.value.eq_ignore_ascii_case(&reference.name.value)
    };
    facts.blocks[reference.block].items.iter().any(item) && facts.references.iter().any(asked)
}

/// Where else the block uses the same missing name, or one that a query around it answers for.
pub(super) fn uses(reference: &Reference<'_>, subject: &Subject<'_>) -> Vec<Span> {
    let facts = subject.facts;
    let alike = |r: &&Reference<'_>| {
        let captured = matches!(r.meaning, Meaning::Column(s, _) if facts.sources[s].block != r.block);
        let same = r.name.value.eq_ignore_ascii_case(&reference.name.value)
            && r.qualifier.map(|q| &q.value) == reference.qualifier.map(|q| &q.value);
        r.block == reference.block && same && !r.wildcard && (r.meaning == reference.meaning || captured)
    };
    facts.references.iter().filter(alike).map(|r| subject.query.span(r.place)).collect()
}
