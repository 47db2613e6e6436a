//! What a policy means for the names that SQLite itself uses: tables behind views, and the tables in which virtual tables
//! keep what they hold.

use std::collections::HashMap;

use querymend_sql::Policy;
use rusqlite::hooks::{AuthAction, AuthContext};
use rusqlite::{Connection, Result};

/// Tables that are only another form of their argument.
const OF_ARGUMENTS: &[&str] = &["json_each", "json_tree", "jsonb_each", "jsonb_tree"];

/// Pragmas that virtual tables ask for and that tell no names.
const NAMELESS_PRAGMAS: &[&str] = &["data_version", "encoding", "page_size", "user_version"];

/// Whose rows stand behind a table, by names in lower case.
#[derive(Default)]
pub(super) struct Behind {
    /// A shadow table belongs to its virtual table: `notes_content` to `notes`.
    owners: HashMap<String, String>,
    /// A virtual table may be the index of other tables.
    indexed: HashMap<String, Vec<String>>,
    /// Tables of the file that are called like one of [`OF_ARGUMENTS`].
    misleading: Vec<String>,
}

impl Behind {
    /// Looks at the tables of the file.
    pub(super) fn read(connection: &Connection) -> Result<Self> {
        let mut behind = Self::default();
        let sql = "SELECT lower(name), sql FROM sqlite_schema WHERE type = 'table' AND rootpage = 0";
        let virtual_tables = pairs(connection, sql)?;
        if !virtual_tables.is_empty() {
            let sql = "SELECT lower(name), NULL FROM pragma_table_list WHERE schema = 'main' AND type = 'shadow'";
            for (shadow, _) in pairs(connection, sql)? {
                let owns =
                    |name: &&String| shadow.strip_prefix(name.as_str()).is_some_and(|rest| rest.starts_with('_'));
                let owner = virtual_tables.iter().map(|(name, _)| name).filter(owns).max_by_key(|name| name.len());
                if let Some(owner) = owner.cloned() {
                    behind.owners.insert(shadow, owner);
                }
            }
        }
        for (name, sql) in virtual_tables {
            behind.indexed.insert(name, indexed(&sql));
        }
        let sql = "SELECT lower(name), NULL FROM sqlite_schema WHERE lower(name) LIKE 'json%'";
        behind.misleading = pairs(connection, sql)?.into_iter().map(|(name, _)| name).collect();
        Ok(behind)
    }

    /// Whether the policy lets a query do this. A denied table is denied behind every view, index and shadow; what an
    /// allowed view reads is allowed.
    pub(super) fn may(&self, policy: &Policy, context: &AuthContext<'_>) -> bool {
        match context.action {
            AuthAction::Read { table_name, .. } => self.may_read(policy, table_name, context),
            AuthAction::Function { function_name } => !policy.denies_function(function_name),
            // They tell the names and columns of tables.
            AuthAction::Pragma { pragma_name, .. } => {
                !policy.restricts_tables() || NAMELESS_PRAGMAS.iter().any(|p| p.eq_ignore_ascii_case(pragma_name))
            }
            _ => true,
        }
    }

    fn may_read(&self, policy: &Policy, table: &str, context: &AuthContext<'_>) -> bool {
        if !policy.restricts_tables() {
            return true;
        }
        let lower = table.to_lowercase();
        // The system's own tables tell the names of all, and statistics even values.
        if policy.allow_tables.is_none() && (lower.starts_with("sqlite_") || lower == "dbstat") {
            return false;
        }
        let owner = self.owners.get(&lower);
        let mut names = vec![table];
        if lower == "sqlite_master" {
            // SQLite calls it by its older name, whatever the query calls it.
            names.push("sqlite_schema");
        }
        names.extend(owner.map(String::as_str));
        let indexed = self.indexed.get(owner.unwrap_or(&lower)).into_iter().flatten();
        let full = |name| -> Vec<&str> { context.database_name.into_iter().chain([name]).collect() };
        if names.iter().copied().chain(indexed.map(String::as_str)).any(|name| policy.denies_table(&full(name))) {
            return false;
        }
        let of_argument = OF_ARGUMENTS.contains(&lower.as_str()) && !self.misleading.contains(&lower);
        of_argument || names.into_iter().chain(context.accessor).any(|name| policy.allows_table(&full(name)))
    }
}

fn pairs(connection: &Connection, sql: &str) -> Result<Vec<(String, String)>> {
    let mut statement = connection.prepare(sql)?;
    let read = |row: &rusqlite::Row<'_>| {
        let text = |i| row.get_ref(i).map(|value| value.as_bytes_or_null().ok().flatten().unwrap_or_default().to_vec());
        Ok((String::from_utf8_lossy(&text(0)?).into_owned(), String::from_utf8_lossy(&text(1)?).into_owned()))
    };
    statement.query_map([], read)?.collect()
}

/// The tables that a virtual table is an index of, by its declaration: `content=…` of full-text tables, and what
/// vocabularies are made from.
fn indexed(declaration: &str) -> Vec<String> {
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
    fn what_a_virtual_table_indexes_is_read_from_its_declaration() {
        for (sql, tables) in [
            ("CREATE VIRTUAL TABLE i USING fts5(body, content='Salaries', content_rowid = 'id')", &["salaries"][..]),
            ("CREATE VIRTUAL TABLE i USING fts5(body, content = \"hr pay\")", &["hr pay"]),
            ("CREATE VIRTUAL TABLE i USING fts4(content=\"t\", a)", &["t"]),
            ("CREATE VIRTUAL TABLE i USING fts5(body, content='')", &[]),
            ("CREATE VIRTUAL TABLE i USING fts5(content, salaries)", &[]),
            ("CREATE VIRTUAL TABLE v USING fts5vocab('docs', 'row')", &["docs", "row"]),
        ] {
            assert_eq!(indexed(sql), tables, "{sql}");
        }
    }
}
