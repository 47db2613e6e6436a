//! Client-side analysis, the last resort for clients that can run programs.
//!
//! The client fetches plain rows and runs a program written by the model. Nothing is run in this
//! process.

use querymend_sql::Approved;

use super::{Purpose, QuestionRun};
use crate::event::{Event, Program, StopReason, TableQuery};
use crate::prompts;

/// Maximum length of a program, in bytes.
const MAX_PROGRAM_BYTES: usize = 20_000;

/// Names that are not allowed as variables of a program.
#[rustfmt::skip]
const RESERVED_NAMES: &[&str] = &[
    "False", "None", "True", "and", "as", "assert", "async", "await", "break", "class", "continue", "def", "del", "elif", "else",
    "except", "finally", "for", "from", "global", "if", "import", "in", "is", "lambda", "nonlocal", "not", "or", "pass", "raise",
    "return", "try", "while", "with", "yield", "np", "pd", "result",
];

impl QuestionRun {
    /// Prompts the model for a program over these tables.
    pub(super) fn start_client_analysis(&mut self, tables: Vec<(String, Approved)>, stop: StopReason) {
        self.fallback_reason = Some(stop);
        self.events.push(Event::FallbackStarted { tables: tables.iter().map(|(name, _)| name.clone()).collect() });
        let mut queries: Vec<TableQuery> = Vec::new();
        let mut table_list = String::new();
        for (table, query) in tables {
            let mut name = python_variable(&table);
            while queries.iter().any(|other| other.name == name) {
                name.push('_');
            }
            let columns = self.schema.table(&table).map_or(&[][..], |table| &table.columns);
            let columns: Vec<String> =
                columns.iter().map(|column| format!("{} ({})", column.name, column.kind().as_str())).collect();
            table_list.push_str(&format!("{name}: {}\n", columns.join(", ")));
            queries.push(TableQuery { name, table, sql: query.sql().to_string() });
        }
        let told = prompts::truncate(table_list.trim_end(), self.settings.max_schema_bytes);
        self.conversation = prompts::program(told, self.ask.evidence.as_deref(), &self.ask.question);
        self.purpose = Purpose::Program;
        self.strategy = "hand_over";
        self.analysis_program = Some(Program { tables: queries, code: String::new() });
        self.call_model();
    }

    /// Attaches the program to the answer and gives up.
    pub(super) fn on_program(&mut self, text: &str) {
        let code = extract_program(text);
        // A program that does not assign `result` is unusable.
        let usable = code.contains("result") && code.len() <= MAX_PROGRAM_BYTES;
        self.analysis_program =
            self.analysis_program.take().filter(|_| usable).map(|analysis| Program { code, ..analysis });
        self.give_up(self.fallback_reason.unwrap_or(StopReason::MaxAttempts));
    }
}

/// Converts the name of a table to a Python variable.
fn python_variable(table: &str) -> String {
    let mut name: String = table.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
        name.insert(0, '_');
    }
    if RESERVED_NAMES.contains(&name.as_str()) {
        name.push('_');
    }
    name
}

/// Extracts the program from the code fence and the surrounding text.
fn extract_program(text: &str) -> String {
    let Some((_, rest)) = text.split_once("```") else { return text.trim().to_string() };
    // The fence line may name the language.
    let rest = rest.split_once('\n').map_or(rest, |(_, rest)| rest);
    rest.split("```").next().unwrap_or(rest).trim_end().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn derives_valid_python_variable_names() {
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
            assert_eq!(python_variable(table), name);
        }
    }

    #[test]
    fn extracts_program_from_model_reply() {
        assert_eq!(extract_program("result = 1\n"), "result = 1");
        assert_eq!(extract_program("Here it is:\n```python\nx = 1\nresult = x\n```\nDone."), "x = 1\nresult = x");
        assert_eq!(extract_program("```\nresult = 1"), "result = 1");
    }
}
