//! Formatting of values in reports.

/// Formats a share from 0 to 1 as a percentage: `62.5%`.
pub(crate) fn percent(share: f64) -> String {
    format!("{:.1}%", share * 100.0)
}

/// Returns `yes`, `no`, or an empty text if it is unknown.
pub(crate) fn yes_or_no(truth: Option<bool>) -> &'static str {
    match truth {
        Some(true) => "yes",
        Some(false) => "no",
        None => "",
    }
}

/// Escapes text for a cell of a Markdown table.
pub(crate) fn markdown_cell(text: &str) -> String {
    text.replace('|', "\\|").split_whitespace().collect::<Vec<_>>().join(" ")
}
