//! Ways to mend a reference whose column is not where the query looks for it, the surest first.

use crate::finding::{Applicability, Edit, Fix};
use crate::mend::{self, qualified};
use crate::near::likeness;
use crate::rules::Subject;
use crate::schema::Table;
use crate::scope::{BlockId, Meaning, Reference, SourceId};

/// More than this many ways are no help.
const MOST_FIXES: usize = 6;

/// A way to mend a reference, and how good it looks; lower is better.
struct Way {
    fix: Fix,
    doubt: usize,
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
    other_sources(reference, owner, subject, &mut ways);
    own_names(reference, owner, subject, &mut ways);
    foreign_keys(reference, owner, subject, &mut ways);
    unjoined_tables(reference, None, subject, &mut ways);
    other_table(reference, owner, subject, &mut ways);
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
            unjoined_tables(reference, Some(&qualifier.value), subject, &mut ways);
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
    let mut fixes: Vec<Fix> = ways.into_iter().map(|w| w.fix).take(MOST_FIXES).collect();
    for (i, fix) in fixes.iter_mut().enumerate() {
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
            let like = likeness(name, column);
            // The same word written otherwise counts; a similar word does not.
            if like < 0.98 {
                continue;
            }
            let Some(text) = qualified(subject, source, column) else { continue };
            let inner = facts.sources[source].block == reference.block;
            let why = format!("`{}` has the column `{column}`", facts.sources[source].called());
            let misfit = mend::misfit(subject, partner, source, column);
            let doubt = misfit
                + n.min(3)
                + usize::from(like < 1.0)
                + usize::from(!inner) * 3
                + usize::from(reference.meaning == Meaning::UnknownQualifier) * 9;
            ways.push(Way { fix: mend::replace(span, text, Applicability::Safe, why), doubt });
        }
    }
}

/// The source that was named, or any in reach, has a column of nearly that name.
fn own_names(reference: &Reference<'_>, owner: Option<SourceId>, subject: &Subject<'_>, ways: &mut Vec<Way>) {
    let facts = subject.facts;
    let name = reference.name.value.as_str();
    let partner = mend::partner(subject, reference);
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
            if like < 0.5 && !is_key {
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
            let doubt = misfit
                + match like {
                    l if l >= 0.98 || is_key => 1,
                    l if l >= 0.88 => 6 - asked,
                    l if l >= 0.75 => 11 - 2 * asked,
                    l => 26 - (l * 10.0) as usize - 4 * asked,
                };
            let applicability = if like >= 0.85 { Applicability::Safe } else { Applicability::Likely };
            let why = format!("`{column}` is the column of `{}` nearest to `{name}`", facts.sources[source].called());
            ways.push(Way { fix: mend::replace(subject.query.span(reference.place), text, applicability, why), doubt });
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
            if likeness(name, there) < 0.98 || name.eq_ignore_ascii_case("id") {
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
            ways.push(Way { fix: mend::replace(subject.query.span(reference.place), text, applicability, why), doubt });
        }
    }
}

/// A table that the query does not join has the column: it is joined over the keys.
fn unjoined_tables(reference: &Reference<'_>, wanted: Option<&str>, subject: &Subject<'_>, ways: &mut Vec<Way>) {
    let Some(schema) = subject.context.schema else { return };
    let facts = subject.facts;
    let name = reference.name.value.as_str();
    let block = reference.block;
    let present = |t: &Table| {
        facts.blocks[block].sources.iter().any(|&s| facts.sources[s].table().is_some_and(|x| std::ptr::eq(x, t)))
    };
    // What else is asked of the same missing table tells which one it is.
    let siblings: Vec<&str> = facts
        .references
        .iter()
        .filter(|r| r.block == block && !r.wildcard && is_missing(&r.meaning))
        .filter(|r| {
            wanted.is_none() || r.qualifier.is_some_and(|q| wanted.is_some_and(|w| q.value.eq_ignore_ascii_case(w)))
        })
        .map(|r| r.name.value.as_str())
        .collect();
    for table in schema.tables().iter().filter(|t| !present(t)) {
        let named = wanted.is_some_and(|w| table.name.eq_ignore_ascii_case(w));
        let Some(column) = table.columns.iter().find(|c| likeness(name, &c.name) >= 0.98) else { continue };
        let has_all = siblings.iter().all(|s| table.columns.iter().any(|c| likeness(s, &c.name) >= 0.98));
        if wanted.is_some() && !named && !has_all {
            continue;
        }
        let alias = wanted.filter(|w| !subject.context.dialect.reserved.contains(w));
        let Some(joined) = mend::join(subject, block, table, alias) else { continue };
        let mut edits = joined.edits;
        let text = format!("{}.{}", joined.called, subject.context.dialect.quoted(&column.name));
        edits.push(Edit { span: subject.query.span(reference.place), text });
        edits.sort_by_key(|e| (e.span.start, e.span.end));
        let asked = mend::asked_for(subject, &table.name);
        let missing_siblings = siblings.iter().filter(|s| table.column(s).is_none()).count();
        let ties = mend::ties(subject, block, table).saturating_sub(1).min(2);
        let doubt = (2 + joined.doubt + 2 * missing_siblings)
            .saturating_sub(2 * usize::from(asked) + 4 * usize::from(named) + 3 * ties);
        let sure = !joined.inferred && !joined.multiplies && !joined.rivals;
        ways.push(Way {
            fix: Fix {
                edits,
                applicability: if sure { Applicability::Safe } else { Applicability::Likely },
                why: format!(
                    "`{}` has the column `{}` and hangs together with the query by {}",
                    table.name, column.name, joined.path
                ),
            },
            doubt,
        });
    }
}

fn is_missing(meaning: &Meaning) -> bool {
    matches!(meaning, Meaning::Nowhere | Meaning::NotInSource(_) | Meaning::UnknownQualifier)
}

/// Everything the query asks of its only table is also in another table, which has the missing column as well: the query is
/// moved there.
fn other_table(reference: &Reference<'_>, owner: Option<SourceId>, subject: &Subject<'_>, ways: &mut Vec<Way>) {
    let (Some(schema), facts) = (subject.context.schema, subject.facts) else { return };
    let block: BlockId = reference.block;
    let [source] = facts.blocks[block].sources.as_slice() else { return };
    if owner.is_some_and(|o| o != *source) || facts.sources[*source].table().is_none() {
        return;
    }
    let used: Vec<&str> = facts
        .references
        .iter()
        .filter(|r| match r.meaning {
            Meaning::Column(s, _) | Meaning::NotInSource(s) => s == *source,
            Meaning::Nowhere => r.block == block,
            _ => false,
        })
        .map(|r| r.name.value.as_str())
        .collect();
    let Some(place) =
        facts.tables.iter().find(|t| t.place == facts.sources[*source].place).map(|t| subject.query.span(t.place))
    else {
        return;
    };
    for table in schema.tables() {
        let whole = used.iter().all(|u| table.columns.iter().any(|c| c.name.eq_ignore_ascii_case(u)));
        if !whole || facts.sources[*source].table().is_some_and(|t| std::ptr::eq(t, table)) {
            continue;
        }
        let dialect = subject.context.dialect;
        let mut edits = vec![Edit { span: place, text: dialect.quoted(&table.name) }];
        let aliased = facts.sources[*source]
            .name
            .is_some_and(|n| !facts.sources[*source].table().is_some_and(|t| t.name.eq_ignore_ascii_case(&n.value)));
        for r in facts.references.iter().filter(|r| r.block == block && !aliased) {
            if let Some(q) = r.qualifier {
                edits.push(Edit { span: subject.query.span(q.span), text: dialect.quoted(&table.name) });
            }
        }
        edits.sort_by_key(|e| (e.span.start, e.span.end));
        edits.dedup();
        let asked = usize::from(mend::asked_for(subject, &table.name));
        ways.push(Way {
            fix: Fix {
                edits,
                applicability: Applicability::Likely,
                why: format!("`{}` has every column that the query uses", table.name),
            },
            doubt: if used.len() > 1 { 4 - asked } else { 6 - 2 * asked },
        });
    }
}
