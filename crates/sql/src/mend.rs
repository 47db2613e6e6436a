//! What rules write fixes with: names that are qualified, tables that are joined, clauses that are found.

use sqlparser::ast::{BinaryOperator, Expr, Spanned};
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Location, Token, TokenWithSpan, Tokenizer};

use crate::finding::{Applicability, Edit, Finding, Fix, Span};
use crate::joins::{self, Link};
use crate::rules::Subject;
use crate::schema::Table;
use crate::scope::{BlockId, Clause, Meaning, Reference, SourceId};

/// Whether a rule may still look for fixes. They read the text again and again, and a text that is this long, or has this many
/// faults, is mended by nobody: hostile input must not cost more than its review.
pub(crate) fn worth_mending(subject: &Subject<'_>, found: &[Finding]) -> bool {
    let facts = subject.facts;
    subject.query.sql.len() <= 20_000
        && facts.calls.len() <= 100
        && facts.references.len() <= 400
        && facts.operations.len() <= 400
        && found.iter().filter(|f| !f.fixes.is_empty()).count() < 20
}

/// A fix of one replacement.
pub(crate) fn replace(
    span: Span,
    text: impl Into<String>,
    applicability: Applicability,
    why: impl Into<String>,
) -> Fix {
    Fix { edits: vec![Edit { span, text: text.into() }], applicability, why: why.into(), tied: false }
}

/// `alias.column` as it must be written.
pub(crate) fn qualified(subject: &Subject<'_>, source: SourceId, column: &str) -> Option<String> {
    let dialect = subject.context.dialect;
    let source = &subject.facts.sources[source];
    let name = source.name?;
    let qualifier = if name.quote_style.is_some() { name.to_string() } else { dialect.quoted(&name.value) };
    Some(format!("{qualifier}.{}", dialect.quoted(column)))
}

/// Whether the words of the question name a table or column.
pub(crate) fn asked_for(subject: &Subject<'_>, name: &str) -> bool {
    let Some(question) = subject.context.question else { return false };
    let question = question.to_lowercase();
    let words: Vec<&str> = question.split(|c: char| !c.is_alphanumeric()).filter(|w| !w.is_empty()).collect();
    let name = name.to_lowercase();
    let mut parts = name.split(|c: char| !c.is_alphanumeric()).filter(|p| p.len() > 2).peekable();
    parts.peek().is_some() && parts.all(|p| words.iter().any(|w| crate::near::is_nearly(w, p, 0.95)))
}

/// A table that is brought into a block, and the edits that do it.
pub(crate) struct Joined {
    pub edits: Vec<Edit>,
    /// What the new table is called.
    pub called: String,
    pub doubt: usize,
    /// Another path was as good.
    pub rivals: bool,
    pub inferred: bool,
    pub multiplies: bool,
    /// A name that stands alone could be one of the new table's, too.
    pub clashes: bool,
    /// The new table's columns that it is joined by.
    pub by: Vec<String>,
    /// The path in words: `orders.customer_id = customers.customer_id`.
    pub path: String,
    /// The same as a condition, up to where the other condition goes: `customers.id IN (SELECT orders.customer_id FROM orders WHERE `.
    pub among: Option<String>,
}

/// Joins a table to a block over the shortest path of keys, under its own name, or the one that is wanted; once for each path
/// that is as good as the best.
pub(crate) fn joins(subject: &Subject<'_>, block: BlockId, table: &Table, wanted: Option<&str>) -> Vec<Joined> {
    let facts = subject.facts;
    let Some(schema) = subject.context.schema else { return Vec::new() };
    let here: Vec<(SourceId, &Table)> =
        facts.blocks[block].sources.iter().filter_map(|&s| facts.sources[s].table().map(|t| (s, t))).collect();
    let tables: Vec<&Table> = here.iter().map(|(_, t)| *t).collect();
    let favoured = |link: &Link<'_>| favour(subject, link, wanted);
    let paths = joins::paths(schema, &tables, table, &favoured);
    let rivals = paths.len() > 1;
    paths.iter().filter_map(|p| over(p, &here, rivals, &favoured, subject, block, wanted)).collect()
}

/// Joins the tables of a path to a block.
fn over(
    path: &[Link<'_>],
    here: &[(SourceId, &Table)],
    rivals: bool,
    favoured: &dyn Fn(&Link<'_>) -> usize,
    subject: &Subject<'_>,
    block: BlockId,
    wanted: Option<&str>,
) -> Option<Joined> {
    let facts = subject.facts;
    let dialect = subject.context.dialect;
    let end = from_end(subject, block)?;
    let mut taken: Vec<String> =
        facts.visible(block).iter().map(|&s| facts.sources[s].called().to_lowercase()).collect();
    let mut text = String::new();
    let mut among: Option<String> = None;
    let mut words = Vec::new();
    let start = path.first().and_then(|l| here.iter().find(|(_, t)| std::ptr::eq(*t, l.from)))?.0;
    let mut left = facts.sources[start]
        .name
        .map(|n| if n.quote_style.is_some() { n.to_string() } else { dialect.quoted(&n.value) })?;
    for (i, link) in path.iter().enumerate() {
        let last = i + 1 == path.len();
        let name = match wanted.filter(|_| last) {
            Some(wanted) => wanted.to_string(),
            None => fresh(&link.to.name, &taken),
        };
        taken.push(name.to_lowercase());
        let table_name = dialect.quoted(&link.to.name);
        let name = dialect.quoted(&name);
        let alias = if name == table_name { String::new() } else { format!(" AS {name}") };
        let mut conditions: Vec<String> = link
            .columns
            .iter()
            .map(|(a, b)| format!("{left}.{} = {name}.{}", dialect.quoted(a), dialect.quoted(b)))
            .collect();
        match (link.columns.as_slice(), &mut among) {
            ([(a, b)], None) if i == 0 => {
                let (a, b) = (dialect.quoted(a), dialect.quoted(b));
                among = Some(format!("{left}.{a} IN (SELECT {name}.{b} FROM {table_name}{alias}"));
            }
            (_, Some(text)) => text.push_str(&format!(" JOIN {table_name}{alias} ON {}", conditions.join(" AND "))),
            // A key of several columns cannot stand in front of IN everywhere.
            (_, None) => {}
        }
        conditions.extend(other_ties(subject, block, here, link, &name));
        text.push_str(&format!(" JOIN {table_name}{alias} ON {}", conditions.join(" AND ")));
        words.push(describe(link));
        left = name;
    }
    let mut edits = vec![Edit { span: Span::new(end, end), text }];
    edits.extend(keep_apart(subject, block, path, &left));
    let clashes = edits.len() > 1;
    edits.sort_by_key(|e| (e.span.start, e.span.end));
    Some(Joined {
        edits,
        called: left,
        doubt: (2 * joins::doubt(path)).saturating_sub(path.iter().map(favoured).sum()),
        rivals,
        inferred: path.iter().any(|l| l.inferred),
        multiplies: path.iter().any(|l| l.multiplies),
        clashes,
        by: path.last().map_or_else(Vec::new, |l| l.columns.iter().map(|(_, there)| there.to_string()).collect()),
        path: words.join(", "),
        among: among.map(|text| format!("{text} WHERE ")),
    })
}

/// What speaks for a link: the question, or the alias that is wanted, has words of its column that no other link has; or the
/// query groups by it.
fn favour(subject: &Subject<'_>, link: &Link<'_>, wanted: Option<&str>) -> usize {
    let facts = subject.facts;
    let mut points = 0;
    for (here, there) in &link.columns {
        let telling = |name: &str| {
            let lower = name.to_lowercase();
            let own: Vec<String> = [&link.from.name, &link.to.name].iter().map(|t| t.to_lowercase()).collect();
            let words = lower
                .split(|c: char| !c.is_alphanumeric())
                .filter(|w| w.len() > 2 && !own.iter().any(|o| o.contains(w)));
            words.map(str::to_string).collect::<Vec<_>>()
        };
        let spoken = format!("{} {}", subject.context.question.unwrap_or(""), wanted.unwrap_or("")).to_lowercase();
        let heard =
            |w: &String| spoken.split(|c: char| !c.is_alphanumeric()).any(|s| crate::near::is_nearly(s, w, 0.95));
        points += 3 * usize::from(telling(here).iter().chain(&telling(there)).any(heard));
        let grouped =
            facts.references.iter().any(|r| r.clause == Clause::GroupBy && r.name.value.eq_ignore_ascii_case(here));
        points += usize::from(grouped);
    }
    points
}

/// Keys that tie the new table to other tables of the block, where only one key does; one that was inferred does for a table that
/// nothing else ties to where the path begins.
fn other_ties(
    subject: &Subject<'_>,
    block: BlockId,
    here: &[(SourceId, &Table)],
    link: &Link<'_>,
    name: &str,
) -> Vec<String> {
    let Some(schema) = subject.context.schema else { return Vec::new() };
    let others: Vec<&Table> = here.iter().map(|(_, t)| *t).filter(|t| !std::ptr::eq(*t, link.from)).collect();
    let ties = joins::between(schema, link.to, &others);
    let dialect = subject.context.dialect;
    let groups = tied(subject, block);
    let group = |source: SourceId| groups.iter().position(|group| group.contains(&source));
    let start = here.iter().find(|(_, t)| std::ptr::eq(*t, link.from)).and_then(|(source, _)| group(*source));
    let mut out = Vec::new();
    for tie in &ties {
        let alone = ties.iter().filter(|t| std::ptr::eq(t.to, tie.to)).count() == 1;
        let mut owners = here.iter().filter(|(_, t)| std::ptr::eq(*t, tie.to));
        let (Some((source, _)), None) = (owners.next(), owners.next()) else { continue };
        let needed = start.is_some() && group(*source) != start;
        let proved = !tie.inferred && !tie.multiplies;
        let Some(owner) = subject.facts.sources[*source].name.filter(|_| alone && (proved || needed)) else {
            continue;
        };
        out.extend(tie.columns.iter().map(|(a, b)| {
            format!("{name}.{} = {}.{}", dialect.quoted(a), dialect.quoted(&owner.value), dialect.quoted(b))
        }));
    }
    out
}

/// The sources of a block in groups that equal columns tie together.
fn tied(subject: &Subject<'_>, block: BlockId) -> Vec<Vec<SourceId>> {
    let facts = subject.facts;
    let mut groups: Vec<Vec<SourceId>> = facts.blocks[block].sources.iter().map(|&s| vec![s]).collect();
    if !facts.blocks[block].merged.is_empty() {
        return vec![facts.blocks[block].sources.clone()];
    }
    for o in facts.operations.iter().filter(|o| *o.operator == BinaryOperator::Eq && o.required) {
        let (Some((a, _)), Some((b, _))) = (o.left.column, o.right.column) else { continue };
        let find = |groups: &[Vec<SourceId>], s| groups.iter().position(|group| group.contains(&s));
        if let (Some(a), Some(b)) = (find(&groups, a), find(&groups, b))
            && a != b
        {
            let moved = groups.remove(a.max(b));
            groups[a.min(b)].extend(moved);
        }
    }
    groups
}

/// How many groups of tables would hang loose if a table were joined to a block: none where the block is whole.
pub(crate) fn loose(subject: &Subject<'_>, block: BlockId, table: &Table) -> usize {
    let Some(schema) = subject.context.schema else { return 0 };
    let groups = tied(subject, block);
    if groups.len() < 2 {
        return 0;
    }
    let reaches = |source: &SourceId| {
        let there = subject.facts.sources[*source].table();
        there.is_some_and(|t| !joins::between(schema, table, &[t]).is_empty())
    };
    groups.iter().filter(|group| !group.iter().any(reaches)).count()
}

/// How many tables of the block a table has keys with.
pub(crate) fn ties(subject: &Subject<'_>, block: BlockId, table: &Table) -> usize {
    let Some(schema) = subject.context.schema else { return 0 };
    let facts = subject.facts;
    let here: Vec<&Table> = facts.blocks[block].sources.iter().filter_map(|&s| facts.sources[s].table()).collect();
    here.iter().filter(|t| !joins::between(schema, table, &[t]).is_empty()).count()
}

/// The column on the other side of a comparison with a reference.
pub(crate) fn partner(subject: &Subject<'_>, reference: &Reference<'_>) -> Option<(SourceId, usize)> {
    subject.facts.operations.iter().filter(|o| *o.operator == BinaryOperator::Eq && !o.is_in).find_map(|o| {
        let stands = |node: &Expr| node.span() == reference.place;
        match (stands(o.left_node), stands(o.right_node)) {
            (true, false) => o.right.column,
            (false, true) => o.left.column,
            _ => None,
        }
    })
}

/// How a column fits the one it is compared with: a key ties them (0), nothing is known (4), or they are of the same table (12).
pub(crate) fn misfit(
    subject: &Subject<'_>,
    partner: Option<(SourceId, usize)>,
    source: SourceId,
    column: &str,
) -> usize {
    let facts = subject.facts;
    let Some((other, index)) = partner else { return 4 };
    if other == source {
        return 12;
    }
    let (Some(a), Some(b), Some(schema)) =
        (facts.sources[source].table(), facts.sources[other].table(), subject.context.schema)
    else {
        return 4;
    };
    let there = b.columns.get(index).map_or("", |c| c.name.as_str());
    let tied = joins::between(schema, a, &[b])
        .iter()
        .any(|l| l.columns.iter().any(|(x, y)| x.eq_ignore_ascii_case(column) && y.eq_ignore_ascii_case(there)));
    if tied { 0 } else { 4 }
}

fn describe(link: &Link<'_>) -> String {
    let (a, b) = link.columns.first().copied().unwrap_or(("", ""));
    format!("{}.{a} = {}.{b}", link.from.name, link.to.name)
}

/// A name that nothing is called yet.
pub(crate) fn fresh(name: &str, taken: &[String]) -> String {
    if !taken.contains(&name.to_lowercase()) {
        return name.to_string();
    }
    (2..).map(|n| format!("{name}_{n}")).find(|n| !taken.contains(&n.to_lowercase())).unwrap_or_default()
}

/// Names without a qualifier that the new tables would make ambiguous are given theirs.
fn keep_apart(subject: &Subject<'_>, block: BlockId, path: &[Link<'_>], new: &str) -> Vec<Edit> {
    let facts = subject.facts;
    let mut edits = Vec::new();
    for r in facts.references.iter().filter(|r| r.qualifier.is_none() && !r.wildcard) {
        let Meaning::Column(source, _) = r.meaning else { continue };
        let clash = path.iter().any(|l| l.to.column(&r.name.value).is_some());
        if facts.sources[source].block == block
            && clash
            && let Some(name) = facts.sources[source].name
        {
            let span = subject.query.span(r.place);
            let dialect = subject.context.dialect;
            // What is compared with itself was meant to be the new table's.
            let itself = dialect.on_sees_all_tables
                && partner(subject, r).is_some_and(|p| r.meaning == Meaning::Column(p.0, p.1));
            let has_it = path.last().is_some_and(|l| l.to.column(&r.name.value).is_some());
            let owner = if itself && has_it { new.to_string() } else { dialect.quoted(&name.value) };
            edits.push(Edit { span: Span::new(span.start, span.start), text: format!("{owner}.") });
        }
    }
    edits
}

/// The whole of a call whose name stands there, and its arguments, told apart by the commas between them.
pub(crate) fn call(subject: &Subject<'_>, name: Span) -> Option<(Span, Vec<Span>)> {
    let spans = tokens(subject).into_iter().filter(|t| !matches!(t.token, Token::Whitespace(_)));
    let mut behind = spans.map(|t| (subject.query.span(t.span), t.token)).skip_while(|(span, _)| span.start < name.end);
    let (open, _) = behind.next().filter(|(_, t)| *t == Token::LParen)?;
    let mut depth = 0usize;
    let mut from = open.end;
    let mut arguments = Vec::new();
    for (span, token) in behind {
        match token {
            Token::LParen => depth += 1,
            Token::RParen if depth == 0 => {
                if !subject.query.text(Span::new(from, span.start)).trim().is_empty() {
                    arguments.push(Span::new(from, span.start));
                }
                return Some((Span::new(name.start, span.end), arguments));
            }
            Token::RParen => depth -= 1,
            Token::Comma if depth == 0 => {
                arguments.push(Span::new(from, span.start));
                from = span.end;
            }
            _ => {}
        }
    }
    None
}

/// The conditions of a block's WHERE that AND joins at its top, and where the word WHERE stands. `None` if OR does.
pub(crate) fn conditions(subject: &Subject<'_>, block: BlockId) -> Option<(Span, Vec<Span>)> {
    let mut word: Option<Span> = None;
    let mut parts: Vec<Span> = Vec::new();
    let (mut open, mut between) = (None::<Span>, false);
    for (depth, span, token) in rest_of_query(subject, subject.facts.blocks[block].from) {
        match keyword(&token).filter(|_| depth == 0) {
            Some(Keyword::WHERE) => {
                word = Some(span);
                continue;
            }
            Some(k) if word.is_some() && AFTER_FROM.contains(&k) => break,
            Some(Keyword::OR) if word.is_some() => return None,
            Some(Keyword::BETWEEN) => between = true,
            Some(Keyword::AND) if between => between = false,
            Some(Keyword::AND) if word.is_some() => {
                parts.extend(open.take());
                continue;
            }
            _ => {}
        }
        if word.is_some() {
            open = Some(open.map_or(span, |o| o.join(span)));
        }
    }
    parts.extend(open);
    Some((word?, parts))
}

/// The tokens of the SQL that are not white space, with their places in the given text.
pub(crate) fn words(subject: &Subject<'_>) -> Vec<(Span, Token)> {
    let all = tokens(subject).into_iter().filter(|t| !matches!(t.token, Token::Whitespace(_)));
    all.map(|t| (subject.query.span(t.span), t.token)).collect()
}

/// The tokens of the SQL with their places in it.
pub(crate) fn tokens(subject: &Subject<'_>) -> Vec<TokenWithSpan> {
    Tokenizer::new(subject.context.dialect.grammar, &subject.query.sql).tokenize_with_location().unwrap_or_default()
}

pub(crate) const AFTER_FROM: &[Keyword] = &[
    Keyword::WHERE,
    Keyword::GROUP,
    Keyword::HAVING,
    Keyword::ORDER,
    Keyword::LIMIT,
    Keyword::OFFSET,
    Keyword::FETCH,
    Keyword::UNION,
    Keyword::EXCEPT,
    Keyword::INTERSECT,
    Keyword::WINDOW,
    Keyword::QUALIFY,
];

/// The word FROM of a block.
pub(crate) fn from_word(subject: &Subject<'_>, block: BlockId) -> Option<Span> {
    let start = subject.facts.blocks[block].from;
    let before = tokens(subject)
        .into_iter()
        .filter(|t| !matches!(t.token, Token::Whitespace(_)))
        .take_while(|t| (t.span.start.line, t.span.start.column) < (start.line, start.column))
        .last()?;
    (keyword(&before.token) == Some(Keyword::FROM)).then(|| subject.query.span(before.span))
}

/// Where the FROM clause of a block ends, in the given text.
pub(crate) fn from_end(subject: &Subject<'_>, block: BlockId) -> Option<usize> {
    clause_end(subject, subject.facts.blocks[block].from, AFTER_FROM)
}

/// The end of the clause that holds a place: before one of the keywords, the parenthesis that closes the query, or the end.
pub(crate) fn clause_end(subject: &Subject<'_>, start: Location, stops: &[Keyword]) -> Option<usize> {
    if start.line == 0 {
        return None;
    }
    let stop = |depth: usize, token: &Token| depth == 0 && keyword(token).is_some_and(|k| stops.contains(&k));
    let rest = rest_of_query(subject, start).into_iter();
    rest.take_while(|(depth, _, token)| !stop(*depth, token)).last().map(|(_, span, _)| span.end)
}

/// Where the text before the JOIN of a source ends: before JOIN and the words that go with it.
pub(crate) fn before_join(subject: &Subject<'_>, source: Location) -> Option<usize> {
    const WORDS: &[Keyword] = &[
        Keyword::JOIN,
        Keyword::INNER,
        Keyword::LEFT,
        Keyword::RIGHT,
        Keyword::FULL,
        Keyword::OUTER,
        Keyword::CROSS,
        Keyword::NATURAL,
    ];
    let ahead = |t: &TokenWithSpan| (t.span.start.line, t.span.start.column) < (source.line, source.column);
    let mut back: Vec<TokenWithSpan> =
        tokens(subject).into_iter().take_while(ahead).filter(|t| !matches!(t.token, Token::Whitespace(_))).collect();
    let before = back.len();
    while back.last().and_then(|t| keyword(&t.token)).is_some_and(|k| WORDS.contains(&k)) {
        back.pop();
    }
    // A comma joins without a word, and has no condition of its own.
    if back.len() == before { None } else { back.last().map(|t| subject.query.span(t.span).end) }
}

/// The tokens of a query from a place on, with how deep each stands, up to the parenthesis, semicolon or end that closes it.
pub(crate) fn rest_of_query(subject: &Subject<'_>, start: Location) -> Vec<(usize, Span, Token)> {
    let mut depth = 0;
    let mut out = Vec::new();
    let behind = |t: &TokenWithSpan| (t.span.start.line, t.span.start.column) >= (start.line, start.column);
    for token in tokens(subject).into_iter().filter(behind) {
        let span = subject.query.span(token.span);
        match token.token {
            Token::Whitespace(_) => continue,
            Token::SemiColon | Token::EOF => break,
            Token::RParen if depth == 0 => break,
            Token::RParen => depth -= 1,
            _ => {}
        }
        let opens = token.token == Token::LParen;
        out.push((depth, span, token.token));
        depth += usize::from(opens);
    }
    out
}

/// The keyword that a token is, if it is one and not a name in quotes.
pub(crate) fn keyword(token: &Token) -> Option<Keyword> {
    match token {
        Token::Word(word) if word.quote_style.is_none() => Some(word.keyword),
        _ => None,
    }
}
