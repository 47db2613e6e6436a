//! Line editor with history, completion of tables, columns and commands, and multi-line questions.

use std::borrow::Cow;
use std::collections::BTreeSet;

use querymend_sql::Schema;
use reedline::{
    ColumnarMenu, Completer, CompletionResult, EditCommand, Emacs, FileBackedHistory, KeyCode, KeyModifiers,
    MenuBuilder, Prompt, PromptEditMode, PromptHistorySearch, Reedline, ReedlineEvent, ReedlineMenu, Signal, Span,
    Suggestion, ValidationResult, Validator, default_emacs_keybindings,
};

use super::COMMANDS;
use super::input_event::InputEvent;
use crate::error::CliError;
use crate::state_dir;

/// Maximum number of history lines kept across sessions.
const HISTORY_LIMIT: usize = 1_000;
const COMPLETION_MENU: &str = "names";
/// Maximum number of retries if the terminal does not respond.
const MAX_READ_RETRIES: usize = 3;

/// Line editor on a terminal.
pub struct LineEditor {
    reedline: Reedline,
}

impl LineEditor {
    /// Creates an editor that completes the names of tables and columns.
    pub fn new(schema: &Schema) -> Self {
        let mut keys = default_emacs_keybindings();
        let complete = vec![ReedlineEvent::Menu(COMPLETION_MENU.to_string()), ReedlineEvent::MenuNext];
        keys.add_binding(KeyModifiers::NONE, KeyCode::Tab, ReedlineEvent::UntilFound(complete));
        let newline = ReedlineEvent::Edit(vec![EditCommand::InsertNewline]);
        keys.add_binding(KeyModifiers::ALT, KeyCode::Enter, newline);
        let menu = Box::new(ColumnarMenu::default().with_name(COMPLETION_MENU));
        let mut reedline = Reedline::create()
            .with_completer(Box::new(NameCompleter::from_schema(schema)))
            .with_menu(ReedlineMenu::EngineCompleter(menu))
            .with_quick_completions(true)
            .with_partial_completions(true)
            .with_edit_mode(Box::new(Emacs::new(keys)))
            .with_validator(Box::new(ContinuationValidator));
        // Chat also works without a history.
        let file = state_dir::create_private_file("chat-history");
        if let Some(Ok(history)) = file.map(|file| FileBackedHistory::with_file(HISTORY_LIMIT, file)) {
            reedline = reedline.with_history(Box::new(history));
        }
        Self { reedline }
    }

    /// Waits for the next line, and retries if the terminal is slow to report its cursor position.
    pub fn read_line(&mut self) -> Result<InputEvent, CliError> {
        let mut read = self.reedline.read_line(&ChatPrompt);
        for _ in 0..MAX_READ_RETRIES {
            if read.is_err() {
                read = self.reedline.read_line(&ChatPrompt);
            }
        }
        match read {
            Ok(Signal::Success(text)) => Ok(InputEvent::Line(text.replace("\\\n", "\n"))),
            Ok(Signal::CtrlD) => Ok(InputEvent::EndOfInput),
            Ok(_) => Ok(InputEvent::Discarded),
            Err(error) => Err(CliError::new(format!("the terminal cannot be read: {error}"))
                .hint("pipe the questions in, one on each line")),
        }
    }
}

/// Continues a line that ends with a backslash.
struct ContinuationValidator;

impl Validator for ContinuationValidator {
    fn validate(&self, text: &str) -> ValidationResult {
        if text.ends_with('\\') { ValidationResult::Incomplete } else { ValidationResult::Complete }
    }
}

/// Completes commands, and the names of tables and columns.
struct NameCompleter(Vec<String>);

impl NameCompleter {
    fn from_schema(schema: &Schema) -> Self {
        let columns = |table: &querymend_sql::schema::Table| {
            table.columns.iter().map(|column| column.name.clone()).collect::<Vec<_>>()
        };
        let mut names: BTreeSet<String> = schema.tables().iter().flat_map(columns).collect();
        names.extend(schema.tables().iter().map(|table| table.name.clone()));
        Self(COMMANDS.iter().map(ToString::to_string).chain(names).collect())
    }

    /// Returns the completions of the token before the cursor, and its start offset.
    fn candidates(&self, line: &str, cursor: usize) -> (usize, Vec<&String>) {
        let before = line.get(..cursor).unwrap_or(line);
        let part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '/');
        let start = before.char_indices().rev().take_while(|(_, c)| part(*c)).last().map_or(before.len(), |(i, _)| i);
        let word = before[start..].to_lowercase();
        // Commands are only valid at the start of a line.
        let fits = |name: &&String| {
            !word.is_empty() && (start == 0 || !name.starts_with('/')) && name.to_lowercase().starts_with(&word)
        };
        (start, self.0.iter().filter(fits).collect())
    }
}

impl Completer for NameCompleter {
    fn complete(&mut self, line: &str, cursor: usize) -> CompletionResult {
        let (start, names) = self.candidates(line, cursor);
        let suggestion = |name: &String| Suggestion {
            value: name.clone(),
            span: Span::new(start, cursor),
            append_whitespace: true,
            ..Suggestion::default()
        };
        CompletionResult::fresh(names.into_iter().map(suggestion).collect::<Vec<_>>())
    }
}

/// Prompt of the line editor.
struct ChatPrompt;

impl Prompt for ChatPrompt {
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
    fn completes_names_and_commands() {
        let schema = Schema::from_ddl(
            "CREATE TABLE products (product_id INTEGER, \"Größe\" TEXT); CREATE TABLE orders (order_id INTEGER)",
            &querymend_sql::dialect::SQLITE,
        )
        .unwrap();
        let names = NameCompleter::from_schema(&schema);
        let fitting = |line: &str| {
            let (start, names) = names.candidates(line, line.len());
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
