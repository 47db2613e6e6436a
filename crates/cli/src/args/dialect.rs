//! Value parser of `--dialect`.

use querymend_sql::Dialect;
use querymend_sql::dialect::DIALECTS;

/// Resolves a dialect by its name or an alias.
pub fn parse_dialect(name: &str) -> Result<&'static Dialect, String> {
    Dialect::from_name(name).ok_or_else(|| {
        let names: Vec<&str> = DIALECTS.iter().map(|d| d.name).collect();
        format!("there is no dialect `{name}`; there are {}", names.join(", "))
    })
}
