//! What an evaluation leaves in a folder.

use std::fs;
use std::path::Path;

use querymend_eval::{Comparison, Report};

use crate::failure::Failure;

/// The folder, made if it is not there.
pub fn folder(folder: Option<&Path>) -> Result<Option<&Path>, Failure> {
    if let Some(folder) = folder {
        fs::create_dir_all(folder).map_err(|error| unwritable(folder, &error))?;
    }
    Ok(folder)
}

/// A report as Markdown and as CSV.
pub fn report(folder: &Path, name: &str, report: &Report) -> Result<(), Failure> {
    write(&folder.join(format!("{name}.md")), &report.markdown())?;
    write(&folder.join(format!("{name}.csv")), &report.csv())
}

/// A comparison as Markdown and as a chart.
pub fn comparison(folder: &Path, comparison: &Comparison) -> Result<(), Failure> {
    write(&folder.join("compare.md"), &comparison.markdown())?;
    write(&folder.join("compare.svg"), &comparison.chart().svg())
}

/// Writes a file.
pub fn write(path: &Path, text: &str) -> Result<(), Failure> {
    fs::write(path, text).map_err(|error| unwritable(path, &error))
}

fn unwritable(path: &Path, error: &std::io::Error) -> Failure {
    Failure::new(format!("`{}` cannot be written: {error}", path.display()))
        .hint("check the folder and its permissions")
}
