//! Example store in a PostgreSQL table, searched with pgvector.
//!
//! Several programs may use the table at once: each statement sees all committed changes.
//! Statements lock rows in the order of their ids, which prevents deadlocks.

mod errors;
mod migrations;
mod pool;
mod settings;
mod vector;

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use querymend_model::Embedder;
use querymend_net::read_env;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

pub use self::pool::{Idempotent, SqlParams, StorePool};
use self::settings::StoreSettings;
use self::vector::PgVector;
use crate::error::Error;
use crate::example::{Example, Provenance, VerificationStatus, example_id};
use crate::query::{ExampleFilter, ExampleQuery, ExampleUpdate, ScoredExample};
use crate::rank;
use crate::store_embedder::StoreEmbedder;
use crate::updates::merge_updates;
use crate::{BoxFuture, ExampleStore};

/// Number of examples per statement.
const BATCH_SIZE: usize = 500;

/// Maximum number of rows that are scored for a word match; more frequent words are not selective.
const MAX_WORD_ROWS: usize = 512;

const COLUMNS: &str = "id, question, sql, database, dialect, metric, provenance, standing, uses, helped, hurt, added";

/// Example store in a PostgreSQL table.
pub struct PostgresStore {
    pool: StorePool,
    embedding: StoreEmbedder,
    table: String,
    /// `true` if there is a full-text index; without one a word search would scan the whole table.
    has_word_index: bool,
}

impl PostgresStore {
    /// Opens the table at `postgres://USER@HOST:PORT/DATABASE?table=TABLE` and creates it if it
    /// does not exist.
    ///
    /// The password is read from `QUERYMEND_STORE_PASSWORD`, `PGPASSWORD`, or the file named by
    /// `PGPASSFILE`. Remote connections are encrypted unless `sslmode=disable` is set;
    /// `sslrootcert=FILE` names certificates to trust in addition to the system's. `host=/FOLDER`
    /// is the directory of a server's Unix socket. A table that was created with a different
    /// embedder is rejected instead of re-embedded, because other programs use it.
    pub async fn open(address: &str, embedder: Arc<dyn Embedder>) -> Result<Self, Error> {
        let settings = StoreSettings::parse(address, &read_env)?;
        let embedding = StoreEmbedder::new(embedder).await?;
        let pool = StorePool::new(settings.config, settings.tls, settings.name);
        let has_words = migrations::ensure_table(&pool, &settings.table, &embedding).await?;
        Ok(Self { pool, embedding, table: settings.table.quoted(), has_word_index: has_words })
    }

    async fn upsert(&self, examples: &[Example]) -> Result<usize, Error> {
        // The last example with the same id wins, as if they had been added one by one.
        let by_id: BTreeMap<&str, &Example> = examples.iter().map(|example| (example.id.as_str(), example)).collect();
        let examples: Vec<&Example> = by_id.into_values().collect();
        let texts: Vec<&str> = examples.iter().map(|example| example.question.as_str()).collect();
        let vectors = self.embedding.vectors(&texts).await?;
        let mut vectors = vectors.into_iter().map(PgVector);
        let batches: Vec<ExampleBatch<'_>> = examples
            .chunks(BATCH_SIZE)
            .map(|part| ExampleBatch::new(part, vectors.by_ref().take(part.len()).collect()))
            .collect();
        let sql = format!(
            "INSERT INTO {table} AS old ({COLUMNS}, embedding)
             SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[],
                                  $9::bigint[], $10::bigint[], $11::bigint[], $12::bigint[], $13::vector[])
             ON CONFLICT (id) DO UPDATE SET question = excluded.question, sql = excluded.sql, database = excluded.database,
                 dialect = excluded.dialect, metric = coalesce(excluded.metric, old.metric),
                 provenance = excluded.provenance, standing = excluded.standing, embedding = excluded.embedding
             RETURNING xmax::text = '0'",
            table = self.table,
        );
        let values: Vec<[&(dyn ToSql + Sync); 13]> = batches.iter().map(ExampleBatch::params).collect();
        let values: Vec<SqlParams<'_>> = values.iter().map(|values| values.as_slice()).collect();
        let rows = self.pool.query_batches(&sql, &values, Idempotent::Yes).await?;
        let mut new = 0;
        for row in rows {
            new += usize::from(self.read_column(row.try_get::<_, bool>(0))?);
        }
        if new >= BATCH_SIZE {
            // The planner needs fresh statistics to choose the right index after this many new
            // rows. Autovacuum analyzes the table after a minute or two anyway, so missing
            // privileges are not an error.
            self.pool.query(&format!("ANALYZE {}", self.table), &[], Idempotent::Yes).await.ok();
        }
        Ok(new)
    }

    async fn find(&self, query: &ExampleQuery<'_>) -> Result<Vec<ScoredExample>, Error> {
        if query.limit == 0 {
            return Ok(Vec::new());
        }
        let vector = PgVector(self.embedding.vector(query.question).await?);
        // An approximate index may miss a row, so the identical question is looked up by its id.
        let same = example_id(query.question, query.database);
        let mut values: Vec<&(dyn ToSql + Sync)> = vec![&vector, &query.database, &same];
        let fits = eligibility_condition(query, &mut values);
        let nearest = |which: &str, limit: usize| {
            format!(
                "(SELECT {COLUMNS}, -(embedding <#> $1) FROM {} WHERE {fits} {which} ORDER BY embedding <#> $1 LIMIT {limit})",
                self.table
            )
        };
        let most = rank::CANDIDATE_LIMIT.max(2 * query.limit);
        let own = nearest("AND database = $2", most);
        let all = if query.only_database { own } else { format!("{} UNION ALL {own}", nearest("", most)) };
        let sql = format!("{} UNION ALL {all}", nearest("AND id = $3", 1));
        let mut seen = HashSet::new();
        let mut found = Vec::new();
        self.collect_rows(&self.pool.query(&sql, &values, Idempotent::Yes).await?, &mut seen, &mut found)?;
        let missed = if self.has_word_index { rank::missed_words(query.question, &found) } else { Vec::new() };
        if !missed.is_empty() {
            self.search_words(&missed, &vector, query, &mut seen, &mut found).await?;
        }
        Ok(rank::rank(found, query))
    }

    /// Finds the nearest examples that contain any of these words.
    async fn search_words(
        &self,
        missed: &[&str],
        vector: &PgVector,
        query: &ExampleQuery<'_>,
        seen: &mut HashSet<String>,
        found: &mut Vec<(Example, f32)>,
    ) -> Result<(), Error> {
        let mut values: Vec<&(dyn ToSql + Sync)> = vec![vector, &missed];
        let mut fits = eligibility_condition(query, &mut values);
        if query.only_database {
            values.push(&query.database);
            fits.push_str(&format!(" AND database = ${}", values.len()));
        }
        let any: Vec<String> =
            (1..=missed.len()).map(|at| format!("plainto_tsquery('simple', ($2::text[])[{at}])")).collect();
        // Match the words first and sort by distance afterwards; otherwise the planner would scan
        // the vector index until it finds matching rows.
        let sql = format!(
            "WITH these AS MATERIALIZED (
                 SELECT {COLUMNS}, -(embedding <#> $1) AS likeness FROM {table} WHERE {fits} AND {words} @@ ({any}) LIMIT {MAX_WORD_ROWS})
             SELECT * FROM these ORDER BY likeness DESC LIMIT {most}",
            table = self.table,
            words = migrations::WORDS_EXPRESSION,
            any = any.join(" || "),
            most = rank::WORD_MATCH_LIMIT,
        );
        self.collect_rows(&self.pool.query(&sql, &values, Idempotent::Yes).await?, seen, found)
    }

    /// Collects examples and their similarity from rows, skipping duplicates.
    fn collect_rows(
        &self,
        rows: &[Row],
        seen: &mut HashSet<String>,
        found: &mut Vec<(Example, f32)>,
    ) -> Result<(), Error> {
        for row in rows {
            let similarity: f64 = self.read_column(row.try_get(12))?;
            let example = self.parse_example(row)?;
            if seen.insert(example.id.clone()) {
                found.push((example, similarity as f32));
            }
        }
        Ok(())
    }

    /// Parses an example from a row of [`COLUMNS`].
    fn parse_example(&self, row: &Row) -> Result<Example, Error> {
        let text = |at: usize| self.read_column(row.try_get::<_, String>(at));
        let count = |at: usize| {
            let count: i64 = self.read_column(row.try_get(at))?;
            Ok::<_, Error>(u32::try_from(count.max(0)).unwrap_or(u32::MAX))
        };
        let (provenance, standing) = (text(6)?, text(7)?);
        let unknown = |what: &str| Error::Unusable {
            message: format!("{} contains `{what}`, which this version does not support", self.pool.name()),
            hint: "was it written by a newer version of querymend?".into(),
        };
        Ok(Example {
            id: text(0)?,
            question: text(1)?,
            sql: text(2)?,
            database: text(3)?,
            dialect: text(4)?,
            metric: self.read_column(row.try_get(5))?,
            provenance: Provenance::from_name(&provenance).ok_or_else(|| unknown(&provenance))?,
            standing: VerificationStatus::from_name(&standing).ok_or_else(|| unknown(&standing))?,
            uses: count(8)?,
            helped: count(9)?,
            hurt: count(10)?,
            added: self.read_column(row.try_get::<_, i64>(11))?.cast_unsigned(),
        })
    }

    fn read_column<T>(&self, read: Result<T, tokio_postgres::Error>) -> Result<T, Error> {
        read.map_err(|error| errors::to_store_error(self.pool.name(), &error))
    }
}

/// Examples as column arrays for `unnest`.
struct ExampleBatch<'a> {
    texts: [Vec<&'a str>; 7],
    metrics: Vec<Option<&'a str>>,
    counts: [Vec<i64>; 4],
    vectors: Vec<PgVector>,
}

impl<'a> ExampleBatch<'a> {
    fn new(examples: &[&'a Example], vectors: Vec<PgVector>) -> Self {
        let texts = |text: fn(&Example) -> &str| examples.iter().map(|example| text(example)).collect();
        let counts = |count: fn(&Example) -> i64| examples.iter().map(|example| count(example)).collect();
        Self {
            texts: [
                texts(|example| &example.id),
                texts(|example| &example.question),
                texts(|example| &example.sql),
                texts(|example| &example.database),
                texts(|example| &example.dialect),
                texts(|example| example.provenance.name()),
                texts(|example| example.standing.name()),
            ],
            metrics: examples.iter().map(|example| example.metric.as_deref()).collect(),
            counts: [
                counts(|example| example.uses.into()),
                counts(|example| example.helped.into()),
                counts(|example| example.hurt.into()),
                counts(|example| example.added.cast_signed()),
            ],
            vectors,
        }
    }

    /// Returns the parameters in the order of [`COLUMNS`].
    fn params(&self) -> [&(dyn ToSql + Sync); 13] {
        let [id, question, sql, database, dialect, provenance, standing] = &self.texts;
        let [uses, helped, hurt, added] = &self.counts;
        [
            id,
            question,
            sql,
            database,
            dialect,
            &self.metrics,
            provenance,
            standing,
            uses,
            helped,
            hurt,
            added,
            &self.vectors,
        ]
    }
}

/// Builds the predicate for eligible examples and appends its parameters to `values`.
fn eligibility_condition<'v>(query: &'v ExampleQuery<'_>, values: &mut Vec<&'v (dyn ToSql + Sync)>) -> String {
    let mut fits = String::from(if query.only_verified {
        "standing = 'verified'"
    } else {
        "standing IN ('verified', 'unverified')"
    });
    if let Some(dialect) = &query.dialect {
        values.push(dialect);
        fits.push_str(&format!(" AND dialect = ${}", values.len()));
    }
    fits
}

/// Builds the predicate for a filter, with its parameters.
fn filter_condition(filter: &ExampleFilter) -> (String, Vec<String>) {
    let mut values = Vec::new();
    let mut condition = String::from("true");
    for (column, value) in [
        ("database", filter.database.clone()),
        ("dialect", filter.dialect.clone()),
        ("provenance", filter.provenance.map(|provenance| provenance.name().to_string())),
        ("standing", filter.standing.map(|standing| standing.name().to_string())),
    ] {
        if let Some(value) = value {
            values.push(value);
            condition.push_str(&format!(" AND {column} = ${}", values.len()));
        }
    }
    (condition, values)
}

fn as_params(values: &[String]) -> Vec<&(dyn ToSql + Sync)> {
    values.iter().map(|value| value as &(dyn ToSql + Sync)).collect()
}

impl ExampleStore for PostgresStore {
    fn name(&self) -> &str {
        self.pool.name()
    }

    fn add<'a>(&'a self, examples: &'a [Example]) -> BoxFuture<'a, usize> {
        Box::pin(async move { if examples.is_empty() { Ok(0) } else { self.upsert(examples).await } })
    }

    fn search<'a>(&'a self, query: &'a ExampleQuery<'a>) -> BoxFuture<'a, Vec<ScoredExample>> {
        Box::pin(self.find(query))
    }

    fn get<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Option<Example>> {
        Box::pin(async move {
            let sql = format!("SELECT {COLUMNS} FROM {} WHERE id = $1", self.table);
            let rows = self.pool.query(&sql, &[&id], Idempotent::Yes).await?;
            rows.first().map(|row| self.parse_example(row)).transpose()
        })
    }

    fn list<'a>(&'a self, filter: &'a ExampleFilter, skip: usize, limit: usize) -> BoxFuture<'a, Vec<Example>> {
        Box::pin(async move {
            let (condition, values) = filter_condition(filter);
            let sql = format!(
                "SELECT {COLUMNS} FROM {} WHERE {condition} ORDER BY added DESC, number DESC OFFSET ${} LIMIT ${}",
                self.table,
                values.len() + 1,
                values.len() + 2,
            );
            let (skip, most) = (skip.min(i64::MAX as usize) as i64, limit.min(i64::MAX as usize) as i64);
            let mut values = as_params(&values);
            values.extend([&skip as &(dyn ToSql + Sync), &most]);
            let rows = self.pool.query(&sql, &values, Idempotent::Yes).await?;
            rows.iter().map(|row| self.parse_example(row)).collect()
        })
    }

    fn count<'a>(&'a self, filter: &'a ExampleFilter) -> BoxFuture<'a, usize> {
        Box::pin(async move {
            let (condition, values) = filter_condition(filter);
            let sql = format!("SELECT count(*) FROM {} WHERE {condition}", self.table);
            let rows = self.pool.query(&sql, &as_params(&values), Idempotent::Yes).await?;
            let count: i64 = rows.first().map_or(Ok(0), |row| self.read_column(row.try_get(0)))?;
            Ok(usize::try_from(count).unwrap_or(0))
        })
    }

    fn update<'a>(&'a self, changes: &'a [(&'a str, ExampleUpdate)]) -> BoxFuture<'a, usize> {
        Box::pin(async move {
            if changes.is_empty() {
                return Ok(0);
            }
            let changes = merge_updates(changes);
            let ids: Vec<&str> = changes.keys().copied().collect();
            let standings: Vec<Option<&str>> =
                changes.values().map(|change| change.standing.map(VerificationStatus::name)).collect();
            let provenances: Vec<Option<&str>> =
                changes.values().map(|change| change.provenance.map(Provenance::name)).collect();
            let counts =
                |count: fn(&ExampleUpdate) -> u32| changes.values().map(|change| i64::from(count(change))).collect();
            let uses: Vec<i64> = counts(|change| change.uses);
            let helped: Vec<i64> = counts(|change| change.helped);
            let hurt: Vec<i64> = counts(|change| change.hurt);
            let sql = format!(
                "WITH locked AS MATERIALIZED (SELECT id FROM {table} WHERE id = ANY ($1::text[]) ORDER BY id FOR UPDATE)
                 UPDATE {table} AS one SET standing = coalesce(new.standing, one.standing),
                     provenance = coalesce(new.provenance, one.provenance),
                     uses = least(one.uses + new.uses, 4294967295), helped = least(one.helped + new.helped, 4294967295),
                     hurt = least(one.hurt + new.hurt, 4294967295)
                 FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::bigint[], $6::bigint[])
                          AS new (id, standing, provenance, uses, helped, hurt)
                      JOIN locked USING (id)
                 WHERE one.id = new.id RETURNING one.id",
                table = self.table,
            );
            let values: SqlParams<'_> = &[&ids, &standings, &provenances, &uses, &helped, &hurt];
            Ok(self.pool.query(&sql, values, Idempotent::No).await?.len())
        })
    }

    fn remove<'a>(&'a self, ids: &'a [&'a str]) -> BoxFuture<'a, usize> {
        Box::pin(async move {
            let sql = format!(
                "WITH locked AS MATERIALIZED (SELECT id FROM {table} WHERE id = ANY ($1::text[]) ORDER BY id FOR UPDATE)
                 DELETE FROM {table} WHERE id IN (SELECT id FROM locked) RETURNING id",
                table = self.table,
            );
            Ok(self.pool.query(&sql, &[&ids], Idempotent::No).await?.len())
        })
    }
}
