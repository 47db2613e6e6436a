//! Examples in a table of PostgreSQL, found by pgvector.
//!
//! Several programs may use the table at once: each statement sees what others have acknowledged. Statements lock rows in the
//! order of their ids, so that two of them do not wait for each other.

mod form;
mod pool;
mod refusal;
mod settings;
mod vector;

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use querymend_model::Embedder;
use querymend_net::environment;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

pub use self::pool::{Pool, Twice, Values};
use self::settings::Settings;
use self::vector::Vector;
use crate::changes::merged;
use crate::embedding::Embedding;
use crate::error::Error;
use crate::example::{Example, Provenance, Standing, id};
use crate::rank;
use crate::sought::{Change, Filter, Found, Sought};
use crate::{Answer, ExampleStore};

/// So many examples go to the server with one statement.
const LOT: usize = 500;

/// So many rows with a word are looked at: a word that more have tells little.
const HAVING: usize = 512;

const COLUMNS: &str = "id, question, sql, database, dialect, metric, provenance, standing, uses, helped, hurt, added";

/// Examples in a table of PostgreSQL.
pub struct PostgresStore {
    pool: Pool,
    embedding: Embedding,
    table: String,
    /// There is an index of words: without one a search for them would read every row.
    has_words: bool,
}

impl PostgresStore {
    /// Opens the examples in a table, `postgres://USER@HOST:PORT/DATABASE?table=TABLE`; it is made if there is none.
    ///
    /// The password is looked for in `QUERYMEND_STORE_PASSWORD`, `PGPASSWORD`, and the file that `PGPASSFILE` names. Connections
    /// that leave the machine are encrypted unless `sslmode=disable` is given; `sslrootcert=FILE` holds certificates that are
    /// trusted beside the usual ones. `host=/FOLDER` is the folder of a server's socket. A table that was made with another
    /// embedder is refused: others use it.
    pub async fn open(address: &str, embedder: Arc<dyn Embedder>) -> Result<Self, Error> {
        let settings = Settings::read(address, &environment)?;
        let embedding = Embedding::new(embedder).await?;
        let pool = Pool::new(settings.config, settings.tls, settings.name);
        let has_words = form::agree(&pool, &settings.table, &embedding).await?;
        Ok(Self { pool, embedding, table: settings.table.quoted(), has_words })
    }

    async fn put(&self, examples: &[Example]) -> Result<usize, Error> {
        // Of several with one id the last stays, as if they had come one after the other.
        let by_id: BTreeMap<&str, &Example> = examples.iter().map(|example| (example.id.as_str(), example)).collect();
        let examples: Vec<&Example> = by_id.into_values().collect();
        let texts: Vec<&str> = examples.iter().map(|example| example.question.as_str()).collect();
        let vectors = self.embedding.vectors(&texts).await?;
        let mut vectors = vectors.into_iter().map(Vector);
        let lots: Vec<Lot<'_>> =
            examples.chunks(LOT).map(|part| Lot::new(part, vectors.by_ref().take(part.len()).collect())).collect();
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
        let values: Vec<[&(dyn ToSql + Sync); 13]> = lots.iter().map(Lot::values).collect();
        let values: Vec<Values<'_>> = values.iter().map(|values| values.as_slice()).collect();
        let rows = self.pool.ask_each(&sql, &values, Twice::Same).await?;
        let mut new = 0;
        for row in rows {
            new += usize::from(self.told(row.try_get::<_, bool>(0))?);
        }
        if new >= LOT {
            // Until the server has looked at so many new rows it does not know which index is worth using. It does so by itself
            // after a minute or two; who may not ask for it waits for that.
            self.pool.ask(&format!("ANALYZE {}", self.table), &[], Twice::Same).await.ok();
        }
        Ok(new)
    }

    async fn find(&self, sought: &Sought<'_>) -> Result<Vec<Found>, Error> {
        if sought.most == 0 {
            return Ok(Vec::new());
        }
        let vector = Vector(self.embedding.vector(sought.question).await?);
        // An index may miss one that is there. The very same question never is: it is known by its id.
        let same = id(sought.question, sought.database);
        let mut values: Vec<&(dyn ToSql + Sync)> = vec![&vector, &sought.database, &same];
        let fits = fits(sought, &mut values);
        let nearest = |which: &str, most: usize| {
            format!(
                "(SELECT {COLUMNS}, -(embedding <#> $1) FROM {} WHERE {fits} {which} ORDER BY embedding <#> $1 LIMIT {most})",
                self.table
            )
        };
        let most = rank::POOL.max(2 * sought.most);
        let own = nearest("AND database = $2", most);
        let all = if sought.only_database { own } else { format!("{} UNION ALL {own}", nearest("", most)) };
        let sql = format!("{} UNION ALL {all}", nearest("AND id = $3", 1));
        let mut seen = HashSet::new();
        let mut found = Vec::new();
        self.take(&self.pool.ask(&sql, &values, Twice::Same).await?, &mut seen, &mut found)?;
        let missed = if self.has_words { rank::missed(sought.question, &found) } else { Vec::new() };
        if !missed.is_empty() {
            self.find_words(&missed, &vector, sought, &mut seen, &mut found).await?;
        }
        Ok(rank::rank(found, sought))
    }

    /// The nearest of those that have one of these words.
    async fn find_words(
        &self,
        missed: &[&str],
        vector: &Vector,
        sought: &Sought<'_>,
        seen: &mut HashSet<String>,
        found: &mut Vec<(Example, f32)>,
    ) -> Result<(), Error> {
        let mut values: Vec<&(dyn ToSql + Sync)> = vec![vector, &missed];
        let mut fits = fits(sought, &mut values);
        if sought.only_database {
            values.push(&sought.database);
            fits.push_str(&format!(" AND database = ${}", values.len()));
        }
        let any: Vec<String> =
            (1..=missed.len()).map(|at| format!("plainto_tsquery('simple', ($2::text[])[{at}])")).collect();
        // The rows with the words first, then the nearest of these: the other way round an index of vectors would be read until
        // it comes upon them.
        let sql = format!(
            "WITH these AS MATERIALIZED (
                 SELECT {COLUMNS}, -(embedding <#> $1) AS likeness FROM {table} WHERE {fits} AND {words} @@ ({any}) LIMIT {HAVING})
             SELECT * FROM these ORDER BY likeness DESC LIMIT {most}",
            table = self.table,
            words = form::WORDS,
            any = any.join(" || "),
            most = rank::BY_WORDS,
        );
        self.take(&self.pool.ask(&sql, &values, Twice::Same).await?, seen, found)
    }

    /// Takes over what was found, each example once.
    fn take(&self, rows: &[Row], seen: &mut HashSet<String>, found: &mut Vec<(Example, f32)>) -> Result<(), Error> {
        for row in rows {
            let similarity: f64 = self.told(row.try_get(12))?;
            let example = self.example(row)?;
            if seen.insert(example.id.clone()) {
                found.push((example, similarity as f32));
            }
        }
        Ok(())
    }

    /// Examples out of rows of [`COLUMNS`].
    fn example(&self, row: &Row) -> Result<Example, Error> {
        let text = |at: usize| self.told(row.try_get::<_, String>(at));
        let count = |at: usize| {
            let count: i64 = self.told(row.try_get(at))?;
            Ok::<_, Error>(u32::try_from(count.max(0)).unwrap_or(u32::MAX))
        };
        let (provenance, standing) = (text(6)?, text(7)?);
        let unknown = |what: &str| Error::Unusable {
            message: format!("{} holds `{what}`, which this version does not know", self.pool.name()),
            hint: "was it written by a newer version of querymend?".into(),
        };
        Ok(Example {
            id: text(0)?,
            question: text(1)?,
            sql: text(2)?,
            database: text(3)?,
            dialect: text(4)?,
            metric: self.told(row.try_get(5))?,
            provenance: Provenance::named(&provenance).ok_or_else(|| unknown(&provenance))?,
            standing: Standing::named(&standing).ok_or_else(|| unknown(&standing))?,
            uses: count(8)?,
            helped: count(9)?,
            hurt: count(10)?,
            added: self.told(row.try_get::<_, i64>(11))?.cast_unsigned(),
        })
    }

    fn told<T>(&self, read: Result<T, tokio_postgres::Error>) -> Result<T, Error> {
        read.map_err(|error| refusal::meaning(self.pool.name(), &error))
    }
}

/// Examples as columns of values.
struct Lot<'a> {
    texts: [Vec<&'a str>; 7],
    metrics: Vec<Option<&'a str>>,
    counts: [Vec<i64>; 4],
    vectors: Vec<Vector>,
}

impl<'a> Lot<'a> {
    fn new(examples: &[&'a Example], vectors: Vec<Vector>) -> Self {
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

    /// In the order of [`COLUMNS`].
    fn values(&self) -> [&(dyn ToSql + Sync); 13] {
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

/// The condition for examples that may be shown; what it compares with is put behind the other values.
fn fits<'v>(sought: &'v Sought<'_>, values: &mut Vec<&'v (dyn ToSql + Sync)>) -> String {
    let mut fits = String::from(if sought.only_verified {
        "standing = 'verified'"
    } else {
        "standing IN ('verified', 'unverified')"
    });
    if let Some(dialect) = &sought.dialect {
        values.push(dialect);
        fits.push_str(&format!(" AND dialect = ${}", values.len()));
    }
    fits
}

/// The condition that a filter stands for, and its values.
fn condition(filter: &Filter) -> (String, Vec<String>) {
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

fn borrowed(values: &[String]) -> Vec<&(dyn ToSql + Sync)> {
    values.iter().map(|value| value as &(dyn ToSql + Sync)).collect()
}

impl ExampleStore for PostgresStore {
    fn name(&self) -> &str {
        self.pool.name()
    }

    fn add<'a>(&'a self, examples: &'a [Example]) -> Answer<'a, usize> {
        Box::pin(async move { if examples.is_empty() { Ok(0) } else { self.put(examples).await } })
    }

    fn search<'a>(&'a self, sought: &'a Sought<'a>) -> Answer<'a, Vec<Found>> {
        Box::pin(self.find(sought))
    }

    fn get<'a>(&'a self, id: &'a str) -> Answer<'a, Option<Example>> {
        Box::pin(async move {
            let sql = format!("SELECT {COLUMNS} FROM {} WHERE id = $1", self.table);
            let rows = self.pool.ask(&sql, &[&id], Twice::Same).await?;
            rows.first().map(|row| self.example(row)).transpose()
        })
    }

    fn list<'a>(&'a self, filter: &'a Filter, skip: usize, most: usize) -> Answer<'a, Vec<Example>> {
        Box::pin(async move {
            let (condition, values) = condition(filter);
            let sql = format!(
                "SELECT {COLUMNS} FROM {} WHERE {condition} ORDER BY added DESC, number DESC OFFSET ${} LIMIT ${}",
                self.table,
                values.len() + 1,
                values.len() + 2,
            );
            let (skip, most) = (skip.min(i64::MAX as usize) as i64, most.min(i64::MAX as usize) as i64);
            let mut values = borrowed(&values);
            values.extend([&skip as &(dyn ToSql + Sync), &most]);
            let rows = self.pool.ask(&sql, &values, Twice::Same).await?;
            rows.iter().map(|row| self.example(row)).collect()
        })
    }

    fn count<'a>(&'a self, filter: &'a Filter) -> Answer<'a, usize> {
        Box::pin(async move {
            let (condition, values) = condition(filter);
            let sql = format!("SELECT count(*) FROM {} WHERE {condition}", self.table);
            let rows = self.pool.ask(&sql, &borrowed(&values), Twice::Same).await?;
            let count: i64 = rows.first().map_or(Ok(0), |row| self.told(row.try_get(0)))?;
            Ok(usize::try_from(count).unwrap_or(0))
        })
    }

    fn change<'a>(&'a self, changes: &'a [(&'a str, Change)]) -> Answer<'a, usize> {
        Box::pin(async move {
            if changes.is_empty() {
                return Ok(0);
            }
            let changes = merged(changes);
            let ids: Vec<&str> = changes.keys().copied().collect();
            let standings: Vec<Option<&str>> =
                changes.values().map(|change| change.standing.map(Standing::name)).collect();
            let provenances: Vec<Option<&str>> =
                changes.values().map(|change| change.provenance.map(Provenance::name)).collect();
            let counts = |count: fn(&Change) -> u32| changes.values().map(|change| i64::from(count(change))).collect();
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
            let values: Values<'_> = &[&ids, &standings, &provenances, &uses, &helped, &hurt];
            Ok(self.pool.ask(&sql, values, Twice::Not).await?.len())
        })
    }

    fn remove<'a>(&'a self, ids: &'a [&'a str]) -> Answer<'a, usize> {
        Box::pin(async move {
            let sql = format!(
                "WITH locked AS MATERIALIZED (SELECT id FROM {table} WHERE id = ANY ($1::text[]) ORDER BY id FOR UPDATE)
                 DELETE FROM {table} WHERE id IN (SELECT id FROM locked) RETURNING id",
                table = self.table,
            );
            Ok(self.pool.ask(&sql, &[&ids], Twice::Not).await?.len())
        })
    }
}
