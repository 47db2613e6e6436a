//! Where results and messages go: results to stdout, everything else to stderr.
//!
//! A reader that has seen enough (`| head`) is no error: what would still be written is dropped, and the command ends
//! with the exit code it would have had.

use std::fmt::Display;
use std::io::{self, BufWriter, ErrorKind, IsTerminal, Write};

use clap::ValueEnum;

use crate::failure::Failure;
use crate::render::{harmless, harmless_json};
use crate::table::Format;

/// When to use colour. It never carries meaning of its own.
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
    fn on(self, terminal: bool) -> bool {
        let unwanted = std::env::var_os("NO_COLOR").is_some_and(|v| !v.is_empty());
        let dumb = std::env::var_os("TERM").is_some_and(|v| v == "dumb");
        match self {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => terminal && !unwanted && !dumb,
        }
    }
}

/// `1 row`, `2 rows`, `0 fixes`.
pub fn counted<N: Display + PartialEq + From<u8>>(count: N, noun: &str) -> String {
    let ending = match noun {
        _ if count == N::from(1) => "",
        noun if noun.ends_with('x') => "es",
        _ => "s",
    };
    format!("{count} {noun}{ending}")
}

/// Both streams, and how much is said on them.
pub struct Out {
    stdout: BufWriter<io::Stdout>,
    closed: bool,
    quiet: bool,
    verbose: bool,
    /// Whether stdout takes colour.
    pub color: bool,
    /// Whether stderr takes colour.
    pub color_stderr: bool,
    /// Whether a person reads stdout.
    pub terminal: bool,
}

impl Out {
    /// Looks at the streams once.
    pub fn new(color: Color, quiet: bool, verbose: bool) -> Self {
        let terminal = io::stdout().is_terminal();
        Self {
            stdout: BufWriter::with_capacity(64 << 10, io::stdout()),
            closed: false,
            quiet,
            verbose,
            color: color.on(terminal),
            color_stderr: color.on(io::stderr().is_terminal()),
            terminal,
        }
    }

    /// Whether a line that changes while one looks on is welcome on stderr.
    pub fn live(&self) -> bool {
        let dumb = std::env::var_os("TERM").is_some_and(|v| v == "dumb");
        io::stderr().is_terminal() && !self.quiet && !self.verbose && !dumb
    }

    /// Writes a piece of the result.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        if self.closed {
            return Ok(());
        }
        let written = self.stdout.write_all(bytes);
        self.unless_closed(written)
    }

    /// Writes a line of the result.
    pub fn line(&mut self, text: &str) -> Result<(), Failure> {
        self.write(text.as_bytes())?;
        self.write(b"\n")
    }

    /// Writes rows. On a terminal, signs that would steer it are written out; a file or a pipe gets every byte.
    pub fn rows(&mut self, text: &str, format: Format) -> Result<(), Failure> {
        match format {
            _ if !self.terminal => self.write(text.as_bytes()),
            Format::Json => self.write(harmless_json(text).as_bytes()),
            Format::Table | Format::Csv | Format::Markdown => self.write(harmless(text).as_bytes()),
        }
    }

    /// Writes a line of JSON in the same way.
    pub fn json(&mut self, text: &str) -> Result<(), Failure> {
        self.rows(text, Format::Json)?;
        self.write(b"\n")
    }

    /// Sends what is still held back.
    pub fn flush(&mut self) -> Result<(), Failure> {
        if self.closed {
            return Ok(());
        }
        let flushed = self.stdout.flush();
        self.unless_closed(flushed)
    }

    /// Nobody reads the result any more.
    pub fn closed(&self) -> bool {
        self.closed
    }

    fn unless_closed(&mut self, outcome: io::Result<()>) -> Result<(), Failure> {
        match outcome {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => self.closed = true,
            Err(error) => {
                // Whatever is still buffered would fail again when the program ends.
                self.closed = true;
                return Err(Failure::new(format!("the result cannot be written: {error}"))
                    .hint("check the free space of the disk it is sent to"));
            }
            Ok(()) => {}
        }
        Ok(())
    }

    /// Says something in passing; `-q` keeps it quiet.
    pub fn note(&self, text: &str) {
        if !self.quiet {
            self.say(text);
        }
    }

    /// Says something that only `-v` asks for.
    pub fn detail(&self, text: &str) {
        if self.verbose {
            self.say(text);
        }
    }

    /// Says something on stderr in any case. There is nobody to tell if stderr itself is gone.
    pub fn say(&self, text: &str) {
        writeln!(io::stderr().lock(), "{}", text.trim_end_matches('\n')).ok();
    }

    /// `error: …`, then `hint: …`.
    pub fn error(&self, failure: &Failure) {
        self.say(&format!("{} {}", self.label("error:", "1;91"), harmless(&failure.what)));
        if let Some(hint) = &failure.hint {
            self.say(&format!("{} {}", self.label("hint:", "1;96"), harmless(hint)));
        }
    }

    fn label(&self, word: &str, style: &str) -> String {
        if self.color_stderr { format!("\x1b[{style}m{word}\x1b[0m") } else { word.to_string() }
    }
}

#[cfg(test)]
mod tests {
    use super::counted;

    #[test]
    fn only_one_is_singular() {
        for (count, noun, words) in [
            (0_u32, "row", "0 rows"),
            (1, "row", "1 row"),
            (2, "row", "2 rows"),
            (1, "fix", "1 fix"),
            (3, "fix", "3 fixes"),
        ] {
            assert_eq!(counted(count, noun), words);
        }
        assert_eq!((counted(1_u64, "call"), counted(101_usize, "call")), ("1 call".into(), "101 calls".into()));
    }
}
