//! What a database said against a query, as a finding.

use querymend_sql::{Dialect, EngineError, Finding, Rule, Severity, Span, classify};

/// The database's own words, under the code of the rule that they belong to.
pub fn finding(said: &EngineError, sql: &str, dialect: &Dialect) -> Finding {
    let classified = classify(dialect, said);
    let subject = classified.names.first().map_or("", |(_, name)| name.as_str());
    named(classified.finding, said, sql, subject)
}

/// The same where the code is already known.
pub fn named(code: &'static str, said: &EngineError, sql: &str, subject: &str) -> Finding {
    let span = said.position.map_or(Span::default(), |at| {
        let rest = sql.get(at..).unwrap_or("");
        let word = rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len());
        Span::new(at, at + word)
    });
    let vendor = if said.code.is_empty() { String::new() } else { format!(" ({})", said.code) };
    let finding = Finding::new(code, Severity::Error, span, subject, format!("{}{vendor}", said.message));
    match Rule::named(code) {
        Some(rule) => finding.because(rule.summary()),
        None => finding,
    }
}
