//! A table as a file holds it: names, and rows that are read as often as needed.

use std::borrow::Cow;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::Error;

/// A value as it stands in a file.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Raw<'a> {
    Nothing,
    /// Text of a file that writes everything as text: what it means is still to be found out.
    Loose(&'a str),
    /// Text that is text.
    Text(Cow<'a, str>),
    Integer(i64),
    Number(f64),
    Boolean(bool),
    /// As a database writes it.
    Date(String),
    Timestamp(String),
    Bytes(&'a [u8]),
}

/// What is done with each row.
pub(super) type Each<'e> = &'e mut dyn FnMut(&[Raw<'_>]) -> Result<(), Error>;

/// A table in a file.
pub(super) trait Sheet {
    /// What it is called within its file; none if it is the only one.
    fn name(&self) -> Option<&str>;

    /// Names of its columns, as the file has them: some may be empty or the same.
    fn columns(&self) -> Vec<String>;

    /// Reads all rows. A row may be shorter or longer than there are names.
    fn rows(&mut self, each: Each<'_>) -> Result<(), Error>;
}

/// A table with more columns is something else.
pub(super) const MOST_COLUMNS: usize = 1_000;

/// That a file has more columns than that.
pub(super) fn too_wide(path: &std::path::Path) -> Error {
    let hint = format!("at most {MOST_COLUMNS} columns are read; leave out what is not needed");
    Error::unavailable(format!("`{}` has too many columns", path.display()), hint)
}

/// Does what is done by a crate that may panic over a damaged file, and takes that for an error of the file.
pub(super) fn guarded<T>(path: &std::path::Path, work: impl FnOnce() -> T) -> Result<T, Error> {
    // Whatever it was in the middle of is dropped with the error.
    catch_unwind(AssertUnwindSafe(work)).map_err(|_| broken(path, &"what it holds is not what it says that it holds"))
}

/// That a file is not what its name says.
pub(super) fn broken(path: &std::path::Path, why: &dyn std::fmt::Display) -> Error {
    let why: String = why.to_string().chars().take(200).collect();
    let hint = "open it in the program that wrote it and save it again, or leave it out";
    Error::unavailable(format!("`{}` cannot be read: {why}", path.display()), hint)
}
