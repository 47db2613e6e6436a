//! Ways to mend an aggregate that stands where it cannot, the surest first.

use sqlparser::ast::{Expr, Spanned};
use sqlparser::keywords::Keyword;

use crate::finding::{Applicability, Edit, Fix, Span};
use crate::mend;
use crate::near::nearest;
use crate::rules::Subject;
use crate::rules::shape::nested_aggregates as nested;
use crate::scope::{BlockId, Call, Clause, Meaning, Reference};

/// All ways for a call.
pub(super) fn for_call(call: &Call<'_>, subject: &Subject<'_>) -> Vec<Fix> {
    let Some(block) = call.block else { return Vec::new() };
    let place = subject.query.span(call.place);
    let ways = match call.clause {
        Clause::Select if call.nested => vec![
            in_groups(block, subject),
            best_group(call, block, subject),
            nested::best_of_those_named(call, block, subject),
            nested::row_itself(call, subject),
            nested::only_group(call, block, subject),
        ],
        Clause::Where if !call.nested => {
            let groups = counted_groups(place, block, subject);
            vec![to_having(place, None, block, subject), groups, to_subquery(call, subject)]
        }
        Clause::On if !call.nested => vec![to_subquery(call, subject)],
        Clause::OrderBy if !call.nested => vec![sorted(call, block, subject)],
        Clause::GroupBy if !call.nested => vec![without_key(place, block, subject)],
        _ => Vec::new(),
    };
    ways.into_iter().flatten().collect()
}

/// The way for a name that stands for an aggregate of the SELECT list.
pub(crate) fn for_alias(reference: &Reference<'_>, item: usize, subject: &Subject<'_>) -> Option<Fix> {
    let place = subject.query.span(reference.place);
    match reference.clause {
        Clause::Where => {
            let expression = subject.facts.blocks[reference.block].items.get(item)?.expression?;
            // Where HAVING does not see the name either, what it stands for is repeated.
            let seen = subject.context.dialect.aliases.in_having;
            let written = (!seen).then(|| format!("({expression})"));
            to_having(place, written, reference.block, subject)
        }
        Clause::GroupBy => without_key(place, reference.block, subject),
        _ => None,
    }
}

pub(super) fn fix(mut edits: Vec<Edit>, why: impl Into<String>) -> Fix {
    edits.sort_by_key(|e| (e.span.start, e.span.end));
    Fix { edits, applicability: Applicability::Likely, why: why.into(), tied: false }
}

pub(super) fn insert(at: usize, text: String) -> Edit {
    Edit { span: Span::new(at, at), text }
}

pub(super) fn holds(outer: Span, inner: Span) -> bool {
    outer.start <= inner.start && inner.end <= outer.end
}

/// Where WHERE and, of a block that groups, GROUP BY (and, if wanted, HAVING) end.
pub(super) fn groups_end(block: BlockId, having_too: bool, subject: &Subject<'_>) -> Option<usize> {
    let inside = |k: Keyword| matches!(k, Keyword::WHERE | Keyword::GROUP) || (having_too && k == Keyword::HAVING);
    let stops: Vec<Keyword> = mend::AFTER_FROM.iter().copied().filter(|k| !inside(*k)).collect();
    mend::clause_end(subject, subject.facts.blocks[block].from, &stops)
}

/// Whether one of the keywords stands behind the FROM of a block.
pub(super) fn has(block: BlockId, words: &[Keyword], subject: &Subject<'_>) -> bool {
    mend::rest_of_query(subject, subject.facts.blocks[block].from)
        .iter()
        .any(|(depth, _, token)| *depth == 0 && mend::keyword(token).is_some_and(|k| words.contains(&k)))
}

pub(super) const SET_OPERATIONS: &[Keyword] = &[Keyword::UNION, Keyword::EXCEPT, Keyword::INTERSECT];

/// The items of the SELECT list that aggregate nothing, as they are written; `None` if one of them is no plain column.
fn plain_items(block: BlockId, subject: &Subject<'_>) -> Option<Vec<String>> {
    let items = &subject.facts.blocks[block].items;
    let mut out = Vec::new();
    for (i, item) in items.iter().enumerate() {
        match item.expression? {
            e @ (Expr::Identifier(_) | Expr::CompoundIdentifier(_)) => {
                out.push(subject.query.text(subject.query.span(e.span())).to_string())
            }
            _ if subject.item_aggregates(block, i) => {}
            _ => return None,
        }
    }
    (!out.is_empty()).then_some(out)
}

/// The condition moves to HAVING. A block that does not group yet is grouped by the plain columns that it gives, if the
/// aggregate is one that only groups have: a MIN, MAX or AVG may be that of the whole table.
fn to_having(place: Span, written: Option<String>, block: BlockId, subject: &Subject<'_>) -> Option<Fix> {
    let grouped = subject.facts.blocks[block].grouped;
    let (word, parts) = mend::conditions(subject, block)?;
    let at = parts.iter().position(|p| holds(*p, place))?;
    if has_loose_column(parts[at], block, subject) {
        return None;
    }
    let whole = |c: &&Call<'_>| c.aggregate && holds(parts[at], subject.query.span(c.place));
    let groups_only = subject.facts.calls.iter().filter(whole).all(|c| matches!(c.lower.as_str(), "count" | "sum"))
        && written.is_none();
    let keys = match grouped {
        true => None,
        false => Some(
            plain_items(block, subject)
                .filter(|items| groups_only && items.len() == subject.facts.blocks[block].items.len())?,
        ),
    };
    let mut condition = subject.query.text(parts[at]).to_string();
    if let Some(written) = written {
        condition.replace_range(place.start - parts[at].start..place.end - parts[at].start, &written);
    }
    // The condition goes with the AND before it, or the one behind it, or with WHERE itself.
    let gone = match (at, parts.get(at + 1)) {
        (0, None) => word.join(parts[0]),
        (0, Some(next)) => Span::new(parts[0].start, next.start),
        _ => Span::new(parts[at - 1].end, parts[at].end),
    };
    let end = groups_end(block, true, subject)?;
    let group_by = keys.map_or(String::new(), |keys| format!(" GROUP BY {}", keys.join(", ")));
    let having = if has(block, &[Keyword::HAVING], subject) { "AND" } else { "HAVING" };
    let edits = vec![Edit { span: gone, text: String::new() }, insert(end, format!("{group_by} {having} {condition}"))];
    Some(fix(edits, "aggregates are known only when rows are grouped, which HAVING waits for"))
}

/// Whether a condition compares a column with an aggregate of that very column, `salary > AVG(salary)`: it speaks of single rows, and
/// in a group there are many.
fn has_loose_column(part: Span, block: BlockId, subject: &Subject<'_>) -> bool {
    let facts = subject.facts;
    if !facts.blocks[block].grouped {
        return false;
    }
    let own = facts.calls.iter().filter(|c| c.aggregate && c.block == Some(block));
    let calls: Vec<Span> = own.filter_map(|c| mend::call(subject, subject.query.span(c.place)).map(|w| w.0)).collect();
    let inside = |r: &Reference<'_>| calls.iter().any(|c| holds(*c, subject.query.span(r.place)));
    let key = |r: &Reference<'_>| {
        facts.references.iter().any(|k| k.block == block && k.clause == Clause::GroupBy && k.meaning == r.meaning)
    };
    let here: Vec<&Reference<'_>> = facts
        .references
        .iter()
        .filter(|r| r.block == block && holds(part, subject.query.span(r.place)))
        .filter(|r| matches!(r.meaning, Meaning::Column(..)))
        .collect();
    here.iter().any(|r| !inside(r) && !key(r) && here.iter().any(|o| inside(o) && o.meaning == r.meaning))
}

/// `SELECT COUNT(user) … WHERE COUNT(badge) > 5` asks how many users have more than five: they are grouped, and the groups
/// that are left are counted.
fn counted_groups(place: Span, block: BlockId, subject: &Subject<'_>) -> Option<Fix> {
    let facts = subject.facts;
    let b = &facts.blocks[block];
    let ([item], false) = (b.items.as_slice(), b.grouped) else { return None };
    let alone = matches!(item.expression?, Expr::Function(_));
    let count = facts.calls.iter().find(|c| c.block == Some(block) && c.clause == Clause::Select && c.aggregate)?;
    let (whole, arguments) = mend::call(subject, subject.query.span(count.place))?;
    if !alone || count.lower != "count" || count.argument.column.is_none() || has(block, SET_OPERATIONS, subject) {
        return None;
    }
    let key = subject.query.text(*arguments.first()?).trim();
    let key = key.get(..9).filter(|w| w.eq_ignore_ascii_case("distinct ")).map_or(key, |_| key[9..].trim());
    let (word, parts) = mend::conditions(subject, block)?;
    let at = parts.iter().position(|p| holds(*p, place))?;
    let gone = match (at, parts.get(at + 1)) {
        (0, None) => word.join(parts[0]),
        (0, Some(next)) => Span::new(parts[0].start, next.start),
        _ => Span::new(parts[at - 1].end, parts[at].end),
    };
    let from = mend::from_word(subject, block)?;
    let end = groups_end(block, true, subject)?;
    let edits = vec![
        Edit { span: whole, text: "COUNT(*)".into() },
        insert(from.start, format!("FROM (SELECT {key} ")),
        Edit { span: gone, text: String::new() },
        insert(end, format!(" GROUP BY {key} HAVING {}) AS each_group", subject.query.text(parts[at]))),
    ];
    Some(fix(edits, format!("each `{key}` is counted once, if its group is as the condition says")))
}

/// `x = MAX(x)` compares with the maximum of the whole table.
fn to_subquery(call: &Call<'_>, subject: &Subject<'_>) -> Option<Fix> {
    let (source, _) = call.argument.column.filter(|_| matches!(call.lower.as_str(), "min" | "max" | "avg"))?;
    let table = subject.facts.sources[source].table()?;
    let (whole, arguments) = mend::call(subject, subject.query.span(call.place))?;
    let argument = subject.query.text(*arguments.first()?).rsplit('.').next()?.trim().to_string();
    let text = format!(
        "(SELECT {}({argument}) FROM {})",
        call.lower.to_uppercase(),
        subject.context.dialect.quoted(&table.name)
    );
    let why = format!("a row is compared with the {} of all of `{}`", call.lower, table.name);
    // Where rows are grouped, the extreme of each group may be meant.
    let grouped = call.block.is_some_and(|b| subject.facts.blocks[b].grouped);
    let sure = if grouped { Applicability::Suggested } else { Applicability::Likely };
    let alone = call.block.and_then(|b| mend::conditions(subject, b)).is_some_and(|(_, parts)| parts.contains(&whole));
    if alone && call.clause == Clause::Where {
        // `WHERE MAX(salary)` does not say what is compared with it.
        let text = format!("{} = {text}", subject.query.text(*arguments.first()?).trim());
        return Some(mend::replace(whole, text, Applicability::Suggested, why));
    }
    Some(mend::replace(whole, text, sure, why))
}

/// The aggregates that stand right inside another one, with their whole extent.
pub(super) fn inner_calls(block: BlockId, subject: &Subject<'_>) -> Vec<Span> {
    let calls = subject
        .facts
        .calls
        .iter()
        .filter(|c| c.aggregate && c.nested && c.block == Some(block) && c.clause == Clause::Select);
    let mut spans: Vec<Span> =
        calls.filter_map(|c| mend::call(subject, subject.query.span(c.place)).map(|(whole, _)| whole)).collect();
    spans.sort();
    let all = spans.clone();
    spans.retain(|s| !all.iter().any(|o| o != s && holds(*o, *s)));
    spans
}

/// `SELECT MAX(COUNT(*)) FROM … GROUP BY …`: the inner aggregate is computed for each group in a subquery, the outer one over
/// its rows. Only where the SELECT list asks for nothing else.
fn in_groups(block: BlockId, subject: &Subject<'_>) -> Option<Fix> {
    let facts = subject.facts;
    let inner = inner_calls(block, subject);
    let free = facts.references.iter().any(|r| {
        r.block == block && r.clause == Clause::Select && !inner.iter().any(|i| holds(*i, subject.query.span(r.place)))
    });
    let flat = facts.calls.iter().any(|c| {
        let whole = mend::call(subject, subject.query.span(c.place)).map(|(whole, _)| whole);
        c.aggregate
            && !c.nested
            && c.block == Some(block)
            && c.clause == Clause::Select
            && !whole.is_some_and(|w| inner.iter().any(|i| holds(w, *i)))
    });
    let b = &facts.blocks[block];
    if !b.grouped || free || flat || b.items.iter().any(|i| i.expression.is_none()) {
        return None;
    }
    let from = mend::from_word(subject, block)?;
    let end = groups_end(block, true, subject)?;
    let names: Vec<String> =
        (1..=inner.len()).map(|n| if n == 1 { "amount".into() } else { format!("amount_{n}") }).collect();
    let columns: Vec<String> =
        inner.iter().zip(&names).map(|(i, n)| format!("{} AS {n}", subject.query.text(*i))).collect();
    let mut edits: Vec<Edit> = inner.iter().zip(&names).map(|(i, n)| Edit { span: *i, text: n.clone() }).collect();
    edits.push(insert(from.start, format!("FROM (SELECT {} ", columns.join(", "))));
    edits.push(insert(end, ") AS each_group".into()));
    Some(fix(edits, "the inner aggregate is computed for each group, and the outer one over the groups"))
}

/// `SELECT name, MAX(COUNT(*)) FROM … GROUP BY name`: the group with the most is the first when groups are sorted by it.
fn best_group(call: &Call<'_>, block: BlockId, subject: &Subject<'_>) -> Option<Fix> {
    let inner = inner_calls(block, subject).into_iter().find(|i| i.start == subject.query.span(call.place).start)?;
    let calls = subject.facts.calls.iter().filter(|c| c.aggregate && !c.nested && c.block == Some(block));
    let (outer, whole) = calls.into_iter().find_map(|c| {
        let (whole, arguments) = mend::call(subject, subject.query.span(c.place))?;
        let alone = arguments.len() == 1 && holds(arguments[0], inner);
        let same = alone && subject.query.text(arguments[0]).trim() == subject.query.text(inner);
        same.then_some((c, whole))
    })?;
    let direction = match outer.lower.as_str() {
        "max" => " DESC",
        "min" => "",
        _ => return None,
    };
    let keys = plain_items(block, subject)?;
    if has(block, SET_OPERATIONS, subject) {
        return None;
    }
    let text = subject.query.text(inner).to_string();
    let mut edits = vec![Edit { span: whole, text: text.clone() }];
    let end = groups_end(block, true, subject)?;
    let mut behind = String::new();
    if !subject.facts.blocks[block].grouped {
        behind = format!(" GROUP BY {}", keys.join(", "));
    }
    if !has(block, &[Keyword::ORDER, Keyword::LIMIT, Keyword::FETCH], subject) {
        behind.push_str(&format!(" ORDER BY {text}{direction} LIMIT 1"));
    }
    if !behind.is_empty() {
        edits.push(insert(end, behind));
    }
    Some(fix(edits, format!("the group with the {} is the first one when groups are sorted by it", outer.lower)))
}

/// Rows that are not grouped are sorted by the column itself if the extreme comes first; for a count or a sum they are grouped
/// by the columns that the block gives.
fn sorted(call: &Call<'_>, block: BlockId, subject: &Subject<'_>) -> Option<Fix> {
    let (whole, arguments) = mend::call(subject, subject.query.span(call.place))?;
    match call.lower.as_str() {
        "min" | "max" => {
            let [argument] = arguments.as_slice() else { return None };
            let behind = mend::rest_of_query(subject, subject.facts.blocks[block].from)
                .into_iter()
                .find(|(_, span, _)| span.start >= whole.end);
            let said = behind.and_then(|(_, _, token)| mend::keyword(&token));
            let direction = match (call.lower.as_str(), said) {
                ("max", Some(Keyword::DESC)) | ("min", Some(Keyword::ASC)) => "",
                ("max", Some(Keyword::ASC)) | ("min", Some(Keyword::DESC)) => return None,
                ("max", _) => " DESC",
                _ => "",
            };
            let text = format!("{}{direction}", subject.query.text(*argument).trim());
            let why = format!("the row with the {} is the first one when rows are sorted by the column", call.lower);
            Some(mend::replace(whole, text, Applicability::Likely, why))
        }
        _ => {
            let keys = plain_items(block, subject)?;
            let end = groups_end(block, true, subject)?;
            let text = format!(" GROUP BY {}", keys.join(", "));
            Some(fix(
                vec![insert(end, text)],
                "rows are counted in groups, here those of the columns that are asked for",
            ))
        }
    }
}

/// An aggregate is no key: it goes, and if it is the only one, the plain columns of the SELECT list take its place.
fn without_key(place: Span, block: BlockId, subject: &Subject<'_>) -> Option<Fix> {
    let mut keys: Vec<Span> = Vec::new();
    let (mut open, mut inside) = (None::<Span>, false);
    for (depth, span, token) in mend::rest_of_query(subject, subject.facts.blocks[block].from) {
        let word = mend::keyword(&token).filter(|_| depth == 0);
        match word {
            Some(Keyword::GROUP) => {
                inside = true;
                continue;
            }
            Some(Keyword::BY) if inside && open.is_none() => continue,
            Some(k) if inside && mend::AFTER_FROM.contains(&k) => break,
            _ => {}
        }
        if inside && depth == 0 && token == sqlparser::tokenizer::Token::Comma {
            keys.extend(open.take());
        } else if inside {
            open = Some(open.map_or(span, |o| o.join(span)));
        }
    }
    keys.extend(open);
    let at = keys.iter().position(|k| holds(*k, place))?;
    let why = "groups are made of plain columns; an aggregate is what comes of them";
    if keys.len() == 1 {
        let items = plain_items(block, subject)?;
        return Some(fix(vec![Edit { span: keys[0], text: items.join(", ") }], why));
    }
    let gone =
        if at == 0 { Span::new(keys[0].start, keys[1].start) } else { Span::new(keys[at - 1].end, keys[at].end) };
    Some(fix(vec![Edit { span: gone, text: String::new() }], why))
}

/// An aggregate in a subquery whose column only the query around it has: a column of nearly that name is the subquery's own.
pub(super) fn of_own_table(call: &Call<'_>, subject: &Subject<'_>) -> Option<Fix> {
    let facts = subject.facts;
    let (whole, _) = mend::call(subject, subject.query.span(call.place))?;
    let reference = facts.references.iter().find(|r| {
        let captured = matches!(r.meaning, Meaning::Column(s, _) if Some(facts.sources[s].block) != call.block);
        Some(r.block) == call.block && r.qualifier.is_none() && captured && holds(whole, subject.query.span(r.place))
    })?;
    let own = facts.blocks[reference.block].sources.iter().flat_map(|&s| facts.sources[s].column_names());
    let near = nearest(&reference.name.value, own)?;
    let alike = |r: &&Reference<'_>| {
        r.block == reference.block && r.qualifier.is_none() && r.name.value == reference.name.value && !r.wildcard
    };
    let text = subject.context.dialect.quoted(near);
    let places = facts.references.iter().filter(alike).map(|r| subject.query.span(r.place));
    let edits: Vec<Edit> = places.map(|span| Edit { span, text: text.clone() }).collect();
    let why = format!("`{near}` is the column of the subquery's own tables nearest to `{}`", reference.name.value);
    Some(fix(edits, why))
}
