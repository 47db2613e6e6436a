//! Names that a query uses, and the tables that it may use.

use schemars::JsonSchema;
use serde::Serialize;

/// Names that a query uses, tables that it may use and its SQL, for logs and `--explain`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct QueryReferences {
    /// Tables in FROM as written, including unknown ones.
    pub tables: Vec<String>,
    /// Tables of `tables` that are not in the schema; absent if there are none or no schema.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unknown_tables: Vec<String>,
    /// Names of the CTEs.
    pub ctes: Vec<String>,
    /// Aliases in FROM with their tables: `p` → `products`; empty for a subquery or a CTE.
    pub aliases: Vec<(String, String)>,
    /// Tables that the policy allows; `null` if all are allowed.
    pub allowed_tables: Option<Vec<String>>,
    /// SQL that was extracted from the text and reviewed.
    pub sql: String,
}
