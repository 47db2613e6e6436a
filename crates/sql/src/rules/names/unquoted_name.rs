#![doc = include_str!("unquoted_name.md")]

use sqlparser::tokenizer::Token;

use crate::finding::{Applicability, Edit, Finding, Fix, Severity, Span};
use crate::mend;
use crate::pieces::code_only;
use crate::query::Failure;
use crate::rules::names::unknown_function::{is_unknown, known_elsewhere};
use crate::rules::{Rule, Subject};
use crate::scope::Call;

/// See the page.
pub static RULE: Rule = Rule { code: "unquoted-name", group: "names", page: include_str!("unquoted_name.md"), check };

fn check(subject: &Subject<'_>, out: &mut Vec<Finding>) {
    let Some(schema) = subject.context.schema else { return };
    let parses = match &subject.query.failure {
        Some(Failure::Syntax { .. }) => false,
        None => true,
        Some(_) => return,
    };
    // What parses is a name in pieces only where it calls what nobody knows.
    let made_up = |c: &Call<'_>| is_unknown(c, subject) && known_elsewhere(c, subject).is_empty();
    let calls: Vec<usize> = subject.facts.calls.iter().filter(|c| made_up(c)).map(|c| start(c, subject)).collect();
    // Nor can a reserved word be a name, so that one which begins such a name is its first piece.
    let reserved = subject.facts.plain_names.iter().filter(|n| subject.context.dialect.reserved.contains(&n.value));
    let pieces: Vec<usize> = reserved.map(|n| subject.query.span(n.span).start).collect();
    if parses && calls.is_empty() && pieces.is_empty() {
        return;
    }
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
    for span in called(subject) {
        let squeezed = squeeze(subject.query.text(span));
        let Some(name) = names.iter().find(|n| squeeze(n) == squeezed) else { continue };
        if (!parses || calls.contains(&span.start)) && subject.query.text(span) != *name {
            found.push((span, name));
        }
    }
    for name in names {
        for (start, _) in code.match_indices(&name.to_ascii_lowercase()) {
            let span = Span::new(start, start + name.len());
            let whole = |c: Option<char>| c.is_none_or(|c| !(c.is_alphanumeric() || c == '_'));
            let alone = whole(code[..start].chars().next_back()) && whole(code[span.end..].chars().next());
            let broken = !parses || pieces.contains(&start);
            if broken && alone && !found.iter().any(|(f, _)| f.start < span.end && span.start < f.end) {
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
            tied: false,
            edits,
            applicability: Applicability::Safe,
            why: "a name with spaces or signs in it is one name only in quotes".into(),
        }),
    );
}

/// Where a call begins.
fn start(call: &Call<'_>, subject: &Subject<'_>) -> usize {
    subject.query.span(call.place).start
}

/// The letters and digits of a name, in lower case.
fn squeeze(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// What looks like the call of a function that the dialect does not have, `Enrollment(K-12)`, with its parentheses.
fn called(subject: &Subject<'_>) -> Vec<Span> {
    if !mend::worth_mending(subject, &[]) {
        return Vec::new();
    }
    let words = mend::words(subject);
    let functions = subject.context.dialect.functions;
    let mut out: Vec<Span> = Vec::new();
    for (at, (span, token)) in words.iter().enumerate() {
        let Token::Word(word) = token else { continue };
        let opens = words.get(at + 1).is_some_and(|(_, t)| *t == Token::LParen);
        let known = functions.get(&word.value.to_lowercase()).is_some();
        if word.quote_style.is_some() || !opens || known || out.last().is_some_and(|o| span.start < o.end) {
            continue;
        }
        // A name has no parentheses in its parentheses.
        let close = words[at + 2..].iter().find(|(_, t)| matches!(t, Token::LParen | Token::RParen));
        out.extend(close.filter(|(_, t)| *t == Token::RParen).map(|(c, _)| span.join(*c)));
    }
    out
}
