//! Fixes that add or switch tables: joins, intermediate tables of a join path, FROM clauses.

use sqlparser::ast::{BinaryOperator, Expr, Spanned};

use super::evidence::question_mentions_together;
use super::self_reference::foreign_key_target;
use super::value_evidence::column_with_value;
use crate::finding::{Applicability, Edit, Fix, Span};
use crate::fixes;
use crate::fixes::columns::scored_fix::{ScoredFix, other_uses};
use crate::fixes::score::WEIGHTS;
use crate::resolve::{BlockId, Clause, ColumnBinding, ColumnReference, SourceId};
use crate::rule::RuleContext;
use crate::schema::Table;
use crate::schema::join_graph::ForeignKeyEdge;
use crate::text::similarity::is_similar;

/// Joins a table that has the missing column along foreign keys.
pub(crate) fn join_missing_table(
    reference: &ColumnReference<'_>,
    wanted: Option<&str>,
    ctx: &RuleContext<'_>,
    scored_fixes: &mut Vec<ScoredFix>,
) {
    let Some(schema) = ctx.context.schema else { return };
    let resolution = ctx.resolution;
    let name = reference.name.value.as_str();
    let block = reference.block;
    let present = |t: &Table| {
        resolution.blocks[block]
            .sources
            .iter()
            .any(|&s| resolution.sources[s].table().is_some_and(|x| std::ptr::eq(x, t)))
    };
    // Other columns of the same missing table help to identify it.
    let siblings: Vec<&str> = resolution
        .references
        .iter()
        .filter(|r| r.block == block && !r.is_wildcard && is_unresolved(&r.binding))
        .filter(|r| {
            wanted.is_none() || r.qualifier.is_some_and(|q| wanted.is_some_and(|w| q.value.eq_ignore_ascii_case(w)))
        })
        .map(|r| r.name.value.as_str())
        .collect();
    // An alias more likely belongs to an outer query than to another use of the table.
    let outside = |t: &Table| {
        let mut around =
            resolution.visible_sources(block).into_iter().filter(|&s| resolution.sources[s].block != block);
        around.any(|s| resolution.sources[s].table().is_some_and(|x| std::ptr::eq(x, t)))
    };
    // A foreign key compared with the column identifies the table.
    let pointed = wanted.and_then(|alias| foreign_key_target(alias, block, ctx)).map(|pointed| pointed.table);
    for table in schema.tables().iter().filter(|t| !present(t)) {
        let named = wanted.is_some_and(|w| table.name.eq_ignore_ascii_case(w));
        let exact = table.columns.iter().find(|c| is_similar(name, &c.name, WEIGHTS.min_same_name_similarity));
        // `order_status` is the `status` of `orders`.
        let Some(column) = exact
            .or_else(|| table.columns.iter().find(|c| is_table_prefixed_name(name, &table.name, &c.name)))
            .or_else(|| column_with_value(reference, table, ctx))
        else {
            continue;
        };
        let has_all = siblings
            .iter()
            .all(|s| table.columns.iter().any(|c| is_similar(s, &c.name, WEIGHTS.min_same_name_similarity)));
        if wanted.is_some() && !named && !has_all {
            continue;
        }
        let alias = wanted.filter(|w| !ctx.context.dialect.reserved_words.contains(w));
        let text = |joined: &fixes::JoinInsertion| {
            format!("{}.{}", joined.alias, ctx.context.dialect.quote_identifier(&column.name))
        };
        let mentioned = fixes::question_mentions(ctx, &table.name);
        let missing_siblings = siblings.iter().filter(|s| table.column(s).is_none()).count();
        let ties = fixes::connected_tables(ctx, block, table).saturating_sub(1).min(WEIGHTS.max_joined_connections);
        let together = usize::from(question_mentions_together(&table.name, &column.name, ctx));
        // Prefer a table that connects sources that are not joined yet.
        let loose = fixes::disconnected_groups(ctx, block, table);
        // The ON clause of an earlier join cannot refer to a table that is joined later.
        let forward = WEIGHTS.joined_after_on * usize::from(reference.clause == Clause::On);
        // Of several equally good paths, the database may show which one multiplies rows; without
        // it the first path wins.
        for joined in fixes::join_candidates(ctx, block, table, alias, name) {
            let semi_join = semi_join_fix(reference, table, &joined, ctx);
            let text = text(&joined);
            let mut edits = joined.edits;
            // Other uses of a qualified name, or of one that the table spells differently, need the
            // same edit.
            let mut spans = vec![ctx.query.span(reference.span)];
            if reference.clause != Clause::On && (reference.qualifier.is_some() || exact.is_none()) {
                spans.extend(other_uses(reference, ctx));
                spans.sort_by_key(|s| s.start);
                spans.dedup();
            }
            edits.extend(spans.into_iter().map(|span| Edit { span, text: text.clone() }));
            if wanted.is_none() {
                edits.extend(joins_in_subqueries(reference, table, ctx));
            }
            edits.sort_by_key(|e| (e.span.start, e.span.end));
            // A missing column is seldom the join key itself.
            let same = joined.key_columns.iter().any(|b| b.eq_ignore_ascii_case(&column.name));
            let bonus = WEIGHTS.joined_mention_bonus * usize::from(mentioned)
                + WEIGHTS.joined_qualifier_bonus * usize::from(named)
                + WEIGHTS.joined_connection_bonus * ties
                + WEIGHTS.joined_phrase_bonus * together;
            let path_penalty =
                WEIGHTS.joined_table + joined.path_cost + WEIGHTS.joined_missing_column * missing_siblings;
            let penalty = forward
                + WEIGHTS.joined_other_name * usize::from(exact.is_none())
                + WEIGHTS.joined_on_column * usize::from(same)
                + path_penalty.saturating_sub(bonus)
                + WEIGHTS.joined_disconnected_group * loose
                + WEIGHTS.joined_outer_table * usize::from(wanted.is_some() && outside(table))
                + WEIGHTS.joined_other_target * usize::from(pointed.is_some_and(|t| !std::ptr::eq(t, table)));
            let sure = !joined.is_inferred && !joined.fans_out && !joined.is_ambiguous && !joined.has_name_collision;
            if let Some(fix) = semi_join {
                // A join that multiplies rows changes aggregates over all rows; counts in groups
                // often count the joined rows.
                let counts = resolution.calls.iter().any(|c| {
                    let figure = matches!(c.lower_name.as_str(), "sum" | "avg")
                        || (c.lower_name == "count" && !c.is_distinct && !resolution.blocks[block].is_grouped);
                    c.block == Some(block) && c.is_aggregate && figure
                });
                let bonus = WEIGHTS.semi_join_aggregate_bonus * usize::from(counts);
                scored_fixes.push(ScoredFix { fix, penalty: (penalty + WEIGHTS.semi_join).saturating_sub(bonus) });
            }
            let why = format!("`{}` has the column `{}` and can be joined by {}", table.name, column.name, joined.path);
            let applicability = if sure { Applicability::Safe } else { Applicability::Likely };
            scored_fixes
                .push(ScoredFix { fix: Fix { edits, applicability, why, is_tied_with_previous: false }, penalty });
        }
    }
}

/// Rewrites the condition as `key IN (SELECT …)`.
///
/// Applies if the table is only filtered on and joining it would multiply rows.
fn semi_join_fix(
    reference: &ColumnReference<'_>,
    table: &Table,
    joined: &fixes::JoinInsertion,
    ctx: &RuleContext<'_>,
) -> Option<Fix> {
    let resolution = ctx.resolution;
    let block = reference.block;
    if !joined.fans_out || reference.clause != Clause::Where || resolution.blocks[block].is_distinct {
        return None;
    }
    let semi_join = joined.semi_join.as_deref()?;
    let (_, parts) = fixes::where_conjuncts(ctx, block)?;
    let at = ctx.query.span(reference.span);
    let part = parts.into_iter().find(|p| p.start <= at.start && at.end <= p.end)?;
    let inside = |r: &&ColumnReference<'_>| {
        let span = ctx.query.span(r.span);
        part.start <= span.start && span.end <= part.end
    };
    let is_its = |r: &ColumnReference<'_>| {
        is_unresolved(&r.binding) && table.column(&r.name.value).is_some() && r.block == block
    };
    if !resolution.references.iter().filter(inside).all(is_its)
        || resolution.references.iter().any(|r| is_its(r) && !inside(&r))
    {
        return None;
    }
    let mut condition = String::new();
    let mut from = part.start;
    let mut spans: Vec<(Span, &str)> =
        resolution.references.iter().filter(inside).map(|r| (ctx.query.span(r.span), r.name.value.as_str())).collect();
    spans.sort_by_key(|(s, _)| s.start);
    for (span, name) in spans {
        let column = table.column(name).map_or(name, |c| c.name.as_str());
        condition.push_str(ctx.query.text(Span::new(from, span.start)));
        condition.push_str(&format!("{}.{}", joined.alias, ctx.context.dialect.quote_identifier(column)));
        from = span.end;
    }
    condition.push_str(ctx.query.text(Span::new(from, part.end)));
    Some(fixes::replace(
        part,
        format!("{semi_join}{condition})"),
        Applicability::Likely,
        format!("`{}` is only filtered on, and joining it by {} would multiply rows", table.name, joined.path),
    ))
}

/// Returns whether a name is a table name followed by the name of one of its columns.
fn is_table_prefixed_name(name: &str, table: &str, column: &str) -> bool {
    let (name, column) = (name.to_lowercase(), column.to_lowercase());
    let Some(owner) = name.strip_suffix(&column).map(|o| o.trim_end_matches('_')) else { return false };
    column.len() > 2 && owner.len() > 2 && is_similar(owner, table, WEIGHTS.min_same_name_similarity)
}

fn is_unresolved(binding: &ColumnBinding) -> bool {
    matches!(binding, ColumnBinding::Unresolved | ColumnBinding::NotInSource(_) | ColumnBinding::UnknownQualifier)
}

/// Replaces the only table of the query with another one that has all of its columns.
pub(crate) fn switch_table(
    reference: &ColumnReference<'_>,
    owner: Option<SourceId>,
    ctx: &RuleContext<'_>,
    scored_fixes: &mut Vec<ScoredFix>,
) {
    let (Some(schema), resolution) = (ctx.context.schema, ctx.resolution) else { return };
    let block: BlockId = reference.block;
    let [source] = resolution.blocks[block].sources.as_slice() else { return };
    if owner.is_some_and(|o| o != *source) || resolution.sources[*source].table().is_none() {
        return;
    }
    let used: Vec<&str> = resolution
        .references
        .iter()
        .filter(|r| match r.binding {
            ColumnBinding::Column(s, _) | ColumnBinding::NotInSource(s) => s == *source,
            ColumnBinding::Unresolved => r.block == block,
            _ => false,
        })
        .map(|r| r.name.value.as_str())
        .collect();
    let Some(place) =
        resolution.tables.iter().find(|t| t.span == resolution.sources[*source].span).map(|t| ctx.query.span(t.span))
    else {
        return;
    };
    let counts = resolution.blocks[block].has_aggregates || resolution.blocks[block].is_grouped;
    for table in schema.tables() {
        let whole = used.iter().all(|u| table.columns.iter().any(|c| c.name.eq_ignore_ascii_case(u)));
        if !whole || resolution.sources[*source].table().is_some_and(|t| std::ptr::eq(t, table)) {
            continue;
        }
        let dialect = ctx.context.dialect;
        let mut edits = vec![Edit { span: place, text: dialect.quote_identifier(&table.name) }];
        let aliased = resolution.sources[*source].name.is_some_and(|n| {
            !resolution.sources[*source].table().is_some_and(|t| t.name.eq_ignore_ascii_case(&n.value))
        });
        for r in resolution.references.iter().filter(|r| r.block == block && !aliased) {
            if let Some(q) = r.qualifier {
                edits.push(Edit { span: ctx.query.span(q.span), text: dialect.quote_identifier(&table.name) });
            }
        }
        edits.sort_by_key(|e| (e.span.start, e.span.end));
        edits.dedup();
        let mentioned = usize::from(fixes::question_mentions(ctx, &table.name));
        let columns_penalty = match used.len() {
            0 | 1 => WEIGHTS.switched_table_one_column - WEIGHTS.switched_table_one_column_mention_bonus * mentioned,
            _ => WEIGHTS.switched_table - WEIGHTS.switched_table_mention_bonus * mentioned,
        };
        // Keep a table that the question mentions.
        let left = resolution.sources[*source].table().is_some_and(|t| fixes::question_mentions(ctx, &t.name));
        // Keep a table whose name begins with the same letter as its alias.
        let initial = |text: &str| text.chars().next().map(|c| c.to_ascii_lowercase());
        let alias = resolution.sources[*source].name.filter(|_| aliased).and_then(|n| initial(&n.value));
        let own = resolution.sources[*source].table().and_then(|t| initial(&t.name));
        let misnamed = alias.is_some() && alias == own && alias != initial(&table.name);
        scored_fixes.push(ScoredFix {
            fix: Fix {
                is_tied_with_previous: false,
                edits,
                applicability: if left || misnamed { Applicability::Suggested } else { Applicability::Likely },
                why: format!("`{}` has every column that the query uses", table.name),
            },
            // An aggregate query depends on the rows of its table, even if it names no column of
            // it.
            penalty: columns_penalty
                + WEIGHTS.switched_table_aggregate * usize::from(counts)
                + WEIGHTS.switched_table_lost_mention * usize::from(left),
        });
    }
}

/// Joins the table in subqueries that use the same missing name.
///
/// Otherwise the name would silently bind to the outer query.
fn joins_in_subqueries(reference: &ColumnReference<'_>, table: &Table, ctx: &RuleContext<'_>) -> Vec<Edit> {
    let resolution = ctx.resolution;
    let inside = |mut block: BlockId| {
        while let Some(parent) = resolution.blocks[block].parent {
            if parent == reference.block {
                return true;
            }
            block = parent;
        }
        false
    };
    let mut edits = Vec::new();
    let mut done: Vec<BlockId> = Vec::new();
    let alike = |r: &&ColumnReference<'_>| {
        r.qualifier.is_none()
            && r.binding == ColumnBinding::Unresolved
            && r.name.value.eq_ignore_ascii_case(&reference.name.value)
            && inside(r.block)
    };
    for r in resolution.references.iter().filter(alike) {
        if done.contains(&r.block) {
            continue;
        }
        done.push(r.block);
        let Some(joined) = fixes::join_candidates(ctx, r.block, table, None, &r.name.value).into_iter().next() else {
            continue;
        };
        edits.extend(joined.edits);
    }
    edits
}

/// Replaces a join condition on a missing column with the foreign keys between the tables.
///
/// Intermediate tables are joined where necessary.
pub(crate) fn join_along_keys(
    reference: &ColumnReference<'_>,
    ctx: &RuleContext<'_>,
    scored_fixes: &mut Vec<ScoredFix>,
) {
    let (Some(schema), resolution) = (ctx.context.schema, ctx.resolution) else { return };
    if reference.clause != Clause::On {
        return;
    }
    let dialect = ctx.context.dialect;
    let at = ctx.query.span(reference.span).start;
    let earlier = |s: &SourceId| ctx.query.span(resolution.sources[*s].span).start < at;
    let sources: Vec<SourceId> = resolution.blocks[reference.block].sources.iter().copied().filter(earlier).collect();
    let Some((&joined, before)) = sources.split_last() else { return };
    let is_reference = |node: &Expr| node.span() == reference.span;
    let Some(condition) = resolution.operations.iter().find(|o| {
        *o.operator == BinaryOperator::Eq
            && !o.is_in
            && o.is_conjunct
            && (is_reference(o.left_node) || is_reference(o.right_node))
    }) else {
        return;
    };
    let (Some(table), Some(name)) = (resolution.sources[joined].table(), resolution.sources[joined].name) else {
        return;
    };
    let here: Vec<(SourceId, &Table)> =
        before.iter().filter_map(|&s| resolution.sources[s].table().map(|t| (s, t))).collect();
    let tables: Vec<&Table> = here.iter().map(|(_, t)| *t).collect();
    if tables.iter().any(|t| std::ptr::eq(*t, table)) {
        return;
    }
    let edge_bonus = |edge: &ForeignKeyEdge<'_>| fixes::edge_affinity(ctx, edge, &reference.name.value);
    let paths = fixes::cheapest_paths(schema, &tables, table, &edge_bonus);
    let (Some(path), rivals) = (paths.first(), paths.len() > 1) else { return };
    let Some(first) = path.first().and_then(|l| here.iter().find(|(_, t)| std::ptr::eq(*t, l.from))) else { return };
    let Some(mut left) = resolution.sources[first.0].name.map(|n| dialect.quote_identifier(&n.value)) else { return };
    let mut used_aliases: Vec<String> = resolution
        .visible_sources(reference.block)
        .iter()
        .map(|&s| resolution.sources[s].display_name().to_lowercase())
        .collect();
    let mut between = String::new();
    let mut equal = String::new();
    let mut path_conditions = Vec::new();
    for (i, edge) in path.iter().enumerate() {
        let last = i + 1 == path.len();
        let alias_name = if last {
            dialect.quote_identifier(&name.value)
        } else {
            dialect.quote_identifier(&fixes::unique_alias(&edge.to.name, &used_aliases))
        };
        used_aliases.push(alias_name.to_lowercase());
        let pairs: Vec<String> = edge
            .columns
            .iter()
            .map(|(a, b)| {
                format!("{left}.{} = {alias_name}.{}", dialect.quote_identifier(a), dialect.quote_identifier(b))
            })
            .collect();
        path_conditions.push(pairs.join(" and "));
        if last {
            equal = pairs.join(" AND ");
        } else {
            let table = dialect.quote_identifier(&edge.to.name);
            let alias = if table == alias_name { String::new() } else { format!(" AS {alias_name}") };
            between.push_str(&format!(" JOIN {table}{alias} ON {}", pairs.join(" AND ")));
        }
        left = alias_name;
    }
    let span = ctx.query.span(condition.left_node.span()).join(ctx.query.span(condition.right_node.span()));
    let mut edits = vec![Edit { span, text: equal }];
    if !between.is_empty() {
        let Some(end) = fixes::end_before_join(ctx, resolution.sources[joined].span.start) else { return };
        edits.insert(0, Edit { span: Span::new(end, end), text: between });
    }
    let inferred = path.iter().any(|l| l.inferred);
    scored_fixes.push(ScoredFix {
        fix: Fix {
            is_tied_with_previous: false,
            edits,
            // Nothing distinguishes equally good paths.
            applicability: if rivals { Applicability::Suggested } else { Applicability::Likely },
            why: format!("`{}` can be joined to the preceding tables by {}", table.name, path_conditions.join(", ")),
        },
        penalty: WEIGHTS.join_condition
            + WEIGHTS.join_condition_join * path.len()
            + WEIGHTS.inferred_key * usize::from(inferred)
            + WEIGHTS.join_condition_tie * usize::from(rivals),
    });
}

/// Adds a FROM clause with a table that has the columns of the query.
pub(crate) fn add_from(reference: &ColumnReference<'_>, ctx: &RuleContext<'_>, scored_fixes: &mut Vec<ScoredFix>) {
    let (Some(schema), resolution) = (ctx.context.schema, ctx.resolution) else { return };
    let block = &resolution.blocks[reference.block];
    if !block.sources.is_empty() || block.from_start.line != 0 || block.parent.is_some() {
        return;
    }
    let Some(end) = fixes::clause_end(ctx, block.select_span.start, fixes::CLAUSES_AFTER_FROM) else { return };
    let missing: Vec<&ColumnReference<'_>> =
        resolution.references.iter().filter(|r| r.block == reference.block && is_unresolved(&r.binding)).collect();
    // A qualifier that all columns share and no table has is the alias of the new table.
    let alias = reference.qualifier.map(|q| q.value.as_str()).filter(|q| schema.table(q).is_none());
    let alias = alias.filter(|a| missing.iter().all(|r| r.qualifier.is_some_and(|q| q.value.eq_ignore_ascii_case(a))));
    for table in schema.tables() {
        let has_column = |r: &&ColumnReference<'_>| {
            table.column(&r.name.value).is_some()
                && (alias.is_some() || r.qualifier.is_none_or(|q| q.value.eq_ignore_ascii_case(&table.name)))
        };
        let others = missing.iter().filter(|r| !has_column(r)).count();
        if !has_column(&reference) {
            continue;
        }
        let mentioned = usize::from(fixes::question_mentions(ctx, &table.name));
        let called = alias.map_or(String::new(), |a| format!(" AS {}", ctx.context.dialect.quote_identifier(a)));
        scored_fixes.push(ScoredFix {
            fix: fixes::replace(
                Span::new(end, end),
                format!(" FROM {}{called}", ctx.context.dialect.quote_identifier(&table.name)),
                Applicability::Likely,
                format!("the query names columns but no table, and `{}` has them", table.name),
            ),
            penalty: WEIGHTS.missing_from + WEIGHTS.missing_from_column * others
                - WEIGHTS.missing_from_mention_bonus * mentioned,
        });
    }
}
