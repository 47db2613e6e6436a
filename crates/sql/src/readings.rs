//! The readings of a query that leaves open which column, table or join path is meant: one repaired query for each.

use crate::finding::{Applicability, Edit, Finding, Fix, apply};
use crate::repair::{Applied, Request, Status};
use crate::review::Review;
use crate::search::{Next, Search, root_cause, state, steps};

/// Maximum number of readings that a person is offered.
pub const MAX_READINGS: usize = 4;
/// Maximum number of other errors that are repaired before the one that has several readings.
const MAX_EARLIER_FIXES: usize = 8;

/// One way to read an ambiguous query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reading {
    /// What tells it from the others, such as `orders.shipped_on`.
    pub label: String,
    /// The repaired query. No database has run it.
    pub sql: String,
    /// What speaks for it, in one sentence.
    pub why: String,
    /// The fixes that lead to it, in order.
    pub applied: Vec<Applied>,
}

/// The readings of a query, the most likely first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Readings {
    /// The rule whose finding has several fixes.
    pub code: &'static str,
    /// The name that may mean several things.
    pub subject: String,
    /// Nothing in the schema or the question prefers the first reading to the second.
    pub is_tied: bool,
    /// Two to [`MAX_READINGS`] readings with different queries.
    pub readings: Vec<Reading>,
}

/// Returns the readings of a query whose first error has several fixes that are equally good.
///
/// With `request.apply` at [`Applicability::Suggested`], fixes that nothing proves count as well, and need not be equally good: these
/// are for a query that was given up. Costs one repair without a database for each reading.
pub fn readings(request: &Request<'_>) -> Option<Readings> {
    let mut here = state(request, request.text.to_string(), Vec::new(), 0);
    let mut earlier: Vec<Applied> = Vec::new();
    for _ in 0..MAX_EARLIER_FIXES {
        if here.review.is_clean() {
            return None;
        }
        let steps = steps(&here.review, request.apply);
        let first = steps.first()?;
        let is_guess = first.fix.applicability == Applicability::Suggested;
        if steps.len() > 1 && (first.equals > 1 || is_guess) {
            let finding = root_cause(&here.review, request.apply)?;
            let is_tied = first.equals > 1;
            let fixes = steps.iter().take(if is_guess { steps.len() } else { first.equals }).map(|step| &step.fix);
            return alternatives(request, &here.review, finding, fixes, is_tied, &earlier);
        }
        earlier.extend(root_cause(&here.review, request.apply).map(|finding| applied(finding.code, &first.fix)));
        let text = apply(&here.review.source, &first.fix.edits);
        if text == here.review.source {
            return None;
        }
        here = state(request, text, Vec::new(), 0);
    }
    None
}

fn applied(code: &'static str, fix: &Fix) -> Applied {
    Applied { code, applicability: fix.applicability, why: fix.why.clone() }
}

fn alternatives<'f>(
    request: &Request<'_>,
    review: &Review,
    finding: &Finding,
    fixes: impl Iterator<Item = &'f Fix>,
    is_tied: bool,
    earlier: &[Applied],
) -> Option<Readings> {
    if !["ambiguous-column", "unknown-column", "unknown-alias", "unknown-table"].contains(&finding.code) {
        return None;
    }
    let mut found: Vec<(Reading, String)> = Vec::new();
    for fix in fixes {
        // That a table has the columns is no evidence that it is meant, so it is no reading either.
        if finding.code == "unknown-table" && fix.applicability == Applicability::Suggested {
            continue;
        }
        let text = apply(&review.source, &same_name_edits(review, finding, fix));
        let Some((sql, mut later)) = completed(request, &text) else { continue };
        if found.iter().any(|(reading, _)| reading.sql == sql) {
            continue;
        }
        let mut all = earlier.to_vec();
        all.push(applied(finding.code, fix));
        all.append(&mut later);
        let why = match finding.code {
            "ambiguous-column" => {
                format!("{} is one of the columns called `{}`", label(request, &text, finding, fix), finding.subject)
            }
            _ => fix.why.clone(),
        };
        found.push((
            Reading { label: label(request, &text, finding, fix), sql, why, applied: all },
            join_condition(fix),
        ));
        if found.len() == MAX_READINGS {
            break;
        }
    }
    let labels: Vec<String> = found.iter().map(|(reading, _)| reading.label.clone()).collect();
    for (reading, path) in &mut found {
        if !path.is_empty() && labels.iter().filter(|label| **label == reading.label).count() > 1 {
            reading.label = format!("{} by {path}", reading.label);
        }
    }
    let readings: Vec<Reading> = found.into_iter().map(|(reading, _)| reading).collect();
    let subject = finding.subject.clone();
    (readings.len() > 1).then_some(Readings { code: finding.code, subject, is_tied, readings })
}

/// The edits of a fix, and the same choice wherever else the same name is ambiguous.
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

/// Repairs what else is wrong with a reading, with fixes that have evidence.
fn completed(request: &Request<'_>, text: &str) -> Option<(String, Vec<Applied>)> {
    let apply = request.apply.min(Applicability::Likely);
    let mut search = Search::new(Request { text, apply, error: None, ..*request }, false);
    loop {
        match search.next() {
            Next::Runs(_) => search.runs(Ok(())),
            Next::Rows(_) => search.rows(None),
            Next::Done(repair) => {
                let is_done = matches!(repair.status, Status::Mended | Status::Untouched);
                return is_done.then_some((repair.sql, repair.applied));
            }
        }
    }
}

/// What a fix writes in the place of the finding.
fn replacement<'f>(finding: &Finding, fix: &'f Fix) -> Option<&'f str> {
    fix.edits.iter().find(|edit| edit.span == finding.span).map(|edit| edit.text.as_str())
}

/// The column or table that a fix takes, with the name of its table instead of an alias.
fn label(request: &Request<'_>, text: &str, finding: &Finding, fix: &Fix) -> String {
    let written = replacement(finding, fix).or(fix.edits.first().map(|edit| edit.text.as_str())).unwrap_or_default();
    let written: String = written.trim().chars().filter(|c| !['"', '`', '[', ']'].contains(c)).collect();
    if finding.code == "unknown-table" {
        return written;
    }
    let extracted = state(request, text.to_string(), Vec::new(), 0).review.extracted;
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

/// The condition of the join that a fix adds; empty if it adds none.
fn join_condition(fix: &Fix) -> String {
    let joins = fix.edits.iter().filter_map(|edit| edit.text.split_once(" ON ").map(|(_, on)| on.trim()));
    joins.map(|on| on.chars().filter(|c| !['"', '`'].contains(c)).collect::<String>()).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::SQLITE;
    use crate::{Context, Policy, Schema};

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
        let context = Context { schema: Some(&schema), dialect: &SQLITE, policy: &policy, question: None };
        let found = readings(&Request { text, context, question, apply: most, error: None });
        let Some(found) = found else { return Vec::new() };
        for reading in &found.readings {
            let review = crate::review(&reading.sql, &context);
            assert!(review.is_clean() && review.approve().is_ok() && !reading.applied.is_empty(), "{reading:?}");
        }
        found.readings.into_iter().map(|reading| reading.label).collect()
    }

    #[test]
    fn ambiguous_names_have_one_reading_each() {
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
            // A misspelt table is repaired first.
            ("SELECT name FROM custmers, products", None, Likely, &["customers.name", "products.name"]),
            // The question says whose name is meant.
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
            // Having the columns is no evidence.
            ("SELECT name FROM employees", None, Suggested, &[]),
            ("DELETE FROM orders", None, Suggested, &[]),
            ("no query at all", None, Suggested, &[]),
        ] {
            assert_eq!(labels(text, question, most), expected, "{text}");
        }
    }

    #[test]
    fn one_choice_holds_wherever_the_name_is_used() {
        let schema = Schema::from_ddl(SHOP, &SQLITE).unwrap();
        let policy = Policy::default();
        let context = Context { schema: Some(&schema), dialect: &SQLITE, policy: &policy, question: None };
        let text = "SELECT name FROM customers c, products p WHERE name > 'b'";
        let request = Request { text, context, question: None, apply: Applicability::Likely, error: None };
        let found = readings(&request).unwrap();
        assert!(found.is_tied);
        let queries: Vec<&str> = found.readings.iter().map(|reading| reading.sql.as_str()).collect();
        assert_eq!(
            queries,
            [
                "SELECT c.name FROM customers c, products p WHERE c.name > 'b'",
                "SELECT p.name FROM customers c, products p WHERE p.name > 'b'",
            ]
        );
    }
}
