//! What may be asked of a database: tables, functions, comments and sizes.

use serde::{Deserialize, Serialize};

/// What is done with comments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Comments {
    /// They are removed before anything is sent, and that is noted.
    #[default]
    Strip,
    /// A query with a comment is refused.
    Reject,
}

/// The rules of the house. The default allows reading every table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Policy {
    /// Only these tables may be read; empty allows all. `schema.table` and `schema.*` are understood.
    pub allow_tables: Vec<String>,
    /// These tables may never be read, whatever else says so.
    pub deny_tables: Vec<String>,
    /// Functions that are known to be harmless although the dialect does not list them.
    pub allow_functions: Vec<String>,
    /// Functions that are refused besides the dangerous ones.
    pub deny_functions: Vec<String>,
    /// What is done with comments.
    pub comments: Comments,
    /// The longest text that is looked at, in bytes.
    pub max_bytes: usize,
    /// How deep a query may be nested.
    pub max_depth: usize,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            allow_tables: Vec::new(),
            deny_tables: Vec::new(),
            allow_functions: Vec::new(),
            deny_functions: Vec::new(),
            comments: Comments::Strip,
            max_bytes: 1 << 20,
            max_depth: 64,
        }
    }
}

impl Policy {
    /// Whether a table may be read; names are compared without case.
    pub fn allows_table(&self, schema: Option<&str>, table: &str) -> bool {
        // A table without a schema may be in any: it is denied if one of them is, and allowed only by its own name.
        let denied = self.deny_tables.iter().any(|p| fits(p, schema, table, schema.is_none()));
        let allowed = self.allow_tables.is_empty() || self.allow_tables.iter().any(|p| fits(p, schema, table, false));
        allowed && !denied
    }
}

fn fits(pattern: &str, schema: Option<&str>, table: &str, any_schema: bool) -> bool {
    match pattern.rsplit_once('.') {
        Some((s, t)) => {
            let same = any_schema && t != "*" || schema.is_some_and(|x| x.eq_ignore_ascii_case(s));
            same && (t == "*" || t.eq_ignore_ascii_case(table))
        }
        None => pattern == "*" || pattern.eq_ignore_ascii_case(table),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deny_wins_over_allow() {
        let policy = Policy {
            allow_tables: vec!["sales.*".into(), "people".into()],
            deny_tables: vec!["salaries".into(), "hr.people".into()],
            ..Policy::default()
        };
        for (schema, table, allowed) in [
            (Some("sales"), "orders", true),
            (None, "People", false),
            (Some("public"), "People", true),
            (Some("sales"), "salaries", false),
            (None, "orders", false),
        ] {
            assert_eq!(policy.allows_table(schema, table), allowed, "{schema:?}.{table}");
        }
    }
}
