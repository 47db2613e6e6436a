//! Output streams: results go to stdout, everything else to stderr.
//!
//! A closed pipe (`| head`) is not an error: further output is dropped, and the command ends with
//! the exit code it would have had.

pub(crate) mod answer;
pub(crate) mod diagnostics;
pub(crate) mod json;
pub(crate) mod progress;
pub(crate) mod sarif;
pub(crate) mod table;
pub(crate) mod text;
pub(crate) mod trace_view;

use std::io::{self, BufWriter, ErrorKind, IsTerminal, Write};

use clap::ValueEnum;

use crate::error::CliError;
use crate::output::json::sanitize_json_for_terminal;
use crate::output::table::ResultFormat;
use crate::output::text::sanitize_for_terminal;

/// Output format of commands that print text or JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum OutputFormat {
    /// Text, for people
    Text,
    /// JSON, for programs
    Json,
}

/// Color mode. Color never carries meaning of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Color {
    /// On a terminal, unless NO_COLOR is set
    #[default]
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

impl Color {
    fn is_enabled(self, terminal: bool) -> bool {
        let unwanted = std::env::var_os("NO_COLOR").is_some_and(|v| !v.is_empty());
        let dumb = std::env::var_os("TERM").is_some_and(|v| v == "dumb");
        match self {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => terminal && !unwanted && !dumb,
        }
    }
}

/// Both output streams, with verbosity and color settings.
pub struct Out {
    stdout: BufWriter<io::Stdout>,
    closed: bool,
    quiet: bool,
    verbose: bool,
    /// `true` if stdout uses colors.
    pub color: bool,
    /// `true` if stderr uses colors.
    pub color_stderr: bool,
    /// `true` if stdout is a terminal.
    pub is_terminal: bool,
}

impl Out {
    /// Detects terminals and color support.
    pub fn new(color: Color, quiet: bool, verbose: bool) -> Self {
        let terminal = io::stdout().is_terminal();
        Self {
            stdout: BufWriter::with_capacity(64 << 10, io::stdout()),
            closed: false,
            quiet,
            verbose,
            color: color.is_enabled(terminal),
            color_stderr: color.is_enabled(io::stderr().is_terminal()),
            is_terminal: terminal,
        }
    }

    /// Returns whether stderr can show a progress line.
    pub fn is_live(&self) -> bool {
        let dumb = std::env::var_os("TERM").is_some_and(|v| v == "dumb");
        io::stderr().is_terminal() && !self.quiet && !self.verbose && !dumb
    }

    /// Writes bytes of the result.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), CliError> {
        if self.closed {
            return Ok(());
        }
        let written = self.stdout.write_all(bytes);
        self.ignore_broken_pipe(written)
    }

    /// Writes a line of the result.
    pub fn line(&mut self, text: &str) -> Result<(), CliError> {
        self.write(text.as_bytes())?;
        self.write(b"\n")
    }

    /// Writes rows. On a terminal, control characters are escaped to prevent terminal escape
    /// injection; a file or a pipe gets the exact bytes.
    pub fn rows(&mut self, text: &str, format: ResultFormat) -> Result<(), CliError> {
        match format {
            _ if !self.is_terminal => self.write(text.as_bytes()),
            ResultFormat::Json => self.write(sanitize_json_for_terminal(text).as_bytes()),
            ResultFormat::Table | ResultFormat::Csv | ResultFormat::Markdown => {
                self.write(sanitize_for_terminal(text).as_bytes())
            }
        }
    }

    /// Writes a line of JSON, escaped like rows.
    pub fn json(&mut self, text: &str) -> Result<(), CliError> {
        self.rows(text, ResultFormat::Json)?;
        self.write(b"\n")
    }

    /// Flushes buffered output.
    pub fn flush(&mut self) -> Result<(), CliError> {
        if self.closed {
            return Ok(());
        }
        let flushed = self.stdout.flush();
        self.ignore_broken_pipe(flushed)
    }

    /// Returns whether the reader of stdout is gone.
    pub fn is_closed(&self) -> bool {
        self.closed
    }

    fn ignore_broken_pipe(&mut self, outcome: io::Result<()>) -> Result<(), CliError> {
        match outcome {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => self.closed = true,
            Err(error) => {
                // Buffered output would fail again at exit.
                self.closed = true;
                return Err(
                    CliError::new(format!("the result cannot be written: {error}")).hint("check the free disk space")
                );
            }
            Ok(()) => {}
        }
        Ok(())
    }

    /// Writes a note to stderr; suppressed by `-q`.
    pub fn note(&self, text: &str) {
        if !self.quiet {
            self.message(text);
        }
    }

    /// Writes a detail to stderr, only with `-v`.
    pub fn detail(&self, text: &str) {
        if self.verbose {
            self.message(text);
        }
    }

    /// Writes a message to stderr. If stderr is closed, there is no way to report it.
    pub fn message(&self, text: &str) {
        writeln!(io::stderr().lock(), "{}", text.trim_end_matches('\n')).ok();
    }

    /// Writes `error: …`, then `hint: …`.
    pub fn error(&self, failure: &CliError) {
        self.message(&format!("{} {}", self.label("error:", "1;91"), sanitize_for_terminal(&failure.message)));
        if let Some(hint) = &failure.hint {
            self.message(&format!("{} {}", self.label("hint:", "1;96"), sanitize_for_terminal(hint)));
        }
    }

    fn label(&self, word: &str, style: &str) -> String {
        if self.color_stderr { format!("\x1b[{style}m{word}\x1b[0m") } else { word.to_string() }
    }
}
