//! Thousands of statements that other parsers are tested with: none may panic, in any dialect, and what is approved must
//! parse. The corpora lie beside the checkout (`../shared/data`); without them this test says so and proves nothing.
//! `docs/measurements/parser-coverage.md` holds the counts; `QUERYMEND_BLESS=1` writes them. A quick run tries each statement in one dialect only, all
//! of them in turn, and compares no counts.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use querymend_sql::dialect::DIALECTS;
use querymend_sql::{Policy, ReviewContext, Rule, Severity, Verdict, review};
use querymend_testing::is_full_suite;

/// Step between the statements that a quick run tries in a dialect: each statement is tried in one of the eight.
const QUICK_STRIDE: usize = 8;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Statements by the corpus and, where it has one, the dialect they are written for.
fn statements() -> Option<Vec<(String, String)>> {
    let data = root().join("../shared/data/parser_corpora");
    if !data.is_dir() {
        eprintln!("skipped: ../shared/data/parser_corpora is not there");
        return None;
    }
    let mut out = Vec::new();
    let mut folders = vec![data.clone()];
    while let Some(folder) = folders.pop() {
        let mut entries: Vec<PathBuf> = std::fs::read_dir(&folder).unwrap().map(|e| e.unwrap().path()).collect();
        entries.sort();
        for path in entries {
            let name = path
                .strip_prefix(&data)
                .unwrap()
                .components()
                .take(2)
                .map(|c| c.as_os_str().to_string_lossy())
                .collect::<Vec<_>>();
            let corpus = if name[0].starts_with("sqruff") { name.join("/") } else { name[0].to_string() };
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "jsonl") {
                for line in std::fs::read_to_string(&path).unwrap().lines() {
                    let value: serde_json::Value = serde_json::from_str(line).unwrap();
                    out.push((corpus.clone(), value["sql"].as_str().unwrap_or("").to_string()));
                }
            } else if path.extension().is_some_and(|e| e == "sql") {
                let text = String::from_utf8_lossy(&std::fs::read(&path).unwrap()).into_owned();
                // sqlglot marks options of a test with `#`, and gives one statement a line where there is no semicolon.
                let plain: String = text.lines().filter(|l| !l.starts_with('#')).flat_map(|l| [l, "\n"]).collect();
                let end = if path.ends_with("sqlglot/identity.sql") { "\n" } else { ";\n" };
                out.extend(plain.split(end).map(|s| (corpus.clone(), s.to_string())));
            }
        }
    }
    out.retain(|(_, s)| !s.trim().is_empty());
    Some(out)
}

/// Whether a statement begins like one that only asks.
fn is_question(sql: &str) -> bool {
    let word: String =
        sql.trim_start().trim_start_matches('(').trim_start().chars().take_while(|c| c.is_ascii_alphabetic()).collect();
    ["select", "with", "values"].iter().any(|w| word.eq_ignore_ascii_case(w))
}

#[test]
fn no_statement_of_any_corpus_panics_in_any_dialect() {
    let Some(statements) = statements() else { return };
    let blesses = std::env::var_os("QUERYMEND_BLESS").is_some();
    let is_whole = is_full_suite() || blesses;
    assert!(statements.len() > 3_000, "{}", statements.len());
    let mut corpora: Vec<&String> = statements.iter().map(|(c, _)| c).collect();
    corpora.sort();
    corpora.dedup();
    let mut table = String::from("| corpus | statements | questions |");
    for dialect in DIALECTS {
        write!(table, " {} |", dialect.name).unwrap();
    }
    table.push_str("\n|---|---|---|");
    table.push_str(&"---|".repeat(DIALECTS.len()));
    let policy = Policy::default();
    for corpus in corpora {
        let own: Vec<&String> = statements.iter().filter(|(c, _)| c == corpus).map(|(_, s)| s).collect();
        let questions = own.iter().filter(|s| is_question(s)).count();
        write!(table, "\n| {corpus} | {} | {questions} |", own.len()).unwrap();
        for (column, dialect) in DIALECTS.iter().enumerate() {
            let mut unparsed = 0;
            let tried = own.iter().enumerate().filter(|(row, _)| is_whole || (row + column) % QUICK_STRIDE == 0);
            for (_, sql) in tried {
                let review = review(sql, &ReviewContext { schema: None, dialect, policy: &policy, question: None });
                let broken = review.findings.iter().any(|f| {
                    let almost = Rule::from_code(f.code).is_some_and(|r| r.group == querymend_sql::RuleGroup::Syntax);
                    let other = matches!(
                        f.code,
                        "syntax-error" | "wrong-quote-style" | "reserved-word" | "limit-syntax" | "no-sql" | "too-deep"
                    );
                    (almost || other) && f.severity == Severity::Error
                });
                unparsed += usize::from(is_question(sql) && review.verdict() == Verdict::Refused && broken);
            }
            write!(table, " {unparsed} |").unwrap();
        }
    }
    if !is_whole {
        return;
    }
    let page = root().join("docs/measurements/parser-coverage.md");
    let text = std::fs::read_to_string(&page).unwrap_or_default();
    let (before, after) = text.split_once("<!-- counts -->\n").unwrap_or((&text, ""));
    let rest = after.split_once("<!-- end of counts -->").map_or("", |(_, r)| r);
    let right = format!("{before}<!-- counts -->\n{table}\n<!-- end of counts -->{rest}");
    if blesses {
        std::fs::write(page, right).unwrap();
    } else if !table.lines().skip(2).all(|row| text.contains(&row.split('|').take(4).collect::<Vec<_>>().join("|"))) {
        eprintln!(
            "not compared: the corpora are others than those that docs/measurements/parser-coverage.md speaks of"
        );
    } else {
        assert!(
            text == right,
            "docs/measurements/parser-coverage.md does not say what was counted; QUERYMEND_BLESS=1 writes it:\n{table}"
        );
    }
}
