//! Fixes for an unknown junction table: the schema connects the two tables in another way.

use sqlparser::ast::{BinaryOperator, Expr, Spanned};
use sqlparser::keywords::Keyword;

use crate::finding::{Applicability, Edit, Fix, Span};
use crate::fixes;
use crate::resolve::{ColumnBinding, ColumnReference, SourceId};
use crate::rule::RuleContext;
use crate::schema::join_graph::ForeignKeyEdge;
use crate::schema::{Schema, Table, join_graph};
use crate::text::similarity::identifier_similarity;

/// Equality between a column of the unknown table and one of a known table.
struct JunctionLink<'s> {
    /// Referenced column of the unknown table.
    unknown_column: &'s ColumnReference<'s>,
    /// Column of the known table that it is compared with.
    neighbour_column: &'s ColumnReference<'s>,
    neighbour: SourceId,
    /// Span of the whole comparison.
    span: Span,
}

/// Returns fixes with a junction table of the schema, then one with a direct foreign key.
pub(crate) fn junction_fixes(unknown: SourceId, ctx: &RuleContext<'_>, schema: &Schema) -> Vec<Fix> {
    let ties = junction_links(unknown, ctx);
    let mut neighbours: Vec<SourceId> = ties.iter().map(|t| t.neighbour).collect();
    neighbours.sort_unstable();
    neighbours.dedup();
    let tables: Vec<&Table> = neighbours.iter().filter_map(|&n| ctx.resolution.sources[n].table()).collect();
    if tables.len() != neighbours.len() || !matches!(tables.len(), 1 | 2) {
        return Vec::new();
    }
    let fitting = schema.tables().iter().filter(|t| {
        !tables.iter().any(|n| std::ptr::eq(*n, *t))
            && tables.iter().all(|n| !many_to_one_edges(schema, t, n).is_empty())
    });
    let candidates: Vec<&Table> = fitting.collect();
    // Many tables may reference one neighbour, so require two neighbours or a single candidate.
    let candidates = if tables.len() == 1 && candidates.len() > 1 { Vec::new() } else { candidates };
    let mut out: Vec<Fix> =
        candidates.into_iter().filter_map(|t| replace_with_junction(unknown, t, &ties, ctx, schema)).collect();
    // One neighbour is not evidence: any table that references it may be meant, even one that this
    // database lacks.
    if tables.len() == 1 {
        out.iter_mut().for_each(|fix| fix.applicability = Applicability::Suggested);
    }
    if let [a, b] = neighbours.as_slice() {
        out.extend(join_directly(unknown, (*a, *b), &ties, ctx, schema));
    }
    out
}

/// Returns the foreign keys of a table that reference at most one row of another table.
pub(crate) fn many_to_one_edges<'a>(schema: &'a Schema, table: &'a Table, to: &'a Table) -> Vec<ForeignKeyEdge<'a>> {
    join_graph::edges_between(schema, table, &[to]).into_iter().filter(|l| !l.fans_out).collect()
}

/// Returns the references to columns of the unknown table.
fn references_to<'s>(unknown: SourceId, ctx: &RuleContext<'s>) -> Vec<&'s ColumnReference<'s>> {
    let source = &ctx.resolution.sources[unknown];
    let ours = |r: &&ColumnReference<'_>| {
        r.block == source.block && r.qualifier.is_some_and(|q| q.value.eq_ignore_ascii_case(source.display_name()))
    };
    ctx.resolution.references.iter().filter(ours).collect()
}

fn junction_links<'s>(unknown: SourceId, ctx: &RuleContext<'s>) -> Vec<JunctionLink<'s>> {
    let resolution = ctx.resolution;
    let at = |node: &Expr| resolution.references.iter().find(|r| r.span == node.span());
    let mut out = Vec::new();
    for ours in references_to(unknown, ctx) {
        for o in resolution.operations.iter().filter(|o| *o.operator == BinaryOperator::Eq && o.is_conjunct && !o.is_in)
        {
            let theirs = match (o.left_node.span() == ours.span, o.right_node.span() == ours.span) {
                (true, false) => at(o.right_node),
                (false, true) => at(o.left_node),
                _ => None,
            };
            let Some(theirs) = theirs else { continue };
            let (ColumnBinding::Column(neighbour, _) | ColumnBinding::NotInSource(neighbour)) = theirs.binding else {
                continue;
            };
            let span = ctx.query.span(o.left_node.span()).join(ctx.query.span(o.right_node.span()));
            out.push(JunctionLink { unknown_column: ours, neighbour_column: theirs, neighbour, span });
        }
    }
    out
}

/// Replaces the unknown table with one whose foreign keys match the compared columns.
fn replace_with_junction(
    unknown: SourceId,
    table: &Table,
    ties: &[JunctionLink<'_>],
    ctx: &RuleContext<'_>,
    schema: &Schema,
) -> Option<Fix> {
    let dialect = ctx.context.dialect;
    let source = &ctx.resolution.sources[unknown];
    let place = ctx.query.span(source.span);
    let aliased = source.name.is_some_and(|n| ctx.query.span(n.span).start >= place.end);
    let called =
        if aliased { dialect.quote_identifier(source.display_name()) } else { dialect.quote_identifier(&table.name) };
    let mut edits = vec![Edit { span: place, text: dialect.quote_identifier(&table.name) }];
    let mut used: Vec<(SourceId, String)> = Vec::new();
    for tie in ties {
        let neighbour = ctx.resolution.sources[tie.neighbour].table()?;
        let links = many_to_one_edges(schema, table, neighbour);
        let link = links.iter().min_by_key(|l| (l.inferred, name_distance(l, tie)))?;
        let [(own, there)] = link.columns.as_slice() else { return None };
        // One column cannot reference two tables.
        if used.iter().any(|(n, column)| *n != tie.neighbour && column == own) {
            return None;
        }
        used.push((tie.neighbour, own.to_string()));
        let ours = ctx.query.span(tie.unknown_column.span);
        edits.push(Edit { span: ours, text: format!("{called}.{}", dialect.quote_identifier(own)) });
        let text = fixes::qualified_column(ctx, tie.neighbour, there)?;
        edits.push(Edit { span: ctx.query.span(tie.neighbour_column.span), text });
    }
    for other in references_to(unknown, ctx) {
        if ties.iter().any(|t| t.unknown_column.span == other.span) {
            continue;
        }
        if other.is_wildcard || table.column(&other.name.value).is_none() {
            return None;
        }
        edits.push(Edit { span: ctx.query.span(other.qualifier?.span), text: called.clone() });
    }
    edits.sort_by_key(|e| (e.span.start, e.span.end));
    edits.dedup();
    let names: Vec<String> = ties
        .iter()
        .filter_map(|t| ctx.resolution.sources[t.neighbour].table())
        .map(|t| format!("`{}`", t.name))
        .collect();
    let why = format!("`{}` is the table that has the keys of {}", table.name, names.join(" and "));
    Some(Fix { edits, applicability: Applicability::Likely, why, is_tied_with_previous: false })
}

/// Returns the distance between the names of a foreign key column and the unknown column.
///
/// Distinguishes two foreign keys between the same tables.
fn name_distance(link: &ForeignKeyEdge<'_>, tie: &JunctionLink<'_>) -> usize {
    let like = link.columns.first().map_or(0.0, |(own, _)| identifier_similarity(&tie.unknown_column.name.value, own));
    ((1.0 - like) * 100.0) as usize
}

/// Removes the unknown table if a single foreign key connects its neighbours.
fn join_directly(
    unknown: SourceId,
    (a, b): (SourceId, SourceId),
    ties: &[JunctionLink<'_>],
    ctx: &RuleContext<'_>,
    schema: &Schema,
) -> Option<Fix> {
    let resolution = ctx.resolution;
    let (here, there) = (resolution.sources[a].table()?, resolution.sources[b].table()?);
    let links = join_graph::edges_between(schema, here, &[there]);
    let ([link], [first, second]) = (links.as_slice(), ties) else { return None };
    if references_to(unknown, ctx).len() != 2 || link.inferred {
        return None;
    }
    let segment = join_clause_span(unknown, ctx)?;
    let inside = |t: &JunctionLink<'_>| segment.start <= t.span.start && t.span.end <= segment.end;
    let outside = match (inside(first), inside(second)) {
        (true, false) => second,
        (false, true) => first,
        _ => return None,
    };
    let conditions: Option<Vec<String>> = link
        .columns
        .iter()
        .map(|(x, y)| {
            Some(format!("{} = {}", fixes::qualified_column(ctx, a, x)?, fixes::qualified_column(ctx, b, y)?))
        })
        .collect();
    let mut edits =
        vec![Edit { span: segment, text: String::new() }, Edit { span: outside.span, text: conditions?.join(" AND ") }];
    edits.sort_by_key(|e| (e.span.start, e.span.end));
    // `ExcerptPostId` describes another relationship than `PostId` does.
    let applicability = if link.columns.iter().all(|(x, y)| is_plain_key_name(x, y, &[here, there])) {
        Applicability::Likely
    } else {
        Applicability::Suggested
    };
    let why =
        format!("`{}` and `{}` are linked directly by a foreign key, without a junction table", here.name, there.name);
    Some(Fix { edits, applicability, why, is_tied_with_previous: false })
}

/// Returns whether the column names of a foreign key contain nothing but the table they reference.
pub(crate) fn is_plain_key_name(here: &str, there: &str, tables: &[&Table]) -> bool {
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

/// Returns the span of the JOIN of a source with its ON clause.
///
/// The span ends at the next JOIN or at the end of FROM.
fn join_clause_span(source: SourceId, ctx: &RuleContext<'_>) -> Option<Span> {
    let block = ctx.resolution.sources[source].block;
    let place = ctx.query.span(ctx.resolution.sources[source].span);
    let end = fixes::from_clause_end(ctx, block)?;
    let mut starts: Vec<usize> = Vec::new();
    let mut kind: Option<usize> = None;
    for (depth, span, token) in fixes::tokens_to_end(ctx, ctx.resolution.blocks[block].from_start) {
        if span.start >= end {
            break;
        }
        match fixes::keyword(&token).filter(|_| depth == 0) {
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
