//! Applies a policy to the tables that SQLite actually reads.
//!
//! These are the tables of views, and the shadow tables of virtual tables.

use std::collections::HashMap;

use querymend_sql::Policy;
use rusqlite::hooks::{AuthAction, AuthContext};
use rusqlite::{Connection, Result};

/// Table-valued functions that only return their argument.
const JSON_TABLE_FUNCTIONS: &[&str] = &["json_each", "json_tree", "jsonb_each", "jsonb_tree"];

/// Pragmas that virtual tables use and that do not reveal names.
const PRAGMAS_WITHOUT_NAMES: &[&str] = &["data_version", "encoding", "page_size", "user_version"];

/// Tables whose rows another table exposes, by lowercase name.
#[derive(Default)]
pub(super) struct UnderlyingTables {
    /// Shadow tables and their virtual tables: `notes_content` belongs to `notes`.
    shadow_owners: HashMap<String, String>,
    /// Virtual tables and the tables that they index.
    content_tables: HashMap<String, Vec<String>>,
    /// Tables of the file with the name of one of [`JSON_TABLE_FUNCTIONS`].
    name_clashes: Vec<String>,
}

impl UnderlyingTables {
    /// Reads the tables of the file.
    pub(super) fn load(connection: &Connection) -> Result<Self> {
        let mut underlying = Self::default();
        let sql = "SELECT lower(name), sql FROM sqlite_schema WHERE type = 'table' AND rootpage = 0";
        let virtual_tables = query_pairs(connection, sql)?;
        if !virtual_tables.is_empty() {
            let sql = "SELECT lower(name), NULL FROM pragma_table_list WHERE schema = 'main' AND type = 'shadow'";
            for (shadow, _) in query_pairs(connection, sql)? {
                let owns =
                    |name: &&String| shadow.strip_prefix(name.as_str()).is_some_and(|rest| rest.starts_with('_'));
                let owner = virtual_tables.iter().map(|(name, _)| name).filter(owns).max_by_key(|name| name.len());
                if let Some(owner) = owner.cloned() {
                    underlying.shadow_owners.insert(shadow, owner);
                }
            }
        }
        for (name, sql) in virtual_tables {
            underlying.content_tables.insert(name, parse_content_tables(&sql));
        }
        let sql = "SELECT lower(name), NULL FROM sqlite_schema WHERE lower(name) LIKE 'json%'";
        underlying.name_clashes = query_pairs(connection, sql)?.into_iter().map(|(name, _)| name).collect();
        Ok(underlying)
    }

    /// Returns whether the policy allows an action. A denied table is denied through every view,
    /// index and shadow table; reads of an allowed view are allowed.
    pub(super) fn is_allowed(&self, policy: &Policy, context: &AuthContext<'_>) -> bool {
        match context.action {
            AuthAction::Read { table_name, .. } => self.is_read_allowed(policy, table_name, context),
            AuthAction::Function { function_name } => !policy.denies_function(function_name),
            // Pragmas reveal the names and columns of tables.
            AuthAction::Pragma { pragma_name, .. } => {
                !policy.restricts_tables() || PRAGMAS_WITHOUT_NAMES.iter().any(|p| p.eq_ignore_ascii_case(pragma_name))
            }
            _ => true,
        }
    }

    fn is_read_allowed(&self, policy: &Policy, table: &str, context: &AuthContext<'_>) -> bool {
        if !policy.restricts_tables() {
            return true;
        }
        let lower = table.to_lowercase();
        // System tables reveal the names of all tables, and statistics even values.
        if policy.allow_tables.is_none() && (lower.starts_with("sqlite_") || lower == "dbstat") {
            return false;
        }
        let owner = self.shadow_owners.get(&lower);
        let mut names = vec![table];
        if lower == "sqlite_master" {
            // SQLite reports the older name, whichever the query uses.
            names.push("sqlite_schema");
        }
        names.extend(owner.map(String::as_str));
        let indexed = self.content_tables.get(owner.unwrap_or(&lower)).into_iter().flatten();
        let full = |name| -> Vec<&str> { context.database_name.into_iter().chain([name]).collect() };
        if names.iter().copied().chain(indexed.map(String::as_str)).any(|name| policy.denies_table(&full(name))) {
            return false;
        }
        let of_argument = JSON_TABLE_FUNCTIONS.contains(&lower.as_str()) && !self.name_clashes.contains(&lower);
        of_argument || names.into_iter().chain(context.accessor).any(|name| policy.allows_table(&full(name)))
    }
}

fn query_pairs(connection: &Connection, sql: &str) -> Result<Vec<(String, String)>> {
    let mut statement = connection.prepare(sql)?;
    let read = |row: &rusqlite::Row<'_>| {
        let text = |i| row.get_ref(i).map(|value| value.as_bytes_or_null().ok().flatten().unwrap_or_default().to_vec());
        Ok((String::from_utf8_lossy(&text(0)?).into_owned(), String::from_utf8_lossy(&text(1)?).into_owned()))
    };
    statement.query_map([], read)?.collect()
}

/// Returns the tables that a virtual table indexes according to its declaration: `content=…` of
/// full-text tables, and the sources of vocabulary tables.
fn parse_content_tables(declaration: &str) -> Vec<String> {
    let lower = declaration.to_lowercase();
    let Some((head, arguments)) = lower.split_once('(') else { return Vec::new() };
    let vocabulary = head.contains("fts5vocab") || head.contains("fts4aux");
    let arguments = arguments.trim_end().trim_end_matches([';', ')']).split(',');
    let name = |argument: &str| argument.trim().trim_matches(['\'', '"', '`', '[', ']', ' ']).to_string();
    let content = |argument: &str| {
        let (key, value) = argument.split_once('=')?;
        (key.trim() == "content").then(|| name(value))
    };
    let named = arguments.filter_map(|argument| if vocabulary { Some(name(argument)) } else { content(argument) });
    named.filter(|name| !name.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_content_tables_of_virtual_tables() {
        for (sql, tables) in [
            ("CREATE VIRTUAL TABLE i USING fts5(body, content='Salaries', content_rowid = 'id')", &["salaries"][..]),
            ("CREATE VIRTUAL TABLE i USING fts5(body, content = \"hr pay\")", &["hr pay"]),
            ("CREATE VIRTUAL TABLE i USING fts4(content=\"t\", a)", &["t"]),
            ("CREATE VIRTUAL TABLE i USING fts5(body, content='')", &[]),
            ("CREATE VIRTUAL TABLE i USING fts5(content, salaries)", &[]),
            ("CREATE VIRTUAL TABLE v USING fts5vocab('docs', 'row')", &["docs", "row"]),
        ] {
            assert_eq!(parse_content_tables(sql), tables, "{sql}");
        }
    }
}
