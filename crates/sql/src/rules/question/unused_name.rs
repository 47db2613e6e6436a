#![doc = include_str!("unused_name.md")]

use crate::coverage::unknown_proper_names;
use crate::finding::{Finding, Severity};
use crate::question::question_words;
use crate::review::whole;
use crate::rules::{Rule, Subject};
use crate::values::fold;

/// See the page.
pub static RULE: Rule = Rule { code: "unused-name", group: "question", page: include_str!("unused_name.md"), check };

/// Numbers of four digits that are taken for years.
const YEARS: std::ops::RangeInclusive<u32> = 1900..=2099;

fn check(subject: &Subject<'_>, out: &mut Vec<Finding>) {
    let (Some(schema), Some(question)) = (subject.context.schema, subject.context.question) else { return };
    if subject.query.statements.len() != 1 {
        return;
    }
    let query = fold(&subject.query.sql);
    let words = question_words(question);
    let is_year = |word: &str| word.len() == 4 && word.parse().is_ok_and(|year| YEARS.contains(&year));
    let years = words.iter().map(|w| w.text.as_str()).filter(|word| is_year(word) && !query.contains(*word));
    let mut terms: Vec<String> = years.map(str::to_string).collect();
    let is_used = |name: &str| fold(name).split(' ').any(|word| query.contains(word));
    terms.extend(unknown_proper_names(question, &[&query], schema).into_iter().filter(|name| !is_used(name)));
    // A value of the database that the question names and the query does not look for.
    let hits = schema.values().map(|values| values.hits(question)).unwrap_or_default();
    let unused = hits.iter().filter(|hit| hit.named && !hit.value.is_empty() && !is_used(&hit.value));
    terms.extend(unused.map(|hit| question[hit.start..hit.end].to_string()));
    terms.sort_unstable();
    terms.dedup();
    for term in terms {
        let message = format!("the question speaks of {term}, and no condition of the query uses it");
        let advice = format!("The question is restricted to {term}: add the condition, or say that no column tells.");
        let span = whole(&subject.query.source);
        out.push(Finding::new(RULE.code, Severity::Warning, span, &term, message).advise(advice));
    }
}
