//! Queries that have a name: those of WITH, and those in FROM. Columns that they could give and do not, names that are nearly theirs.

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::Token;

use super::column_fixes::Way;
use crate::finding::{Applicability, Edit, Fix, Span};
use crate::mend::{self, keyword};
use crate::near::likeness;
use crate::rules::Subject;
use crate::scope::{BlockId, Reference, SourceId};

/// A column that a query in FROM, or of WITH, could give: its own table has it, and it only has to be selected.
pub(super) fn lifted(reference: &Reference<'_>, owner: Option<SourceId>, subject: &Subject<'_>, ways: &mut Vec<Way>) {
    let facts = subject.facts;
    // What is selected with a star would change.
    if facts.blocks.iter().any(|block| block.items.iter().any(|item| item.expression.is_none())) {
        return;
    }
    let sources = match owner {
        Some(owner) => vec![owner],
        None => facts.blocks[reference.block].sources.clone(),
    };
    for source in sources.into_iter().filter(|&s| facts.sources[s].table().is_none()) {
        let Some(inner) = block_of(source, subject) else { continue };
        let block = &facts.blocks[inner];
        if block.grouped || block.aggregates || block.distinct || is_one_of_several(inner, subject) {
            continue;
        }
        let mut having = block.sources.iter().filter_map(|&s| {
            let names = facts.sources[s].column_names();
            let column = names.into_iter().find(|c| c.eq_ignore_ascii_case(&reference.name.value))?;
            Some((s, column.to_string()))
        });
        let (Some((from, column)), None) = (having.next(), having.next()) else { continue };
        let text = match block.sources.len() {
            1 => Some(subject.context.dialect.quoted(&column)),
            _ => mend::qualified(subject, from, &column),
        };
        let (Some(text), Some(word)) = (text, mend::from_word(subject, inner)) else { continue };
        let end = subject.query.source[..word.start].trim_end().len();
        let edits = vec![Edit { span: Span::new(end, end), text: format!(", {text}") }];
        let called = facts.sources[source].called();
        let why = format!("`{called}` reads a table that has the column `{column}`, and has to select it");
        ways.push(Way { fix: Fix { edits, applicability: Applicability::Likely, why, tied: false }, doubt: 1 });
    }
}

/// The block that a source which is no stored table is made of.
fn block_of(source: SourceId, subject: &Subject<'_>) -> Option<BlockId> {
    let (facts, query) = (subject.facts, subject.query);
    let start = |block: BlockId| query.span(facts.blocks[block].place).start;
    let first_behind = |at: usize| (0..facts.blocks.len()).filter(|&b| start(b) > at).min_by_key(|&b| start(b));
    let place = facts.sources[source].place;
    if let Some(used) = facts.tables.iter().find(|table| table.place == place) {
        let name = used.name.0.last()?.as_ident()?;
        let with = facts.ctes.iter().find(|cte| cte.value.eq_ignore_ascii_case(&name.value))?;
        let end = query.span(with.span).end;
        // Names of its own for the columns are not followed.
        let renamed = query.source[end..].trim_start().starts_with('(');
        return if renamed { None } else { first_behind(end) };
    }
    // The parentheses stand before the name.
    let words = mend::words(subject);
    let name = words.iter().position(|(span, _)| *span == query.span(place))?;
    let mut close = name.checked_sub(1)?;
    if keyword(&words[close].1) == Some(Keyword::AS) {
        close = close.checked_sub(1)?;
    }
    let mut depth = 0usize;
    let open = (0..=close).rev().find(|&at| {
        match words[at].1 {
            Token::RParen => depth += 1,
            Token::LParen => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0
    })?;
    (open < close).then(|| first_behind(words[open].0.start)).flatten()
}

/// Whether UNION or its kin put a query together with another.
fn is_one_of_several(block: BlockId, subject: &Subject<'_>) -> bool {
    let sets = [Keyword::UNION, Keyword::EXCEPT, Keyword::INTERSECT];
    mend::rest_of_query(subject, subject.facts.blocks[block].place.start)
        .iter()
        .any(|(depth, _, token)| *depth == 0 && keyword(token).is_some_and(|word| sets.contains(&word)))
}

/// A query of WITH whose columns are asked for, and which FROM does not name: it is read as well, if a condition ties it.
pub(super) fn not_in_from(reference: &Reference<'_>, subject: &Subject<'_>, ways: &mut Vec<Way>) {
    let facts = subject.facts;
    let Some(qualifier) = reference.qualifier else { return };
    let Some(name) = facts.ctes.iter().find(|cte| cte.value.eq_ignore_ascii_case(&qualifier.value)) else { return };
    let its = |r: &&Reference<'_>| {
        r.block == reference.block && r.qualifier.is_some_and(|q| q.value.eq_ignore_ascii_case(&qualifier.value))
    };
    let tied = facts.references.iter().filter(its).any(|r| mend::partner(subject, r).is_some());
    let Some(end) = mend::from_end(subject, reference.block).filter(|_| tied) else { return };
    let text = format!(", {}", subject.context.dialect.quoted(&name.value));
    let why = format!("`{}` is a query of WITH that the query asks for and does not read", name.value);
    let edits = vec![Edit { span: Span::new(end, end), text }];
    ways.push(Way { fix: Fix { edits, applicability: Applicability::Likely, why, tied: false }, doubt: 0 });
}

/// The query of WITH whose name is nearly that of a table that is not there.
pub(super) fn nearly<'s>(name: &str, subject: &Subject<'s>) -> Option<&'s str> {
    let lower = name.to_lowercase();
    let is_like = |cte: &str| {
        let cte = cte.to_lowercase();
        let cut = cte.len().min(lower.len()) > 3 && (cte.starts_with(&lower) || lower.starts_with(&cte));
        cut || likeness(&lower, &cte) >= 0.75
    };
    let mut like = subject.facts.ctes.iter().filter(|cte| is_like(&cte.value));
    like.next().filter(|_| like.next().is_none()).map(|cte| cte.value.as_str())
}
