#![doc = include_str!("date_difference.md")]

use sqlparser::ast::BinaryOperator;

use crate::dialect::phrase::Said;
use crate::dialect::{Phrase, Unit};
use crate::finding::{Finding, Severity};
use crate::rules::{Rule, Subject, types};
use crate::schema::Type;

/// See the page.
pub static RULE: Rule =
    Rule { code: "date-difference", group: "types", page: include_str!("date_difference.md"), check };

fn check(subject: &Subject<'_>, out: &mut Vec<Finding>) {
    let dialect = subject.context.dialect;
    if dialect.subtracts_dates {
        return;
    }
    for operation in subject.facts.operations.iter().filter(|o| *o.operator == BinaryOperator::Minus) {
        let kinds = [operation.left.kind, operation.right.kind];
        if !kinds.iter().all(|kind| kind.is_moment()) {
            continue;
        }
        let (later, earlier) =
            (types::span_of(subject.query, operation.left_node), types::span_of(subject.query, operation.right_node));
        let span = later.join(earlier);
        let dates = [subject.query.text(later), subject.query.text(earlier)];
        let phrase = if kinds == [Type::Date; 2] { Phrase::Between(Unit::Day) } else { Phrase::Elapsed };
        let said = Said::new(phrase, &dates).in_words_of(dialect).map(|(text, _)| text);
        let what = if phrase == Phrase::Elapsed { "seconds" } else { "days" };
        out.push(
            Finding::new(
                RULE.code,
                Severity::Warning,
                span,
                subject.query.text(span),
                format!("a date minus a date is no number of {what} in {}", dialect.name),
            )
            .advise(match &said {
                Some(said) => format!("{} does not count {what} with a minus: write {said}.", dialect.name),
                None => format!("{} does not count {what} with a minus. {}", dialect.name, dialect.notes),
            })
            .suggest(said),
        );
    }
}
