//! A store's file that somebody or something damaged: an error or answers, no panic, and no more memory than it is worth.
//! A binary of its own: it counts the memory and the panics of all threads.

// A test says what went wrong by panicking.
#![allow(clippy::panic, clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use querymend_memory::{Example, ExampleFilter, ExampleQuery, ExampleStore, FileStore};
use querymend_model::StaticEmbedder;
use querymend_testing::{CountingAllocator, FuzzTarget, mutate_bytes, mutate_text, peak_memory_all_threads};

#[global_allocator]
static COUNTED: CountingAllocator = CountingAllocator;

/// Memory and panics are counted over all threads, so that only one target runs at a time.
static ALONE: Mutex<()> = Mutex::new(());

/// The caches that SQLite is allowed are 80 MB together, and are not counted; what is read into memory is a few kilobytes here.
const MOST: usize = 32 << 20;

async fn made(path: &Path) {
    let store = FileStore::open(path, Arc::new(StaticEmbedder::builtin().unwrap())).await.unwrap();
    let questions = ["How many orders?", "Who sings?", "Which product is the dearest?", "Orders per month"];
    let examples: Vec<Example> = questions
        .iter()
        .map(|question| Example::new(question, "SELECT count(*) FROM orders", "shop", "sqlite"))
        .collect();
    store.add(&examples).await.unwrap();
    store.search(&sought()).await.unwrap();
}

fn sought() -> ExampleQuery<'static> {
    ExampleQuery {
        question: "How many orders are there?",
        database: "shop",
        dialect: None,
        only_database: false,
        only_verified: false,
        limit: 5,
    }
}

/// All that is done with a store. What is wrong with it may be told at any point.
async fn used(path: &Path, embedder: &Arc<StaticEmbedder>) {
    let Ok(store) = FileStore::open(path, Arc::clone(embedder) as _).await else { return };
    drop(store.search(&sought()).await);
    drop(store.nearest("Who sings?", 3).await);
    let listed = store.list(&ExampleFilter::default(), 0, 10).await;
    for one in listed.into_iter().flatten() {
        drop(store.get(&one.id).await);
        drop(store.remove(&[&one.id]).await);
    }
    drop(store.add(&[Example::new("New?", "SELECT 1", "shop", "sqlite")]).await);
    drop(store.search(&sought()).await);
}

struct Bench {
    runtime: tokio::runtime::Runtime,
    folder: tempfile::TempDir,
    embedder: Arc<StaticEmbedder>,
    whole: Vec<u8>,
}

impl Bench {
    fn new() -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("whole.db");
        runtime.block_on(made(&path));
        // With what is still in the log beside the file, which a thread may be reading.
        let copy = folder.path().join("copy.db");
        let connection = rusqlite::Connection::open(&path).unwrap();
        connection.execute_batch(&format!("VACUUM INTO '{}'", copy.display())).unwrap();
        Self {
            whole: fs::read(&copy).unwrap(),
            runtime,
            folder,
            embedder: Arc::new(StaticEmbedder::builtin().unwrap()),
        }
    }

    /// A file of its own for each input: a thread of the last store may still read.
    fn file(&self, contents: &[u8]) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir_in(self.folder.path()).unwrap();
        let path = folder.path().join("examples.db");
        fs::write(&path, contents).unwrap();
        (folder, path)
    }

    fn hold(&self, path: &Path) {
        let ((), held) = peak_memory_all_threads(|| self.runtime.block_on(used(path, &self.embedder)));
        assert!(held <= MOST, "{held} bytes were held at once");
    }
}

#[test]
fn fuzz_store_bytes() {
    let _alone = ALONE.lock().unwrap();
    let bench = Bench::new();
    let target = FuzzTarget::new("store_bytes", env!("CARGO_MANIFEST_DIR"))
        .seeds([bench.whole.clone()])
        .inputs(120)
        .all_threads();
    target.run(&mut mutate_bytes, &|input| bench.hold(&bench.file(input).1));
}

#[test]
fn fuzz_store_rows() {
    let seeds = [
        "UPDATE vector SET codes = x'00'",
        "UPDATE vector SET codes = zeroblob(100000), scale = 1e308",
        "UPDATE rest SET rest = x''",
        "UPDATE about SET value = 9223372036854775807 WHERE name = 'dimensions'",
        "UPDATE about SET value = -1 WHERE name = 'sequence'",
        "INSERT INTO list VALUES (0, 1.0, x'0102', x'0100000000000000')",
        "INSERT INTO list SELECT number, scale, codes, x'01000000000000000200000000000000' FROM vector",
        "UPDATE example SET uses = -1, helped = 9223372036854775807, hurt = 1e10, added = -5",
        "UPDATE vector SET words = x'010203', skeleton = -1",
        "DELETE FROM vector WHERE number = 2; DELETE FROM rest WHERE number = 1",
        "UPDATE example SET number = -3 WHERE number = 3; UPDATE vector SET number = -3 WHERE number = 3",
        "INSERT INTO removed VALUES (9223372036854775807, 1); UPDATE about SET value = 'x' WHERE name = 'pruned'",
        "DROP TABLE rest; CREATE TABLE rest (number TEXT, rest)",
        "PRAGMA user_version = 99; PRAGMA application_id = 0",
    ];
    let words = [
        "vector",
        "rest",
        "list",
        "example",
        "about",
        "removed",
        "codes",
        "scale",
        "words",
        "skeleton",
        "numbers",
        "number",
        "changed",
        "value",
        "NULL",
        "-1",
        "0",
        "9223372036854775807",
        "-9223372036854775808",
        "1e308",
        "-1e308",
        "9e999",
        "x''",
        "x'00'",
        "zeroblob(7)",
        "zeroblob(5000000)",
        "'text'",
        "'dimensions'",
        "'embedder'",
        "'sequence'",
        "'pruned'",
        "UPDATE",
        "SET",
        "DELETE FROM",
        "INSERT INTO",
        "WHERE number = 2",
        "; ",
        "(SELECT codes FROM vector LIMIT 1)",
        "hex(codes)",
        "CAST(x'ff' AS TEXT)",
    ];
    let _alone = ALONE.lock().unwrap();
    let bench = Bench::new();
    let target = FuzzTarget::new("store_rows", env!("CARGO_MANIFEST_DIR")).seeds(seeds).inputs(150).all_threads();
    target.run(&mut |random, pool| mutate_text(random, pool, &words), &|input| {
        let (_folder, path) = bench.file(&bench.whole);
        let damage = rusqlite::Connection::open(&path).unwrap();
        for statement in String::from_utf8_lossy(input).split(';') {
            // Some are no SQL; the others do their damage.
            drop(damage.execute_batch(statement));
        }
        drop(damage);
        bench.hold(&path);
    });
}
