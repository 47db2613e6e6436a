//! How much a database may say about itself.

use crate::Error;

/// A database with more columns than this, or more keys, is none that a model could be told about, and reading on would only take
/// memory.
pub(crate) const MOST: usize = 1_000_000;

/// What is asked for: one more than that, to see that there is more.
pub(crate) fn limit() -> String {
    format!(" LIMIT {}", MOST + 1)
}

/// That so much was said, unless it is too much.
pub(crate) fn fits(count: usize, name: &str) -> Result<(), Error> {
    if count <= MOST { Ok(()) } else { Err(too_much(name)) }
}

/// That it is too much.
pub(crate) fn too_much(name: &str) -> Error {
    Error::unavailable(
        format!("{name} has more than {MOST} columns in its tables, too many to be read"),
        "name one database or schema in the address, or ask as a user who may only read the tables that are needed",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn l12_too_many_tables_are_said_to_be_too_many() {
        assert_eq!(fits(MOST, "postgres://me@db/shop"), Ok(()));
        let error = fits(MOST + 1, "postgres://me@db/shop").unwrap_err();
        assert!(error.to_string().contains("more than 1000000 columns") && !error.is_transient());
        assert!(error.hint().is_some_and(|hint| hint.contains("schema")));
    }
}
