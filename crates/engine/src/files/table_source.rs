//! Interface of a table in a file: column names, and rows that can be read repeatedly.

use std::borrow::Cow;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::Error;

/// Value as read from a file.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum RawValue<'a> {
    Null,
    /// Text of a format without types; its type has to be inferred.
    Untyped(&'a str),
    /// Text of a format with types.
    Text(Cow<'a, str>),
    Integer(i64),
    Number(f64),
    Boolean(bool),
    /// In ISO format.
    Date(String),
    Timestamp(String),
    Bytes(&'a [u8]),
}

/// Callback for each row.
pub(super) type RowCallback<'e> = &'e mut dyn FnMut(&[RawValue<'_>]) -> Result<(), Error>;

/// Table in a file.
pub(super) trait TableSource {
    /// Returns the table's name within its file, or `None` if it is the only table.
    fn name(&self) -> Option<&str>;

    /// Returns the column names as in the file; they may be empty or duplicated.
    fn column_names(&self) -> Vec<String>;

    /// Calls `each` for every row. A row may have fewer or more values than there are names.
    fn for_each_row(&mut self, each: RowCallback<'_>) -> Result<(), Error>;
}

/// Maximum number of columns per table.
pub(super) const MAX_COLUMNS: usize = 1_000;

pub(super) fn too_many_columns(path: &std::path::Path) -> Error {
    let hint = format!("at most {MAX_COLUMNS} columns are read; leave out what is not needed");
    Error::unavailable(format!("`{}` has too many columns", path.display()), hint)
}

/// Runs code of a crate that may panic on a corrupted file, and turns a panic into an error.
pub(super) fn catch_panic<T>(path: &std::path::Path, work: impl FnOnce() -> T) -> Result<T, Error> {
    // Any state left inconsistent by the panic is dropped with the error.
    catch_unwind(AssertUnwindSafe(work))
        .map_err(|_| unreadable_file(path, &"its content does not match its declared structure"))
}

/// Error for a file whose contents do not match its format.
pub(super) fn unreadable_file(path: &std::path::Path, why: &dyn std::fmt::Display) -> Error {
    let why: String = why.to_string().chars().take(200).collect();
    let hint = "open it in the program that wrote it and save it again, or leave it out";
    Error::unavailable(format!("`{}` cannot be read: {why}", path.display()), hint)
}
