//! What a model or a user may write, damaged without end: docs/design/fuzzing.md says what must hold.

use std::collections::HashMap;

use querymend_sql::dialect::DIALECTS;
use querymend_sql::finding::apply_edits;
use querymend_sql::resolve::resolve;
use querymend_sql::{
    Applicability, Approved, Dialect, Edit, EngineError, ParsedQuery, Policy, RULES, RepairOutcome, RepairRequest,
    RepairStatus, Review, ReviewContext, Rule, Schema, Severity, Span, Verdict, classify, dialect, repair, review,
};
use querymend_testing::{FuzzTarget, Random, mutate_text};
use rusqlite::fallible_iterator::FallibleIterator;
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};

/// An input is a dialect's name on a line of its own, and the text behind it.
fn parts(input: &[u8]) -> (&'static Dialect, String) {
    let input = String::from_utf8_lossy(input);
    let named = input.split_once('\n').and_then(|(name, text)| Some((Dialect::from_name(name)?, text)));
    let (dialect, text) = named.unwrap_or((&dialect::SQLITE, &input));
    (dialect, text.to_owned())
}

fn written(dialect: &str, text: &str) -> Vec<u8> {
    format!("{dialect}\n{text}").into_bytes()
}

/// The examples of the rules' pages, which hold what models really get wrong.
fn pages() -> Vec<Vec<u8>> {
    let mut out = Vec::new();
    for block in RULES.iter().flat_map(|rule| rule.page.split("```sql").skip(1)) {
        let Some((tag, rest)) = block.split_once('\n') else { continue };
        let Some(text) = rest.split("\n```").next() else { continue };
        let name = if tag.trim().is_empty() { "sqlite" } else { tag.trim() };
        out.push(written(name, text));
    }
    out
}

/// A damaged text, now and then for another dialect.
fn make(random: &mut Random, pool: &[Vec<u8>]) -> Vec<u8> {
    let words: Vec<&str> = include_str!("../fuzz/words.txt").lines().collect();
    let texts: Vec<Vec<u8>> = (0..3).filter_map(|_| random.pick(pool).cloned()).collect();
    let (mut dialect, first) = texts.first().map(|first| parts(first)).unwrap_or((&dialect::SQLITE, String::new()));
    let others = texts.iter().skip(1).map(|other| parts(other).1.into_bytes());
    let bare: Vec<Vec<u8>> = [first.clone().into_bytes(), first.into_bytes()].into_iter().chain(others).collect();
    if random.below(4) == 0 {
        dialect = random.pick(DIALECTS).copied().unwrap_or(dialect);
    }
    written(dialect.name, &String::from_utf8_lossy(&mutate_text(random, &bare, &words)))
}

fn is_within(span: Span, text: &str) -> bool {
    span.start <= span.end && text.is_char_boundary(span.start) && text.is_char_boundary(span.end)
}

fn edits_are_sound(edits: &[Edit], text: &str, of: &str) {
    assert!(edits.iter().all(|edit| is_within(edit.span, text)), "an edit lies outside of the text: {of}: {edits:?}");
    assert!(edits.windows(2).all(|two| two[0].span.end <= two[1].span.start), "edits overlap: {of}: {edits:?}");
}

/// Statements that would be hidden from the review if they were cut away as prose.
const WRITING: [&str; 7] = [
    "insert into ",
    "delete from ",
    "drop table ",
    "truncate table ",
    "alter table ",
    "update products set ",
    "merge into ",
];

#[test]
fn fuzz_extraction() {
    let target = FuzzTarget::new("extraction", env!("CARGO_MANIFEST_DIR")).seeds(pages()).inputs(1_500);
    target.run(&mut make, &|input| {
        let (dialect, text) = parts(input);
        let policy = Policy::default();
        let query = ParsedQuery::parse(&text, dialect, &policy);
        let mut edits: Vec<Edit> = query.steps.iter().flat_map(|step| step.edits.clone()).collect();
        edits.sort_by_key(|edit| (edit.span.start, edit.span.end));
        edits_are_sound(&edits, &text, "salvage");
        assert!(query.comments.iter().all(|comment| is_within(comment.span, &text)), "{:?}", query.comments);
        if query.failure.is_some() {
            assert!(query.statements.is_empty(), "there are statements in spite of {:?}", query.failure);
            return;
        }
        let bare = |text: &str| text.trim().trim_end_matches(|c: char| c == ';' || c.is_whitespace()).to_owned();
        assert_eq!(
            bare(&apply_edits(&text, &edits)),
            bare(&query.sql),
            "what is read is not the text with its edits: {:?}",
            query.steps
        );
        let json = query.steps.iter().any(|step| step.code == "json-wrapped");
        for edit in &edits {
            let cut = text[edit.span.start..edit.span.end].to_lowercase();
            let begins = |at: usize| !cut[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_');
            // What other strings of JSON say is not run; behind the one that was taken, its closing quote is counted too.
            let behind = usize::from(cut.starts_with('"') && edit.span.start > 0);
            let in_string = |at: usize| json && (cut[..at].matches('"').count() + behind) % 2 == 1;
            // A comment does nothing, whatever it says.
            let in_comment = |at: usize| cut[..at].rfind("/*") > cut[..at].rfind("*/");
            let runs = |at: usize| begins(at) && !in_string(at) && !in_comment(at);
            let written = WRITING.iter().find(|words| cut.match_indices(**words).any(|(at, _)| runs(at)));
            assert!(written.is_none(), "a statement that writes was cut away: {written:?}");
        }
        let again = ParsedQuery::parse(&query.sql, dialect, &policy);
        assert_eq!(again.failure, None, "what was salvaged cannot be read: {:?}", query.sql);
        // A comment that has swallowed the clauses behind it is looked for only where nothing else was around the SQL.
        if !query.sql.contains("--") {
            assert_eq!(bare(&again.sql), bare(&query.sql), "what was salvaged is salvaged again");
        }
    });
}

#[test]
fn fuzz_resolver() {
    let schemas = schemas();
    let target = FuzzTarget::new("resolver", env!("CARGO_MANIFEST_DIR")).seeds(pages()).inputs(1_500);
    target.run(&mut make, &|input| {
        let (dialect, text) = parts(input);
        let query = ParsedQuery::parse(&text, dialect, &Policy::default());
        for schema in [None, schemas.get(dialect.name)] {
            for statement in &query.statements {
                let facts = resolve(statement, schema, dialect);
                let places = facts
                    .blocks
                    .iter()
                    .map(|block| block.select_span)
                    .chain(facts.sources.iter().map(|source| source.span));
                let places = places.chain(facts.references.iter().map(|reference| reference.span));
                let places = places.chain(facts.calls.iter().map(|call| call.span));
                let places = places.chain(facts.tables.iter().map(|table| table.span));
                let places = places.chain(facts.arity_mismatches.iter().map(|arity| arity.span));
                for place in places.chain(facts.features.iter().map(|(_, place)| *place)) {
                    assert!(is_within(query.span(place), &text), "{place:?} lies outside of the text");
                }
                // What is not changed by salvage stands where the fact says.
                let untouched = query.steps.iter().all(|step| step.code == "trailing-semicolon");
                // The tokenizer loses count in what MySQL runs of a comment; that is always refused.
                let untouched = untouched && !query.comments.iter().any(|comment| comment.executable);
                for reference in facts.references.iter().filter(|_| untouched) {
                    let there = query.text(query.span(reference.name.span));
                    let quoted = reference.name.quote_style.is_some();
                    assert!(
                        quoted || there == reference.name.value,
                        "`{}` is said to stand at `{there}`",
                        reference.name.value
                    );
                }
            }
        }
    });
}

fn schemas() -> HashMap<&'static str, Schema> {
    let schema = |dialect: &&'static Dialect| {
        let ddl = include_str!("../pages/shop.sql").replace('"', &dialect.identifier_quote.to_string());
        (dialect.name, Schema::from_ddl(&ddl, dialect).unwrap())
    };
    DIALECTS.iter().map(schema).collect()
}

/// The shop, in a database that refuses everything but reading.
fn shop() -> rusqlite::Connection {
    let mut connection = rusqlite::Connection::open_in_memory().unwrap();
    connection.execute_batch(include_str!("../pages/shop.sql")).unwrap();
    connection.authorizer(Some(reads)).unwrap();
    connection
}

fn reads(action: AuthContext<'_>) -> Authorization {
    match action.action {
        AuthAction::Select | AuthAction::Read { .. } | AuthAction::Recursive => Authorization::Allow,
        AuthAction::Function { function_name } if function_name != "load_extension" => Authorization::Allow,
        _ => Authorization::Deny,
    }
}

/// SQLite itself says whether what was approved only reads, and is one statement.
fn only_reads(approved: &Approved, shop: &rusqlite::Connection) {
    if approved.dialect().name != "sqlite" {
        return;
    }
    let mut batch = rusqlite::Batch::new(shop, approved.sql());
    match batch.next() {
        Ok(Some(statement)) => {
            assert!(statement.readonly(), "SQLite says that it writes");
            assert!(!matches!(batch.next(), Ok(Some(_))), "SQLite says that there are several statements");
        }
        Err(error) => {
            let refused = error.sqlite_error_code() == Some(rusqlite::ErrorCode::AuthorizationForStatementDenied);
            assert!(!refused, "SQLite says that it does more than read: {error}");
        }
        Ok(None) => {}
    }
}

fn errors(review: &Review) -> usize {
    review.findings.iter().filter(|finding| finding.severity == Severity::Error).count()
}

/// Functions that do more than compute, of all dialects.
const DANGEROUS: [&str; 5] = ["pg_sleep", "sleep", "load_file", "load_extension", "pg_read_file"];

/// Whether what is dangerous in one text is approved in what became of it. Of several statements that only read, the first may
/// be taken, and a function that nobody knows may be a misspelt one.
fn became_approved(before: &Review, after: &Review) -> bool {
    let now = after.source.to_lowercase();
    let dangerous = |code: &str, subject: &str| match code {
        "many-statements" => false,
        "forbidden-function" => {
            let name = subject.to_lowercase();
            DANGEROUS.contains(&name.as_str()) && now.contains(&format!("{name}("))
        }
        code => Rule::from_code(code).is_some_and(|rule| rule.group == querymend_sql::RuleGroup::Safety),
    };
    let mut errors = before.findings.iter().filter(|finding| finding.severity == Severity::Error);
    after.verdict() == Verdict::Approved && errors.any(|finding| dangerous(finding.code, &finding.subject))
}

fn findings_are_sound(review: &Review) {
    for finding in &review.findings {
        assert!(
            is_within(finding.span, &review.source),
            "{} lies outside of the text: {:?}",
            finding.code,
            finding.span
        );
        for fix in &finding.fixes {
            edits_are_sound(&fix.edits, &review.source, finding.code);
        }
    }
}

fn mend(text: &str, context: &ReviewContext<'_>) -> RepairOutcome {
    repair(
        &RepairRequest {
            text,
            context: *context,
            question: None,
            max_applicability: Applicability::Likely,
            error: None,
        },
        None,
    )
}

#[test]
fn fuzz_repair() {
    let (schemas, shop) = (schemas(), shop());
    let target = FuzzTarget::new("repair", env!("CARGO_MANIFEST_DIR")).seeds(pages()).inputs(400);
    target.run(&mut make, &|input| {
        let (dialect, text) = parts(input);
        let policy = Policy::default();
        let context = ReviewContext { schema: schemas.get(dialect.name), dialect, policy: &policy, question: None };
        let before = review(&text, &context);
        findings_are_sound(&before);
        let approved = before.approve().ok();
        approved.iter().for_each(|approved| only_reads(approved, &shop));

        let mended = mend(&text, &context);
        let after = review(&mended.sql, &context);
        findings_are_sound(&after);
        after.approve().iter().for_each(|approved| only_reads(approved, &shop));
        assert!(
            approved.is_none() || after.verdict() == Verdict::Approved,
            "what was harmless is so no more: {:?}",
            mended.sql
        );
        assert!(
            !became_approved(&before, &after),
            "what was dangerous is approved: {:?} by {:?}",
            mended.sql,
            mended.applied
        );
        match mended.status {
            RepairStatus::Untouched => {
                assert!(before.is_clean(), "it is not clean");
                assert_eq!(mended.sql, text, "it was changed");
                assert!(mended.applied.is_empty(), "{:?}", mended.applied);
            }
            RepairStatus::Mended => {
                assert!(after.is_clean(), "it is said to be mended: {:?}: {:?}", mended.sql, after.findings);
                assert!(!mended.applied.is_empty(), "nothing was done: {:?}", mended.sql);
                let again = mend(&mended.sql, &context);
                let same = (again.status, again.sql.as_str()) == (RepairStatus::Untouched, mended.sql.as_str());
                assert!(
                    same,
                    "mended twice: {:?} by {:?}, {:?} by {:?}",
                    mended.sql, mended.applied, again.sql, again.applied
                );
            }
            RepairStatus::GaveUp | RepairStatus::Refused => {
                let shrunk = errors(&after) <= errors(&before) || before.verdict() == Verdict::Refused;
                assert!(shrunk, "{} errors became {}: {:?}", errors(&before), errors(&after), mended.sql);
                assert!(
                    !mended.applied.is_empty() || mended.sql == text,
                    "changed, and nothing was done: {:?}",
                    mended.sql
                );
            }
        }
    });
}

#[test]
fn fuzz_engine_errors() {
    let recorded = |dialect: &&'static Dialect| {
        let path = format!("{}/tests/errors/{}.jsonl", env!("CARGO_MANIFEST_DIR"), dialect.name);
        let lines = std::fs::read_to_string(path).unwrap();
        let told = |line: &str| {
            let line: serde_json::Value = serde_json::from_str(line).unwrap();
            let [code, message] = ["code", "message"].map(|field| line[field].as_str().unwrap_or_default().to_owned());
            written(dialect.name, &format!("{code}\n{message}"))
        };
        lines.lines().map(told).collect::<Vec<_>>()
    };
    let target = FuzzTarget::new("engine_errors", env!("CARGO_MANIFEST_DIR"))
        .seeds(DIALECTS.iter().flat_map(recorded))
        .inputs(1_500);
    target.run(&mut make, &|input| {
        let (dialect, text) = parts(input);
        let (code, message) = text.split_once('\n').unwrap_or(("", &text));
        let error = EngineError { code: code.into(), message: message.into(), hint: None, position: Some(text.len()) };
        let said = classify(dialect, &error);
        assert!(Rule::from_code(said.finding).is_some(), "there is no rule {}", said.finding);
        for (hole, name) in &said.names {
            assert!(
                !name.is_empty() && message.contains(name.as_str()),
                "{hole} is {name:?}, which the engine did not say"
            );
        }
        // What a server says steers the repair, and makes nothing of it approved that is not.
        let policy = Policy::default();
        let context = ReviewContext { schema: None, dialect, policy: &policy, question: None };
        let request = RepairRequest {
            text: message,
            context,
            question: None,
            max_applicability: Applicability::Likely,
            error: Some(&said),
        };
        let (before, mended) = (review(message, &context), repair(&request, None));
        let after = review(&mended.sql, &context);
        assert!(!became_approved(&before, &after), "what was dangerous is approved: {:?}", mended.sql);
    });
}

#[test]
fn fuzz_ddl() {
    let shop = DIALECTS.iter().map(|dialect| {
        written(dialect.name, &include_str!("../pages/shop.sql").replace('"', &dialect.identifier_quote.to_string()))
    });
    let target = FuzzTarget::new("ddl", env!("CARGO_MANIFEST_DIR")).seeds(shop).inputs(300);
    target.run(&mut make, &|input| {
        let (dialect, text) = parts(input);
        let Ok(schema) = Schema::from_ddl(&text, dialect) else { return };
        let policy = Policy::default();
        let context = ReviewContext { schema: Some(&schema), dialect, policy: &policy, question: None };
        for table in schema.tables() {
            // Whatever a table is called, its own name, as it must be written, leads to it.
            let columns: Vec<String> =
                table.columns.iter().map(|column| dialect.quote_identifier(&column.name)).collect();
            let name: Vec<String> = table.name.split('.').map(|part| dialect.quote_identifier(part)).collect();
            findings_are_sound(&review(&format!("SELECT {} FROM {}", columns.join(", "), name.join(".")), &context));
        }
    });
}
