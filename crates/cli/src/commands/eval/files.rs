//! Output files of an evaluation.

use std::fs;
use std::path::Path;

use querymend_eval::{EvalReport, RunComparison};

use crate::error::CliError;

/// Creates the folder if it does not exist.
pub fn create_folder(folder: Option<&Path>) -> Result<Option<&Path>, CliError> {
    if let Some(folder) = folder {
        fs::create_dir_all(folder).map_err(|error| write_error(folder, &error))?;
    }
    Ok(folder)
}

/// Writes a report as Markdown and CSV.
pub fn write_report(folder: &Path, name: &str, report: &EvalReport) -> Result<(), CliError> {
    write_file(&folder.join(format!("{name}.md")), &report.markdown())?;
    write_file(&folder.join(format!("{name}.csv")), &report.to_csv())
}

/// Writes a comparison as Markdown and as an SVG chart.
pub fn write_comparison(folder: &Path, comparison: &RunComparison) -> Result<(), CliError> {
    write_file(&folder.join("compare.md"), &comparison.markdown())?;
    write_file(&folder.join("compare.svg"), &comparison.chart().svg())
}

/// Writes a file.
pub fn write_file(path: &Path, text: &str) -> Result<(), CliError> {
    fs::write(path, text).map_err(|error| write_error(path, &error))
}

fn write_error(path: &Path, error: &std::io::Error) -> CliError {
    CliError::new(format!("`{}` cannot be written: {error}", path.display()))
        .hint("check the folder and its permissions")
}
