//! Findings as SARIF 2.1.0, which code hosts and editors show next to the SQL.

use querymend_sql::{Edit, Finding, Review, Rule, Severity, Span};
use serde_json::{Value, json};

use querymend::line_index::LineIndex;

/// Builds a log with one run. Describes only the rules with findings.
pub fn log(name: &str, review: &Review) -> Value {
    let lines = LineIndex::new(&review.source);
    let uri = uri(name);
    let mut rules: Vec<&'static str> = Vec::new();
    let mut results = Vec::new();
    for finding in &review.findings {
        let index = rules.iter().position(|code| *code == finding.code).unwrap_or_else(|| {
            rules.push(finding.code);
            rules.len() - 1
        });
        results.push(result(finding, index, &uri, &lines));
    }
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": "querymend",
                "version": env!("CARGO_PKG_VERSION"),
                "semanticVersion": env!("CARGO_PKG_VERSION"),
                "rules": rules.iter().map(|code| rule(code)).collect::<Vec<_>>(),
            }},
            "artifacts": [{ "location": { "uri": uri } }],
            "results": results,
            "columnKind": "unicodeCodePoints",
        }],
    })
}

fn rule(code: &str) -> Value {
    let Some(rule) = Rule::from_code(code) else { return json!({ "id": code }) };
    json!({
        "id": code,
        "shortDescription": { "text": rule.summary() },
        "help": { "text": rule.page, "markdown": rule.page },
        "properties": { "tags": [rule.group] },
    })
}

fn result(finding: &Finding, index: usize, uri: &str, lines: &LineIndex<'_>) -> Value {
    let level = match finding.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Info => "note",
    };
    let mut result = json!({
        "ruleId": finding.code,
        "ruleIndex": index,
        "level": level,
        "message": { "text": finding.message },
        "locations": [{ "physicalLocation": {
            "artifactLocation": { "uri": uri, "index": 0 },
            "region": region(finding.span, lines),
        }}],
    });
    if let Some(suggestion) = &finding.suggestion {
        result["properties"] = json!({ "suggestion": suggestion });
    }
    if !finding.fixes.is_empty() {
        let replacement = |edit: &Edit| json!({ "deletedRegion": region(edit.span, lines), "insertedContent": { "text": edit.text } });
        let fixes = finding.fixes.iter().map(|fix| {
            json!({
                "description": { "text": fix.why },
                "artifactChanges": [{
                    "artifactLocation": { "uri": uri, "index": 0 },
                    "replacements": fix.edits.iter().map(replacement).collect::<Vec<_>>(),
                }],
            })
        });
        result["fixes"] = fixes.collect();
    }
    result
}

/// Converts a span to 1-based lines and columns; the end column is exclusive.
fn region(span: Span, lines: &LineIndex<'_>) -> Value {
    let (line, column) = lines.line_column(span.start);
    let (end_line, end_column) = lines.line_column(span.end.max(span.start));
    json!({ "startLine": line, "startColumn": column, "endLine": end_line, "endColumn": end_column })
}

/// Converts a path to a relative or absolute URI reference. Percent-encodes everything but letters,
/// digits and `-._~/`.
fn uri(name: &str) -> String {
    let path = match name {
        "<stdin>" => "stdin",
        "<sql>" => "sql",
        path => path,
    };
    let absolute = path.starts_with('/');
    let encoded = path.bytes().fold(String::new(), |mut uri, byte| {
        match byte {
            b'\\' if cfg!(windows) => uri.push('/'),
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => uri.push(char::from(byte)),
            _ => uri.push_str(&format!("%{byte:02X}")),
        }
        uri
    });
    if absolute { format!("file://{encoded}") } else { encoded }
}

#[cfg(test)]
mod tests {
    #[test]
    fn converts_paths_to_uris() {
        for (path, uri) in
            [("queries/a b.sql", "queries/a%20b.sql"), ("/data/ü.sql", "file:///data/%C3%BC.sql"), ("<stdin>", "stdin")]
        {
            assert_eq!(super::uri(path), uri);
        }
    }
}
