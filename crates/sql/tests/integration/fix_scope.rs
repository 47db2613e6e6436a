//! Nothing outside the faulty nodes changes: what a fix takes away, stood where the fault is, and all the rest of the query is
//! there afterwards, in its order. Every fix of every finding is held to that, on the examples of the rules' pages and on
//! queries of real models with the schemas of their databases. Those lie beside the checkout (`../shared/data`); without them
//! the second half says so and proves nothing. A quick run takes every fourth query of real models.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use querymend_sql::diff::normalized_tokens;
use querymend_sql::finding::apply_edits;
use querymend_sql::{
    Applicability, Dialect, Finding, Fix, Policy, RULES, RepairRequest, ReviewContext, RewriteScope, Rule, RuleGroup,
    Schema, Span, dialect, repair, review,
};
use querymend_testing::is_full_suite;
use sqlparser::tokenizer::{Token, Tokenizer};

/// The groups whose fixes change names, values and clauses of a query that parses.
const GROUPS: [RuleGroup; 4] = [RuleGroup::Names, RuleGroup::Types, RuleGroup::Portable, RuleGroup::Shape];

/// A token: how it compares, and where it stands.
#[derive(Debug, Clone)]
struct Piece {
    key: String,
    span: Span,
    literal: bool,
    name: bool,
}

/// The tokens as [`normalized_tokens`] compares them, with their places; `None` for text that has none. A name in quotes is what
/// stands in them, and so is a literal: that quotes are put around something takes nothing away.
fn pieces(text: &str, dialect: &Dialect) -> Option<Vec<Piece>> {
    let tokens = Tokenizer::new(dialect.grammar, text).tokenize_with_location().ok()?;
    let starts: Vec<usize> = std::iter::once(0).chain(text.match_indices('\n').map(|(i, _)| i + 1)).collect();
    let offset = |line: u64, column: u64| {
        let start = starts[line as usize - 1];
        text[start..].char_indices().nth(column as usize - 1).map_or(text.len(), |(i, _)| start + i)
    };
    let mut out = Vec::new();
    for token in tokens {
        let span = Span::new(
            offset(token.span.start.line, token.span.start.column),
            offset(token.span.end.line, token.span.end.column),
        );
        let (mut literal, mut name) = (false, false);
        let key = match &token.token {
            Token::Whitespace(_) | Token::EOF => continue,
            Token::Word(word) if word.quote_style.is_none() => {
                name = !dialect.reserved_words.contains(&word.value);
                word.value.to_uppercase()
            }
            Token::Word(word) => {
                let inside = pieces(&word.value, dialect).unwrap_or_default();
                out.extend(inside.into_iter().map(|p| Piece { span, literal: false, name: true, ..p }));
                continue;
            }
            Token::Number(number, _) => {
                literal = true;
                number.clone()
            }
            Token::SingleQuotedString(text) | Token::EscapedStringLiteral(text) => {
                literal = true;
                text.clone()
            }
            other => other.to_string(),
        };
        out.push(Piece { key, span, literal, name });
    }
    while out.last().is_some_and(|p| p.key == ";") {
        out.pop();
    }
    Some(out)
}

/// Which of the first are not in the longest common subsequence of both.
fn lost<'p>(before: &'p [Piece], after: &[Piece]) -> Vec<&'p Piece> {
    let mut longest = vec![vec![0u32; after.len() + 1]; before.len() + 1];
    for i in (0..before.len()).rev() {
        for j in (0..after.len()).rev() {
            longest[i][j] = if before[i].key == after[j].key {
                longest[i + 1][j + 1] + 1
            } else {
                longest[i + 1][j].max(longest[i][j + 1])
            };
        }
    }
    let (mut i, mut j, mut out) = (0, 0, Vec::new());
    while i < before.len() {
        if j < after.len() && before[i].key == after[j].key {
            (i, j) = (i + 1, j + 1);
        } else if j == after.len() || longest[i + 1][j] >= longest[i][j + 1] {
            out.push(&before[i]);
            i += 1;
        } else {
            j += 1;
        }
    }
    out
}

/// What the edits of a fix take away: outside of them nothing can change, inside of them what is written again stays.
fn removed<'p>(before: &'p [Piece], fix: &Fix, dialect: &Dialect) -> Vec<&'p Piece> {
    let mut out = Vec::new();
    for edit in &fix.edits {
        let inside = |p: &Piece| p.span.start < edit.span.end && edit.span.start < p.span.end;
        let from = before.iter().position(inside).unwrap_or(before.len());
        let count = before[from..].iter().take_while(|p| inside(p)).count();
        out.extend(lost(&before[from..from + count], &pieces(&edit.text, dialect).unwrap_or_default()));
    }
    out
}

/// Words that begin a clause, or hold two queries together.
const CLAUSES: [&str; 13] = [
    "SELECT",
    "FROM",
    "JOIN",
    "ON",
    "WHERE",
    "GROUP",
    "HAVING",
    "ORDER",
    "LIMIT",
    "UNION",
    "EXCEPT",
    "INTERSECT",
    "DISTINCT",
];

/// What of the first, counted, is missing in the second.
fn missing(before: &[Piece], after: &[Piece], which: impl Fn(&Piece) -> bool) -> Vec<String> {
    let mut count: HashMap<&str, i32> = HashMap::new();
    for piece in after {
        *count.entry(&piece.key).or_default() += 1;
    }
    let mut out = Vec::new();
    for piece in before.iter().filter(|p| which(p)) {
        let left = count.entry(&piece.key).or_default();
        *left -= 1;
        if *left < 0 {
            out.push(piece.key.clone());
        }
    }
    out
}

/// The node that a finding underlines: of a call it underlines the name, and the arguments belong to it.
fn faulty(before: &[Piece], span: Span) -> Span {
    let Some(open) = before.iter().position(|p| p.span.start >= span.end).filter(|&i| before[i].key == "(") else {
        return span;
    };
    let mut depth = 0;
    let end = before[open..].iter().find(|p| {
        depth += i32::from(p.key == "(") - i32::from(p.key == ")");
        depth == 0
    });
    end.map_or(span, |p| span.join(p.span))
}

fn bare(name: &str) -> String {
    name.trim_matches(['"', '`', '[', ']']).to_uppercase()
}

/// The numbers behind a type: `x::decimal(10, 1)`.
fn sizes(before: &[Piece]) -> Vec<Span> {
    let typed = before.windows(3).enumerate().filter(|(_, p)| p[0].key == "::" && p[2].key == "(");
    let behind = |at: usize| before[at + 3..].iter().take_while(|p| p.key != ")").map(|p| p.span);
    typed.flat_map(|(at, _)| behind(at)).collect()
}

/// The numbers in a text, from small to large.
fn numbers(text: &str) -> Vec<&str> {
    let mut numbers: Vec<&str> = text.split(|c: char| !c.is_ascii_digit()).filter(|n| !n.is_empty()).collect();
    numbers.sort_unstable();
    numbers
}

/// A unit, a span of time, a format or a modifier: each dialect has its own. A count may stand in the quotes of one, and a day in
/// another order; SQL Server's day 0 is nothing elsewhere, and a comma is what stands between texts without saying so.
fn is_of_a_date(literal: &str, after: &[Piece]) -> bool {
    const UNITS: [&str; 8] = ["second", "minute", "hour", "day", "week", "month", "quarter", "year"];
    let lower = literal.to_lowercase();
    let unit = |word: &str| UNITS.contains(&word.trim_end_matches('s'));
    let letters = |c: char| "ymdhisMHSYDab%-/:. 24".contains(c);
    let format = literal.len() > 1 && literal.contains(['%', 'y', 'Y', 'M', 'm']) && literal.chars().all(letters);
    let counted = |p: &Piece| p.literal && p.key.split(|c: char| !c.is_ascii_digit()).any(|number| number == literal);
    let same_day = |p: &Piece| p.literal && numbers(literal).len() == 3 && numbers(&p.key) == numbers(literal);
    let plain = ["now", "0", ","].contains(&lower.as_str());
    lower.split_whitespace().any(unit) || plain || format || after.iter().any(|p| counted(p) || same_day(p))
}

/// What is wrong with a fix, if anything is.
fn complaint(text: &str, finding: &Finding, fix: &Fix, dialect: &Dialect) -> Option<String> {
    let before = pieces(text, dialect)?;
    let after = apply_edits(text, &fix.edits);
    let Some(after) = pieces(&after, dialect) else { return Some("the result has no tokens".into()) };
    let rewrite = Rule::from_code(finding.code).and_then(|rule| rule.rewrites);
    let elsewhere = finding.code.ends_with("another-dialect") || finding.code == "unknown-function";
    let sizes = sizes(&before);
    let own = |p: &Piece| is_of_a_date(&p.key, &after) || sizes.contains(&p.span);
    let literals = missing(&before, &after, |p| p.literal && !(elsewhere && own(p)));
    if !literals.is_empty() {
        return Some(format!("literals are lost: {literals:?}"));
    }
    let clause = |p: &Piece| CLAUSES.contains(&p.key.as_str()) && !p.name;
    let clauses =
        missing(&before, &after, |p| clause(p) && !rewrite.is_some_and(|r| r.clauses.contains(&p.key.as_str())));
    if !clauses.is_empty() {
        return Some(format!("clauses are lost: {clauses:?}"));
    }
    let names: Vec<String> = finding.subject.split('.').map(bare).collect();
    let fault = faulty(&before, finding.span);
    let gone = missing(&before, &after, |_| true);
    let may_go = |p: &Piece, r: RewriteScope| {
        let word = |w: &&str| *w == p.key || (*w == "a name" && p.name);
        r.clauses.contains(&p.key.as_str()) || r.tokens.iter().any(word) || (r.moves && !gone.contains(&p.key))
    };
    let elsewhere = removed(&before, fix, dialect).into_iter().filter(|p| {
        let underlined = fault.start <= p.span.start && p.span.end <= fault.end;
        let sized = sizes.contains(&p.span);
        !underlined && !sized && !names.contains(&bare(&p.key)) && !rewrite.is_some_and(|r| may_go(p, r))
    });
    let elsewhere: Vec<&str> = elsewhere.map(|p| p.key.as_str()).collect();
    (!elsewhere.is_empty()).then(|| format!("taken away elsewhere: {elsewhere:?}"))
}

/// Holds every fix of every finding to the rule; gives how many there were.
fn hold(text: &str, context: &ReviewContext<'_>, wrong: &mut Vec<String>) -> usize {
    let review = review(text, context);
    let mut fixes = 0;
    for finding in &review.findings {
        if !Rule::from_code(finding.code).is_some_and(|r| GROUPS.contains(&r.group)) {
            continue;
        }
        for fix in &finding.fixes {
            fixes += 1;
            let ordered = fix.edits.windows(2).all(|w| w[0].span.end <= w[1].span.start);
            assert!(ordered, "{}: edits overlap or are out of order: {:?}\n{text}", finding.code, fix.edits);
            if let Some(complaint) = complaint(text, finding, fix, context.dialect) {
                let after = apply_edits(text, &fix.edits);
                wrong.push(format!("{}: {complaint}\n  {text}\n  {after}\n  ({})", finding.code, fix.why));
            }
        }
    }
    fixes
}

/// How many tokens of a text the fixes that a repair applied touched, found by applying them again; `None` if it cannot be
/// told which they were.
fn touched(
    text: &str,
    applied: &[querymend_sql::AppliedFix],
    result: &str,
    context: &ReviewContext<'_>,
) -> Option<usize> {
    let Some((next, rest)) = applied.split_first() else {
        let same = normalized_tokens(text, context.dialect) == normalized_tokens(result, context.dialect);
        return same.then_some(0);
    };
    let before = pieces(text, context.dialect)?;
    let review = review(text, context);
    for finding in review.findings.iter().filter(|f| f.code == next.code) {
        for fix in finding.fixes.iter().filter(|f| f.why == next.why && f.applicability <= Applicability::Likely) {
            let more = touched(&apply_edits(text, &fix.edits), rest, result, context);
            if let Some(more) = more {
                return Some(more + removed(&before, fix, context.dialect).len());
            }
        }
    }
    None
}

/// Mends a text and holds the result against what the applied fixes touched; gives whether they could be followed.
fn hold_repair(text: &str, context: &ReviewContext<'_>, wrong: &mut Vec<String>) -> Option<bool> {
    let request = RepairRequest {
        text,
        context: *context,
        question: context.question,
        max_applicability: Applicability::Likely,
        error: None,
    };
    let repair = repair(&request, None);
    if repair.applied.is_empty() {
        return None;
    }
    let Some(touched) = touched(text, &repair.applied, &repair.sql, context) else { return Some(false) };
    let (before, after) = (pieces(text, context.dialect)?, pieces(&repair.sql, context.dialect)?);
    let mut lost = lost(&before, &after);
    // What ends a statement stands at the end of what is left of several.
    lost.retain(|p| p.key != ";");
    if lost.len() > touched {
        let lost: Vec<&str> = lost.iter().map(|p| p.key.as_str()).collect();
        wrong.push(format!(
            "the fixes touch {touched} tokens, but these are gone: {lost:?}\n  {text}\n  {}",
            repair.sql
        ));
    }
    Some(true)
}

/// The examples of the rules' pages: the dialect and the query.
fn examples() -> Vec<(&'static Dialect, &'static str)> {
    let mut out = Vec::new();
    for rule in RULES {
        for block in rule.page.split("```sql").skip(1) {
            let Some((tag, rest)) = block.split_once('\n') else { continue };
            let Some(text) = rest.split("\n```").next() else { continue };
            let name = tag.trim();
            let named = if name.is_empty() { Some(&dialect::SQLITE) } else { Dialect::from_name(name) };
            out.extend(named.map(|d| (d, text)));
        }
    }
    out
}

fn report(wrong: &[String]) {
    let mut kinds: HashMap<&str, usize> = HashMap::new();
    let few = wrong.iter().filter(|w| {
        let count = kinds.entry(w.split('[').next().unwrap_or("")).or_default();
        *count += 1;
        *count <= 3
    });
    let shown: Vec<&str> = few.map(String::as_str).collect();
    assert!(wrong.is_empty(), "{} fixes change what they should not:\n{}", wrong.len(), shown.join("\n"));
}

#[test]
fn keeps_tokens_outside_the_fix_in_rule_page_examples() {
    let policy = Policy::default();
    let (mut wrong, mut fixes, mut followed) = (Vec::new(), 0, 0);
    for (dialect, text) in examples() {
        let ddl = include_str!("../pages/shop.sql").replace('"', &dialect.identifier_quote.to_string());
        let schema = Schema::from_ddl(&ddl, dialect).unwrap();
        let context = ReviewContext { schema: Some(&schema), dialect, policy: &policy, question: None };
        let text = review(text, &context).references.sql;
        fixes += hold(&text, &context, &mut wrong);
        followed += usize::from(hold_repair(&text, &context, &mut wrong) == Some(true));
    }
    eprintln!("{fixes} fixes, {followed} repairs");
    report(&wrong);
    assert!(fixes > 100 && followed > 100, "{fixes} fixes, {followed} repairs");
}

fn data() -> Option<PathBuf> {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    if !data.is_dir() {
        eprintln!("skipped: ../shared/data is not there");
        return None;
    }
    Some(data)
}

/// The schema of a SQLite file, as its own CREATE TABLE statements say it.
fn stored_schema(path: &Path) -> Schema {
    let flags = rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY;
    let connection = rusqlite::Connection::open_with_flags(path, flags).unwrap();
    let mut tables = connection
        .prepare("SELECT sql FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE '%sqlite_sequence%'")
        .unwrap();
    let ddl: Vec<String> = tables.query_map([], |row| row.get(0)).unwrap().map(|r| r.unwrap()).collect();
    Schema::from_ddl(&ddl.join(";\n"), &dialect::SQLITE).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

#[test]
fn keeps_tokens_outside_the_fix_in_model_predictions() {
    let Some(data) = data() else { return };
    let policy = Policy::default();
    let mut schemas: HashMap<String, Schema> = HashMap::new();
    let (mut wrong, mut fixes, mut followed, mut lost_track) = (Vec::new(), 0, 0, 0);
    let lines = std::fs::read_to_string(data.join("predictions/failures_sqlite.jsonl")).unwrap();
    for line in lines.lines().step_by(if is_full_suite() { 1 } else { 4 }) {
        let row: serde_json::Value = serde_json::from_str(line).unwrap();
        let db = row["db"].as_str().unwrap();
        let schema = &*schemas.entry(db.to_string()).or_insert_with(|| stored_schema(&data.join(db)));
        let context = ReviewContext {
            schema: Some(schema),
            dialect: &dialect::SQLITE,
            policy: &policy,
            question: row["question"].as_str(),
        };
        let text = review(row["pred"].as_str().unwrap(), &context).references.sql;
        fixes += hold(&text, &context, &mut wrong);
        match hold_repair(&text, &context, &mut wrong) {
            Some(true) => followed += 1,
            Some(false) => lost_track += 1,
            None => {}
        }
    }
    eprintln!("{fixes} fixes, {followed} repairs, {lost_track} that could not be followed");
    report(&wrong);
    if is_full_suite() {
        assert!(fixes > 1_000 && followed > 500, "{fixes} fixes, {followed} repairs");
        assert!(lost_track * 20 < followed, "{lost_track} repairs cannot be followed");
    } else {
        assert!(fixes > 100 && followed > 50, "{fixes} fixes, {followed} repairs");
    }
}

/// Decorations that a valid query keeps: `{}` is the query, on one line where a comment follows it.
const DECORATIONS: [&str; 7] = [
    "{} -- AND 1 = 0",
    "{} -- all of them WHERE price > 10 GROUP BY name",
    "-- SELECT nothing FROM nowhere\n{}",
    "/* the query is: SELECT 1; */ {}",
    "{}\n-- Hope this helps! Here is the query you asked for: SELECT 2",
    "{};",
    "  {}\n\n",
];

/// Literals that look like prose, fences, JSON, escapes or comments.
const LITERALS: [&str; 6] = [
    "here is the query: SELECT 1",
    "```sql",
    "a -- b FROM c",
    "{\"sql\": \"SELECT 1\"}",
    "first\\_name ‘quoted’ “text”",
    "Sure! Note that it''s # not // a /* comment */",
];

/// Checks that a valid query is reviewed and repaired as the very tokens that were given.
#[track_caller]
fn check_verbatim(sql: &str, context: &ReviewContext<'_>) -> Result<(), String> {
    let found = review(sql, context);
    let approved = found.approve().map_err(|refused| format!("{sql}: {refused}"))?;
    if normalized_tokens(approved.sql(), context.dialect) != normalized_tokens(sql.trim(), context.dialect) {
        return Err(format!("{sql}\n  would run as {}", approved.sql()));
    }
    let request = RepairRequest {
        text: sql,
        context: *context,
        question: None,
        max_applicability: Applicability::Likely,
        error: None,
    };
    let repaired = repair(&request, None);
    (repaired.sql == sql).then_some(()).ok_or_else(|| format!("{sql}\n  was repaired to {}", repaired.sql))
}

/// Returns the query under every decoration, and with literals that look like something else.
fn decorated(sql: &str) -> Vec<String> {
    let sql = sql.trim().trim_end_matches(';');
    let one_line = sql.split_whitespace().collect::<Vec<_>>().join(" ");
    let plain = if sql.contains("--") || sql.contains('\'') { sql.to_string() } else { one_line };
    let mut out: Vec<String> = DECORATIONS.iter().map(|d| d.replace("{}", &plain)).collect();
    out.extend(LITERALS.iter().map(|text| format!("SELECT * FROM ({plain}\n) AS given WHERE '{text}' <> ''")));
    out
}

#[test]
fn valid_queries_run_verbatim_under_decorations() {
    let policy = Policy::default();
    let (mut checked, mut wrong) = (0, Vec::new());
    let mut hold = |sql: &str, context: &ReviewContext<'_>| {
        let is_valid = |text: &str| {
            let found = review(text, context);
            found.is_clean()
                && !found
                    .findings
                    .iter()
                    .any(|f| Rule::from_code(f.code).is_some_and(|r| r.group == RuleGroup::LlmOutput))
        };
        if !is_valid(sql) {
            return;
        }
        for text in decorated(sql) {
            // A query with two columns of one name, for example, cannot stand in parentheses.
            if text.starts_with("SELECT * FROM (") && !review(&text, context).is_clean() {
                continue;
            }
            checked += 1;
            wrong.extend(check_verbatim(&text, context).err());
        }
    };
    for (dialect, sql) in examples() {
        let ddl = include_str!("../pages/shop.sql").replace('"', &dialect.identifier_quote.to_string());
        let schema = Schema::from_ddl(&ddl, dialect).unwrap();
        let context = ReviewContext { schema: Some(&schema), dialect, policy: &policy, question: None };
        hold(sql, &context);
    }
    if let Some(data) = data() {
        let mut schemas: HashMap<String, Schema> = HashMap::new();
        let lines = std::fs::read_to_string(data.join("predictions/controls_correct.jsonl")).unwrap();
        for line in lines.lines().step_by(if is_full_suite() { 1 } else { 10 }) {
            let row: serde_json::Value = serde_json::from_str(line).unwrap();
            let db = row["db"].as_str().unwrap();
            let schema = &*schemas.entry(db.to_string()).or_insert_with(|| stored_schema(&data.join(db)));
            let context =
                ReviewContext { schema: Some(schema), dialect: &dialect::SQLITE, policy: &policy, question: None };
            hold(row["pred"].as_str().unwrap(), &context);
        }
    }
    eprintln!("{checked} decorated queries");
    let shown: Vec<&str> = wrong.iter().map(String::as_str).take(5).collect();
    assert!(wrong.is_empty(), "{} of {checked} are changed:\n{}", wrong.len(), shown.join("\n"));
    assert!(checked > 500, "{checked}");
}
