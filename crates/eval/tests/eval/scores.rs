//! Q10 and Q13: the formulas.

use querymend::event::{AnswerStatus, Cost};
use querymend_eval::{CaseOutcome, EvalMetrics, EvalReport, ExpectationMatch, run, spread};
use querymend_sql::{Applicability, AppliedFix, Cell, ErrorType, Rows};

use crate::{Script, answered, attempt, corrected, gave_up, patient_options, small_set};

async fn report(script: &Script) -> EvalReport {
    let folder = tempfile::tempdir().unwrap();
    run(&small_set(folder.path()), script, &patient_options()).await.unwrap()
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() < 1e-12
}

#[tokio::test]
async fn counts_first_attempts_and_corrections_separately() {
    let script = Script::new([
        ("a", answered("SELECT count(*) FROM customers")),
        ("b", corrected("SELECT count(id) FROM products", ErrorType::ColumnNotFound, "SELECT count(*) FROM products")),
        ("c", gave_up("SELECT count(*) FROM order", ErrorType::SyntaxError)),
        // It ran, and it is wrong.
        ("d", corrected("SELECT nam FROM products", ErrorType::ColumnNotFound, "SELECT category FROM products")),
    ]);
    let m = report(&script).await.metrics();
    assert_eq!((m.total, m.first_attempt_success, m.corrected_success, m.final_failures), (4, 1, 2, 1));
    assert_eq!(m.attempts, 1 + 2 + 3 + 2);
    assert!(close(m.first_attempt_rate, 0.25));
    assert!(close(m.correction_effectiveness.unwrap(), 2.0 / 3.0));
    assert!(close(m.overall_success_rate, 0.75));
    assert!(close(m.avg_attempts, 2.0));
    let columns = m.by_error_type["column_not_found"];
    assert_eq!((columns.count, columns.corrected), (2, 2));
    assert!(close(columns.rate, 1.0));
    let syntax = m.by_error_type["syntax_error"];
    assert_eq!((syntax.count, syntax.corrected), (1, 0));
    // Each question that failed at first counts once.
    assert_eq!(m.by_error_type.values().map(|by| by.count).sum::<usize>(), m.total - m.first_attempt_success);
    assert_eq!((m.judged, m.right_first, m.right, m.made_right, m.made_wrong), (4, 1, 2, 1, 0));
    assert_eq!((m.llm_calls, m.input_tokens, m.output_tokens, m.usd), (1 + 2 + 3 + 2, 400, 80, None));
    assert!(close(m.seconds, 2.0) && close(m.mean_seconds(), 0.5));
}

#[tokio::test]
async fn reproduces_the_reference_rates() {
    // Fifteen questions: five at once, eight corrected (six of seven columns, two of three aggregations), two failures.
    let template = report(&Script::new([("a", answered("SELECT 1"))])).await.records.remove(0);
    let mut records = Vec::new();
    for (outcome, error_type, times) in [
        (CaseOutcome::FirstAttempt, None, 5),
        (CaseOutcome::Corrected, Some("column_not_found"), 6),
        (CaseOutcome::Failed, Some("column_not_found"), 1),
        (CaseOutcome::Corrected, Some("aggregation"), 2),
        (CaseOutcome::Failed, Some("aggregation"), 1),
    ] {
        let mut record = template.clone();
        record.outcome = outcome;
        record.error_type = error_type.map(str::to_string);
        records.extend(std::iter::repeat_n(record, times));
    }
    let m = EvalMetrics::from_records(&records);
    assert_eq!((m.total, m.first_attempt_success, m.corrected_success, m.final_failures), (15, 5, 8, 2));
    assert_eq!(format!("{:.2}", m.first_attempt_rate), "0.33");
    assert_eq!(format!("{:.2}", m.correction_effectiveness.unwrap()), "0.80");
    assert_eq!(format!("{:.2}", m.overall_success_rate), "0.87");
    assert_eq!(format!("{:.2}", m.by_error_type["column_not_found"].rate), "0.86");
    assert_eq!(format!("{:.2}", m.by_error_type["aggregation"].rate), "0.67");
    assert!(m.targets().iter().all(|target| target.met));
}

#[tokio::test]
async fn repair_without_the_model_counts_as_correction_by_rule() {
    let mut mended = answered("SELECT count(*) FROM customers");
    mended.attempts[0].sql = "SELECT count(nam) FROM customers".into();
    mended.attempts[0].mended = mended.sql.clone();
    mended.attempts[0].fixes =
        vec![AppliedFix { code: "unknown-column", applicability: Applicability::Safe, why: "one candidate".into() }];
    let report = report(&Script::new([("a", mended)])).await;
    let record = &report.records[0];
    assert_eq!(record.outcome, CaseOutcome::Corrected);
    assert_eq!(record.error_type.as_deref(), Some("column_not_found"));
    assert_eq!((record.right_first, record.right), (Some(false), Some(true)));
    assert_eq!(record.behaviour, Some(ExpectationMatch::Worse), "it was expected at once");
    assert_eq!(report.metrics().attempts, 1);
}

#[tokio::test]
async fn detects_false_corrections() {
    let mut spoilt = answered("SELECT count(*) + 1 FROM customers");
    spoilt.attempts = vec![
        attempt(1, "SELECT count(*) FROM customers", None),
        attempt(2, "SELECT count(*) + 1 FROM customers", None),
    ];
    let m = report(&Script::new([("a", spoilt)])).await.metrics();
    assert_eq!((m.right_first, m.made_wrong), (1, 1));
}

#[tokio::test]
async fn counts_chats_choices_and_fallbacks() {
    let mut chat = answered("SELECT 1");
    chat.status = AnswerStatus::Chat;
    let mut choice = answered("SELECT count(*) FROM products");
    choice.status = AnswerStatus::AskUser;
    let mut fallback = answered("SELECT order_id FROM orders");
    fallback.fallback = true;
    fallback.rows = Some(Rows { columns: vec!["n".into()], rows: vec![vec![Cell::Integer(180)]], truncated: false });
    fallback.cost = Cost { usd: Some(0.5), ..fallback.cost };
    let report = report(&Script::new([("a", chat), ("b", choice), ("c", fallback)])).await;
    let outcomes: Vec<CaseOutcome> = report.records.iter().map(|record| record.outcome).collect();
    assert_eq!(outcomes, [CaseOutcome::Failed, CaseOutcome::Failed, CaseOutcome::Corrected, CaseOutcome::Failed]);
    let m = report.metrics();
    assert_eq!((m.fallbacks, m.right, m.usd), (1, 1, Some(0.5)), "the rows of a fallback are what is compared");
    // The fourth could not be asked: it counts, and is not right.
    assert_eq!((m.troubles, m.judged, m.by_error_type["no_query"].count), (1, 4, 1));
}

#[test]
fn empty_metrics_do_not_divide_by_zero() {
    let m = EvalMetrics::from_records([]);
    assert_eq!((m.first_attempt_rate, m.overall_success_rate, m.avg_attempts, m.right_rate), (0.0, 0.0, 0.0, 0.0));
    assert_eq!((m.correction_effectiveness, m.mean_seconds()), (None, 0.0));
    assert!(m.targets().iter().all(|target| !target.met), "of nothing, nothing is reached");
    assert_eq!(spread(&[]), None);
    assert_eq!(spread(&[0.5]).unwrap().deviation, 0.0);
}

#[tokio::test]
async fn targets_report_their_margin() {
    let all_at_once =
        EvalMetrics { total: 10, first_attempt_rate: 1.0, overall_success_rate: 1.0, ..EvalMetrics::default() };
    let [first, correction, overall] = all_at_once.targets();
    assert!(first.met && correction.met && overall.met, "nothing had to be corrected");
    assert!(close(first.by.unwrap(), 0.7) && correction.by.is_none());
    // Exactly at the mark is not above it.
    let at = EvalMetrics {
        total: 20,
        first_attempt_rate: 0.30,
        correction_effectiveness: Some(0.60),
        overall_success_rate: 0.85,
        ..EvalMetrics::default()
    };
    assert!(at.targets().iter().all(|target| !target.met && target.by == Some(0.0)));
    let report = report(&Script::new([("a", answered("SELECT count(*) FROM customers"))])).await;
    let text = report.markdown();
    assert!(text.contains("| first_attempt_rate | 30.0% | 25.0% | missed by 5.0 points |"), "{text}");
    assert!(text.contains("| overall_success_rate | 85.0% | 25.0% | missed by 60.0 points |"), "{text}");
}

#[tokio::test]
async fn report_is_complete_in_markdown_csv_and_json() {
    let script = Script::new([
        ("a", answered("SELECT count(*) FROM customers")),
        ("b", corrected("SELECT count(id) FROM products", ErrorType::ColumnNotFound, "SELECT count(*) FROM products")),
        ("c", gave_up("SELECT count(*) FROM order", ErrorType::SyntaxError)),
        ("d", answered("SELECT name, 'a|b,\"c\"' FROM products")),
    ]);
    let mut report = report(&script).await;
    report.skipped = (0..9)
        .map(|i| querymend_eval::SkippedCase { id: format!("s{i}"), reason: "the database `x` is not there".into() })
        .collect();
    assert_eq!(
        report.markdown(),
        "\
# small: run

4 answers in one run; 9 questions could not be asked.

| what | figure |
|---|---:|
| answered by the first draft | 2 of 4 (50.0%) |
| answered after a correction | 1 (50.0% of what failed at first) |
| not answered | 1 |
| answered in all | 75.0% |
| drafts per question | 1.75 |
| first draft right (the rows of a gold query) | 1 of 4 (25.0%) |
| answer right | 2 of 4 (50.0%) |
| made right / made wrong on the way | 1 / 0 |
| answered from plain rows | 0 |
| failed for external reasons | 0 |
| model calls | 7 |
| tokens read / written | 400 / 80 |
| cost | unknown |
| seconds per question | 0.50 |

## Targets

| rate | more than | is |  |
|---|---:|---:|---|
| first_attempt_rate | 30.0% | 50.0% | met by 20.0 points |
| correction_effectiveness | 60.0% | 50.0% | missed by 10.0 points |
| overall_success_rate | 85.0% | 75.0% | missed by 10.0 points |

## What failed at first

| family | count | corrected | rate | drafts |
|---|---:|---:|---:|---:|
| column_not_found | 1 | 1 | 100.0% | 2 |
| syntax_error | 1 | 0 | 0.0% | 3 |

## By group

| group | answers | first draft | answered | right |
|---|---:|---:|---:|---:|
| aggregation | 1 | 0.0% | 0.0% | 0 of 1 |
| column | 2 | 50.0% | 100.0% | 1 of 2 |
| first_try | 1 | 100.0% | 100.0% | 1 of 1 |

Against what the set expects: as expected 2, better 1, worse 1.

## Not answered, not right, not judged

| question | run | how | why |
|---|---:|---|---|
| c | 1 | not answered | it was refused |
| d | 1 | not right |  |

## Could not be asked

| why | questions | which |
|---|---:|---|
| the database `x` is not there | 9 | s0, s1, s2, … |
"
    );
    let csv = report.to_csv();
    assert!(csv.starts_with("run,id,tags,outcome,status,right_first,right,attempts,error_type,"));
    assert!(
        csv.contains("\n1,b,column,corrected,answered,no,yes,2,column_not_found,as expected,2,100,20,,0.500,"),
        "{csv}"
    );
    assert!(csv.contains("\"SELECT name, 'a|b,\"\"c\"\"' FROM products\""), "{csv}");
    let json = serde_json::to_value(report.summary()).unwrap();
    assert_eq!(json["metrics"]["first_attempt_rate"], 0.5);
    assert_eq!(json["metrics"]["by_error_type"]["column_not_found"]["rate"], 1.0);
    assert_eq!((json["targets"][1]["met"].clone(), json["complete"].clone()), (false.into(), true.into()));
}
