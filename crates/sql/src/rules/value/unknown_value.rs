#![doc = include_str!("unknown_value.md")]

use sqlparser::ast::BinaryOperator;

use super::{ComparedText, compared_texts};
use crate::finding::{Applicability, Finding, Severity};
use crate::fixes;
use crate::resolve::spans::expression_span;
use crate::review::LiteralFilter;
use crate::rule::{ErrorType, Rule, RuleContext};
use crate::rule_group::RuleGroup;
use crate::schema::value_index::{SimilarValue, ValueIndex, ValueMatchKind};

/// The `unknown-value` rule, described in the module documentation.
pub static RULE: Rule = Rule {
    code: "unknown-value",
    group: RuleGroup::Value,
    error_type: ErrorType::Unknown,
    page: include_str!("unknown_value.md"),
    check,
    ..Rule::DEFAULTS
};

/// Maximum number of values that are shown to a reader.
const MAX_SHOWN_VALUES: usize = 5;

fn check(ctx: &RuleContext<'_>, out: &mut Vec<Finding>) {
    let Some(values) = ctx.context.schema.and_then(|schema| schema.value_index()) else { return };
    for comparison in compared_texts(ctx) {
        let equals = matches!(*comparison.operation.operator, BinaryOperator::Eq | BinaryOperator::NotEq);
        let table = comparison.table.full_name();
        if !equals || comparison.operation.is_between_bound || comparison.text.trim().is_empty() {
            continue;
        }
        if values.is_absent(&table, &comparison.column.name, comparison.text) {
            out.push(unknown_value_finding(ctx, values, &table, &comparison));
        }
    }
}

fn unknown_value_finding(
    ctx: &RuleContext<'_>,
    values: &ValueIndex,
    table: &str,
    comparison: &ComparedText<'_>,
) -> Finding {
    let (column, text) = (&comparison.column.name, comparison.text);
    let matches = values.similar_values(table, column, text, MAX_SHOWN_VALUES);
    let span = expression_span(ctx.query, comparison.node);
    let best = matches.first().map(|n| format!(" (did you mean '{}'?)", n.value)).unwrap_or_default();
    let message = format!("`{}.{column}` never holds '{text}'{best}", comparison.table.name);
    // If the column itself has spaces around the value, the rows are odd and not the query.
    let padded = matches.iter().any(|n| n.value.trim() != n.value && n.value.trim() == text.trim());
    let severity = if padded { Severity::Info } else { Severity::Warning };
    let mut finding = Finding::new(RULE.code, severity, span, text, message);
    if let [only] = matches.as_slice() {
        finding.suggestion = Some(quoted_literal(&only.value));
    }
    let elsewhere: Vec<String> = values
        .columns_with_value(text)
        .iter()
        .filter(|other| other.table != table || other.column != *column)
        .map(|other| format!("{}.{}", other.table, other.column))
        .take(3)
        .collect();
    let shown: Vec<String> = if matches.is_empty() {
        values
            .column(table, column)
            .map(|column| column.values.iter().take(MAX_SHOWN_VALUES).map(|v| quoted_literal(v)).collect())
            .unwrap_or_default()
    } else {
        matches.iter().map(|n| quoted_literal(&n.value)).collect()
    };
    let so = if matches.is_empty() { "Some of its values" } else { "Like it" };
    let mut advice = format!("{}.{column} never holds '{text}'. {so}: {}.", comparison.table.name, shown.join(", "));
    if !elsewhere.is_empty() {
        advice.push_str(&format!(" It is a value of {}.", elsewhere.join(", ")));
        finding.evidence.push(format!("{} holds it", elsewhere.join(", ")));
    }
    finding.evidence.push(format!("{so}: {}", shown.join(", ")));
    let keeps_rows_out = *comparison.operation.operator != BinaryOperator::Eq || comparison.operation.is_negated;
    if keeps_rows_out {
        let (table, column) = literal_filter(table, column, text).quoted_names(ctx.context.dialect);
        let literal = ctx.context.dialect.quote_string(text);
        finding = finding.with_proof(format!("SELECT 1 FROM {table} WHERE {column} = {literal} LIMIT 1"), false);
    }
    for (at, candidate) in matches.iter().enumerate() {
        let applicability = match value_applicability(&matches, at, !elsewhere.is_empty()) {
            // A condition that excludes rows holds for every row if its value does not occur:
            // another case is certainly meant, a similar word may not be.
            Applicability::Likely if keeps_rows_out => Applicability::Suggested,
            sure => sure,
        };
        let why = match candidate.kind {
            ValueMatchKind::CaseInsensitive => format!("`{column}` spells '{text}' as '{}'", candidate.value),
            _ => format!("`{column}` holds '{}', which is like '{text}'", candidate.value),
        };
        let literal = ctx.context.dialect.quote_string(&candidate.value);
        finding.fixes.push(fixes::replace(span, literal, applicability, why));
    }
    finding.with_advice(advice)
}

/// Returns the applicability of a similar value.
///
/// Only a difference in case, accents or spaces preserves the meaning, and only if a single value
/// differs by no more.
fn value_applicability(matches: &[SimilarValue], at: usize, elsewhere: bool) -> Applicability {
    let same = matches.iter().filter(|n| n.kind == ValueMatchKind::CaseInsensitive).count();
    match matches[at].kind {
        ValueMatchKind::CaseInsensitive if same == 1 => Applicability::Safe,
        ValueMatchKind::Normalized | ValueMatchKind::Typo if matches.len() == 1 && !elsewhere => Applicability::Likely,
        ValueMatchKind::CaseInsensitive
        | ValueMatchKind::Normalized
        | ValueMatchKind::Typo
        | ValueMatchKind::WordSubset => Applicability::Suggested,
    }
}

fn literal_filter(table: &str, column: &str, value: &str) -> LiteralFilter {
    LiteralFilter { table: table.into(), column: column.into(), value: value.into() }
}

fn quoted_literal(value: &str) -> String {
    format!("'{}'", value.replace('\'', "''"))
}
