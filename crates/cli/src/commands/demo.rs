//! `querymend demo`: a small shop to try things on.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use querymend_sql::{Applicability, Context, Policy, Request, repair, review};

use crate::against::wait;
use crate::failure::{Exit, Failure};
use crate::out::Out;
use crate::render;

/// Write a small shop database to try things on, and a broken query beside it
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  querymend demo
  querymend demo /tmp/shop.db")]
pub struct Demo {
    /// File to write; it must not be there yet
    #[arg(default_value = "querymend-demo.db")]
    pub path: PathBuf,
}

/// Does it.
pub fn run(demo: &Demo, out: &mut Out) -> Result<Exit, Failure> {
    querymend_engine::demo::write(&demo.path)?;
    let path = shell_word(&demo.path.display().to_string());
    out.note(&format!("wrote {path}: customers, products, orders, order_items and reviews of a small shop"));
    let beside = demo.path.with_file_name(BROKEN_FILE);
    let broken = shell_word(&beside.display().to_string());
    let written = write_new(&beside);
    match &written {
        Ok(()) => out.note(&format!("wrote {broken}: a query with faults in it")),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            out.note(&format!("note: {broken} is already there, and is left as it is"));
        }
        Err(error) => out.note(&format!("note: {broken} cannot be written: {error}")),
    }
    show_a_broken_query(&demo.path, out)?;
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
    Ok(Exit::Done)
}

/// The file that the query is written to, beside the database.
const BROKEN_FILE: &str = "broken.sql";

/// What a model might write for "which customers ordered electronics in 2024, and how often?".
const BROKEN: &str = "SELECT c.name, COUNT(*) AS ordered
FROM customers c
JOIN orders o ON o.customer_id = c.id
WHERE YEAR(o.ordered_on) = 2024
  AND category = 'Electronics'
GROUP BY c.name;
";

/// Writes the query to a new file, whole or not at all. One that is already there is somebody's own.
fn write_new(path: &Path) -> io::Result<()> {
    let written = File::create_new(path)?.write_all(BROKEN.as_bytes());
    if written.is_err() {
        fs::remove_file(path).ok();
    }
    written
}

/// Reviews a query with several faults, so that the first thing a newcomer sees is what this is for.
fn show_a_broken_query(path: &Path, out: &mut Out) -> Result<(), Failure> {
    let engine = querymend_engine::open(&path.display().to_string())?;
    let schema = wait(engine.schema())?;
    let policy = Policy::default();
    let review =
        review(BROKEN, &Context { schema: Some(&schema), dialect: engine.dialect(), policy: &policy, question: None });
    out.write(b"A query with faults in it, as `querymend check` explains it:\n\n")?;
    out.write(render::findings(BROKEN_FILE, BROKEN, &review.findings, out.color).as_bytes())?;
    let context = Context { schema: Some(&schema), dialect: engine.dialect(), policy: &policy, question: None };
    let mended =
        repair(&Request { text: BROKEN, context, question: None, apply: Applicability::Likely, error: None }, None);
    out.write(format!("\nThe same, as `querymend fix` mends it without a model:\n\n{}\n", mended.sql).as_bytes())
}

/// A word as a shell reads it back.
fn shell_word(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_string()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}
