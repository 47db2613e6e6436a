#![doc = include_str!("unquoted_name.md")]

use crate::finding::{Applicability, Edit, Finding, Fix, Severity, Span};
use crate::pieces::code_only;
use crate::query::Failure;
use crate::rules::{Rule, Subject};

/// See the page.
pub static RULE: Rule = Rule { code: "unquoted-name", group: "names", page: include_str!("unquoted_name.md"), check };

fn check(subject: &Subject<'_>, out: &mut Vec<Finding>) {
    let (Some(Failure::Syntax { .. }), Some(schema)) = (&subject.query.failure, subject.context.schema) else { return };
    let code = code_only(&subject.query.source);
    let mut names: Vec<&str> = Vec::new();
    for table in schema.tables() {
        let own = std::iter::once(table.name.as_str()).chain(table.columns.iter().map(|c| c.name.as_str()));
        names.extend(own.filter(|n| n.contains([' ', '(', '%', '-', '/']) && n.len() > 3));
    }
    // The longest first: `Free Meal Count (K-12)` holds `Free Meal Count`.
    names.sort_by_key(|n| (std::cmp::Reverse(n.len()), *n));
    names.dedup();
    let mut found: Vec<(Span, &str)> = Vec::new();
    for name in names {
        for (start, _) in code.match_indices(&name.to_ascii_lowercase()) {
            let span = Span::new(start, start + name.len());
            let whole = |c: Option<char>| c.is_none_or(|c| !(c.is_alphanumeric() || c == '_'));
            let alone = whole(code[..start].chars().next_back()) && whole(code[span.end..].chars().next());
            if alone && !found.iter().any(|(f, _)| f.start < span.end && span.start < f.end) {
                found.push((span, name));
            }
        }
    }
    found.sort_by_key(|(span, _)| *span);
    let Some((first, name)) = found.first().copied() else { return };
    let dialect = subject.context.dialect;
    let edits = found.iter().map(|(span, name)| Edit { span: *span, text: dialect.quoted(name) }).collect();
    let quoted = dialect.quoted(name);
    out.push(
        Finding::new(
            RULE.code,
            Severity::Error,
            first,
            name,
            format!("`{name}` is a name with spaces or signs in it: it needs quotes"),
        )
        .suggest(Some(quoted.clone()))
        .advise(format!("{name} needs quotes: write {quoted}."))
        .mend(Fix {
            edits,
            applicability: Applicability::Safe,
            why: "a name with spaces or signs in it is one name only in quotes".into(),
        }),
    );
}
