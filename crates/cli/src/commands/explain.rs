//! `querymend explain`: what a finding means, how it is found and how it is mended.

use clap::{Args, ValueEnum};
use querymend_sql::{RULES, Rule};

use crate::failure::{Exit, Failure};
use crate::nearest::nearest;
use crate::out::Out;

/// How a page is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Text on a terminal, Markdown elsewhere
    Auto,
    /// Readable as it is
    Text,
    /// As it is stored
    Markdown,
}

/// Explain a finding, or list all there are
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  querymend explain
  querymend explain unknown-column
  querymend explain fan-out --format markdown > fan-out.md")]
pub struct Explain {
    /// Code of the finding, as it stands in the brackets of `error[unknown-column]`
    pub code: Option<String>,
    /// How the page is written
    #[arg(long, value_enum, default_value_t = Format::Auto)]
    pub format: Format,
}

/// Does it.
pub fn run(explain: &Explain, out: &mut Out) -> Result<Exit, Failure> {
    let markdown = explain.format == Format::Markdown || (explain.format == Format::Auto && !out.terminal);
    let color = out.color;
    match &explain.code {
        None => out.write(list(markdown, color).as_bytes())?,
        Some(code) => {
            let rule = find(code)?;
            let page = if markdown { format!("{}\n", rule.page.trim_end()) } else { readable(rule.page, color) };
            out.write(page.as_bytes())?;
        }
    }
    Ok(Exit::Done)
}

/// The rule of that code; brackets, case and underscores that come with copying do not matter.
fn find(code: &str) -> Result<&'static Rule, Failure> {
    let inner = code.split_once('[').map_or(code, |(_, rest)| rest.trim_end_matches([']', ':']));
    let plain = inner.trim().to_lowercase().replace('_', "-");
    Rule::named(&plain).ok_or_else(|| {
        let hint = match nearest(&plain, RULES.iter().map(|rule| rule.code)) {
            Some(near) => format!("did you mean `{near}`? `querymend explain` lists all"),
            None => "`querymend explain` lists all".into(),
        };
        Failure::new(format!("there is no finding `{code}`")).hint(hint)
    })
}

fn list(markdown: bool, color: bool) -> String {
    let mut groups: Vec<&str> = Vec::new();
    for rule in RULES {
        if !groups.contains(&rule.group) {
            groups.push(rule.group);
        }
    }
    let width = RULES.iter().map(|rule| rule.code.len()).max().unwrap_or_default();
    let mut text = String::new();
    for (i, group) in groups.iter().enumerate() {
        let gap = if i == 0 { "" } else { "\n" };
        let title = if markdown { format!("## {group}") } else { bold(group, color) };
        text.push_str(&format!("{gap}{title}\n"));
        for rule in RULES.iter().filter(|rule| rule.group == *group) {
            text.push_str(&if markdown {
                format!("- `{}`: {}\n", rule.code, rule.summary())
            } else {
                format!("  {:width$}  {}\n", rule.code, rule.summary())
            });
        }
    }
    text
}

/// A page without its Markdown signs: headings stand out, blocks are indented under their name.
fn readable(page: &str, color: bool) -> String {
    let mut text = String::new();
    let mut in_block = false;
    for line in page.trim_end().lines() {
        if let Some(name) = line.trim_start().strip_prefix("```") {
            in_block = !in_block;
            if in_block && !name.trim().is_empty() {
                text.push_str(&format!("  {}:\n", name.trim()));
            }
        } else if in_block {
            text.push_str(format!("    {line}").trim_end());
            text.push('\n');
        } else if let Some(heading) = line.strip_prefix('#') {
            let heading = heading.trim_start_matches('#').trim();
            let gap = if text.is_empty() { "" } else { "\n" };
            text.push_str(&format!("{gap}{}\n", bold(heading, color)));
        } else if !line.trim_start().starts_with("<!--") {
            text.push_str(line);
            text.push('\n');
        }
    }
    text
}

fn bold(text: &str, color: bool) -> String {
    if color { format!("\x1b[1m{text}\x1b[0m") } else { text.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_read_well_without_markdown() {
        let page =
            "# a-rule\nWhat it is.\n<!-- schema: shop -->\n## How sure\nVery.\n```sql\nSELECT 1\n\nFROM t\n```\n";
        assert_eq!(
            readable(page, false),
            "a-rule\nWhat it is.\n\nHow sure\nVery.\n  sql:\n    SELECT 1\n\n    FROM t\n"
        );
        assert!(readable(page, true).starts_with("\x1b[1ma-rule\x1b[0m\n"));
    }

    #[test]
    fn codes_are_found_as_people_paste_them() {
        for code in ["unknown-column", "error[unknown-column]:", "Unknown_Column"] {
            assert_eq!(find(code).map(|rule| rule.code), Ok("unknown-column"), "{code}");
        }
    }
}
