//! Which names are visible where: each line is a query and the codes of the errors in it, in the order of the text.

use querymend_sql::dialect::DIALECTS;
use querymend_sql::{Dialect, Policy, ReviewContext, Schema, Severity, review};

fn schema() -> Schema {
    Schema::from_ddl(include_str!("../pages/shop.sql"), &querymend_sql::dialect::SQLITE).unwrap()
}

#[track_caller]
fn check(dialects: &str, sql: &str, expected: &[&str]) {
    let schema = schema();
    let named = |name: &&Dialect| dialects == ALL || dialects.split_whitespace().any(|dialect| dialect == name.name);
    let selected: Vec<&Dialect> = DIALECTS.iter().copied().filter(named).collect();
    assert!(dialects == ALL || selected.len() == dialects.split_whitespace().count(), "{dialects}");
    for dialect in selected {
        let name = dialect.name;
        let policy = Policy::default();
        let review = review(sql, &ReviewContext { schema: Some(&schema), dialect, policy: &policy, question: None });
        let found: Vec<&str> =
            review.findings.iter().filter(|f| f.severity == Severity::Error).map(|f| f.code).collect();
        assert_eq!(found, expected, "{name}: {sql}\n{:#?}", review.findings);
    }
}

/// Selects every dialect.
const ALL: &str = "*";

#[test]
fn binds_columns_and_aliases_of_simple_queries() {
    check(ALL, "SELECT p.name, price FROM products AS p WHERE category = 'Toys'", &[]);
    check(ALL, "SELECT PRICE FROM Products", &[]);
    check(ALL, "SELECT nme, prise FROM products", &["unknown-column", "unknown-column"]);
    check(ALL, "SELECT x.name FROM products p", &["unknown-alias"]);
    check(ALL, "SELECT products.name FROM products p", &["unknown-alias"]);
    check(ALL, "SELECT name FROM product", &["unknown-table"]);
}

#[test]
fn binds_ctes_and_derived_tables() {
    check(ALL, "WITH cheap AS (SELECT name AS n FROM products) SELECT n FROM cheap", &[]);
    check(ALL, "WITH cheap AS (SELECT name AS n FROM products) SELECT name FROM cheap", &["unknown-column"]);
    check(ALL, "WITH a AS (SELECT 1 AS x), b AS (SELECT x FROM a) SELECT x FROM b", &[]);
    check(ALL, "SELECT d.n FROM (SELECT name AS n FROM products) AS d", &[]);
    check(ALL, "SELECT d.name FROM (SELECT name AS n FROM products) AS d", &["unknown-column"]);
    check("sqlite postgres trino", "WITH c (a, b) AS (SELECT name, price FROM products) SELECT a, b FROM c", &[]);
    check(
        "sqlite postgres trino",
        "WITH c (a, b) AS (SELECT name, price FROM products) SELECT name FROM c",
        &["unknown-column"],
    );
}

#[test]
fn binds_recursive_ctes_to_themselves() {
    let numbers = "WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 5) SELECT i FROM n";
    check("sqlite postgres mysql trino datafusion", numbers, &[]);
    check(
        "sqlite postgres",
        "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT j + 1 FROM n) SELECT i FROM n",
        &["unknown-column"],
    );
    check("sqlite", "WITH n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 5) SELECT i FROM n", &[]);
    check("postgres", "WITH n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n) SELECT i FROM n", &["unknown-table"]);
}

#[test]
fn resolves_outer_columns_from_subqueries_but_not_siblings() {
    check(
        ALL,
        "SELECT name FROM products p WHERE EXISTS (SELECT 1 FROM reviews r WHERE r.product_id = p.product_id)",
        &[],
    );
    check(ALL, "SELECT name FROM products p WHERE price > (SELECT AVG(total) FROM orders WHERE order_id = stock)", &[]);
    check(ALL, "SELECT r.rating FROM products p WHERE EXISTS (SELECT 1 FROM reviews r)", &["unknown-alias"]);
    check(
        ALL,
        "SELECT 1 FROM products p JOIN (SELECT rating FROM reviews WHERE product_id = p.product_id) r ON 1 = 1",
        &["unknown-alias"],
    );
    check(
        "postgres mysql trino spark",
        "SELECT r.rating FROM products p CROSS JOIN LATERAL (SELECT rating FROM reviews WHERE product_id = p.product_id) r",
        &[],
    );
    // SQLite's GROUP BY and ORDER BY do not look outward.
    check(
        "sqlite",
        "SELECT 1 FROM products WHERE stock = (SELECT rating FROM reviews ORDER BY price)",
        &["unknown-column"],
    );
    check("postgres", "SELECT 1 FROM products WHERE stock = (SELECT rating FROM reviews ORDER BY price LIMIT 1)", &[]);
    // SQLite goes on outward when the nearest table of that name lacks the column; others do not.
    check("sqlite", "SELECT 1 FROM products t WHERE EXISTS (SELECT t.price FROM reviews t)", &[]);
    check("postgres", "SELECT 1 FROM products t WHERE EXISTS (SELECT t.price FROM reviews t)", &["unknown-column"]);
}

#[test]
fn distinguishes_ambiguous_columns_from_shared_ones() {
    check(
        ALL,
        "SELECT product_id FROM products JOIN reviews ON products.product_id = reviews.product_id",
        &["ambiguous-column"],
    );
    check(ALL, "SELECT product_id, name FROM products JOIN reviews USING (product_id)", &[]);
    check("sqlite postgres mysql", "SELECT product_id FROM products NATURAL JOIN reviews", &[]);
    check(ALL, "SELECT customer_id FROM products JOIN reviews USING (customer_id)", &["unknown-column"]);
    check(ALL, "SELECT p.product_id FROM products p, reviews r WHERE p.product_id = r.product_id", &[]);
    check("sqlite postgres", "SELECT products.name FROM products JOIN products ON 1 = 1", &["ambiguous-column"]);
    // An unaliased column has a name of its own in ORDER BY, except in SQLite.
    let sorted =
        "SELECT p.product_id FROM products p JOIN reviews r ON p.product_id = r.product_id ORDER BY product_id";
    check("postgres mysql trino spark datafusion", sorted, &[]);
    check("sqlite", sorted, &["ambiguous-column"]);
    // SQLite takes the first of two columns of one name; PostgreSQL refuses.
    check("sqlite", "SELECT name FROM (SELECT name, category AS name FROM products) d", &[]);
    check("postgres", "SELECT name FROM (SELECT name, category AS name FROM products) d", &["ambiguous-column"]);
}

#[test]
fn exposes_aliases_per_clause_and_dialect() {
    let in_where = "SELECT price * 2 AS twice FROM products WHERE twice > 3";
    check("sqlite", in_where, &[]);
    check("postgres mysql trino presto hive spark datafusion", in_where, &["alias-reference"]);
    let in_group = "SELECT category AS c, COUNT(*) FROM products GROUP BY c";
    check("sqlite postgres mysql spark datafusion", in_group, &[]);
    check("trino presto hive", in_group, &["alias-reference"]);
    let in_having = "SELECT category, COUNT(*) AS n FROM products GROUP BY category HAVING n > 3";
    check("sqlite mysql spark hive datafusion", in_having, &[]);
    check("postgres trino presto", in_having, &["alias-reference"]);
    check(ALL, "SELECT price * 2 AS twice FROM products ORDER BY twice", &[]);
    let in_order = "SELECT price * 2 AS twice FROM products ORDER BY twice + 1";
    check("sqlite mysql trino presto spark hive datafusion", in_order, &[]);
    check("postgres", in_order, &["alias-reference"]);
    let in_select = "SELECT price * 2 AS twice, twice + 1 FROM products";
    check("spark", in_select, &[]);
    check("sqlite postgres mysql trino hive", in_select, &["alias-reference"]);
    check("sqlite", "SELECT COUNT(*) AS n FROM products WHERE n > 1", &["aggregate-in-where"]);
}

#[test]
fn limits_on_clause_to_its_own_join() {
    let sql = "SELECT 1 FROM products p, orders o JOIN reviews r ON r.product_id = p.product_id";
    check("sqlite", sql, &[]);
    check("postgres mysql trino", sql, &["unknown-alias"]);
}

#[test]
fn folds_identifier_case_per_dialect() {
    check("postgres datafusion", "SELECT reviewText FROM reviews", &["unknown-column"]);
    check("postgres datafusion", "SELECT \"reviewText\" FROM reviews", &[]);
    check("sqlite trino", "SELECT reviewText, \"REVIEWTEXT\" FROM reviews", &[]);
    check("mysql spark hive", "SELECT reviewText, `REVIEWTEXT` FROM reviews", &[]);
    check(
        "postgres",
        "WITH t AS (SELECT name AS ProductName FROM products) SELECT productname, t.PRODUCTNAME FROM t",
        &[],
    );
    check(
        "postgres",
        "WITH t AS (SELECT name AS \"ProductName\" FROM products) SELECT productname FROM t",
        &["unknown-column"],
    );
}

#[test]
fn expands_wildcards() {
    check(ALL, "SELECT d.price FROM (SELECT * FROM products) d", &[]);
    check(
        ALL,
        "SELECT d.rating FROM (SELECT p.* FROM products p JOIN reviews r ON p.product_id = r.product_id) d",
        &["unknown-column"],
    );
    check(ALL, "SELECT x.* FROM products p", &["unknown-alias"]);
    check(ALL, "SELECT name FROM products UNION SELECT first_name, last_name FROM customers", &["set-operation-arity"]);
    check(ALL, "SELECT * FROM products WHERE product_id IN (SELECT * FROM reviews)", &["subquery-many-columns"]);
    check(
        "sqlite postgres mysql",
        "SELECT 1 FROM orders WHERE (order_id, customer_id) IN (SELECT order_id, product_id FROM order_items)",
        &[],
    );
}

#[test]
fn accepts_any_column_of_sources_with_unknown_columns() {
    check("postgres", "SELECT n, whatever FROM generate_series(1, 3) AS n", &[]);
    check("sqlite", "SELECT value, j.key FROM products, json_each(products.name) AS j", &[]);
    check("postgres", "SELECT t.x FROM unnest(ARRAY[1, 2]) AS t(x)", &[]);
    check("spark", "SELECT * FROM products PIVOT (SUM(price) FOR category IN ('a', 'b'))", &[]);
    check("spark hive", "SELECT w FROM products LATERAL VIEW explode(split(name, ' ')) words AS w", &[]);
    check("spark", "SELECT transform(array(1), x -> x + 1) FROM products", &[]);
    check("postgres", "SELECT relname FROM pg_class", &[]);
    check("sqlite", "SELECT name FROM sqlite_master", &[]);
    check("mysql", "SELECT table_name FROM information_schema.tables", &[]);
    check("sqlite postgres", "SELECT column1 FROM (VALUES (1), (2)) AS v", &[]);
    check("postgres", "SELECT row_to_json(p) FROM products p", &[]);
    check("sqlite", "SELECT rowid, p.oid FROM products p", &[]);
}

#[test]
fn interprets_double_quotes_per_dialect() {
    check("sqlite", "SELECT name FROM products WHERE category = \"Toys\"", &[]);
    check("mysql spark hive", "SELECT name FROM products WHERE category = \"Toys\"", &[]);
    check("postgres trino datafusion", "SELECT name FROM products WHERE category = \"Zzzz\"", &["wrong-quote-style"]);
}

#[test]
fn reports_all_errors_of_a_query_in_one_pass() {
    let sql = "SELECT p.nme, YEARS(x.d), o.total FROM products p JOIN reviws r ON r.a = p.b WHERE SUM(price) > 1";
    check(
        "sqlite",
        sql,
        &[
            "unknown-column",
            "unknown-function",
            "unknown-alias",
            "unknown-alias",
            "unknown-table",
            "unknown-column",
            "aggregate-in-where",
        ],
    );
}

#[test]
fn checks_aliases_and_ctes_without_a_schema() {
    let policy = Policy::default();
    let context =
        ReviewContext { schema: None, dialect: &querymend_sql::dialect::SQLITE, policy: &policy, question: None };
    let codes = |sql: &str| {
        review(sql, &context)
            .findings
            .iter()
            .filter(|f| f.severity == Severity::Error)
            .map(|f| f.code)
            .collect::<Vec<_>>()
    };
    assert_eq!(codes("SELECT anything FROM anywhere"), [""; 0]);
    assert_eq!(codes("SELECT b.x FROM a"), ["unknown-alias"]);
    assert_eq!(codes("WITH c AS (SELECT 1 AS x) SELECT y FROM c"), ["unknown-column"]);
}
