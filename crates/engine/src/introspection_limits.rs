//! Limits on the size of a database catalog.

use crate::Error;

/// Maximum number of catalog rows (columns or keys). A larger schema is useless to a model and
/// would only exhaust memory.
pub(crate) const MAX_CATALOG_ROWS: usize = 1_000_000;

/// Returns a LIMIT clause for one row more than the maximum, so that an excess is detected.
pub(crate) fn limit_clause() -> String {
    format!(" LIMIT {}", MAX_CATALOG_ROWS + 1)
}

/// Returns an error if a catalog is too large.
pub(crate) fn check_catalog_size(count: usize, name: &str) -> Result<(), Error> {
    if count <= MAX_CATALOG_ROWS { Ok(()) } else { Err(catalog_too_large(name)) }
}

/// Error for a catalog that is too large.
pub(crate) fn catalog_too_large(name: &str) -> Error {
    Error::unavailable(
        format!("{name} has more than {MAX_CATALOG_ROWS} columns in its tables, which is too many to read"),
        "name one database or schema in the address, or connect as a user that can read only the tables that are needed",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rejects_catalogs_with_too_many_columns() {
        assert_eq!(check_catalog_size(MAX_CATALOG_ROWS, "postgres://me@db/shop"), Ok(()));
        let error = check_catalog_size(MAX_CATALOG_ROWS + 1, "postgres://me@db/shop").unwrap_err();
        assert!(error.to_string().contains("more than 1000000 columns") && !error.is_transient());
        assert!(error.hint().is_some_and(|hint| hint.contains("schema")));
    }
}
