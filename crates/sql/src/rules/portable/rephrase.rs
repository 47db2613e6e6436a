//! A call said in the words of the dialect.

use crate::dialect::Phrase;
use crate::dialect::phrase::{STANDARD, fill, meaning};
use crate::finding::{Applicability, Fix, Span};
use crate::mend;
use crate::rules::Subject;
use crate::scope::Call;

/// The fix of a call whose meaning is known and which the dialect can say.
pub(crate) fn rephrase(call: &Call<'_>, subject: &Subject<'_>) -> Option<Fix> {
    if !mend::worth_mending(subject, &[]) {
        return None;
    }
    let (whole, spans) = mend::call(subject, subject.query.span(call.place))?;
    let arguments: Vec<&str> = spans.iter().map(|s| subject.query.text(*s).trim()).collect();
    let (phrase, arguments) = meaning(&call.lower, &arguments)?;
    let dialect = subject.context.dialect;
    let everywhere = STANDARD.iter().filter(|(p, _)| *p == Phrase::Itself);
    let (_, template) = dialect.says.iter().chain(everywhere).find(|(p, _)| *p == phrase)?;
    let text = fill(template, &arguments);
    let why = format!("{} says {} as `{}`", dialect.name, call.lower.to_uppercase(), shown(template));
    Some(mend::replace(whole, text, Applicability::Likely, why))
}

/// The fix of a call that the dialect has and this database lacks: another spelling of the dialect, or what every one has.
pub(crate) fn say_otherwise(call: &Call<'_>, subject: &Subject<'_>) -> Option<Fix> {
    if !mend::worth_mending(subject, &[]) {
        return None;
    }
    let (whole, spans) = mend::call(subject, subject.query.span(call.place))?;
    let arguments: Vec<&str> = spans.iter().map(|s| subject.query.text(*s).trim()).collect();
    let (phrase, arguments) = meaning(&call.lower, &arguments)?;
    let dialect = subject.context.dialect;
    let own = dialect.says.iter().chain(STANDARD).filter(|(p, _)| *p == phrase);
    let pipes = |t: &str| dialect.concat.pipes || !t.contains("{|}");
    let calls_it = |t: &str| t.to_ascii_lowercase().starts_with(&format!("{}(", call.lower));
    let (_, template) = own.into_iter().find(|(_, t)| pipes(t) && !calls_it(t))?;
    let why = format!("{} also says {} as `{}`", dialect.name, call.lower.to_uppercase(), shown(template));
    Some(mend::replace(whole, fill(template, &arguments), Applicability::Likely, why))
}

/// `EXTRACT(YEAR FROM x)` in the words of the dialect; the span begins with the word.
pub(crate) fn extract(subject: &Subject<'_>, start: usize) -> Option<Fix> {
    let (whole, arguments) = mend::call(subject, Span::new(start, start + "EXTRACT".len()))?;
    let [argument] = arguments.as_slice() else { return None };
    let text = subject.query.text(*argument).trim();
    let upper = text.to_ascii_uppercase();
    let from = upper.find(" FROM ")?;
    let phrase = match upper[..from].trim() {
        "YEAR" => Phrase::Year,
        "MONTH" => Phrase::Month,
        "DAY" => Phrase::Day,
        "HOUR" => Phrase::Hour,
        _ => return None,
    };
    let (_, template) = subject.context.dialect.says.iter().find(|(p, _)| *p == phrase)?;
    let why = format!("{} says it as `{}`", subject.context.dialect.name, shown(template));
    Some(mend::replace(whole, fill(template, &[text[from + 6..].trim()]), Applicability::Likely, why))
}

/// `COUNT(x WHERE condition)` as an aggregate over CASE.
pub(crate) fn filter_inside(subject: &Subject<'_>, condition: Span) -> Option<Fix> {
    let calls = subject.facts.calls.iter().filter_map(|c| mend::call(subject, subject.query.span(c.place)));
    let around = calls.filter(|(whole, _)| whole.start < condition.start && condition.end <= whole.end);
    let (_, arguments) = around.min_by_key(|(whole, _)| whole.end - whole.start)?;
    let [argument] = arguments.as_slice() else { return None };
    let text = subject.query.text(*argument);
    let at = text.to_ascii_uppercase().find(" WHERE ")?;
    let (value, condition) = (text[..at].trim(), text[at + 7..].trim());
    let (distinct, value) = match value.get(..9) {
        Some(word) if word.eq_ignore_ascii_case("distinct ") => ("DISTINCT ", value[9..].trim()),
        _ => ("", value),
    };
    let value = if value == "*" { "1" } else { value };
    let text = format!("{distinct}CASE WHEN {condition} THEN {value} END");
    Some(mend::replace(
        *argument,
        text,
        Applicability::Safe,
        "an aggregate leaves out NULL, which CASE gives where the condition fails",
    ))
}

/// A template as a person reads it.
fn shown(template: &str) -> String {
    fill(template, &["x", "y", "z"])
}
