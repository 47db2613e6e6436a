//! Tables as text, for those who read rather than parse: models and the programs around them.

use std::sync::Arc;

use querymend::{Problem, ProblemCode};
use querymend_sql::schema::{Table, as_ddl};
use querymend_sql::{Dialect, Schema};

use super::Service;
use crate::user::User;

/// Names that a message lists, where a wrong one was given.
const LISTED: usize = 30;

/// Tables that can be named at once.
const MOST_NAMED: usize = 200;

/// Tables of a database that a user may read.
pub struct Tables {
    /// The name of the database.
    pub database: String,
    /// The SQL that it speaks.
    pub dialect: &'static Dialect,
    schema: Arc<Schema>,
    /// The places of those that are meant.
    chosen: Vec<usize>,
}

impl Tables {
    /// Those that are meant.
    pub fn iter(&self) -> impl Iterator<Item = &Table> {
        self.chosen.iter().filter_map(|place| self.schema.tables().get(*place))
    }

    /// CREATE TABLE statements, as many whole ones as there is room for, and how many of them these are.
    pub fn ddl(&self, most_bytes: usize) -> (String, usize) {
        let mut text = String::new();
        for (written, table) in self.iter().enumerate() {
            let ddl = as_ddl(table, self.dialect);
            if text.len() + ddl.len() > most_bytes {
                return (text, written);
            }
            text.push_str(&ddl);
        }
        (text, self.chosen.len())
    }
}

impl Service {
    /// The tables of these names that a user may read; all of them, if none is named.
    pub async fn tables(&self, user: &User, database: Option<&str>, named: &[String]) -> Result<Tables, Problem> {
        if named.len() > MOST_NAMED {
            return Err(Problem::new(ProblemCode::TooLarge, format!("more than {MOST_NAMED} tables are named")));
        }
        let desk = self.desk(user, database)?;
        let schema = desk.querymend.schema().await.map_err(querymend::direct::database_problem)?;
        let all = schema.tables();
        let mut chosen: Vec<usize> = Vec::new();
        for name in named {
            let full = all.iter().position(|table| table.full_name().eq_ignore_ascii_case(name));
            let place = full.or_else(|| schema.table(name).and_then(|one| all.iter().position(|table| table == one)));
            let Some(place) = place else {
                let names: Vec<String> = all.iter().take(LISTED).map(Table::full_name).collect();
                let more = if all.len() > LISTED { format!(" and {} more", all.len() - LISTED) } else { String::new() };
                let shown: String = name.chars().take(100).collect();
                return Err(Problem::new(ProblemCode::NotFound, format!("there is no table `{shown}`"))
                    .hint(format!("there are: {}{more}", names.join(", "))));
            };
            if !chosen.contains(&place) {
                chosen.push(place);
            }
        }
        if named.is_empty() {
            chosen = (0..all.len()).collect();
        }
        let dialect = desk.querymend.engine().dialect();
        Ok(Tables { database: desk.name, dialect, schema: Arc::clone(&schema), chosen })
    }
}
