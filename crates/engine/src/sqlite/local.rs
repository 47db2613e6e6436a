//! Tables in memory, filled with rows from elsewhere: for an analysis that another database could not do. Nothing of them is
//! ever on disk.

use std::sync::{Arc, Mutex, PoisonError};

use querymend_sql::schema::{Table, as_ddl};
use querymend_sql::{Approved, Cell, Dialect, Rows, Schema, dialect};
use rusqlite::types::Value;
use rusqlite::{Connection, params_from_iter};

use super::file::DatabaseFile;
use super::{execute, introspect, lock, prepare, refusal, usual_stop, watch};
use crate::stop::{Steps, Stop};
use crate::thread::blocking;
use crate::{Answer, Cancel, Engine, Error, Limits};

/// A database in memory. It holds what was put into it when it was made, and is gone when it is dropped.
pub struct Local {
    shared: Arc<Shared>,
}

struct Shared {
    connection: Mutex<Connection>,
    file: DatabaseFile,
}

impl Local {
    /// Makes one out of tables and their rows. Keys and types are taken over from the tables.
    pub fn load(tables: &[(&Table, &Rows)]) -> Result<Self, Error> {
        let file = DatabaseFile::in_memory("the fetched rows");
        let trouble = |error| refusal::meaning(error, &file);
        let mut connection = Connection::open_in_memory().map_err(trouble)?;
        fill(&mut connection, tables).map_err(trouble)?;
        lock::lock_down(&mut connection).map_err(trouble)?;
        Ok(Self { shared: Arc::new(Shared { connection: Mutex::new(connection), file }) })
    }

    fn run<T: Send + 'static>(
        &self,
        stop: Stop,
        work: impl Fn(&Connection, &DatabaseFile) -> Result<T, Error> + Send + 'static,
    ) -> Answer<'_, T> {
        let shared = Arc::clone(&self.shared);
        blocking(stop, move |stop| {
            let mut connection = shared.connection.lock().unwrap_or_else(PoisonError::into_inner);
            let trouble = |error| refusal::meaning(error, &shared.file);
            watch::watch(&mut connection, stop).map_err(trouble)?;
            let outcome = work(&connection, &shared.file);
            watch::forget(&mut connection, stop).map_err(trouble)?;
            outcome
        })
    }
}

impl Engine for Local {
    fn name(&self) -> &str {
        "sqlite::memory:"
    }

    fn dialect(&self) -> &'static Dialect {
        &dialect::SQLITE
    }

    fn schema(&self) -> Answer<'_, Schema> {
        self.run(usual_stop(), |connection, file| introspect::schema(connection, file, 0))
    }

    fn probe<'a>(&'a self, query: &'a Approved) -> Answer<'a, ()> {
        if let Err(error) = Error::unless_same(query.dialect(), self.dialect()) {
            return Box::pin(async { Err(error) });
        }
        let sql = query.sql().to_string();
        self.run(usual_stop(), move |connection, file| prepare(connection, file, &sql).map(|_| ()))
    }

    fn execute<'a>(&'a self, query: &'a Approved, limits: &'a Limits, cancel: &'a Cancel) -> Answer<'a, Rows> {
        if let Err(error) = Error::unless_same(query.dialect(), self.dialect()) {
            return Box::pin(async { Err(error) });
        }
        let sql = query.sql().to_string();
        let caps = limits.clone();
        let steps = limits.steps.map(Steps::new);
        let stop = Stop::new(limits.time, cancel.clone()).with_steps(steps.clone());
        self.run(stop, move |connection, file| execute(connection, file, &sql, &caps, steps.as_ref()))
    }

    fn test_connection(&self) -> Answer<'_, ()> {
        Box::pin(async { Ok(()) })
    }
}

fn fill(connection: &mut Connection, tables: &[(&Table, &Rows)]) -> rusqlite::Result<()> {
    let all = connection.transaction()?;
    for (table, rows) in tables {
        // Keys that point at tables which were not fetched would only be in the way.
        let mut bare = (*table).clone();
        bare.schema = None;
        bare.foreign_keys.retain(|k| tables.iter().any(|(t, _)| t.name.eq_ignore_ascii_case(&k.table)));
        bare.columns.retain(|c| rows.columns.iter().any(|r| r.eq_ignore_ascii_case(&c.name)));
        bare.columns.iter_mut().for_each(|c| c.nullable = true);
        // A view may give rows twice, and two long numbers may be one float here: no row may be lost for a key. Those that hold
        // are put on afterwards.
        let keys: Vec<Vec<String>> = std::iter::once(std::mem::take(&mut bare.primary_key))
            .chain(std::mem::take(&mut bare.unique))
            .filter(|key| !key.is_empty() && key.iter().all(|name| bare.column(name).is_some()))
            .collect();
        all.execute_batch("PRAGMA foreign_keys = OFF")?;
        all.execute_batch(&as_ddl(&bare, &dialect::SQLITE))?;
        let quoted = |name: &String| dialect::SQLITE.quoted(name);
        let names: Vec<String> = rows.columns.iter().map(quoted).collect();
        let holes = vec!["?"; names.len()].join(", ");
        let name = quoted(&bare.name);
        let insert = format!("INSERT INTO {name} ({}) VALUES ({holes})", names.join(", "));
        let mut insert = all.prepare(&insert)?;
        for row in &rows.rows {
            insert.execute(params_from_iter(row.iter().map(value)))?;
        }
        for (i, key) in keys.iter().enumerate() {
            let columns: Vec<String> = key.iter().map(quoted).collect();
            let index = dialect::SQLITE.quoted(&format!("{} key {i}", bare.name));
            all.execute_batch(&format!("CREATE UNIQUE INDEX {index} ON {name} ({})", columns.join(", "))).ok();
        }
    }
    all.commit()
}

fn value(cell: &Cell) -> Value {
    match cell {
        Cell::Null => Value::Null,
        Cell::Boolean(truth) => Value::Integer(i64::from(*truth)),
        Cell::Integer(number) => Value::Integer(*number),
        Cell::Number(number) => Value::Real(*number),
        // As its column has it: a number where that is declared to be one.
        Cell::Decimal(text) | Cell::Text(text) | Cell::Binary(text) => Value::Text(text.clone()),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that cannot go on must fail")]
mod tests {
    use super::*;
    use querymend_sql::{Context, Policy, review};

    #[tokio::test]
    async fn c05_rows_from_elsewhere_are_analysed_in_memory_and_nothing_can_be_written() {
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
        let local = Local::load(&[(&schema.tables()[0], &rows)]).unwrap();
        let known = local.schema().await.unwrap();
        let policy = Policy::default();
        let context = Context { schema: Some(&known), dialect: local.dialect(), policy: &policy, question: None };
        let ask = |sql: &str| review(sql, &context).approve();
        let query = ask("SELECT city, SUM(total) FROM sales GROUP BY city ORDER BY 2 DESC").unwrap();
        let got = local.execute(&query, &Limits::default(), &Cancel::new()).await.unwrap();
        assert_eq!(got.rows[0], [Cell::Text("Bonn".into()), Cell::Number(12.5)]);
        assert!(ask("DELETE FROM sales").is_err());
        let wrong = ask("SELECT town FROM sales").unwrap();
        assert!(matches!(local.probe(&wrong).await, Err(Error::Rejected(_))));
    }
}
