//! Ways to tell two uses of one table apart that the query calls by one name.

use sqlparser::ast::{BinaryOperator, Spanned};

use crate::finding::{Applicability, Edit, Fix, Span};
use crate::mend;
use crate::near::likeness;
use crate::rules::Subject;
use crate::scope::{Clause, Meaning, Operation, Reference, SourceId};

/// The uses of one table, in the order of FROM, and what each is called from now on.
struct Uses {
    sources: Vec<SourceId>,
    names: Vec<String>,
}

/// Gives every use but the first an alias of its own, and every name the use that it can only mean: that of its ON clause.
/// Elsewhere the first one is meant, unless the query asks for the same column once for each use.
pub(super) fn fixes(sources: &[SourceId], subject: &Subject<'_>) -> Vec<Fix> {
    let Some(uses) = uses(sources, subject) else { return Vec::new() };
    let owned: Vec<(&Reference<'_>, usize)> = owners(&uses, subject);
    let mut edits: Vec<Edit> =
        uses.sources[1..].iter().zip(&uses.names[1..]).map(|(s, n)| alias(*s, n, subject)).collect();
    let bare = |r: &Reference<'_>| r.qualifier.is_none();
    for (reference, owner) in owned.iter().filter(|(r, owner)| *owner > 0 || bare(r)) {
        edits.push(Edit { span: subject.query.span(reference.place), text: named(&uses, *owner, reference, subject) });
    }
    let called = subject.facts.sources[uses.sources[0]].called();
    let why = format!("`{called}` is in FROM {} times, and each needs a name of its own", uses.sources.len());
    let fix = |mut edits: Vec<Edit>, why: String| {
        edits.sort_by_key(|e| (e.span.start, e.span.end));
        edits.dedup();
        Fix { edits, applicability: Applicability::Likely, why, tied: false }
    };
    let mut fixes = Vec::new();
    if let Some(more) = for_all(&uses, &owned, subject) {
        let all = edits.iter().cloned().chain(more).collect();
        fixes.push(fix(all, format!("{why}; the condition was meant for each of them")));
    }
    fixes.push(fix(edits, why));
    fixes
}

fn uses(sources: &[SourceId], subject: &Subject<'_>) -> Option<Uses> {
    let facts = subject.facts;
    let mut sources = sources.to_vec();
    sources.sort_unstable();
    sources.dedup();
    let first = &facts.sources[*sources.first()?];
    let alike = |s: &SourceId| {
        let other = &facts.sources[*s];
        other.block == first.block
            && other.called().eq_ignore_ascii_case(first.called())
            && other.column_names() == first.column_names()
    };
    if sources.len() < 2 || !sources.iter().all(alike) {
        return None;
    }
    let mut taken: Vec<String> =
        facts.visible(first.block).iter().map(|&s| facts.sources[s].called().to_lowercase()).collect();
    let mut names = vec![first.called().to_string()];
    for _ in &sources[1..] {
        let name = mend::fresh(first.called(), &taken);
        taken.push(name.to_lowercase());
        names.push(name);
    }
    Some(Uses { sources, names })
}

/// The edit that gives a use its own name: behind the table's name, or in the place of the alias it has.
fn alias(source: SourceId, name: &str, subject: &Subject<'_>) -> Edit {
    let source = &subject.facts.sources[source];
    let place = subject.query.span(source.place);
    let name = subject.context.dialect.quoted(name);
    match source.name.map(|n| subject.query.span(n.span)) {
        Some(own) if own.start >= place.end => Edit { span: own, text: name },
        _ => Edit { span: Span::new(place.end, place.end), text: format!(" AS {name}") },
    }
}

fn named(uses: &Uses, owner: usize, reference: &Reference<'_>, subject: &Subject<'_>) -> String {
    let column = subject.query.text(subject.query.span(reference.name.span));
    format!("{}.{column}", subject.context.dialect.quoted(&uses.names[owner]))
}

/// The use that each name means.
fn owners<'s>(uses: &Uses, subject: &Subject<'s>) -> Vec<(&'s Reference<'s>, usize)> {
    let facts = subject.facts;
    let is_ours = |r: &&Reference<'_>| match &r.meaning {
        Meaning::Ambiguous(s) => uses.sources.iter().all(|u| s.contains(u)),
        _ => false,
    };
    let ours: Vec<&Reference<'_>> = facts.references.iter().filter(is_ours).collect();
    let mut out: Vec<(&Reference<'_>, usize)> = Vec::new();
    for reference in &ours {
        let owner = match reference.clause {
            Clause::On => by_join(uses, reference, &ours, subject),
            _ => by_name(uses, reference, subject).unwrap_or_else(|| by_turn(uses, reference, &ours, subject)),
        };
        out.push((reference, owner));
    }
    out
}

/// An ON clause speaks of the table that it joins. Where it compares the table with itself, of the one before as well.
fn by_join(uses: &Uses, reference: &Reference<'_>, ours: &[&Reference<'_>], subject: &Subject<'_>) -> usize {
    let facts = subject.facts;
    let at = subject.query.span(reference.place).start;
    let joined = facts.blocks[facts.sources[uses.sources[0]].block]
        .sources
        .iter()
        .rev()
        .find(|&&s| subject.query.span(facts.sources[s].place).start < at);
    let Some(use_) = joined.and_then(|j| uses.sources.iter().position(|s| s == j)) else { return 0 };
    let with_itself = facts
        .operations
        .iter()
        .any(|o| o.left_node.span() == reference.place && ours.iter().any(|r| r.place == o.right_node.span()));
    if with_itself { use_.saturating_sub(1) } else { use_ }
}

/// `colour.colour AS hair` is the colour that was joined over `hair_colour_id`.
fn by_name(uses: &Uses, reference: &Reference<'_>, subject: &Subject<'_>) -> Option<usize> {
    let facts = subject.facts;
    let items = &facts.blocks[reference.block].items;
    let item = items.iter().find(|i| i.explicit && i.expression.is_some_and(|e| e.span() == reference.place))?;
    let words = |text: &str| -> Vec<String> {
        let lower = text.to_lowercase();
        lower.split(|c: char| !c.is_alphanumeric()).filter(|w| w.len() > 2).map(str::to_string).collect()
    };
    let wanted = words(&item.name?.value);
    let mut fitting = (0..uses.sources.len()).filter(|&i| {
        key_of(uses, i, subject).is_some_and(|key| {
            let own = words(&key);
            let telling = own.iter().filter(|w| {
                let elsewhere = |j: usize| key_of(uses, j, subject).is_some_and(|k| words(&k).contains(w));
                !(0..uses.sources.len()).any(|j| j != i && elsewhere(j))
            });
            telling.into_iter().any(|t| wanted.iter().any(|w| likeness(w, t) >= 0.75))
        })
    });
    match (fitting.next(), fitting.next()) {
        (Some(only), None) => Some(only),
        _ => None,
    }
}

/// The column of another table that a use is joined with.
fn key_of(uses: &Uses, at: usize, subject: &Subject<'_>) -> Option<String> {
    let facts = subject.facts;
    let start = subject.query.span(facts.sources[uses.sources[at]].place).start;
    let next = facts.sources[uses.sources[at]].block;
    let end = facts.blocks[next]
        .sources
        .iter()
        .map(|&s| subject.query.span(facts.sources[s].place).start)
        .filter(|&p| p > start)
        .min()
        .unwrap_or(usize::MAX);
    facts.operations.iter().filter(|o| o.clause == Clause::On && *o.operator == BinaryOperator::Eq).find_map(|o| {
        let here = subject.query.span(o.left_node.span()).start;
        if !(start < here && here < end) {
            return None;
        }
        let (source, column) = o.left.column.or(o.right.column)?;
        facts.sources[source].column_names().get(column).map(|c| c.to_string())
    })
}

/// The same column asked for as often as the table is joined: once of each.
fn by_turn(uses: &Uses, reference: &Reference<'_>, ours: &[&Reference<'_>], subject: &Subject<'_>) -> usize {
    let filters = reference.clause == Clause::Where;
    let alike: Vec<&&Reference<'_>> = ours
        .iter()
        .filter(|r| {
            r.block == reference.block
                && r.clause == reference.clause
                && r.name.value.eq_ignore_ascii_case(&reference.name.value)
        })
        .collect();
    let required = |r: &&&Reference<'_>| !filters || comparison(r, subject).is_some_and(|o| o.required);
    if alike.len() != uses.sources.len() || !alike.iter().all(required) {
        return 0;
    }
    alike.iter().position(|r| r.place == reference.place).unwrap_or(0)
}

fn comparison<'s>(reference: &Reference<'_>, subject: &Subject<'s>) -> Option<&'s Operation<'s>> {
    let stands = |o: &&Operation<'_>| {
        !o.is_in && (o.left_node.span() == reference.place || o.right_node.span() == reference.place)
    };
    subject.facts.operations.iter().find(stands)
}

/// A table that is joined again and never asked for anything is joined for the one condition there is: it was meant for
/// every use of the table.
fn for_all(uses: &Uses, owned: &[(&Reference<'_>, usize)], subject: &Subject<'_>) -> Option<Vec<Edit>> {
    let mut asked = owned.iter().filter(|(r, _)| r.clause != Clause::On);
    let (Some((only, 0)), None) = (asked.next(), asked.next()) else { return None };
    let operation = comparison(only, subject).filter(|o| o.required && o.clause == Clause::Where)?;
    operation.left.literal.or(operation.right.literal)?;
    let span = subject.query.span(operation.left_node.span()).join(subject.query.span(operation.right_node.span()));
    let (text, name) = (subject.query.text(span), subject.query.span(only.place));
    let again = (1..uses.sources.len()).map(|i| {
        let (before, behind) = (&text[..name.start - span.start], &text[name.end - span.start..]);
        format!(" AND {before}{}{behind}", named(uses, i, only, subject))
    });
    Some(vec![Edit { span: Span::new(span.end, span.end), text: again.collect() }])
}
