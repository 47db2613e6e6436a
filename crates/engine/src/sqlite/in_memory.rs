//! In-memory tables filled with rows of another database, for analyses that it does not support.
//! Nothing is ever written to disk.

use std::sync::{Arc, Mutex, PoisonError};

use querymend_sql::schema::{Table, render_ddl};
use querymend_sql::{Approved, Cell, Dialect, Rows, Schema, dialect};
use rusqlite::types::Value;
use rusqlite::{Connection, params_from_iter};

use super::file::DatabaseFile;
use super::{default_deadline, errors, execute, introspect, prepare, progress_handler, read_only};
use crate::blocking::run_blocking;
use crate::deadline::{Deadline, StepCounter};
use crate::{CancelFlag, Engine, EngineFuture, Error, Limits};

/// In-memory database with fixed contents, which are discarded on drop.
pub struct InMemoryEngine {
    database: Arc<InMemoryDatabase>,
}

struct InMemoryDatabase {
    connection: Mutex<Connection>,
    file: DatabaseFile,
}

impl InMemoryEngine {
    /// Creates a database from tables and their rows. Keys and types are those of the tables.
    pub fn load(tables: &[(&Table, &Rows)]) -> Result<Self, Error> {
        let file = DatabaseFile::in_memory("the fetched rows");
        let to_error = |error| errors::to_error(error, file.display_path());
        let mut connection = Connection::open_in_memory().map_err(to_error)?;
        insert_tables(&mut connection, tables).map_err(to_error)?;
        read_only::lock_down(&mut connection).map_err(to_error)?;
        Ok(Self { database: Arc::new(InMemoryDatabase { connection: Mutex::new(connection), file }) })
    }

    fn run<T: Send + 'static>(
        &self,
        deadline: Deadline,
        work: impl Fn(&Connection, &DatabaseFile) -> Result<T, Error> + Send + 'static,
    ) -> EngineFuture<'_, T> {
        let shared = Arc::clone(&self.database);
        run_blocking(deadline, move |stop| {
            let mut connection = shared.connection.lock().unwrap_or_else(PoisonError::into_inner);
            let to_error = |error| errors::to_error(error, shared.file.display_path());
            progress_handler::install(&mut connection, stop).map_err(to_error)?;
            let outcome = work(&connection, &shared.file);
            progress_handler::remove(&mut connection, stop).map_err(to_error)?;
            outcome
        })
    }
}

impl Engine for InMemoryEngine {
    fn name(&self) -> &str {
        "sqlite::memory:"
    }

    fn dialect(&self) -> &'static Dialect {
        &dialect::SQLITE
    }

    fn schema(&self) -> EngineFuture<'_, Schema> {
        self.run(default_deadline(), |connection, file| introspect::read_schema(connection, file, 0))
    }

    fn probe<'a>(&'a self, query: &'a Approved) -> EngineFuture<'a, ()> {
        if let Err(error) = Error::check_dialect(query.dialect(), self.dialect()) {
            return Box::pin(async { Err(error) });
        }
        let sql = query.sql().to_string();
        self.run(default_deadline(), move |connection, file| prepare(connection, file, &sql).map(|_| ()))
    }

    fn execute<'a>(
        &'a self,
        query: &'a Approved,
        limits: &'a Limits,
        cancel: &'a CancelFlag,
    ) -> EngineFuture<'a, Rows> {
        if let Err(error) = Error::check_dialect(query.dialect(), self.dialect()) {
            return Box::pin(async { Err(error) });
        }
        let sql = query.sql().to_string();
        let caps = limits.clone();
        let steps = limits.steps.map(StepCounter::new);
        let stop = Deadline::new(limits.time, cancel.clone()).with_steps(steps.clone());
        self.run(stop, move |connection, file| execute(connection, file, &sql, &caps, steps.as_ref()))
    }

    fn test_connection(&self) -> EngineFuture<'_, ()> {
        Box::pin(async { Ok(()) })
    }
}

fn insert_tables(connection: &mut Connection, tables: &[(&Table, &Rows)]) -> rusqlite::Result<()> {
    let all = connection.transaction()?;
    for (table, rows) in tables {
        // Foreign keys to tables that were not fetched cannot be satisfied.
        let mut bare = (*table).clone();
        bare.schema = None;
        bare.foreign_keys.retain(|k| tables.iter().any(|(t, _)| t.name.eq_ignore_ascii_case(&k.table)));
        bare.columns.retain(|c| rows.columns.iter().any(|r| r.eq_ignore_ascii_case(&c.name)));
        bare.columns.iter_mut().for_each(|c| c.nullable = true);
        // Views may return duplicate rows, and two long decimals may become the same float: no row
        // may be lost to a key. Keys that hold are added afterwards.
        let keys: Vec<Vec<String>> = std::iter::once(std::mem::take(&mut bare.primary_key))
            .chain(std::mem::take(&mut bare.unique))
            .filter(|key| !key.is_empty() && key.iter().all(|name| bare.column(name).is_some()))
            .collect();
        all.execute_batch("PRAGMA foreign_keys = OFF")?;
        all.execute_batch(&render_ddl(&bare, &dialect::SQLITE))?;
        let quoted = |name: &String| dialect::SQLITE.quote_identifier(name);
        let names: Vec<String> = rows.columns.iter().map(quoted).collect();
        let holes = vec!["?"; names.len()].join(", ");
        let name = quoted(&bare.name);
        let insert = format!("INSERT INTO {name} ({}) VALUES ({holes})", names.join(", "));
        let mut insert = all.prepare(&insert)?;
        for row in &rows.rows {
            insert.execute(params_from_iter(row.iter().map(to_sql_value)))?;
        }
        for (i, key) in keys.iter().enumerate() {
            let columns: Vec<String> = key.iter().map(quoted).collect();
            let index = dialect::SQLITE.quote_identifier(&format!("{} key {i}", bare.name));
            all.execute_batch(&format!("CREATE UNIQUE INDEX {index} ON {name} ({})", columns.join(", "))).ok();
        }
    }
    all.commit()
}

fn to_sql_value(cell: &Cell) -> Value {
    match cell {
        Cell::Null => Value::Null,
        Cell::Boolean(truth) => Value::Integer(i64::from(*truth)),
        Cell::Integer(number) => Value::Integer(*number),
        Cell::Number(number) => Value::Real(*number),
        // SQLite converts it according to the type affinity of its column.
        Cell::Decimal(text) | Cell::Text(text) | Cell::Binary(text) => Value::Text(text.clone()),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that cannot go on must fail")]
mod tests {
    use super::*;
    use querymend_sql::{Policy, ReviewContext, review};

    #[tokio::test]
    async fn analyzes_imported_rows_in_memory_read_only() {
        let ddl = "CREATE TABLE sales (id INTEGER PRIMARY KEY, city TEXT NOT NULL, total NUMERIC, ok BOOLEAN)";
        let schema = Schema::from_ddl(ddl, &dialect::POSTGRES).unwrap();
        let row = |id, city: &str, total: &str| {
            vec![Cell::Integer(id), Cell::Text(city.into()), Cell::Text(total.into()), Cell::Boolean(true)]
        };
        let rows = Rows {
            columns: ["id", "city", "total", "ok"].map(String::from).to_vec(),
            rows: vec![row(1, "Bonn", "10.50"), row(2, "Bonn", "2"), row(3, "Ulm", "7")],
            truncated: false,
        };
        let local = InMemoryEngine::load(&[(&schema.tables()[0], &rows)]).unwrap();
        let known = local.schema().await.unwrap();
        let policy = Policy::default();
        let context = ReviewContext { schema: Some(&known), dialect: local.dialect(), policy: &policy, question: None };
        let ask = |sql: &str| review(sql, &context).approve();
        let query = ask("SELECT city, SUM(total) FROM sales GROUP BY city ORDER BY 2 DESC").unwrap();
        let got = local.execute(&query, &Limits::default(), &CancelFlag::new()).await.unwrap();
        assert_eq!(got.rows[0], [Cell::Text("Bonn".into()), Cell::Number(12.5)]);
        assert!(ask("DELETE FROM sales").is_err());
        let wrong = ask("SELECT town FROM sales").unwrap();
        assert!(matches!(local.probe(&wrong).await, Err(Error::Rejected(_))));
    }
}
