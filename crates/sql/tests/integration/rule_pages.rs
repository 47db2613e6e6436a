//! Every rule's page is its test: each SQL block is reviewed against `tests/pages/shop.sql` and must raise what the page says.
//!
//! Blocks of a page:
//! - ```` ```sql [dialect] ````: a query; followed by
//! - ```` ```finding ````: what the page's rule finds in it, a line each; without this block it must find nothing;
//! - ```` ```advice ````: what a model is told, a line each;
//! - ```` ```fixed safe|likely ````: the query with the first fix of its first finding; every error that has a fix shows it;
//! - ```` ```policy ````: JSON of the policy that the next query is held against;
//! - ```` ```question ````: the question that the next query is to answer;
//! - ```` ```values ````: `table.column: a, b, c` lines, all that these columns hold, for all queries that follow;
//! - ```` ```rows ````: what the query before it gave back, `a | b` lines under their names; the page's rule looks at these;
//! - ```` ```error dialect ````: `CODE message` lines of an engine, each of which must be classified as the page's rule.
//!
//! A longer fence (four backticks) holds an example with a fence in it.
//!
//! `QUERYMEND_BLESS=1` writes what was found into the pages instead of comparing it; `QUERYMEND_PAGE=safety,unknown-`
//! looks only at the pages of those groups and codes.

use std::sync::Arc;

use querymend_sql::finding::apply_edits;
use querymend_sql::schema::value_index::{ColumnValues, ValueIndex};
use querymend_sql::{
    Applicability, Cell, Dialect, EngineError, Finding, Policy, RULES, ReviewContext, Rows, Rule, Schema, Severity,
    Similarity, classify, dialect, inspect_rows, review,
};

/// Finds no name similar to another: pages show what spelling and values cover.
struct NoSynonyms;

impl Similarity for NoSynonyms {
    fn similarity(&self, _: &str, _: &str) -> f32 {
        0.0
    }
}

struct Block {
    tag: String,
    text: String,
    start: usize,
    end: usize,
    /// Behind the line that closes it.
    after: usize,
}

/// The query with the first fix of its first finding, and how sure that is.
fn fixed(findings: &[&Finding], source: &str) -> Option<(&'static str, String)> {
    let fix = findings.iter().find_map(|f| f.fixes.first())?;
    let sure = match fix.applicability {
        Applicability::Safe => "safe",
        Applicability::Likely => "likely",
        Applicability::Suggested => "suggested",
    };
    Some((sure, apply_edits(source, &fix.edits).trim_end().to_string()))
}

fn blocks(page: &str) -> Vec<Block> {
    let mut out = Vec::new();
    let mut open: Option<(usize, String, usize)> = None;
    let mut at = 0;
    for line in page.split_inclusive('\n') {
        let ticks = line.len() - line.trim_start_matches('`').len();
        if ticks >= 3 {
            let tag = line[ticks..].trim();
            match open.take() {
                None => open = Some((ticks, tag.to_string(), at + line.len())),
                // Only a bare fence of at least the same length closes, so that an example may hold shorter ones.
                Some((width, opened, start)) if ticks >= width && tag.is_empty() => {
                    let text = page[start..at].trim_end_matches('\n').to_string();
                    out.push(Block { tag: opened, text, start, end: at, after: at + line.len() })
                }
                inside => open = inside,
            }
        }
        at += line.len();
    }
    assert!(open.is_none(), "a block is not closed");
    out
}

/// `QUERYMEND_PAGE=safety,unknown-` looks only at the pages of these groups and of codes that begin like this.
fn wanted(rule: &Rule) -> bool {
    let Ok(names) = std::env::var("QUERYMEND_PAGE") else { return true };
    names.split(',').any(|n| rule.group.as_str() == n || rule.code.starts_with(n))
}

fn schema(dialect: &Dialect) -> Schema {
    let ddl = include_str!("../pages/shop.sql");
    // Only the way names are quoted differs between dialects here.
    let ddl = if dialect.grammar.is_delimited_identifier_start('"') { ddl.to_string() } else { ddl.replace('"', "`") };
    Schema::from_ddl(&ddl, dialect).unwrap()
}

/// What a block says that a query gave back.
fn rows(text: &str) -> Rows {
    let cell = |text: &str| match text.parse::<i64>() {
        Ok(number) => Cell::Integer(number),
        Err(_) if text == "NULL" => Cell::Null,
        Err(_) => text.parse().map_or_else(|_| Cell::Text(text.to_string()), Cell::Number),
    };
    let mut lines = text.lines().map(|line| line.split('|').map(str::trim).collect::<Vec<_>>());
    let columns = lines.next().unwrap_or_default().iter().map(|name| name.to_string()).collect();
    Rows { columns, rows: lines.map(|line| line.into_iter().map(cell).collect()).collect(), truncated: false }
}

/// A line of a block of values.
fn held(rule: &Rule, line: &str) -> ColumnValues {
    let (place, values) = line.split_once(": ").unwrap_or_else(|| panic!("{}: {line}", rule.code));
    let (table, column) = place.rsplit_once('.').unwrap_or_else(|| panic!("{}: {line}", rule.code));
    let values = values.split(", ").map(str::to_string).collect();
    ColumnValues { table: table.into(), column: column.into(), values, whole: true, ..ColumnValues::default() }
}

/// Runs a page and returns it with its finding and advice blocks as they should be.
fn run(rule: &Rule, page: &str) -> (String, usize) {
    let mut right = String::new();
    let mut copied = 0;
    let mut proofs = 0;
    let mut policy = Policy::default();
    let mut question: Option<String> = None;
    let mut values: Vec<ColumnValues> = Vec::new();
    let all = blocks(page);
    for (i, block) in all.iter().enumerate() {
        let mut words = block.tag.split_whitespace();
        let (kind, name) = (words.next().unwrap_or(""), words.next());
        match kind {
            "policy" => {
                policy = serde_json::from_str(&block.text).unwrap_or_else(|e| panic!("{}: policy: {e}", rule.code))
            }
            "question" => question = Some(block.text.clone()),
            "values" => values = block.text.lines().map(|line| held(rule, line)).collect(),
            "error" => {
                let dialect = Dialect::from_name(name.unwrap_or(""))
                    .unwrap_or_else(|| panic!("{}: error block without a dialect", rule.code));
                for line in block.text.lines() {
                    let (code, message) = line.split_once(' ').unwrap_or((line, ""));
                    let code = if code == "-" { "" } else { code };
                    let found = classify(
                        dialect,
                        &EngineError { code: code.into(), message: message.into(), ..EngineError::default() },
                    );
                    assert_eq!(found.finding, rule.code, "{}: {line}", rule.code);
                    proofs += 1;
                }
            }
            "sql" => {
                let dialect = name
                    .map_or(Some(&dialect::SQLITE), Dialect::from_name)
                    .unwrap_or_else(|| panic!("{}: {}", rule.code, block.tag));
                let schema = schema(dialect);
                schema.set_value_index(Arc::new(ValueIndex::new(values.clone())));
                schema.set_similarity(Arc::new(NoSynonyms));
                let context =
                    ReviewContext { schema: Some(&schema), dialect, policy: &policy, question: question.as_deref() };
                let review = review(&block.text, &context);
                let given = all.get(i + 1).filter(|next| next.tag == "rows");
                let found = match given {
                    Some(block) => inspect_rows(&review, &rows(&block.text), &context),
                    None => review.findings.clone(),
                };
                let own: Vec<_> = found.iter().filter(|f| f.code == rule.code).collect();
                proofs += own.len();
                let findings: Vec<String> = own
                    .iter()
                    .map(|f| {
                        let (line, column) = review.line_column(f.span.start);
                        format!("{}[{}] {line}:{column} {}", f.severity.as_str(), f.code, f.message)
                    })
                    .collect();
                let mut advice: Vec<&str> = own.iter().map(|f| f.advice.as_str()).filter(|a| !a.is_empty()).collect();
                advice.dedup();
                let mut said = false;
                let belongs = |b: &&Block| b.tag == "finding" || b.tag == "advice" || b.tag.starts_with("fixed");
                let mut after = given.map_or(block.after, |rows| rows.after);
                let mut mended = fixed(&own, &review.source);
                for next in all[i + 1 + usize::from(given.is_some())..].iter().take_while(belongs) {
                    after = next.after;
                    let text = match next.tag.as_str() {
                        "finding" => findings.join("\n"),
                        "advice" => advice.join("\n"),
                        tag => {
                            let (sure, text) =
                                mended.take().unwrap_or_else(|| panic!("{}: nothing mends\n{}", rule.code, block.text));
                            assert_eq!(
                                tag,
                                format!("fixed {sure}"),
                                "{}: how sure is the fix of\n{}",
                                rule.code,
                                block.text
                            );
                            text
                        }
                    };
                    said |= next.tag == "finding";
                    right.push_str(&page[copied..next.start]);
                    right.push_str(&text);
                    right.push('\n');
                    copied = next.end;
                }
                // What mends an error is shown.
                if let Some((sure, text)) = mended.filter(|_| own.iter().any(|f| f.severity == Severity::Error)) {
                    right.push_str(&page[copied..after]);
                    right.push_str(&format!("```fixed {sure}\n{text}\n```\n"));
                    copied = after;
                }
                assert!(
                    said || findings.is_empty(),
                    "{}: the page does not say that\n{}\nraises {findings:?}",
                    rule.code,
                    block.text
                );
                assert!(
                    !said || !findings.is_empty(),
                    "{}: nothing is found in\n{}\nbut {:?}",
                    rule.code,
                    block.text,
                    review.findings
                );
                policy = Policy::default();
                question = None;
                for finding in &own {
                    assert!(
                        finding.span.end <= review.source.len() && finding.span.start <= finding.span.end,
                        "{finding:?}"
                    );
                }
            }
            _ => {}
        }
    }
    right.push_str(&page[copied..]);
    (right, proofs)
}

#[test]
fn reproduces_every_rule_page_example() {
    let bless = std::env::var_os("QUERYMEND_BLESS").is_some();
    let mut wrong = Vec::new();
    for rule in RULES.iter().filter(|r| wanted(r)) {
        let (right, proofs) = run(rule, rule.page);
        assert!(proofs > 0, "the page of {} proves nothing", rule.code);
        if right == rule.page {
            continue;
        }
        if bless {
            let path =
                format!("{}/src/rules/{}/{}.md", env!("CARGO_MANIFEST_DIR"), rule.group, rule.code.replace('-', "_"));
            std::fs::write(path, &right).unwrap();
        } else {
            let line = right.lines().zip(rule.page.lines()).find(|(a, b)| a != b);
            wrong.push(format!("{}: {line:?} (found, page)", rule.code));
        }
    }
    assert!(wrong.is_empty(), "pages that do not say what is found:\n{}", wrong.join("\n"));
}

#[test]
fn requires_title_summary_and_sections_on_rule_pages() {
    for rule in RULES.iter().filter(|r| wanted(r)) {
        let page = rule.page;
        assert!(page.starts_with(&format!("# {}\n", rule.code)), "{}: the title is the code", rule.code);
        assert!(rule.summary().len() > 20, "{}: {}", rule.code, rule.summary());
        for heading in ["## Fix", "## Confidence"] {
            assert!(page.contains(heading), "{} has no {heading}", rule.code);
        }
    }
}

#[test]
fn codes_are_unique_and_every_error_row_has_a_rule() {
    for (i, rule) in RULES.iter().enumerate() {
        assert!(RULES[..i].iter().all(|r| r.code != rule.code), "{} twice", rule.code);
    }
    for dialect in dialect::DIALECTS {
        for row in dialect.errors {
            assert!(
                Rule::from_code(row.finding).is_some(),
                "{}: {} {} → {}",
                dialect.name,
                row.code,
                row.message,
                row.finding
            );
        }
    }
}
