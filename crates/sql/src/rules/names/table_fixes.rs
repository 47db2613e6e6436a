//! Ways to mend a reference by bringing in the table that has it: joining it, putting it between two others, reading from it.

use sqlparser::ast::{BinaryOperator, Expr, Spanned};

use super::by_value::held_by;
use super::column_fixes::{Way, uses};
use super::kinship::named_together;
use super::self_join::pointed_at;
use crate::finding::{Applicability, Edit, Fix, Span};
use crate::joins;
use crate::mend;
use crate::near::is_nearly;
use crate::rules::Subject;
use crate::schema::Table;
use crate::scope::{BlockId, Clause, Meaning, Reference, SourceId};

/// A table that the query does not join has the column: it is joined over the keys.
pub(super) fn unjoined_tables(
    reference: &Reference<'_>,
    wanted: Option<&str>,
    subject: &Subject<'_>,
    ways: &mut Vec<Way>,
) {
    let Some(schema) = subject.context.schema else { return };
    let facts = subject.facts;
    let name = reference.name.value.as_str();
    let block = reference.block;
    let present = |t: &Table| {
        facts.blocks[block].sources.iter().any(|&s| facts.sources[s].table().is_some_and(|x| std::ptr::eq(x, t)))
    };
    // What else is asked of the same missing table tells which one it is.
    let siblings: Vec<&str> = facts
        .references
        .iter()
        .filter(|r| r.block == block && !r.wildcard && is_missing(&r.meaning))
        .filter(|r| {
            wanted.is_none() || r.qualifier.is_some_and(|q| wanted.is_some_and(|w| q.value.eq_ignore_ascii_case(w)))
        })
        .map(|r| r.name.value.as_str())
        .collect();
    // An alias that a query around this one might have given is sooner that than a table once more.
    let outside = |t: &Table| {
        let mut around = facts.visible(block).into_iter().filter(|&s| facts.sources[s].block != block);
        around.any(|s| facts.sources[s].table().is_some_and(|x| std::ptr::eq(x, t)))
    };
    // A key that is compared with it says which table it is.
    let pointed = wanted.and_then(|alias| pointed_at(alias, block, subject)).map(|pointed| pointed.table);
    for table in schema.tables().iter().filter(|t| !present(t)) {
        let named = wanted.is_some_and(|w| table.name.eq_ignore_ascii_case(w));
        let exact = table.columns.iter().find(|c| is_nearly(name, &c.name, 0.98));
        // `order_status` is the `status` of `orders`.
        let Some(column) = exact
            .or_else(|| table.columns.iter().find(|c| is_of(name, &table.name, &c.name)))
            .or_else(|| held_by(reference, table, subject))
        else {
            continue;
        };
        let has_all = siblings.iter().all(|s| table.columns.iter().any(|c| is_nearly(s, &c.name, 0.98)));
        if wanted.is_some() && !named && !has_all {
            continue;
        }
        let alias = wanted.filter(|w| !subject.context.dialect.reserved.contains(w));
        let text =
            |joined: &mend::Joined| format!("{}.{}", joined.called, subject.context.dialect.quoted(&column.name));
        let asked = mend::asked_for(subject, &table.name);
        let missing_siblings = siblings.iter().filter(|s| table.column(s).is_none()).count();
        let ties = mend::ties(subject, block, table).saturating_sub(1).min(2);
        let together = usize::from(named_together(&table.name, &column.name, subject));
        // Tables that nothing ties to the others yet wait for the one that does.
        let loose = mend::loose(subject, block, table);
        // A condition of an earlier join cannot speak of a table that is joined behind it.
        let forward = 10 * usize::from(reference.clause == Clause::On);
        // Of several paths that are as good, the database may say which multiplies rows; without it the first one is taken.
        for joined in mend::joins(subject, block, table, alias, name) {
            let among = among(reference, table, &joined, subject);
            let text = text(&joined);
            let mut edits = joined.edits;
            // A qualified name stays wrong in its other places; so does one that the table spells otherwise.
            let mut spans = vec![subject.query.span(reference.place)];
            if reference.clause != Clause::On && (reference.qualifier.is_some() || exact.is_none()) {
                spans.extend(uses(reference, subject));
                spans.sort_by_key(|s| s.start);
                spans.dedup();
            }
            edits.extend(spans.into_iter().map(|span| Edit { span, text: text.clone() }));
            if wanted.is_none() {
                edits.extend(joins_below(reference, table, subject));
            }
            edits.sort_by_key(|e| (e.span.start, e.span.end));
            // A column that is asked for because it is missing here is seldom the one that ties the tables.
            let same = joined.by.iter().any(|b| b.eq_ignore_ascii_case(&column.name));
            let doubt = forward
                + 3 * usize::from(exact.is_none())
                + 2 * usize::from(same)
                + (2 + joined.doubt + 2 * missing_siblings)
                    .saturating_sub(2 * usize::from(asked) + 4 * usize::from(named) + 3 * ties + 3 * together)
                + 4 * loose
                + 9 * usize::from(wanted.is_some() && outside(table))
                + 3 * usize::from(pointed.is_some_and(|t| !std::ptr::eq(t, table)));
            let sure = !joined.inferred && !joined.multiplies && !joined.rivals && !joined.clashes;
            if let Some(fix) = among {
                // Figures about all rows would change with a join that multiplies them; counts in groups are often counts of
                // what is joined.
                let counts = facts.calls.iter().any(|c| {
                    let figure = matches!(c.lower.as_str(), "sum" | "avg")
                        || (c.lower == "count" && !c.distinct && !facts.blocks[block].grouped);
                    c.block == Some(block) && c.aggregate && figure
                });
                ways.push(Way { fix, doubt: (doubt + 1).saturating_sub(2 * usize::from(counts)) });
            }
            let why = format!(
                "`{}` has the column `{}` and hangs together with the query by {}",
                table.name, column.name, joined.path
            );
            let applicability = if sure { Applicability::Safe } else { Applicability::Likely };
            ways.push(Way { fix: Fix { edits, applicability, why, tied: false }, doubt });
        }
    }
}

/// The table is only filtered on, and joining it would multiply rows: its condition becomes `key IN (SELECT …)`.
fn among(reference: &Reference<'_>, table: &Table, joined: &mend::Joined, subject: &Subject<'_>) -> Option<Fix> {
    let facts = subject.facts;
    let block = reference.block;
    if !joined.multiplies || reference.clause != Clause::Where || facts.blocks[block].distinct {
        return None;
    }
    let among = joined.among.as_deref()?;
    let (_, parts) = mend::conditions(subject, block)?;
    let at = subject.query.span(reference.place);
    let part = parts.into_iter().find(|p| p.start <= at.start && at.end <= p.end)?;
    let inside = |r: &&Reference<'_>| {
        let span = subject.query.span(r.place);
        part.start <= span.start && span.end <= part.end
    };
    let is_its =
        |r: &Reference<'_>| is_missing(&r.meaning) && table.column(&r.name.value).is_some() && r.block == block;
    if !facts.references.iter().filter(inside).all(is_its) || facts.references.iter().any(|r| is_its(r) && !inside(&r))
    {
        return None;
    }
    let mut condition = String::new();
    let mut from = part.start;
    let mut spans: Vec<(Span, &str)> =
        facts.references.iter().filter(inside).map(|r| (subject.query.span(r.place), r.name.value.as_str())).collect();
    spans.sort_by_key(|(s, _)| s.start);
    for (span, name) in spans {
        let column = table.column(name).map_or(name, |c| c.name.as_str());
        condition.push_str(subject.query.text(Span::new(from, span.start)));
        condition.push_str(&format!("{}.{}", joined.called, subject.context.dialect.quoted(column)));
        from = span.end;
    }
    condition.push_str(subject.query.text(Span::new(from, part.end)));
    Some(mend::replace(
        part,
        format!("{among}{condition})"),
        Applicability::Likely,
        format!("`{}` is only filtered on, and joining it by {} would multiply rows", table.name, joined.path),
    ))
}

/// Whether a name is that of a table and one of its columns in a row.
fn is_of(name: &str, table: &str, column: &str) -> bool {
    let (name, column) = (name.to_lowercase(), column.to_lowercase());
    let Some(owner) = name.strip_suffix(&column).map(|o| o.trim_end_matches('_')) else { return false };
    column.len() > 2 && owner.len() > 2 && is_nearly(owner, table, 0.98)
}

fn is_missing(meaning: &Meaning) -> bool {
    matches!(meaning, Meaning::Nowhere | Meaning::NotInSource(_) | Meaning::UnknownQualifier)
}

/// Everything the query asks of its only table is also in another table, which has the missing column as well: the query is
/// moved there.
pub(super) fn other_table(
    reference: &Reference<'_>,
    owner: Option<SourceId>,
    subject: &Subject<'_>,
    ways: &mut Vec<Way>,
) {
    let (Some(schema), facts) = (subject.context.schema, subject.facts) else { return };
    let block: BlockId = reference.block;
    let [source] = facts.blocks[block].sources.as_slice() else { return };
    if owner.is_some_and(|o| o != *source) || facts.sources[*source].table().is_none() {
        return;
    }
    let used: Vec<&str> = facts
        .references
        .iter()
        .filter(|r| match r.meaning {
            Meaning::Column(s, _) | Meaning::NotInSource(s) => s == *source,
            Meaning::Nowhere => r.block == block,
            _ => false,
        })
        .map(|r| r.name.value.as_str())
        .collect();
    let Some(place) =
        facts.tables.iter().find(|t| t.place == facts.sources[*source].place).map(|t| subject.query.span(t.place))
    else {
        return;
    };
    let counts = facts.blocks[block].aggregates || facts.blocks[block].grouped;
    for table in schema.tables() {
        let whole = used.iter().all(|u| table.columns.iter().any(|c| c.name.eq_ignore_ascii_case(u)));
        if !whole || facts.sources[*source].table().is_some_and(|t| std::ptr::eq(t, table)) {
            continue;
        }
        let dialect = subject.context.dialect;
        let mut edits = vec![Edit { span: place, text: dialect.quoted(&table.name) }];
        let aliased = facts.sources[*source]
            .name
            .is_some_and(|n| !facts.sources[*source].table().is_some_and(|t| t.name.eq_ignore_ascii_case(&n.value)));
        for r in facts.references.iter().filter(|r| r.block == block && !aliased) {
            if let Some(q) = r.qualifier {
                edits.push(Edit { span: subject.query.span(q.span), text: dialect.quoted(&table.name) });
            }
        }
        edits.sort_by_key(|e| (e.span.start, e.span.end));
        edits.dedup();
        let asked = usize::from(mend::asked_for(subject, &table.name));
        // What the question names is not left, unless it is not what the query asks anything of.
        let left = facts.sources[*source].table().is_some_and(|t| mend::asked_for(subject, &t.name));
        // Nor is one that the alias is short for.
        let initial = |text: &str| text.chars().next().map(|c| c.to_ascii_lowercase());
        let alias = facts.sources[*source].name.filter(|_| aliased).and_then(|n| initial(&n.value));
        let own = facts.sources[*source].table().and_then(|t| initial(&t.name));
        let misnamed = alias.is_some() && alias == own && alias != initial(&table.name);
        ways.push(Way {
            fix: Fix {
                tied: false,
                edits,
                applicability: if left || misnamed { Applicability::Suggested } else { Applicability::Likely },
                why: format!("`{}` has every column that the query uses", table.name),
            },
            // A query that counts asks for the rows of its table, even if it names no column of it.
            doubt: if used.len() > 1 { 4 - asked } else { 6 - 2 * asked }
                + 8 * usize::from(counts)
                + 5 * usize::from(left),
        });
    }
}

/// The same missing name in the queries inside this one: each gets the table as well, or it would quietly mean the outer one.
fn joins_below(reference: &Reference<'_>, table: &Table, subject: &Subject<'_>) -> Vec<Edit> {
    let facts = subject.facts;
    let inside = |mut block: BlockId| {
        while let Some(parent) = facts.blocks[block].parent {
            if parent == reference.block {
                return true;
            }
            block = parent;
        }
        false
    };
    let mut edits = Vec::new();
    let mut done: Vec<BlockId> = Vec::new();
    let alike = |r: &&Reference<'_>| {
        r.qualifier.is_none()
            && r.meaning == Meaning::Nowhere
            && r.name.value.eq_ignore_ascii_case(&reference.name.value)
            && inside(r.block)
    };
    for r in facts.references.iter().filter(alike) {
        if done.contains(&r.block) {
            continue;
        }
        done.push(r.block);
        let Some(joined) = mend::joins(subject, r.block, table, None, &r.name.value).into_iter().next() else {
            continue;
        };
        edits.extend(joined.edits);
    }
    edits
}

/// A condition of a join speaks of a column that is not there: the two tables are tied by their keys instead, over the tables
/// between them if need be.
pub(super) fn bridge(reference: &Reference<'_>, subject: &Subject<'_>, ways: &mut Vec<Way>) {
    let (Some(schema), facts) = (subject.context.schema, subject.facts) else { return };
    if reference.clause != Clause::On {
        return;
    }
    let dialect = subject.context.dialect;
    let at = subject.query.span(reference.place).start;
    let earlier = |s: &SourceId| subject.query.span(facts.sources[*s].place).start < at;
    let sources: Vec<SourceId> = facts.blocks[reference.block].sources.iter().copied().filter(earlier).collect();
    let Some((&joined, before)) = sources.split_last() else { return };
    let stands = |node: &Expr| node.span() == reference.place;
    let Some(condition) = facts.operations.iter().find(|o| {
        *o.operator == BinaryOperator::Eq && !o.is_in && o.required && (stands(o.left_node) || stands(o.right_node))
    }) else {
        return;
    };
    let (Some(table), Some(name)) = (facts.sources[joined].table(), facts.sources[joined].name) else { return };
    let here: Vec<(SourceId, &Table)> =
        before.iter().filter_map(|&s| facts.sources[s].table().map(|t| (s, t))).collect();
    let tables: Vec<&Table> = here.iter().map(|(_, t)| *t).collect();
    if tables.iter().any(|t| std::ptr::eq(*t, table)) {
        return;
    }
    let paths = joins::paths(schema, &tables, table, &|link| mend::favour(subject, link, &reference.name.value));
    let (Some(path), rivals) = (paths.first(), paths.len() > 1) else { return };
    let Some(first) = path.first().and_then(|l| here.iter().find(|(_, t)| std::ptr::eq(*t, l.from))) else { return };
    let Some(mut left) = facts.sources[first.0].name.map(|n| dialect.quoted(&n.value)) else { return };
    let mut taken: Vec<String> =
        facts.visible(reference.block).iter().map(|&s| facts.sources[s].called().to_lowercase()).collect();
    let mut between = String::new();
    let mut equal = String::new();
    let mut words = Vec::new();
    for (i, link) in path.iter().enumerate() {
        let last = i + 1 == path.len();
        let called =
            if last { dialect.quoted(&name.value) } else { dialect.quoted(&mend::fresh(&link.to.name, &taken)) };
        taken.push(called.to_lowercase());
        let pairs: Vec<String> = link
            .columns
            .iter()
            .map(|(a, b)| format!("{left}.{} = {called}.{}", dialect.quoted(a), dialect.quoted(b)))
            .collect();
        words.push(pairs.join(" and "));
        if last {
            equal = pairs.join(" AND ");
        } else {
            let table = dialect.quoted(&link.to.name);
            let alias = if table == called { String::new() } else { format!(" AS {called}") };
            between.push_str(&format!(" JOIN {table}{alias} ON {}", pairs.join(" AND ")));
        }
        left = called;
    }
    let span = subject.query.span(condition.left_node.span()).join(subject.query.span(condition.right_node.span()));
    let mut edits = vec![Edit { span, text: equal }];
    if !between.is_empty() {
        let Some(end) = mend::before_join(subject, facts.sources[joined].place.start) else { return };
        edits.insert(0, Edit { span: Span::new(end, end), text: between });
    }
    let inferred = path.iter().any(|l| l.inferred);
    ways.push(Way {
        fix: Fix {
            tied: false,
            edits,
            // Of two keys that lead there, nothing says which.
            applicability: if rivals { Applicability::Suggested } else { Applicability::Likely },
            why: format!("`{}` hangs together with the tables before it by {}", table.name, words.join(", ")),
        },
        doubt: 1 + 2 * path.len() + 2 * usize::from(inferred) + usize::from(rivals),
    });
}

/// A query without FROM speaks of columns: one table has them all, and the query reads from it.
pub(super) fn missing_from(reference: &Reference<'_>, subject: &Subject<'_>, ways: &mut Vec<Way>) {
    let (Some(schema), facts) = (subject.context.schema, subject.facts) else { return };
    let block = &facts.blocks[reference.block];
    if !block.sources.is_empty() || block.from.line != 0 || block.parent.is_some() {
        return;
    }
    let Some(end) = mend::clause_end(subject, block.place.start, mend::AFTER_FROM) else { return };
    let missing: Vec<&Reference<'_>> =
        facts.references.iter().filter(|r| r.block == reference.block && is_missing(&r.meaning)).collect();
    // One name before all columns, which no table has, is what the table was to be called.
    let alias = reference.qualifier.map(|q| q.value.as_str()).filter(|q| schema.table(q).is_none());
    let alias = alias.filter(|a| missing.iter().all(|r| r.qualifier.is_some_and(|q| q.value.eq_ignore_ascii_case(a))));
    for table in schema.tables() {
        let held = |r: &&Reference<'_>| {
            table.column(&r.name.value).is_some()
                && (alias.is_some() || r.qualifier.is_none_or(|q| q.value.eq_ignore_ascii_case(&table.name)))
        };
        let others = missing.iter().filter(|r| !held(r)).count();
        if !held(&reference) {
            continue;
        }
        let asked = usize::from(mend::asked_for(subject, &table.name));
        let called = alias.map_or(String::new(), |a| format!(" AS {}", subject.context.dialect.quoted(a)));
        ways.push(Way {
            fix: mend::replace(
                Span::new(end, end),
                format!(" FROM {}{called}", subject.context.dialect.quoted(&table.name)),
                Applicability::Likely,
                format!("the query names columns and no table, and `{}` has them", table.name),
            ),
            doubt: 4 + 3 * others - 2 * asked,
        });
    }
}
