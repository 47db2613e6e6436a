use super::*;
use crate::context::ReviewContext;
use crate::dialect::SQLITE;
use crate::{Policy, Schema};

/// Schema with two foreign keys to the same table, neither of which references a unique column.
const TIED: &str = "CREATE TABLE places (code TEXT, region TEXT, city TEXT);
    CREATE TABLE parcels (parcel INTEGER PRIMARY KEY, target TEXT REFERENCES places (code),
                          zone TEXT REFERENCES places (region));";

/// Returns the repaired query and the number of probes; `twice` answers them.
fn repaired(connected: bool, twice: impl Fn(&str) -> Option<bool>) -> (String, usize) {
    let schema = Schema::from_ddl(TIED, &SQLITE).unwrap();
    let policy = Policy::default();
    let context = ReviewContext { schema: Some(&schema), dialect: &SQLITE, policy: &policy, question: None };
    let text = "SELECT parcel, city FROM parcels";
    let request =
        RepairRequest { text, context, question: None, max_applicability: Applicability::Likely, error: None };
    let mut search = RepairSearch::new(request, connected);
    let mut asked = 0;
    loop {
        match search.advance() {
            SearchStep::DryRun(_) => search.answer_dry_run(Ok(())),
            SearchStep::ReturnsRows(query) => {
                asked += 1;
                assert!(query.sql().contains("HAVING COUNT(*) > 1 LIMIT 1"), "{}", query.sql());
                search.answer_returns_rows(twice(query.sql()));
            }
            SearchStep::Done(repair) => return (repair.sql, asked),
        }
    }
}

#[test]
fn probes_database_for_join_that_multiplies_rows() {
    let by = |own: &str, there: &str| {
        format!("SELECT parcel, places.city FROM parcels JOIN places ON parcels.{own} = places.{there}")
    };
    let (target, zone) = (by("target", "code"), by("zone", "region"));
    assert_eq!(repaired(true, |q| Some(q.contains("GROUP BY region"))), (target.clone(), 1));
    assert_eq!(repaired(true, |q| Some(q.contains("GROUP BY code"))), (zone, 2));
    // If both keys are duplicated, or there is no answer in time, the first join wins; without
    // a database there are no probes.
    assert_eq!(repaired(true, |_| Some(true)).0, target);
    assert_eq!(repaired(true, |_| None).0, target);
    assert_eq!(repaired(false, |_| Some(true)), (target, 0));
}

#[test]
fn gives_up_when_only_a_speculative_fix_runs() {
    let schema = Schema::from_ddl(include_str!("../../../tests/pages/shop.sql"), &SQLITE).unwrap();
    let policy = Policy::default();
    let context = ReviewContext { schema: Some(&schema), dialect: &SQLITE, policy: &policy, question: None };
    let text = "SELECT MAX(SUM(total)) FROM orders";
    let request =
        RepairRequest { text, context, question: None, max_applicability: Applicability::Likely, error: None };
    let end = |mut search: RepairSearch<'_>| loop {
        match search.advance() {
            SearchStep::DryRun(_) => search.answer_dry_run(Ok(())),
            SearchStep::ReturnsRows(_) => search.answer_returns_rows(None),
            SearchStep::Done(repair) => break *repair,
        }
    };
    let plain = end(RepairSearch::new(request, true));
    assert_eq!((plain.status, plain.sql.as_str(), plain.applied.len()), (RepairStatus::GaveUp, text, 0));
    let guessed = end(RepairSearch::new(request, true).with_speculative_fixes());
    assert_eq!((guessed.status, guessed.sql.as_str()), (RepairStatus::GaveUp, "SELECT (SUM(total)) FROM orders"));
    assert!(guessed.findings.iter().all(|f| f.severity == Severity::Error && f.message.contains("guess")));
    assert!(!guessed.findings.is_empty());
    // Without a database, nothing confirms that the query runs.
    assert_eq!(end(RepairSearch::new(request, false).with_speculative_fixes()).sql, text);
}
