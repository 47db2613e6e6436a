//! `querymend dialects`: lists dialects and their aliases.

use querymend_sql::dialect::DIALECTS;

use crate::error::{CliError, ExitStatus};
use crate::output::Out;

/// Runs `querymend dialects`.
pub fn run(out: &mut Out) -> Result<ExitStatus, CliError> {
    let width = DIALECTS.iter().map(|dialect| dialect.name.len()).max().unwrap_or_default();
    for dialect in DIALECTS {
        let others = if dialect.other_names.is_empty() {
            String::new()
        } else {
            format!("also {}", dialect.other_names.join(", "))
        };
        out.line(format!("{:width$}  {others}", dialect.name).trim_end())?;
    }
    Ok(ExitStatus::Success)
}
