//! Guards your own executor: only SQL that was reviewed and approved reaches the database.
//!
//! ```sh
//! cargo run -p querymend-examples --example guard_executor
//! ```
//!
//! The output is:
//!
//! ```text
//! ran `SELECT sum(balance) FROM accounts`: 200.5
//! refused `SELECT owner FROM accounts; DROP TABLE accounts`: writes-data, many-statements
//! refused `DELETE FROM accounts`: writes-data, protected-column
//! refused `SELECT owner FROM accounts WHERE iban LIKE 'DE%'`: protected-column
//! refused `SELECT load_extension('evil')`: forbidden-function
//! refused `I cannot answer that.`: no-sql
//! ```

#![allow(clippy::print_stdout, reason = "the output of the example")]

use std::error::Error;

use querymend_sql::{ApprovalError, Approved, Policy, ReviewContext, Schema, dialect, review};
use rusqlite::Connection;

const DDL: &str = "
    CREATE TABLE accounts (account_id INTEGER PRIMARY KEY, owner TEXT, iban TEXT, balance REAL);";
const DATA: &str = "INSERT INTO accounts VALUES (1, 'Ada', 'DE02', 120.5), (2, 'Alan', 'GB33', 80.0);";

/// Executor of your application. `Approved` has no public constructor, so the compiler rejects
/// every call with SQL that no review approved.
fn execute(connection: &Connection, query: &Approved) -> rusqlite::Result<f64> {
    connection.query_row(query.sql(), [], |row| row.get(0))
}

/// Schema and access policy of one database.
struct Guard {
    schema: Schema,
    policy: Policy,
}

impl Guard {
    /// Approves a single read-only statement on permitted tables and columns.
    ///
    /// The text may be the raw reply of a model: the SQL is extracted from it, and comments are
    /// removed. Approval means safe, not correct: `Review::is_clean` also covers unknown names.
    fn approve(&self, text: &str) -> Result<Approved, ApprovalError> {
        let context = ReviewContext {
            schema: Some(&self.schema),
            // That of the database: the same text may mean something else in another dialect.
            dialect: &dialect::SQLITE,
            policy: &self.policy,
            question: None,
        };
        review(text, &context).approve()
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let connection = Connection::open_in_memory()?;
    connection.execute_batch(DDL)?;
    connection.execute_batch(DATA)?;
    // Defense in depth: use a read-only connection or role as well.
    connection.pragma_update(None, "query_only", true)?;

    let policy = Policy { deny_columns: vec!["accounts.iban".into()], ..Policy::default() };
    // The policy hides denied columns from the schema as well.
    let schema = policy.filter_schema(Schema::from_ddl(DDL, &dialect::SQLITE)?);
    let guard = Guard { schema, policy };

    for text in [
        "```sql\nSELECT sum(balance) FROM accounts -- all of them\n```",
        "SELECT owner FROM accounts; DROP TABLE accounts",
        "DELETE FROM accounts",
        "SELECT owner FROM accounts WHERE iban LIKE 'DE%'",
        "SELECT load_extension('evil')",
        "I cannot answer that.",
    ] {
        match guard.approve(text) {
            Ok(query) => println!("ran `{}`: {}", query.sql(), execute(&connection, &query)?),
            Err(refused) => {
                let codes: Vec<&str> = refused.errors.iter().map(|finding| finding.code).collect();
                println!("refused `{text}`: {}", codes.join(", "));
            }
        }
    }
    Ok(())
}
