//! A call said in the words of the dialect.

use crate::dialect::phrase::{fill, meaning};
use crate::finding::{Applicability, Fix};
use crate::mend;
use crate::rules::Subject;
use crate::scope::Call;

/// The fix of a call whose meaning is known and which the dialect can say.
pub(crate) fn rephrase(call: &Call<'_>, subject: &Subject<'_>) -> Option<Fix> {
    let (whole, spans) = mend::call(subject, call.place)?;
    let arguments: Vec<&str> = spans.iter().map(|s| subject.query.text(*s).trim()).collect();
    let (phrase, arguments) = meaning(&call.lower, &arguments)?;
    let dialect = subject.context.dialect;
    let (_, template) = dialect.says.iter().find(|(p, _)| *p == phrase)?;
    let text = fill(template, &arguments);
    let why = format!("{} says {} as `{template}`", dialect.name, call.lower.to_uppercase());
    Some(mend::replace(whole, text, Applicability::Likely, why))
}
