//! What memory has for a question: a query that answered it before, and examples that are like it.

use querymend_memory::Example;

use super::{Current, Purpose, Run};
use crate::event::{Attempt, Event, Shown};
use crate::memory::Recalled;
use crate::prompts;

/// A query that is longer is no example: it would fill the prompt.
const LONGEST_EXAMPLE: usize = 1_000;

impl Run {
    /// The examples that a model is shown, each a question and its query: those that fit the tables as they are today.
    pub(super) fn fitting(&mut self, recalled: &Recalled) -> Vec<(String, String)> {
        let mut fitting = Vec::new();
        let mut shown = Vec::new();
        for found in &recalled.examples {
            let example = &found.example;
            if example.sql.len() > LONGEST_EXAMPLE {
                continue;
            }
            // One of another database speaks of tables that are not here: it shows how, and not what.
            let ours = example.database.is_empty() || Some(&example.database) == recalled.database.as_ref();
            if ours && !self.fits(example) {
                self.stale.push(example.id.clone());
                continue;
            }
            let question = prompts::clipped(&example.question, LONGEST_EXAMPLE).to_string();
            shown.push(Shown { id: example.id.clone(), question: question.clone(), similarity: found.similarity });
            fitting.push((question, example.sql.clone()));
        }
        self.examples = shown.iter().map(|shown| shown.id.clone()).collect();
        let known = recalled.known.as_ref().filter(|_| !self.ask.fresh).map(|known| known.id.clone());
        if known.is_some() || !shown.is_empty() || !self.stale.is_empty() || recalled.trouble.is_some() {
            let (stale, trouble) = (self.stale.clone(), recalled.trouble.clone());
            self.events.push(Event::Recalled { known, examples: shown, stale, trouble });
        }
        fitting
    }

    /// Whether the query of an example may still be sent, and nothing is known against it.
    fn fits(&mut self, example: &Example) -> bool {
        let found = self.review(&example.sql);
        found.is_clean() && found.approve().is_ok()
    }

    /// Sends the query that answered the same question before, if there is one and nothing speaks against it.
    pub(super) fn remember(&mut self, recalled: Recalled) -> bool {
        let Some(known) = recalled.known.filter(|_| !self.ask.fresh) else { return false };
        let found = self.review(&known.sql);
        let query = match found.approve() {
            Ok(query) if found.is_clean() => query,
            _ => {
                self.stale.push(known.id);
                return false;
            }
        };
        self.seen.insert(found.tokens().identity().to_string());
        self.purpose = Purpose::Recall;
        self.strategy = "memory";
        self.remembered = Some(known.id);
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
        self.send(query, found);
        true
    }

    /// The query that was remembered does not run any more: the model is asked as if there had been none.
    pub(super) fn misremembered(&mut self) {
        self.stale.extend(self.remembered.take());
        self.attempts.clear();
        self.current = Current::default();
        self.purpose = Purpose::Draft;
        self.strategy = "";
        self.complete();
    }
}
