//! The shop that `demo::write` writes.

use std::fs;

use querymend_engine::sqlite::SqliteEngine;
use querymend_engine::{Engine, demo};
use rusqlite::Connection;

#[tokio::test]
async fn demo_database_matches_its_documentation() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("shop.db");
    demo::write(&file).unwrap();
    let shop = Connection::open(&file).unwrap();
    let count = |sql: &str| shop.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap();
    for (sql, number) in [
        ("SELECT count(*) FROM customers", 60),
        ("SELECT count(*) FROM products", 40),
        ("SELECT count(*) FROM orders", 180),
        ("SELECT count(*) FROM order_items", 471),
        ("SELECT count(*) FROM reviews", 120),
        ("SELECT count(DISTINCT name) FROM customers", 60),
        ("SELECT count(*) FROM products WHERE category = 'Electronics'", 8),
        ("SELECT count(*) FROM pragma_foreign_key_check", 0),
        ("SELECT count(*) FROM reviews WHERE product_id NOT IN (SELECT product_id FROM products)", 0),
        ("SELECT count(*) FROM orders WHERE ordered_on <> date(ordered_on) OR shipped_on < ordered_on", 0),
        ("SELECT count(*) FROM orders JOIN customers USING (customer_id) WHERE ordered_on < signed_up", 0),
        (r#"SELECT count(*) FROM (SELECT 1 FROM reviews GROUP BY "order", product_id HAVING count(*) > 1)"#, 0),
        (
            r#"SELECT count(*) FROM reviews r WHERE NOT EXISTS (SELECT 1 FROM order_items i WHERE i.order_id = r."order" AND i.product_id = r.product_id)"#,
            0,
        ),
    ] {
        assert_eq!(count(sql), number, "{sql}");
    }
    for sql in [
        "SELECT count(*) FROM customers WHERE name LIKE '%O''Brien'",
        "SELECT count(*) FROM customers WHERE phone IS NULL",
        "SELECT count(*) FROM customers WHERE customer_id NOT IN (SELECT customer_id FROM orders)",
        "SELECT count(*) FROM products WHERE product_id NOT IN (SELECT product_id FROM order_items)",
        "SELECT count(*) FROM products WHERE discontinued",
        "SELECT count(*) FROM orders WHERE shipped_on IS NULL",
        r#"SELECT count(*) FROM order_items WHERE "discount (%)" IS NOT NULL"#,
        r#"SELECT count(*) FROM order_items JOIN products USING (product_id) WHERE "unitPrice" <> price"#,
        "SELECT count(*) FROM reviews WHERE comment IS NULL",
    ] {
        assert!(count(sql) > 0, "{sql}");
    }

    // One foreign key is left for the schema to conclude.
    let schema = SqliteEngine::open(&file).unwrap().schema().await.unwrap();
    let keys: Vec<(&str, &str, bool)> = schema
        .table("reviews")
        .unwrap()
        .foreign_keys
        .iter()
        .map(|key| (key.columns[0].as_str(), key.table.as_str(), key.inferred))
        .collect();
    assert_eq!(
        keys,
        [("customer_id", "customers", false), ("order", "orders", false), ("product_id", "products", true)]
    );
}

#[test]
fn demo_database_is_deterministic() {
    let folder = tempfile::tempdir().unwrap();
    let (one, two) = (folder.path().join("one.db"), folder.path().join("two.db"));
    demo::write(&one).unwrap();
    demo::write(&two).unwrap();
    assert!(fs::read(one).unwrap() == fs::read(two).unwrap());
}

#[test]
fn demo_never_overwrites_files() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("precious.txt");
    fs::write(&file, "mine").unwrap();
    let error = demo::write(&file).unwrap_err();
    assert!(error.to_string().ends_with("already exists"), "{error}");
    assert_eq!(fs::read_to_string(&file).unwrap(), "mine");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left beside it");
    demo::write(&folder.path().join("shop.db")).unwrap();
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "nothing is left beside it");
    assert!(demo::write(folder.path()).is_err());
    assert!(demo::write(&folder.path().join("no/such/folder.db")).is_err());
}
