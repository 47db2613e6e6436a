//! Caches value indexes on disk between runs, one file per database.
//!
//! A file is valid for one state of one database under one policy and one set of limits. Other
//! files, damaged files, and files that other users can access are ignored and overwritten by the
//! next sampling. Files are written atomically. Sensitive columns are excluded by the sampling, and
//! again when a file is loaded.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use querymend_engine::{DataVersion, Engine};
use querymend_sql::schema::value_index::ColumnValues;
use querymend_sql::schema::{Schema, Table};
use querymend_sql::{NotIndexed, Policy, ValueIndex};
use ring::digest::{Context, SHA256};
use serde::{Deserialize, Serialize};

use super::{ValuesSection, is_readable, is_sensitive_by_values, sample_values};

/// Version of the file format and of the sensitivity rules. Files of other versions are ignored.
const FORMAT_VERSION: u32 = 1;
const FORMAT_NAME: &str = "querymend-values";
const FILE_EXTENSION: &str = "values";
/// Age at which temporary files of killed processes are removed.
const TEMPORARY_FILE_TTL: Duration = Duration::from_secs(60 * 60);
/// Minimum interval between updates of a file's last use, to reduce disk writes.
const TOUCH_INTERVAL: Duration = Duration::from_secs(60);

/// Returns the cached index of a database if it is valid, otherwise samples and caches a new one.
pub async fn load_or_sample(
    engine: &dyn Engine,
    schema: &Schema,
    policy: &Policy,
    settings: &ValuesSection,
) -> ValueIndex {
    let folder = settings.cache_folder.as_deref().filter(|_| settings.enabled && settings.cache);
    // A database whose data version cannot be read is not cached.
    let (Some(folder), Ok(version)) = (folder, engine.data_version().await) else {
        return sample_values(engine, schema, policy, settings).await;
    };
    let Ok(key) = ValueCacheKey::new(engine, version.as_ref(), schema, policy, settings) else {
        return sample_values(engine, schema, policy, settings).await;
    };
    let file = folder.join(key.file_name());
    if let Some(values) = read_cache_file(&file, &key, schema, settings) {
        return values;
    }
    let values = sample_values(engine, schema, policy, settings).await;
    let is_complete = !values.not_indexed().iter().any(|column| column.reason.is_transient());
    // A file that changed during sampling has no consistent state to cache. A server reports no
    // state, and its index is cached even after a timeout because the next sampling would time out
    // too.
    let is_kept = match &version {
        Some(_) => is_complete && engine.data_version().await.is_ok_and(|now| now == version),
        None => true,
    };
    if is_kept && let Err(error) = write_cache_file(folder, &file, &key, &values, settings.cache_bytes) {
        tracing::debug!("the value index cannot be stored in {}: {error}", folder.display());
    }
    values
}

/// Cache key of an index.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ValueCacheKey {
    /// Identity of the database, without secrets.
    identity: String,
    /// Checksum of the data version. `None` if only the age invalidates the index.
    data: Option<String>,
    /// Checksum of everything else that determines the content of the index. That is the tables,
    /// policy, limits, and the program version.
    rules: String,
    ttl: Duration,
}

impl ValueCacheKey {
    fn new(
        engine: &dyn Engine,
        version: Option<&DataVersion>,
        schema: &Schema,
        policy: &Policy,
        settings: &ValuesSection,
    ) -> serde_json::Result<Self> {
        // These settings do not affect the content of the index.
        let unrelated = ValuesSection::default();
        let limits = ValuesSection {
            time: unrelated.time,
            cache_folder: None,
            cache_bytes: unrelated.cache_bytes,
            cache_ttl: unrelated.cache_ttl,
            ..settings.clone()
        };
        let rules = serde_json::to_vec(&(
            (FORMAT_VERSION, env!("CARGO_PKG_VERSION"), engine.dialect().name),
            schema.tables(),
            policy,
            limits,
        ))?;
        Ok(Self {
            identity: version.map_or_else(|| engine.name().to_string(), |version| version.identity.clone()),
            data: version.map(|version| checksum(version.version.as_bytes())),
            rules: checksum(&rules),
            ttl: settings.cache_ttl,
        })
    }

    /// Returns the file name of a database.
    ///
    /// One per database, so that a stricter policy overwrites values stored under a laxer one.
    fn file_name(&self) -> String {
        format!("{}.{FILE_EXTENSION}", &checksum(self.identity.as_bytes())[..32])
    }
}

/// First line of a file, followed by the index.
#[derive(Serialize, Deserialize)]
struct ValueCacheHeader {
    format: String,
    version: u32,
    identity: String,
    data: Option<String>,
    rules: String,
    /// Time of writing, in seconds since the Unix epoch.
    written_s: u64,
    /// Checksum of the body.
    sha256: String,
}

#[derive(Deserialize)]
struct ValueCacheBody {
    columns: Vec<ColumnValues>,
    not_indexed: Vec<NotIndexed>,
}

#[derive(Serialize)]
struct ValueCacheBodyRef<'b> {
    columns: &'b [ColumnValues],
    not_indexed: &'b [NotIndexed],
}

/// Reads the index from a file if it matches the key.
fn read_cache_file(path: &Path, key: &ValueCacheKey, schema: &Schema, settings: &ValuesSection) -> Option<ValueIndex> {
    let mut file = File::open(path).ok()?;
    let metadata = file.metadata().ok().filter(|metadata| metadata.is_file() && is_private(metadata))?;
    let mut bytes = Vec::new();
    (&mut file).take(settings.cache_bytes).read_to_end(&mut bytes).ok()?;
    let end = bytes.iter().position(|byte| *byte == b'\n')?;
    let (header, body) = (&bytes[..end], &bytes[end + 1..]);
    let header: ValueCacheHeader = serde_json::from_slice(header).ok()?;
    let age = now_s().checked_sub(header.written_s);
    let is_fresh = key.data.is_some() || age.is_some_and(|age| age < key.ttl.as_secs());
    let is_wanted = header.format == FORMAT_NAME
        && header.version == FORMAT_VERSION
        && (&header.identity, &header.data, &header.rules) == (&key.identity, &key.data, &key.rules);
    if !is_fresh || !is_wanted || header.sha256 != checksum(body) {
        return None;
    }
    let ValueCacheBody { mut columns, not_indexed } = serde_json::from_slice(body).ok()?;
    columns.retain(|held| is_allowed(held, schema, settings));
    let is_old = metadata.modified().ok().and_then(|at| at.elapsed().ok()).is_some_and(|age| age > TOUCH_INTERVAL);
    if is_old && let Ok(file) = OpenOptions::new().append(true).open(path) {
        // Eviction uses the modification time.
        file.set_modified(SystemTime::now()).ok();
    }
    Some(ValueIndex::new(columns).with_not_indexed(not_indexed))
}

/// Returns whether the current rules allow the column in the index, regardless of the file.
fn is_allowed(held: &ColumnValues, schema: &Schema, settings: &ValuesSection) -> bool {
    let is_of = |table: &&Table| table.full_name() == held.table;
    let table = schema.tables().iter().find(is_of);
    let column = table.and_then(|table| table.columns.iter().find(|column| column.name == held.column));
    table.zip(column).is_some_and(|(table, column)| {
        is_readable(table, column, settings) && !is_sensitive_by_values(table, column, &held.values, settings)
    })
}

/// Writes an index atomically, so that readers never observe a partial file.
fn write_cache_file(
    folder: &Path,
    path: &Path,
    key: &ValueCacheKey,
    values: &ValueIndex,
    max_bytes: u64,
) -> io::Result<()> {
    let body = serde_json::to_vec(&ValueCacheBodyRef { columns: values.columns(), not_indexed: values.not_indexed() })?;
    let header = ValueCacheHeader {
        format: FORMAT_NAME.to_string(),
        version: FORMAT_VERSION,
        identity: key.identity.clone(),
        data: key.data.clone(),
        rules: key.rules.clone(),
        written_s: now_s(),
        sha256: checksum(&body),
    };
    let mut header = serde_json::to_vec(&header)?;
    header.push(b'\n');
    if (header.len() + body.len()) as u64 > max_bytes {
        return Err(io::Error::other("it is larger than `values.cache_bytes`"));
    }
    private_dir_builder().create(folder)?;
    let temporary = temporary_path(path);
    let written = private_file_options().open(&temporary).and_then(|mut file| {
        file.write_all(&header)?;
        file.write_all(&body)
    });
    let moved = written.and_then(|()| fs::rename(&temporary, path));
    if moved.is_err() {
        fs::remove_file(&temporary).ok();
    }
    moved?;
    evict(folder, max_bytes)
}

/// Evicts the least recently used files until the rest fits. Also removes abandoned temporary
/// files.
fn evict(folder: &Path, max_bytes: u64) -> io::Result<()> {
    let mut kept: Vec<(SystemTime, u64, PathBuf)> = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        // Another process may have removed the file concurrently.
        let Ok(metadata) = fs::symlink_metadata(&path) else { continue };
        let used = metadata.modified().unwrap_or(UNIX_EPOCH);
        let ending = path.extension().unwrap_or_default();
        if ending == "tmp" && used.elapsed().is_ok_and(|age| age > TEMPORARY_FILE_TTL) {
            fs::remove_file(&path).ok();
        } else if ending == FILE_EXTENSION {
            kept.push((used, metadata.len(), path));
        }
    }
    kept.sort();
    let mut total: u64 = kept.iter().map(|(_, bytes, _)| bytes).sum();
    for (_, bytes, path) in kept {
        if total <= max_bytes {
            break;
        }
        fs::remove_file(&path).ok();
        total -= bytes;
    }
    Ok(())
}

/// Returns a temporary path that no other process or thread writes to.
fn temporary_path(path: &Path) -> PathBuf {
    static WRITES: AtomicU64 = AtomicU64::new(0);
    let write = WRITES.fetch_add(1, Ordering::Relaxed);
    path.with_extension(format!("{}-{}-{write}.tmp", std::process::id(), now_s()))
}

fn private_dir_builder() -> DirBuilder {
    let mut folder = DirBuilder::new();
    folder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut folder, 0o700);
    folder
}

fn private_file_options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Returns whether only the owner can access the file, so that no other user can have planted it.
#[cfg(unix)]
fn is_private(metadata: &fs::Metadata) -> bool {
    std::os::unix::fs::PermissionsExt::mode(&metadata.permissions()) & 0o077 == 0
}

#[cfg(not(unix))]
fn is_private(_: &fs::Metadata) -> bool {
    true
}

fn now_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

fn checksum(bytes: &[u8]) -> String {
    let mut context = Context::new(&SHA256);
    context.update(bytes);
    context.finish().as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}
