//! Converts database errors to findings.

use querymend_sql::{Dialect, EngineError, Finding, Rule, Severity, Span, classify};

/// Creates a finding for a database error, classifying its message to a rule code.
pub fn from_error(error: &EngineError, sql: &str, dialect: &Dialect) -> Finding {
    let classified = classify(dialect, error);
    let subject = classified.names.first().map_or("", |(_, name)| name.as_str());
    from_error_with_code(classified.finding, error, sql, subject)
}

/// Creates a finding for a database error with a known rule code.
pub fn from_error_with_code(code: &'static str, error: &EngineError, sql: &str, subject: &str) -> Finding {
    let span = error.position.map_or(Span::default(), |at| {
        let rest = sql.get(at..).unwrap_or("");
        let word = rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len());
        Span::new(at, at + word)
    });
    let vendor = if error.code.is_empty() { String::new() } else { format!(" ({})", error.code) };
    let finding = Finding::new(code, Severity::Error, span, subject, format!("{}{vendor}", error.message));
    match Rule::from_code(code) {
        Some(rule) => finding.with_evidence(rule.summary()),
        None => finding,
    }
}
