//! Fixes of rules, with helpers for names, joins (`join.rs`) and spans (`clause_spans.rs`).
//!
//! `score.rs` has the weights that rank them.

pub(crate) mod aggregates;
mod clause_spans;
pub(crate) mod columns;
mod join;
pub(crate) mod junction_tables;
pub(crate) mod limits;
pub(crate) mod nested_aggregates;
pub(crate) mod query_block;
pub(crate) mod score;
pub(crate) mod transpile;
pub(crate) mod windows;

pub(crate) use self::clause_spans::{
    CLAUSES_AFTER_FROM, call_span, clause_end, end_before_join, from_clause_end, from_keyword, keyword,
    significant_tokens, tokens, tokens_to_end, where_conjuncts,
};
pub(crate) use self::join::{
    JoinInsertion, cheapest_paths, compared_column, comparison_penalty, connected_tables, disconnected_groups,
    edge_affinity, join_candidates, unique_alias,
};
use self::score::WEIGHTS;
use crate::finding::{Applicability, Edit, Finding, Fix, Span};
use crate::resolve::SourceId;
use crate::rule::RuleContext;
use crate::text::similarity::is_similar;

/// Returns whether a rule may still look for fixes.
///
/// Fixes scan the text repeatedly, and hostile input must not cost more than its review. A query of
/// this length, or with this many errors, is beyond repair.
pub(crate) fn within_fix_budget(ctx: &RuleContext<'_>, found: &[Finding]) -> bool {
    let resolution = ctx.resolution;
    ctx.query.sql.len() <= 20_000
        && resolution.calls.len() <= 100
        && resolution.references.len() <= 400
        && resolution.operations.len() <= 400
        && found.iter().filter(|f| !f.fixes.is_empty()).count() < 20
}

/// Returns a fix with a single edit.
pub(crate) fn replace(
    span: Span,
    text: impl Into<String>,
    applicability: Applicability,
    why: impl Into<String>,
) -> Fix {
    Fix { edits: vec![Edit { span, text: text.into() }], applicability, why: why.into(), is_tied_with_previous: false }
}

/// Returns `alias.column`, quoted if necessary.
pub(crate) fn qualified_column(ctx: &RuleContext<'_>, source: SourceId, column: &str) -> Option<String> {
    let dialect = ctx.context.dialect;
    let source = &ctx.resolution.sources[source];
    let name = source.name?;
    let qualifier = if name.quote_style.is_some() { name.to_string() } else { dialect.quote_identifier(&name.value) };
    Some(format!("{qualifier}.{}", dialect.quote_identifier(column)))
}

/// Returns whether the question contains the words of a table or column name.
pub(crate) fn question_mentions(ctx: &RuleContext<'_>, name: &str) -> bool {
    let Some(question) = ctx.context.question else { return false };
    let question = question.to_lowercase();
    let words: Vec<&str> = question.split(|c: char| !c.is_alphanumeric()).filter(|w| !w.is_empty()).collect();
    let name = name.to_lowercase();
    let mut parts = name.split(|c: char| !c.is_alphanumeric()).filter(|p| p.len() > 2).peekable();
    let is_mentioned = |part: &str| words.iter().any(|word| is_similar(word, part, WEIGHTS.min_mention_similarity));
    parts.peek().is_some() && parts.all(is_mentioned)
}
