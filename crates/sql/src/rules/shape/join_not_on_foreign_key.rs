#![doc = include_str!("join_not_on_foreign_key.md")]

use sqlparser::ast::BinaryOperator;

use crate::finding::{Applicability, Finding, Severity};
use crate::fixes;
use crate::resolve::SourceId;
use crate::resolve::spans::expression_span;
use crate::rule::{ErrorType, Rule, RuleContext};
use crate::rule_group::RuleGroup;
use crate::schema::{ForeignKey, Table};

/// The `join-not-on-foreign-key` rule, described in the module documentation.
pub static RULE: Rule = Rule {
    code: "join-not-on-foreign-key",
    group: RuleGroup::Shape,
    error_type: ErrorType::Unknown,
    page: include_str!("join_not_on_foreign_key.md"),
    check,
    ..Rule::DEFAULTS
};

/// A column of a stored table.
#[derive(Clone, Copy)]
struct JoinColumn<'a> {
    source: SourceId,
    table: &'a Table,
    column: &'a str,
}

fn check(ctx: &RuleContext<'_>, out: &mut Vec<Finding>) {
    let joins: Vec<_> = joined_columns(ctx).collect();
    for &(span, one, other) in &joins {
        // If the keys are compared as well, this only narrows the join.
        let same = |a: JoinColumn<'_>, b: JoinColumn<'_>| {
            (a.source, b.source) == (one.source, other.source) || (b.source, a.source) == (one.source, other.source)
        };
        if joins.iter().any(|(_, a, b)| same(*a, *b) && is_foreign_key_pair(*a, *b)) {
            continue;
        }
        let Some(why) = mismatch_reason(one, other) else { continue };
        let (a, b) = (format!("{}.{}", one.table.name, one.column), format!("{}.{}", other.table.name, other.column));
        let finding = Finding::new(
            RULE.code,
            Severity::Warning,
            span,
            &a,
            format!("`{a}` and `{b}` do not mean the same: {why}"),
        )
        .with_advice(format!("{a} and {b} do not mean the same: {why}. Join along the foreign keys."));
        out.push(with_key_join(finding, one, other, ctx));
    }
}

/// Adds a fix that joins on the declared key between the two tables.
///
/// Only if there is exactly one, and both columns are keys of something else: rows may well be
/// meant to share a date, a price or a name.
fn with_key_join(finding: Finding, one: JoinColumn<'_>, other: JoinColumn<'_>, ctx: &RuleContext<'_>) -> Finding {
    if !is_key(one) || !is_key(other) {
        return finding;
    }
    let mut keys = [(one, other), (other, one)].into_iter().flat_map(|(from, to)| {
        let between = move |key: &&ForeignKey| {
            key.table.eq_ignore_ascii_case(&to.table.name) && key.columns.len() == 1 && key.references.len() == 1
        };
        declared_keys(from.table).filter(between).map(move |key| (from, to, key))
    });
    let (Some((from, to, key)), None) = (keys.next(), keys.next()) else { return finding };
    // A query that compares the key as well, in any way, accounts for it.
    let column = |place: JoinColumn<'_>, name: &str| {
        place.table.columns.iter().position(|c| c.name.eq_ignore_ascii_case(name)).map(|index| (place.source, index))
    };
    let own = column(from, &key.columns[0]);
    if ctx.resolution.operations.iter().any(|o| own.is_some() && (o.left.column == own || o.right.column == own)) {
        return finding;
    }
    let sides = (
        fixes::qualified_column(ctx, from.source, &key.columns[0]),
        fixes::qualified_column(ctx, to.source, &key.references[0]),
    );
    let (Some(left), Some(right)) = sides else { return finding };
    let dialect = ctx.context.dialect;
    let name = |table: &Table| {
        let parts: Vec<String> = table.full_name().split('.').map(|part| dialect.quote_identifier(part)).collect();
        parts.join(".")
    };
    let proof = format!(
        "SELECT 1 FROM {} WHERE {} IN (SELECT {} FROM {}) LIMIT 1",
        name(from.table),
        dialect.quote_identifier(&key.columns[0]),
        dialect.quote_identifier(&key.references[0]),
        name(to.table)
    );
    let why = format!("`{}.{}` is the declared key of `{}`", from.table.name, key.columns[0], to.table.name);
    let fix = fixes::replace(finding.span, format!("{left} = {right}"), Applicability::Safe, why);
    finding.with_proof(proof, true).with_fix(fix)
}

/// Returns whether a column is the whole primary key of its table, or a declared foreign key.
fn is_key(place: JoinColumn<'_>) -> bool {
    let is_primary = matches!(place.table.primary_key.as_slice(), [key] if key.eq_ignore_ascii_case(place.column));
    is_primary || declared_keys(place.table).any(|key| is_key_column(key, place.column))
}

/// Returns the columns of two different stored tables that a join or WHERE equates.
fn joined_columns<'s>(ctx: &'s RuleContext<'s>) -> impl Iterator<Item = (crate::Span, JoinColumn<'s>, JoinColumn<'s>)> {
    let resolution = ctx.resolution;
    let place = move |(source, index): (SourceId, usize)| {
        let table = resolution.sources[source].table()?;
        Some(JoinColumn { source, table, column: &table.columns.get(index)?.name })
    };
    let equal = resolution.operations.iter().filter(|o| *o.operator == BinaryOperator::Eq && o.is_conjunct && !o.is_in);
    equal.filter_map(move |o| {
        let (one, other) = (place(o.left.column?)?, place(o.right.column?)?);
        let span = expression_span(ctx.query, o.left_node).join(expression_span(ctx.query, o.right_node));
        let same_block = resolution.sources[one.source].block == resolution.sources[other.source].block;
        (same_block && one.table.full_name() != other.table.full_name()).then_some((span, one, other))
    })
}

/// Returns the reason that two equated columns do not belong together; `None` if they may.
fn mismatch_reason(one: JoinColumn<'_>, other: JoinColumn<'_>) -> Option<String> {
    if is_foreign_key_pair(one, other) || references_same_table(one, other) {
        return None;
    }
    let named_alike = one.column.eq_ignore_ascii_case(other.column);
    for from in [one, other] {
        if let Some(key) = declared_keys(from.table).find(|key| is_key_column(key, from.column) && !named_alike) {
            return Some(format!("`{}` points at `{}`", from.column, key.table));
        }
    }
    for (from, to) in [(one, other), (other, one)] {
        let between = |key: &&ForeignKey| key.table.eq_ignore_ascii_case(&to.table.name) && key.columns.len() == 1;
        if let Some(key) = declared_keys(from.table).find(between).filter(|_| !named_alike) {
            return Some(format!("the tables are linked by `{}.{}`", from.table.name, key.columns[0]));
        }
    }
    // Rows with the same number in two tables that each have their own keys have nothing else in
    // common.
    let is_key =
        |p: JoinColumn<'_>| matches!(p.table.primary_key.as_slice(), [key] if key.eq_ignore_ascii_case(p.column));
    let plain = !named_alike || one.column.eq_ignore_ascii_case("id");
    let keyed = |p: JoinColumn<'_>| declared_keys(p.table).next().is_some();
    (is_key(one) && is_key(other) && plain && (keyed(one) || keyed(other)))
        .then(|| "each is the number of a row of its own table".to_string())
}

fn declared_keys(table: &Table) -> impl Iterator<Item = &ForeignKey> {
    table.foreign_keys.iter().filter(|key| !key.inferred)
}

fn is_key_column(key: &ForeignKey, column: &str) -> bool {
    matches!(key.columns.as_slice(), [only] if only.eq_ignore_ascii_case(column))
}

/// Returns whether a foreign key, declared or inferred, leads from one column to the other.
fn is_foreign_key_pair(one: JoinColumn<'_>, other: JoinColumn<'_>) -> bool {
    [(one, other), (other, one)].into_iter().any(|(from, to)| {
        from.table.foreign_keys.iter().any(|key| {
            let pairs = key.columns.iter().zip(&key.references);
            key.table.eq_ignore_ascii_case(&to.table.name)
                && pairs
                    .into_iter()
                    .any(|(a, b)| a.eq_ignore_ascii_case(from.column) && b.eq_ignore_ascii_case(to.column))
        })
    })
}

/// Returns whether both columns identify a row of the same table: two foreign keys to it, or a
/// foreign key and the key that it refers to.
fn references_same_table(one: JoinColumn<'_>, other: JoinColumn<'_>) -> bool {
    let targets = |p: JoinColumn<'_>| -> Vec<String> {
        let keys = p.table.foreign_keys.iter().filter(|key| is_key_column(key, p.column));
        let own = matches!(p.table.primary_key.as_slice(), [key] if key.eq_ignore_ascii_case(p.column));
        let own = own.then(|| p.table.name.to_lowercase());
        keys.map(|key| key.table.to_lowercase()).chain(own).collect()
    };
    let there = targets(other);
    targets(one).iter().any(|target| there.contains(target))
}
