//! Answers a question from a database: prompts a model, reviews and repairs its query, and runs it
//! read-only.
//!
//! ```sh
//! cargo run -p querymend-examples --example ask
//! cargo run -p querymend-examples --example ask -- ollama:qwen2.5-coder
//! ```
//!
//! Without an argument, a scripted model plays the part of the language model, with a mistake to
//! repair: the column is called `product_id`. The output is then:
//!
//! ```text
//! sql: SELECT product_id, price FROM products WHERE category = 'Toys' ORDER BY price DESC LIMIT 3
//! row: [38,52.0]
//! row: [36,44.0]
//! row: [39,38.5]
//! fixed[unknown-column]: `product_id` is the column of `products` most similar to `id`
//! confidence: Medium
//! ```

#![allow(clippy::print_stdout, reason = "the output of the example")]

use std::error::Error;
use std::sync::Arc;

use querymend::{AnswerStatus, Config, Querymend};
use querymend_model::{Model, Providers, ScriptedModel};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    // A small SQLite database to ask. `open` also accepts the URL of a server, such as
    // `postgres://reader@localhost/shop`, and CSV, Parquet or Excel files.
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("shop.db");
    querymend_engine::demo::write(&file)?;
    let engine = querymend_engine::open(&file.to_string_lossy())?;

    let model: Arc<dyn Model> = match std::env::args().nth(1) {
        Some(spec) => querymend_model::open(&spec, &Providers::builtin()?)?,
        None => Arc::new(ScriptedModel::new([
            "Here you are:\n```sql\nSELECT id, price FROM products WHERE category = 'Toys' ORDER BY price DESC LIMIT 3\n```",
        ])),
    };

    // `Config::load` reads `querymend.yaml` instead: budgets, retry policy, access policy.
    let querymend = Querymend::new(Arc::from(engine), model, Config::default());
    let answer = querymend.ask("Which three toys are the most expensive?").await;

    // A failure is an answer as well: `problem` says what happened, and what to do next.
    if answer.status != AnswerStatus::Answered {
        return Err(format!("{:?}: {:?}", answer.stop, answer.problem).into());
    }
    println!("sql: {}", answer.sql.as_deref().unwrap_or_default());
    for row in answer.rows.iter().flat_map(|rows| &rows.rows) {
        println!("row: {}", serde_json::to_string(row)?);
    }
    for fix in &answer.fixes {
        println!("fixed[{}]: {}", fix.code, fix.why);
    }
    // `answer.reasons` says why it is not higher.
    println!("confidence: {:?}", answer.confidence);
    Ok(())
}
