//! Interpretations of an ambiguous query, each as a repaired query.
//!
//! They differ in the column, table or join path that is meant.

use crate::finding::{Applicability, Edit, Finding, Fix, apply_edits};
use crate::repair::candidates::{next_candidates, root_cause};
use crate::repair::node::new_node;
use crate::repair::search::{RepairSearch, SearchStep};
use crate::repair::{AppliedFix, RepairRequest, RepairStatus};
use crate::review::Review;

/// Maximum number of interpretations that are offered.
pub const MAX_INTERPRETATIONS: usize = 4;
/// Maximum number of other errors that are repaired before the ambiguous one.
const MAX_EARLIER_FIXES: usize = 8;

/// One interpretation of an ambiguous query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interpretation {
    /// Distinguishing column, table or join path, such as `orders.shipped_on`.
    pub label: String,
    /// Repaired query. It has not been run on a database.
    pub sql: String,
    /// Evidence for the interpretation, in one sentence.
    pub why: String,
    /// Fixes that lead to the query, in order.
    pub applied: Vec<AppliedFix>,
}

/// Interpretations of a query, most likely first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interpretations {
    /// Code of the rule whose finding has several fixes.
    pub code: &'static str,
    /// Ambiguous name.
    pub subject: String,
    /// `true` if schema and question do not prefer the first interpretation to the second.
    pub is_tied: bool,
    /// Two to [`MAX_INTERPRETATIONS`] interpretations with different queries.
    pub interpretations: Vec<Interpretation>,
}

/// Returns the interpretations of a query whose first error has several equally good fixes.
///
/// With `request.max_applicability` at [`Applicability::Suggested`], unproved fixes count as well
/// and need not be equally good: these are for a query that repair gave up on. Costs one repair
/// without a database per interpretation.
pub fn interpretations(request: &RepairRequest<'_>) -> Option<Interpretations> {
    let mut node = new_node(request, request.text.to_string(), Vec::new(), 0);
    let mut earlier: Vec<AppliedFix> = Vec::new();
    for _ in 0..MAX_EARLIER_FIXES {
        if node.review.is_clean() {
            return None;
        }
        let candidates = next_candidates(&node.review, request.max_applicability);
        let first = candidates.first()?;
        let is_guess = first.fix.applicability == Applicability::Suggested;
        if candidates.len() > 1 && (first.tie_size > 1 || is_guess) {
            let finding = root_cause(&node.review, request.max_applicability)?;
            let is_tied = first.tie_size > 1;
            let fixes =
                candidates.iter().take(if is_guess { candidates.len() } else { first.tie_size }).map(|step| &step.fix);
            return build_interpretations(request, &node.review, finding, fixes, is_tied, &earlier);
        }
        earlier.extend(
            root_cause(&node.review, request.max_applicability).map(|finding| applied_fix(finding.code, &first.fix)),
        );
        let text = apply_edits(&node.review.source, &first.fix.edits);
        if text == node.review.source {
            return None;
        }
        node = new_node(request, text, Vec::new(), 0);
    }
    None
}

fn applied_fix(code: &'static str, fix: &Fix) -> AppliedFix {
    AppliedFix { code, applicability: fix.applicability, why: fix.why.clone() }
}

fn build_interpretations<'f>(
    request: &RepairRequest<'_>,
    review: &Review,
    finding: &Finding,
    fixes: impl Iterator<Item = &'f Fix>,
    is_tied: bool,
    earlier: &[AppliedFix],
) -> Option<Interpretations> {
    if !["ambiguous-column", "unknown-column", "unknown-alias", "unknown-table"].contains(&finding.code) {
        return None;
    }
    let mut found: Vec<(Interpretation, String)> = Vec::new();
    for fix in fixes {
        // A table that merely has the columns is not evidence, and so not an interpretation either.
        if finding.code == "unknown-table" && fix.applicability == Applicability::Suggested {
            continue;
        }
        let text = apply_edits(&review.source, &same_name_edits(review, finding, fix));
        let Some((sql, mut later)) = repair_remaining(request, &text) else { continue };
        if found.iter().any(|(reading, _)| reading.sql == sql) {
            continue;
        }
        let mut all = earlier.to_vec();
        all.push(applied_fix(finding.code, fix));
        all.append(&mut later);
        let why = match finding.code {
            "ambiguous-column" => {
                format!("{} is one of the columns called `{}`", label(request, &text, finding, fix), finding.subject)
            }
            _ => fix.why.clone(),
        };
        found.push((
            Interpretation { label: label(request, &text, finding, fix), sql, why, applied: all },
            join_condition(fix),
        ));
        if found.len() == MAX_INTERPRETATIONS {
            break;
        }
    }
    let labels: Vec<String> = found.iter().map(|(reading, _)| reading.label.clone()).collect();
    for (reading, path) in &mut found {
        if !path.is_empty() && labels.iter().filter(|label| **label == reading.label).count() > 1 {
            reading.label = format!("{} by {path}", reading.label);
        }
    }
    let interpretations: Vec<Interpretation> = found.into_iter().map(|(reading, _)| reading).collect();
    let subject = finding.subject.clone();
    (interpretations.len() > 1).then_some(Interpretations { code: finding.code, subject, is_tied, interpretations })
}

/// Returns the edits of a fix, extended to other uses of the same ambiguous name.
fn same_name_edits(review: &Review, finding: &Finding, fix: &Fix) -> Vec<Edit> {
    let mut edits = fix.edits.clone();
    let Some(written) = replacement(finding, fix) else { return edits };
    let is_same = |f: &&Finding| f.code == finding.code && f.subject.eq_ignore_ascii_case(&finding.subject);
    for other in review.findings.iter().filter(is_same).filter(|f| f.span != finding.span) {
        let is_apart = edits.iter().all(|e| e.span.end <= other.span.start || other.span.end <= e.span.start);
        let same =
            other.fixes.iter().find(|fix| replacement(other, fix) == Some(written)).filter(|f| f.edits.len() == 1);
        if let Some(same) = same.filter(|_| is_apart && finding.code == "ambiguous-column") {
            edits.extend(same.edits.iter().cloned());
        }
    }
    edits.sort_by_key(|e| (e.span.start, e.span.end));
    edits
}

/// Repairs the remaining errors of an interpretation with fixes that have evidence.
fn repair_remaining(request: &RepairRequest<'_>, text: &str) -> Option<(String, Vec<AppliedFix>)> {
    let max_applicability = request.max_applicability.min(Applicability::Likely);
    let mut search = RepairSearch::new(RepairRequest { text, max_applicability, error: None, ..*request }, false);
    loop {
        match search.advance() {
            SearchStep::DryRun(_) => search.answer_dry_run(Ok(())),
            SearchStep::ReturnsRows(_) => search.answer_returns_rows(None),
            SearchStep::Done(repair) => {
                let is_done = matches!(repair.status, RepairStatus::Mended | RepairStatus::Untouched);
                return is_done.then_some((repair.sql, repair.applied));
            }
        }
    }
}

/// Returns the text that a fix inserts at the span of the finding.
fn replacement<'f>(finding: &Finding, fix: &'f Fix) -> Option<&'f str> {
    fix.edits.iter().find(|edit| edit.span == finding.span).map(|edit| edit.text.as_str())
}

/// Returns the column or table that a fix selects, qualified with its table rather than its alias.
fn label(request: &RepairRequest<'_>, text: &str, finding: &Finding, fix: &Fix) -> String {
    let written = replacement(finding, fix).or(fix.edits.first().map(|edit| edit.text.as_str())).unwrap_or_default();
    let written: String = written.trim().chars().filter(|c| !['"', '`', '[', ']'].contains(c)).collect();
    if finding.code == "unknown-table" {
        return written;
    }
    let extracted = new_node(request, text.to_string(), Vec::new(), 0).review.references;
    match (written.split_once('.'), extracted.tables.as_slice()) {
        (None, [table]) => format!("{table}.{written}"),
        (Some((alias, column)), _) => {
            let table = extracted.aliases.iter().find(|(name, _)| name.eq_ignore_ascii_case(alias)).map(|(_, t)| t);
            let is_unique = |t: &&String| extracted.aliases.iter().filter(|(_, other)| other == *t).count() == 1;
            table.filter(is_unique).map_or_else(|| written.clone(), |table| format!("{table}.{column}"))
        }
        _ => written,
    }
}

/// Returns the condition of the join that a fix adds; empty if it adds none.
fn join_condition(fix: &Fix) -> String {
    let joins = fix.edits.iter().filter_map(|edit| edit.text.split_once(" ON ").map(|(_, on)| on.trim()));
    joins.map(|on| on.chars().filter(|c| !['"', '`'].contains(c)).collect::<String>()).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::SQLITE;
    use crate::{Policy, ReviewContext, Schema};

    const SHOP: &str = "CREATE TABLE customers (customer_id INTEGER PRIMARY KEY, name TEXT, city TEXT);
        CREATE TABLE products (product_id INTEGER PRIMARY KEY, name TEXT, price REAL);
        CREATE TABLE orders (order_id INTEGER PRIMARY KEY, customer_id INTEGER REFERENCES customers (customer_id),
                             ordered_on TEXT, shipped_on TEXT, status TEXT);
        CREATE TABLE reviews (review_id INTEGER PRIMARY KEY, stars INTEGER,
                              product_id INTEGER REFERENCES products (product_id),
                              customer_id INTEGER REFERENCES customers (customer_id));
        CREATE TABLE places (code TEXT, region TEXT, town TEXT);
        CREATE TABLE parcels (parcel INTEGER PRIMARY KEY, target TEXT REFERENCES places (code),
                              zone TEXT REFERENCES places (region));";

    fn labels(text: &str, question: Option<&str>, most: Applicability) -> Vec<String> {
        let schema = Schema::from_ddl(SHOP, &SQLITE).unwrap();
        let policy = Policy::default();
        let context = ReviewContext { schema: Some(&schema), dialect: &SQLITE, policy: &policy, question: None };
        let found = interpretations(&RepairRequest { text, context, question, max_applicability: most, error: None });
        let Some(found) = found else { return Vec::new() };
        for reading in &found.interpretations {
            let review = crate::review(&reading.sql, &context);
            assert!(review.is_clean() && review.approve().is_ok() && !reading.applied.is_empty(), "{reading:?}");
        }
        found.interpretations.into_iter().map(|reading| reading.label).collect()
    }

    #[test]
    fn returns_one_interpretation_per_ambiguous_name() {
        use Applicability::{Likely, Suggested};
        for (text, question, most, expected) in [
            ("SELECT name FROM customers, products", None, Likely, &["customers.name", "products.name"][..]),
            (
                "SELECT name FROM customers c, products p WHERE name > 'b'",
                None,
                Likely,
                &["customers.name", "products.name"],
            ),
            ("SELECT stars, name FROM reviews", None, Likely, &["customers.name", "products.name"]),
            // The misspelled table is repaired first.
            ("SELECT name FROM custmers, products", None, Likely, &["customers.name", "products.name"]),
            // The question identifies the table.
            ("SELECT name FROM customers, products", Some("names of all products"), Likely, &[]),
            // Both sides of the join are equal.
            (
                "SELECT customer_id FROM customers JOIN orders ON customers.customer_id = orders.customer_id",
                None,
                Likely,
                &[],
            ),
            ("SELECT name FROM customers", None, Likely, &[]),
            ("SELECT nam FROM customers", None, Likely, &[]),
            ("SELECT date FROM orders", None, Likely, &[]),
            ("SELECT date FROM orders", None, Suggested, &["orders.ordered_on", "orders.shipped_on"]),
            (
                "SELECT o.date FROM orders o WHERE o.date > '2024-01-01'",
                None,
                Suggested,
                &["orders.ordered_on", "orders.shipped_on"],
            ),
            (
                "SELECT town, parcel FROM parcels",
                None,
                Likely,
                &["places.town by parcels.target = places.code", "places.town by parcels.zone = places.region"],
            ),
            // Having the columns is not evidence.
            ("SELECT name FROM employees", None, Suggested, &[]),
            ("DELETE FROM orders", None, Suggested, &[]),
            ("no query at all", None, Suggested, &[]),
        ] {
            assert_eq!(labels(text, question, most), expected, "{text}");
        }
    }

    #[test]
    fn applies_one_interpretation_to_every_use_of_a_name() {
        let schema = Schema::from_ddl(SHOP, &SQLITE).unwrap();
        let policy = Policy::default();
        let context = ReviewContext { schema: Some(&schema), dialect: &SQLITE, policy: &policy, question: None };
        let text = "SELECT name FROM customers c, products p WHERE name > 'b'";
        let request =
            RepairRequest { text, context, question: None, max_applicability: Applicability::Likely, error: None };
        let found = interpretations(&request).unwrap();
        assert!(found.is_tied);
        let queries: Vec<&str> = found.interpretations.iter().map(|reading| reading.sql.as_str()).collect();
        assert_eq!(
            queries,
            [
                "SELECT c.name FROM customers c, products p WHERE c.name > 'b'",
                "SELECT p.name FROM customers c, products p WHERE p.name > 'b'",
            ]
        );
    }
}
