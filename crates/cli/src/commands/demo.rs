//! `querymend demo`: a small shop to try things on.

use std::path::PathBuf;

use clap::Args;

use crate::failure::{Exit, Failure};
use crate::out::Out;

/// Write a small shop database to try things on
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
    out.write(
        format!(
            "Try:
  querymend check --db {path} --sql \"SELECT id, price FROM products WHERE categry = 'Electronics'\"
  querymend run --db {path} --sql \"SELECT category, count(*) AS products FROM products GROUP BY category\"
  querymend schema --db {path}
"
        )
        .as_bytes(),
    )?;
    Ok(Exit::Done)
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
