//! Evidence from database values for names that do not resolve.

use sqlparser::ast::{BinaryOperator, Expr};

use crate::finding::Applicability;
use crate::fixes::columns::scored_fix::ScoredFix;
use crate::fixes::score::WEIGHTS;
use crate::fixes::{self, qualified_column};
use crate::resolve::{ColumnReference, ExprInfo, SourceId, expr_span, literal_text};
use crate::rule::RuleContext;
use crate::schema::{Column, Table};
use crate::text::similarity::{identifier_words, is_similar};

/// Returns the operands that a reference is compared with by `=`, with their nodes.
fn compared_values<'s>(
    reference: &'s ColumnReference<'_>,
    ctx: &'s RuleContext<'_>,
) -> impl Iterator<Item = (ExprInfo<'s>, &'s Expr)> {
    ctx.resolution.operations.iter().filter(|o| *o.operator == BinaryOperator::Eq).filter_map(|o| {
        let is_reference = |node| expr_span(node) == reference.span;
        match (is_reference(o.left_node), is_reference(o.right_node)) {
            (true, false) => Some((o.right, o.right_node)),
            (false, true) => Some((o.left, o.left_node)),
            _ => None,
        }
    })
}

/// Returns the text literal that a reference is compared with.
fn compared_literal<'s>(reference: &'s ColumnReference<'_>, ctx: &'s RuleContext<'_>) -> Option<&'s str> {
    compared_values(reference, ctx).find_map(|(value, node)| literal_text(value, node))
}

/// Quotes a name that is a value of the column it is compared with: `status = cancelled`.
pub(crate) fn suggest_quoted_value(
    reference: &ColumnReference<'_>,
    ctx: &RuleContext<'_>,
    scored_fixes: &mut Vec<ScoredFix>,
) {
    let resolution = ctx.resolution;
    let Some(values) = ctx.context.schema.and_then(|schema| schema.value_index()) else { return };
    if reference.qualifier.is_some() {
        return;
    }
    let owner = compared_values(reference, ctx).find_map(|(value, _)| value.column);
    let Some((source, index)) = owner else { return };
    let Some(table) = resolution.sources[source].table() else { return };
    let Some(column) = table.columns.get(index) else { return };
    let name = &reference.name.value;
    let Some(held) = values.column(&table.name, &column.name).and_then(|held| held.values.iter().find(|v| *v == name))
    else {
        return;
    };
    let why = format!("`{}` contains the quoted value '{held}'", column.name);
    let text = format!("'{}'", held.replace('\'', "''"));
    scored_fixes.push(ScoredFix {
        fix: fixes::replace(ctx.query.span(reference.span), text, Applicability::Safe, why),
        penalty: WEIGHTS.quoted_value,
    });
}

/// Suggests the only visible column that holds the literal compared with the missing column.
pub(crate) fn suggest_column_with_value(
    reference: &ColumnReference<'_>,
    owner: Option<SourceId>,
    ctx: &RuleContext<'_>,
    scored_fixes: &mut Vec<ScoredFix>,
) {
    let resolution = ctx.resolution;
    let (Some(values), Some(value)) =
        (ctx.context.schema.and_then(|schema| schema.value_index()), compared_literal(reference, ctx))
    else {
        return;
    };
    let sources = &resolution.blocks[reference.block].sources;
    let mut found = values.columns_with_value(value).into_iter().flat_map(|held| {
        let of =
            |s: &&SourceId| resolution.sources[**s].table().is_some_and(|t| t.name.eq_ignore_ascii_case(&held.table));
        sources.iter().filter(of).map(move |&source| (source, held.column.as_str()))
    });
    let (Some((source, column)), None) = (found.next(), found.next()) else { return };
    if owner.is_some_and(|owner| owner != source) {
        return;
    }
    let Some(text) = qualified_column(ctx, source, column) else { return };
    let why = format!("`{column}` is the only column here that contains '{value}'");
    scored_fixes.push(ScoredFix {
        fix: fixes::replace(ctx.query.span(reference.span), text, Applicability::Likely, why),
        penalty: WEIGHTS.column_with_value,
    });
}

/// Returns the only column of a table that holds the compared literal.
///
/// The name must also match the table or the column: `department = 'Sales'`, `destination_city =
/// 'Munich'`.
pub(crate) fn column_with_value<'t>(
    reference: &ColumnReference<'_>,
    table: &'t Table,
    ctx: &RuleContext<'_>,
) -> Option<&'t Column> {
    let values = ctx.context.schema?.value_index()?;
    let value = compared_literal(reference, ctx)?;
    let name = reference.name.value.as_str();
    let words = identifier_words(name);
    let mut found =
        values.columns_with_value(value).into_iter().filter(|held| held.table.eq_ignore_ascii_case(&table.name));
    let held = found.next().filter(|_| found.next().is_none())?;
    let of_table = is_similar(name, &table.name, WEIGHTS.min_same_name_similarity);
    let of_column = words.len() > 1
        && words.last().is_some_and(|last| is_similar(last, &held.column, WEIGHTS.min_same_name_similarity));
    (of_table || of_column).then(|| table.column(&held.column)).flatten()
}
