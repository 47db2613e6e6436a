#![doc = include_str!("off_key_join.md")]

use sqlparser::ast::BinaryOperator;

use crate::finding::{Applicability, Finding, Severity};
use crate::mend;
use crate::rules::types::span_of;
use crate::rules::{Rule, Subject};
use crate::schema::{ForeignKey, Table};
use crate::scope::SourceId;

/// See the page.
pub static RULE: Rule = Rule { code: "off-key-join", group: "shape", page: include_str!("off_key_join.md"), check };

/// A column of a stored table.
#[derive(Clone, Copy)]
struct Place<'a> {
    source: SourceId,
    table: &'a Table,
    column: &'a str,
}

fn check(subject: &Subject<'_>, out: &mut Vec<Finding>) {
    let joins: Vec<_> = joined(subject).collect();
    for &(span, one, other) in &joins {
        // Where the keys are compared as well, this only narrows the join.
        let same = |a: Place<'_>, b: Place<'_>| {
            (a.source, b.source) == (one.source, other.source) || (b.source, a.source) == (one.source, other.source)
        };
        if joins.iter().any(|(_, a, b)| same(*a, *b) && linked(*a, *b)) {
            continue;
        }
        let Some(why) = off_key(one, other) else { continue };
        let (a, b) = (format!("{}.{}", one.table.name, one.column), format!("{}.{}", other.table.name, other.column));
        let finding = Finding::new(
            RULE.code,
            Severity::Warning,
            span,
            &a,
            format!("`{a}` and `{b}` do not mean the same: {why}"),
        )
        .advise(format!("{a} and {b} do not mean the same: {why}. Join along the foreign keys."));
        out.push(with_key(finding, one, other, subject));
    }
}

/// Adds the join by the one declared key between the two tables, if there is exactly one and both columns are keys of something
/// else: a date, a price or a name may well be what the rows are to have in common.
fn with_key(finding: Finding, one: Place<'_>, other: Place<'_>, subject: &Subject<'_>) -> Finding {
    if !is_key(one) || !is_key(other) {
        return finding;
    }
    let mut keys = [(one, other), (other, one)].into_iter().flat_map(|(from, to)| {
        let between = move |key: &&ForeignKey| {
            key.table.eq_ignore_ascii_case(&to.table.name) && key.columns.len() == 1 && key.references.len() == 1
        };
        declared(from.table).filter(between).map(move |key| (from, to, key))
    });
    let (Some((from, to, key)), None) = (keys.next(), keys.next()) else { return finding };
    // Where the query compares the key as well, in whatever way, it knows of it.
    let column = |place: Place<'_>, name: &str| {
        place.table.columns.iter().position(|c| c.name.eq_ignore_ascii_case(name)).map(|index| (place.source, index))
    };
    let own = column(from, &key.columns[0]);
    if subject.facts.operations.iter().any(|o| own.is_some() && (o.left.column == own || o.right.column == own)) {
        return finding;
    }
    let sides = (
        mend::qualified(subject, from.source, &key.columns[0]),
        mend::qualified(subject, to.source, &key.references[0]),
    );
    let (Some(left), Some(right)) = sides else { return finding };
    let dialect = subject.context.dialect;
    let name = |table: &Table| {
        let parts: Vec<String> = table.full_name().split('.').map(|part| dialect.quoted(part)).collect();
        parts.join(".")
    };
    let proof = format!(
        "SELECT 1 FROM {} WHERE {} IN (SELECT {} FROM {}) LIMIT 1",
        name(from.table),
        dialect.quoted(&key.columns[0]),
        dialect.quoted(&key.references[0]),
        name(to.table)
    );
    let why = format!("`{}.{}` is the declared key of `{}`", from.table.name, key.columns[0], to.table.name);
    let fix = mend::replace(finding.span, format!("{left} = {right}"), Applicability::Safe, why);
    finding.prove(proof, true).mend(fix)
}

/// Whether a column is the whole primary key of its table, or declared to refer to another.
fn is_key(place: Place<'_>) -> bool {
    let is_primary = matches!(place.table.primary_key.as_slice(), [key] if key.eq_ignore_ascii_case(place.column));
    is_primary || declared(place.table).any(|key| is_of(key, place.column))
}

/// Columns of two different stored tables that a join or WHERE makes equal.
fn joined<'s>(subject: &'s Subject<'s>) -> impl Iterator<Item = (crate::Span, Place<'s>, Place<'s>)> {
    let facts = subject.facts;
    let place = move |(source, index): (SourceId, usize)| {
        let table = facts.sources[source].table()?;
        Some(Place { source, table, column: &table.columns.get(index)?.name })
    };
    let equal = facts.operations.iter().filter(|o| *o.operator == BinaryOperator::Eq && o.required && !o.is_in);
    equal.filter_map(move |o| {
        let (one, other) = (place(o.left.column?)?, place(o.right.column?)?);
        let span = span_of(subject.query, o.left_node).join(span_of(subject.query, o.right_node));
        let same_block = facts.sources[one.source].block == facts.sources[other.source].block;
        (same_block && one.table.full_name() != other.table.full_name()).then_some((span, one, other))
    })
}

/// Why two columns that are made equal do not belong together; nothing if they may.
fn off_key(one: Place<'_>, other: Place<'_>) -> Option<String> {
    if linked(one, other) || leads_to_the_same(one, other) {
        return None;
    }
    let named_alike = one.column.eq_ignore_ascii_case(other.column);
    for from in [one, other] {
        if let Some(key) = declared(from.table).find(|key| is_of(key, from.column) && !named_alike) {
            return Some(format!("`{}` points at `{}`", from.column, key.table));
        }
    }
    for (from, to) in [(one, other), (other, one)] {
        let between = |key: &&ForeignKey| key.table.eq_ignore_ascii_case(&to.table.name) && key.columns.len() == 1;
        if let Some(key) = declared(from.table).find(between).filter(|_| !named_alike) {
            return Some(format!("the tables are linked by `{}.{}`", from.table.name, key.columns[0]));
        }
    }
    // Rows of the same number in two tables that each have keys of their own have nothing else in common.
    let is_key = |p: Place<'_>| matches!(p.table.primary_key.as_slice(), [key] if key.eq_ignore_ascii_case(p.column));
    let plain = !named_alike || one.column.eq_ignore_ascii_case("id");
    let keyed = |p: Place<'_>| declared(p.table).next().is_some();
    (is_key(one) && is_key(other) && plain && (keyed(one) || keyed(other)))
        .then(|| "each is the number of a row of its own table".to_string())
}

fn declared(table: &Table) -> impl Iterator<Item = &ForeignKey> {
    table.foreign_keys.iter().filter(|key| !key.inferred)
}

fn is_of(key: &ForeignKey, column: &str) -> bool {
    matches!(key.columns.as_slice(), [only] if only.eq_ignore_ascii_case(column))
}

/// Whether a foreign key, declared or inferred, goes from the one to the other.
fn linked(one: Place<'_>, other: Place<'_>) -> bool {
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

/// Whether both stand for a row of the same table: two that point at it, or one that points where the other does.
fn leads_to_the_same(one: Place<'_>, other: Place<'_>) -> bool {
    let targets = |p: Place<'_>| -> Vec<String> {
        let keys = p.table.foreign_keys.iter().filter(|key| is_of(key, p.column));
        let own = matches!(p.table.primary_key.as_slice(), [key] if key.eq_ignore_ascii_case(p.column));
        let own = own.then(|| p.table.name.to_lowercase());
        keys.map(|key| key.table.to_lowercase()).chain(own).collect()
    };
    let there = targets(other);
    targets(one).iter().any(|target| there.contains(target))
}
