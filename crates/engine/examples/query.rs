//! Asks a database one question and writes the answer as CSV: `cargo run -p querymend-engine --example query -- ADDRESS SQL`.
//! With `-` for the SQL, each line of the input is a question, and each answer ends with an empty line.

// What an example has to say goes to its output.
#![allow(clippy::print_stdout)]

use std::error::Error;

use querymend_engine::{CancelFlag, Engine, Limits, open};
use querymend_sql::{Cell, Policy, ReviewContext, review};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(address), Some(sql)) = (arguments.next(), arguments.next()) else {
        return Err("usage: query ADDRESS SQL".into());
    };
    let engine = open(&address)?;
    if sql != "-" {
        return ask(&*engine, &sql).await;
    }
    for line in std::io::stdin().lines() {
        if let Err(error) = ask(&*engine, &line?).await {
            println!("error: {error}");
        }
        println!();
    }
    Ok(())
}

async fn ask(engine: &dyn Engine, sql: &str) -> Result<(), Box<dyn Error>> {
    let policy = Policy::default();
    let context = ReviewContext { schema: None, dialect: engine.dialect(), policy: &policy, question: None };
    let query = review(sql, &context).approve()?;
    let rows = engine.execute(&query, &Limits::default(), &CancelFlag::new()).await?;
    println!("{}", rows.columns.iter().map(|name| field(name)).collect::<Vec<_>>().join(","));
    for row in &rows.rows {
        println!("{}", row.iter().map(cell).collect::<Vec<_>>().join(","));
    }
    Ok(())
}

fn cell(cell: &Cell) -> String {
    match cell {
        Cell::Null => String::new(),
        Cell::Boolean(value) => value.to_string(),
        Cell::Integer(number) => number.to_string(),
        Cell::Number(number) => number.to_string(),
        Cell::Decimal(number) => number.clone(),
        Cell::Text(text) => field(text),
        Cell::Binary(bytes) => bytes.clone(),
    }
}

/// An empty text is quoted, so that it is not taken for NULL.
fn field(text: &str) -> String {
    if text.is_empty() || text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_string()
    }
}
