//! Text in; findings, a verdict and, where nothing is wrong, permission to run out.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;
use sqlparser::ast::BinaryOperator;
use sqlparser::tokenizer::TokenWithSpan;

use crate::dialect::{Classified, Dialect};
use crate::diff::Tokens;
use crate::finding::{Finding, Fix, Severity, Span};
use crate::policy::Policy;
use crate::query::{Failure, Query, line_column};
use crate::rules::names::unknown_function;
use crate::rules::value::text_of;
use crate::rules::{RULES, Subject};
use crate::salvage::has_typographic_quotes;
use crate::schema::Schema;
use crate::scope::{self, Facts, TableMeaning};
use crate::validator;

/// What a text is held against.
#[derive(Clone, Copy)]
pub struct Context<'c> {
    /// The tables there are. Without a schema, names of tables and columns are taken as they come.
    pub schema: Option<&'c Schema>,
    /// The dialect it must be.
    pub dialect: &'static Dialect,
    /// The rules of the house.
    pub policy: &'c Policy,
    /// The question that the query is to answer, where it is known: its words rank the ways to mend a name.
    pub question: Option<&'c str>,
}

/// Whether a query may be sent to a database at all. Names that do not exist are no danger: they are findings, and the
/// verdict does not speak of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// One statement that only reads, of tables that may be read.
    Approved,
    /// Anything else, and whatever does not parse.
    Refused,
}

/// The names a query uses, for logs and `--explain`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Extracted {
    /// Tables that FROM names, as they are written, with those that do not exist.
    pub tables: Vec<String>,
    /// Those of `tables` that the schema does not have; empty also where there is no schema to look in.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unknown_tables: Vec<String>,
    /// Names that WITH defines.
    pub ctes: Vec<String>,
    /// Names that FROM gives, with the table that they stand for: `p` → `products`; empty for a subquery or a CTE.
    pub aliases: Vec<(String, String)>,
    /// Tables that would have been allowed; absent if all are.
    pub allowed_tables: Option<Vec<String>>,
    /// The SQL that was looked at.
    pub sql: String,
}

/// A value that a query looks for in a stored column: `WHERE country = 'DE'`. Whether the column ever holds it, only the
/// database knows.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, JsonSchema)]
pub struct Stated {
    /// The table.
    pub table: String,
    /// Its column.
    pub column: String,
    /// The text looked for.
    pub value: String,
}

impl Stated {
    /// The table and the column as they are written in a query.
    pub fn place(&self, dialect: &Dialect) -> (String, String) {
        let table: Vec<String> = self.table.split('.').map(|part| dialect.quoted(part)).collect();
        (table.join("."), dialect.quoted(&self.column))
    }

    /// The query that gives a row if the column holds the value. It is reviewed like any other.
    pub fn lookup(&self, context: &Context<'_>) -> Option<Approved> {
        let (table, column) = self.place(context.dialect);
        let value = self.value.replace('\'', "''");
        review(&format!("SELECT 1 FROM {table} WHERE {column} = '{value}' LIMIT 1"), context).approve().ok()
    }
}

/// Columns by which a query joins a table, and which no declared key makes unique. Whether a value stands in two rows, so that
/// the join multiplies those it meets, only the database knows.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct JoinKey {
    /// The table that is joined.
    pub table: String,
    /// Its columns that must be equal to those of tables before it.
    pub columns: Vec<String>,
}

/// So many rows of a table are looked at to see whether a key stands in two of them.
const MOST_KEYS: usize = 100_000;

impl JoinKey {
    /// The query that gives a row if a value of the key stands in two rows of the table. It is reviewed like any other.
    pub fn lookup(&self, context: &Context<'_>) -> Option<Approved> {
        let table: Vec<String> = self.table.split('.').map(|part| context.dialect.quoted(part)).collect();
        let columns: Vec<String> = self.columns.iter().map(|c| context.dialect.quoted(c)).collect();
        // What is NULL meets nothing.
        let known: Vec<String> = columns.iter().map(|c| format!("{c} IS NOT NULL")).collect();
        let (table, columns, known) = (table.join("."), columns.join(", "), known.join(" AND "));
        let keys = format!("SELECT {columns} FROM {table} WHERE {known} LIMIT {MOST_KEYS}");
        let sql = format!("SELECT 1 FROM ({keys}) AS met GROUP BY {columns} HAVING COUNT(*) > 1 LIMIT 1");
        review(&sql, context).approve().ok()
    }
}

/// How a query is built, as far as that says how easily it goes wrong without any fault.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Shape {
    /// Rows of several tables are put together.
    pub joins: bool,
    /// There is a query in it, or several are put together.
    pub nested: bool,
    /// Rows are grouped.
    pub groups: bool,
}

impl Shape {
    fn of(facts: &Facts<'_>) -> Self {
        Self {
            joins: facts.blocks.iter().any(|block| block.sources.len() > 1),
            nested: facts.blocks.len() > 1,
            groups: facts.blocks.iter().any(|block| block.grouped),
        }
    }
}

/// What was found out about a text.
#[derive(Debug, Clone)]
pub struct Review {
    /// The text as given; spans speak of it.
    pub source: String,
    /// Everything found, in the order of the text.
    pub findings: Vec<Finding>,
    /// The names it uses.
    pub extracted: Extracted,
    /// The texts that it looks for with `=` or IN.
    pub stated: Vec<Stated>,
    /// How it joins tables, where no declared key says that rows are not multiplied.
    pub join_keys: Vec<JoinKey>,
    /// How it is built.
    pub shape: Shape,
    /// A function that came late said in words that older databases of the dialect have as well.
    pub(crate) plainer: Option<Fix>,
    /// What the parser made the statement of; nothing if it does not parse.
    tokens: Vec<TokenWithSpan>,
    dialect: &'static Dialect,
    ready: Option<String>,
    policy: Arc<Policy>,
}

/// A query that may be sent to a database. Only [`Review::approve`] makes one.
#[derive(Debug, Clone, PartialEq)]
pub struct Approved {
    sql: String,
    dialect: &'static Dialect,
    policy: Arc<Policy>,
}

impl Approved {
    /// The one statement, without comments.
    pub fn sql(&self) -> &str {
        &self.sql
    }

    /// The dialect it was approved for.
    pub fn dialect(&self) -> &'static Dialect {
        self.dialect
    }

    /// The policy it was approved under. An engine that learns which tables a query really reads, behind views for example,
    /// holds them against it.
    pub fn policy(&self) -> &Policy {
        &self.policy
    }
}

/// Why a query may not be sent: the findings that make it dangerous, or no query.
#[derive(Debug, Clone, thiserror::Error)]
#[error("the query is refused: {}", .errors.first().map_or("it is not a question", |f| f.message.as_str()))]
pub struct Refused {
    /// The findings that speak against it.
    pub errors: Vec<Finding>,
}

impl Review {
    /// Approved or refused.
    pub fn verdict(&self) -> Verdict {
        if self.ready.is_some() { Verdict::Approved } else { Verdict::Refused }
    }

    /// Whether no finding is an error: nothing we know of makes the database refuse the query.
    pub fn is_clean(&self) -> bool {
        self.ready.is_some() && !self.findings.iter().any(|f| f.severity == Severity::Error)
    }

    /// Whether the text parses and every name in it resolves.
    fn resolves(&self) -> bool {
        let is_unresolved = |f: &Finding| {
            f.severity == Severity::Error && crate::rules::Rule::named(f.code).is_some_and(|rule| rule.group == "names")
        };
        !self.tokens.is_empty() && !self.findings.iter().any(is_unresolved)
    }

    /// Permission to run the query, with salvage and comments already taken care of. It says that the query is
    /// harmless, not that it will run: see [`Review::is_clean`].
    pub fn approve(&self) -> Result<Approved, Refused> {
        match &self.ready {
            Some(sql) => Ok(Approved { sql: sql.clone(), dialect: self.dialect, policy: Arc::clone(&self.policy) }),
            None => Err(Refused {
                errors: self.findings.iter().filter(|f| f.severity == Severity::Error).cloned().collect(),
            }),
        }
    }

    /// The SQL split up, to be compared with other queries.
    pub fn tokens(&self) -> Tokens {
        if self.tokens.is_empty() {
            Tokens::of(&self.extracted.sql, self.dialect)
        } else {
            Tokens::of_parsed(&self.tokens, self.extracted.sql.len())
        }
    }

    /// The dialect it was held against.
    pub fn dialect(&self) -> &'static Dialect {
        self.dialect
    }

    /// Line and column, both from 1, of a byte of the text.
    pub fn line_column(&self, offset: usize) -> (usize, usize) {
        line_column(&self.source, offset)
    }
}

/// How deep a stack a long text is read with. Expressions nest as deep as they are long; the parser and the resolver
/// grow their stacks themselves, but the tree is also dropped.
pub(crate) const DEEP_STACK: usize = 64 << 20;
const LONG_TEXT: usize = 8 << 10;

/// Reviews a text. Never fails and never panics: what cannot be read is a finding.
pub fn review(text: &str, context: &Context<'_>) -> Review {
    review_refused(text, context, None)
}

/// Reviews a text that a database refused: what the review alone takes for a risk, or does not see, is then known to be wrong.
pub fn review_refused(text: &str, context: &Context<'_>, refusal: Option<&Classified>) -> Review {
    if text.len() > LONG_TEXT {
        stacker::grow(DEEP_STACK, || review_here(text, context, refusal))
    } else {
        review_here(text, context, refusal)
    }
}

/// Reviews the text as it is. Only where its names do not resolve is it also reviewed with its lost characters restored, and
/// that form is taken if all its names resolve: a query that parses and resolves is never changed.
fn review_here(text: &str, context: &Context<'_>, refusal: Option<&Classified>) -> Review {
    let review = review_query(Query::read(text, context.dialect, context.policy), context, refusal);
    // Without a schema any name resolves; a typographic quote behind `=` is then evidence enough.
    if review.resolves() && (context.schema.is_some() || !has_typographic_quotes(text)) {
        return review;
    }
    let restored = Query::read_restored(text, context.dialect, context.policy);
    let restored = restored.map(|query| review_query(query, context, refusal));
    restored.filter(Review::resolves).unwrap_or(review)
}

fn review_query(query: Query, context: &Context<'_>, refusal: Option<&Classified>) -> Review {
    let facts = match query.statements.as_slice() {
        [statement] => scope::resolve(statement, context.schema, context.dialect),
        _ => Facts::default(),
    };
    let hazards = crate::safety::hazards(&query.statements);
    let subject = Subject { query: &query, facts: &facts, hazards: &hazards, context, refusal };
    let mut findings = Vec::new();
    let mut safe = query.failure.is_none() && query.statements.len() == 1;
    for rule in RULES.iter().filter(|rule| context.policy.checks(rule)) {
        let before = findings.len();
        (rule.check)(&subject, &mut findings);
        safe &= rule.group != "safety" || !findings[before..].iter().any(|f: &Finding| f.severity == Severity::Error);
    }
    if !context.policy.deny_columns.is_empty() {
        not_mended_into_others(&mut findings);
    }
    let extracted = extract(&query, &facts, context);
    let validated = validator::Subject { text: &query.source, extracted: &extracted, dialect: context.dialect };
    let before = findings.len();
    context.policy.validators.validate(&validated, &mut findings);
    safe &= !findings[before..].iter().any(|f| f.severity == Severity::Error);
    findings.sort_by_key(|f| (f.span.start, f.severity));
    // Two walks may come upon the same thing.
    findings.dedup_by(|a, b| a.code == b.code && a.span == b.span && a.message == b.message);
    let ready = if safe { sendable(&query, context.dialect) } else { None };
    let (stated, join_keys) = (stated(&facts), join_keys(&facts));
    let shape = Shape::of(&facts);
    let plainer = unknown_function::plainer(&subject);
    let policy = Arc::new(context.policy.clone());
    Review {
        source: query.source,
        findings,
        extracted,
        stated,
        join_keys,
        shape,
        plainer,
        tokens: query.tokens,
        dialect: context.dialect,
        ready,
        policy,
    }
}

/// A column that may not be read is not in the schema, and so would be an unknown one, for which another that is spelled alike
/// could be put in: that would be another question.
fn not_mended_into_others(findings: &mut Vec<Finding>) {
    let code = crate::rules::safety::protected_column::RULE.code;
    let hidden: Vec<Span> = findings.iter().filter(|f| f.code == code).map(|f| f.span).collect();
    let meets = |span: Span| hidden.iter().any(|h| h.start < span.end && span.start < h.end);
    let of_names = |code: &str| crate::rules::Rule::named(code).is_some_and(|rule| rule.group == "names");
    findings.retain(|f| !(meets(f.span) && of_names(f.code)));
}

/// What is sent, if it is made of the very tokens that were reviewed. It always should be; if not, nothing is sent.
fn sendable(query: &Query, dialect: &Dialect) -> Option<String> {
    let sql = query.sendable();
    let untouched = query.comments.is_empty() && query.sql.trim_start().starts_with(&sql);
    (untouched || crate::diff::exact(&sql, dialect) == crate::diff::exact(&query.sql, dialect)).then_some(sql)
}

fn extract(query: &Query, facts: &Facts<'_>, context: &Context<'_>) -> Extracted {
    if query.failure == Some(Failure::Empty) {
        return Extracted::default();
    }
    let (mut tables, mut unknown_tables): (Vec<String>, Vec<String>) = Default::default();
    let in_from = || facts.tables.iter().filter(|t| !matches!(t.meaning, TableMeaning::Cte));
    for t in in_from() {
        let name = t.name.to_string();
        if matches!(t.meaning, TableMeaning::Unknown) && !unknown_tables.contains(&name) {
            unknown_tables.push(name.clone());
        }
        if !tables.contains(&name) {
            tables.push(name);
        }
    }
    let aliases = facts.sources.iter().filter_map(|s| {
        let name = s.name?;
        let as_written = || in_from().find(|t| t.place == s.place).map(|t| t.name.to_string());
        let stands_for = s.table().map(|t| t.name.clone()).or_else(as_written).unwrap_or_default();
        (stands_for != name.value).then(|| (name.value.clone(), stands_for))
    });
    Extracted {
        tables,
        unknown_tables,
        ctes: facts.ctes.iter().map(|c| c.value.clone()).collect(),
        aliases: aliases.collect(),
        allowed_tables: context.policy.allow_tables.clone(),
        sql: query.sql.clone(),
    }
}

fn stated(facts: &Facts<'_>) -> Vec<Stated> {
    let mut out = Vec::new();
    for o in facts.operations.iter().filter(|o| *o.operator == BinaryOperator::Eq && !o.is_end) {
        let sides = [(o.left, o.right, o.right_node), (o.right, o.left, o.left_node)];
        let found = sides.into_iter().find_map(|(side, other, node)| Some((side.column?, text_of(other, node)?)));
        let Some(((source, index), value)) = found else { continue };
        if let Some((table, column)) = facts.sources[source].origin(index) {
            let stated = Stated { table: table.full_name(), column: column.name.clone(), value: value.to_string() };
            if !out.contains(&stated) {
                out.push(stated);
            }
        }
    }
    out
}

fn join_keys(facts: &Facts<'_>) -> Vec<JoinKey> {
    let mut found: Vec<(usize, Vec<&str>)> = Vec::new();
    for o in facts.operations.iter().filter(|o| *o.operator == BinaryOperator::Eq && o.required && !o.is_in) {
        let (Some(left), Some(right)) = (o.left.column, o.right.column) else { continue };
        let (first, later) = if left.0 < right.0 { (left, right) } else { (right, left) };
        let (before, joined) = (&facts.sources[first.0], &facts.sources[later.0]);
        let Some(column) = joined.table().and_then(|t| t.columns.get(later.1)) else { continue };
        // DISTINCT takes away again what a join multiplied.
        if first.0 == later.0 || before.block != joined.block || facts.blocks[joined.block].distinct {
            continue;
        }
        match found.iter_mut().find(|(source, _)| *source == later.0) {
            Some((_, columns)) => columns.push(&column.name),
            None => found.push((later.0, vec![&column.name])),
        }
    }
    let open = |(source, mut columns): (usize, Vec<&str>)| {
        columns.sort_unstable();
        columns.dedup();
        let table = facts.sources[source].table().filter(|t| !t.is_unique(&columns))?;
        Some(JoinKey { table: table.full_name(), columns: columns.into_iter().map(str::to_string).collect() })
    };
    found.into_iter().filter_map(open).collect()
}

/// A span that covers a whole text.
pub(crate) fn whole(text: &str) -> Span {
    let start = text.len() - text.trim_start().len();
    Span::new(start, text.trim_end().len().max(start))
}
