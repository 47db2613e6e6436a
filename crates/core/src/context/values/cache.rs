//! Keeps indexes of values on disk between runs, one file for each database.
//!
//! A file belongs to one state of one database, read under one policy and one set of limits; a file of anything else, a damaged
//! one and one that others may read are ignored, and replaced by the next reading. A file appears under its name in one step,
//! whole or not at all. Sensitive columns are left out by the reading, and once more when a file is loaded.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use querymend_engine::{DataVersion, Engine};
use querymend_sql::schema::{Schema, Table};
use querymend_sql::values::Held;
use querymend_sql::{NotIndexed, Policy, Values};
use ring::digest::{Context, SHA256};
use serde::{Deserialize, Serialize};

use super::{ValuesSection, is_readable, is_sensitive_by_values, read};

/// Version of the files' format, and of the rules on what is sensitive. A file of another version is ignored.
const FORMAT_VERSION: u32 = 1;
const FORMAT: &str = "querymend-values";
const ENDING: &str = "values";
/// Age at which a file that a killed process began is removed.
const ABANDONED_AGE: Duration = Duration::from_secs(60 * 60);
/// Least age at which the use of a file is noted, to spare the disk.
const TOUCH_INTERVAL: Duration = Duration::from_secs(60);

/// Returns the index of a database: the one that is kept, if it is of this state of the data, else a new one, which is kept.
pub async fn load(engine: &dyn Engine, schema: &Schema, policy: &Policy, settings: &ValuesSection) -> Values {
    let folder = settings.cache_folder.as_deref().filter(|_| settings.enabled && settings.cache);
    // A database that does not say which data it holds because it cannot be read has nothing to keep.
    let (Some(folder), Ok(version)) = (folder, engine.data_version().await) else {
        return read(engine, schema, policy, settings).await;
    };
    let Ok(key) = Key::new(engine, version.as_ref(), schema, policy, settings) else {
        return read(engine, schema, policy, settings).await;
    };
    let file = folder.join(key.file_name());
    if let Some(values) = open(&file, &key, schema, settings) {
        return values;
    }
    let values = read(engine, schema, policy, settings).await;
    let is_complete = !values.not_indexed().iter().any(|column| column.reason.is_transient());
    // What was read while the file changed belongs to no state of it. Of a server no state is known, and a reading that ran out
    // of time is kept like any other: the next one would too.
    let is_kept = match &version {
        Some(_) => is_complete && engine.data_version().await.is_ok_and(|now| now == version),
        None => true,
    };
    if is_kept && let Err(error) = store(folder, &file, &key, &values, settings.cache_bytes) {
        tracing::debug!("the index of values cannot be kept in {}: {error}", folder.display());
    }
    values
}

/// What an index belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Key {
    /// The database, without secrets.
    identity: String,
    /// Checksum of the state of its data. None if only the age tells whether an index is too old.
    data: Option<String>,
    /// Checksum of all else that decides what may be in the index: tables, policy, limits, and this program's version.
    rules: String,
    ttl: Duration,
}

impl Key {
    fn new(
        engine: &dyn Engine,
        version: Option<&DataVersion>,
        schema: &Schema,
        policy: &Policy,
        settings: &ValuesSection,
    ) -> serde_json::Result<Self> {
        // These say how an index is made and kept, and not what is in it.
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

    /// One file for a database: a stricter policy replaces what a laxer one let be kept.
    fn file_name(&self) -> String {
        format!("{}.{ENDING}", &checksum(self.identity.as_bytes())[..32])
    }
}

/// The first line of a file. The index follows it.
#[derive(Serialize, Deserialize)]
struct Header {
    format: String,
    version: u32,
    identity: String,
    data: Option<String>,
    rules: String,
    /// When it was written, in seconds since 1970.
    written_s: u64,
    /// Checksum of what follows.
    sha256: String,
}

#[derive(Deserialize)]
struct Body {
    columns: Vec<Held>,
    not_indexed: Vec<NotIndexed>,
}

#[derive(Serialize)]
struct BodyRef<'b> {
    columns: &'b [Held],
    not_indexed: &'b [NotIndexed],
}

/// Returns the index in a file, if it is the one that is wanted.
fn open(path: &Path, key: &Key, schema: &Schema, settings: &ValuesSection) -> Option<Values> {
    let mut file = File::open(path).ok()?;
    let metadata = file.metadata().ok().filter(|metadata| metadata.is_file() && is_private(metadata))?;
    let mut bytes = Vec::new();
    (&mut file).take(settings.cache_bytes).read_to_end(&mut bytes).ok()?;
    let end = bytes.iter().position(|byte| *byte == b'\n')?;
    let (header, body) = (&bytes[..end], &bytes[end + 1..]);
    let header: Header = serde_json::from_slice(header).ok()?;
    let age = now_s().checked_sub(header.written_s);
    let is_fresh = key.data.is_some() || age.is_some_and(|age| age < key.ttl.as_secs());
    let is_wanted = header.format == FORMAT
        && header.version == FORMAT_VERSION
        && (&header.identity, &header.data, &header.rules) == (&key.identity, &key.data, &key.rules);
    if !is_fresh || !is_wanted || header.sha256 != checksum(body) {
        return None;
    }
    let Body { mut columns, not_indexed } = serde_json::from_slice(body).ok()?;
    columns.retain(|held| is_allowed(held, schema, settings));
    let is_old = metadata.modified().ok().and_then(|at| at.elapsed().ok()).is_some_and(|age| age > TOUCH_INTERVAL);
    if is_old && let Ok(file) = OpenOptions::new().append(true).open(path) {
        // Eviction goes by this time.
        file.set_modified(SystemTime::now()).ok();
    }
    Some(Values::new(columns).with_not_indexed(not_indexed))
}

/// Whether a column may be in the index by the rules of now, whatever a file says.
fn is_allowed(held: &Held, schema: &Schema, settings: &ValuesSection) -> bool {
    let is_of = |table: &&Table| table.full_name() == held.table;
    let table = schema.tables().iter().find(is_of);
    let column = table.and_then(|table| table.columns.iter().find(|column| column.name == held.column));
    table.zip(column).is_some_and(|(table, column)| {
        is_readable(table, column, settings) && !is_sensitive_by_values(table, column, &held.values, settings)
    })
}

/// Writes an index beside its place and then moves it there, so that nobody ever sees a part of it.
fn store(folder: &Path, path: &Path, key: &Key, values: &Values, most_bytes: u64) -> io::Result<()> {
    let body = serde_json::to_vec(&BodyRef { columns: values.columns(), not_indexed: values.not_indexed() })?;
    let header = Header {
        format: FORMAT.to_string(),
        version: FORMAT_VERSION,
        identity: key.identity.clone(),
        data: key.data.clone(),
        rules: key.rules.clone(),
        written_s: now_s(),
        sha256: checksum(&body),
    };
    let mut header = serde_json::to_vec(&header)?;
    header.push(b'\n');
    if (header.len() + body.len()) as u64 > most_bytes {
        return Err(io::Error::other("it is larger than `values.cache_bytes`"));
    }
    private_folder().create(folder)?;
    let temporary = temporary_path(path);
    let written = private_file().open(&temporary).and_then(|mut file| {
        file.write_all(&header)?;
        file.write_all(&body)
    });
    let moved = written.and_then(|()| fs::rename(&temporary, path));
    if moved.is_err() {
        fs::remove_file(&temporary).ok();
    }
    moved?;
    evict(folder, most_bytes)
}

/// Removes the files that were not used for longest until the rest fits, and what killed processes left behind.
fn evict(folder: &Path, most_bytes: u64) -> io::Result<()> {
    let mut kept: Vec<(SystemTime, u64, PathBuf)> = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        // Another process may have removed it in the meantime.
        let Ok(metadata) = fs::symlink_metadata(&path) else { continue };
        let used = metadata.modified().unwrap_or(UNIX_EPOCH);
        let ending = path.extension().unwrap_or_default();
        if ending == "tmp" && used.elapsed().is_ok_and(|age| age > ABANDONED_AGE) {
            fs::remove_file(&path).ok();
        } else if ending == ENDING {
            kept.push((used, metadata.len(), path));
        }
    }
    kept.sort();
    let mut total: u64 = kept.iter().map(|(_, bytes, _)| bytes).sum();
    for (_, bytes, path) in kept {
        if total <= most_bytes {
            break;
        }
        fs::remove_file(&path).ok();
        total -= bytes;
    }
    Ok(())
}

/// A name beside the file that no other process or thread writes to.
fn temporary_path(path: &Path) -> PathBuf {
    static WRITES: AtomicU64 = AtomicU64::new(0);
    let write = WRITES.fetch_add(1, Ordering::Relaxed);
    path.with_extension(format!("{}-{}-{write}.tmp", std::process::id(), now_s()))
}

fn private_folder() -> DirBuilder {
    let mut folder = DirBuilder::new();
    folder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut folder, 0o700);
    folder
}

fn private_file() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Whether only its owner can read or write the file: then nobody else has put it there.
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
