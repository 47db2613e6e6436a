//! `querymend explain`: documentation of findings.

use clap::{Args, ValueEnum};
use querymend_sql::{RULES, Rule};

use crate::did_you_mean::closest_name;
use crate::error::{CliError, ExitStatus};
use crate::output::Out;

/// Output format of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PageFormat {
    /// Text on a terminal, Markdown otherwise
    Auto,
    /// Plain text
    Text,
    /// Markdown, as stored
    Markdown,
}

/// Explain a finding, or list all findings
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  querymend explain
  querymend explain unknown-column
  querymend explain fan-out --format markdown > fan-out.md")]
pub struct ExplainCommand {
    /// Code of the finding, as in the brackets of `error[unknown-column]`
    pub code: Option<String>,
    /// Output format of the page
    #[arg(long, value_enum, default_value_t = PageFormat::Auto)]
    pub format: PageFormat,
}

/// Runs `querymend explain`.
pub fn run(explain: &ExplainCommand, out: &mut Out) -> Result<ExitStatus, CliError> {
    let markdown = explain.format == PageFormat::Markdown || (explain.format == PageFormat::Auto && !out.is_terminal);
    let color = out.color;
    match &explain.code {
        None => out.write(list_rules(markdown, color).as_bytes())?,
        Some(code) => {
            let rule = find_rule(code)?;
            let page =
                if markdown { format!("{}\n", rule.page.trim_end()) } else { render_page_as_text(rule.page, color) };
            out.write(page.as_bytes())?;
        }
    }
    Ok(ExitStatus::Success)
}

/// Resolves a rule by its code, ignoring case, underscores and the brackets of a copied message.
fn find_rule(code: &str) -> Result<&'static Rule, CliError> {
    let inner = code.split_once('[').map_or(code, |(_, rest)| rest.trim_end_matches([']', ':']));
    let plain = inner.trim().to_lowercase().replace('_', "-");
    Rule::from_code(&plain).ok_or_else(|| {
        let hint = match closest_name(&plain, RULES.iter().map(|rule| rule.code)) {
            Some(near) => format!("did you mean `{near}`? `querymend explain` lists all"),
            None => "`querymend explain` lists all".into(),
        };
        CliError::new(format!("there is no finding `{code}`")).hint(hint)
    })
}

fn list_rules(markdown: bool, color: bool) -> String {
    let mut groups: Vec<&str> = Vec::new();
    for rule in RULES {
        if !groups.contains(&rule.group.as_str()) {
            groups.push(rule.group.as_str());
        }
    }
    let width = RULES.iter().map(|rule| rule.code.len()).max().unwrap_or_default();
    let mut text = String::new();
    for (i, group) in groups.iter().enumerate() {
        let gap = if i == 0 { "" } else { "\n" };
        let title = if markdown { format!("## {group}") } else { bold(group, color) };
        text.push_str(&format!("{gap}{title}\n"));
        for rule in RULES.iter().filter(|rule| rule.group.as_str() == *group) {
            text.push_str(&if markdown {
                format!("- `{}`: {}\n", rule.code, rule.summary())
            } else {
                format!("  {:width$}  {}\n", rule.code, rule.summary())
            });
        }
    }
    text
}

/// Renders Markdown as plain text: bold headings, and code blocks indented under their language.
fn render_page_as_text(page: &str, color: bool) -> String {
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
    fn renders_pages_as_plain_text() {
        let page =
            "# a-rule\nWhat it is.\n<!-- schema: shop -->\n## Confidence\nVery.\n```sql\nSELECT 1\n\nFROM t\n```\n";
        assert_eq!(
            render_page_as_text(page, false),
            "a-rule\nWhat it is.\n\nConfidence\nVery.\n  sql:\n    SELECT 1\n\n    FROM t\n"
        );
        assert!(render_page_as_text(page, true).starts_with("\x1b[1ma-rule\x1b[0m\n"));
    }

    #[test]
    fn finds_rules_by_pasted_codes() {
        for code in ["unknown-column", "error[unknown-column]:", "Unknown_Column"] {
            assert_eq!(find_rule(code).map(|rule| rule.code), Ok("unknown-column"), "{code}");
        }
    }
}
