//! L03: what real engines said is classified as it was meant, with the code and, where the words suffice, without it.

use querymend_sql::dialect::DIALECTS;
use querymend_sql::{EngineError, classify};

#[derive(serde::Deserialize)]
struct Recorded {
    sql: String,
    #[serde(default)]
    code: String,
    message: String,
    finding: String,
}

fn recorded(dialect: &str) -> Vec<Recorded> {
    let path = format!("{}/tests/errors/{dialect}.jsonl", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}"));
    text.lines().map(|l| serde_json::from_str(l).unwrap_or_else(|e| panic!("{path}: {e}: {l}"))).collect()
}

#[test]
fn classifies_recorded_errors_by_dialect_table() {
    for dialect in DIALECTS {
        let lines = recorded(dialect.name);
        assert!(lines.len() >= 30, "{}: {} recorded errors", dialect.name, lines.len());
        for line in lines {
            let error =
                EngineError { code: line.code.clone(), message: line.message.clone(), ..EngineError::default() };
            let found = classify(dialect, &error);
            assert_eq!(found.finding, line.finding, "{}: {} {} ({})", dialect.name, line.code, line.message, line.sql);
        }
    }
}

#[test]
fn extracts_names_from_engine_messages() {
    let names = |dialect: &str, code: &str, message: &str| {
        let dialect = querymend_sql::Dialect::from_name(dialect).unwrap();
        let found =
            classify(dialect, &EngineError { code: code.into(), message: message.into(), ..EngineError::default() });
        (found.finding, found.name("column").map(str::to_string), found.name("table").map(str::to_string))
    };
    assert_eq!(
        names("trino", "TABLE_NOT_FOUND", "line 1:15: Table 'memory.default.prodcts' does not exist"),
        ("unknown-table", None, Some("prodcts".into()))
    );
    assert_eq!(
        names(
            "spark",
            "TABLE_OR_VIEW_NOT_FOUND",
            "[TABLE_OR_VIEW_NOT_FOUND] The table or view `shop`.`prodcts` cannot be found. Verify"
        ),
        ("unknown-table", None, Some("prodcts".into()))
    );
    assert_eq!(names("sqlite", "SQLITE_ERROR", "no such column: T1.nme"), ("unknown-column", Some("nme".into()), None));
    assert_eq!(
        names("postgres", "42703", "column \"nme\" does not exist"),
        ("unknown-column", Some("nme".into()), None)
    );
    assert_eq!(
        names("postgres", "42P01", "relation \"prodcts\" does not exist"),
        ("unknown-table", None, Some("prodcts".into()))
    );
}

#[test]
fn reports_code_span_severity_and_suggestion() {
    use querymend_sql::{Applicability, Policy, ReviewContext, Schema, Severity, dialect, review};
    let schema = Schema::from_ddl(include_str!("../pages/shop.sql"), &dialect::SQLITE).unwrap();
    let policy = Policy::default();
    let context = ReviewContext { schema: Some(&schema), dialect: &dialect::SQLITE, policy: &policy, question: None };
    let reviewed = review("SELECT name,\n       prise\nFROM products", &context);
    let [finding] = reviewed.findings.as_slice() else { panic!("{:?}", reviewed.findings) };
    assert_eq!((finding.code, finding.severity), ("unknown-column", Severity::Error));
    assert_eq!(finding.message, "`products` has no column `prise` (did you mean `price`?)");
    assert_eq!(reviewed.line_column(finding.span.start), (2, 8));
    assert_eq!(finding.suggestion.as_deref(), Some("price"));
    assert!(finding.advice.contains("price"), "{}", finding.advice);
    assert!(finding.fixes[0].applicability <= Applicability::Likely, "{:?}", finding.fixes);
    assert_eq!(querymend_sql::ErrorType::of(finding.code), querymend_sql::ErrorType::ColumnNotFound);
}
