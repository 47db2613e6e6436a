#![doc = include_str!("writes_data.md")]

use crate::finding::{Finding, Severity, Span};
use crate::pieces::statement_starts;
use crate::review::whole;
use crate::rules::{Rule, Subject};
use crate::safety::Hazard;

/// See the page.
pub static RULE: Rule = Rule { code: "writes-data", group: "safety", page: include_str!("writes_data.md"), check };

fn check(subject: &Subject<'_>, out: &mut Vec<Finding>) {
    for hazard in subject.hazards {
        match hazard {
            Hazard::Statement(index) => {
                let (source, sql) = (&subject.query.source, &subject.query.sql);
                let words = first_words(sql, *index);
                let verb = sql[words.start..words.end].to_ascii_uppercase();
                // What the statement came wrapped in is not part of it.
                let span = source.find(sql).map(|at| Span::new(at + words.start, at + words.end));
                out.push(finding(span.unwrap_or(whole(source)), &verb));
            }
            Hazard::Writes(verb, place) => {
                let span = Some(subject.query.span(*place)).filter(|s| s.end > s.start);
                out.push(finding(span.unwrap_or(whole(&subject.query.source)), verb));
            }
            Hazard::Locks(_)
            | Hazard::Calls(..)
            | Hazard::Field(..)
            | Hazard::CallsInFrom(..)
            | Hazard::Names(..)
            | Hazard::BareTable(_) => {}
        }
    }
}

fn finding(span: Span, verb: &str) -> Finding {
    Finding::new(
        RULE.code,
        Severity::Error,
        span,
        verb,
        format!("{verb} is not allowed: only questions (SELECT) are answered"),
    )
    .advise(format!("{verb} is refused. Write one SELECT that only reads."))
}

/// The first word of a statement, and the second where it says what is created, altered or dropped.
fn first_words(sql: &str, index: usize) -> Span {
    let start = statement_starts(sql).get(index).copied().unwrap_or(0);
    let text = &sql[start..];
    let word = |from: usize| {
        let rest = &text[from..];
        let begin = from + (rest.len() - rest.trim_start().len());
        begin + text[begin..].find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(text.len() - begin)
    };
    let first = word(0);
    let twofold = ["create", "alter", "drop"].iter().any(|w| text[..first].eq_ignore_ascii_case(w));
    Span::new(start, start + if twofold { word(first) } else { first })
}
