#![doc = include_str!("many_statements.md")]

use sqlparser::ast::Statement;

use crate::finding::{Applicability, Finding, Severity, Span};
use crate::mend;
use crate::pieces::statement_starts;
use crate::review::whole;
use crate::rules::{Rule, Subject};

/// See the page.
pub static RULE: Rule =
    Rule { code: "many-statements", group: "safety", page: include_str!("many_statements.md"), check };

fn check(subject: &Subject<'_>, out: &mut Vec<Finding>) {
    let count = subject.query.statements.len();
    if count < 2 {
        return;
    }
    let source = &subject.query.source;
    let span =
        statement_starts(source).get(1).map_or(whole(source), |&start| Span::new(start, source.trim_end().len()));
    let mut finding =
        Finding::new(RULE.code, Severity::Error, span, "", format!("there are {count} statements; one is allowed"))
            .advise("Answer with exactly one statement; combine what you need in one SELECT.");
    let only_questions = subject.query.statements.iter().all(|s| matches!(s, Statement::Query(_)));
    if only_questions && span.start > 0 {
        let why = "the first statement answers; what follows is another question";
        finding = finding.mend(mend::replace(Span::new(span.start, source.len()), "", Applicability::Likely, why));
    }
    out.push(finding);
}
