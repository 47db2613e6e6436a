//! Runs that are stopped, torn, taken up again and repeated, and what is written about them.

use std::fs;
use std::sync::{Arc, Mutex};

use querymend::StopReason;
use querymend_eval::{Baseline, CaseOutcome, CaseRecord, EvalError, EvalOptions, EvalReport, run};
use querymend_sql::ErrorType;

use crate::{Script, answered, corrected, gave_up, patient_options, small_set};

fn good() -> Script {
    Script::new([
        ("a", answered("SELECT count(*) FROM customers")),
        ("b", corrected("SELECT count(id) FROM products", ErrorType::ColumnNotFound, "SELECT count(*) FROM products")),
        ("c", answered("SELECT count(*) FROM orders")),
        ("d", answered("SELECT name FROM products ORDER BY price")),
    ])
}

#[tokio::test]
async fn resumes_an_interrupted_run() {
    let folder = tempfile::tempdir().unwrap();
    let (set, file) = (small_set(folder.path()), folder.path().join("results.jsonl"));
    let options = || EvalOptions { results: Some(file.clone()), ..patient_options() };
    let script = good();
    let whole = run(&set, &script, &options()).await.unwrap();
    assert_eq!(script.asked(), ["a", "b", "c", "d"]);
    let again = run(&set, &script, &options()).await.unwrap();
    assert!(script.asked().is_empty(), "all of it was done");
    assert_eq!(again, whole);

    // Power fails while the last line is written: in the middle of it, in the middle of a letter, or before its line end.
    let bytes = fs::read(&file).unwrap();
    let lines: Vec<&[u8]> = bytes.split_inclusive(|byte| *byte == b'\n').collect();
    let kept: usize = lines[..3].iter().map(|line| line.len()).sum();
    for torn in [&b"{\"id\":\"c\",\"ru"[..], &b"{\"id\":\"\xc3"[..], lines[3].trim_ascii_end(), &b"\0\0\0\n"[..]] {
        fs::write(&file, [&bytes[..kept], torn].concat()).unwrap();
        let report = run(&set, &script, &options()).await.unwrap();
        assert_eq!(script.asked(), ["c", "d"], "after {:?}", String::from_utf8_lossy(torn));
        assert_eq!(report, whole);
        assert_eq!(fs::read(&file).unwrap(), bytes);
    }
    // Even the first line.
    fs::write(&file, "{\"dataset\":\"sm").unwrap();
    assert_eq!(run(&set, &script, &options()).await.unwrap(), whole);
    assert_eq!(script.asked().len(), 4);
}

#[tokio::test]
async fn keeps_results_of_another_run() {
    let folder = tempfile::tempdir().unwrap();
    let (set, file) = (small_set(folder.path()), folder.path().join("results.jsonl"));
    let options = |label: &str| EvalOptions { results: Some(file.clone()), label: label.into(), ..patient_options() };
    run(&set, &good(), &options("one")).await.unwrap();
    let before = fs::read(&file).unwrap();
    let error = run(&set, &good(), &options("two")).await.unwrap_err();
    assert!(error.to_string().ends_with("holds results of `one`, not of `two`"), "{error}");
    assert!(error.downcast_ref::<EvalError>().is_some());
    assert_eq!(fs::read(&file).unwrap(), before);

    // Two runs do not write into one file.
    let held = fs::File::open(&file).unwrap();
    held.lock().unwrap();
    let error = run(&set, &good(), &options("one")).await.unwrap_err();
    assert!(error.to_string().ends_with("is being written by another run"), "{error}");
    drop(held);

    // A text that ends without a line break is somebody's, and no torn result.
    for text in ["my notes", "{\"a\": 1}", "one line\nanother"] {
        fs::write(&file, text).unwrap();
        assert!(run(&set, &good(), &options("one")).await.is_err(), "{text}");
        assert_eq!(fs::read_to_string(&file).unwrap(), text);
    }
    fs::write(&file, &before).unwrap();

    // Damage in the middle is no tear.
    let text = String::from_utf8(before).unwrap().replacen("{\"id\":\"a\"", "{\"id\":a", 1);
    fs::write(&file, &text).unwrap();
    let error = run(&set, &good(), &options("one")).await.unwrap_err();
    assert!(error.to_string().contains("line 2"), "{error}");
    assert_eq!(fs::read_to_string(&file).unwrap(), text);
}

#[tokio::test]
async fn retries_questions_that_could_not_be_run() {
    let folder = tempfile::tempdir().unwrap();
    let (set, file) = (small_set(folder.path()), folder.path().join("results.jsonl"));
    let options = || EvalOptions { results: Some(file.clone()), ..patient_options() };
    let mut script = good();
    script.answers.remove("b");
    let first = run(&set, &script, &options()).await.unwrap();
    assert_eq!(first.records[1].trouble.as_deref(), Some("no model was reached"));
    assert_eq!((first.metrics().final_failures, first.metrics().troubles), (1, 1));
    let script = good();
    let second = run(&set, &script, &options()).await.unwrap();
    assert_eq!(script.asked(), ["b"]);
    assert_eq!(second.metrics().troubles, 0);
    // The file holds both lines; the later one counts.
    assert_eq!(EvalReport::read(&file).unwrap().metrics(), second.metrics());
}

#[tokio::test]
async fn cancelled_run_keeps_finished_results() {
    let folder = tempfile::tempdir().unwrap();
    let (set, file) = (small_set(folder.path()), folder.path().join("results.jsonl"));
    let mut options = EvalOptions { results: Some(file.clone()), ..patient_options() };
    let cancel = options.cancel.clone();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let tell = Arc::clone(&seen);
    options.progress = Some(Box::new(move |step| {
        tell.lock().unwrap().push((step.done, step.total, step.record.id.clone()));
        if step.done == 2 {
            cancel.cancel();
        }
    }));
    let report = run(&set, &good(), &options).await.unwrap();
    assert_eq!(*seen.lock().unwrap(), [(1, 4, "a".to_string()), (2, 4, "b".to_string())]);
    assert!(!report.is_complete() && report.records.len() == 2);
    assert!(report.markdown().contains("**Not complete**: 2 of 4 were asked."));
    // An answer that was itself cut off is no result.
    let mut script = good();
    if let Some(answer) = script.answers.get_mut("c") {
        answer.stop = StopReason::Cancelled;
    }
    let again = EvalOptions { results: Some(file), ..patient_options() };
    let report = run(&set, &script, &again).await.unwrap();
    assert_eq!(script.asked(), ["c", "d"]);
    assert_eq!(report.records.iter().map(|r| r.id.as_str()).collect::<Vec<_>>(), ["a", "b", "d"]);
}

#[tokio::test]
async fn concurrent_questions_give_the_same_report() {
    let folder = tempfile::tempdir().unwrap();
    let set = small_set(folder.path());
    let one = run(&set, &good(), &patient_options()).await.unwrap();
    for jobs in [0, 2, 3, 64] {
        let many = run(&set, &good(), &EvalOptions { jobs, ..patient_options() }).await.unwrap();
        assert_eq!(
            (many.markdown(), many.to_csv(), many.chart().svg()),
            (one.markdown(), one.to_csv(), one.chart().svg())
        );
    }
}

#[tokio::test]
async fn several_runs_have_mean_and_deviation() {
    let folder = tempfile::tempdir().unwrap();
    let set = small_set(folder.path());
    let mut report = run(&set, &good(), &EvalOptions { runs: 3, ..patient_options() }).await.unwrap();
    assert_eq!((report.records.len(), report.per_run().len()), (12, 3));
    assert_eq!(report.summary().spread["right_rate"].deviation, 0.0);
    // One answer of the second run fails: 1, 3/4, 1.
    let fail = |record: &&mut CaseRecord| record.run == 2 && record.id == "a";
    for record in report.records.iter_mut().filter(fail) {
        record.outcome = CaseOutcome::Failed;
    }
    let spread = report.summary().spread["overall_success_rate"];
    assert!((spread.mean - 11.0 / 12.0).abs() < 1e-12 && (spread.deviation - 0.25 / 3.0_f64.sqrt()).abs() < 1e-12);
    assert_eq!((spread.min, spread.max), (0.75, 1.0));
    // Most of the runs decide what a question comes to.
    assert_eq!(Baseline::from_report(&report).entries[0].outcome, CaseOutcome::FirstAttempt);
}

#[tokio::test]
async fn baseline_shows_regressions() {
    let folder = tempfile::tempdir().unwrap();
    let (set, file) = (small_set(folder.path()), folder.path().join("baseline.csv"));
    let before = run(&set, &good(), &patient_options()).await.unwrap();
    Baseline::from_report(&before).write(&file).unwrap();
    let text = fs::read_to_string(&file).unwrap();
    assert_eq!(
        text,
        "id,outcome,right,error_type\na,first_attempt,yes,\nb,corrected,yes,column_not_found\nc,first_attempt,yes,\n\
         d,first_attempt,yes,\n"
    );
    let baseline = Baseline::read(&file).unwrap();
    assert_eq!(baseline, Baseline::from_report(&before));
    assert_eq!(baseline.diff(&before), querymend_eval::BaselineDiff::default());

    let mut script = good();
    script.answers.insert("a".into(), gave_up("SELECT count(*) FROM customer", ErrorType::TableNotFound));
    script.answers.insert("b".into(), answered("SELECT count(*) FROM products"));
    script.answers.insert("d".into(), answered("SELECT email FROM customers"));
    let drift = baseline.diff(&run(&set, &script, &patient_options()).await.unwrap());
    let say = |id: &str, words: &str| (id.to_string(), words.to_string());
    assert_eq!(
        drift.regressions,
        [
            say("a", "first attempt, right → failed, not right"),
            say("d", "first attempt, right → first attempt, not right")
        ]
    );
    assert_eq!(drift.improvements, [say("b", "corrected, right → first attempt, right")]);
    let less = run(&set, &good(), &EvalOptions { limit: Some(2), ..patient_options() }).await.unwrap();
    assert_eq!(baseline.diff(&less).missing, ["b", "d"]);

    fs::write(&file, "id,outcome,right,error_type\na,fine,yes,\n").unwrap();
    assert!(Baseline::read(&file).unwrap_err().to_string().ends_with("line 2: field `outcome` is `fine`"));
}

#[tokio::test]
async fn reports_unusable_gold_queries_without_counting_them() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("odd.yaml");
    let text = "\
database: demo
cases:
  - { id: broken, question: q, gold: SELECT nothing FROM nowhere }
  - { id: writes, question: q, gold: DELETE FROM products }
  - { id: none, question: q }
  - { id: two, question: q, gold: [SELECT nothing FROM nowhere, SELECT count(*) FROM orders] }
";
    fs::write(&file, text).unwrap();
    let set = querymend_eval::Dataset::load(&file, &querymend_eval::LoadOptions::default()).unwrap();
    let one = || answered("SELECT count(*) FROM orders;");
    let script = Script::new([("broken", one()), ("writes", one()), ("none", one()), ("two", one())]);
    let report = run(&set, &script, &patient_options()).await.unwrap();
    let m = report.metrics();
    assert_eq!((m.total, m.judged, m.right), (4, 1, 1));
    assert!(report.records[0].unjudged.as_deref().unwrap().starts_with("the gold query does not run"));
    assert_eq!(report.records[2].unjudged.as_deref(), Some("there is no gold query"));
    // A cut result is never right.
    let mut tight = patient_options();
    tight.limits.rows = 0;
    assert_eq!(run(&set, &script, &tight).await.unwrap().metrics().judged, 0);
}
