//! Where the lines of a conversation come from: a person at a terminal, or a pipe.

use std::io::{self, IsTerminal};

use querymend_sql::Schema;
use tokio::runtime::Runtime;
use tokio::sync::mpsc;

use super::editor::Editor;
use crate::failure::Failure;
use crate::input;

/// What came.
pub enum Next {
    /// A line, or several where the first go on.
    Line(String),
    /// Nothing: what was being written was thrown away.
    Again,
    /// The end.
    Left,
    /// Ctrl-C, where no person can be asked to go on.
    Stopped,
}

/// Where lines come from.
pub enum Lines {
    /// A person.
    Typed(Box<Editor>),
    /// A file or another program.
    Piped(mpsc::Receiver<io::Result<Vec<u8>>>),
}

impl Lines {
    /// From whatever stdin is.
    pub fn new(schema: &Schema) -> Result<Self, Failure> {
        if io::stdin().is_terminal() {
            return Ok(Lines::Typed(Box::new(Editor::new(schema))));
        }
        let (sender, lines) = mpsc::channel(16);
        // Read beside, so that Ctrl-C is noticed while nothing comes in.
        std::thread::spawn(move || {
            for line in input::lines(io::stdin().lock()) {
                let failed = line.is_err();
                if sender.blocking_send(line).is_err() || failed {
                    return;
                }
            }
        });
        Ok(Lines::Piped(lines))
    }

    /// Whether a person writes them.
    pub fn interactive(&self) -> bool {
        matches!(self, Lines::Typed(_))
    }

    /// Waits for the next.
    pub fn next(&mut self, runtime: &Runtime) -> Result<Next, Failure> {
        match self {
            Lines::Typed(editor) => editor.next(),
            Lines::Piped(lines) => runtime.block_on(async {
                let mut whole = String::new();
                loop {
                    let line = tokio::select! {
                        line = lines.recv() => line,
                        pressed = tokio::signal::ctrl_c() => match pressed {
                            Ok(()) => return Ok(Next::Stopped),
                            Err(_) => lines.recv().await,
                        },
                    };
                    let Some(line) = line else {
                        return Ok(if whole.is_empty() { Next::Left } else { Next::Line(whole) });
                    };
                    let line = line.map_err(|error| input::unreadable("<stdin>", &error))?;
                    whole.push_str(String::from_utf8_lossy(&line).trim_end());
                    match whole.strip_suffix('\\') {
                        Some(more) => whole = format!("{more}\n"),
                        None => return Ok(Next::Line(whole)),
                    }
                }
            }),
        }
    }
}
