use super::*;

fn pairs(text: &str, form: Form) -> Vec<(String, String, String, String)> {
    let all = read(text, form, "f", "shop", "sqlite").unwrap();
    all.into_iter().map(|one| (one.question, one.sql, one.database, one.dialect)).collect()
}

#[test]
fn f06_f10_examples_are_read_from_every_form() {
    let own = |database: &str, dialect: &str| {
        vec![
            ("How many?".to_string(), "SELECT 1".to_string(), "shop".to_string(), "sqlite".to_string()),
            ("Who, \"x\"?".to_string(), "SELECT\n2".to_string(), database.to_string(), dialect.to_string()),
        ]
    };
    let yaml = "# mine\n- question: How many?\n  expected_sql: SELECT 1\n- question: 'Who, \"x\"?'\n  sql: |\n    SELECT\n    2\n  db_id: other\n  dialect: mysql\n  tags: [a]\n";
    assert_eq!(pairs(yaml, Form::Yaml), own("other", "mysql"));
    let under = format!("examples:\n{}", yaml.replace("# mine\n", ""));
    assert_eq!(pairs(&under, Form::Yaml), own("other", "mysql"));
    let json = r#"[{"question":"How many?","query":"SELECT 1"},{"question":"Who, \"x\"?","sql":"SELECT\n2","database":"other","more":{"a":1}}]"#;
    assert_eq!(pairs(json, Form::Json), own("other", "sqlite"));
    assert_eq!(pairs(&format!("{{\"examples\":{json}}}"), Form::Json), own("other", "sqlite"));
    let lines = "{\"question\":\"How many?\",\"sql\":\"SELECT 1\"}\n\n{\"question\":\"Who, \\\"x\\\"?\",\"sql\":\"SELECT\\n2\"}";
    assert_eq!(pairs(lines, Form::JsonLines), own("shop", "sqlite"));
    let csv = "\u{feff}Question,SQL,database\r\nHow many?,SELECT 1,\r\n\"Who, \"\"x\"\"?\",\"SELECT\n2\",other\r\n";
    assert_eq!(pairs(csv, Form::Csv), own("other", "sqlite"));
    for form in [Form::Yaml, Form::JsonLines, Form::Csv] {
        assert!(read("", form, "f", "", "").unwrap().is_empty());
    }
}

#[test]
fn f06_what_is_wrong_is_said_with_its_place() {
    for (form, text, said) in [
        (Form::Yaml, "- question: a\n  sql: b\n- question: c\n", "line 3: there is no `expected_sql`"),
        (Form::Yaml, "- question: a\n   sql: b\n  x", "line 2"),
        (Form::Yaml, "- sql: b\n", "line 1: there is no `question`"),
        (Form::Yaml, "- question: a\n  sql: b\n  query: c\n", "two different queries"),
        (Form::Yaml, "question: a\n", "examples"),
        (Form::Json, "[{\"question\":\"a\",\"sql\":\"b\"},{\"question\":\"\"}]", "example 2: there is no `question`"),
        (Form::Json, "[{\"question\":\"a\",\n\"sql\":5}]", "line 2"),
        (Form::Json, "", "line 1"),
        (Form::JsonLines, "{\"question\":\"a\",\"sql\":\"b\"}\n{", "line 2"),
        (Form::Csv, "a,b\n1,2\n", "line 1: the first line names no column `question`"),
        (Form::Csv, "question,sql\n\"a\nb\",c\nd,e,f\n", "line 4: 3 fields"),
        (Form::Csv, "question,sql\na,\"b\n", "line 2: a quote"),
        (Form::Csv, "question,sql\n\"a\"b,c\n", "line 2: there is text behind"),
        (Form::Csv, "question,sql\na,\n", "line 2: there is no `expected_sql`"),
    ] {
        let error = read(text, form, "file", "", "").unwrap_err();
        assert!(error.to_string().starts_with("`file`") && error.to_string().contains(said), "{text}: {error}");
        assert!(error.hint().is_some());
    }
    let long = format!("[{{\"question\":\"{}\",\"sql\":\"b\"}}]", "a".repeat(20_000));
    assert!(read(&long, Form::Json, "f", "", "").unwrap_err().to_string().contains("longer than"));
}

#[test]
fn f06_what_is_exported_can_be_read_again() {
    let odd =
        ["a: b # c", "'", "\"q\" - x\ny", "- null", "yes", "1.5", "ünï, c", "tab\there", "line\r\nend", "{x: [1]}"];
    let all: Vec<Example> = odd
        .iter()
        .map(|text| Example {
            metric: Some(format!("m {text}")),
            standing: Standing::Stale,
            provenance: Provenance::Corrected,
            hurt: 3,
            added: 77,
            ..Example::new(&format!("q {text}"), &format!("{text} SELECT"), "db", "mysql")
        })
        .collect();
    for form in [Form::Yaml, Form::Json, Form::JsonLines] {
        let text = export(&all, form).unwrap();
        assert_eq!(read(&text, form, "f", "", "").unwrap(), all, "{form:?}\n{text}");
        assert!(read(&export(&[], form).unwrap(), form, "f", "", "").unwrap().is_empty());
    }
    let again = read(&export(&all, Form::Csv).unwrap(), Form::Csv, "f", "", "").unwrap();
    assert!(again.iter().zip(&all).all(|(a, b)| (&a.question, &a.sql, &a.metric) == (&b.question, &b.sql, &b.metric)));
}

#[test]
fn f06_files_are_told_by_their_names() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    };
    assert_eq!(read_file(&write("a.csv", b"question,sql\na,b\n"), "d", "x").unwrap().len(), 1);
    for (path, said) in [
        (write("a.txt", b""), "told by its name"),
        (write("b.csv", b"question,sql\n\xff,b\n"), "line 2: this is not text"),
        (folder.path().join("none.yaml"), "cannot be read"),
        (folder.path().to_path_buf(), "told by its name"),
    ] {
        let error = read_file(&path, "d", "x").unwrap_err();
        assert!(error.to_string().contains(said), "{error}");
    }
}
