//! Tables as DDL text, for models and agents.

use std::sync::Arc;

use querymend::{Problem, ProblemCode};
use querymend_sql::schema::{Table, render_ddl};
use querymend_sql::{Dialect, Schema};

use super::Service;
use crate::auth::user::User;

/// Maximum number of names listed in the hint for an unknown table.
const MAX_NAMES_IN_HINT: usize = 30;

/// Maximum number of tables named in one request.
const MAX_NAMED_TABLES: usize = 200;

/// Selected tables of a database that a user may read.
pub struct SelectedTables {
    /// Name of the database.
    pub database: String,
    /// SQL dialect of the database.
    pub dialect: &'static Dialect,
    schema: Arc<Schema>,
    /// Indices of the selected tables in the schema.
    selected: Vec<usize>,
}

impl SelectedTables {
    /// Returns the selected tables.
    pub fn iter(&self) -> impl Iterator<Item = &Table> {
        self.selected.iter().filter_map(|index| self.schema.tables().get(*index))
    }

    /// Returns as many complete CREATE TABLE statements as fit, and their number.
    pub fn ddl(&self, max_bytes: usize) -> (String, usize) {
        let mut text = String::new();
        for (written, table) in self.iter().enumerate() {
            let ddl = render_ddl(table, self.dialect);
            if text.len() + ddl.len() > max_bytes {
                return (text, written);
            }
            text.push_str(&ddl);
        }
        (text, self.selected.len())
    }
}

impl Service {
    /// Returns the named tables that a user may read; all of them if none is named.
    pub async fn tables(
        &self,
        user: &User,
        database: Option<&str>,
        table_names: &[String],
    ) -> Result<SelectedTables, Problem> {
        if table_names.len() > MAX_NAMED_TABLES {
            return Err(Problem::new(
                ProblemCode::TooLarge,
                format!("more than {MAX_NAMED_TABLES} tables are requested"),
            ));
        }
        let tenant = self.tenant(user, database)?;
        let schema = tenant.querymend.schema().await.map_err(querymend::sql_api::database_problem)?;
        let all = schema.tables();
        let mut selected: Vec<usize> = Vec::new();
        for name in table_names {
            let full = all.iter().position(|table| table.full_name().eq_ignore_ascii_case(name));
            let index = full.or_else(|| schema.table(name).and_then(|one| all.iter().position(|table| table == one)));
            let Some(index) = index else {
                let names: Vec<String> = all.iter().take(MAX_NAMES_IN_HINT).map(Table::full_name).collect();
                let more = if all.len() > MAX_NAMES_IN_HINT {
                    format!(" and {} more", all.len() - MAX_NAMES_IN_HINT)
                } else {
                    String::new()
                };
                let shown: String = name.chars().take(100).collect();
                return Err(Problem::new(ProblemCode::NotFound, format!("there is no table `{shown}`"))
                    .hint(format!("available tables: {}{more}", names.join(", "))));
            };
            if !selected.contains(&index) {
                selected.push(index);
            }
        }
        if table_names.is_empty() {
            selected = (0..all.len()).collect();
        }
        let dialect = tenant.querymend.engine().dialect();
        Ok(SelectedTables { database: tenant.name, dialect, schema: Arc::clone(&schema), selected })
    }
}
