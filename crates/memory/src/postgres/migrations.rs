//! Creation and validation of the PostgreSQL tables.

use tokio_postgres::GenericClient;

use super::pool::StorePool;
use super::settings::StoreTable;
use crate::error::Error;
use crate::store_embedder::StoreEmbedder;

/// Version of the table schema that this release writes.
const SCHEMA_VERSION: i64 = 1;
/// Advisory lock that serializes table creation across programs; an arbitrary number.
const ADVISORY_LOCK_KEY: i64 = 0x7175_6572_796d_656e;
/// Maximum vector length that pgvector can index; longer vectors are compared exhaustively.
const MAX_INDEXED_DIMENSIONS: usize = 2000;

/// Full-text expression for questions.
///
/// The `simple` configuration does no stemming, since names and codes have no stems. Longer texts
/// are truncated, because the server refuses to index more than a megabyte of tokens.
pub(super) const WORDS_EXPRESSION: &str = "to_tsvector('simple', left(question, 10000))";

/// State of the tables in the database.
enum StoreTableState {
    Missing,
    Foreign,
    Present { form: i64, embedder: String, dimensions: i64 },
}

/// Creates the tables if necessary and validates them; returns whether full-text search is
/// available.
pub(super) async fn ensure_table(
    pool: &StorePool,
    table: &StoreTable,
    embedding: &StoreEmbedder,
) -> Result<bool, Error> {
    let (mut link, _turn) = pool.acquire().await?;
    let mut state = pool.with_timeout(inspect_table(&link.client, table)).await?;
    if matches!(state, StoreTableState::Missing) {
        state = pool.with_timeout(create_table(&mut link.client, table, embedding)).await?;
    }
    let has_words = matches!(state, StoreTableState::Present { form: SCHEMA_VERSION, .. })
        && pool.with_timeout(async { Ok(ensure_word_index(&link.client, table).await) }).await?;
    pool.release(link);
    let name = pool.name();
    match state {
        StoreTableState::Present { form, embedder, dimensions } if form == SCHEMA_VERSION => {
            if embedder != embedding.name() || usize::try_from(dimensions) != Ok(embedding.dimensions) {
                return Err(embedding.embedder_mismatch_error(
                    name,
                    &embedder,
                    dimensions,
                    "name another table with ?table=",
                ));
            }
            Ok(has_words)
        }
        StoreTableState::Present { form, .. } => Err(Error::Unusable {
            message: format!(
                "{name} was created by another version of querymend (its format is {form}, this version supports \
                 {SCHEMA_VERSION})"
            ),
            hint: "use that version, or name another table with ?table=; nothing was changed in it".into(),
        }),
        StoreTableState::Missing | StoreTableState::Foreign => Err(Error::Unusable {
            message: format!("{name} contains something other than examples"),
            hint: "name another table with ?table=; nothing was changed in it".into(),
        }),
    }
}

async fn inspect_table(
    client: &impl GenericClient,
    table: &StoreTable,
) -> Result<StoreTableState, tokio_postgres::Error> {
    let there = client
        .query_one(
            // Reading a catalog table refreshes the view of objects created by other sessions;
            // `to_regclass` alone does not.
            "SELECT to_regclass($1) IS NOT NULL, to_regclass($2) IS NOT NULL, (SELECT count(*) FROM pg_extension)",
            &[&table.quoted(), &table.meta_table()],
        )
        .await?;
    match (there.try_get(0)?, there.try_get(1)?) {
        (false, false) => return Ok(StoreTableState::Missing),
        (true, true) => {}
        _ => return Ok(StoreTableState::Foreign),
    }
    let columns = client
        .query_one(
            "SELECT count(*) FROM pg_attribute WHERE attrelid = to_regclass($1) AND attname IN ('form', 'embedder', 'dimensions')",
            &[&table.meta_table()],
        )
        .await?;
    if columns.try_get::<_, i64>(0)? != 3 {
        return Ok(StoreTableState::Foreign);
    }
    let about = format!("SELECT form::bigint, embedder::text, dimensions::bigint FROM {}", table.meta_table());
    match client.query_opt(&about, &[]).await? {
        Some(row) => Ok(StoreTableState::Present {
            form: row.try_get(0)?,
            embedder: row.try_get(1)?,
            dimensions: row.try_get(2)?,
        }),
        None => Ok(StoreTableState::Foreign),
    }
}

/// Creates the full-text index, which tables of earlier versions do not have.
///
/// Without the privilege to create it, the store works without full-text search.
async fn ensure_word_index(client: &tokio_postgres::Client, table: &StoreTable) -> bool {
    let index = table.object_name("words");
    let make = format!("CREATE INDEX IF NOT EXISTS {index} ON {} USING gin ({WORDS_EXPRESSION})", table.quoted());
    let there = "SELECT 1 FROM pg_index WHERE indrelid = to_regclass($1) AND indisvalid
                 AND pg_get_indexdef(indexrelid) LIKE '%to_tsvector%'";
    let is_there = async || matches!(client.query_opt(there, &[&table.quoted()]).await, Ok(Some(_)));
    // Checked first, because `CREATE INDEX IF NOT EXISTS` needs privileges and a lock even if the
    // index exists.
    is_there().await || client.batch_execute(&make).await.is_ok() || is_there().await
}

/// Creates the tables, unless another program did so while this one waited for the lock.
async fn create_table(
    client: &mut tokio_postgres::Client,
    table: &StoreTable,
    embedding: &StoreEmbedder,
) -> Result<StoreTableState, tokio_postgres::Error> {
    let transaction = client.transaction().await?;
    transaction.execute("SELECT pg_advisory_xact_lock($1)", &[&ADVISORY_LOCK_KEY]).await?;
    let found = inspect_table(&transaction, table).await?;
    if !matches!(found, StoreTableState::Missing) {
        return Ok(found);
    }
    // Checked first, because `IF NOT EXISTS` needs the privilege to create the extension even if it
    // exists.
    if transaction.query_opt("SELECT 1 FROM pg_extension WHERE extname = 'vector'", &[]).await?.is_none() {
        transaction.batch_execute("CREATE EXTENSION vector").await?;
    }
    let dimensions = embedding.dimensions;
    let (examples, about) = (table.quoted(), table.meta_table());
    transaction
        .batch_execute(&format!(
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
            by_database = table.object_name("database"),
            by_age = table.object_name("added"),
        ))
        .await?;
    if dimensions <= MAX_INDEXED_DIMENSIONS {
        // All vectors are normalized, so the inner product is the cosine. Unlike the cosine it is
        // also defined for the zero vector of a text without tokens.
        let index = table.object_name("embedding");
        transaction
            .batch_execute(&format!("CREATE INDEX {index} ON {examples} USING hnsw (embedding vector_ip_ops)"))
            .await?;
    }
    let dimensions = i32::try_from(dimensions).unwrap_or(i32::MAX);
    let form = i32::try_from(SCHEMA_VERSION).unwrap_or(i32::MAX);
    let insert = format!("INSERT INTO {about} (form, embedder, dimensions) VALUES ($1, $2, $3)");
    transaction.execute(&insert, &[&form, &embedding.name(), &dimensions]).await?;
    transaction.commit().await?;
    Ok(StoreTableState::Present {
        form: SCHEMA_VERSION,
        embedder: embedding.name().into(),
        dimensions: dimensions.into(),
    })
}
