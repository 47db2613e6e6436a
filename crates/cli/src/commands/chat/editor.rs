//! A line editor: history, completion of tables, columns and commands, questions of several lines.

use std::borrow::Cow;
use std::collections::BTreeSet;

use querymend_sql::Schema;
use reedline::{
    ColumnarMenu, Completer, CompletionResult, EditCommand, Emacs, FileBackedHistory, KeyCode, KeyModifiers,
    MenuBuilder, Prompt, PromptEditMode, PromptHistorySearch, Reedline, ReedlineEvent, ReedlineMenu, Signal, Span,
    Suggestion, ValidationResult, Validator, default_emacs_keybindings,
};

use super::COMMANDS;
use super::lines::Next;
use crate::failure::Failure;
use crate::state;

/// Lines of earlier chats that can be had again.
const REMEMBERED: usize = 1_000;
const MENU: &str = "names";
/// How often a terminal that did not answer is asked again.
const ASKED_AGAIN: usize = 3;

/// A person's terminal.
pub struct Editor {
    reedline: Reedline,
}

impl Editor {
    /// With the names of the tables and columns, which are completed.
    pub fn new(schema: &Schema) -> Self {
        let mut keys = default_emacs_keybindings();
        let complete = vec![ReedlineEvent::Menu(MENU.to_string()), ReedlineEvent::MenuNext];
        keys.add_binding(KeyModifiers::NONE, KeyCode::Tab, ReedlineEvent::UntilFound(complete));
        let newline = ReedlineEvent::Edit(vec![EditCommand::InsertNewline]);
        keys.add_binding(KeyModifiers::ALT, KeyCode::Enter, newline);
        let menu = Box::new(ColumnarMenu::default().with_name(MENU));
        let mut reedline = Reedline::create()
            .with_completer(Box::new(Names::of(schema)))
            .with_menu(ReedlineMenu::EngineCompleter(menu))
            .with_quick_completions(true)
            .with_partial_completions(true)
            .with_edit_mode(Box::new(Emacs::new(keys)))
            .with_validator(Box::new(Whole));
        // Without a history one can chat all the same.
        let file = state::private("chat-history");
        if let Some(Ok(history)) = file.map(|file| FileBackedHistory::with_file(REMEMBERED, file)) {
            reedline = reedline.with_history(Box::new(history));
        }
        Self { reedline }
    }

    /// Waits for the next line. A terminal that is slow to say where its cursor is, is asked again.
    pub fn next(&mut self) -> Result<Next, Failure> {
        let mut read = self.reedline.read_line(&Mark);
        for _ in 0..ASKED_AGAIN {
            if read.is_err() {
                read = self.reedline.read_line(&Mark);
            }
        }
        match read {
            Ok(Signal::Success(text)) => Ok(Next::Line(text.replace("\\\n", "\n"))),
            Ok(Signal::CtrlD) => Ok(Next::Left),
            Ok(_) => Ok(Next::Again),
            Err(error) => Err(Failure::new(format!("the terminal cannot be read: {error}"))
                .hint("pipe the questions in, one on each line")),
        }
    }
}

/// A line that ends with a backslash goes on.
struct Whole;

impl Validator for Whole {
    fn validate(&self, text: &str) -> ValidationResult {
        if text.ends_with('\\') { ValidationResult::Incomplete } else { ValidationResult::Complete }
    }
}

/// Names that are completed, in order.
struct Names(Vec<String>);

impl Names {
    fn of(schema: &Schema) -> Self {
        let columns = |table: &querymend_sql::schema::Table| {
            table.columns.iter().map(|column| column.name.clone()).collect::<Vec<_>>()
        };
        let mut names: BTreeSet<String> = schema.tables().iter().flat_map(columns).collect();
        names.extend(schema.tables().iter().map(|table| table.name.clone()));
        Self(COMMANDS.iter().map(ToString::to_string).chain(names).collect())
    }

    /// What the word before the cursor may become, and where it begins.
    fn fitting(&self, line: &str, cursor: usize) -> (usize, Vec<&String>) {
        let before = line.get(..cursor).unwrap_or(line);
        let part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '/');
        let start = before.char_indices().rev().take_while(|(_, c)| part(*c)).last().map_or(before.len(), |(i, _)| i);
        let word = before[start..].to_lowercase();
        // A command stands at the beginning of a line, and nowhere else.
        let fits = |name: &&String| {
            !word.is_empty() && (start == 0 || !name.starts_with('/')) && name.to_lowercase().starts_with(&word)
        };
        (start, self.0.iter().filter(fits).collect())
    }
}

impl Completer for Names {
    fn complete(&mut self, line: &str, cursor: usize) -> CompletionResult {
        let (start, names) = self.fitting(line, cursor);
        let suggestion = |name: &String| Suggestion {
            value: name.clone(),
            span: Span::new(start, cursor),
            append_whitespace: true,
            ..Suggestion::default()
        };
        CompletionResult::fresh(names.into_iter().map(suggestion).collect::<Vec<_>>())
    }
}

/// What stands before the line.
struct Mark;

impl Prompt for Mark {
    fn render_prompt_left(&self) -> Cow<'_, str> {
        "".into()
    }

    fn render_prompt_right(&self) -> Cow<'_, str> {
        "".into()
    }

    fn render_prompt_indicator(&self, _mode: PromptEditMode) -> Cow<'_, str> {
        "? ".into()
    }

    fn render_prompt_multiline_indicator(&self) -> Cow<'_, str> {
        "… ".into()
    }

    fn render_prompt_history_search_indicator(&self, search: PromptHistorySearch) -> Cow<'_, str> {
        format!("search: {} ", search.term).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_commands_are_completed() {
        let schema = Schema::from_ddl(
            "CREATE TABLE products (product_id INTEGER, \"Größe\" TEXT); CREATE TABLE orders (order_id INTEGER)",
            &querymend_sql::dialect::SQLITE,
        )
        .unwrap();
        let names = Names::of(&schema);
        let fitting = |line: &str| {
            let (start, names) = names.fitting(line, line.len());
            (start, names.into_iter().map(String::as_str).collect::<Vec<_>>())
        };
        assert_eq!(fitting("/s"), (0, vec!["/sql", "/schema", "/save"]));
        assert_eq!(fitting("how many /s"), (9, vec![]));
        assert_eq!(fitting("how many PRO"), (9, vec!["product_id", "products"]));
        assert_eq!(fitting("die Gr"), (4, vec!["Größe"]));
        assert_eq!(fitting("how many "), (9, vec![]));
        assert_eq!(fitting(""), (0, vec![]));
    }
}
