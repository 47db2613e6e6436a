//! End-to-end tests of schema linking, including input that is not a question.

use std::time::Instant;

use super::*;
use querymend_sql::dialect::{POSTGRES, SQLITE};
use querymend_sql::schema::Column;
use querymend_testing::hang_timeout;

const SHOP: &str = "CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT, city TEXT);
    CREATE TABLE orders (id INTEGER PRIMARY KEY, customer_id INTEGER REFERENCES customers (id), total REAL);
    CREATE TABLE suppliers (id INTEGER PRIMARY KEY, name TEXT, rating INTEGER);
    CREATE TABLE secrets (word TEXT);";

/// Creates a schema with enough additional tables not to fit.
fn crowd(ddl: &str, others: usize) -> Arc<Schema> {
    let mut all = Schema::from_ddl(ddl, &SQLITE).unwrap().tables().to_vec();
    for i in 0..others {
        let columns = (0..20).map(|c| Column::new(format!("measure_{i}_{c}"), "REAL")).collect();
        all.push(Table { name: format!("sensor_batch_{i}"), columns, ..Table::default() });
    }
    Arc::new(Schema::new(all).unwrap())
}

const SCHOOL: &str = "CREATE TABLE students (student_id INTEGER PRIMARY KEY, full_name TEXT, home_town TEXT);
    CREATE TABLE courses (course_id INTEGER PRIMARY KEY, title TEXT, credits INTEGER);
    CREATE TABLE enrolments (student_id INTEGER, course_id INTEGER, FOREIGN KEY (student_id) REFERENCES students (student_id), FOREIGN KEY (course_id) REFERENCES courses (course_id));
    CREATE TABLE payrolls (payroll_id INTEGER PRIMARY KEY, word TEXT);";

fn tables(schema: Arc<Schema>) -> SchemaLinker {
    let policy = Policy { deny_tables: vec!["payrolls".into()], ..Policy::default() };
    SchemaLinker::new(Arc::new(policy.filter_schema((*schema).clone())), &SQLITE, &policy)
}

#[test]
fn links_question_tables_and_their_junction_among_hundreds() {
    let tables = tables(crowd(SCHOOL, 500));
    for question in [
        "Which students take the course on algebra?",
        "credits of courses of each student",
        "hometown of students by course title",
    ] {
        let linked = tables.link(question, 1_500);
        for name in ["students", "courses", "enrolments"] {
            assert!(linked.tables.iter().any(|t| t == name), "{question}: {name} is not in {:?}", linked.tables);
        }
        assert!(linked.text.len() <= 1_500);
        assert_eq!(linked.total_tables, 503);
    }
}

#[test]
fn excludes_denied_tables_from_prompt() {
    let tables = tables(crowd(SCHOOL, 50));
    for bytes in [100, 500, 2_000, 1_000_000] {
        let linked = tables.link("word of the payrolls, payroll_id", bytes);
        assert!(!linked.text.contains("payroll") && !linked.tables.iter().any(|t| t == "payrolls"));
    }
    let hit = ValueMention {
        value: "secret".into(),
        table: "payrolls".into(),
        column: "word".into(),
        ..ValueMention::default()
    };
    assert!(!tables.link_with_values("who earns most?", &[hit], 2_000).text.contains("payroll"));
}

#[test]
fn ranks_table_of_a_mentioned_value_first() {
    let tables = tables(crowd(SCHOOL, 200));
    let hit = ValueMention {
        value: "Algebra".into(),
        table: "courses".into(),
        column: "title".into(),
        ..ValueMention::default()
    };
    let ranked = tables.rank_tables("Who is in Algebra?", &[hit], &RankingWeights::default(), 3);
    assert_eq!(ranked[0].0.name, "courses");
}

#[test]
fn boosts_tables_of_the_leading_schema() {
    let table = |schema: &str, name: &str, columns: &[&str]| Table {
        schema: Some(schema.into()),
        name: name.into(),
        columns: columns.iter().map(|column| Column::new(*column, "TEXT")).collect(),
        ..Table::default()
    };
    // The keepers table has no foreign key and hardly a shared term.
    let all = vec![
        table("archive", "hour_marks", &["mark", "hour"]),
        table("archive", "blobs", &["payload"]),
        table("zoo", "feedings", &["animal", "hour"]),
        table("zoo", "keepers", &["fullname"]),
    ];
    let tables = SchemaLinker::new(Arc::new(Schema::new(all).unwrap()), &SQLITE, &Policy::default());
    let ranked = |weights: &RankingWeights| -> Vec<String> {
        let ranked = tables.rank_tables("At which hour are feedings of each animal by Maria?", &[], weights, 3);
        ranked.iter().map(|(table, _)| table.full_name()).collect()
    };
    assert_eq!(ranked(&RankingWeights::default())[..2], ["zoo.feedings", "zoo.keepers"]);
    let never = ranked(&RankingWeights { lead_margin: f32::MAX, ..RankingWeights::default() });
    assert_eq!(never[..2], ["zoo.feedings", "archive.hour_marks"]);
}

#[test]
fn truncates_columns_of_wide_tables_to_the_budget() {
    let mut wide = Table { name: "patients".into(), primary_key: vec!["patient_no".into()], ..Table::default() };
    wide.columns.push(Column::new("patient_no", "INTEGER"));
    wide.columns.extend((0..300).map(|i| Column::new(format!("reading_{i}"), "REAL")));
    let mut blood = Column::new("blood_pressure", "INTEGER");
    blood.comment = Some("in\nmmHg".into());
    blood.samples = vec!["120".into(), "135".into()];
    wide.columns.push(blood);
    let tables = SchemaLinker::new(Arc::new(Schema::new(vec![wide]).unwrap()), &SQLITE, &Policy::default());
    let linked = tables.link("What is the mean blood pressure of patients?", 800);
    assert_eq!(linked.tables, ["patients"]);
    assert!(linked.text.contains("patient_no INTEGER"), "{}", linked.text);
    assert!(linked.text.contains("blood_pressure INTEGER, -- in mmHg; such as '120', '135'"), "{}", linked.text);
    assert!(linked.text.contains("more columns\n);"), "{}", linked.text);
    assert!(Schema::from_ddl(&linked.text, &SQLITE).is_ok());
}

#[test]
fn fits_schema_prompt_into_any_byte_budget() {
    let tables = tables(crowd(SCHOOL, 30));
    for bytes in [0, 1, 30, 60, 100, 150, 250, 400, 1_000, 5_000] {
        let linked = tables.link("Which students take which courses?", bytes);
        assert!(linked.text.len() <= bytes, "{bytes}: {}", linked.text);
        assert!(bytes < 150 || !linked.tables.is_empty(), "{bytes}");
        assert!(linked.text.is_empty() || Schema::from_ddl(&linked.text, &SQLITE).is_ok(), "{}", linked.text);
    }
}

#[test]
fn updates_index_incrementally_like_a_fresh_build() {
    let before = tables(crowd(SCHOOL, 100));
    before.index_bytes();
    let mut now = crowd(SCHOOL, 100).tables().to_vec();
    now.retain(|t| t.name != "sensor_batch_7" && t.name != "payrolls");
    now[1].columns.push(Column::new("lecturer", "TEXT"));
    now.push(Table { name: "lecturers".into(), columns: vec![Column::new("office", "TEXT")], ..Table::default() });
    let now = Arc::new(Schema::new(now).unwrap());
    let changed = before.with_schema(Arc::clone(&now), &Policy::default());
    let fresh = SchemaLinker::new(now, &SQLITE, &Policy::default());
    // All tables except the changed and the new one are shared; the removed one is dropped.
    assert_eq!(changed.index().shared_with(before.index()), 101);
    for question in
        ["which lecturer has which office", "students and courses", "measure 7 of sensor batches", "hello", ""]
    {
        let ranked = |tables: &SchemaLinker| -> Vec<(String, f32)> {
            let ranked = tables.rank_tables(question, &[], &RankingWeights::default(), 200);
            ranked.into_iter().map(|(t, score)| (t.full_name(), score)).collect()
        };
        assert_eq!(ranked(&changed), ranked(&fresh), "{question}");
        assert_eq!(changed.link(question, 2_000), fresh.link(question, 2_000));
    }
    assert_eq!(changed.link("", usize::MAX), fresh.link("", usize::MAX));
}

#[test]
fn bounds_time_and_memory_for_hostile_names() {
    let long = "x".repeat(1_000_000);
    let camel = "aB".repeat(500_000);
    let mut all = vec![
        Table { name: long.clone(), columns: vec![Column::new(camel.clone(), "TEXT")], ..Table::default() },
        Table {
            name: "a\u{0}b\n\"; DROP\u{202e}".into(),
            columns: vec![Column::new("\u{7}\r\n", "TEXT")],
            ..Table::default()
        },
        Table { name: String::new(), columns: vec![Column::new("", "")], ..Table::default() },
        Table { name: "no columns".into(), ..Table::default() },
        Table {
            name: "wide".into(),
            columns: (0..10_000).map(|i| Column::new(format!("column_{i}"), "TEXT")).collect(),
            ..Table::default()
        },
    ];
    all[0].comment = Some(camel);
    // A hub table that would connect all tables.
    let point = |i: usize| Table {
        name: format!("t{i}"),
        columns: vec![Column::new("wide", "TEXT")],
        foreign_keys: vec![querymend_sql::schema::ForeignKey {
            columns: vec!["wide".into()],
            table: "wide".into(),
            references: vec!["column_1".into()],
            inferred: false,
        }],
        ..Table::default()
    };
    all.extend((0..2_000).map(point));
    let schema = Arc::new(Schema::new(all).unwrap());
    let began = Instant::now();
    let tables = SchemaLinker::new(schema, &POSTGRES, &Policy::default());
    let question = format!("wide columns {long} {}", "of x and y ".repeat(10_000));
    for bytes in [0, 200, 5_000] {
        assert!(tables.link(&question, bytes).text.len() <= bytes);
    }
    assert!(tables.index_bytes() < 20_000_000);
    assert!(began.elapsed() < hang_timeout(), "{:?}", began.elapsed());
}

#[test]
fn shows_whole_schema_if_it_fits_and_part_otherwise() {
    let schema = Arc::new(Schema::from_ddl(SHOP, &SQLITE).unwrap());
    let policy = Policy { deny_tables: vec!["secrets".into()], ..Policy::default() };
    let tables = SchemaLinker::new(schema, &SQLITE, &policy);
    let whole = tables.link("total of orders", 10_000);
    assert_eq!((whole.tables.len(), whole.total_tables), (3, 3));
    assert!(!whole.text.contains("secrets"));
    let part = tables.link("What is the total of the orders?", 260);
    assert_eq!(part.tables, ["customers", "orders"]);
    assert!(part.text.len() <= 260);
}
