#![doc = include_str!("syntax_of_another_dialect.md")]

use sqlparser::keywords::Keyword;

use crate::broken::{Broken, is_explained};
use crate::dialect::Feature;
use crate::finding::{Applicability, Edit, Finding, Fix, Severity, Span};
use crate::mend;
use crate::query::Failure;
use crate::review::whole;
use crate::rules::portable::rephrase::{
    cast_to_date, convert, distinct_of_several, extract, filter_inside, moved_by_interval,
};
use crate::rules::portable::trimmings::{separator, trimmings};
use crate::rules::portable::{comparisons, respell};
use crate::rules::shape::window_fixes;
use crate::rules::{Rule, Subject};

/// See the page.
pub static RULE: Rule = Rule {
    code: "syntax-of-another-dialect",
    group: "portable",
    page: include_str!("syntax_of_another_dialect.md"),
    check,
};

fn check(subject: &Subject<'_>, out: &mut Vec<Finding>) {
    let dialect = subject.context.dialect;
    if matches!(subject.query.failure, Some(Failure::Syntax { .. })) && !is_explained(out) {
        out.extend(unparsed(subject));
    }
    out.extend(respell::intervals(subject).into_iter().map(|(span, written, fix)| {
        let text = fix.edits.first().map_or("", |edit| edit.text.as_str()).to_string();
        let message = format!("{} does not know {written}: write {text}", dialect.name);
        let mut finding = Finding::new(RULE.code, Severity::Error, span, &written, message)
            .advise(format!("{} writes a span of time as {text}, not as {written}.", dialect.name));
        finding.fixes.push(fix);
        finding
    }));
    for (span, feature, fix) in trimmings(subject) {
        let (written, instead) = (feature.written(), feature.instead());
        let message = format!("{} does not know {written}: use {instead}", dialect.name);
        let mut finding = Finding::new(RULE.code, Severity::Error, span, written, message)
            .advise(format!("{written} does not exist in {}: use {instead}.", dialect.name));
        finding.fixes.push(fix);
        out.push(finding);
    }
    for (feature, place) in &subject.facts.features {
        if !dialect.lacks.contains(feature) {
            continue;
        }
        let span = Some(subject.query.span(*place)).filter(|s| *s != Span::default());
        let span = span.map_or(whole(&subject.query.source), |s| match feature {
            Feature::QueryInParentheses => respell::in_parentheses(s, subject),
            Feature::CalledKeyword | Feature::DistinctOfSeveral => s,
            Feature::Minus => word_before(&subject.query.source, s, "MINUS"),
            _ => with_word(&subject.query.source, s, feature.written()),
        });
        let (written, instead) = (feature.written(), feature.instead());
        let mut finding = Finding::new(
            RULE.code,
            Severity::Error,
            span,
            written,
            format!("{} does not know {written}: use {instead}", dialect.name),
        )
        .advise(match instead.contains("own") {
            true => format!("{written} does not exist in {}. {}", dialect.name, dialect.notes),
            false => format!("{written} does not exist in {}: use {instead}.", dialect.name),
        });
        finding.fixes.extend(match feature {
            _ if !mend::worth_mending(subject, out) => None,
            Feature::FilterInside => filter_inside(subject, subject.query.span(*place)),
            Feature::Extract => extract(subject, span.start),
            Feature::Interval => moved_by_interval(subject, span),
            Feature::Convert | Feature::ConvertTypeFirst => convert(subject, span.start),
            Feature::CastToDate => cast_to_date(subject, span.start),
            Feature::CalledKeyword => respell::without_call(subject.query.span(*place), subject),
            Feature::DistinctOfSeveral => distinct_of_several(subject.query.span(*place), subject),
            Feature::Separator => separator(subject.query.span(*place), subject),
            Feature::DoubleColonCast => respell::double_colon(subject.query.span(*place), subject),
            Feature::TryCast => respell::try_cast(subject.query.span(*place), subject),
            Feature::ILike => respell::ilike(subject.query.span(*place), subject),
            Feature::TypedLiteral => respell::typed_literal(subject.query.span(*place), subject),
            Feature::SubstringFrom => respell::with_commas(span.start, "SUBSTRING", subject),
            Feature::QueryInParentheses => respell::without_parentheses(subject.query.span(*place), subject),
            Feature::AnyAll => comparisons::any_all(span, subject),
            Feature::Minus => {
                Some(mend::replace(span, "EXCEPT", Applicability::Safe, "MINUS is another word for EXCEPT"))
            }
            Feature::Qualify => window_fixes::from_qualify(subject.query.span(*place), subject),
            Feature::DistinctOn => window_fixes::from_distinct_on(subject.query.span(*place), subject),
            Feature::PositionIn => respell::with_commas(span.start, "POSITION", subject),
            _ => None,
        });
        out.push(finding);
    }
}

/// What the grammar of the dialect itself does not read.
fn unparsed(subject: &Subject<'_>) -> Option<Finding> {
    let dialect = subject.context.dialect;
    if !subject.query.steps.is_empty() || !mend::worth_mending(subject, &[]) {
        return None;
    }
    if dialect.lacks.contains(&Feature::AnyAll)
        && let Some(found) = comparisons::any_array(RULE.code, subject)
    {
        return Some(found);
    }
    let words = mend::words(subject);
    let selects = |i: usize| words.get(i).is_some_and(|w| mend::keyword(&w.1) == Some(Keyword::SELECT));
    let is_minus = |i: &usize| subject.query.text(words[*i].0).eq_ignore_ascii_case("minus") && selects(i + 1);
    let signs = (1..words.len()).filter(is_minus).map(|i| words[i].0);
    let edits: Vec<Edit> = signs.map(|span| Edit { span, text: "EXCEPT".into() }).collect();
    let span = edits.first().filter(|_| dialect.lacks.contains(&Feature::Minus))?.span;
    if !Broken::becomes_query(subject, &edits) {
        return None;
    }
    let message = format!("{} does not know MINUS: use EXCEPT", dialect.name);
    let why = "MINUS is another word for EXCEPT".to_string();
    Some(
        Finding::new(RULE.code, Severity::Error, span, "MINUS", message)
            .advise(format!("MINUS does not exist in {}: use EXCEPT.", dialect.name))
            .mend(Fix { edits, applicability: Applicability::Safe, why, tied: false }),
    )
}

/// The nearest such word before a place, alone.
fn word_before(text: &str, span: Span, word: &str) -> Span {
    let start = text[..span.start].to_ascii_uppercase().rfind(word);
    start.map_or(span, |start| Span::new(start, start + word.len()))
}

/// The parser's places often leave out the word itself: takes in the nearest one around a span.
fn with_word(text: &str, span: Span, written: &str) -> Span {
    let word: String = written.chars().take_while(|c| c.is_ascii_uppercase() || *c == '_').collect();
    if word.is_empty() {
        return span;
    }
    // `FULL OUTER JOIN` is the longest distance between the word and what it stands before.
    let near = 20;
    let upper = text.to_ascii_uppercase();
    let starts = upper.match_indices(&word).map(|(i, _)| i);
    let alone = starts.filter(|i| !upper[..*i].ends_with(|c: char| c.is_alphanumeric() || c == '_'));
    let close = alone.filter(|i| i + near >= span.start && *i <= span.end + near);
    match close.min_by_key(|i| i.abs_diff(span.start)) {
        Some(start) => span.join(Span::new(start, start + word.len())),
        None => span,
    }
}
