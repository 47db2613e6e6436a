//! Clarifying questions on a terminal: options with previews, and which one is chosen.

use std::io::{self, BufRead, IsTerminal, Write};

use querymend::{Clarification, Clarify, Config};

use crate::out::Out;
use crate::render::one_line;
use crate::table;

/// How often a person is asked for a number before the question is left.
const MAX_PROMPTS: usize = 3;

/// Returns what happens where a question has several readings: `--assume` and the configuration decide, else whether somebody is
/// there who can answer.
pub fn mode(assume: bool, config: &Config, is_interactive: bool) -> Clarify {
    if assume {
        return Clarify::Assume;
    }
    Clarify::from_setting(config.self_correction.ask_user, is_interactive)
}

/// Whether a person can read a question and answer it.
pub fn is_interactive() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Writes the question and its options, each with a number and its first rows.
pub fn write(clarification: &Clarification, out: &Out) {
    out.say(&one_line(&clarification.question));
    for (n, choice) in clarification.options.iter().enumerate() {
        out.say(&format!("  {}  {} ({})", n + 1, one_line(&choice.label), one_line(&choice.why)));
        if let Ok((rows, _)) = table::write(&choice.preview, table::Format::Table) {
            rows.lines().for_each(|line| out.say(&format!("     {line}")));
        }
        if choice.preview.truncated {
            out.say("     and more rows");
        }
    }
}

/// Returns the option that an answer names by its number, from 0. No answer is the first.
pub fn picked(answer: &str, clarification: &Clarification) -> Option<usize> {
    match answer.trim() {
        "" => Some(0),
        number => number.parse::<usize>().ok()?.checked_sub(1).filter(|at| *at < clarification.options.len()),
    }
}

/// Asks on the terminal which option is meant, and returns its query; `None` if nobody answers.
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
        match picked(&answer, clarification) {
            Some(at) => return Some(clarification.options[at].sql.clone()),
            None => out.say(&out_of_range(clarification)),
        }
    }
    None
}

/// Says which answers there are.
pub fn out_of_range(clarification: &Clarification) -> String {
    format!("there is no such option: type a number from 1 to {}", clarification.options.len())
}

#[cfg(test)]
mod tests {
    use querymend::Choice;
    use querymend_sql::Rows;

    use super::*;

    #[test]
    fn answers_are_numbers_and_nothing_is_the_first() {
        let choice = |label: &str| Choice {
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
            assert_eq!(picked(answer, &clarification), expected, "{answer:?}");
        }
    }

    #[test]
    fn options_and_configuration_decide_who_is_asked() {
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
