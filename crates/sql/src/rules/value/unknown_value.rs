#![doc = include_str!("unknown_value.md")]

use sqlparser::ast::BinaryOperator;

use super::{Compared, compared};
use crate::finding::{Applicability, Finding, Severity};
use crate::mend;
use crate::review::Stated;
use crate::rules::types::span_of;
use crate::rules::{Rule, Subject};
use crate::values::{Alike, Near, Values};

/// See the page.
pub static RULE: Rule = Rule { code: "unknown-value", group: "value", page: include_str!("unknown_value.md"), check };

/// Values that a reader is shown.
const SHOWN: usize = 5;

fn check(subject: &Subject<'_>, out: &mut Vec<Finding>) {
    let Some(values) = subject.context.schema.and_then(|schema| schema.values()) else { return };
    for one in compared(subject) {
        let equals = matches!(*one.operation.operator, BinaryOperator::Eq | BinaryOperator::NotEq);
        let table = one.table.full_name();
        if !equals || one.operation.is_end || one.text.trim().is_empty() {
            continue;
        }
        if values.absent(&table, &one.column.name, one.text) {
            out.push(finding(subject, values, &table, &one));
        }
    }
}

fn finding(subject: &Subject<'_>, values: &Values, table: &str, one: &Compared<'_>) -> Finding {
    let (column, text) = (&one.column.name, one.text);
    let near = values.near(table, column, text, SHOWN);
    let span = span_of(subject.query, one.node);
    let best = near.first().map(|n| format!(" (did you mean '{}'?)", n.value)).unwrap_or_default();
    let message = format!("`{}.{column}` never holds '{text}'{best}", one.table.name);
    // Where the column itself has spaces around the value, the rows are odd and not the query.
    let padded = near.iter().any(|n| n.value.trim() != n.value && n.value.trim() == text.trim());
    let severity = if padded { Severity::Info } else { Severity::Warning };
    let mut finding = Finding::new(RULE.code, severity, span, text, message);
    if let [only] = near.as_slice() {
        finding.suggestion = Some(quoted(&only.value));
    }
    let elsewhere: Vec<String> = values
        .holding(text)
        .iter()
        .filter(|held| held.table != table || held.column != *column)
        .map(|held| format!("{}.{}", held.table, held.column))
        .take(3)
        .collect();
    let shown: Vec<String> = if near.is_empty() {
        values
            .of(table, column)
            .map(|held| held.values.iter().take(SHOWN).map(|v| quoted(v)).collect())
            .unwrap_or_default()
    } else {
        near.iter().map(|n| quoted(&n.value)).collect()
    };
    let so = if near.is_empty() { "Some of its values" } else { "Like it" };
    let mut advice = format!("{}.{column} never holds '{text}'. {so}: {}.", one.table.name, shown.join(", "));
    if !elsewhere.is_empty() {
        advice.push_str(&format!(" It is a value of {}.", elsewhere.join(", ")));
        finding.evidence.push(format!("{} holds it", elsewhere.join(", ")));
    }
    finding.evidence.push(format!("{so}: {}", shown.join(", ")));
    let keeps_rows_out = *one.operation.operator != BinaryOperator::Eq || one.operation.negated;
    if keeps_rows_out {
        let (table, column) = stated(table, column, text).place(subject.context.dialect);
        let literal = subject.context.dialect.text(text);
        finding = finding.prove(format!("SELECT 1 FROM {table} WHERE {column} = {literal} LIMIT 1"), false);
    }
    for (at, candidate) in near.iter().enumerate() {
        let sure = match sureness(&near, at, !elsewhere.is_empty()) {
            // A condition that keeps rows out is true of every row when its value is nowhere: another case is certainly meant, a
            // similar word may not be.
            Applicability::Likely if keeps_rows_out => Applicability::Suggested,
            sure => sure,
        };
        let why = match candidate.alike {
            Alike::Same => format!("`{column}` spells '{text}' as '{}'", candidate.value),
            _ => format!("`{column}` holds '{}', which is like '{text}'", candidate.value),
        };
        let literal = subject.context.dialect.text(&candidate.value);
        finding.fixes.push(mend::replace(span, literal, sure, why));
    }
    finding.advise(advice)
}

/// Only a difference of case, accents or spaces is none of meaning, and only if one value differs by no more.
fn sureness(near: &[Near], at: usize, elsewhere: bool) -> Applicability {
    let same = near.iter().filter(|n| n.alike == Alike::Same).count();
    match near[at].alike {
        Alike::Same if same == 1 => Applicability::Safe,
        Alike::Folded | Alike::Slip if near.len() == 1 && !elsewhere => Applicability::Likely,
        Alike::Same | Alike::Folded | Alike::Slip | Alike::Part => Applicability::Suggested,
    }
}

fn stated(table: &str, column: &str, value: &str) -> Stated {
    Stated { table: table.into(), column: column.into(), value: value.into() }
}

fn quoted(value: &str) -> String {
    format!("'{}'", value.replace('\'', "''"))
}
