//! A table that does not exist and ties two others together: the schema ties them in its own way.

use sqlparser::ast::{BinaryOperator, Expr, Spanned};
use sqlparser::keywords::Keyword;

use crate::finding::{Applicability, Edit, Fix, Span};
use crate::joins::{self, Link};
use crate::mend;
use crate::near::likeness;
use crate::rules::Subject;
use crate::schema::{Schema, Table};
use crate::scope::{Meaning, Reference, SourceId};

/// One comparison between the unknown table and a table that exists.
struct Tie<'s> {
    /// The column that is asked of the unknown table.
    ours: &'s Reference<'s>,
    /// What it is compared with.
    theirs: &'s Reference<'s>,
    neighbour: SourceId,
    /// Both sides and what is between them.
    span: Span,
}

/// The table of the schema that ties the same neighbours, then the key that ties them without any table between.
pub(super) fn fixes(unknown: SourceId, subject: &Subject<'_>, schema: &Schema) -> Vec<Fix> {
    let ties = ties(unknown, subject);
    let mut neighbours: Vec<SourceId> = ties.iter().map(|t| t.neighbour).collect();
    neighbours.sort_unstable();
    neighbours.dedup();
    let tables: Vec<&Table> = neighbours.iter().filter_map(|&n| subject.facts.sources[n].table()).collect();
    if tables.len() != neighbours.len() || !matches!(tables.len(), 1 | 2) {
        return Vec::new();
    }
    let fitting = schema.tables().iter().filter(|t| {
        !tables.iter().any(|n| std::ptr::eq(*n, *t)) && tables.iter().all(|n| !keys(schema, t, n).is_empty())
    });
    let candidates: Vec<&Table> = fitting.collect();
    // Many tables hang on one; only two neighbours, or the lack of a choice, say which was meant.
    let candidates = if tables.len() == 1 && candidates.len() > 1 { Vec::new() } else { candidates };
    let mut out: Vec<Fix> =
        candidates.into_iter().filter_map(|t| replaced(unknown, t, &ties, subject, schema)).collect();
    // One neighbour is no evidence: any table that hangs on it may have been meant, also one that is not in this database.
    if tables.len() == 1 {
        out.iter_mut().for_each(|fix| fix.applicability = Applicability::Suggested);
    }
    if let [a, b] = neighbours.as_slice() {
        out.extend(direct(unknown, (*a, *b), &ties, subject, schema));
    }
    out
}

/// The keys of a table that point at one row of another.
pub(super) fn keys<'a>(schema: &'a Schema, table: &'a Table, to: &'a Table) -> Vec<Link<'a>> {
    joins::between(schema, table, &[to]).into_iter().filter(|l| !l.multiplies).collect()
}

/// What is asked of the unknown table.
fn asked<'s>(unknown: SourceId, subject: &Subject<'s>) -> Vec<&'s Reference<'s>> {
    let source = &subject.facts.sources[unknown];
    let ours = |r: &&Reference<'_>| {
        r.block == source.block && r.qualifier.is_some_and(|q| q.value.eq_ignore_ascii_case(source.called()))
    };
    subject.facts.references.iter().filter(ours).collect()
}

fn ties<'s>(unknown: SourceId, subject: &Subject<'s>) -> Vec<Tie<'s>> {
    let facts = subject.facts;
    let at = |node: &Expr| facts.references.iter().find(|r| r.place == node.span());
    let mut out = Vec::new();
    for ours in asked(unknown, subject) {
        for o in facts.operations.iter().filter(|o| *o.operator == BinaryOperator::Eq && o.required && !o.is_in) {
            let theirs = match (o.left_node.span() == ours.place, o.right_node.span() == ours.place) {
                (true, false) => at(o.right_node),
                (false, true) => at(o.left_node),
                _ => None,
            };
            let Some(theirs) = theirs else { continue };
            let (Meaning::Column(neighbour, _) | Meaning::NotInSource(neighbour)) = theirs.meaning else { continue };
            let span = subject.query.span(o.left_node.span()).join(subject.query.span(o.right_node.span()));
            out.push(Tie { ours, theirs, neighbour, span });
        }
    }
    out
}

/// The unknown table is another one, whose keys are the columns that are compared.
fn replaced(unknown: SourceId, table: &Table, ties: &[Tie<'_>], subject: &Subject<'_>, schema: &Schema) -> Option<Fix> {
    let dialect = subject.context.dialect;
    let source = &subject.facts.sources[unknown];
    let place = subject.query.span(source.place);
    let aliased = source.name.is_some_and(|n| subject.query.span(n.span).start >= place.end);
    let called = if aliased { dialect.quoted(source.called()) } else { dialect.quoted(&table.name) };
    let mut edits = vec![Edit { span: place, text: dialect.quoted(&table.name) }];
    let mut used: Vec<(SourceId, String)> = Vec::new();
    for tie in ties {
        let neighbour = subject.facts.sources[tie.neighbour].table()?;
        let links = keys(schema, table, neighbour);
        let link = links.iter().min_by_key(|l| (l.inferred, misnamed(l, tie)))?;
        let [(own, there)] = link.columns.as_slice() else { return None };
        // One column cannot hold the keys of two tables.
        if used.iter().any(|(n, column)| *n != tie.neighbour && column == own) {
            return None;
        }
        used.push((tie.neighbour, own.to_string()));
        let ours = subject.query.span(tie.ours.place);
        edits.push(Edit { span: ours, text: format!("{called}.{}", dialect.quoted(own)) });
        let text = mend::qualified(subject, tie.neighbour, there)?;
        edits.push(Edit { span: subject.query.span(tie.theirs.place), text });
    }
    for other in asked(unknown, subject) {
        if ties.iter().any(|t| t.ours.place == other.place) {
            continue;
        }
        if other.wildcard || table.column(&other.name.value).is_none() {
            return None;
        }
        edits.push(Edit { span: subject.query.span(other.qualifier?.span), text: called.clone() });
    }
    edits.sort_by_key(|e| (e.span.start, e.span.end));
    edits.dedup();
    let names: Vec<String> = ties
        .iter()
        .filter_map(|t| subject.facts.sources[t.neighbour].table())
        .map(|t| format!("`{}`", t.name))
        .collect();
    let why = format!("`{}` is the table that has the keys of {}", table.name, names.join(" and "));
    Some(Fix { edits, applicability: Applicability::Likely, why, tied: false })
}

/// Of two keys between the same tables, the one that is named like what is asked is meant.
fn misnamed(link: &Link<'_>, tie: &Tie<'_>) -> usize {
    let like = link.columns.first().map_or(0.0, |(own, _)| likeness(&tie.ours.name.value, own));
    ((1.0 - like) * 100.0) as usize
}

/// The neighbours hang together by one key, so that nothing is needed between them: the unknown table is left out.
fn direct(
    unknown: SourceId,
    (a, b): (SourceId, SourceId),
    ties: &[Tie<'_>],
    subject: &Subject<'_>,
    schema: &Schema,
) -> Option<Fix> {
    let facts = subject.facts;
    let (here, there) = (facts.sources[a].table()?, facts.sources[b].table()?);
    let links = joins::between(schema, here, &[there]);
    let ([link], [first, second]) = (links.as_slice(), ties) else { return None };
    if asked(unknown, subject).len() != 2 || link.inferred {
        return None;
    }
    let segment = segment(unknown, subject)?;
    let inside = |t: &Tie<'_>| segment.start <= t.span.start && t.span.end <= segment.end;
    let outside = match (inside(first), inside(second)) {
        (true, false) => second,
        (false, true) => first,
        _ => return None,
    };
    let conditions: Option<Vec<String>> = link
        .columns
        .iter()
        .map(|(x, y)| Some(format!("{} = {}", mend::qualified(subject, a, x)?, mend::qualified(subject, b, y)?)))
        .collect();
    let mut edits =
        vec![Edit { span: segment, text: String::new() }, Edit { span: outside.span, text: conditions?.join(" AND ") }];
    edits.sort_by_key(|e| (e.span.start, e.span.end));
    // `ExcerptPostId` says that it is about something else than `PostId` would be.
    let applicability = if link.columns.iter().all(|(x, y)| is_plain(x, y, &[here, there])) {
        Applicability::Likely
    } else {
        Applicability::Suggested
    };
    let why = format!("`{}` and `{}` hang together by a key, with no table between them", here.name, there.name);
    Some(Fix { edits, applicability, why, tied: false })
}

/// Whether the names of a key say nothing but which table it points at.
pub(super) fn is_plain(here: &str, there: &str, tables: &[&Table]) -> bool {
    let plain = |name: &str| {
        let mut rest: String = name.to_lowercase().chars().filter(|c| c.is_alphanumeric()).collect();
        for table in tables {
            let table: String = table.name.to_lowercase().chars().filter(|c| c.is_alphanumeric()).collect();
            let single = table.strip_suffix('s').unwrap_or(&table).to_string();
            rest = rest.replace(&table, "").replace(&single, "");
        }
        ["", "id", "code", "key", "no", "number"].contains(&rest.as_str())
    };
    plain(here) && plain(there)
}

/// The JOIN of a source with its ON clause, up to the next JOIN or the end of FROM.
fn segment(source: SourceId, subject: &Subject<'_>) -> Option<Span> {
    let block = subject.facts.sources[source].block;
    let place = subject.query.span(subject.facts.sources[source].place);
    let end = mend::from_end(subject, block)?;
    let mut starts: Vec<usize> = Vec::new();
    let mut kind: Option<usize> = None;
    for (depth, span, token) in mend::rest_of_query(subject, subject.facts.blocks[block].from) {
        if span.start >= end {
            break;
        }
        match mend::keyword(&token).filter(|_| depth == 0) {
            Some(Keyword::INNER | Keyword::LEFT | Keyword::RIGHT | Keyword::FULL | Keyword::OUTER) => {
                kind = kind.or(Some(span.start));
            }
            Some(Keyword::JOIN) => starts.push(kind.take().unwrap_or(span.start)),
            _ => kind = None,
        }
    }
    let start = starts.iter().copied().filter(|s| *s < place.start).max()?;
    let next = starts.iter().copied().find(|s| *s > place.start).unwrap_or(end);
    Some(Span::new(start, next))
}
