//! Two runs against each other: Q12's loop off against loop on, Q15's prompts.

use querymend_eval::{BarChart, EvalError, EvalOptions, EvalReport, McNemarMethod, compare, mcnemar, run};
use querymend_sql::ErrorType;

use crate::{Script, answered, corrected, gave_up, patient_options, small_set};

async fn reports(a: (&str, Script), b: (&str, Script)) -> (EvalReport, EvalReport) {
    let folder = tempfile::tempdir().unwrap();
    let set = small_set(folder.path());
    let options = |label: &str| EvalOptions { label: label.into(), ..patient_options() };
    let first = run(&set, &a.1, &options(a.0)).await.unwrap();
    (first, run(&set, &b.1, &options(b.0)).await.unwrap())
}

fn off() -> Script {
    let mut bad = gave_up("SELECT count(id) FROM products", ErrorType::ColumnNotFound);
    bad.attempts.truncate(1);
    bad.metadata.llm_calls = 1;
    let mut wrong_name = gave_up("SELECT nam FROM products", ErrorType::ColumnNotFound);
    wrong_name.attempts.truncate(1);
    wrong_name.metadata.llm_calls = 1;
    Script::new([
        ("a", answered("SELECT count(*) FROM customers")),
        ("b", bad),
        ("c", answered("SELECT count(*) FROM orders")),
        ("d", wrong_name),
    ])
}

fn on() -> Script {
    let mut script = off();
    let column = ErrorType::ColumnNotFound;
    let (bad, good) = ("SELECT count(id) FROM products", "SELECT count(*) FROM products");
    script.answers.insert("b".into(), corrected(bad, column, good));
    script.answers.insert("d".into(), corrected("SELECT nam FROM products", column, "SELECT name FROM products"));
    script
}

#[test]
fn mcnemar_matches_known_values() {
    for (fixed, broken, p) in [
        (0, 0, 1.0),
        (5, 0, 0.0625),
        (0, 6, 0.03125),
        (1, 8, 0.0390625),
        (2, 10, 0.038574219),
        (3, 3, 1.0),
        (9, 16, 0.229522944),
        (25, 0, 5.9604645e-8),
    ] {
        let test = mcnemar(fixed, broken);
        assert_eq!((test.method, test.statistic), (McNemarMethod::Exact, None));
        assert!((test.p - p).abs() < 1e-9, "{fixed}/{broken}: {}", test.p);
        assert_eq!(test.p, mcnemar(broken, fixed).p);
    }
    for (fixed, broken, statistic, p) in [
        (30, 10, 9.025, 0.002_663_119_26),
        (121, 59, 20.672_222_222, 5.450_094_8e-6),
        (13, 13, 0.0, 1.0),
        (14, 13, 0.0, 1.0),
        (100, 0, 98.01, 4.162_750_4e-23),
    ] {
        let test = mcnemar(fixed, broken);
        assert_eq!(test.method, McNemarMethod::ChiSquare);
        assert!((test.statistic.unwrap() - statistic).abs() < 1e-8, "{test:?}");
        assert!((test.p - p).abs() <= p * 1e-6, "{fixed}/{broken}: {}", test.p);
    }
}

#[tokio::test]
async fn compares_loop_off_with_loop_on() {
    let (off, on) = reports(("loop off", off()), ("loop on", on())).await;
    let comparison = compare(&off, &on).unwrap();
    assert_eq!(comparison.right.fixed, ["b", "d"]);
    assert!(comparison.right.broken.is_empty());
    assert_eq!((comparison.right.both, comparison.right.neither, comparison.right.test.p), (2, 0, 0.5));
    assert_eq!(
        comparison.table(),
        "\
loop off against loop on (small, 4 questions)
=============================================
Metric                     loop off   loop on          Change
-------------------------------------------------------------
Success rate                  50.0%    100.0%    +50.0 points
Average time                 0.50 s    0.50 s           +0.0%
Failed questions                2/4       0/4         -100.0%
First draft answered          50.0%     50.0%     +0.0 points
Correction effectiveness       0.0%    100.0%   +100.0 points
First draft right             50.0%     50.0%     +0.0 points
Answer right                  50.0%    100.0%    +50.0 points
Drafts per question            1.00      1.50          +50.0%
Model calls per question       1.00      1.50          +50.0%
Tokens per question          120.00    120.00           +0.0%

Answered: 2 fixed, 0 broken, McNemar p = 0.5000 (exact).
Right: 2 fixed, 0 broken, McNemar p = 0.5000 (exact).
"
    );
    let back = compare(&on, &off).unwrap();
    assert_eq!(back.right.broken, ["b", "d"]);
    assert!(back.markdown().contains("\nNo longer right: b, d.\n"));
}

#[tokio::test]
async fn compares_two_prompts_question_by_question() {
    // Variant B mends one question and spoils another: the rates are the same, the questions are not.
    let mut b = off();
    b.answers.insert("b".into(), answered("SELECT count(*) FROM products"));
    b.answers.insert("c".into(), answered("SELECT count(*) FROM order_items"));
    let (first, second) = reports(("prompt A", off()), ("prompt B", b)).await;
    let comparison = compare(&first, &second).unwrap();
    assert_eq!((&comparison.right.fixed[..], &comparison.right.broken[..]), (&["b".into()][..], &["c".into()][..]));
    assert_eq!(comparison.metrics_a.right_rate, comparison.metrics_b.right_rate);
    assert_eq!(comparison.right.test.p, 1.0);
    assert!(comparison.table().starts_with("prompt A against prompt B (small, 4 questions)\n"));
}

#[tokio::test]
async fn compares_only_questions_of_both_runs() {
    let folder = tempfile::tempdir().unwrap();
    let set = small_set(folder.path());
    let half = run(&set, &off(), &EvalOptions { limit: Some(2), ..patient_options() }).await.unwrap();
    let whole = run(&set, &on(), &patient_options()).await.unwrap();
    let comparison = compare(&half, &whole).unwrap();
    assert_eq!((comparison.cases, comparison.left_out, comparison.metrics_b.total), (2, 2, 2));
    assert!(comparison.table().contains("2 questions were asked in one run only and do not count."));
    // Other questions cannot be compared at all.
    std::fs::write(
        folder.path().join("small.yaml"),
        "name: small\ndatabase: demo\ncases: [{ id: a, question: another, gold: SELECT 1 }]\n",
    )
    .unwrap();
    let other = querymend_eval::Dataset::load(&folder.path().join("small.yaml"), &Default::default()).unwrap();
    let error = compare(&whole, &run(&other, &on(), &patient_options()).await.unwrap()).unwrap_err();
    assert!(error.downcast_ref::<EvalError>().is_some());
}

#[tokio::test]
async fn chart_is_well_formed_and_deterministic() {
    let (off, on) = reports(("loop <off> & \"out\"", off()), ("loop\non\u{1}", on())).await;
    let comparison = compare(&off, &on).unwrap();
    let svg = comparison.chart().svg();
    assert_eq!(svg, compare(&off, &on).unwrap().chart().svg());
    assert_well_formed(&svg);
    assert!(svg.contains("prefers-color-scheme:dark"), "readable on dark pages");
    assert!(svg.contains(">Answer right</text>") && svg.contains(">100.0 %</text>"), "text is text: {svg}");
    assert!(svg.contains("loop &lt;off&gt; &amp; &quot;out&quot;"));
    assert_well_formed(&off.chart().svg());
    let odd = BarChart {
        title: String::new(),
        series: vec![],
        groups: vec![("x".into(), vec![None, Some(f64::NAN), Some(7.0), Some(-1.0)])],
    };
    assert_well_formed(&odd.svg());
    assert!(!odd.svg().contains("width=\"-") && !odd.svg().contains("width=\"NaN"));
    assert_well_formed(&BarChart { title: "nothing".into(), series: vec![], groups: vec![] }.svg());
}

/// Every tag that is opened is closed, in order; attributes are quoted; no mark stands bare.
fn assert_well_formed(svg: &str) {
    let mut open: Vec<String> = Vec::new();
    let mut rest = svg;
    while let Some(start) = rest.find('<') {
        let text = &rest[..start];
        let bare = text.replace("&amp;", "").replace("&lt;", "").replace("&gt;", "").replace("&quot;", "");
        assert!(!bare.contains(['&', '>']), "{text}");
        let end = start + rest[start..].find('>').expect("a tag ends");
        let tag = &rest[start + 1..end];
        rest = &rest[end + 1..];
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop().as_deref(), Some(name));
            continue;
        }
        let (tag, alone) = tag.strip_suffix('/').map_or((tag, false), |tag| (tag, true));
        let (name, attributes) = tag.split_once(' ').unwrap_or((tag, ""));
        // Outside of quotes only names and `=`: quotes come in pairs.
        let outside: String = attributes.split('"').step_by(2).collect();
        assert_eq!(attributes.matches('"').count() % 2, 0, "{tag}");
        assert!(outside.chars().all(|c| c.is_ascii_alphanumeric() || " =-:".contains(c)), "{tag}");
        if !alone {
            open.push(name.to_string());
        }
    }
    assert!(open.is_empty() && rest.trim().is_empty(), "{open:?} {rest}");
    assert!(svg.chars().all(|c| c == '\n' || !c.is_control()));
}
