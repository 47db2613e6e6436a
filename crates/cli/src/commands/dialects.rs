//! `querymend dialects`: the dialects there are and the names they go by.

use querymend_sql::dialect::DIALECTS;

use crate::failure::{Exit, Failure};
use crate::out::Out;

/// Lists them.
pub fn run(out: &mut Out) -> Result<Exit, Failure> {
    let width = DIALECTS.iter().map(|dialect| dialect.name.len()).max().unwrap_or_default();
    for dialect in DIALECTS {
        let others = if dialect.other_names.is_empty() {
            String::new()
        } else {
            format!("also {}", dialect.other_names.join(", "))
        };
        out.line(format!("{:width$}  {others}", dialect.name).trim_end())?;
    }
    Ok(Exit::Done)
}
