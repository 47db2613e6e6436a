//! `querymend demo`: a small sample database.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use querymend_sql::{Applicability, Policy, RepairRequest, ReviewContext, repair, review};

use crate::error::{CliError, ExitStatus};
use crate::output::{Out, diagnostics};
use crate::runtime::block_on;

/// Write a small shop database to try things on, and a broken query next to it
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  querymend demo
  querymend demo /tmp/shop.db")]
pub struct DemoCommand {
    /// File to write; it must not exist
    #[arg(default_value = "querymend-demo.db")]
    pub path: PathBuf,
}

/// Runs `querymend demo`.
pub fn run(demo: &DemoCommand, out: &mut Out) -> Result<ExitStatus, CliError> {
    querymend_engine::demo::write(&demo.path)?;
    let path = shell_quote(&demo.path.display().to_string());
    out.note(&format!("wrote {path}: customers, products, orders, order_items and reviews of a small shop"));
    let beside = demo.path.with_file_name(BROKEN_FILE);
    let broken = shell_quote(&beside.display().to_string());
    let written = write_new_file(&beside);
    match &written {
        Ok(()) => out.note(&format!("wrote {broken}: a query with errors")),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            out.note(&format!("note: {broken} already exists and was not changed"));
        }
        Err(error) => out.note(&format!("note: {broken} cannot be written: {error}")),
    }
    show_broken_query(&demo.path, out)?;
    let first = match written {
        Ok(()) => format!("  querymend check --db {path} {broken}\n"),
        Err(_) => String::new(),
    };
    out.write(
        format!(
            "
Try:
{first}  querymend check --db {path} --sql \"SELECT id, price FROM products WHERE categry = 'Electronics'\"
  querymend fix --db {path} --sql \"SELECT name, quantity FROM products WHERE category = 'Toys'\"
  querymend run --db {path} --sql \"SELECT category, count(*) AS products FROM products GROUP BY category\"
  querymend schema --db {path}
"
        )
        .as_bytes(),
    )?;
    Ok(ExitStatus::Success)
}

/// Name of the file with the broken query, next to the database.
const BROKEN_FILE: &str = "broken.sql";

/// Query that a model might write for "which customers ordered electronics in 2024, and how
/// often?".
const BROKEN_SQL: &str = "SELECT c.name, COUNT(*) AS ordered
FROM customers c
JOIN orders o ON o.customer_id = c.id
WHERE YEAR(o.ordered_on) = 2024
  AND category = 'Electronics'
GROUP BY c.name;
";

/// Writes the query to a new file, completely or not at all. Never overwrites a file of the user.
fn write_new_file(path: &Path) -> io::Result<()> {
    let written = File::create_new(path)?.write_all(BROKEN_SQL.as_bytes());
    if written.is_err() {
        fs::remove_file(path).ok();
    }
    written
}

/// Reviews and repairs a query with several errors, to show newcomers the purpose of the tool
/// first.
fn show_broken_query(path: &Path, out: &mut Out) -> Result<(), CliError> {
    let engine = querymend_engine::open(&path.display().to_string())?;
    let schema = block_on(engine.schema())?;
    let policy = Policy::default();
    let review = review(
        BROKEN_SQL,
        &ReviewContext { schema: Some(&schema), dialect: engine.dialect(), policy: &policy, question: None },
    );
    out.write(b"A query with errors, as `querymend check` reports them:\n\n")?;
    out.write(diagnostics::render_findings(BROKEN_FILE, BROKEN_SQL, &review.findings, out.color).as_bytes())?;
    let context = ReviewContext { schema: Some(&schema), dialect: engine.dialect(), policy: &policy, question: None };
    let outcome = repair(
        &RepairRequest {
            text: BROKEN_SQL,
            context,
            question: None,
            max_applicability: Applicability::Likely,
            error: None,
        },
        None,
    );
    out.write(
        format!("\nThe same query, as `querymend fix` repairs it without a model:\n\n{}\n", outcome.sql).as_bytes(),
    )
}

/// Quotes an argument for a POSIX shell.
fn shell_quote(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_string()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}
