//! Finds the errors in a query and repairs it, without a database and without a model.
//!
//! ```sh
//! cargo run -p querymend-examples --example check_and_fix
//! ```
//!
//! The output is:
//!
//! ```text
//! error[unknown-column] at 1:8
//!   `c` has no column `nmae` (did you mean `name`?)
//! error[function-of-another-dialect] at 1:16
//!   postgres has no function IFNULL (sqlite, mysql, spark, datafusion have it)
//! error[unknown-column] at 3:39
//!   `c` has no column `id` (did you mean `customer_id`?)
//! error[unknown-column] at 4:10
//!   `c` has no column `nmae` (did you mean `name`?)
//! Mended
//! fixed[unknown-column] (Likely): `name` is the column of `c` most similar to `nmae`
//! fixed[function-of-another-dialect] (Likely): postgres writes IFNULL as `COALESCE(x, y)`
//! fixed[unknown-column] (Likely): `customer_id` is the column of `c` most similar to `id`
//! SELECT c.name, COALESCE(SUM(o.total), 0)
//! FROM customers c
//! LEFT JOIN orders o ON o.customer_id = c.customer_id
//! GROUP BY c.name
//! ```

#![allow(clippy::print_stdout, reason = "the output of the example")]

use querymend_sql::{
    Applicability, Policy, RepairRequest, ReviewContext, Schema, SchemaError, dialect, repair, review,
};

/// Tables that queries are checked against. `Schema::from_json` and `Schema::new` are alternatives.
const DDL: &str = "
    CREATE TABLE customers (customer_id INTEGER PRIMARY KEY, name TEXT, country TEXT);
    CREATE TABLE orders (
        order_id INTEGER PRIMARY KEY,
        customer_id INTEGER REFERENCES customers (customer_id),
        ordered_on DATE,
        total NUMERIC(10, 2)
    );";

/// Query with an alias that has another column, a misspelt column, and a function of MySQL.
const SQL: &str = "\
SELECT c.nmae, IFNULL(SUM(o.total), 0)
FROM customers c
LEFT JOIN orders o ON o.customer_id = c.id
GROUP BY c.nmae";

fn main() -> Result<(), SchemaError> {
    let dialect = &dialect::POSTGRES;
    let schema = Schema::from_ddl(DDL, dialect)?;
    let policy = Policy::default();
    // The question is optional: its words help to choose between similar names.
    let context = ReviewContext { schema: Some(&schema), dialect, policy: &policy, question: None };

    // Check: a review never fails and never panics, whatever the text is.
    let review = review(SQL, &context);
    for finding in &review.findings {
        let (line, column) = review.line_column(finding.span.start);
        println!("{}[{}] at {line}:{column}", finding.severity.as_str(), finding.code);
        println!("  {}", finding.message);
    }

    // Fix: `Safe` applies only proved fixes, `Likely` also the best of several candidates. A
    // `DatabaseOracle` as the second argument lets a database confirm the candidates.
    let request =
        RepairRequest { text: SQL, context, question: None, max_applicability: Applicability::Likely, error: None };
    let repaired = repair(&request, None);
    println!("{:?}", repaired.status);
    for fix in &repaired.applied {
        println!("fixed[{}] ({:?}): {}", fix.code, fix.applicability, fix.why);
    }
    println!("{}", repaired.sql);
    Ok(())
}
