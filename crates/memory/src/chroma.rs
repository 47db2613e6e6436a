//! Example store in a ChromaDB collection: the question is the document, all other fields are
//! metadata.
//!
//! ChromaDB has no transactions and cannot increment counters, so counters are read, changed and
//! written back. Writes of one process are serialized; if two processes update the same example at
//! the same moment, one update may be lost. ChromaDB does not sort either: lists are read
//! completely and sorted here.

mod client;
mod metadata;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use querymend_model::{Embedder, similarity};
use querymend_net::read_env;
use reqwest::Method;
use serde_json::{Map, Value, json};
use tokio::sync::Mutex;

use self::client::ChromaClient;
use self::metadata::{all_conditions, conditions, contains_any, example, metadata};
use crate::error::Error;
use crate::example::{Example, example_id};
use crate::query::{ExampleFilter, ExampleQuery, ExampleUpdate, ScoredExample};
use crate::rank;
use crate::store_embedder::StoreEmbedder;
use crate::updates::merge_updates;
use crate::{BoxFuture, ExampleStore};

/// Version of the metadata format that this release writes.
const FORMAT_VERSION: i64 = 1;
/// Number of examples per upsert request.
const BATCH_SIZE: usize = 250;
/// Number of examples per read request.
const PAGE_SIZE: usize = 1000;

/// Example store in a ChromaDB collection.
pub struct ChromaStore {
    client: ChromaClient,
    embedding: StoreEmbedder,
    /// Collection id assigned by the server.
    id: String,
    /// Serializes writes, which read and write back counters.
    write_lock: Mutex<()>,
}

impl ChromaStore {
    /// Opens the collection at `chroma://HOST:PORT/COLLECTION`, or `chromas://` with TLS, and
    /// creates it if it does not exist.
    ///
    /// The address accepts the parameters `tenant=`, `database=` and `ca_file=`, a file of
    /// certificates to trust in addition to the system's. The token is read from `CHROMA_TOKEN` or
    /// the file named by `CHROMA_TOKEN_FILE`. A collection that was created with a different
    /// embedder is rejected instead of re-embedded, because other programs use it.
    pub async fn open(address: &str, embedder: Arc<dyn Embedder>) -> Result<Self, Error> {
        let client = ChromaClient::new(address, &read_env)?;
        let embedding = StoreEmbedder::new(embedder).await?;
        let collection = match client.request(Method::GET, &[&client.collection], None).await? {
            Some(collection) => collection,
            None => create_collection(&client, &embedding).await?,
        };
        let id = check_collection(&client, &embedding, &collection)?;
        Ok(Self { client, embedding, id, write_lock: Mutex::new(()) })
    }

    async fn request(&self, method: Method, what: &str, body: Option<&Value>) -> Result<Value, Error> {
        self.client.request(method, &[&self.id, what], body).await?.ok_or_else(|| Error::Unusable {
            message: format!("{}: the collection was deleted", self.client.name),
            hint: "reopen the store to create a new one".into(),
        })
    }

    async fn post(&self, what: &str, body: &Value) -> Result<Value, Error> {
        self.request(Method::POST, what, Some(body)).await
    }

    /// Returns the examples with these ids, skipping ids that do not exist.
    async fn get_many(&self, ids: &[&str]) -> Result<Vec<Example>, Error> {
        let mut found = Vec::new();
        for part in ids.chunks(PAGE_SIZE) {
            let answer = self.post("get", &json!({ "ids": part, "include": ["documents", "metadatas"] })).await?;
            found.extend(self.parse_examples(&answer)?);
        }
        Ok(found)
    }

    async fn upsert(&self, examples: &[Example]) -> Result<usize, Error> {
        // The last example with the same id wins, as if they had been added one by one.
        let by_id: BTreeMap<&str, &Example> = examples.iter().map(|example| (example.id.as_str(), example)).collect();
        let examples: Vec<&Example> = by_id.into_values().collect();
        let texts: Vec<&str> = examples.iter().map(|example| example.question.as_str()).collect();
        let vectors = self.embedding.vectors(&texts).await?;
        let ids: Vec<&str> = examples.iter().map(|example| example.id.as_str()).collect();
        let _one_at_a_time = self.write_lock.lock().await;
        let there: HashSet<String> = self.get_many(&ids).await?.into_iter().map(|example| example.id).collect();
        for (part, vectors) in examples.chunks(BATCH_SIZE).zip(vectors.chunks(BATCH_SIZE)) {
            // Fields that are not sent keep their values: counters, the time it was added, and the
            // metric if none is given.
            let metadata: Vec<Value> =
                part.iter().map(|example| metadata(example, !there.contains(&example.id))).collect();
            let ids: Vec<&str> = part.iter().map(|example| example.id.as_str()).collect();
            let documents: Vec<&str> = part.iter().map(|example| example.question.as_str()).collect();
            let body = json!({ "ids": ids, "embeddings": vectors, "documents": documents, "metadatas": metadata });
            self.post("upsert", &body).await?;
        }
        Ok(examples.len() - there.len())
    }

    /// Returns the nearest examples by vector, with their similarity.
    async fn nearest(
        &self,
        vector: &[f32],
        conditions: Vec<Value>,
        limit: usize,
    ) -> Result<Vec<(Example, f32)>, Error> {
        self.nearest_containing(vector, conditions, None, limit).await
    }

    /// Returns the nearest examples whose question matches the document filter `words`.
    async fn nearest_containing(
        &self,
        vector: &[f32],
        conditions: Vec<Value>,
        words: Option<Value>,
        limit: usize,
    ) -> Result<Vec<(Example, f32)>, Error> {
        let mut body = json!({
            "query_embeddings": [vector], "n_results": limit, "include": ["documents", "metadatas", "distances"],
        });
        if !conditions.is_empty() {
            body["where"] = all_conditions(conditions);
        }
        if let Some(words) = words {
            body["where_document"] = words;
        }
        let answer = self.post("query", &body).await?;
        // One result list per query vector, and there was one query vector.
        let first = |name: &str| answer.get(name).and_then(|all| all.get(0)).cloned().unwrap_or(Value::Null);
        let distances = first("distances");
        let found = self.parse_examples(
            &json!({ "ids": first("ids"), "documents": first("documents"), "metadatas": first("metadatas") }),
        )?;
        let distances = distances.as_array().filter(|distances| distances.len() == found.len());
        let distances = distances.ok_or_else(|| self.client.unexpected_response("a distance is missing"))?;
        // The vector of a text without tokens is zero and has no cosine distance.
        let similar = distances.iter().map(|distance| 1.0 - distance.as_f64().unwrap_or(1.0) as f32);
        Ok(found.into_iter().zip(similar).collect())
    }

    /// Returns the nearest examples, filtered on the server only if necessary.
    ///
    /// Predicates that most examples satisfy cost the server more than the vector search itself, so
    /// they are checked here and sent only if more than half of the nearest examples are not
    /// eligible.
    async fn candidates(
        &self,
        vector: &[f32],
        mut conditions: Vec<Value>,
        common_conditions: &[Value],
        limit: usize,
        query: &ExampleQuery<'_>,
    ) -> Result<Vec<(Example, f32)>, Error> {
        let found = self.nearest(vector, conditions.clone(), limit).await?;
        let eligible = found.iter().filter(|(example, _)| rank::is_eligible(example, query)).count();
        if found.len() < limit || eligible >= limit / 2 {
            return Ok(found);
        }
        conditions.extend_from_slice(common_conditions);
        self.nearest(vector, conditions, limit).await
    }

    /// Returns the example for the identical question, found by its id because an approximate index
    /// may miss it.
    async fn exact_match(&self, vector: &[f32], query: &ExampleQuery<'_>) -> Result<Option<(Example, f32)>, Error> {
        let id = example_id(query.question, query.database);
        let body = json!({ "ids": [id], "include": ["documents", "metadatas", "embeddings"] });
        let answer = self.post("get", &body).await?;
        let Some(example) = self.parse_examples(&answer)?.pop() else { return Ok(None) };
        let embedding = answer.get("embeddings").and_then(|all| all.get(0)).and_then(Value::as_array);
        let embedding: Option<Vec<f32>> =
            embedding.map(|embedding| embedding.iter().map(|one| one.as_f64().unwrap_or(0.0) as f32).collect());
        let kept = embedding.ok_or_else(|| self.client.unexpected_response("an embedding is missing"))?;
        Ok(Some((example, similarity(&kept, vector))))
    }

    async fn find(&self, query: &ExampleQuery<'_>) -> Result<Vec<ScoredExample>, Error> {
        if query.limit == 0 {
            return Ok(Vec::new());
        }
        let vector = self.embedding.vector(query.question).await?;
        let mut conditions = vec![if query.only_verified {
            json!({ "standing": "verified" })
        } else {
            json!({ "standing": { "$in": ["verified", "unverified"] } })
        }];
        if let Some(dialect) = query.dialect {
            conditions.push(json!({ "dialect": dialect }));
        }
        let most = rank::CANDIDATE_LIMIT.max(2 * query.limit);
        let all = async {
            if query.only_database {
                Ok(Vec::new())
            } else {
                self.candidates(&vector, Vec::new(), &conditions, most, query).await
            }
        };
        let database = vec![json!({ "database": query.database })];
        let own = self.candidates(&vector, database, &conditions, most, query);
        let (same, own, all) = tokio::join!(self.exact_match(&vector, query), own, all);
        let mut seen = HashSet::new();
        let found = same?.into_iter().chain(own?).chain(all?);
        let mut found: Vec<(Example, f32)> = found.filter(|(example, _)| seen.insert(example.id.clone())).collect();
        let missed = rank::missed_words(query.question, &found);
        if !missed.is_empty() {
            if query.only_database {
                conditions.push(json!({ "database": query.database }));
            }
            let more = self
                .nearest_containing(&vector, conditions, Some(contains_any(&missed)), rank::WORD_MATCH_LIMIT)
                .await?;
            found.extend(more.into_iter().filter(|(example, _)| seen.insert(example.id.clone())));
        }
        Ok(rank::rank(found, query))
    }

    /// Returns all examples that match a filter as unordered result pages.
    async fn get_pages(&self, filter: &ExampleFilter, include: &[&str]) -> Result<Vec<Value>, Error> {
        let mut pages = Vec::new();
        loop {
            let mut body = json!({ "limit": PAGE_SIZE, "offset": pages.len() * PAGE_SIZE, "include": include });
            let which = conditions(filter);
            if !which.is_empty() {
                body["where"] = all_conditions(which);
            }
            let page = self.post("get", &body).await?;
            let ids = page
                .get("ids")
                .and_then(Value::as_array)
                .ok_or_else(|| self.client.unexpected_response("there are no ids"))?;
            let last = ids.len() < PAGE_SIZE;
            pages.push(page);
            if last {
                return Ok(pages);
            }
        }
    }

    /// Parses the examples of a response.
    fn parse_examples(&self, answer: &Value) -> Result<Vec<Example>, Error> {
        let column = |name: &str| {
            let column = answer.get(name).and_then(Value::as_array);
            column.ok_or_else(|| self.client.unexpected_response(&format!("there are no {name}")))
        };
        let (ids, documents, metadata) = (column("ids")?, column("documents")?, column("metadatas")?);
        if ids.len() != documents.len() || ids.len() != metadata.len() {
            return Err(self.client.unexpected_response("its columns have different lengths"));
        }
        let mut examples = Vec::with_capacity(ids.len());
        for ((id, document), metadata) in ids.iter().zip(documents).zip(metadata) {
            let id = id.as_str().unwrap_or_default();
            let example = example(id, document.as_str(), metadata).ok_or_else(|| Error::Unusable {
                message: format!("{} contains an entry that is not an example: `{id}`", self.client.name),
                hint: "delete it there, or name another collection".into(),
            })?;
            examples.push(example);
        }
        Ok(examples)
    }
}

/// Creates the collection, or returns the existing one if another program has created it
/// concurrently.
async fn create_collection(client: &ChromaClient, embedding: &StoreEmbedder) -> Result<Value, Error> {
    let body = json!({
        "name": client.collection,
        "get_or_create": true,
        "metadata": {
            "querymend_form": FORMAT_VERSION,
            "querymend_embedder": embedding.name(),
            "querymend_dimensions": embedding.dimensions,
        },
        // HNSW search must visit at least as many candidates as one query may request.
        "configuration": { "hnsw": { "space": "cosine", "ef_search": 4 * rank::CANDIDATE_LIMIT } },
    });
    let made = client.request(Method::POST, &[], Some(&body)).await?;
    made.ok_or_else(|| Error::Unusable {
        message: format!("{}: there is no such tenant or database", client.name),
        hint: "check tenant= and database= in the address of the store".into(),
    })
}

/// Checks that a collection holds our examples, format version and embedder; returns its id.
fn check_collection(client: &ChromaClient, embedding: &StoreEmbedder, collection: &Value) -> Result<String, Error> {
    let id = collection
        .get("id")
        .and_then(Value::as_str)
        .ok_or_else(|| client.unexpected_response("a collection has no id"))?;
    let metadata_value = |name: &str| collection.get("metadata").and_then(|metadata| metadata.get(name));
    let Some(form) = metadata_value("querymend_form").and_then(Value::as_i64) else {
        return Err(Error::Unusable {
            message: format!("{} contains something other than examples", client.name),
            hint: "name another collection; nothing was changed in it".into(),
        });
    };
    if form != FORMAT_VERSION {
        return Err(Error::Unusable {
            message: format!(
                "{} was created by another version of querymend (its format is {form}, this version supports {FORMAT_VERSION})",
                client.name
            ),
            hint: "use that version, or name another collection; nothing was changed in it".into(),
        });
    }
    let theirs = metadata_value("querymend_embedder").and_then(Value::as_str).unwrap_or_default();
    let dimensions = metadata_value("querymend_dimensions").and_then(Value::as_i64).unwrap_or_default();
    if theirs != embedding.name() || usize::try_from(dimensions) != Ok(embedding.dimensions) {
        return Err(embedding.embedder_mismatch_error(&client.name, theirs, dimensions, "name another collection"));
    }
    Ok(id.to_string())
}

impl ExampleStore for ChromaStore {
    fn name(&self) -> &str {
        &self.client.name
    }

    fn add<'a>(&'a self, examples: &'a [Example]) -> BoxFuture<'a, usize> {
        Box::pin(async move { if examples.is_empty() { Ok(0) } else { self.upsert(examples).await } })
    }

    fn search<'a>(&'a self, query: &'a ExampleQuery<'a>) -> BoxFuture<'a, Vec<ScoredExample>> {
        Box::pin(self.find(query))
    }

    fn get<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Option<Example>> {
        Box::pin(async move { Ok(self.get_many(&[id]).await?.pop()) })
    }

    fn list<'a>(&'a self, filter: &'a ExampleFilter, skip: usize, limit: usize) -> BoxFuture<'a, Vec<Example>> {
        Box::pin(async move {
            if limit == 0 {
                return Ok(Vec::new());
            }
            let mut found = Vec::new();
            for page in self.get_pages(filter, &["documents", "metadatas"]).await? {
                found.extend(self.parse_examples(&page)?);
            }
            // Among examples added in the same second, those that the server lists last are the
            // newest.
            found.reverse();
            found.sort_by_key(|example| std::cmp::Reverse(example.added));
            Ok(found.into_iter().skip(skip).take(limit).collect())
        })
    }

    fn count<'a>(&'a self, filter: &'a ExampleFilter) -> BoxFuture<'a, usize> {
        Box::pin(async move {
            if *filter == ExampleFilter::default() {
                let count = self.request(Method::GET, "count", None).await?;
                let count = count.as_u64().and_then(|count| usize::try_from(count).ok());
                return count.ok_or_else(|| self.client.unexpected_response("its count is not a number"));
            }
            let pages = self.get_pages(filter, &[]).await?;
            Ok(pages.iter().filter_map(|page| page.get("ids")?.as_array()).map(Vec::len).sum())
        })
    }

    fn update<'a>(&'a self, changes: &'a [(&'a str, ExampleUpdate)]) -> BoxFuture<'a, usize> {
        Box::pin(async move {
            if changes.is_empty() {
                return Ok(0);
            }
            let changes = merge_updates(changes);
            let ids: Vec<&str> = changes.keys().copied().collect();
            let _one_at_a_time = self.write_lock.lock().await;
            let there = self.get_many(&ids).await?;
            if there.is_empty() {
                return Ok(0);
            }
            let mut ids = Vec::with_capacity(there.len());
            let mut metadata = Vec::with_capacity(there.len());
            for example in &there {
                let Some(change) = changes.get(example.id.as_str()) else { continue };
                let mut new = Map::new();
                for (name, now, more) in [
                    ("uses", example.uses, change.uses),
                    ("helped", example.helped, change.helped),
                    ("hurt", example.hurt, change.hurt),
                ] {
                    // Unchanged counters are not written back, so that concurrent updates by
                    // another program are not lost.
                    if more > 0 {
                        new.insert(name.into(), now.saturating_add(more).into());
                    }
                }
                if let Some(standing) = change.standing {
                    new.insert("standing".into(), standing.name().into());
                }
                if let Some(provenance) = change.provenance {
                    new.insert("provenance".into(), provenance.name().into());
                }
                if !new.is_empty() {
                    ids.push(example.id.as_str());
                    metadata.push(Value::Object(new));
                }
            }
            if !ids.is_empty() {
                self.post("update", &json!({ "ids": ids, "metadatas": metadata })).await?;
            }
            Ok(there.len())
        })
    }

    fn remove<'a>(&'a self, ids: &'a [&'a str]) -> BoxFuture<'a, usize> {
        Box::pin(async move {
            if ids.is_empty() {
                return Ok(0);
            }
            let _one_at_a_time = self.write_lock.lock().await;
            // The server's count includes ids that do not exist.
            let there: BTreeSet<String> = self.get_many(ids).await?.into_iter().map(|one| one.id).collect();
            for part in there.iter().collect::<Vec<_>>().chunks(PAGE_SIZE) {
                self.post("delete", &json!({ "ids": part })).await?;
            }
            Ok(there.len())
        })
    }
}
