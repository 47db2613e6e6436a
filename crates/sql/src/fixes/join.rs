//! Joins of additional tables along foreign keys, with their aliases and follow-up edits.

use sqlparser::ast::{BinaryOperator, Expr, Spanned};

use super::clause_spans::from_clause_end;
use super::score::WEIGHTS;
use crate::finding::{Edit, Span};
use crate::resolve::{BlockId, Clause, ColumnBinding, ColumnReference, SourceId};
use crate::rule::RuleContext;
use crate::schema::join_graph::ForeignKeyEdge;
use crate::schema::{Schema, Table, join_graph};
use crate::text::similarity::is_similar;

/// Table to be joined to a block, with the edits that join it.
pub(crate) struct JoinInsertion {
    pub edits: Vec<Edit>,
    /// Alias of the new table, quoted if necessary.
    pub alias: String,
    pub path_cost: usize,
    /// `true` if another join path is equally good.
    pub is_ambiguous: bool,
    pub is_inferred: bool,
    pub fans_out: bool,
    /// `true` if an unqualified name could also refer to a column of the new table.
    pub has_name_collision: bool,
    /// Columns of the new table that it is joined on.
    pub key_columns: Vec<String>,
    /// Readable join path: `orders.customer_id = customers.customer_id`.
    pub path: String,
    /// Start of an equivalent semi-join, up to its filter.
    ///
    /// An example is `customers.id IN (SELECT orders.customer_id FROM orders WHERE `.
    pub semi_join: Option<String>,
}

/// Joins a table to a block along the shortest foreign key path, once per equally good path.
///
/// The alias is `wanted`, or else the name of the table. `named`, the missing column, may
/// distinguish two foreign keys.
pub(crate) fn join_candidates(
    ctx: &RuleContext<'_>,
    block: BlockId,
    table: &Table,
    wanted: Option<&str>,
    named: &str,
) -> Vec<JoinInsertion> {
    let resolution = ctx.resolution;
    let Some(schema) = ctx.context.schema else { return Vec::new() };
    let here: Vec<(SourceId, &Table)> = resolution.blocks[block]
        .sources
        .iter()
        .filter_map(|&s| resolution.sources[s].table().map(|t| (s, t)))
        .collect();
    let tables: Vec<&Table> = here.iter().map(|(_, t)| *t).collect();
    let context_words = format!("{} {named}", wanted.unwrap_or_default());
    let edge_bonus = |edge: &ForeignKeyEdge<'_>| edge_affinity(ctx, edge, &context_words);
    let paths = cheapest_paths(schema, &tables, table, &edge_bonus);
    let rivals = paths.len() > 1;
    paths.iter().filter_map(|p| build_join(p, &here, rivals, &edge_bonus, ctx, block, wanted)).collect()
}

/// Returns the shortest foreign key paths between tables, of these the cheapest.
///
/// `edge_bonus` is subtracted from the cost of a path for preferred foreign keys.
pub(crate) fn cheapest_paths<'a>(
    schema: &'a Schema,
    from: &[&'a Table],
    to: &'a Table,
    edge_bonus: &dyn Fn(&ForeignKeyEdge<'_>) -> usize,
) -> Vec<Vec<ForeignKeyEdge<'a>>> {
    join_graph::shortest_paths(schema, from, to, &|path| {
        (WEIGHTS.path_base + path_penalty(path)).saturating_sub(path.iter().map(edge_bonus).sum())
    })
}

/// Returns the penalty of a join path; inferred keys and joins that multiply rows increase it.
fn path_penalty(path: &[ForeignKeyEdge<'_>]) -> usize {
    let penalty = |edge: &ForeignKeyEdge<'_>| {
        WEIGHTS.path_join
            + WEIGHTS.path_inferred_key * usize::from(edge.inferred)
            + WEIGHTS.path_fan_out * usize::from(edge.fans_out)
    };
    path.iter().map(penalty).sum()
}

/// Joins the tables of a path to a block.
fn build_join(
    path: &[ForeignKeyEdge<'_>],
    here: &[(SourceId, &Table)],
    rivals: bool,
    edge_bonus: &dyn Fn(&ForeignKeyEdge<'_>) -> usize,
    ctx: &RuleContext<'_>,
    block: BlockId,
    wanted: Option<&str>,
) -> Option<JoinInsertion> {
    let resolution = ctx.resolution;
    let dialect = ctx.context.dialect;
    let end = from_clause_end(ctx, block)?;
    let mut used_aliases: Vec<String> = resolution
        .visible_sources(block)
        .iter()
        .map(|&s| resolution.sources[s].display_name().to_lowercase())
        .collect();
    let mut text = String::new();
    let mut semi_join: Option<String> = None;
    let mut path_conditions = Vec::new();
    let start = path.first().and_then(|l| here.iter().find(|(_, t)| std::ptr::eq(*t, l.from)))?.0;
    let mut left = resolution.sources[start]
        .name
        .map(|n| if n.quote_style.is_some() { n.to_string() } else { dialect.quote_identifier(&n.value) })?;
    for (i, edge) in path.iter().enumerate() {
        let last = i + 1 == path.len();
        let name = match wanted.filter(|_| last) {
            Some(wanted) => wanted.to_string(),
            None => unique_alias(&edge.to.name, &used_aliases),
        };
        used_aliases.push(name.to_lowercase());
        let table_name = dialect.quote_identifier(&edge.to.name);
        let name = dialect.quote_identifier(&name);
        let alias = if name == table_name { String::new() } else { format!(" AS {name}") };
        let mut conditions: Vec<String> = edge
            .columns
            .iter()
            .map(|(a, b)| format!("{left}.{} = {name}.{}", dialect.quote_identifier(a), dialect.quote_identifier(b)))
            .collect();
        match (edge.columns.as_slice(), &mut semi_join) {
            ([(a, b)], None) if i == 0 => {
                let (a, b) = (dialect.quote_identifier(a), dialect.quote_identifier(b));
                semi_join = Some(format!("{left}.{a} IN (SELECT {name}.{b} FROM {table_name}{alias}"));
            }
            (_, Some(text)) => text.push_str(&format!(" JOIN {table_name}{alias} ON {}", conditions.join(" AND "))),
            // Not every dialect allows several columns in front of IN.
            (_, None) => {}
        }
        conditions.extend(extra_conditions(ctx, block, here, edge, &name));
        text.push_str(&format!(" JOIN {table_name}{alias} ON {}", conditions.join(" AND ")));
        path_conditions.push(describe_edge(edge));
        left = name;
    }
    let mut edits = vec![Edit { span: Span::new(end, end), text }];
    edits.extend(qualify_collisions(ctx, block, path, &left));
    let clashes = edits.len() > 1;
    edits.sort_by_key(|e| (e.span.start, e.span.end));
    Some(JoinInsertion {
        edits,
        alias: left,
        path_cost: path_penalty(path).saturating_sub(path.iter().map(edge_bonus).sum()),
        is_ambiguous: rivals,
        is_inferred: path.iter().any(|l| l.inferred),
        fans_out: path.iter().any(|l| l.fans_out),
        has_name_collision: clashes,
        key_columns: path
            .last()
            .map_or_else(Vec::new, |l| l.columns.iter().map(|(_, there)| there.to_string()).collect()),
        path: path_conditions.join(", "),
        semi_join: semi_join.map(|text| format!("{text} WHERE ")),
    })
}

/// Scores a foreign key by its mention in the question or the query, and by GROUP BY.
///
/// Only words of its columns that are not part of the table names count.
pub(crate) fn edge_affinity(ctx: &RuleContext<'_>, edge: &ForeignKeyEdge<'_>, context_words: &str) -> usize {
    let resolution = ctx.resolution;
    let mut points = 0;
    for (here, there) in &edge.columns {
        let distinctive_words = |name: &str| {
            let lower = name.to_lowercase();
            let own: Vec<String> = [&edge.from.name, &edge.to.name].iter().map(|t| t.to_lowercase()).collect();
            let words = lower
                .split(|c: char| !c.is_alphanumeric())
                .filter(|w| w.len() > 2 && !own.iter().any(|o| o.contains(w)));
            words.map(str::to_string).collect::<Vec<_>>()
        };
        let question = ctx.context.question.unwrap_or("").to_lowercase();
        let context_words = context_words.to_lowercase();
        let words = |text: &str| -> Vec<String> {
            text.split(|c: char| !c.is_alphanumeric()).filter(|w| !w.is_empty()).map(str::to_string).collect()
        };
        // Names may be abbreviated, words of a question are not.
        let is_mentioned = |w: &String| {
            let is_same = |s: &String| is_similar(s, w, WEIGHTS.min_mention_similarity);
            words(&question).iter().any(is_same)
                || words(&context_words).iter().any(|s| is_same(s) || s.len() > 2 && w.starts_with(s))
        };
        let mentioned = distinctive_words(here).iter().chain(&distinctive_words(there)).any(is_mentioned);
        points += WEIGHTS.path_mention_bonus * usize::from(mentioned);
        let grouped = resolution
            .references
            .iter()
            .any(|r| r.clause == Clause::GroupBy && r.name.value.eq_ignore_ascii_case(here));
        points += WEIGHTS.path_group_by_bonus * usize::from(grouped);
    }
    points
}

/// Returns conditions for other foreign keys between the new table and tables of the block.
///
/// The key must be the only one between the two tables. An inferred key is used only for a table
/// that is not joined with the start of the path otherwise.
fn extra_conditions(
    ctx: &RuleContext<'_>,
    block: BlockId,
    here: &[(SourceId, &Table)],
    edge: &ForeignKeyEdge<'_>,
    name: &str,
) -> Vec<String> {
    let Some(schema) = ctx.context.schema else { return Vec::new() };
    let others: Vec<&Table> = here.iter().map(|(_, t)| *t).filter(|t| !std::ptr::eq(*t, edge.from)).collect();
    let other_edges = join_graph::edges_between(schema, edge.to, &others);
    let dialect = ctx.context.dialect;
    let groups = equality_groups(ctx, block);
    let group = |source: SourceId| groups.iter().position(|group| group.contains(&source));
    let start = here.iter().find(|(_, t)| std::ptr::eq(*t, edge.from)).and_then(|(source, _)| group(*source));
    let mut out = Vec::new();
    for other in &other_edges {
        let alone = other_edges.iter().filter(|t| std::ptr::eq(t.to, other.to)).count() == 1;
        let mut owners = here.iter().filter(|(_, t)| std::ptr::eq(*t, other.to));
        let (Some((source, _)), None) = (owners.next(), owners.next()) else { continue };
        let needed = start.is_some() && group(*source) != start;
        let proved = !other.inferred && !other.fans_out;
        let Some(owner) = ctx.resolution.sources[*source].name.filter(|_| alone && (proved || needed)) else {
            continue;
        };
        out.extend(other.columns.iter().map(|(a, b)| {
            format!(
                "{name}.{} = {}.{}",
                dialect.quote_identifier(a),
                dialect.quote_identifier(&owner.value),
                dialect.quote_identifier(b)
            )
        }));
    }
    out
}

/// Groups the sources of a block that are connected by equality predicates.
fn equality_groups(ctx: &RuleContext<'_>, block: BlockId) -> Vec<Vec<SourceId>> {
    let resolution = ctx.resolution;
    let mut groups: Vec<Vec<SourceId>> = resolution.blocks[block].sources.iter().map(|&s| vec![s]).collect();
    if !resolution.blocks[block].using_columns.is_empty() {
        return vec![resolution.blocks[block].sources.clone()];
    }
    for o in resolution.operations.iter().filter(|o| *o.operator == BinaryOperator::Eq && o.is_conjunct) {
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

/// Returns the number of source groups that would stay disconnected if the table were joined.
///
/// Returns 0 if the block is connected already.
pub(crate) fn disconnected_groups(ctx: &RuleContext<'_>, block: BlockId, table: &Table) -> usize {
    let Some(schema) = ctx.context.schema else { return 0 };
    let groups = equality_groups(ctx, block);
    if groups.len() < 2 {
        return 0;
    }
    let reaches = |source: &SourceId| {
        let there = ctx.resolution.sources[*source].table();
        there.is_some_and(|t| !join_graph::edges_between(schema, table, &[t]).is_empty())
    };
    groups.iter().filter(|group| !group.iter().any(reaches)).count()
}

/// Returns the number of tables of the block that share a foreign key with a table.
pub(crate) fn connected_tables(ctx: &RuleContext<'_>, block: BlockId, table: &Table) -> usize {
    let Some(schema) = ctx.context.schema else { return 0 };
    let resolution = ctx.resolution;
    let here: Vec<&Table> =
        resolution.blocks[block].sources.iter().filter_map(|&s| resolution.sources[s].table()).collect();
    here.iter().filter(|t| !join_graph::edges_between(schema, table, &[t]).is_empty()).count()
}

/// Returns the column that a reference is compared with by `=`.
pub(crate) fn compared_column(ctx: &RuleContext<'_>, reference: &ColumnReference<'_>) -> Option<(SourceId, usize)> {
    ctx.resolution.operations.iter().filter(|o| *o.operator == BinaryOperator::Eq && !o.is_in).find_map(|o| {
        let is_reference = |node: &Expr| node.span() == reference.span;
        match (is_reference(o.left_node), is_reference(o.right_node)) {
            (true, false) => o.right.column,
            (false, true) => o.left.column,
            _ => None,
        }
    })
}

/// Returns the penalty for comparing a column with another one.
///
/// The penalty is 0 if a foreign key connects them. It is highest if both belong to the same source.
pub(crate) fn comparison_penalty(
    ctx: &RuleContext<'_>,
    compared_column: Option<(SourceId, usize)>,
    source: SourceId,
    column: &str,
) -> usize {
    let resolution = ctx.resolution;
    let Some((other, index)) = compared_column else { return WEIGHTS.unlinked_comparison };
    if other == source {
        return WEIGHTS.same_source_comparison;
    }
    let (Some(a), Some(b), Some(schema)) =
        (resolution.sources[source].table(), resolution.sources[other].table(), ctx.context.schema)
    else {
        return WEIGHTS.unlinked_comparison;
    };
    let there = b.columns.get(index).map_or("", |c| c.name.as_str());
    let tied = join_graph::edges_between(schema, a, &[b])
        .iter()
        .any(|l| l.columns.iter().any(|(x, y)| x.eq_ignore_ascii_case(column) && y.eq_ignore_ascii_case(there)));
    if tied { 0 } else { WEIGHTS.unlinked_comparison }
}

fn describe_edge(link: &ForeignKeyEdge<'_>) -> String {
    let (a, b) = link.columns.first().copied().unwrap_or(("", ""));
    format!("{}.{a} = {}.{b}", link.from.name, link.to.name)
}

/// Returns the name with a numeric suffix if it is taken.
pub(crate) fn unique_alias(name: &str, taken: &[String]) -> String {
    if !taken.contains(&name.to_lowercase()) {
        return name.to_string();
    }
    (2..).map(|n| format!("{name}_{n}")).find(|n| !taken.contains(&n.to_lowercase())).unwrap_or_default()
}

/// Qualifies names that the new tables would make ambiguous.
fn qualify_collisions(ctx: &RuleContext<'_>, block: BlockId, path: &[ForeignKeyEdge<'_>], new: &str) -> Vec<Edit> {
    let resolution = ctx.resolution;
    let mut edits = Vec::new();
    for r in resolution.references.iter().filter(|r| r.qualifier.is_none() && !r.is_wildcard) {
        let ColumnBinding::Column(source, _) = r.binding else { continue };
        let clash = path.iter().any(|l| l.to.column(&r.name.value).is_some());
        if resolution.sources[source].block == block
            && clash
            && let Some(name) = resolution.sources[source].name
        {
            let span = ctx.query.span(r.span);
            let dialect = ctx.context.dialect;
            // A column that is compared with itself was meant to belong to the new table.
            let itself = dialect.on_sees_all_tables
                && compared_column(ctx, r).is_some_and(|p| r.binding == ColumnBinding::Column(p.0, p.1));
            let has_it = path.last().is_some_and(|l| l.to.column(&r.name.value).is_some());
            let owner = if itself && has_it { new.to_string() } else { dialect.quote_identifier(&name.value) };
            edits.push(Edit { span: Span::new(span.start, span.start), text: format!("{owner}.") });
        }
    }
    edits
}
