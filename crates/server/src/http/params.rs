//! Query parameters shared by several routes.

use serde::Deserialize;

/// Query parameter that selects a database.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DatabaseParam {
    pub database: Option<String>,
}
