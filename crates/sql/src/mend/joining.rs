//! Tables that are joined: over which keys, under which name, and what else has to change for it.

use sqlparser::ast::{BinaryOperator, Expr, Spanned};

use super::places::from_end;
use crate::finding::{Edit, Span};
use crate::joins::{self, Link};
use crate::rules::Subject;
use crate::schema::Table;
use crate::scope::{BlockId, Clause, Meaning, Reference, SourceId};

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
/// that is as good as the best. What is asked of it, `named`, may tell one key from another.
pub(crate) fn joins(
    subject: &Subject<'_>,
    block: BlockId,
    table: &Table,
    wanted: Option<&str>,
    named: &str,
) -> Vec<Joined> {
    let facts = subject.facts;
    let Some(schema) = subject.context.schema else { return Vec::new() };
    let here: Vec<(SourceId, &Table)> =
        facts.blocks[block].sources.iter().filter_map(|&s| facts.sources[s].table().map(|t| (s, t))).collect();
    let tables: Vec<&Table> = here.iter().map(|(_, t)| *t).collect();
    let said = format!("{} {named}", wanted.unwrap_or_default());
    let favoured = |link: &Link<'_>| favour(subject, link, &said);
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

/// What speaks for a link: the question, or what the query says of it, has words of its column that no other link has; or the
/// query groups by it.
pub(crate) fn favour(subject: &Subject<'_>, link: &Link<'_>, said: &str) -> usize {
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
        let asked = subject.context.question.unwrap_or("").to_lowercase();
        let said = said.to_lowercase();
        let words = |text: &str| -> Vec<String> {
            text.split(|c: char| !c.is_alphanumeric()).filter(|w| !w.is_empty()).map(str::to_string).collect()
        };
        // Names are cut short, words of a question are not.
        let heard = |w: &String| {
            words(&asked).iter().any(|s| crate::near::is_nearly(s, w, 0.95))
                || words(&said).iter().any(|s| crate::near::is_nearly(s, w, 0.95) || s.len() > 2 && w.starts_with(s))
        };
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
