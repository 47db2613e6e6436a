//! A table that does not exist and ties two others together, one query inside the other:
//! `id IN (SELECT a_id FROM a_b WHERE b_id IN (SELECT id FROM b …))`.

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::Token;

use super::junction::{is_plain, keys};
use crate::finding::{Applicability, Edit, Fix, Span};
use crate::joins;
use crate::mend::{self, keyword};
use crate::near::likeness;
use crate::rules::Subject;
use crate::schema::{Schema, Table};
use crate::scope::{BlockId, Meaning, Reference, SourceId};

/// What stands around and inside the query of the unknown table.
struct Nest<'s> {
    /// The column outside that is looked for, and its table.
    outside: (&'s Reference<'s>, &'s Table),
    /// What the unknown table gives, and what it is looked up by.
    given: &'s Reference<'s>,
    by: &'s Reference<'s>,
    /// The column that the innermost query gives, and its table.
    inside: (&'s Reference<'s>, &'s Table),
    /// From the SELECT of the unknown table to that of the innermost query.
    opening: Span,
    /// The parenthesis behind the innermost query, if nothing else follows.
    closing: Option<Span>,
}

/// The table of the schema that ties the same two, then the key that ties them without any table between.
pub(super) fn fixes(unknown: SourceId, subject: &Subject<'_>, schema: &Schema) -> Vec<Fix> {
    let Some(nest) = nest(unknown, subject) else { return Vec::new() };
    let (here, there) = (nest.outside.1, nest.inside.1);
    if std::ptr::eq(here, there) {
        return Vec::new();
    }
    let other = |t: &&Table| !std::ptr::eq(*t, here) && !std::ptr::eq(*t, there);
    let tables = schema.tables().iter().filter(other);
    let mut out: Vec<Fix> = tables.filter_map(|t| replaced(unknown, t, &nest, subject, schema)).collect();
    out.extend(direct(unknown, &nest, subject, schema));
    out
}

/// The references of one block.
fn of_block<'s>(block: BlockId, subject: &Subject<'s>) -> Vec<&'s Reference<'s>> {
    subject.facts.references.iter().filter(|r| r.block == block && !r.wildcard).collect()
}

fn nest<'s>(unknown: SourceId, subject: &Subject<'s>) -> Option<Nest<'s>> {
    let facts = subject.facts;
    let block = facts.sources[unknown].block;
    if facts.blocks[block].sources.len() != 1 {
        return None;
    }
    let words = mend::words(subject);
    let span = |r: &Reference<'_>| subject.query.span(r.place);
    // `x IN (` or `x = (` stands before the SELECT of a query.
    let asked_by = |inner: BlockId| -> Option<(usize, &'s Reference<'s>)> {
        let start = subject.query.span(facts.blocks[inner].place).start;
        let at = words.iter().position(|(s, _)| s.start == start)?;
        let (open, operator) = (&words.get(at.checked_sub(1)?)?.1, &words.get(at.checked_sub(2)?)?.1);
        let compares = *operator == Token::Eq || keyword(operator) == Some(Keyword::IN);
        let mut before = at.checked_sub(3)?;
        if keyword(&words[before].1) == Some(Keyword::NOT) {
            before = before.checked_sub(1)?;
        }
        let end = words[before].0.end;
        let reference = facts.references.iter().find(|r| span(r).end == end)?;
        (*open == Token::LParen && compares).then_some((at, reference))
    };
    let given = |block: BlockId| -> Option<&'s Reference<'s>> {
        let [item] = facts.blocks[block].items.as_slice() else { return None };
        let place = crate::scope::place(item.expression?);
        facts.references.iter().find(|r| r.block == block && r.place == place)
    };
    let table = |r: &Reference<'_>| match (&r.meaning, facts.blocks[r.block].sources.as_slice()) {
        (Meaning::Column(source, _) | Meaning::NotInSource(source), _) => facts.sources[*source].table(),
        (Meaning::Nowhere, [only]) => facts.sources[*only].table(),
        _ => None,
    };
    let (select, outside) = asked_by(block)?;
    let mut inner = (0..facts.blocks.len()).filter(|&b| facts.blocks[b].parent == Some(block));
    let (inner, None) = (inner.next()?, inner.next()) else { return None };
    let (within, by) = asked_by(inner)?;
    let inside = given(inner)?;
    if by.block != block || outside.block == block {
        return None;
    }
    let depth_at = |from: usize| {
        let mut depth = 0usize;
        (from..words.len()).find(|&i| match words[i].1 {
            Token::LParen => {
                depth += 1;
                false
            }
            Token::RParen if depth == 0 => true,
            Token::RParen => {
                depth -= 1;
                false
            }
            _ => false,
        })
    };
    let close = depth_at(within)?;
    let alone = words.get(close + 1).is_some_and(|(_, t)| *t == Token::RParen);
    Some(Nest {
        outside: (outside, table(outside)?),
        given: given(block)?,
        by,
        inside: (inside, table(inside)?),
        opening: Span::new(words[select].0.start, words[within].0.start),
        closing: alone.then_some(words[close].0),
    })
}

/// The name of a column, with the qualifier that stands before it.
fn renamed(reference: &Reference<'_>, column: &str, subject: &Subject<'_>) -> Edit {
    Edit { span: subject.query.span(reference.name.span), text: subject.context.dialect.quoted(column) }
}

/// The unknown table is another one, which has the keys of both.
fn replaced(unknown: SourceId, table: &Table, nest: &Nest<'_>, subject: &Subject<'_>, schema: &Schema) -> Option<Fix> {
    let source = &subject.facts.sources[unknown];
    let others = of_block(source.block, subject);
    if others.iter().any(|r| r.place != nest.given.place && r.place != nest.by.place) {
        return None;
    }
    let key = |to: &Table, asked: &str| {
        let fitting = keys(schema, table, to).into_iter().filter(|l| l.columns.len() == 1);
        let links: Vec<_> = fitting.map(|l| (l.columns[0].0.to_string(), l.columns[0].1.to_string())).collect();
        links.into_iter().min_by_key(|(own, _)| ((1.0 - likeness(asked, own)) * 100.0) as usize)
    };
    let (own_outside, there_outside) = key(nest.outside.1, &nest.given.name.value)?;
    let (own_inside, there_inside) = key(nest.inside.1, &nest.by.name.value)?;
    if own_outside == own_inside {
        return None;
    }
    let dialect = subject.context.dialect;
    let mut edits = vec![
        renamed(nest.outside.0, &there_outside, subject),
        renamed(nest.given, &own_outside, subject),
        Edit { span: subject.query.span(source.place), text: dialect.quoted(&table.name) },
        renamed(nest.by, &own_inside, subject),
        renamed(nest.inside.0, &there_inside, subject),
    ];
    // Without an alias, its columns are called by its name.
    let own = |q: &&sqlparser::ast::Ident| q.value.eq_ignore_ascii_case(source.called());
    let place = subject.query.span(source.place);
    if source.name.is_none_or(|n| subject.query.span(n.span).start < place.end) {
        let qualifiers = [nest.given, nest.by].into_iter().filter_map(|r| r.qualifier).filter(own);
        edits.extend(qualifiers.map(|q| Edit { span: subject.query.span(q.span), text: dialect.quoted(&table.name) }));
    }
    edits.sort_by_key(|e| (e.span.start, e.span.end));
    let (here, there) = (&nest.outside.1.name, &nest.inside.1.name);
    let why = format!("`{}` is the table that has the keys of `{here}` and `{there}`", table.name);
    Some(Fix { edits, applicability: Applicability::Likely, why, tied: false })
}

/// The two hang together by one key, so that the query between them is left out.
fn direct(unknown: SourceId, nest: &Nest<'_>, subject: &Subject<'_>, schema: &Schema) -> Option<Fix> {
    let (here, there) = (nest.outside.1, nest.inside.1);
    let links = joins::between(schema, here, &[there]);
    let [link] = links.as_slice() else { return None };
    let [(own, other)] = link.columns.as_slice() else { return None };
    if of_block(subject.facts.sources[unknown].block, subject).len() != 2 || link.inferred {
        return None;
    }
    let mut edits = vec![
        renamed(nest.outside.0, own, subject),
        Edit { span: nest.opening, text: String::new() },
        renamed(nest.inside.0, other, subject),
        Edit { span: nest.closing?, text: String::new() },
    ];
    edits.sort_by_key(|e| (e.span.start, e.span.end));
    let plain = is_plain(own, other, &[here, there]);
    let applicability = if plain { Applicability::Likely } else { Applicability::Suggested };
    let why = format!("`{}` and `{}` hang together by a key, with no table between them", here.name, there.name);
    Some(Fix { edits, applicability, why, tied: false })
}
