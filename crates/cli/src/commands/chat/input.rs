//! Input of a conversation: a terminal or a pipe.

use std::io::{self, IsTerminal};

use querymend_sql::Schema;
use tokio::runtime::Runtime;
use tokio::sync::mpsc;

use super::editor::LineEditor;
use super::input_event::InputEvent;
use crate::error::CliError;
use crate::input;

/// Source of input lines.
pub enum ChatInput {
    /// Interactive terminal.
    Terminal(Box<LineEditor>),
    /// File or another process.
    Pipe(mpsc::Receiver<io::Result<Vec<u8>>>),
}

impl ChatInput {
    /// Creates an input from stdin.
    pub fn new(schema: &Schema) -> Result<Self, CliError> {
        if io::stdin().is_terminal() {
            return Ok(ChatInput::Terminal(Box::new(LineEditor::new(schema))));
        }
        let (sender, lines) = mpsc::channel(16);
        // Read on a separate thread, so that Ctrl-C is handled while no input arrives.
        std::thread::spawn(move || {
            for line in input::bounded_lines(io::stdin().lock()) {
                let failed = line.is_err();
                if sender.blocking_send(line).is_err() || failed {
                    return;
                }
            }
        });
        Ok(ChatInput::Pipe(lines))
    }

    /// Returns whether the input is a terminal.
    pub fn is_interactive(&self) -> bool {
        matches!(self, ChatInput::Terminal(_))
    }

    /// Waits for the next line.
    pub fn read_next(&mut self, runtime: &Runtime) -> Result<InputEvent, CliError> {
        match self {
            ChatInput::Terminal(editor) => editor.read_line(),
            ChatInput::Pipe(lines) => runtime.block_on(async {
                let mut whole = String::new();
                loop {
                    let line = tokio::select! {
                        line = lines.recv() => line,
                        pressed = tokio::signal::ctrl_c() => match pressed {
                            Ok(()) => return Ok(InputEvent::Interrupted),
                            Err(_) => lines.recv().await,
                        },
                    };
                    let Some(line) = line else {
                        return Ok(if whole.is_empty() { InputEvent::EndOfInput } else { InputEvent::Line(whole) });
                    };
                    let line = line.map_err(|error| input::read_error("<stdin>", &error))?;
                    whole.push_str(String::from_utf8_lossy(&line).trim_end());
                    match whole.strip_suffix('\\') {
                        Some(more) => whole = format!("{more}\n"),
                        None => return Ok(InputEvent::Line(whole)),
                    }
                }
            }),
        }
    }
}
