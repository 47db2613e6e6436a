//! The tables that examples are kept in: made if there are none, and looked at if there are.

use tokio_postgres::{Error as Refused, GenericClient};

use super::pool::Pool;
use super::settings::Table;
use crate::embedding::Embedding;
use crate::error::Error;

/// The form of the tables that this version writes.
const FORM: i64 = 1;
/// Programs that make tables do so one after the other; this is what they wait for. Any number would do.
const LOCK: i64 = 0x7175_6572_796d_656e;
/// pgvector has no index for vectors that are longer; they are compared one by one.
const LONGEST_INDEXED: usize = 2000;

/// The words of a question, as PostgreSQL takes them: no stems, since names and codes have none. A longer text is read in part,
/// as the server refuses to index more than a megabyte of words.
pub(super) const WORDS: &str = "to_tsvector('simple', left(question, 10000))";

/// What is there.
enum Found {
    Nothing,
    SomethingElse,
    Ours { form: i64, embedder: String, dimensions: i64 },
}

/// Makes the tables if they are not there, and makes sure that they fit. Says whether words can be searched for.
pub(super) async fn agree(pool: &Pool, table: &Table, embedding: &Embedding) -> Result<bool, Error> {
    let (mut link, _turn) = pool.lend().await?;
    let mut found = pool.within(look(&link.client, table)).await?;
    if matches!(found, Found::Nothing) {
        found = pool.within(make(&mut link.client, table, embedding)).await?;
    }
    let has_words = matches!(found, Found::Ours { form: FORM, .. })
        && pool.within(async { Ok(index_words(&link.client, table).await) }).await?;
    pool.take_back(link);
    let name = pool.name();
    match found {
        Found::Ours { form, embedder, dimensions } if form == FORM => {
            if embedder != embedding.name() || usize::try_from(dimensions) != Ok(embedding.dimensions) {
                return Err(embedding.refuse(name, &embedder, dimensions, "name another table with ?table="));
            }
            Ok(has_words)
        }
        Found::Ours { form, .. } => Err(Error::Unusable {
            message: format!(
                "{name} was made by another version of querymend (its form is {form}, this one knows {FORM})"
            ),
            hint: "use that version, or name another table with ?table=; nothing was changed in it".into(),
        }),
        Found::Nothing | Found::SomethingElse => Err(Error::Unusable {
            message: format!("{name} holds something else than examples"),
            hint: "name another table with ?table=; nothing was changed in it".into(),
        }),
    }
}

async fn look(client: &impl GenericClient, table: &Table) -> Result<Found, Refused> {
    let there = client
        .query_one(
            // Reading a table of the catalog makes the server look at what others have made meanwhile; naming one does not.
            "SELECT to_regclass($1) IS NOT NULL, to_regclass($2) IS NOT NULL, (SELECT count(*) FROM pg_extension)",
            &[&table.quoted(), &table.about()],
        )
        .await?;
    match (there.try_get(0)?, there.try_get(1)?) {
        (false, false) => return Ok(Found::Nothing),
        (true, true) => {}
        _ => return Ok(Found::SomethingElse),
    }
    let columns = client
        .query_one(
            "SELECT count(*) FROM pg_attribute WHERE attrelid = to_regclass($1) AND attname IN ('form', 'embedder', 'dimensions')",
            &[&table.about()],
        )
        .await?;
    if columns.try_get::<_, i64>(0)? != 3 {
        return Ok(Found::SomethingElse);
    }
    let about = format!("SELECT form::bigint, embedder::text, dimensions::bigint FROM {}", table.about());
    match client.query_opt(&about, &[]).await? {
        Some(row) => Ok(Found::Ours { form: row.try_get(0)?, embedder: row.try_get(1)?, dimensions: row.try_get(2)? }),
        None => Ok(Found::SomethingElse),
    }
}

/// Makes the index of words, which tables of earlier versions have not. Who may not make it does without.
async fn index_words(client: &tokio_postgres::Client, table: &Table) -> bool {
    let index = table.part("words");
    let make = format!("CREATE INDEX IF NOT EXISTS {index} ON {} USING gin ({WORDS})", table.quoted());
    let there = "SELECT 1 FROM pg_index WHERE indrelid = to_regclass($1) AND indisvalid
                 AND pg_get_indexdef(indexrelid) LIKE '%to_tsvector%'";
    let is_there = async || matches!(client.query_opt(there, &[&table.quoted()]).await, Ok(Some(_)));
    // Asked for first, as making it needs rights and a lock even where it is there.
    is_there().await || client.batch_execute(&make).await.is_ok() || is_there().await
}

/// Makes the tables, unless another program did so while this one waited for its turn.
async fn make(client: &mut tokio_postgres::Client, table: &Table, embedding: &Embedding) -> Result<Found, Refused> {
    let step = client.transaction().await?;
    step.execute("SELECT pg_advisory_xact_lock($1)", &[&LOCK]).await?;
    let found = look(&step, table).await?;
    if !matches!(found, Found::Nothing) {
        return Ok(found);
    }
    // Asked for first, as IF NOT EXISTS needs the right to make it even where it is there.
    if step.query_opt("SELECT 1 FROM pg_extension WHERE extname = 'vector'", &[]).await?.is_none() {
        step.batch_execute("CREATE EXTENSION vector").await?;
    }
    let dimensions = embedding.dimensions;
    let (examples, about) = (table.quoted(), table.about());
    step.batch_execute(&format!(
        "CREATE TABLE {about} (form int NOT NULL, embedder text NOT NULL, dimensions int NOT NULL);
         CREATE TABLE {examples} (
             id text PRIMARY KEY,
             number bigint GENERATED ALWAYS AS IDENTITY,
             question text NOT NULL,
             sql text NOT NULL,
             database text NOT NULL,
             dialect text NOT NULL,
             metric text,
             provenance text NOT NULL,
             standing text NOT NULL,
             uses bigint NOT NULL,
             helped bigint NOT NULL,
             hurt bigint NOT NULL,
             added bigint NOT NULL,
             embedding vector({dimensions}) NOT NULL
         );
         CREATE INDEX {by_database} ON {examples} (database);
         CREATE INDEX {by_age} ON {examples} (added DESC, number DESC)",
        by_database = table.part("database"),
        by_age = table.part("added"),
    ))
    .await?;
    if dimensions <= LONGEST_INDEXED {
        // All vectors are of length one, so that their product is their cosine; it also stands for those of a text without words,
        // which are zero and have no cosine.
        let index = table.part("embedding");
        step.batch_execute(&format!("CREATE INDEX {index} ON {examples} USING hnsw (embedding vector_ip_ops)")).await?;
    }
    let dimensions = i32::try_from(dimensions).unwrap_or(i32::MAX);
    let form = i32::try_from(FORM).unwrap_or(i32::MAX);
    let insert = format!("INSERT INTO {about} (form, embedder, dimensions) VALUES ($1, $2, $3)");
    step.execute(&insert, &[&form, &embedding.name(), &dimensions]).await?;
    step.commit().await?;
    Ok(Found::Ours { form: FORM, embedder: embedding.name().into(), dimensions: dimensions.into() })
}
