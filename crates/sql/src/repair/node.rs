//! Nodes of the search: a query on its way to being repaired, its cost, and the outcome it leads to.

use crate::context::ReviewContext;
use crate::dialect::ClassifiedError;
use crate::finding::{Applicability, Finding, Fix, ProofQuery, Severity, Span, apply_edits};
use crate::fixes::score::SEARCH_COSTS;
use crate::repair::candidates::{extraction_fixes, next_candidates};
use crate::repair::{AppliedFix, RepairOutcome, RepairRequest, RepairStatus};
use crate::review::{Approved, JoinKey, LiteralFilter, Review, Verdict, review, review_with_engine_error};
use crate::rule::Rule;
use crate::rule_group::RuleGroup;

/// Query whose rows help to choose between candidates.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) enum DatabaseProbe {
    /// Checks whether the column contains the value.
    Value(LiteralFilter),
    /// Checks whether a key value occurs in two rows, so that a join on it multiplies rows.
    Key(JoinKey),
    /// Checks whether the query that proves a finding returns a row.
    Proof(String),
}

/// Partially repaired query.
#[derive(Clone)]
pub(crate) struct SearchNode {
    pub(crate) text: String,
    pub(crate) applied: Vec<AppliedFix>,
    pub(crate) review: Review,
    pub(crate) errors: usize,
    pub(crate) cost: usize,
    /// Number of candidates, including this one, that schema and question rank equally.
    pub(crate) tie_size: usize,
    /// Values and join keys that only this candidate uses and that have not been probed.
    pub(crate) pending_probes: Vec<DatabaseProbe>,
    /// Reasons why the fixes may have changed the meaning.
    pub(crate) doubts: Vec<String>,
}

/// Returns the proof that a fix removes rows.
///
/// A fix that changes no row of a valid query is not applied.
pub(crate) fn row_loss_proof(node: &SearchNode, fix: &Fix, context: &ReviewContext<'_>) -> Option<ProofQuery> {
    let before = node.review.approve().ok()?;
    let after = review(&apply_edits(&node.review.source, &fix.edits), context).approve().ok()?;
    let rows = |query: &Approved, name: &str| format!("SELECT * FROM ({}) AS {name}", query.sql());
    let sql = format!("SELECT 1 FROM ({} EXCEPT {}) AS lost LIMIT 1", rows(&before, "before"), rows(&after, "after"));
    Some(ProofQuery { sql, expects_rows: true })
}

/// Returns the reason why a fix may have changed the meaning of the query.
///
/// Of the repairs of real failing queries, those with none of these doubts, rows and no warning are
/// right in 3 of 4 cases, the others in 1 of 2: docs/measurements/repair.md.
pub(crate) fn meaning_doubt(
    code: &str,
    applicability: Applicability,
    renames: bool,
    candidates: usize,
    before: &Review,
    after: &Review,
) -> Option<String> {
    let added = after.references.tables.iter().find(|table| !before.references.tables.contains(table));
    match (applicability, code, added) {
        (Applicability::Suggested, ..) => Some("no evidence supports the change".into()),
        (Applicability::Likely, ..) if renames => Some("a column was replaced by one of another name".into()),
        (_, "many-statements", _) => Some("another statement was removed".into()),
        (Applicability::Likely, "ambiguous-column", _) if candidates > 1 => {
            Some("several tables have the column, and one was chosen".into())
        }
        // A text that did not parse has no tables to compare with.
        (_, "unknown-table", _) | (_, _, None) => None,
        (_, _, Some(table)) => (!is_unparsable(before)).then(|| format!("the table `{table}` was added")),
    }
}

/// Returns the penalty that the answer to a probe adds to a candidate.
pub(crate) fn probe_penalty(probe: &DatabaseProbe, found: Option<bool>, equals: usize) -> usize {
    match (probe, found) {
        (DatabaseProbe::Value(_), Some(false)) => SEARCH_COSTS.absent_value,
        // Rank after all tied candidates, but no lower: a join that multiplies rows may be
        // intended.
        (DatabaseProbe::Key(_), Some(true)) => equals,
        (DatabaseProbe::Value(_) | DatabaseProbe::Key(_) | DatabaseProbe::Proof(_), _) => 0,
    }
}

pub(crate) fn new_node(request: &RepairRequest<'_>, text: String, applied: Vec<AppliedFix>, cost: usize) -> SearchNode {
    let context = ReviewContext { question: request.question, ..request.context };
    let review = review(&text, &context);
    scored_node(text, applied, review, cost)
}

/// Reviews a node again with the error of the database; returns `None` if no fix results.
pub(crate) fn node_with_engine_error(
    request: &RepairRequest<'_>,
    node: &SearchNode,
    classified: &ClassifiedError,
) -> Option<SearchNode> {
    let context = ReviewContext { question: request.question, ..request.context };
    let review = review_with_engine_error(&node.text, &context, Some(classified));
    let mut known = scored_node(node.text.clone(), node.applied.clone(), review, node.cost);
    known.doubts.clone_from(&node.doubts);
    (known.errors > 0 && !next_candidates(&known.review, request.max_applicability).is_empty()).then_some(known)
}

pub(crate) fn scored_node(text: String, applied: Vec<AppliedFix>, review: Review, cost: usize) -> SearchNode {
    let errors = review.findings.iter().filter(|f| f.severity == Severity::Error).count();
    // Text that does not parse, or has several statements, has one finding that may hide many.
    let several = review.findings.iter().any(|f| f.code == "many-statements");
    // An unknown table hides the errors of its columns.
    let unknown_tables = review.findings.iter().filter(|f| f.code == "unknown-table").count();
    let hidden_by_text = match is_unparsable(&review) {
        true => SEARCH_COSTS.errors_hidden_by_syntax,
        false => SEARCH_COSTS.errors_hidden_by_statements * usize::from(several),
    };
    let errors = errors + SEARCH_COSTS.errors_hidden_by_table * unknown_tables + hidden_by_text;
    SearchNode { text, applied, review, errors, cost, tie_size: 1, pending_probes: Vec::new(), doubts: Vec::new() }
}

/// Returns whether a query was refused because it does not parse, rather than as unsafe.
pub(crate) fn is_unparsable(review: &Review) -> bool {
    review.verdict() == Verdict::Refused
        && !review.findings.iter().any(|f| f.severity == Severity::Error && is_safety_rule(f.code))
}

pub(crate) fn is_safety_rule(code: &str) -> bool {
    Rule::from_code(code).is_some_and(|r| r.group == RuleGroup::Safety)
}

pub(crate) fn into_outcome(status: RepairStatus, node: SearchNode) -> RepairOutcome {
    let sql = match (status, node.review.approve()) {
        // Return the SQL that is sent to the database, without the text around it.
        (RepairStatus::Mended | RepairStatus::GaveUp, Ok(approved)) if !node.applied.is_empty() => {
            approved.sql().to_string()
        }
        _ => node.text,
    };
    RepairOutcome { status, sql, applied: node.applied, findings: node.review.findings, doubts: node.doubts }
}

/// Returns the outcome of a query that runs by a guess.
///
/// The findings are the errors of the original text, since nothing proves that the guess repaired
/// them.
pub(crate) fn speculative_outcome(request: &RepairRequest<'_>, node: SearchNode) -> RepairOutcome {
    let given = self::new_node(request, request.text.to_string(), Vec::new(), 0);
    let unproved = node.applied.iter().filter(|a| a.applicability == Applicability::Suggested);
    let findings = unproved.map(|applied| {
        let error = given.review.findings.iter().find(|f| f.code == applied.code && f.severity == Severity::Error);
        let message = error.map_or("the query does not run", |f| f.message.as_str());
        let subject = error.map_or("", |f| f.subject.as_str());
        let suggestions = error.map(suggested_names).unwrap_or_default();
        let candidates = match suggestions.as_slice() {
            [] => String::new(),
            names => format!("; candidates: {}", names.join(", ")),
        };
        let message = format!(
            "{message}, and no evidence shows what is meant{candidates}; the query runs with a guess: {}",
            applied.why
        );
        Finding::new(applied.code, Severity::Error, Span::default(), subject, message)
            .with_suggestion(suggestions.first().cloned())
            .with_advice("The query was made to run by a guess: hold it against the question.")
    });
    let findings: Vec<Finding> = findings.collect();
    RepairOutcome { findings, ..into_outcome(RepairStatus::GaveUp, node) }
}

/// Returns the replacements for the subject of a finding that its fixes suggest, best first.
pub(crate) fn suggested_names(finding: &Finding) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for fix in &finding.fixes {
        let Some(edit) = fix.edits.iter().find(|e| e.span == finding.span) else { continue };
        if !names.contains(&edit.text) {
            names.push(edit.text.clone());
        }
    }
    names
}

pub(crate) fn cheapest_node(frontier: &[SearchNode]) -> Option<usize> {
    (0..frontier.len()).min_by_key(|&i| {
        (frontier[i].errors * SEARCH_COSTS.remaining_error + frontier[i].cost, frontier[i].text.len(), i)
    })
}

pub(crate) fn applicability_cost(applicability: Applicability) -> usize {
    match applicability {
        Applicability::Safe => SEARCH_COSTS.safe_fix,
        Applicability::Likely => SEARCH_COSTS.likely_fix,
        Applicability::Suggested => SEARCH_COSTS.suggested_fix,
    }
}

/// Adds the extraction steps of a clean query to its applied fixes.
pub(crate) fn with_extraction_fixes(mut node: SearchNode) -> SearchNode {
    for finding in extraction_fixes(&node.review) {
        let Some(fix) = finding.fixes.first() else { continue };
        node.applied.push(AppliedFix { code: finding.code, applicability: fix.applicability, why: fix.why.clone() });
    }
    node
}
