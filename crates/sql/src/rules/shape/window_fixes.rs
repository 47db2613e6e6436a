//! Windows are looked at last: what is said about them goes into a query around the one that computes them.

use sqlparser::ast::{Distinct, Expr, SelectItem, SetExpr, Spanned};
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::Token;

use crate::finding::{Applicability, Edit, Fix, Span};
use crate::mend;
use crate::rules::Subject;
use crate::rules::shape::aggregate_fixes::{holds, insert};
use crate::scope::{BlockId, Clause, Meaning, Reference};

/// What a block does behind its groups.
const LAST: &[Keyword] = &[
    Keyword::ORDER,
    Keyword::LIMIT,
    Keyword::OFFSET,
    Keyword::FETCH,
    Keyword::UNION,
    Keyword::EXCEPT,
    Keyword::INTERSECT,
    Keyword::WINDOW,
];

/// `… WHERE RANK() OVER (…) <= 3`, or the name of such an item: the conditions on windows stand around the query.
pub(crate) fn from_where(block: BlockId, subject: &Subject<'_>) -> Option<Fix> {
    let (word, parts) = mend::conditions(subject, block)?;
    let moved: Vec<Span> = parts.iter().copied().filter(|p| speaks_of_window(*p, block, subject)).collect();
    if moved.is_empty() {
        return None;
    }
    let kept: Vec<&str> = parts.iter().filter(|p| !moved.contains(p)).map(|p| subject.query.text(*p)).collect();
    let clause = word.join(*parts.last()?);
    let text = if kept.is_empty() { String::new() } else { format!("WHERE {}", kept.join(" AND ")) };
    let end = mend::clause_end(subject, subject.facts.blocks[block].from, LAST)?;
    let mut edits = vec![Edit { span: clause, text }];
    // Between a space and the parenthesis nothing is left of the clause.
    if kept.is_empty() {
        let before = subject.query.source[..clause.start].trim_end().len();
        edits[0].span.start = before;
    }
    around(block, &moved, edits, end, subject)
}

/// `… QUALIFY RANK() OVER (…) <= 3` is a WHERE around the query.
pub(crate) fn from_qualify(condition: Span, subject: &Subject<'_>) -> Option<Fix> {
    let blocks = 0..subject.facts.blocks.len();
    blocks.rev().find_map(|block| {
        let start = subject.facts.blocks[block].from;
        let rest = mend::rest_of_query(subject, start);
        let at = rest.iter().position(|(depth, span, token)| {
            *depth == 0 && mend::keyword(token) == Some(Keyword::QUALIFY) && span.end <= condition.start
        })?;
        let last = |(depth, _, token): &&(usize, Span, Token)| {
            *depth == 0 && mend::keyword(token).is_some_and(|k| LAST.contains(&k))
        };
        let own: Vec<_> = rest[at + 1..].iter().take_while(|t| !last(t)).collect();
        let whole = own.first()?.1.join(own.last()?.1);
        if !holds(whole, condition) {
            return None;
        }
        let gone = Span::new(subject.query.source[..rest[at].1.start].trim_end().len(), whole.end);
        around(block, &[whole], vec![Edit { span: gone, text: String::new() }], whole.end, subject)
    })
}

/// `SELECT DISTINCT ON (a) …` is the first row of each group.
pub(crate) fn from_distinct_on(select_word: Span, subject: &Subject<'_>) -> Option<Fix> {
    let facts = subject.facts;
    let block =
        (0..facts.blocks.len()).find(|&b| subject.query.span(facts.blocks[b].place).start == select_word.start)?;
    let b = &facts.blocks[block];
    let statement = subject.query.statements.first()?;
    let sqlparser::ast::Statement::Query(query) = statement else { return None };
    let SetExpr::Select(select) = &*query.body else { return None };
    // Only where it is the query itself: the places of its parts are known.
    let Some(Distinct::On(keys)) = &select.distinct else { return None };
    let plain = |e: &Expr| matches!(e, Expr::Identifier(_) | Expr::CompoundIdentifier(_));
    if b.grouped || b.aggregates || keys.is_empty() || !keys.iter().all(plain) {
        return None;
    }
    let outputs = outputs(block, subject)?;
    let words = mend::words(subject);
    let at = words.iter().position(|(span, _)| span.start == select_word.start)?;
    let open = at + 3;
    let close = (open..words.len()).find(|&i| words[i].1 == Token::RParen)?;
    (words.get(open)?.1 == Token::LParen).then_some(())?;
    let keys = subject.query.text(Span::new(words[open].0.end, words[close].0.start)).trim();
    let end = mend::clause_end(subject, b.from, LAST)?;
    let rest = mend::rest_of_query(subject, b.from);
    let behind: Vec<_> = rest.iter().filter(|(depth, span, _)| *depth == 0 && span.start >= end).collect();
    let order = behind.iter().position(|(_, _, t)| mend::keyword(t) == Some(Keyword::ORDER));
    let sorted = match order {
        None => String::new(),
        Some(at) => {
            let first = behind.get(at + 2)?.1;
            let stop = |t: &Token| matches!(mend::keyword(t), Some(Keyword::LIMIT | Keyword::OFFSET | Keyword::FETCH));
            let all = rest.iter().filter(|(_, span, _)| span.start >= first.start);
            let last = all.take_while(|(depth, _, t)| *depth > 0 || !stop(t)).last()?.1;
            subject.query.text(first.join(last)).to_string()
        }
    };
    // Inside of the window only columns can be sorted by, outside of the query only what it gives.
    let own = facts.references.iter().filter(|r| r.block == block && r.clause == Clause::OrderBy);
    let columns = own.clone().all(|r| matches!(r.meaning, Meaning::Column(..)));
    let number = sorted.split(',').any(|t| t.trim().starts_with(|c: char| c.is_ascii_digit()));
    let renamed = seen_outside(block, end, &outputs, subject)?;
    if !columns || number {
        return None;
    }
    let name = fresh("place", &outputs);
    let inside = if sorted.is_empty() { String::new() } else { format!(" ORDER BY {sorted}") };
    let from = mend::from_word(subject, block)?;
    let first = subject.query.span(select.projection.first().map(SelectItem::span)?);
    let mut edits = vec![
        Edit {
            span: Span::new(select_word.start, first.start),
            text: format!("SELECT {} FROM (SELECT ", outputs.join(", ")),
        },
        insert(
            subject.query.source[..from.start].trim_end().len(),
            format!(", ROW_NUMBER() OVER (PARTITION BY {keys}{inside}) AS {name}"),
        ),
        insert(end, format!(") AS ranked WHERE {name} = 1")),
    ];
    edits.extend(renamed);
    let why = "DISTINCT ON keeps the first row of each group, which ROW_NUMBER() counts as 1".to_string();
    Some(Fix { edits, applicability: Applicability::Likely, why, tied: false })
}

/// Puts a query around a block, in which the conditions that speak of windows stand.
fn around(block: BlockId, moved: &[Span], mut edits: Vec<Edit>, end: usize, subject: &Subject<'_>) -> Option<Fix> {
    let b = &subject.facts.blocks[block];
    let outputs = outputs(block, subject);
    let listed: Vec<String> = outputs.clone().unwrap_or_else(|| named(block, subject));
    let mut added: Vec<(String, String)> = Vec::new();
    let mut conditions: Vec<String> = Vec::new();
    for part in moved {
        let windows = windows(*part, block, subject);
        let mut text = String::new();
        let mut at = part.start;
        for window in &windows {
            let call = subject.query.text(*window).to_string();
            let known = added.iter().find(|(c, _)| *c == call).map(|(_, name)| name.clone());
            let name = known.unwrap_or_else(|| {
                let wanted = if added.is_empty() { "place".to_string() } else { format!("place_{}", added.len() + 1) };
                let name = fresh(&wanted, &listed);
                added.push((call, name.clone()));
                name
            });
            text.push_str(subject.query.text(Span::new(at, window.start)));
            text.push_str(&name);
            at = window.end;
        }
        text.push_str(subject.query.text(Span::new(at, part.end)));
        // The query around sees only what the block gives.
        let strange = subject.facts.references.iter().any(|r| {
            let span = subject.query.span(r.place);
            holds(*part, span)
                && !windows.iter().any(|w| holds(*w, span))
                && (r.qualifier.is_some() || !listed.iter().any(|o| is_same(o, &r.name.value)))
        });
        if strange {
            return None;
        }
        conditions.push(text);
    }
    edits.extend(seen_outside(block, end, &listed, subject)?);
    if b.distinct && !added.is_empty() {
        return None;
    }
    let head = match added.is_empty() {
        true => "*".to_string(),
        false => outputs?.join(", "),
    };
    edits.push(insert(subject.query.span(b.place).start, format!("SELECT {head} FROM (")));
    if !added.is_empty() {
        let from = mend::from_word(subject, block)?;
        let more: Vec<String> = added.iter().map(|(call, name)| format!(", {call} AS {name}")).collect();
        edits.push(insert(subject.query.source[..from.start].trim_end().len(), more.concat()));
    }
    edits.push(insert(end, format!(") AS ranked WHERE {}", conditions.join(" AND "))));
    edits.sort_by_key(|e| (e.span.start, e.span.end));
    let why = "the window is computed in a subquery, and its result is filtered around it".to_string();
    Some(Fix { edits, applicability: Applicability::Likely, why, tied: false })
}

/// Writes what stands behind a place of a block, ORDER BY, in the names of what the block gives: `e.name` is `name` there. `None` if
/// something is not given.
fn seen_outside(block: BlockId, end: usize, outputs: &[String], subject: &Subject<'_>) -> Option<Vec<Edit>> {
    let facts = subject.facts;
    let behind = |place| subject.query.span(place).start >= end;
    if facts.calls.iter().any(|c| c.block == Some(block) && c.window && behind(c.place)) {
        return None;
    }
    let mut edits = Vec::new();
    for reference in facts.references.iter().filter(|r| r.block == block && behind(r.place)) {
        let given = outputs.iter().any(|o| is_same(o, &reference.name.value));
        if reference.qualifier.is_none() && given {
            continue;
        }
        // An item that is that very column.
        let name = facts.blocks[block].items.iter().find_map(|item| {
            let place = subject.query.span(crate::scope::place(item.expression?));
            let same = |r: &&Reference<'_>| {
                subject.query.span(r.place) == place && r.meaning == reference.meaning && r.clause == Clause::Select
            };
            facts.references.iter().find(same).and(item.name)
        })?;
        let once = outputs.iter().filter(|o| is_same(o, &name.value)).count() == 1;
        (once && matches!(reference.meaning, Meaning::Column(..))).then_some(())?;
        let text = subject.context.dialect.quoted(&name.value);
        edits.push(Edit { span: subject.query.span(reference.place), text });
    }
    Some(edits)
}

fn is_same(written: &str, name: &str) -> bool {
    written.trim_matches(['"', '`', '[', ']']).eq_ignore_ascii_case(name)
}

/// The names that a block gives its items, as they must be written; those that have none are left out.
fn named(block: BlockId, subject: &Subject<'_>) -> Vec<String> {
    let items = subject.facts.blocks[block].items.iter().filter_map(|i| i.name);
    items.map(|n| subject.context.dialect.quoted(&n.value)).collect()
}

/// The same, if every item has one of its own. Of a star over one table the columns are known.
fn outputs(block: BlockId, subject: &Subject<'_>) -> Option<Vec<String>> {
    let b = &subject.facts.blocks[block];
    let mut out: Vec<String> = Vec::new();
    for item in &b.items {
        match (item.name, item.expression) {
            (Some(name), Some(_)) => out.push(subject.context.dialect.quoted(&name.value)),
            (_, None) => {
                let [source] = b.sources.as_slice() else { return None };
                let table = subject.facts.sources[*source].table()?;
                out.extend(table.columns.iter().map(|c| subject.context.dialect.quoted(&c.name)));
            }
            (None, Some(_)) => return None,
        }
    }
    let twice = (1..out.len()).any(|i| out[..i].iter().any(|o| o.eq_ignore_ascii_case(&out[i])));
    (!out.is_empty() && !twice).then_some(out)
}

fn fresh(wanted: &str, taken: &[String]) -> String {
    let mut name = wanted.to_string();
    while taken.iter().any(|t| is_same(t, &name)) {
        name.push('_');
    }
    name
}

/// The calls of window functions in a stretch of a block, with their OVER (…).
fn windows(part: Span, block: BlockId, subject: &Subject<'_>) -> Vec<Span> {
    let calls = subject.facts.calls.iter().filter(|c| c.window && c.block == Some(block));
    let mut spans: Vec<Span> = calls.filter_map(|c| whole(subject.query.span(c.place), subject)).collect();
    spans.retain(|s| holds(part, *s));
    spans.sort();
    let all = spans.clone();
    spans.retain(|s| !all.iter().any(|o| o != s && holds(*o, *s)));
    spans
}

/// A call with the OVER (…) behind it.
fn whole(call: Span, subject: &Subject<'_>) -> Option<Span> {
    let words = mend::words(subject);
    let start = words.iter().position(|(span, _)| span.start == call.start)?;
    let over = (start..words.len()).find(|&i| mend::keyword(&words[i].1) == Some(Keyword::OVER))?;
    if words.get(over + 1)?.1 != Token::LParen {
        return None;
    }
    let mut depth = 0usize;
    for (span, token) in &words[over + 1..] {
        match token {
            Token::LParen => depth += 1,
            Token::RParen => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(Span::new(call.start, span.end));
        }
    }
    None
}

/// Whether a condition calls a window function, or names an item that does.
fn speaks_of_window(part: Span, block: BlockId, subject: &Subject<'_>) -> bool {
    let names = subject.facts.references.iter().any(|r| {
        let item = match r.meaning {
            Meaning::Alias(item) | Meaning::HiddenAlias(item) => item,
            _ => return false,
        };
        r.block == block && holds(part, subject.query.span(r.place)) && item_has_window(block, item, subject)
    });
    names || !windows(part, block, subject).is_empty()
}

/// Whether an item of a SELECT list calls a window function.
pub(crate) fn item_has_window(block: BlockId, item: usize, subject: &Subject<'_>) -> bool {
    let expression = subject.facts.blocks[block].items.get(item).and_then(|i| i.expression);
    expression.is_some_and(|e| {
        let span = subject.query.span(crate::scope::place(e));
        subject.facts.calls.iter().any(|c| {
            let call = subject.query.span(c.place);
            c.window && c.block == Some(block) && span.start <= call.start && call.end <= span.end
        })
    })
}
