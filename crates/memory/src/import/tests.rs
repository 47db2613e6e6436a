use super::*;

fn pairs(text: &str, form: ExampleFormat) -> Vec<(String, String, String, String)> {
    let all = read(text, form, "f", "shop", "sqlite").unwrap();
    all.into_iter().map(|one| (one.question, one.sql, one.database, one.dialect)).collect()
}

#[test]
fn reads_examples_from_every_format() {
    let own = |database: &str, dialect: &str| {
        vec![
            ("How many?".to_string(), "SELECT 1".to_string(), "shop".to_string(), "sqlite".to_string()),
            ("Who, \"x\"?".to_string(), "SELECT\n2".to_string(), database.to_string(), dialect.to_string()),
        ]
    };
    let yaml = "# mine\n- question: How many?\n  expected_sql: SELECT 1\n- question: 'Who, \"x\"?'\n  sql: |\n    SELECT\n    2\n  db_id: other\n  dialect: mysql\n  tags: [a]\n";
    assert_eq!(pairs(yaml, ExampleFormat::Yaml), own("other", "mysql"));
    let under = format!("examples:\n{}", yaml.replace("# mine\n", ""));
    assert_eq!(pairs(&under, ExampleFormat::Yaml), own("other", "mysql"));
    let json = r#"[{"question":"How many?","query":"SELECT 1"},{"question":"Who, \"x\"?","sql":"SELECT\n2","database":"other","more":{"a":1}}]"#;
    assert_eq!(pairs(json, ExampleFormat::Json), own("other", "sqlite"));
    assert_eq!(pairs(&format!("{{\"examples\":{json}}}"), ExampleFormat::Json), own("other", "sqlite"));
    let lines = "{\"question\":\"How many?\",\"sql\":\"SELECT 1\"}\n\n{\"question\":\"Who, \\\"x\\\"?\",\"sql\":\"SELECT\\n2\"}";
    assert_eq!(pairs(lines, ExampleFormat::JsonLines), own("shop", "sqlite"));
    let csv = "\u{feff}Question,SQL,database\r\nHow many?,SELECT 1,\r\n\"Who, \"\"x\"\"?\",\"SELECT\n2\",other\r\n";
    assert_eq!(pairs(csv, ExampleFormat::Csv), own("other", "sqlite"));
    for form in [ExampleFormat::Yaml, ExampleFormat::JsonLines, ExampleFormat::Csv] {
        assert!(read("", form, "f", "", "").unwrap().is_empty());
    }
}

#[test]
fn reports_import_errors_with_their_line() {
    for (form, text, expected) in [
        (ExampleFormat::Yaml, "- question: a\n  sql: b\n- question: c\n", "line 3: there is no `expected_sql`"),
        (ExampleFormat::Yaml, "- question: a\n   sql: b\n  x", "line 2"),
        (ExampleFormat::Yaml, "- sql: b\n", "line 1: there is no `question`"),
        (ExampleFormat::Yaml, "- question: a\n  sql: b\n  query: c\n", "two different queries"),
        (ExampleFormat::Yaml, "question: a\n", "examples"),
        (
            ExampleFormat::Json,
            "[{\"question\":\"a\",\"sql\":\"b\"},{\"question\":\"\"}]",
            "example 2: there is no `question`",
        ),
        (ExampleFormat::Json, "[{\"question\":\"a\",\n\"sql\":5}]", "line 2"),
        (ExampleFormat::Json, "", "line 1"),
        (ExampleFormat::JsonLines, "{\"question\":\"a\",\"sql\":\"b\"}\n{", "line 2"),
        (ExampleFormat::Csv, "a,b\n1,2\n", "line 1: the first line names no column `question`"),
        (ExampleFormat::Csv, "question,sql\n\"a\nb\",c\nd,e,f\n", "line 4: 3 fields"),
        (ExampleFormat::Csv, "question,sql\na,\"b\n", "line 2: a quote"),
        (ExampleFormat::Csv, "question,sql\n\"a\"b,c\n", "line 2: there is text after"),
        (ExampleFormat::Csv, "question,sql\na,\n", "line 2: there is no `expected_sql`"),
    ] {
        let error = read(text, form, "file", "", "").unwrap_err();
        assert!(error.to_string().starts_with("`file`") && error.to_string().contains(expected), "{text}: {error}");
        assert!(error.hint().is_some());
    }
    let long = format!("[{{\"question\":\"{}\",\"sql\":\"b\"}}]", "a".repeat(20_000));
    assert!(read(&long, ExampleFormat::Json, "f", "", "").unwrap_err().to_string().contains("longer than"));
}

#[test]
fn exported_examples_can_be_imported() {
    let odd =
        ["a: b # c", "'", "\"q\" - x\ny", "- null", "yes", "1.5", "ünï, c", "tab\there", "line\r\nend", "{x: [1]}"];
    let all: Vec<Example> = odd
        .iter()
        .map(|text| Example {
            metric: Some(format!("m {text}")),
            standing: VerificationStatus::Stale,
            provenance: Provenance::Corrected,
            hurt: 3,
            added: 77,
            ..Example::new(&format!("q {text}"), &format!("{text} SELECT"), "db", "mysql")
        })
        .collect();
    for form in [ExampleFormat::Yaml, ExampleFormat::Json, ExampleFormat::JsonLines] {
        let text = export(&all, form).unwrap();
        assert_eq!(read(&text, form, "f", "", "").unwrap(), all, "{form:?}\n{text}");
        assert!(read(&export(&[], form).unwrap(), form, "f", "", "").unwrap().is_empty());
    }
    let again = read(&export(&all, ExampleFormat::Csv).unwrap(), ExampleFormat::Csv, "f", "", "").unwrap();
    assert!(again.iter().zip(&all).all(|(a, b)| (&a.question, &a.sql, &a.metric) == (&b.question, &b.sql, &b.metric)));
}

#[test]
fn detects_the_format_by_file_name() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    };
    assert_eq!(read_file(&write("a.csv", b"question,sql\na,b\n"), "d", "x").unwrap().len(), 1);
    for (path, expected) in [
        (write("a.txt", b""), "is unknown"),
        (write("b.csv", b"question,sql\n\xff,b\n"), "line 2: this is not UTF-8 text"),
        (folder.path().join("none.yaml"), "cannot be read"),
        (folder.path().to_path_buf(), "is unknown"),
    ] {
        let error = read_file(&path, "d", "x").unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
    }
}
