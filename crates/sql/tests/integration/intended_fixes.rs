//! Names that are not there, and whose they were meant to be: what is claimed is what was meant, and what nobody can know is not
//! claimed.

use std::sync::Arc;

use querymend_sql::dialect::SQLITE;
use querymend_sql::schema::value_index::{ColumnValues, ValueIndex};
use querymend_sql::{Applicability, Policy, RepairRequest, RepairStatus, ReviewContext, Schema, repair};

const TABLES: &str = "
    CREATE TABLE departments (id INTEGER PRIMARY KEY, name TEXT, head_id INTEGER REFERENCES employees (id));
    CREATE TABLE employees (id INTEGER PRIMARY KEY, name TEXT, salary REAL, hired TEXT,
        department_id INTEGER REFERENCES departments (id), manager_id INTEGER REFERENCES employees (id));
    CREATE TABLE airports (code TEXT PRIMARY KEY, city TEXT);
    CREATE TABLE flights (flight_no TEXT PRIMARY KEY, price REAL, status TEXT,
        origin TEXT REFERENCES airports (code), destination TEXT REFERENCES airports (code));
    CREATE TABLE visits (visit_id INTEGER PRIMARY KEY, employee_id INTEGER REFERENCES employees (id), cost REAL);";

fn schema() -> Schema {
    let schema = Schema::from_ddl(TABLES, &SQLITE).unwrap();
    let held = |table: &str, column: &str, values: &[&str]| ColumnValues {
        table: table.into(),
        column: column.into(),
        values: values.iter().map(ToString::to_string).collect(),
        whole: true,
        ..ColumnValues::default()
    };
    schema.set_value_index(Arc::new(ValueIndex::new(vec![
        held("departments", "name", &["Sales", "Research"]),
        held("employees", "name", &["Ann", "Bob"]),
        held("airports", "city", &["Munich", "Paris"]),
        held("airports", "code", &["MUC", "CDG"]),
        held("flights", "status", &["on time", "cancelled"]),
        held("flights", "origin", &["MUC", "CDG"]),
        held("flights", "destination", &["MUC", "CDG"]),
    ])));
    schema
}

fn mended(sql: &str, question: Option<&str>) -> Option<String> {
    let (schema, policy) = (schema(), Policy::default());
    let context = ReviewContext { schema: Some(&schema), dialect: &SQLITE, policy: &policy, question: None };
    let request = RepairRequest { text: sql, context, question, max_applicability: Applicability::Likely, error: None };
    let repair = repair(&request, None);
    (repair.status == RepairStatus::Mended).then_some(repair.sql)
}

#[test]
fn infers_table_from_column_name_prefix() {
    for (sql, meant) in [
        // The words before a column's name are its table's.
        (
            "SELECT employee_name, department_name FROM employees e JOIN departments d ON e.department_id = d.id",
            Some("SELECT e.name, d.name FROM employees e JOIN departments d ON e.department_id = d.id"),
        ),
        (
            "SELECT department_name, AVG(salary) FROM employees e JOIN departments d ON e.department_id = d.id GROUP BY department_name",
            Some(
                "SELECT d.name, AVG(salary) FROM employees e JOIN departments d ON e.department_id = d.id GROUP BY d.name",
            ),
        ),
        // They are a key's, which points at somebody else.
        ("SELECT e.name, e.manager_name FROM employees e", None),
        // A slip of one letter stays one, whatever words it makes.
        ("SELECT department_d FROM employees", Some("SELECT department_id FROM employees")),
    ] {
        assert_eq!(mended(sql, None).as_deref(), meant, "{sql}");
    }
}

#[test]
fn rejects_fixes_with_incompatible_types_or_values() {
    for (sql, meant) in [
        // A key is no date, and no word.
        ("SELECT name FROM employees WHERE manager_since >= '2023-01-01'", None),
        (
            "SELECT employees.name FROM employees WHERE department = 'Sales'",
            Some(
                "SELECT employees.name FROM employees JOIN departments ON employees.department_id = departments.id WHERE departments.name = 'Sales'",
            ),
        ),
        (
            "SELECT flight_no FROM flights WHERE destination_city = 'Munich'",
            Some(
                "SELECT flight_no FROM flights JOIN airports ON flights.destination = airports.code WHERE airports.city = 'Munich'",
            ),
        ),
        // A city that must be two at once.
        (
            "SELECT f.price FROM flights f JOIN airports o ON f.origin = o.code WHERE o.city = 'Munich' AND d.city = 'Paris'",
            None,
        ),
        // Values without quotes.
        (
            "SELECT price FROM flights WHERE status = cancelled",
            Some("SELECT price FROM flights WHERE status = 'cancelled'"),
        ),
        (
            "SELECT code FROM airports WHERE city IN (Munich, Paris)",
            Some("SELECT code FROM airports WHERE city IN ('Munich', 'Paris')"),
        ),
    ] {
        assert_eq!(mended(sql, None).as_deref(), meant, "{sql}");
    }
}

#[test]
fn resolves_unknown_alias_to_table_of_outer_query() {
    for (sql, meant) in [
        (
            "SELECT name FROM employees WHERE EXISTS (SELECT 1 FROM visits v WHERE v.employee_id = e.id AND v.cost > 8)",
            "SELECT name FROM employees WHERE EXISTS (SELECT 1 FROM visits v WHERE v.employee_id = employees.id AND v.cost > 8)",
        ),
        (
            "SELECT x.name, (SELECT MAX(cost) FROM visits v WHERE v.employee_id = employee.id) FROM employees x",
            "SELECT x.name, (SELECT MAX(cost) FROM visits v WHERE v.employee_id = x.id) FROM employees x",
        ),
    ] {
        assert_eq!(mended(sql, None).as_deref(), Some(meant), "{sql}");
    }
}

#[test]
fn repairs_self_joins() {
    for (sql, meant) in [
        (
            "SELECT e.name, b.name FROM employees e JOIN employees b ON e.boss_id = b.id",
            "SELECT e.name, b.name FROM employees e JOIN employees b ON e.manager_id = b.id",
        ),
        (
            "SELECT e.name, m.name FROM employees e WHERE e.manager_id = m.id",
            "SELECT e.name, m.name FROM employees e JOIN employees AS m ON e.manager_id = m.id WHERE e.manager_id = m.id",
        ),
        (
            "SELECT e.name, m.name FROM employees e LEFT JOIN manager m ON e.manager_id = m.id",
            "SELECT e.name, m.name FROM employees e LEFT JOIN employees m ON e.manager_id = m.id",
        ),
    ] {
        assert_eq!(mended(sql, None).as_deref(), Some(meant), "{sql}");
    }
}

#[test]
fn requires_evidence_to_choose_between_two_foreign_keys() {
    let (first, second) = (
        "SELECT airports.city FROM flights JOIN airports ON flights.dest = airports.code",
        "SELECT airports.city FROM flights JOIN airports ON flights.stop = airports.code",
    );
    let by = |key: &str| format!("SELECT airports.city FROM flights JOIN airports ON flights.{key} = airports.code");
    assert_eq!(mended(first, None), Some(by("destination")));
    assert_eq!(mended(second, None), None);
    let city = "SELECT f.price FROM flights f JOIN airports a ON f.origin = a.code JOIN airports b ON f.destination = b.code WHERE city = 'Paris'";
    assert_eq!(mended(city, None), None);
}

#[test]
fn adds_missing_columns_to_ctes_and_derived_tables() {
    for (sql, meant) in [
        (
            "WITH t AS (SELECT name, salary FROM employees) SELECT name FROM t WHERE department_id = 2",
            Some(
                "WITH t AS (SELECT name, salary, department_id FROM employees) SELECT name FROM t WHERE department_id = 2",
            ),
        ),
        (
            "SELECT x.name FROM (SELECT name FROM employees ORDER BY salary LIMIT 5) x WHERE x.hired > '2010-01-01'",
            Some(
                "SELECT x.name FROM (SELECT name, hired FROM employees ORDER BY salary LIMIT 5) x WHERE x.hired > '2010-01-01'",
            ),
        ),
        // Groups, different rows and stars would be others.
        ("SELECT x.salary FROM (SELECT DISTINCT name FROM employees) x", None),
        ("SELECT * FROM (SELECT name FROM employees) x WHERE x.hired > '2010-01-01'", None),
        (
            "WITH spend AS (SELECT employee_id, SUM(cost) t FROM visits GROUP BY employee_id) SELECT t FROM spending",
            Some(
                "WITH spend AS (SELECT employee_id, SUM(cost) t FROM visits GROUP BY employee_id) SELECT t FROM spend",
            ),
        ),
        (
            "WITH a AS (SELECT employee_id, SUM(cost) t FROM visits GROUP BY employee_id) SELECT e.name FROM employees e WHERE e.id = a.employee_id",
            Some(
                "WITH a AS (SELECT employee_id, SUM(cost) t FROM visits GROUP BY employee_id) SELECT e.name FROM employees e, a WHERE e.id = a.employee_id",
            ),
        ),
    ] {
        assert_eq!(mended(sql, None).as_deref(), meant, "{sql}");
    }
}
