//! Prints the events of a question as they happen: stages, streamed text, review, repair, rows.
//!
//! ```sh
//! cargo run -p querymend-examples --example streaming_events
//! ```
//!
//! The output is:
//!
//! ```text
//! question: How many customers per country? (sqlite)
//! stage: SchemaDiscovery (attempt 1)
//! stage: PatternSelection (attempt 1)
//! stage: Generation (attempt 1)
//! SELECT city, flurb(wibble) FROM customers
//! stage: GuardrailCheck (attempt 1)
//!   reviewed: approved true, findings ["unknown-function", "unknown-column"]
//!   retrying with explain_findings, at most 3 attempts
//! stage: Generation (attempt 2)
//! SELECT contry, count(*) FROM customers GROUP BY 1 ORDER BY 2 DESC
//! stage: GuardrailCheck (attempt 2)
//!   reviewed: approved true, findings ["unknown-column"]
//! stage: SelfCorrection (attempt 2)
//!   repaired: 'contry' → 'country'
//! stage: ToolExecution (attempt 2)
//!   executed: SELECT country, count(*) FROM customers GROUP BY 1 ORDER BY 2 DESC -> 8 rows
//! stage: Completed (attempt 2)
//! finished: Answered
//! 2 model calls, confidence Medium
//! ```

#![allow(clippy::print_stdout, reason = "the output of the example")]

use std::error::Error;
use std::io::Write;
use std::sync::Arc;

use querymend::{AskInput, CancellationToken, Config, Event, Querymend};
use querymend_model::ScriptedModel;
use tokio::sync::mpsc;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("shop.db");
    querymend_engine::demo::write(&file)?;
    let engine = querymend_engine::open(&file.to_string_lossy())?;
    // The first query needs the model again; the second has a typo, which needs no model.
    let model = ScriptedModel::new([
        "SELECT city, flurb(wibble) FROM customers",
        "SELECT contry, count(*) FROM customers GROUP BY 1 ORDER BY 2 DESC",
    ]);
    let querymend = Querymend::new(Arc::from(engine), Arc::new(model), Config::default());

    // The callback must return quickly, so it only passes events on, here to a channel.
    let (sender, mut events) = mpsc::unbounded_channel();
    // A clone of the token cancels the question from anywhere, such as a signal handler.
    let cancel = CancellationToken::new();
    let question = AskInput { question: "How many customers per country?".into(), ..AskInput::default() };
    let asking = tokio::spawn(async move {
        querymend.ask_with(question, &mut |event| drop(sender.send(event.clone())), &cancel).await
    });

    // Ends when the question is answered: the callback owns the only sender.
    while let Some(event) = events.recv().await {
        print_event(&event);
    }
    let answer = asking.await?;
    println!("{} model calls, confidence {:?}", answer.metadata.llm_calls, answer.confidence);
    Ok(())
}

/// Prints an event. All events serialize to JSON too, as the server sends them.
fn print_event(event: &Event) {
    match event {
        Event::Started { question, dialect, .. } => println!("question: {question} ({dialect})"),
        Event::Stage { stage, attempt } => println!("stage: {stage:?} (attempt {attempt})"),
        Event::Text { piece } => {
            print!("{piece}");
            std::io::stdout().flush().ok();
        }
        Event::Drafted { .. } => println!(),
        Event::Reviewed { approved, findings, .. } => {
            let codes: Vec<&str> = findings.iter().map(|finding| finding.code).collect();
            println!("  reviewed: approved {approved}, findings {codes:?}");
        }
        Event::Repaired { changes, .. } => changes.iter().for_each(|change| println!("  repaired: {change}")),
        Event::Retrying { strategy, of, .. } => println!("  retrying with {strategy}, at most {of} attempts"),
        Event::Executed { sql, rows, .. } => println!("  executed: {sql} -> {rows} rows"),
        Event::Finished { answer } => println!("finished: {:?}", answer.status),
        // Not every program needs all events.
        _ => {}
    }
}
