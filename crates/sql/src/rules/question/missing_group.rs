#![doc = include_str!("missing_group.md")]

use crate::coverage::is_named;
use crate::finding::{Finding, Severity};
use crate::question::{QuestionWord, question_words};
use crate::rules::{Rule, Subject};

/// See the page.
pub static RULE: Rule =
    Rule { code: "missing-group", group: "question", page: include_str!("missing_group.md"), check };

fn check(subject: &Subject<'_>, out: &mut Vec<Finding>) {
    let Some(question) = subject.context.question else { return };
    let facts = subject.facts;
    let Some(outer) = facts.blocks.first() else { return };
    let is_grouped = facts.blocks.iter().any(|b| b.grouped || b.distinct) || facts.calls.iter().any(|c| c.window);
    let is_one_row = outer.aggregates && (0..outer.items.len()).all(|item| subject.item_aggregates(0, item));
    if is_grouped || !is_one_row {
        return;
    }
    // `miles per gallon` is a measure, unless something here is called gallon.
    let is_group = |group: &String| subject.context.schema.is_none_or(|schema| is_named(group, schema));
    if let Some(group) = group_of(&question_words(question)).filter(is_group) {
        let message = format!("the question asks for a result per {group}, and the query returns one row for all");
        let advice = format!("Select what identifies each {group} and GROUP BY it.");
        let span = subject.query.span(outer.place);
        out.push(Finding::new(RULE.code, Severity::Warning, span, &group, message).advise(advice));
    }
}

/// Returns the noun behind "for each", "does each" or "per".
fn group_of(words: &[QuestionWord]) -> Option<String> {
    let lower: Vec<&str> = words.iter().map(|w| w.lower.as_str()).collect();
    // "The average number of orders per customer" is one number.
    let is_average = lower.iter().any(|word| matches!(*word, "average" | "avg" | "mean" | "ratio" | "rate"));
    let before = ["for", "in", "of", "by", "to", "from", "does", "do", "did", "has", "have", "had"];
    let begins = |at: usize| match lower[at] {
        "each" | "every" => at > 0 && before.contains(&lower[at - 1]),
        "per" => !is_average,
        _ => false,
    };
    let at = (0..lower.len()).find(|&at| begins(at))?;
    words.get(at + 1).filter(|w| w.lower.starts_with(char::is_alphabetic)).map(|w| w.text.clone())
}
