#![doc = include_str!("set_operation_order.md")]

use sqlparser::ast::Expr;
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::Token;

use crate::finding::{Applicability, Edit, Finding, Fix, Severity, Span};
use crate::mend;
use crate::rules::{Rule, Subject, types};
use crate::scope::{Clause, Meaning};

/// See the page.
pub static RULE: Rule =
    Rule { code: "set-operation-order", group: "shape", page: include_str!("set_operation_order.md"), check };

/// Fixes are worked out for the first few terms only.
const MOST_MENDED: usize = 5;

fn check(subject: &Subject<'_>, out: &mut Vec<Finding>) {
    for (n, term) in subject.facts.stray_order_terms.iter().enumerate() {
        let span = types::span_of(subject.query, term);
        let text = subject.query.text(span);
        let message = format!("`{text}` is no column of the combined result, which is all that ORDER BY sees here");
        let mut finding = Finding::new(RULE.code, Severity::Error, span, text, message)
            .advise(format!("Behind a set operation ORDER BY takes names of result columns only: select {text} in every part, or wrap the whole in a subquery."));
        // One is mended at a time, and what has many more terms was written by nobody.
        if n < MOST_MENDED && mend::worth_mending(subject, out) {
            finding.fixes.extend(result_column(term, span, subject).or_else(|| around(term, span, subject)));
        }
        out.push(finding);
    }
}

/// The names of the result, if the whole text is one set operation: those of its first part.
fn result<'s>(subject: &'s Subject<'_>) -> Option<Vec<&'s str>> {
    let words = mend::words(subject);
    // With anything before it, other parts may be meant.
    (mend::keyword(&words.first()?.1) == Some(Keyword::SELECT)).then_some(())?;
    let items = &subject.facts.blocks.first()?.items;
    let names: Option<Vec<&str>> = items.iter().map(|i| i.expression.and(i.name).map(|n| n.value.as_str())).collect();
    let names = names?;
    let twice = (1..names.len()).any(|i| names[..i].iter().any(|n| n.eq_ignore_ascii_case(names[i])));
    (!twice).then_some(names)
}

/// `products.price`, where every part that reads `products` gives that very column as `price`.
fn result_column(term: &Expr, span: Span, subject: &Subject<'_>) -> Option<Fix> {
    let Expr::CompoundIdentifier(parts) = term else { return None };
    let [table, column] = parts.as_slice() else { return None };
    let names = result(subject)?;
    let at = names.iter().position(|n| n.eq_ignore_ascii_case(&column.value))?;
    let facts = subject.facts;
    let item = facts.blocks[0].items.get(at)?;
    let place = subject.query.span(crate::scope::place(item.expression?));
    // What the first part gives under that name is the column that is meant.
    let own =
        facts.references.iter().find(|r| subject.query.span(r.place).end == place.end && r.clause == Clause::Select)?;
    let Meaning::Column(source, _) = own.meaning else { return None };
    let named = facts.sources[source].name.is_some_and(|n| n.value.eq_ignore_ascii_case(&table.value));
    (named && own.name.value.eq_ignore_ascii_case(&column.value)).then_some(())?;
    let text = subject.context.dialect.quoted(&column.value);
    Some(mend::replace(span, text, Applicability::Likely, "the result has that column, without the name of its table"))
}

/// An expression of result columns sorts a query around the whole.
fn around(term: &Expr, span: Span, subject: &Subject<'_>) -> Option<Fix> {
    let names = result(subject)?;
    let Expr::Function(_) = term else { return None };
    let words = mend::words(subject);
    let inside: Vec<usize> =
        (0..words.len()).filter(|&i| span.start <= words[i].0.start && words[i].0.end <= span.end).collect();
    // Every name in it is called, or is a column of the result.
    let known = inside.iter().all(|&i| match &words[i].1 {
        Token::Word(word) => {
            words.get(i + 1).is_some_and(|w| w.1 == Token::LParen)
                || names.iter().any(|n| n.eq_ignore_ascii_case(&word.value))
        }
        Token::Period => false,
        _ => true,
    });
    let aggregates = subject.context.dialect.functions;
    let called = inside.iter().any(|&i| matches!(&words[i].1, Token::Word(w) if aggregates.get(&w.value.to_lowercase()).is_some_and(|f| f.aggregate)));
    let mut depth = 0usize;
    let mut order = None;
    for (at, (_, token)) in words.iter().enumerate() {
        match token {
            Token::LParen => depth += 1,
            Token::RParen => depth = depth.checked_sub(1)?,
            token if depth == 0 && mend::keyword(token) == Some(Keyword::ORDER) => order = Some(at),
            _ => {}
        }
    }
    let order = order.filter(|_| known && !called)?;
    let end = words.get(order.checked_sub(1)?)?.0.end;
    let insert = |at: usize, text: &str| Edit { span: Span::new(at, at), text: text.into() };
    let edits = vec![insert(words.first()?.0.start, "SELECT * FROM ("), insert(end, ") AS combined")];
    let why = "a query around the whole sees the columns of the result, and can compute with them".into();
    Some(Fix { edits, applicability: Applicability::Likely, why, tied: false })
}
