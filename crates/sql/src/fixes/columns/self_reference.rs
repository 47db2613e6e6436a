//! Fixes for tables with a foreign key to themselves: the manager of an employee is an employee.

use crate::finding::{Applicability, Edit, Fix, Span};
use crate::fixes::columns::scored_fix::ScoredFix;
use crate::fixes::score::WEIGHTS;
use crate::fixes::{self, qualified_column};
use crate::resolve::{BlockId, ColumnReference, SourceId};
use crate::rule::RuleContext;
use crate::schema::Table;

/// Returns the only foreign key column that references the column `at` of the same table.
fn self_referencing_key<'t>(table: &'t Table, at: &str) -> Option<&'t str> {
    let mut keys = table.foreign_keys.iter().filter_map(|key| {
        let ([own], [there]) = (key.columns.as_slice(), key.references.as_slice()) else { return None };
        let itself = key.table.eq_ignore_ascii_case(&table.name) && there.eq_ignore_ascii_case(at);
        itself.then_some(own.as_str())
    });
    keys.next().filter(|_| keys.next().is_none())
}

/// Suggests the self-referencing foreign key for a missing column in a self-join.
pub(crate) fn suggest_self_reference(
    reference: &ColumnReference<'_>,
    owner: Option<SourceId>,
    ctx: &RuleContext<'_>,
    scored_fixes: &mut Vec<ScoredFix>,
) {
    let resolution = ctx.resolution;
    let (Some(owner), Some((other, index))) = (owner, fixes::compared_column(ctx, reference)) else { return };
    let (Some(table), Some(there)) = (resolution.sources[owner].table(), resolution.sources[other].table()) else {
        return;
    };
    if other == owner || !std::ptr::eq(table, there) {
        return;
    }
    let Some(at) = table.columns.get(index) else { return };
    let Some(key) = self_referencing_key(table, &at.name) else { return };
    let Some(text) = qualified_column(ctx, owner, key) else { return };
    let why = format!("`{key}` of `{}` references the `{}` of another row", table.name, at.name);
    scored_fixes.push(ScoredFix {
        fix: fixes::replace(ctx.query.span(reference.span), text, Applicability::Likely, why),
        penalty: WEIGHTS.self_reference,
    });
}

/// Returns whether a self-join would compare the primary key with itself, joining a row to itself.
pub(crate) fn is_same_row(
    reference: &ColumnReference<'_>,
    source: SourceId,
    column: &str,
    ctx: &RuleContext<'_>,
) -> bool {
    let resolution = ctx.resolution;
    let Some((other, index)) = fixes::compared_column(ctx, reference) else { return false };
    let (Some(table), Some(there)) = (resolution.sources[source].table(), resolution.sources[other].table()) else {
        return false;
    };
    let is_key = matches!(table.primary_key.as_slice(), [key] if key.eq_ignore_ascii_case(column));
    let same = there.columns.get(index).is_some_and(|c| c.name.eq_ignore_ascii_case(column));
    other != source && std::ptr::eq(table, there) && is_key && same
}

/// Returns the table of an undefined alias, by the foreign key that is compared with its column.
pub(crate) fn foreign_key_target<'s>(
    alias: &str,
    block: BlockId,
    ctx: &RuleContext<'s>,
) -> Option<ForeignKeyTarget<'s>> {
    let (resolution, schema) = (ctx.resolution, ctx.context.schema?);
    resolution.references.iter().filter(|r| r.block == block).find_map(|r| {
        r.qualifier.filter(|q| q.value.eq_ignore_ascii_case(alias))?;
        let (source, index) = fixes::compared_column(ctx, r)?;
        let column = resolution.sources[source].table()?.columns.get(index)?.name.as_str();
        let key = resolution.sources[source].table()?.foreign_keys.iter().find(|key| {
            let (own, there) = (key.columns.as_slice(), key.references.as_slice());
            matches!((own, there), ([own], [there])
                if own.eq_ignore_ascii_case(column) && there.eq_ignore_ascii_case(&r.name.value))
        })?;
        Some(ForeignKeyTarget {
            source,
            column,
            table: schema.table(&key.table)?,
            referenced_column: r.name.value.as_str(),
        })
    })
}

/// Table and column that a foreign key of the query references.
pub(crate) struct ForeignKeyTarget<'s> {
    source: SourceId,
    column: &'s str,
    pub table: &'s Table,
    referenced_column: &'s str,
}

/// Joins the table once more under an undefined alias.
///
/// Applies if a self-referencing foreign key is compared with a column of that alias.
pub(crate) fn add_self_join(
    reference: &ColumnReference<'_>,
    alias: &str,
    ctx: &RuleContext<'_>,
    scored_fixes: &mut Vec<ScoredFix>,
) {
    let resolution = ctx.resolution;
    let Some(ForeignKeyTarget { source: from, column, table, referenced_column: there }) =
        foreign_key_target(alias, reference.block, ctx)
    else {
        return;
    };
    let itself = resolution.sources[from].table().is_some_and(|own| std::ptr::eq(own, table));
    if !itself || resolution.sources[from].block != reference.block {
        return;
    }
    let dialect = ctx.context.dialect;
    let (Some(end), Some(left)) = (fixes::from_clause_end(ctx, reference.block), qualified_column(ctx, from, column))
    else {
        return;
    };
    let (name, called, there) =
        (dialect.quote_identifier(&table.name), dialect.quote_identifier(alias), dialect.quote_identifier(there));
    let text = format!(" JOIN {name} AS {called} ON {left} = {called}.{there}");
    let why = format!("`{column}` references another row of `{}`", table.name);
    let edits = vec![Edit { span: Span::new(end, end), text }];
    scored_fixes.push(ScoredFix {
        fix: Fix { edits, applicability: Applicability::Likely, why, is_tied_with_previous: false },
        penalty: WEIGHTS.missing_self_join,
    });
}
