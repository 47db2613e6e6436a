#![doc = include_str!("no_sql.md")]

use crate::finding::{Finding, Severity};
use crate::query::Failure;
use crate::review::whole;
use crate::rules::{Rule, Subject};

/// See the page.
pub static RULE: Rule = Rule { code: "no-sql", group: "artefact", page: include_str!("no_sql.md"), check };

/// What a model is told that wrote no query.
pub const ADVICE: &str = "Answer with one SQL query and nothing else.";

fn check(subject: &Subject<'_>, out: &mut Vec<Finding>) {
    if subject.query.failure != Some(Failure::Empty) {
        return;
    }
    let span = whole(&subject.query.source);
    out.push(Finding::new("no-sql", Severity::Error, span, "", "there is no SQL in the text").advise(ADVICE));
}
