//! Reviews text: returns findings, a verdict and, if the query is safe, an approved query.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;
use sqlparser::ast::BinaryOperator;
use sqlparser::tokenizer::TokenWithSpan;

use crate::context::ReviewContext;
use crate::dialect::{ClassifiedError, Dialect};
use crate::diff::NormalizedTokens;
use crate::extract::has_typographic_quotes;
use crate::finding::{Finding, Fix, Severity, Span};
use crate::parse::parsed_query::{ParseFailure, ParsedQuery, line_column};
use crate::query_references::QueryReferences;
use crate::resolve::{self, Resolution, TableBinding, literal_text};
use crate::rule::RuleContext;
use crate::rule_group::RuleGroup;
use crate::rules::RULES;
use crate::rules::names::unknown_function;
use crate::safety::policy::Policy;
use crate::validator;

/// Decision about sending a query to a database.
///
/// Unknown names are findings and do not affect the verdict, since they are not dangerous.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Single read-only statement on tables that may be read.
    Approved,
    /// Any other statement, or text that does not parse.
    Refused,
}

/// Comparison of a stored column with a text literal: `WHERE country = 'DE'`.
///
/// Only the database can tell if the column ever contains the value.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, JsonSchema)]
pub struct LiteralFilter {
    /// Full name of the table.
    pub table: String,
    /// Name of the column.
    pub column: String,
    /// Value that the column is compared with.
    pub value: String,
}

impl LiteralFilter {
    /// Returns the table and the column, quoted if necessary.
    pub fn quoted_names(&self, dialect: &Dialect) -> (String, String) {
        let table: Vec<String> = self.table.split('.').map(|part| dialect.quote_identifier(part)).collect();
        (table.join("."), dialect.quote_identifier(&self.column))
    }

    /// Returns the query that returns a row if the column contains the value.
    ///
    /// The query is reviewed like any other; `None` if it is refused.
    pub fn existence_probe(&self, context: &ReviewContext<'_>) -> Option<Approved> {
        let (table, column) = self.quoted_names(context.dialect);
        let value = self.value.replace('\'', "''");
        review(&format!("SELECT 1 FROM {table} WHERE {column} = '{value}' LIMIT 1"), context).approve().ok()
    }
}

/// Columns that a table is joined on and that no declared key makes unique.
///
/// Only the database can tell if a value occurs in two rows, so that the join multiplies rows.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct JoinKey {
    /// Full name of the joined table.
    pub table: String,
    /// Columns that must equal columns of earlier tables.
    pub columns: Vec<String>,
}

/// Maximum number of rows that are checked for duplicate keys.
const MAX_PROBED_KEYS: usize = 100_000;

impl JoinKey {
    /// Returns the query that returns a row if a key value occurs in two rows of the table.
    ///
    /// The query is reviewed like any other; `None` if it is refused.
    pub fn uniqueness_probe(&self, context: &ReviewContext<'_>) -> Option<Approved> {
        let table: Vec<String> = self.table.split('.').map(|part| context.dialect.quote_identifier(part)).collect();
        let columns: Vec<String> = self.columns.iter().map(|c| context.dialect.quote_identifier(c)).collect();
        // NULL matches nothing in a join.
        let known: Vec<String> = columns.iter().map(|c| format!("{c} IS NOT NULL")).collect();
        let (table, columns, known) = (table.join("."), columns.join(", "), known.join(" AND "));
        let keys = format!("SELECT {columns} FROM {table} WHERE {known} LIMIT {MAX_PROBED_KEYS}");
        let sql = format!("SELECT 1 FROM ({keys}) AS met GROUP BY {columns} HAVING COUNT(*) > 1 LIMIT 1");
        review(&sql, context).approve().ok()
    }
}

/// Structural features that make a query error-prone even without findings.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct QueryFeatures {
    /// `true` if a block has several sources.
    pub has_joins: bool,
    /// `true` if the query has subqueries or set operations.
    pub has_subqueries: bool,
    /// `true` if a block groups rows.
    pub has_grouping: bool,
}

impl QueryFeatures {
    fn from_resolution(resolution: &Resolution<'_>) -> Self {
        Self {
            has_joins: resolution.blocks.iter().any(|block| block.sources.len() > 1),
            has_subqueries: resolution.blocks.len() > 1,
            has_grouping: resolution.blocks.iter().any(|block| block.is_grouped),
        }
    }
}

/// Result of reviewing a text.
#[derive(Debug, Clone)]
pub struct Review {
    /// Original text; spans refer to it.
    pub source: String,
    /// All findings, in the order of the text.
    pub findings: Vec<Finding>,
    /// Names that the query uses.
    pub references: QueryReferences,
    /// Text literals that the query compares with columns by `=` or IN.
    pub literal_filters: Vec<LiteralFilter>,
    /// Join columns that no declared key makes unique, so that the join may multiply rows.
    pub join_keys: Vec<JoinKey>,
    /// Structural features of the query.
    pub features: QueryFeatures,
    /// Replaces a recent function with syntax that older versions of the dialect support.
    pub(crate) compatibility_fix: Option<Fix>,
    /// Tokens of the parsed statement; empty if the text does not parse.
    tokens: Vec<TokenWithSpan>,
    dialect: &'static Dialect,
    approved_sql: Option<String>,
    policy: Arc<Policy>,
}

/// Query that may be sent to a database. Only [`Review::approve`] creates one.
#[derive(Debug, Clone, PartialEq)]
pub struct Approved {
    sql: String,
    dialect: &'static Dialect,
    policy: Arc<Policy>,
}

impl Approved {
    /// Returns the statement without comments.
    pub fn sql(&self) -> &str {
        &self.sql
    }

    /// Returns the dialect that the query was approved for.
    pub fn dialect(&self) -> &'static Dialect {
        self.dialect
    }

    /// Returns the policy that the query was approved under.
    ///
    /// An engine that learns which tables a query really reads, for example through views, checks
    /// them against it.
    pub fn policy(&self) -> &Policy {
        &self.policy
    }
}

/// Error for a query that may not be sent: unsafe, or not a query.
#[derive(Debug, Clone, thiserror::Error)]
#[error("the query is refused: {}", .errors.first().map_or("it is not a query", |f| f.message.as_str()))]
pub struct ApprovalError {
    /// Findings with severity error.
    pub errors: Vec<Finding>,
}

impl Review {
    /// Returns the verdict.
    pub fn verdict(&self) -> Verdict {
        if self.approved_sql.is_some() { Verdict::Approved } else { Verdict::Refused }
    }

    /// Returns whether the query is approved and no finding is an error.
    ///
    /// No known problem would make the database reject such a query.
    pub fn is_clean(&self) -> bool {
        self.approved_sql.is_some() && !self.findings.iter().any(|f| f.severity == Severity::Error)
    }

    /// Returns whether the text parses and every name in it resolves.
    fn is_resolved(&self) -> bool {
        let is_unresolved = |f: &Finding| {
            f.severity == Severity::Error
                && crate::rule::Rule::from_code(f.code).is_some_and(|rule| rule.group == RuleGroup::Names)
        };
        !self.tokens.is_empty() && !self.findings.iter().any(is_unresolved)
    }

    /// Returns the approved query, extracted from the text and without comments.
    ///
    /// Approval means that the query is safe, not that it will run: see [`Review::is_clean`].
    pub fn approve(&self) -> Result<Approved, ApprovalError> {
        match &self.approved_sql {
            Some(sql) => Ok(Approved { sql: sql.clone(), dialect: self.dialect, policy: Arc::clone(&self.policy) }),
            None => Err(ApprovalError {
                errors: self.findings.iter().filter(|f| f.severity == Severity::Error).cloned().collect(),
            }),
        }
    }

    /// Returns the tokens of the SQL for comparison with other queries.
    pub fn tokens(&self) -> NormalizedTokens {
        if self.tokens.is_empty() {
            NormalizedTokens::tokenize(&self.references.sql, self.dialect)
        } else {
            NormalizedTokens::from_tokens(&self.tokens, self.references.sql.len())
        }
    }

    /// Returns the dialect that the text was reviewed in.
    pub fn dialect(&self) -> &'static Dialect {
        self.dialect
    }

    /// Returns the line and column, both starting at 1, of a byte offset in the text.
    pub fn line_column(&self, offset: usize) -> (usize, usize) {
        line_column(&self.source, offset)
    }
}

/// Stack size in bytes for reviewing a long text.
///
/// Expressions may nest as deep as the text is long. The parser and the resolver grow their stacks
/// themselves, but dropping the tree needs a deep stack too.
pub(crate) const DEEP_STACK_BYTES: usize = 64 << 20;
const DEEP_STACK_THRESHOLD_BYTES: usize = 8 << 10;

/// Reviews a text. Never fails and never panics: unreadable text is a finding.
pub fn review(text: &str, context: &ReviewContext<'_>) -> Review {
    review_with_engine_error(text, context, None)
}

/// Reviews a text that a database rejected.
///
/// With the error, rules can confirm problems that a review alone considers a risk or does not
/// detect.
pub fn review_with_engine_error(
    text: &str,
    context: &ReviewContext<'_>,
    engine_error: Option<&ClassifiedError>,
) -> Review {
    if text.len() > DEEP_STACK_THRESHOLD_BYTES {
        stacker::grow(DEEP_STACK_BYTES, || review_or_restore(text, context, engine_error))
    } else {
        review_or_restore(text, context, engine_error)
    }
}

/// Reviews the text unchanged, or with its lost characters restored if that resolves all names.
///
/// A query that parses and resolves is never changed.
fn review_or_restore(text: &str, context: &ReviewContext<'_>, engine_error: Option<&ClassifiedError>) -> Review {
    let review = review_query(ParsedQuery::parse(text, context.dialect, context.policy), context, engine_error);
    // Without a schema any name resolves; then a typographic quote after `=` is sufficient
    // evidence.
    if review.is_resolved() && (context.schema.is_some() || !has_typographic_quotes(text)) {
        return review;
    }
    let restored = ParsedQuery::parse_restored(text, context.dialect, context.policy);
    let restored = restored.map(|query| review_query(query, context, engine_error));
    restored.filter(Review::is_resolved).unwrap_or(review)
}

fn review_query(query: ParsedQuery, context: &ReviewContext<'_>, engine_error: Option<&ClassifiedError>) -> Review {
    let resolution = match query.statements.as_slice() {
        [statement] => resolve::resolve(statement, context.schema, context.dialect),
        _ => Resolution::default(),
    };
    let side_effects = crate::safety::side_effects::side_effects(&query.statements);
    let ctx =
        RuleContext { query: &query, resolution: &resolution, side_effects: &side_effects, context, engine_error };
    let mut findings = Vec::new();
    let mut safe = query.failure.is_none() && query.statements.len() == 1;
    for rule in RULES.iter().filter(|rule| context.policy.is_rule_enabled(rule)) {
        let before = findings.len();
        (rule.check)(&ctx, &mut findings);
        safe &= rule.group != RuleGroup::Safety
            || !findings[before..].iter().any(|f: &Finding| f.severity == Severity::Error);
    }
    if !context.policy.deny_columns.is_empty() {
        drop_findings_on_protected_columns(&mut findings);
    }
    let references = query_references(&query, &resolution, context);
    let validated =
        validator::ValidationTarget { text: &query.source, references: &references, dialect: context.dialect };
    let before = findings.len();
    context.policy.validators.validate(&validated, &mut findings);
    safe &= !findings[before..].iter().any(|f| f.severity == Severity::Error);
    findings.sort_by_key(|f| (f.span.start, f.severity));
    // Two passes may report the same problem.
    findings.dedup_by(|a, b| a.code == b.code && a.span == b.span && a.message == b.message);
    let approved_sql = if safe { executable_sql(&query, context.dialect) } else { None };
    let (literal_filters, join_keys) = (literal_filters(&resolution), join_keys(&resolution));
    let features = QueryFeatures::from_resolution(&resolution);
    let compatibility_fix = unknown_function::compatibility_fix(&ctx);
    let policy = Arc::new(context.policy.clone());
    Review {
        source: query.source,
        findings,
        references,
        literal_filters,
        join_keys,
        features,
        compatibility_fix,
        tokens: query.tokens,
        dialect: context.dialect,
        approved_sql,
        policy,
    }
}

/// Drops name findings on protected columns.
///
/// A protected column is not in the schema and would be reported as unknown, with a similar column
/// as its fix: that would be another question.
fn drop_findings_on_protected_columns(findings: &mut Vec<Finding>) {
    let code = crate::rules::safety::protected_column::RULE.code;
    let hidden: Vec<Span> = findings.iter().filter(|f| f.code == code).map(|f| f.span).collect();
    let meets = |span: Span| hidden.iter().any(|h| h.start < span.end && span.start < h.end);
    let of_names = |code: &str| crate::rule::Rule::from_code(code).is_some_and(|rule| rule.group == RuleGroup::Names);
    findings.retain(|f| !(meets(f.span) && of_names(f.code)));
}

/// Returns the SQL to send if it consists of exactly the reviewed tokens.
///
/// This should always hold; if not, nothing is sent.
fn executable_sql(query: &ParsedQuery, dialect: &Dialect) -> Option<String> {
    let sql = query.executable_sql();
    let untouched = query.comments.is_empty() && query.sql.trim_start().starts_with(&sql);
    (untouched || crate::diff::exact_tokens(&sql, dialect) == crate::diff::exact_tokens(&query.sql, dialect))
        .then_some(sql)
}

fn query_references(query: &ParsedQuery, resolution: &Resolution<'_>, context: &ReviewContext<'_>) -> QueryReferences {
    if query.failure == Some(ParseFailure::Empty) {
        return QueryReferences::default();
    }
    let (mut tables, mut unknown_tables): (Vec<String>, Vec<String>) = Default::default();
    let in_from = || resolution.tables.iter().filter(|t| !matches!(t.binding, TableBinding::Cte));
    for t in in_from() {
        let name = t.name.to_string();
        if matches!(t.binding, TableBinding::Unknown) && !unknown_tables.contains(&name) {
            unknown_tables.push(name.clone());
        }
        if !tables.contains(&name) {
            tables.push(name);
        }
    }
    let aliases = resolution.sources.iter().filter_map(|s| {
        let name = s.name?;
        let as_written = || in_from().find(|t| t.span == s.span).map(|t| t.name.to_string());
        let stands_for = s.table().map(|t| t.name.clone()).or_else(as_written).unwrap_or_default();
        (stands_for != name.value).then(|| (name.value.clone(), stands_for))
    });
    QueryReferences {
        tables,
        unknown_tables,
        ctes: resolution.ctes.iter().map(|c| c.value.clone()).collect(),
        aliases: aliases.collect(),
        allowed_tables: context.policy.allow_tables.clone(),
        sql: query.sql.clone(),
    }
}

fn literal_filters(resolution: &Resolution<'_>) -> Vec<LiteralFilter> {
    let mut out = Vec::new();
    for o in resolution.operations.iter().filter(|o| *o.operator == BinaryOperator::Eq && !o.is_between_bound) {
        let sides = [(o.left, o.right, o.right_node), (o.right, o.left, o.left_node)];
        let found = sides.into_iter().find_map(|(side, other, node)| Some((side.column?, literal_text(other, node)?)));
        let Some(((source, index), value)) = found else { continue };
        if let Some((table, column)) = resolution.sources[source].origin(index) {
            let stated =
                LiteralFilter { table: table.full_name(), column: column.name.clone(), value: value.to_string() };
            if !out.contains(&stated) {
                out.push(stated);
            }
        }
    }
    out
}

fn join_keys(resolution: &Resolution<'_>) -> Vec<JoinKey> {
    let mut found: Vec<(usize, Vec<&str>)> = Vec::new();
    for o in resolution.operations.iter().filter(|o| *o.operator == BinaryOperator::Eq && o.is_conjunct && !o.is_in) {
        let (Some(left), Some(right)) = (o.left.column, o.right.column) else { continue };
        let (first, later) = if left.0 < right.0 { (left, right) } else { (right, left) };
        let (before, joined) = (&resolution.sources[first.0], &resolution.sources[later.0]);
        let Some(column) = joined.table().and_then(|t| t.columns.get(later.1)) else { continue };
        // DISTINCT removes the duplicates that a join adds.
        if first.0 == later.0 || before.block != joined.block || resolution.blocks[joined.block].is_distinct {
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
        let table = resolution.sources[source].table().filter(|t| !t.is_unique(&columns))?;
        Some(JoinKey { table: table.full_name(), columns: columns.into_iter().map(str::to_string).collect() })
    };
    found.into_iter().filter_map(open).collect()
}
