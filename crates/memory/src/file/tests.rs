use std::fs;
use std::time::{Duration, Instant};

use querymend_model::StaticEmbedder;
use querymend_testing::scaled;

use super::*;
use crate::example::VerificationStatus;
use crate::vector_index::{Centroids, min_indexed_rows};

/// Embedder that hashes the bytes of a text: fast, and of any dimension.
struct HashEmbedder(&'static str, usize);

/// Behaves like a remote embedder, whose dimension is unknown until the first request.
struct LazyEmbedder(HashEmbedder);

impl Embedder for LazyEmbedder {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn dimensions(&self) -> Option<usize> {
        None
    }

    fn embed<'a>(&'a self, texts: &'a [&'a str]) -> querymend_model::BoxFuture<'a, Vec<Vec<f32>>> {
        self.0.embed(texts)
    }
}

impl Embedder for HashEmbedder {
    fn name(&self) -> &str {
        self.0
    }

    fn dimensions(&self) -> Option<usize> {
        Some(self.1)
    }

    fn embed<'a>(&'a self, texts: &'a [&'a str]) -> querymend_model::BoxFuture<'a, Vec<Vec<f32>>> {
        let vector = |text: &&str| {
            let mut vector = vec![0.0_f32; self.1];
            let mut sum = 7_u32;
            for byte in text.bytes() {
                sum = (sum ^ u32::from(byte)).wrapping_mul(16_777_619);
                vector[(sum >> 8) as usize % self.1] += 1.0 + (sum >> 28) as f32 / 8.0;
            }
            let length = vector.iter().map(|number| number * number).sum::<f32>().sqrt().max(1e-6);
            vector.iter().map(|number| number / length).collect()
        };
        Box::pin(async move { Ok(texts.iter().map(vector).collect()) })
    }
}

fn static_embedder() -> Arc<dyn Embedder> {
    Arc::new(StaticEmbedder::builtin().unwrap())
}

fn example(question: &str) -> Example {
    Example::new(question, "SELECT 1", "shop", "sqlite")
}

fn query(question: &str) -> ExampleQuery<'_> {
    ExampleQuery { question, database: "shop", dialect: None, only_database: false, only_verified: false, limit: 5 }
}

async fn first_match(store: &FileStore, question: &str) -> Option<String> {
    store.search(&query(question)).await.unwrap().first().map(|found| found.example.question.clone())
}

async fn open_error(path: &Path) -> Error {
    let opened = match FileStore::open(path, static_embedder()).await {
        Ok(store) => store.search(&query("x")).await.err(),
        Err(error) => Some(error),
    };
    let error = opened.unwrap_or_else(|| panic!("{} was opened", path.display()));
    assert!(error.hint().is_some_and(|hint| !hint.is_empty()) && !error.is_transient(), "{error:?}");
    error
}

#[tokio::test]
async fn reopened_file_keeps_all_examples() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("new/folder/examples.db");
    let store = FileStore::open(&path, static_embedder()).await.unwrap();
    assert_eq!(store.add(&[example("How many orders?"), example("Who sings?")]).await.unwrap(), 2);
    #[cfg(unix)]
    for file in fs::read_dir(path.parent().unwrap()).unwrap() {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(file.unwrap().metadata().unwrap().permissions().mode() & 0o777, 0o600);
    }
    drop(store);
    let store = FileStore::open(&path, static_embedder()).await.unwrap();
    assert_eq!(store.count(&ExampleFilter::default()).await.unwrap(), 2);
    assert_eq!(first_match(&store, "who sings").await.unwrap(), "Who sings?");
}

#[tokio::test]
async fn shared_file_shows_writes_of_other_processes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("examples.db");
    let one = FileStore::open(&path, static_embedder()).await.unwrap();
    let two = FileStore::open(&path, static_embedder()).await.unwrap();
    assert_eq!(first_match(&two, "How many orders?").await, None);
    one.add(&[example("How many orders?")]).await.unwrap();
    assert_eq!(first_match(&two, "How many orders?").await.unwrap(), "How many orders?");
    let id = crate::example_id("How many orders?", "shop");
    let stale = ExampleUpdate { standing: Some(VerificationStatus::Stale), ..ExampleUpdate::default() };
    assert_eq!(two.update(&[(&id, stale)]).await.unwrap(), 1);
    assert_eq!(first_match(&one, "How many orders?").await, None);
    let verified = ExampleUpdate { standing: Some(VerificationStatus::Verified), ..ExampleUpdate::default() };
    assert_eq!(one.update(&[(&id, verified)]).await.unwrap(), 1);
    assert_eq!(first_match(&two, "How many orders?").await.unwrap(), "How many orders?");
    assert_eq!(two.remove(&[&id]).await.unwrap(), 1);
    assert_eq!((first_match(&one, "How many orders?").await, one.size().examples), (None, 0));
    // More removals than the log keeps.
    let many: Vec<Example> = (0..10_050).map(|at| example(&format!("Number {at}"))).collect();
    assert_eq!(one.add(&many).await.unwrap(), many.len());
    first_match(&two, "Number 5").await.unwrap();
    assert_eq!(two.size().examples, many.len());
    let ids: Vec<&str> = many.iter().skip(2).map(|one| one.id.as_str()).collect();
    assert_eq!(one.remove(&ids).await.unwrap(), many.len() - 2);
    assert_eq!(first_match(&two, "Number 0").await.unwrap(), "Number 0");
    assert_eq!(two.size().examples, 2);
}

#[tokio::test]
async fn reembeds_examples_for_another_embedder() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("examples.db");
    let old = FileStore::open(&path, static_embedder()).await.unwrap();
    let kept: Vec<Example> = (0..700).map(|at| example(&format!("How many orders of {at}?"))).collect();
    old.add(&kept).await.unwrap();
    let new = FileStore::open(&path, Arc::new(HashEmbedder("letters", 24))).await.unwrap();
    let found = new.search(&query("How many orders of 345?")).await.unwrap();
    assert!(found[0].example.question == "How many orders of 345?" && (found[0].similarity - 1.0).abs() < 1e-4);
    assert_eq!(new.count(&ExampleFilter::default()).await.unwrap(), 700);
    // The store with the other embedder reports the mismatch and writes nothing.
    for error in [old.search(&query("x")).await.unwrap_err(), old.add(&[example("x")]).await.unwrap_err()] {
        assert!(error.to_string().contains("from the embedder `static` to `letters`"), "{error}");
    }
    let longer = FileStore::open(&path, Arc::new(HashEmbedder("letters", 100))).await.unwrap();
    assert_eq!(first_match(&longer, "How many orders of 699?").await.unwrap(), "How many orders of 699?");
}

#[tokio::test]
async fn accepts_embedders_of_unknown_dimensions() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("examples.db");
    let server = || Arc::new(LazyEmbedder(HashEmbedder("server", 24)));
    let store = FileStore::open(&path, server()).await.unwrap();
    assert_eq!(first_match(&store, "Who sings?").await, None);
    store.add(&[example("Who sings?")]).await.unwrap();
    assert_eq!(first_match(&store, "Who sings?").await.unwrap(), "Who sings?");
    let again = FileStore::open(&path, server()).await.unwrap();
    assert_eq!(first_match(&again, "Who sings?").await.unwrap(), "Who sings?");
    // Same name, different vectors: a server whose model was replaced.
    let other = FileStore::open(&path, Arc::new(LazyEmbedder(HashEmbedder("server", 99)))).await.unwrap();
    let error = other.add(&[example("Who dances?")]).await.unwrap_err();
    assert!(error.to_string().contains("vectors of 24 dimensions, but the embedder returns 99"), "{error}");
}

#[tokio::test]
async fn leaves_unrelated_files_unchanged() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(
        at("text.db"),
        "These are my notes, and they are longer than the head of a database would be. ".repeat(9),
    )
    .unwrap();
    let other = Connection::open(at("other.db")).unwrap();
    other.execute_batch("CREATE TABLE mine (a); INSERT INTO mine VALUES (1);").unwrap();
    drop(other);
    let newer = migrations::open(&at("newer.db")).unwrap();
    newer.execute_batch("PRAGMA journal_mode = DELETE; PRAGMA user_version = 99").unwrap();
    drop(newer);
    for (name, expected) in
        [("text.db", "other than examples"), ("other.db", "other than examples"), ("newer.db", "newer version")]
    {
        let before = fs::read(at(name)).unwrap();
        let error = open_error(&at(name)).await;
        assert!(error.to_string().contains(expected), "{error}");
        assert_eq!(fs::read(at(name)).unwrap(), before, "{name}");
    }
    assert!(open_error(folder.path()).await.to_string().contains("is a folder"));
    assert!(open_error(&at("text.db/below.db")).await.to_string().contains("cannot be opened"));
}

#[tokio::test]
async fn reports_damage_without_changing_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("examples.db");
    let shared = FileStoreInner::open(path.clone(), "static".into()).unwrap();
    let examples: Vec<Example> = (0..500).map(|at| example(&format!("Number {at}"))).collect();
    let vectors = vec![quantize(&[0.5; 256]); 500];
    shared
        .in_transaction(|step| {
            rows::set_meta(step, "embedder", &"static")?;
            rows::set_meta(step, "dimensions", &256)?;
            Ok(rows::upsert(step, &examples, &vectors)?)
        })
        .unwrap();
    drop(shared);
    let mut bytes = fs::read(&path).unwrap();
    let middle = bytes.len() / 8..bytes.len() * 7 / 8;
    bytes[middle].fill(0xa5);
    fs::write(&path, &bytes).unwrap();
    let error = open_error(&path).await;
    assert!(error.to_string().contains("damaged"), "{error}");
    assert!(fs::read(&path).unwrap() == bytes, "nothing was changed in it");
}

#[tokio::test]
async fn full_disk_loses_no_stored_example() {
    let folder = tempfile::tempdir().unwrap();
    let store = FileStore::open(folder.path().join("examples.db"), static_embedder()).await.unwrap();
    store.add(&[example("How many orders?")]).await.unwrap();
    store.inner.writer().pragma_update(None, "max_page_count", 40).unwrap();
    let many: Vec<Example> = (0..2000).map(|at| example(&format!("Number {at}"))).collect();
    let error = store.add(&many).await.unwrap_err();
    assert!(error.to_string().contains("no disk space") && error.is_transient(), "{error}");
    assert_eq!(store.count(&ExampleFilter::default()).await.unwrap(), 1);
    store.inner.writer().pragma_update(None, "max_page_count", 1_000_000).unwrap();
    assert_eq!(store.add(&many).await.unwrap(), 2000);
    assert_eq!(first_match(&store, "How many orders?").await.unwrap(), "How many orders?");
}

#[tokio::test(flavor = "multi_thread")]
async fn large_file_keeps_its_index_and_all_rows() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("examples.db");
    let embedder: Arc<dyn Embedder> = Arc::new(HashEmbedder("letters", 32));
    let count = min_indexed_rows() + 500;
    let many: Vec<Example> =
        (0..count).map(|at| example(&format!("Question {at} about {}", at * 7919 % 10_007))).collect();
    let built = |store: &FileStore| {
        let size = store.size();
        size.examples >= count && size.unindexed < 2_048 && !size.is_building
    };
    {
        let store = FileStore::open(&path, Arc::clone(&embedder)).await.unwrap();
        store.add(&many).await.unwrap();
        // Found immediately: before the index exists, while it is built, and afterwards.
        let start = Instant::now();
        let mut at = 0;
        while !built(&store) {
            assert_eq!(first_match(&store, &many[at].question).await.as_ref(), Some(&many[at].question));
            at = (at + 4_999) % count;
            assert!(start.elapsed() < scaled(Duration::from_secs(600)), "no index is built: {:?}", store.size());
            // Leave the CPU to the builder thread.
            tokio::time::sleep(Duration::from_millis(250)).await;
        }
        assert_eq!(first_match(&store, &many[9].question).await.as_ref(), Some(&many[9].question));
    }
    // Rows that were unassigned when the index was saved, or were added later, are unassigned after
    // a reload.
    let store = FileStore::open(&path, embedder).await.unwrap();
    store.add(&[example("A late one")]).await.unwrap();
    assert_eq!(first_match(&store, "A late one").await.unwrap(), "A late one");
    let size = store.size();
    assert!(size.examples == count + 1 && size.unindexed < 2_048, "{size:?}");
    for one in many.iter().step_by(997) {
        assert_eq!(first_match(&store, &one.question).await.as_ref(), Some(&one.question));
    }
    // Updating counters leaves the lists unchanged.
    store.update(&[(&many[5].id, ExampleUpdate { uses: 1, ..ExampleUpdate::default() })]).await.unwrap();
    first_match(&store, "x").await;
    assert_eq!(store.size().unindexed, size.unindexed);
}

#[tokio::test]
async fn reused_row_is_not_confused_with_its_predecessor() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("examples.db");
    let store = FileStore::open(&path, static_embedder()).await.unwrap();
    let (before, after) = (example("Which singers are from France?"), example("How many orders came in March?"));
    store.add(std::slice::from_ref(&before)).await.unwrap();
    assert!(first_match(&store, &before.question).await.is_some());
    // A search for the new question has found the old example and is about to rescore it
    let vector = store.vector(&after.question).await.unwrap();
    let old = migrations::open_reader(&path).unwrap();
    let snapshot = old.unchecked_transaction().unwrap();
    assert_eq!(rows::count(&snapshot, &ExampleFilter::default()).unwrap(), 1);
    let mut near = store.inner.index().nearest(&QuantizedQuery::from(&quantize(&vector)), 1);
    let (row, likeness) = (near[0].row, near[0].candidate.similarity);
    assert!(likeness < 0.5, "{likeness}");
    // when others remove that example and add one that matches exactly.
    store.remove(&[&before.id]).await.unwrap();
    assert_eq!(first_match(&store, &before.question).await, None);
    store.add(std::slice::from_ref(&after)).await.unwrap();
    assert_eq!(first_match(&store, &after.question).await.as_deref(), Some(after.question.as_str()));
    assert_eq!(store.inner.index().nearest(&QuantizedQuery::from(&quantize(&vector)), 1)[0].row, row, "it has the row");
    assert!(store.inner.rescore(&snapshot, &vector, &mut near).is_ok());
    assert_eq!(near[0].candidate.similarity, likeness, "the old example is no more like the question than it was");
}

#[test]
fn row_changed_during_assignment_stays_unassigned() {
    use crate::vector_index::IvfIndex;
    let [one, other] = [[1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 1.0]].map(|vector| quantize(&vector));
    let centres = |all: &[&QuantizedVector]| {
        Centroids::from_parts(4, all.iter().map(|one| (one.scale, one.codes.as_slice()))).unwrap()
    };
    let both = centres(&[&one, &other]);
    let mut vectors = IvfIndex::new(4);
    vectors.set_centroids(both.clone());
    (0..3).for_each(|row| vectors.insert(row, one.scale, &one.codes));
    let rows = vectors.unassigned_rows(9);
    // One row is removed, another one holds a different example.
    vectors.remove(1);
    vectors.insert(2, other.scale, &other.codes);
    index_builder::assign_unchanged_rows(&mut vectors, &centres(&[&other, &one]), &rows, &[1; 3]);
    assert_eq!(vectors.unassigned_count(), 2, "lists of other centres are not these");
    index_builder::assign_unchanged_rows(&mut vectors, &both, &rows, &[0; 3]);
    assert_eq!((vectors.list_rows(0), vectors.unassigned_count(), vectors.len()), (&[0][..], 1, 2));
}
