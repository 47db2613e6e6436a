//! The last way, where whoever asks has a place to compute in: plain rows are fetched by them, and a program of the model is run there.
//! Nothing of it runs here.

use querymend_sql::Approved;

use super::{Purpose, Run};
use crate::event::{Event, Plain, Program, Stop};
use crate::prompts;

/// The longest program that is handed over, in bytes.
const LONGEST_PROGRAM: usize = 20_000;

/// Words that no variable of a program may be called.
#[rustfmt::skip]
const RESERVED: &[&str] = &[
    "False", "None", "True", "and", "as", "assert", "async", "await", "break", "class", "continue", "def", "del", "elif", "else",
    "except", "finally", "for", "from", "global", "if", "import", "in", "is", "lambda", "nonlocal", "not", "or", "pass", "raise",
    "return", "try", "while", "with", "yield", "np", "pd", "result",
];

impl Run {
    /// Asks the model for a program over these tables.
    pub(super) fn hand_over(&mut self, tables: Vec<(String, Approved)>, stop: Stop) {
        self.fell_back = Some(stop);
        self.events.push(Event::FellBack { tables: tables.iter().map(|(name, _)| name.clone()).collect() });
        let mut plain: Vec<Plain> = Vec::new();
        let mut told = String::new();
        for (table, query) in tables {
            let mut name = variable(&table);
            while plain.iter().any(|other| other.name == name) {
                name.push('_');
            }
            let columns = self.schema.table(&table).map_or(&[][..], |table| &table.columns);
            let columns: Vec<String> =
                columns.iter().map(|column| format!("{} ({})", column.name, column.kind().word())).collect();
            told.push_str(&format!("{name}: {}\n", columns.join(", ")));
            plain.push(Plain { name, table, sql: query.sql().to_string() });
        }
        let told = prompts::clipped(told.trim_end(), self.settings.schema_bytes);
        self.conversation = prompts::program(told, self.ask.evidence.as_deref(), &self.ask.question);
        self.purpose = Purpose::Program;
        self.strategy = "hand_over";
        self.analysis = Some(Program { tables: plain, code: String::new() });
        self.complete();
    }

    /// The model wrote the program: it goes with the answer that could not be given.
    pub(super) fn programmed(&mut self, text: &str) {
        let code = program(text);
        // One that leaves no result is no program for this.
        let usable = code.contains("result") && code.len() <= LONGEST_PROGRAM;
        self.analysis = self.analysis.take().filter(|_| usable).map(|analysis| Program { code, ..analysis });
        self.give_up(self.fell_back.unwrap_or(Stop::AttemptsSpent));
    }
}

/// A table's name as a program can have it.
fn variable(table: &str) -> String {
    let mut name: String = table.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
        name.insert(0, '_');
    }
    if RESERVED.contains(&name.as_str()) {
        name.push('_');
    }
    name
}

/// The program without the fence and the words around it.
fn program(text: &str) -> String {
    let Some((_, rest)) = text.split_once("```") else { return text.trim().to_string() };
    // The fence may name the language, on the same line.
    let rest = rest.split_once('\n').map_or(rest, |(_, rest)| rest);
    rest.split("```").next().unwrap_or(rest).trim_end().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c05_tables_get_names_that_a_program_can_use() {
        for (table, name) in [
            ("orders", "orders"),
            ("Order Items", "Order_Items"),
            ("2024", "_2024"),
            ("", "_"),
            ("class", "class_"),
            ("result", "result_"),
            ("größe", "gr__e"),
            ("a\"; import os #", "a___import_os__"),
        ] {
            assert_eq!(variable(table), name);
        }
    }

    #[test]
    fn c05_programs_come_out_of_their_wrapping() {
        assert_eq!(program("result = 1\n"), "result = 1");
        assert_eq!(program("Here it is:\n```python\nx = 1\nresult = x\n```\nDone."), "x = 1\nresult = x");
        assert_eq!(program("```\nresult = 1"), "result = 1");
    }
}
