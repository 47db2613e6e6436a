//! Uses memory for a question: an exact match, and similar few-shot examples.

use querymend_memory::Example;

use super::{Current, Purpose, QuestionRun};
use crate::event::{Attempt, Event, ExampleRef};
use crate::memory::RetrievedExamples;
use crate::prompts;

/// Maximum length of an example query, in bytes, to limit the prompt size.
const MAX_EXAMPLE_BYTES: usize = 1_000;

impl QuestionRun {
    /// Returns the few-shot examples (question and query) that are valid for the current schema.
    pub(super) fn select_few_shot_examples(&mut self, retrieved: &RetrievedExamples) -> Vec<(String, String)> {
        let mut few_shot = Vec::new();
        let mut shown = Vec::new();
        for found in &retrieved.examples {
            let example = &found.example;
            if example.sql.len() > MAX_EXAMPLE_BYTES {
                continue;
            }
            // An example of another database demonstrates the technique; its tables need not exist
            // here.
            let is_same_database =
                example.database.is_empty() || Some(&example.database) == retrieved.database.as_ref();
            if is_same_database && !self.is_example_valid(example) {
                self.stale_examples.push(example.id.clone());
                continue;
            }
            let question = prompts::truncate(&example.question, MAX_EXAMPLE_BYTES).to_string();
            shown.push(ExampleRef { id: example.id.clone(), question: question.clone(), similarity: found.similarity });
            few_shot.push((question, example.sql.clone()));
        }
        self.example_ids = shown.iter().map(|shown| shown.id.clone()).collect();
        let known = retrieved.exact_match.as_ref().filter(|_| !self.ask.bypass_memory).map(|known| known.id.clone());
        if known.is_some() || !shown.is_empty() || !self.stale_examples.is_empty() || retrieved.error.is_some() {
            let (stale, trouble) = (self.stale_examples.clone(), retrieved.error.clone());
            self.events.push(Event::ExamplesRetrieved { known, examples: shown, stale, trouble });
        }
        few_shot
    }

    /// Returns whether the query of an example passes the review without errors.
    fn is_example_valid(&mut self, example: &Example) -> bool {
        let found = self.review(&example.sql);
        found.is_clean() && found.approve().is_ok()
    }

    /// Executes the query that answered the same question before, if it is still valid.
    pub(super) fn try_exact_match(&mut self, retrieved: RetrievedExamples) -> bool {
        let Some(known) = retrieved.exact_match.filter(|_| !self.ask.bypass_memory) else { return false };
        let found = self.review(&known.sql);
        let query = match found.approve() {
            Ok(query) if found.is_clean() => query,
            _ => {
                self.stale_examples.push(known.id);
                return false;
            }
        };
        self.seen_queries.insert(found.tokens().identity().to_string());
        self.purpose = Purpose::Recall;
        self.strategy = "memory";
        self.exact_match_id = Some(known.id);
        self.attempts.push(Attempt {
            number: self.attempt,
            sql: known.sql.clone(),
            mended: None,
            fixes: Vec::new(),
            error: None,
            finding: None,
            error_type: None,
            strategy: self.strategy,
            held_back: true,
        });
        self.current = Current { sql: known.sql, ..Current::default() };
        self.execute(query, found);
        true
    }

    /// Falls back to the model, because the remembered query failed.
    pub(super) fn on_stale_example(&mut self) {
        self.stale_examples.extend(self.exact_match_id.take());
        self.attempts.clear();
        self.current = Current::default();
        self.purpose = Purpose::Draft;
        self.strategy = "";
        self.call_model();
    }
}
