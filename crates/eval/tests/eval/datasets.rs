//! Q12: the sets, ours and those of others.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use querymend_engine::{CancelFlag, Limits, demo, open};
use querymend_eval::{CaseOutcome, Dataset, DatasetFormat, EvalError, EvalOptions, LoadOptions, run};
use querymend_sql::{ErrorType, Policy, ReviewContext, Severity, review};

use crate::{Script, answered, bounded_options, root};

fn load(path: &Path) -> Dataset {
    Dataset::load(path, &LoadOptions::default()).unwrap()
}

/// What loading a file with this text says.
fn complaint(name: &str, text: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join(name);
    fs::write(&file, text).unwrap();
    let error = Dataset::load(&file, &LoadOptions::default()).unwrap_err();
    let trouble = error.downcast_ref::<EvalError>().unwrap();
    assert!(!trouble.hint.is_empty());
    error.to_string().replace(&folder.path().display().to_string(), "")
}

#[tokio::test]
async fn correction_set_has_fifteen_questions_with_gold_rows() {
    let set = load(&root().join("datasets/correction"));
    assert_eq!((set.name.as_str(), set.format, set.cases.len()), ("correction", DatasetFormat::Own, 15));
    assert!(set.skipped.is_empty());
    let mut kinds = BTreeMap::new();
    for case in &set.cases {
        *kinds.entry(case.tags[0].as_str()).or_insert(0) += 1;
        let expect = case.expect.as_ref().unwrap();
        let (outcome, error_type) = match case.tags[0].as_str() {
            "first_try" => (CaseOutcome::FirstAttempt, None),
            "column" => (CaseOutcome::Corrected, Some("column_not_found")),
            _ => (CaseOutcome::Corrected, Some("aggregation")),
        };
        assert_eq!((expect.outcome, expect.error_type.as_deref()), (outcome, error_type));
    }
    assert_eq!(kinds, BTreeMap::from([("first_try", 5), ("column", 7), ("aggregation", 3)]));

    let folder = tempfile::tempdir().unwrap();
    let shop = folder.path().join("shop.db");
    demo::write(&shop).unwrap();
    let engine = open(&shop.display().to_string()).unwrap();
    let schema = engine.schema().await.unwrap();
    let policy = Policy::default();
    for case in &set.cases {
        assert!(!case.gold.is_empty(), "{}", case.id);
        for gold in &case.gold {
            let context =
                ReviewContext { schema: Some(&schema), dialect: engine.dialect(), policy: &policy, question: None };
            let reviewed = review(gold, &context);
            assert!(reviewed.is_clean(), "{}: {:?}", case.id, reviewed.findings);
            let rows =
                engine.execute(&reviewed.approve().unwrap(), &Limits::default(), &CancelFlag::new()).await.unwrap();
            assert!(!rows.rows.is_empty() && !rows.truncated, "{} gives no rows", case.id);
            assert!(rows.rows.iter().flatten().any(|cell| *cell != querymend_sql::Cell::Null), "{}", case.id);
        }
    }
}

#[test]
fn correction_set_drafts_fail_as_expected() {
    // What a hasty model writes for the questions of the kinds `column` and `aggregation`: the critic objects to each.
    let drafts = [
        ("electronics-ids", "SELECT id, price FROM products WHERE category = 'Electronics'"),
        (
            "customer-totals",
            "SELECT c.name, SUM(o.total) FROM customers c JOIN orders o ON o.customer_id = c.id GROUP BY c.name",
        ),
        ("books-unit-price", "SELECT AVG(unit_price) FROM order_items WHERE category = 'Books'"),
        ("one-star-reviewers", "SELECT DISTINCT customer_name FROM reviews WHERE rating = 1"),
        ("units-sold", "SELECT product_name, SUM(quantity) FROM order_items GROUP BY product_name"),
        (
            "order-dates",
            "SELECT o.order_date FROM orders o JOIN customers c ON c.customer_id = o.customer_id WHERE c.name = 'Aoife O''Brien'",
        ),
        (
            "largest-discount",
            "SELECT MAX(oi.discount) FROM order_items oi JOIN products p ON p.product_id = oi.product_id WHERE p.category = 'Toys'",
        ),
        (
            "frequent-customers",
            "SELECT c.name, COUNT(*) FROM customers c JOIN orders o ON o.customer_id = c.customer_id WHERE COUNT(*) > 5 GROUP BY c.name",
        ),
        ("above-average", "SELECT name, price FROM products WHERE price > AVG(price)"),
        (
            "items-per-order",
            "SELECT o.status, AVG(COUNT(*)) FROM orders o JOIN order_items i ON i.order_id = o.order_id GROUP BY o.status",
        ),
    ];
    let set = load(&root().join("datasets/correction"));
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let engine = open(&set.cases[0].database).unwrap();
    let schema = runtime.block_on(engine.schema()).unwrap();
    let policy = Policy::default();
    let context = ReviewContext { schema: Some(&schema), dialect: engine.dialect(), policy: &policy, question: None };
    let tricky: Vec<&str> = set.cases.iter().filter(|c| c.tags[0] != "first_try").map(|c| c.id.as_str()).collect();
    assert_eq!(tricky, drafts.map(|(id, _)| id));
    for (id, draft) in drafts {
        let reviewed = review(draft, &context);
        assert!(!reviewed.is_clean(), "{id}: `{draft}` is not objected to");
        let errors = reviewed.findings.iter().filter(|finding| finding.severity == Severity::Error);
        let families: Vec<serde_json::Value> =
            errors.map(|finding| serde_json::to_value(ErrorType::of(finding.code)).unwrap()).collect();
        let expect = set.cases.iter().find(|case| case.id == id).and_then(|case| case.expect.clone()).unwrap();
        let expected = serde_json::to_value(expect.error_type).unwrap();
        assert!(families.contains(&expected), "{id}: {families:?}");
    }
}

#[test]
fn detects_spider_bird_and_defog_by_content() {
    let folder = tempfile::tempdir().unwrap();
    let at = |path: &str| folder.path().join(path);
    fs::create_dir_all(at("database/shop")).unwrap();
    fs::create_dir_all(at("sqlite")).unwrap();
    fs::create_dir_all(at("questions")).unwrap();
    demo::write(&at("database/shop/shop.sqlite")).unwrap();
    demo::write(&at("sqlite/store.sqlite")).unwrap();

    fs::write(
        at("one.txt"),
        r#"[{"db_id": "shop", "question": "How many?", "query": "SELECT 1"},
            {"id": "x", "db_id": "shop", "question": "Which?", "gold": "SELECT 2"},
            {"id": "x", "db_id": "shop", "question": "Again?", "gold": "SELECT 2"},
            {"db_id": "gone", "question": "Where?", "query": "SELECT 3"},
            {"db_id": "../database/shop/shop", "question": "Out?", "query": "SELECT 3"}]"#,
    )
    .unwrap();
    let spider = load(&at("one.txt"));
    assert_eq!(spider.format, DatasetFormat::Spider);
    let ids: Vec<&str> = spider.cases.iter().map(|case| case.id.as_str()).collect();
    assert_eq!(ids, ["0", "x"]);
    assert!(Path::new(&spider.cases[0].database).ends_with("database/shop/shop.sqlite"));
    let reasons: Vec<(&str, &str)> = spider.skipped.iter().map(|s| (s.id.as_str(), s.reason.as_str())).collect();
    assert_eq!(reasons[0], ("x", "the id of this question is not unique"));
    assert!(reasons[1].1.starts_with("the database `gone` was not found"), "{reasons:?}");
    assert_eq!(reasons[2], ("4", "`../database/shop/shop` is not a valid database name"));

    fs::write(
        at("two.json"),
        r#"[{"question_id": 7, "db_id": "shop", "question": "How many?", "evidence": "all of them", "SQL": "SELECT 1",
             "difficulty": "simple"}]"#,
    )
    .unwrap();
    let bird = load(&at("two.json"));
    assert_eq!((bird.format, bird.cases[0].id.as_str()), (DatasetFormat::Bird, "7"));
    assert_eq!(
        (bird.cases[0].evidence.as_deref(), bird.cases[0].tags.as_slice()),
        (Some("all of them"), &["simple".into()][..])
    );

    fs::write(
        at("questions/basic_sqlite.csv"),
        "db_name,db_type,query_category,query,question,instructions\n\
         store,sqlite,group_by,\"SELECT 1;SELECT ';', 2;\",\"How many, in all?\",\n\
         store,postgres,group_by,SELECT 1,Which?,Think first\n",
    )
    .unwrap();
    for place in [at("questions/basic_sqlite.csv"), at("questions")] {
        let defog = load(&place);
        assert_eq!((defog.format, defog.cases.len()), (DatasetFormat::Defog, 1));
        assert_eq!(defog.cases[0].gold, ["SELECT 1", "SELECT ';', 2"]);
        assert_eq!((defog.cases[0].question.as_str(), &defog.cases[0].evidence), ("How many, in all?", &None));
        assert!(defog.skipped[0].reason.contains("written for postgres"));
    }
    // All of them on one database of one's own.
    let one = LoadOptions { database: Some("demo".into()), ..LoadOptions::default() };
    let all = Dataset::load(&at("one.txt"), &one).unwrap();
    assert_eq!(all.cases.len(), 4);
    assert!(all.cases.iter().all(|case| Path::new(&case.database).is_file()));
}

#[test]
fn own_format_may_be_json_and_several_files() {
    let folder = tempfile::tempdir().unwrap();
    let at = |path: &str| folder.path().join(path);
    demo::write(&at("shop.db")).unwrap();
    fs::write(
        at("set.json"),
        "{\n\t\"name\": \"mine\",\n\t\"database\": \"sqlite:shop.db\",\n\t\"cases\": [\n\t\t{\"id\": 1, \"question\": \"How many?\",          \"gold\": [\"SELECT 1\", \"SELECT 2\"], \"evidence\": null, \"expect\": {\"outcome\": \"corrected_success\"}}\n\t]\n}\n",
    )
    .unwrap();
    let set = load(&at("set.json"));
    assert_eq!((set.name.as_str(), set.cases[0].id.as_str(), set.cases[0].gold.len()), ("mine", "1", 2));
    assert_eq!(set.cases[0].expect.as_ref().map(|expect| expect.outcome), Some(CaseOutcome::Corrected));
    assert!(Path::new(&set.cases[0].database).is_file());
    assert!(set.cases[0].evidence.is_none());

    fs::write(at("b.yaml"), "database: demo\ncases: [{ id: a, question: q, gold: }, { id: b, question: q }]\n")
        .unwrap();
    fs::write(
        at("a.yml"),
        "database: gone.db\ncases:\n- { id: a, question: q }\n- { id: c, question: q, database: demo }\n",
    )
    .unwrap();
    let set = load(folder.path());
    let ids: Vec<&str> = set.cases.iter().map(|case| case.id.as_str()).collect();
    assert_eq!(ids, ["c", "b"], "files in the order of their names; an id counts where it is first met");
    assert_eq!(set.skipped.len(), 2);
    assert!(set.skipped[0].reason.ends_with("gone.db`"), "{:?}", set.skipped);
}

#[test]
fn reports_errors_with_file_line_and_field() {
    for (name, text, says) in [
        (
            "a.json",
            "[\n{\"db_id\": \"x\", \"query\": \"SELECT 1\"}]",
            "`/a.json`, line 2 (entry 1): field `question` is missing",
        ),
        (
            "a.json",
            "[{\"db_id\": \"x\", \"question\": \"q\", \"query\": \"SELECT 1\"},\n\n {\"db_id\": 5, \"question\": \"q\", \"query\": \"SELECT 1\"}]",
            "`/a.json`, line 3 (entry 2): field `db_id` must be text, not a number",
        ),
        (
            "a.json",
            "[{\"db_id\": \"x\", \"question\": \" \"}]",
            "`/a.json`, line 1 (entry 1): field `question` is empty",
        ),
        (
            "a.json",
            "[{\"db_id\": \"x\", \"question\": \"q\"}]",
            "`/a.json`, line 1 (entry 1): field `query` or `gold` is missing",
        ),
        ("a.json", "[{\"db_id\": \"x\",\n]", "`/a.json`, line 2, column 1: key must be a string"),
        ("a.json", "[5]", "`/a.json`, line 1 (entry 1) is not an object"),
        ("a.csv", "db_name,question\nx,y\n", "`/a.csv`, line 1: the column `query` is missing"),
        ("a.csv", "db_name,question,query\n\nx,\"y\nz\",\n", "`/a.csv`, line 3 (row 1): field `query` is empty"),
        ("a.csv", "db_name,question,query\nx,y\n", "`/a.csv`, line 2 (row 1): 2 cells, but the header has 3"),
        ("a.csv", "db_name,question,query\nx,y,\"SELECT", "`/a.csv`, line 2: a quote is opened and never closed"),
        ("a.yaml", "name: x\ncases: []\n", "`/a.yaml` holds no questions"),
        (
            "a.yaml",
            "cases:\n  - id: a\n    question: q\n  - id: b\n    question: ''\n",
            "`/a.yaml`, line 4: field `question` is empty",
        ),
        (
            "a.yaml",
            "cases:\n  - id: a\n    question: q\n    expect: { outcome: corrected, error_type: colum }\n",
            "`/a.yaml`, line 2: field `expect.error_type` is `colum`, which is not an error type",
        ),
    ] {
        let said = complaint(name, text);
        assert!(said.starts_with(says), "{said}\n  instead of\n{says}");
    }
    for (text, line, field) in [
        ("cases:\n  - id: a\n    gold: SELECT 1\n", "line 3", "question"),
        ("cases:\n  - id: a\n    question: q\n    knd: column\n", "line 4", "knd"),
        ("cases:\n  - id: a\n    question: q\n    kind: colum\n", "line 4", "colum"),
        ("cases:\n  - id: a\n    question: q\n    gold: { a: 1 }\n", "line 4", "gold"),
    ] {
        let said = complaint("a.yaml", text);
        assert!(said.contains(line) && said.contains(field), "{said}");
    }
    assert!(Dataset::load(Path::new("no/such/set.yaml"), &LoadOptions::default()).is_err());
    let empty = tempfile::tempdir().unwrap();
    assert!(
        Dataset::load(empty.path(), &LoadOptions::default())
            .unwrap_err()
            .to_string()
            .starts_with("no dataset was found")
    );
}

#[test]
fn limit_samples_evenly() {
    let set = load(&root().join("datasets/correction"));
    let ids = |limit| set.sample(limit).iter().map(|case| case.id.clone()).collect::<Vec<_>>();
    assert_eq!(ids(Some(3)), ["products", "electronics-ids", "order-dates"]);
    assert_eq!((ids(Some(0)).len(), ids(Some(99)).len(), ids(None).len()), (0, 15, 15));
}

/// An asker who answers with the gold query is right, wherever the gold query can be run at all.
#[tokio::test]
async fn reads_large_datasets_from_their_folder() {
    let data = root().join("../shared/data");
    if !data.is_dir() {
        eprintln!("skipped: ../shared/data is not there");
        return;
    }
    for (folder, format, at_least) in [
        ("spider", DatasetFormat::Spider, 500),
        ("bird", DatasetFormat::Bird, 100),
        ("defog", DatasetFormat::Defog, 150),
    ] {
        if !data.join(folder).is_dir() {
            eprintln!("skipped: ../shared/data/{folder} is not there");
            continue;
        }
        let set = load(&data.join(folder));
        eprintln!("{folder}: {} questions, {} put aside", set.cases.len(), set.skipped.len());
        assert_eq!(set.format, format);
        assert!(set.cases.len() >= at_least, "{folder}: {}", set.cases.len());
        assert!(set.cases.iter().all(|case| !case.gold.is_empty() && Path::new(&case.database).is_file()));
        let mut script = Script::default();
        for case in &set.cases {
            script.answers.insert(case.id.clone(), answered(&case.gold[0]));
        }
        let limit = std::env::var("QUERYMEND_EVAL_ALL").map_or(Some(60), |_| None);
        let report = run(&set, &script, &EvalOptions { jobs: 4, limit, ..bounded_options() }).await.unwrap();
        let m = report.metrics();
        let odd: Vec<_> = report.records.iter().filter(|record| record.right != Some(true)).collect();
        let odd: Vec<_> = odd.iter().map(|record| (&record.id, record.right, &record.unjudged)).collect();
        eprintln!("{folder}: {} of {} judged, {} right; others: {odd:?}", m.judged, m.total, m.right);
        assert!(m.judged * 100 >= m.total * 95 && m.right * 100 >= m.judged * 98, "{folder}: {odd:?}");
    }
}

/// Predictions of real models, labelled right or wrong by code that is not ours. The labels of the right ones compare sets of
/// rows, as the makers of the sets do; we compare multisets, so that a missing DISTINCT is seen: 52 of 2,106 differ so.
#[tokio::test]
async fn judges_real_predictions_like_their_labels() {
    let data = root().join("../shared/data");
    for (name, right, most) in [("controls_correct", true, 0.04), ("silent_wrong", false, 0.01)] {
        let Ok(text) = fs::read_to_string(data.join(format!("predictions/{name}.jsonl"))) else {
            eprintln!("skipped: ../shared/data/predictions/{name}.jsonl is not there");
            continue;
        };
        let step = std::env::var("QUERYMEND_EVAL_ALL").map_or(8, |_| 1);
        let mut script = Script::default();
        let mut cases = Vec::new();
        for (i, line) in text.lines().enumerate().step_by(step) {
            let row: serde_json::Value = serde_json::from_str(line).unwrap();
            let field = |name: &str| row[name].as_str().unwrap_or_default();
            script.answers.insert(i.to_string(), answered(field("pred")));
            cases.push(serde_json::json!({
                "id": i.to_string(), "question": "?", "gold": field("gold"), "database": field("db"),
            }));
        }
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("set.json");
        fs::write(&file, serde_json::json!({ "name": name, "cases": cases }).to_string()).unwrap();
        let set = Dataset::load(&file, &LoadOptions { root: Some(data.clone()), ..LoadOptions::default() }).unwrap();
        let report = run(&set, &script, &EvalOptions { jobs: 4, ..bounded_options() }).await.unwrap();
        let m = report.metrics();
        let differ: Vec<&str> =
            report.records.iter().filter(|r| r.right == Some(!right)).map(|r| r.id.as_str()).collect();
        let unjudged: Vec<_> = report.records.iter().filter_map(|r| Some((&r.id, r.unjudged.as_ref()?))).collect();
        eprintln!(
            "{name}: {} judged of {} ({} put aside), {} judged otherwise: {differ:?}; not judged: {unjudged:?}",
            m.judged,
            m.total,
            set.skipped.len(),
            differ.len()
        );
        assert!(m.judged * 100 >= m.total * 98, "{name}: {unjudged:?}");
        assert!(differ.len() as f64 <= most * m.judged as f64, "{name}: {differ:?}");
    }
}
