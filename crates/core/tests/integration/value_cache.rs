//! The index of values between runs: when a kept one is used, when it is not, and what is never in it.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

use querymend::config::ValuesSection;
use querymend::linking::value_sampling::{load_or_sample, sample_values};
use querymend_engine::{CancelFlag, DataVersion, Engine, EngineFuture, Error, Limits, open};
use querymend_sql::{Approved, Dialect, NotIndexedReason, Policy, Rows, Schema, ValueIndex};
use querymend_testing::hang_timeout;
use rusqlite::Connection;
use tempfile::TempDir;

const SHOP: &str = "CREATE TABLE people (id INTEGER PRIMARY KEY, name TEXT, email TEXT, city TEXT);
    INSERT INTO people (name, email, city) VALUES ('Ada', 'ada@example.org', 'London'), ('Zoë', 'zoe@example.org', 'Paris');
    CREATE TABLE items (id INTEGER PRIMARY KEY, title TEXT, colour TEXT);
    INSERT INTO items (title, colour) VALUES ('lamp', 'red'), ('desk', 'blue'), ('chair', 'red');
    CREATE TABLE notes (note TEXT); INSERT INTO notes VALUES ('first'), ('second');";

/// A database that counts what is run on it, and may hang.
struct Counted {
    inner: Box<dyn Engine>,
    executed: AtomicUsize,
    /// Whether it says which data it holds, as a file does and a server does not.
    is_file: bool,
    /// Queries that contain this are not answered in time.
    hangs_on: Option<&'static str>,
}

impl Engine for Counted {
    fn name(&self) -> &str {
        "counted://me@here/shop"
    }

    fn dialect(&self) -> &'static Dialect {
        self.inner.dialect()
    }

    fn schema(&self) -> EngineFuture<'_, Schema> {
        self.inner.schema()
    }

    fn probe<'a>(&'a self, query: &'a Approved) -> EngineFuture<'a, ()> {
        self.inner.probe(query)
    }

    fn execute<'a>(
        &'a self,
        query: &'a Approved,
        limits: &'a Limits,
        cancel: &'a CancelFlag,
    ) -> EngineFuture<'a, Rows> {
        self.executed.fetch_add(1, Ordering::Relaxed);
        if self.hangs_on.is_some_and(|part| query.sql().contains(part)) {
            return Box::pin(async { Err(Error::TimedOut { after: limits.time }) });
        }
        self.inner.execute(query, limits, cancel)
    }

    fn test_connection(&self) -> EngineFuture<'_, ()> {
        self.inner.test_connection()
    }

    fn data_version(&self) -> EngineFuture<'_, Option<DataVersion>> {
        if self.is_file { self.inner.data_version() } else { Box::pin(async { Ok(None) }) }
    }
}

struct Shop {
    folder: TempDir,
    engine: Arc<Counted>,
}

impl Shop {
    fn new() -> Self {
        Self::with(true, None)
    }

    fn with(is_file: bool, hangs_on: Option<&'static str>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("shop.db");
        Connection::open(&file).unwrap().execute_batch(SHOP).unwrap();
        let inner = open(&file.to_string_lossy()).unwrap();
        let engine = Arc::new(Counted { inner, executed: AtomicUsize::new(0), is_file, hangs_on });
        Self { folder, engine }
    }

    fn cache(&self) -> PathBuf {
        self.folder.path().join("cache").join("values")
    }

    fn settings(&self) -> ValuesSection {
        ValuesSection { cache_folder: Some(self.cache()), time: hang_timeout(), ..ValuesSection::default() }
    }

    fn write(&self, sql: &str) {
        Connection::open(self.folder.path().join("shop.db")).unwrap().execute_batch(sql).unwrap();
    }

    /// The index, and whether the database was read for it.
    async fn load(&self, policy: &Policy, settings: &ValuesSection) -> (ValueIndex, bool) {
        let schema = policy.filter_schema(self.engine.schema().await.unwrap());
        let before = self.engine.executed.load(Ordering::Relaxed);
        let values = load_or_sample(&*self.engine, &schema, policy, settings).await;
        (values, self.engine.executed.load(Ordering::Relaxed) > before)
    }

    async fn was_read(&self) -> bool {
        self.load(&Policy::default(), &self.settings()).await.1
    }

    /// The files that are kept.
    fn files(&self) -> Vec<PathBuf> {
        files(&self.cache())
    }
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

fn columns(values: &ValueIndex) -> Vec<String> {
    values.columns().iter().map(|held| format!("{}.{}", held.table, held.column)).collect()
}

fn left_out(values: &ValueIndex) -> Vec<(String, NotIndexedReason)> {
    values.not_indexed().iter().map(|c| (format!("{}.{}", c.table, c.column), c.reason)).collect()
}

#[tokio::test]
async fn cached_index_equals_a_fresh_one() {
    let shop = Shop::new();
    let (cold, was_read) = shop.load(&Policy::default(), &shop.settings()).await;
    assert!(was_read);
    let (warm, was_read) = shop.load(&Policy::default(), &shop.settings()).await;
    assert!(!was_read);
    assert_eq!((warm.columns(), warm.not_indexed()), (cold.columns(), cold.not_indexed()));
    assert_eq!(columns(&warm), ["people.name", "people.city", "items.title", "items.colour", "notes.note"]);
    assert_eq!(left_out(&warm), [("people.email".to_string(), NotIndexedReason::Sensitive)]);
    assert!(warm.is_absent("items", "colour", "green") && !warm.is_absent("items", "colour", "red"));
    // Off, nothing is kept and nothing is loaded.
    let off = ValuesSection { cache: false, ..shop.settings() };
    assert!(shop.load(&Policy::default(), &off).await.1);
    let unwanted = ValuesSection { enabled: false, ..shop.settings() };
    assert!(shop.load(&Policy::default(), &unwanted).await.0.columns().is_empty());
}

#[tokio::test]
async fn reloads_values_of_a_changed_database() {
    let shop = Shop::new();
    for change in [
        "SELECT 1",
        "INSERT INTO items (title, colour) VALUES ('sofa', 'green')",
        "UPDATE items SET colour = 'grey' WHERE title = 'lamp'",
        "CREATE TABLE more (word TEXT); INSERT INTO more VALUES ('one')",
        "PRAGMA journal_mode = WAL; UPDATE items SET colour = 'pink' WHERE title = 'desk'",
    ] {
        shop.write(change);
        assert!(shop.was_read().await, "{change}");
        assert!(!shop.was_read().await, "{change}");
    }
    let (values, _) = shop.load(&Policy::default(), &shop.settings()).await;
    assert_eq!(values.column("items", "colour").unwrap().values, ["green", "grey", "pink", "red"]);
    assert_eq!(shop.files().len(), 1, "one file for a database");
}

#[tokio::test]
async fn stricter_policy_excludes_cached_values() {
    let shop = Shop::new();
    let open = ValuesSection { allow: vec!["email".into()], ..shop.settings() };
    let deny = |columns: &[&str], tables: &[&str]| Policy {
        deny_columns: columns.iter().map(ToString::to_string).collect(),
        deny_tables: tables.iter().map(ToString::to_string).collect(),
        ..Policy::default()
    };
    let excluding = |name: &str| ValuesSection { exclude: vec![name.into()], ..open.clone() };
    for (policy, settings, gone) in [
        (Policy::default(), shop.settings(), "people.email"),
        (Policy::default(), excluding("people.city"), "people.city"),
        (deny(&["people.name"], &[]), open.clone(), "people.name"),
        (deny(&[], &["notes"]), open.clone(), "notes.note"),
    ] {
        let (all, _) = shop.load(&Policy::default(), &open).await;
        assert!(columns(&all).contains(&gone.to_string()), "{gone}");
        let (fewer, was_read) = shop.load(&policy, &settings).await;
        assert!(was_read && !columns(&fewer).contains(&gone.to_string()), "{gone}");
    }
    // Nothing that was left out is on disk, and nobody else may read what is.
    let (_, _) = shop.load(&Policy::default(), &shop.settings()).await;
    let [file] = &shop.files()[..] else { panic!("{:?}", shop.files()) };
    let text = fs::read_to_string(file).unwrap();
    assert!(text.contains("London") && !text.contains("example.org"), "{text}");
    #[cfg(unix)]
    for (path, mode) in [(file.clone(), 0o600), (shop.cache(), 0o700)] {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, mode, "{path:?}");
    }
}

#[tokio::test]
async fn replaces_corrupt_or_foreign_cache_files() {
    let shop = Shop::new();
    assert!(shop.was_read().await);
    let file = shop.files().remove(0);
    let whole = fs::read(&file).unwrap();
    let flipped = String::from_utf8(whole.clone()).unwrap().replace("London", "Londom").into_bytes();
    let other_version =
        String::from_utf8(whole.clone()).unwrap().replacen("\"version\":1", "\"version\":0", 1).into_bytes();
    for (what, bytes) in [
        ("half", whole[..whole.len() / 2].to_vec()),
        ("header alone", whole.split(|b| *b == b'\n').next().unwrap().to_vec()),
        ("empty", Vec::new()),
        ("another value", flipped),
        ("another version", other_version),
        ("no JSON", b"this is something else\nentirely".to_vec()),
        ("no text", vec![0xff; 100]),
    ] {
        fs::write(&file, bytes).unwrap();
        let (values, was_read) = shop.load(&Policy::default(), &shop.settings()).await;
        assert!(was_read && values.column("people", "city").unwrap().values == ["London", "Paris"], "{what}");
        assert!(!shop.was_read().await, "{what}");
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
        assert!(shop.was_read().await, "others could have written it");
    }
    // A folder that cannot be one costs nothing but time.
    let nowhere = ValuesSection { cache_folder: Some(file.join("below a file")), ..shop.settings() };
    assert!(!shop.load(&Policy::default(), &nowhere).await.0.columns().is_empty());
}

#[tokio::test]
async fn removes_stale_temporary_files_of_killed_processes() {
    let shop = Shop::new();
    assert!(shop.was_read().await);
    let kept = shop.files().remove(0);
    let [young, old] = ["1-1-0.tmp", "2-2-0.tmp"].map(|ending| kept.with_extension(ending));
    for path in [&young, &old] {
        fs::write(path, "half a fi").unwrap();
    }
    let long_ago = SystemTime::now() - Duration::from_secs(24 * 60 * 60);
    fs::File::options().write(true).open(&old).unwrap().set_modified(long_ago).unwrap();
    assert!(!shop.was_read().await, "it is not taken for an index");
    shop.write("INSERT INTO notes VALUES ('third')");
    assert!(shop.was_read().await);
    assert!(young.exists() && !old.exists() && kept.exists());
}

#[tokio::test]
async fn evicts_least_recently_used_files_over_the_size_limit() {
    let folder = tempfile::tempdir().unwrap();
    let shops: Vec<Shop> = (0..3).map(|_| Shop::new()).collect();
    let policy = Policy::default();
    let settings = |bytes| ValuesSection {
        cache_folder: Some(folder.path().to_path_buf()),
        cache_bytes: bytes,
        ..shops[0].settings()
    };
    let large = settings(1 << 20);
    assert!(shops[0].load(&policy, &large).await.1);
    let size = fs::metadata(&files(folder.path())[0]).unwrap().len();
    // The first one is the one that was not used for longest.
    let long_ago = SystemTime::now() - Duration::from_secs(60 * 60);
    fs::File::options().write(true).open(&files(folder.path())[0]).unwrap().set_modified(long_ago).unwrap();
    let two = settings(size * 5 / 2);
    assert!(shops[1].load(&policy, &two).await.1 && shops[2].load(&policy, &two).await.1);
    assert_eq!(files(folder.path()).len(), 2);
    assert!(!shops[1].load(&policy, &two).await.1 && !shops[2].load(&policy, &two).await.1);
    assert!(shops[0].load(&policy, &two).await.1);
    // One that is too large by itself is not kept, and pushes out no other.
    let tiny = settings(size / 2);
    assert!(shops[1].load(&policy, &tiny).await.1);
    assert_eq!(files(folder.path()).len(), 2);
}

#[tokio::test]
async fn expires_index_of_a_server_after_its_ttl() {
    let shop = Shop::with(false, None);
    assert!(shop.was_read().await && !shop.was_read().await);
    let expired = ValuesSection { cache_ttl: Duration::from_millis(1), ..shop.settings() };
    assert!(shop.load(&Policy::default(), &expired).await.1);
    assert!(!shop.was_read().await);
    // Its tables tell that it is another one.
    shop.write("CREATE TABLE more (word TEXT)");
    assert!(shop.was_read().await);
}

#[tokio::test]
async fn reports_columns_skipped_by_a_timeout() {
    let timed_out = |name: &str| (name.to_string(), NotIndexedReason::TimedOut);
    let expected: Vec<_> = ["items.colour", "notes.note"].map(timed_out).into();
    for (is_file, is_kept) in [(true, false), (false, true)] {
        let shop = Shop::with(is_file, Some("colour"));
        let (values, _) = shop.load(&Policy::default(), &shop.settings()).await;
        // A database that hangs is not asked for the rest.
        assert_eq!(columns(&values), ["people.name", "people.city", "items.title"]);
        assert_eq!(left_out(&values)[1..], expected, "{is_file}");
        assert_eq!(!shop.was_read().await, is_kept, "{is_file}");
    }
    let shop = Shop::new();
    let no_time = ValuesSection { time: Duration::ZERO, ..shop.settings() };
    let (values, was_read) = shop.load(&Policy::default(), &no_time).await;
    assert!(!was_read && values.columns().is_empty() && left_out(&values).len() == 6, "{:?}", left_out(&values));
    assert!(shop.was_read().await, "it was not kept");
}

#[tokio::test]
async fn limits_exclude_the_same_columns_every_time() {
    let shop = Shop::new();
    let schema = shop.engine.schema().await.unwrap();
    let base = ValuesSection { time: hang_timeout(), ..ValuesSection::default() };
    let at = |name: &str, reason| (name.to_string(), reason);
    let sensitive = at("people.email", NotIndexedReason::Sensitive);
    for (settings, expected) in [
        // Two rows of people leave none for the three of items, and enough for the two of notes.
        (
            ValuesSection { total_rows: 4, ..base.clone() },
            vec![
                sensitive.clone(),
                at("items.title", NotIndexedReason::RowLimit),
                at("items.colour", NotIndexedReason::RowLimit),
            ],
        ),
        (ValuesSection { total_rows: 7, ..base.clone() }, vec![sensitive.clone()]),
        (
            ValuesSection { table_bytes: 500, ..base.clone() },
            vec![
                sensitive.clone(),
                at("people.city", NotIndexedReason::ByteLimit),
                at("items.colour", NotIndexedReason::ByteLimit),
            ],
        ),
        (
            ValuesSection { bytes: 800, ..base.clone() },
            vec![
                sensitive.clone(),
                at("items.title", NotIndexedReason::ByteLimit),
                at("items.colour", NotIndexedReason::ByteLimit),
                at("notes.note", NotIndexedReason::ByteLimit),
            ],
        ),
    ] {
        for _ in 0..2 {
            let values = sample_values(&*shop.engine, &schema, &Policy::default(), &settings).await;
            assert_eq!(left_out(&values), expected, "{settings:?}");
        }
    }
    // A column that is larger than a column may be is known in part.
    let narrow = ValuesSection { column_bytes: 200, ..base };
    let values = sample_values(&*shop.engine, &schema, &Policy::default(), &narrow).await;
    let colours = values.column("items", "colour").unwrap();
    assert!(!colours.whole && colours.values == ["blue"], "{colours:?}");
    assert!(!values.is_absent("items", "colour", "red"));
}
