//! Clarifying questions on a terminal: options with previews, and the user's choice.

use std::io::{self, BufRead, IsTerminal, Write};

use querymend::{Clarification, Clarify, Config};

use crate::output::text::one_line;
use crate::output::{Out, table};

/// Maximum number of prompts before the question is abandoned.
const MAX_PROMPTS: usize = 3;

/// Returns the handling of ambiguous questions: `--assume` first, then the configuration, then
/// whether the session is interactive.
pub fn mode(assume: bool, config: &Config, is_interactive: bool) -> Clarify {
    if assume {
        return Clarify::Assume;
    }
    Clarify::from_setting(config.self_correction.ask_user, is_interactive)
}

/// Returns whether stdin and stderr are terminals, so that a user can read a question and answer
/// it.
pub fn is_interactive() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Writes the question and its numbered options, each with a preview of its rows.
pub fn write(clarification: &Clarification, out: &Out) {
    out.message(&one_line(&clarification.question));
    for (n, choice) in clarification.options.iter().enumerate() {
        out.message(&format!("  {}  {} ({})", n + 1, one_line(&choice.label), one_line(&choice.why)));
        if let Ok((rows, _)) = table::render_rows(&choice.preview, table::ResultFormat::Table) {
            rows.lines().for_each(|line| out.message(&format!("     {line}")));
        }
        if choice.preview.truncated {
            out.message("     and more rows");
        }
    }
}

/// Returns the 0-based index of the option that an answer selects by number. An empty answer
/// selects the first.
pub fn parse_choice(answer: &str, clarification: &Clarification) -> Option<usize> {
    match answer.trim() {
        "" => Some(0),
        number => number.parse::<usize>().ok()?.checked_sub(1).filter(|at| *at < clarification.options.len()),
    }
}

/// Prompts for an option on the terminal and returns its query, or `None` if there is no valid
/// answer.
pub fn prompt(clarification: &Clarification, out: &Out) -> Option<String> {
    write(clarification, out);
    for _ in 0..MAX_PROMPTS {
        let mut stderr = io::stderr().lock();
        write!(stderr, "number [1]: ").and_then(|()| stderr.flush()).ok()?;
        drop(stderr);
        let mut answer = String::new();
        if io::stdin().lock().read_line(&mut answer).ok()? == 0 {
            return None;
        }
        match parse_choice(&answer, clarification) {
            Some(at) => return Some(clarification.options[at].sql.clone()),
            None => out.message(&out_of_range(clarification)),
        }
    }
    None
}

/// Returns the error message for an answer that is not the number of an option.
pub fn out_of_range(clarification: &Clarification) -> String {
    format!("there is no such option: type a number from 1 to {}", clarification.options.len())
}

#[cfg(test)]
mod tests {
    use querymend::ClarificationChoice;
    use querymend_sql::Rows;

    use super::*;

    #[test]
    fn parses_choice_numbers_and_defaults_to_the_first() {
        let choice = |label: &str| ClarificationChoice {
            label: label.into(),
            sql: "SELECT 1".into(),
            why: "it is there".into(),
            preview: Rows::default(),
        };
        let clarification = Clarification { question: "Which?".into(), options: vec![choice("a"), choice("b")] };
        for (answer, expected) in [
            ("", Some(0)),
            ("\n", Some(0)),
            ("1", Some(0)),
            (" 2 \n", Some(1)),
            ("0", None),
            ("3", None),
            ("-1", None),
            ("b", None),
        ] {
            assert_eq!(parse_choice(answer, &clarification), expected, "{answer:?}");
        }
    }

    #[test]
    fn options_and_configuration_set_the_clarify_mode() {
        let config = |ask: Option<bool>| ask.map_or_else(Config::default, |ask| Config::default().with_ask_user(ask));
        for (assume, ask_user, is_interactive, expected) in [
            (false, None, true, Clarify::Ask),
            (false, None, false, Clarify::Off),
            (false, Some(true), false, Clarify::Ask),
            (false, Some(false), true, Clarify::Off),
            (true, None, true, Clarify::Assume),
            (true, Some(true), false, Clarify::Assume),
        ] {
            assert_eq!(mode(assume, &config(ask_user), is_interactive), expected);
        }
    }
}
