#![doc = include_str!("wrong_quotes.md")]

use sqlparser::ast::Expr;

use crate::finding::{Applicability, Edit, Finding, Fix, Severity, Span};
use crate::mend;
use crate::near::nearest;
use crate::pieces::{PieceKind, pieces};
use crate::query::Failure;
use crate::rules::{Rule, Subject};
use crate::scope::{Meaning, Reference};

/// See the page.
pub static RULE: Rule = Rule { code: "wrong-quotes", group: "names", page: include_str!("wrong_quotes.md"), check };

fn check(subject: &Subject<'_>, out: &mut Vec<Finding>) {
    for reference in &subject.facts.references {
        let span = subject.query.span(reference.place);
        let text = reference.name.value.as_str();
        let literal = format!("'{}'", text.replace('\'', "''"));
        if reference.meaning == Meaning::Text {
            out.push(
                Finding::new(
                    "wrong-quotes",
                    Severity::Info,
                    span,
                    text,
                    format!("`{text}` is no column, so this is read as text, which belongs in single quotes"),
                )
                .suggest(Some(literal.clone()))
                .advise(format!("Text goes in single quotes: {literal}.")),
            );
        } else if reference.meaning == Meaning::Nowhere && is_text(reference, subject) {
            out.push(
                Finding::new(
                    "wrong-quotes",
                    Severity::Error,
                    span,
                    text,
                    format!("double quotes make `{text}` a name, and there is no such column"),
                )
                .suggest(Some(literal.clone()))
                .mend(mend::replace(
                    span,
                    literal.clone(),
                    Applicability::Likely,
                    "nothing is called like this, and it stands where a value may",
                ))
                .advise(format!("Text goes in single quotes: write {literal}.")),
            );
        }
    }
    let Some(Failure::Syntax { .. }) = &subject.query.failure else { return };
    let dialect = subject.context.dialect;
    if dialect.grammar.is_delimited_identifier_start('`') {
        return;
    }
    if let Some((start, end)) = backticked(&subject.query.source) {
        let name = &subject.query.source[start + 1..end - 1];
        let right = dialect.quoted(name);
        out.push(
            Finding::new(
                "wrong-quotes",
                Severity::Error,
                Span::new(start, end),
                name,
                format!("{} does not know backticks: a name is quoted with {}", dialect.name, dialect.quote),
            )
            .suggest(Some(right.clone()))
            .mend(requoted(subject))
            .advise(format!("{} does not know backticks: write {right}.", dialect.name)),
        );
    }
}

/// All names in backticks, in the quotes of the dialect.
fn requoted(subject: &Subject<'_>) -> Fix {
    let source = &subject.query.source;
    let dialect = subject.context.dialect;
    let quoted = pieces(source)
        .filter(|p| p.kind == PieceKind::Quoted && source[p.start..].starts_with('`') && p.end > p.start + 2);
    let edits = quoted.map(|p| {
        let name = source[p.start + 1..p.end - 1].replace("``", "`");
        // Where case matters, the schema knows how the name is written.
        let tables = subject.context.schema.map_or(&[][..], |s| s.tables());
        let actual = tables.iter().find_map(|t| {
            t.column(&name).map(|c| c.name.as_str()).or((t.name.eq_ignore_ascii_case(&name)).then_some(&t.name))
        });
        Edit { span: Span::new(p.start, p.end), text: dialect.quoted(actual.unwrap_or(&name)) }
    });
    Fix {
        tied: false,
        edits: edits.collect(),
        applicability: Applicability::Safe,
        why: format!("{} quotes names with {}", dialect.name, dialect.quote),
    }
}

fn backticked(text: &str) -> Option<(usize, usize)> {
    let start = text.find('`').filter(|&i| !text[i..].starts_with("```"))?;
    let end = start + 1 + text[start + 1..].find('`')? + 1;
    (end > start + 2).then_some((start, end))
}

/// A double-quoted name that is nothing like any column in reach is a string in the wrong quotes.
pub(crate) fn is_text(reference: &Reference<'_>, subject: &Subject<'_>) -> bool {
    if reference.name.quote_style != Some('"') || reference.qualifier.is_some() {
        return false;
    }
    let name = reference.name.value.as_str();
    let facts = subject.facts;
    let in_reach = facts.visible(reference.block).into_iter().flat_map(|s| facts.sources[s].column_names());
    let anywhere = subject.context.schema.is_some_and(|s| s.tables().iter().any(|t| t.column(name).is_some()));
    !anywhere && nearest(name, in_reach).is_none() && compared(reference, subject)
}

/// Whether it stands on a side of a comparison, or in an argument, rather than alone in the SELECT list.
fn compared(reference: &Reference<'_>, subject: &Subject<'_>) -> bool {
    let alone = subject.facts.blocks[reference.block].items.iter().any(|i| match i.expression {
        Some(Expr::Identifier(ident)) => ident.span == reference.name.span,
        _ => false,
    });
    !alone
}
