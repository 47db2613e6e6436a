//! Examples in a collection of a ChromaDB server: the question is the document, the rest is metadata.
//!
//! ChromaDB has no transactions, and counts cannot be added to on its side: they are read and written back. Within one program
//! that is done by one at a time; of two programs that count the same example at the same moment, one may be lost. It does not sort
//! either: lists are read whole and sorted here.

mod wire;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use querymend_model::{Embedder, similarity};
use querymend_net::environment;
use reqwest::Method;
use serde_json::{Map, Value, json};
use tokio::sync::Mutex;

use self::wire::Wire;
use crate::changes::merged;
use crate::embedding::Embedding;
use crate::error::Error;
use crate::example::{Example, Provenance, Standing, id};
use crate::rank;
use crate::sought::{Change, Filter, Found, Sought};
use crate::{Answer, ExampleStore};

/// The form of the metadata that this version writes.
const FORM: i64 = 1;
/// So many examples are sent with one request.
const LOT: usize = 250;
/// So many examples are fetched with one request.
const PAGE: usize = 1000;

/// Examples in a collection of a ChromaDB server.
pub struct ChromaStore {
    wire: Wire,
    embedding: Embedding,
    /// By which the server knows the collection.
    id: String,
    /// Who writes holds this.
    writing: Mutex<()>,
}

impl ChromaStore {
    /// Opens the examples in a collection, `chroma://HOST:PORT/COLLECTION`, or `chromas://` with TLS; it is made if there is
    /// none.
    ///
    /// `tenant=` and `database=` may follow as parameters, and `ca_file=` with certificates that are trusted beside the usual
    /// ones. A token is looked for in `CHROMA_TOKEN` and the file that `CHROMA_TOKEN_FILE` names. A collection that was made with
    /// another embedder is refused: others use it.
    pub async fn open(address: &str, embedder: Arc<dyn Embedder>) -> Result<Self, Error> {
        let wire = Wire::new(address, &environment)?;
        let embedding = Embedding::new(embedder).await?;
        let collection = match wire.ask(Method::GET, &[&wire.collection], None).await? {
            Some(collection) => collection,
            None => make(&wire, &embedding).await?,
        };
        let id = agree(&wire, &embedding, &collection)?;
        Ok(Self { wire, embedding, id, writing: Mutex::new(()) })
    }

    async fn ask(&self, method: Method, what: &str, body: Option<&Value>) -> Result<Value, Error> {
        self.wire.ask(method, &[&self.id, what], body).await?.ok_or_else(|| Error::Unusable {
            message: format!("{} is gone: somebody has deleted the collection", self.wire.name),
            hint: "opening the store again makes a new one".into(),
        })
    }

    async fn post(&self, what: &str, body: &Value) -> Result<Value, Error> {
        self.ask(Method::POST, what, Some(body)).await
    }

    /// Those of these ids that are there.
    async fn those(&self, ids: &[&str]) -> Result<Vec<Example>, Error> {
        let mut found = Vec::new();
        for part in ids.chunks(PAGE) {
            let answer = self.post("get", &json!({ "ids": part, "include": ["documents", "metadatas"] })).await?;
            found.extend(self.examples(&answer)?);
        }
        Ok(found)
    }

    async fn put(&self, examples: &[Example]) -> Result<usize, Error> {
        // Of several with one id the last stays, as if they had come one after the other.
        let by_id: BTreeMap<&str, &Example> = examples.iter().map(|example| (example.id.as_str(), example)).collect();
        let examples: Vec<&Example> = by_id.into_values().collect();
        let texts: Vec<&str> = examples.iter().map(|example| example.question.as_str()).collect();
        let vectors = self.embedding.vectors(&texts).await?;
        let ids: Vec<&str> = examples.iter().map(|example| example.id.as_str()).collect();
        let _one_at_a_time = self.writing.lock().await;
        let there: HashSet<String> = self.those(&ids).await?.into_iter().map(|example| example.id).collect();
        for (part, vectors) in examples.chunks(LOT).zip(vectors.chunks(LOT)) {
            // What is not sent stays as it is there: counts, when it was added, and a metric where no other is given.
            let metadata: Vec<Value> =
                part.iter().map(|example| metadata(example, !there.contains(&example.id))).collect();
            let ids: Vec<&str> = part.iter().map(|example| example.id.as_str()).collect();
            let documents: Vec<&str> = part.iter().map(|example| example.question.as_str()).collect();
            let body = json!({ "ids": ids, "embeddings": vectors, "documents": documents, "metadatas": metadata });
            self.post("upsert", &body).await?;
        }
        Ok(examples.len() - there.len())
    }

    /// The nearest by their vectors, with their similarity.
    async fn nearest(&self, vector: &[f32], which: Vec<Value>, most: usize) -> Result<Vec<(Example, f32)>, Error> {
        self.nearest_with(vector, which, None, most).await
    }

    /// The nearest whose question has one of these words.
    async fn nearest_with(
        &self,
        vector: &[f32],
        which: Vec<Value>,
        words: Option<Value>,
        most: usize,
    ) -> Result<Vec<(Example, f32)>, Error> {
        let mut body = json!({
            "query_embeddings": [vector], "n_results": most, "include": ["documents", "metadatas", "distances"],
        });
        if !which.is_empty() {
            body["where"] = all_of(which);
        }
        if let Some(words) = words {
            body["where_document"] = words;
        }
        let answer = self.post("query", &body).await?;
        // There is one answer for each vector that was asked for, and one was.
        let first = |name: &str| answer.get(name).and_then(|all| all.get(0)).cloned().unwrap_or(Value::Null);
        let distances = first("distances");
        let found = self.examples(
            &json!({ "ids": first("ids"), "documents": first("documents"), "metadatas": first("metadatas") }),
        )?;
        let distances = distances.as_array().filter(|distances| distances.len() == found.len());
        let distances = distances.ok_or_else(|| self.wire.strange("there is a distance missing"))?;
        // A text without words has no distance to anything.
        let similar = distances.iter().map(|distance| 1.0 - distance.as_f64().unwrap_or(1.0) as f32);
        Ok(found.into_iter().zip(similar).collect())
    }

    /// The nearest of a few that may be shown. Conditions that most examples meet cost the server more than looking for what is
    /// near, so they are looked at here, and sent only where too much was near that may not be shown.
    async fn pool(
        &self,
        vector: &[f32],
        mut which: Vec<Value>,
        most_meet: &[Value],
        most: usize,
        sought: &Sought<'_>,
    ) -> Result<Vec<(Example, f32)>, Error> {
        let found = self.nearest(vector, which.clone(), most).await?;
        let fit = found.iter().filter(|(example, _)| rank::may_be_shown(example, sought)).count();
        if found.len() < most || fit >= most / 2 {
            return Ok(found);
        }
        which.extend_from_slice(most_meet);
        self.nearest(vector, which, most).await
    }

    /// The very same question, which an index may miss: it is known by its id.
    async fn same(&self, vector: &[f32], sought: &Sought<'_>) -> Result<Option<(Example, f32)>, Error> {
        let id = id(sought.question, sought.database);
        let body = json!({ "ids": [id], "include": ["documents", "metadatas", "embeddings"] });
        let answer = self.post("get", &body).await?;
        let Some(example) = self.examples(&answer)?.pop() else { return Ok(None) };
        let kept = answer.get("embeddings").and_then(|all| all.get(0)).and_then(Value::as_array);
        let kept: Option<Vec<f32>> =
            kept.map(|kept| kept.iter().map(|one| one.as_f64().unwrap_or(0.0) as f32).collect());
        let kept = kept.ok_or_else(|| self.wire.strange("there is an embedding missing"))?;
        Ok(Some((example, similarity(&kept, vector))))
    }

    async fn find(&self, sought: &Sought<'_>) -> Result<Vec<Found>, Error> {
        if sought.most == 0 {
            return Ok(Vec::new());
        }
        let vector = self.embedding.vector(sought.question).await?;
        let mut which = vec![if sought.only_verified {
            json!({ "standing": "verified" })
        } else {
            json!({ "standing": { "$in": ["verified", "unverified"] } })
        }];
        if let Some(dialect) = sought.dialect {
            which.push(json!({ "dialect": dialect }));
        }
        let most = rank::POOL.max(2 * sought.most);
        let all = async {
            if sought.only_database {
                Ok(Vec::new())
            } else {
                self.pool(&vector, Vec::new(), &which, most, sought).await
            }
        };
        let database = vec![json!({ "database": sought.database })];
        let own = self.pool(&vector, database, &which, most, sought);
        let (same, own, all) = tokio::join!(self.same(&vector, sought), own, all);
        let mut seen = HashSet::new();
        let found = same?.into_iter().chain(own?).chain(all?);
        let mut found: Vec<(Example, f32)> = found.filter(|(example, _)| seen.insert(example.id.clone())).collect();
        let missed = rank::missed(sought.question, &found);
        if !missed.is_empty() {
            if sought.only_database {
                which.push(json!({ "database": sought.database }));
            }
            let more = self.nearest_with(&vector, which, Some(having(&missed)), rank::BY_WORDS).await?;
            found.extend(more.into_iter().filter(|(example, _)| seen.insert(example.id.clone())));
        }
        Ok(rank::rank(found, sought))
    }

    /// All that fit, in no order, page by page.
    async fn all(&self, filter: &Filter, include: &[&str]) -> Result<Vec<Value>, Error> {
        let mut pages = Vec::new();
        loop {
            let mut body = json!({ "limit": PAGE, "offset": pages.len() * PAGE, "include": include });
            let which = conditions(filter);
            if !which.is_empty() {
                body["where"] = all_of(which);
            }
            let page = self.post("get", &body).await?;
            let ids = page.get("ids").and_then(Value::as_array).ok_or_else(|| self.wire.strange("there are no ids"))?;
            let last = ids.len() < PAGE;
            pages.push(page);
            if last {
                return Ok(pages);
            }
        }
    }

    /// Examples out of what the server says.
    fn examples(&self, answer: &Value) -> Result<Vec<Example>, Error> {
        let column = |name: &str| {
            let column = answer.get(name).and_then(Value::as_array);
            column.ok_or_else(|| self.wire.strange(&format!("there are no {name}")))
        };
        let (ids, documents, metadata) = (column("ids")?, column("documents")?, column("metadatas")?);
        if ids.len() != documents.len() || ids.len() != metadata.len() {
            return Err(self.wire.strange("there is something missing"));
        }
        let mut examples = Vec::with_capacity(ids.len());
        for ((id, document), metadata) in ids.iter().zip(documents).zip(metadata) {
            let id = id.as_str().unwrap_or_default();
            let example = example(id, document.as_str(), metadata).ok_or_else(|| Error::Unusable {
                message: format!("{} holds something that is not an example: `{id}`", self.wire.name),
                hint: "delete it there, or name another collection".into(),
            })?;
            examples.push(example);
        }
        Ok(examples)
    }
}

/// Texts with one of these words. The server takes a word as it is written, so that each is sought in the ways it may be.
fn having(words: &[&str]) -> Value {
    let mut ways: BTreeSet<String> = BTreeSet::new();
    for word in words {
        let small = word.to_lowercase();
        let mut letters = small.chars();
        let begun: String = letters.next().into_iter().flat_map(char::to_uppercase).chain(letters).collect();
        ways.extend([(*word).to_string(), word.to_uppercase(), begun, small]);
    }
    let mut ways: Vec<Value> = ways.into_iter().map(|way| json!({ "$contains": way })).collect();
    if ways.len() == 1 { ways.remove(0) } else { json!({ "$or": ways }) }
}

/// Makes the collection. Where another program does so at the same moment, it is that one's.
async fn make(wire: &Wire, embedding: &Embedding) -> Result<Value, Error> {
    let body = json!({
        "name": wire.collection,
        "get_or_create": true,
        "metadata": {
            "querymend_form": FORM,
            "querymend_embedder": embedding.name(),
            "querymend_dimensions": embedding.dimensions,
        },
        // As many as are asked for at once have to be among those that are looked at.
        "configuration": { "hnsw": { "space": "cosine", "ef_search": 4 * rank::POOL } },
    });
    let made = wire.ask(Method::POST, &[], Some(&body)).await?;
    made.ok_or_else(|| Error::Unusable {
        message: format!("{}: there is no such tenant or database", wire.name),
        hint: "check tenant= and database= in the address of the store".into(),
    })
}

/// Makes sure that a collection is ours and fits; gives back by what the server knows it.
fn agree(wire: &Wire, embedding: &Embedding, collection: &Value) -> Result<String, Error> {
    let id = collection.get("id").and_then(Value::as_str).ok_or_else(|| wire.strange("a collection has no id"))?;
    let about = |name: &str| collection.get("metadata").and_then(|metadata| metadata.get(name));
    let Some(form) = about("querymend_form").and_then(Value::as_i64) else {
        return Err(Error::Unusable {
            message: format!("{} holds something else than examples", wire.name),
            hint: "name another collection; nothing was changed in it".into(),
        });
    };
    if form != FORM {
        return Err(Error::Unusable {
            message: format!(
                "{} was made by another version of querymend (its form is {form}, this one knows {FORM})",
                wire.name
            ),
            hint: "use that version, or name another collection; nothing was changed in it".into(),
        });
    }
    let theirs = about("querymend_embedder").and_then(Value::as_str).unwrap_or_default();
    let dimensions = about("querymend_dimensions").and_then(Value::as_i64).unwrap_or_default();
    if theirs != embedding.name() || usize::try_from(dimensions) != Ok(embedding.dimensions) {
        return Err(embedding.refuse(&wire.name, theirs, dimensions, "name another collection"));
    }
    Ok(id.to_string())
}

/// An example as metadata; all of it where it is new.
fn metadata(example: &Example, new: bool) -> Value {
    let mut metadata = Map::new();
    for (name, text) in [
        ("sql", example.sql.as_str()),
        ("database", &example.database),
        ("dialect", &example.dialect),
        ("provenance", example.provenance.name()),
        ("standing", example.standing.name()),
    ] {
        metadata.insert(name.into(), text.into());
    }
    if let Some(metric) = &example.metric {
        metadata.insert("metric".into(), metric.as_str().into());
    }
    if new {
        metadata.insert("added".into(), example.added.into());
        for (name, count) in [("uses", example.uses), ("helped", example.helped), ("hurt", example.hurt)] {
            metadata.insert(name.into(), count.into());
        }
    }
    Value::Object(metadata)
}

fn example(id: &str, question: Option<&str>, metadata: &Value) -> Option<Example> {
    let text = |name: &str| metadata.get(name).and_then(Value::as_str);
    let count = |name: &str| {
        let count = metadata.get(name).and_then(Value::as_u64).unwrap_or(0);
        u32::try_from(count).unwrap_or(u32::MAX)
    };
    Some(Example {
        id: id.to_string(),
        question: question?.to_string(),
        sql: text("sql")?.to_string(),
        database: text("database")?.to_string(),
        dialect: text("dialect")?.to_string(),
        metric: text("metric").map(String::from),
        provenance: Provenance::named(text("provenance")?)?,
        standing: Standing::named(text("standing")?)?,
        uses: count("uses"),
        helped: count("helped"),
        hurt: count("hurt"),
        added: metadata.get("added").and_then(Value::as_u64).unwrap_or(0),
    })
}

/// What a filter asks of the metadata.
fn conditions(filter: &Filter) -> Vec<Value> {
    let all = [
        filter.database.as_ref().map(|database| json!({ "database": database })),
        filter.dialect.as_ref().map(|dialect| json!({ "dialect": dialect })),
        filter.provenance.map(|provenance| json!({ "provenance": provenance.name() })),
        filter.standing.map(|standing| json!({ "standing": standing.name() })),
    ];
    all.into_iter().flatten().collect()
}

/// All of these conditions. ChromaDB wants at least two where it is told so.
fn all_of(mut conditions: Vec<Value>) -> Value {
    match conditions.len() {
        1 => conditions.remove(0),
        _ => json!({ "$and": conditions }),
    }
}

impl ExampleStore for ChromaStore {
    fn name(&self) -> &str {
        &self.wire.name
    }

    fn add<'a>(&'a self, examples: &'a [Example]) -> Answer<'a, usize> {
        Box::pin(async move { if examples.is_empty() { Ok(0) } else { self.put(examples).await } })
    }

    fn search<'a>(&'a self, sought: &'a Sought<'a>) -> Answer<'a, Vec<Found>> {
        Box::pin(self.find(sought))
    }

    fn get<'a>(&'a self, id: &'a str) -> Answer<'a, Option<Example>> {
        Box::pin(async move { Ok(self.those(&[id]).await?.pop()) })
    }

    fn list<'a>(&'a self, filter: &'a Filter, skip: usize, most: usize) -> Answer<'a, Vec<Example>> {
        Box::pin(async move {
            if most == 0 {
                return Ok(Vec::new());
            }
            let mut found = Vec::new();
            for page in self.all(filter, &["documents", "metadatas"]).await? {
                found.extend(self.examples(&page)?);
            }
            // Of those that came in the same second, the ones that the server names last are the newest.
            found.reverse();
            found.sort_by_key(|example| std::cmp::Reverse(example.added));
            Ok(found.into_iter().skip(skip).take(most).collect())
        })
    }

    fn count<'a>(&'a self, filter: &'a Filter) -> Answer<'a, usize> {
        Box::pin(async move {
            if *filter == Filter::default() {
                let count = self.ask(Method::GET, "count", None).await?;
                let count = count.as_u64().and_then(|count| usize::try_from(count).ok());
                return count.ok_or_else(|| self.wire.strange("its count is no number"));
            }
            let pages = self.all(filter, &[]).await?;
            Ok(pages.iter().filter_map(|page| page.get("ids")?.as_array()).map(Vec::len).sum())
        })
    }

    fn change<'a>(&'a self, changes: &'a [(&'a str, Change)]) -> Answer<'a, usize> {
        Box::pin(async move {
            if changes.is_empty() {
                return Ok(0);
            }
            let changes = merged(changes);
            let ids: Vec<&str> = changes.keys().copied().collect();
            let _one_at_a_time = self.writing.lock().await;
            let there = self.those(&ids).await?;
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
                    // What nobody counted is not written back, so that another program's count of it is not lost.
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

    fn remove<'a>(&'a self, ids: &'a [&'a str]) -> Answer<'a, usize> {
        Box::pin(async move {
            if ids.is_empty() {
                return Ok(0);
            }
            let _one_at_a_time = self.writing.lock().await;
            // The server counts those that were not there as well.
            let there: BTreeSet<String> = self.those(ids).await?.into_iter().map(|one| one.id).collect();
            for part in there.iter().collect::<Vec<_>>().chunks(PAGE) {
                self.post("delete", &json!({ "ids": part })).await?;
            }
            Ok(there.len())
        })
    }
}
