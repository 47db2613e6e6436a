//! Cache directory for models.

use std::fs::{self, File, TryLockError};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use querymend_net::to_hex;
use ring::digest::{Context, SHA256};

use crate::error::Error;
use crate::registry::{ModelEntry, ModelRegistry};

/// Cache directory for models.
///
/// A file under its final name is complete and valid: it is renamed atomically after its checksum
/// was verified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelCache {
    folder: PathBuf,
}

/// State of a model in the cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// Ready for use.
    Present,
    /// Partially downloaded, with the number of bytes so far.
    Partial(u64),
    /// A file with its name but a different size, which does not come from a pull.
    Damaged,
    /// Not present.
    Absent,
}

impl ModelCache {
    /// Uses a directory.
    pub fn at(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into() }
    }

    /// Returns the platform's default: `QUERYMEND_CACHE`, else `querymend` in `XDG_CACHE_HOME`,
    /// `~/.cache`, `~/Library/Caches` (macOS) or `LOCALAPPDATA` (Windows).
    ///
    /// Returns `None` if none of them is known.
    pub fn user_default() -> Option<Self> {
        Self::from_env(std::env::consts::OS, |name| std::env::var_os(name).map(PathBuf::from))
    }

    fn from_env(os: &str, variable: impl Fn(&str) -> Option<PathBuf>) -> Option<Self> {
        if let Some(folder) = variable("QUERYMEND_CACHE").filter(|path| !path.as_os_str().is_empty()) {
            return Some(Self::at(folder));
        }
        // The XDG specification requires relative paths to be ignored.
        let absolute = |name: &str| variable(name).filter(|path| path.is_absolute());
        let base = absolute("XDG_CACHE_HOME").or_else(|| match os {
            "windows" => absolute("LOCALAPPDATA"),
            "macos" => absolute("HOME").map(|home| home.join("Library").join("Caches")),
            _ => absolute("HOME").map(|home| home.join(".cache")),
        });
        base.map(|base| Self::at(base.join("querymend")))
    }

    /// Returns the root of the cache.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the directory of the model files.
    pub fn models_dir(&self) -> PathBuf {
        self.folder.join("models")
    }

    /// Returns the directory of repacked weights. File names start with the name of the model.
    pub fn repacked_dir(&self) -> PathBuf {
        self.models_dir().join("prepared")
    }

    /// Returns the path of a model after a pull.
    pub fn model_path(&self, entry: &ModelEntry) -> PathBuf {
        self.models_dir().join(&entry.file)
    }

    /// Returns whether a model is ready for use.
    pub fn has(&self, entry: &ModelEntry) -> bool {
        self.presence(entry) == Presence::Present
    }

    /// Returns the state of a model, judged by file names and sizes without verifying checksums.
    pub fn presence(&self, entry: &ModelEntry) -> Presence {
        let size = |path: &Path| fs::metadata(path).ok().filter(fs::Metadata::is_file).map(|file| file.len());
        match (size(&self.model_path(entry)), size(&self.work_dir(entry).join(PARTIAL_FILE))) {
            (Some(size), _) if size == entry.size => Presence::Present,
            (Some(_), _) => Presence::Damaged,
            (None, Some(begun)) if begun > 0 => Presence::Partial(begun),
            (None, _) => Presence::Absent,
        }
    }

    /// Returns the working directory of a pull. Its name includes the checksum, so that downloads
    /// of different files are not mixed up.
    pub(crate) fn work_dir(&self, entry: &ModelEntry) -> PathBuf {
        self.pulls_dir().join(format!("{}-{}", entry.name, entry.sha256.get(..12).unwrap_or_default()))
    }

    fn pulls_dir(&self) -> PathBuf {
        self.models_dir().join("pulling")
    }

    /// Locks a model exclusively until the file is dropped or the process ends; returns `None` if
    /// another process holds the lock.
    ///
    /// On file systems without locks there is no exclusion, but checksums still keep invalid files
    /// out.
    pub(crate) fn lock(&self, entry: &ModelEntry) -> io::Result<Option<File>> {
        fs::create_dir_all(self.pulls_dir())?;
        let path = self.pulls_dir().join(format!("{}.lock", entry.name));
        let file = File::options().create(true).append(true).open(path)?;
        match file.try_lock() {
            Ok(()) | Err(TryLockError::Error(_)) => Ok(Some(file)),
            Err(TryLockError::WouldBlock) => Ok(None),
        }
    }

    /// Deletes a model, its partial download and its repacked weights.
    ///
    /// Returns the number of bytes freed, or `None` if a pull is in progress.
    pub fn remove(&self, entry: &ModelEntry, catalogue: &ModelRegistry) -> io::Result<Option<u64>> {
        let Some(_lock) = self.lock(entry)? else { return Ok(None) };
        let mut freed = remove_path(&self.model_path(entry))? + remove_path(&self.work_dir(entry))?;
        // One model's name may be a prefix of another's; repacked files belong to the longest
        // match.
        let owner = |file: &str| {
            let names = catalogue.iter().map(|entry| entry.name.as_str()).filter(|name| file.starts_with(name));
            names.max_by_key(|name| name.len()).map(str::to_owned)
        };
        for found in fs::read_dir(self.repacked_dir()).into_iter().flatten().flatten() {
            if owner(&found.file_name().to_string_lossy()).as_deref() == Some(&entry.name) {
                freed += remove_path(&found.path())?;
            }
        }
        Ok(Some(freed))
    }
}

impl ModelRegistry {
    /// Returns the path of a pulled model, or an error that explains how to pull it.
    pub fn model_path(&self, name: &str, cache: &ModelCache) -> Result<PathBuf, Error> {
        let entry = self.get(name)?;
        if cache.has(entry) {
            return Ok(cache.model_path(entry));
        }
        Err(Error::configuration(
            format!("the model {name} is not on this machine"),
            format!("`querymend model pull {name}` fetches it"),
        ))
    }
}

/// Name of the partial download in the working directory.
pub(crate) const PARTIAL_FILE: &str = "partial";

/// Deletes a file or directory if it exists; returns the number of bytes freed.
pub(crate) fn remove_path(path: &Path) -> io::Result<u64> {
    let size = disk_usage(path);
    let gone = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
    match gone {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(0),
        Err(error) => Err(error),
        Ok(()) => Ok(size),
    }
}

/// Returns the size of a file or of all files below a directory, in bytes.
pub(crate) fn disk_usage(path: &Path) -> u64 {
    match fs::symlink_metadata(path) {
        Ok(file) if file.is_file() => file.len(),
        Ok(folder) if folder.is_dir() => {
            fs::read_dir(path).into_iter().flatten().flatten().map(|found| disk_usage(&found.path())).sum()
        }
        _ => 0,
    }
}

/// Returns the SHA-256 of a file in hexadecimal, or `None` as soon as `should_continue` returns
/// `false`.
pub(crate) fn sha256_cancellable(path: &Path, should_continue: &dyn Fn() -> bool) -> io::Result<Option<String>> {
    let mut file = File::open(path)?;
    let mut context = Context::new(&SHA256);
    let mut buffer = vec![0; 1 << 20];
    loop {
        if !should_continue() {
            return Ok(None);
        }
        match file.read(&mut buffer) {
            Ok(0) => break,
            Ok(read) => context.update(buffer.get(..read).unwrap_or_default()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(Some(to_hex(context.finish().as_ref())))
}

/// Returns the SHA-256 of a file in hexadecimal.
pub fn sha256(path: &Path) -> io::Result<String> {
    Ok(sha256_cancellable(path, &|| true)?.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cache_folder_follows_the_platform() {
        let check = |os: &str, pairs: &[(&str, &str)], expected: Option<&str>| {
            let found = ModelCache::from_env(os, |name| {
                pairs.iter().find(|(variable, _)| *variable == name).map(|(_, value)| PathBuf::from(value))
            });
            assert_eq!(found.as_ref().map(ModelCache::folder), expected.map(Path::new), "{os} {pairs:?}");
        };
        let home = ("HOME", "/home/me");
        check("linux", &[home], Some("/home/me/.cache/querymend"));
        check("linux", &[home, ("XDG_CACHE_HOME", "/c")], Some("/c/querymend"));
        check("linux", &[home, ("XDG_CACHE_HOME", "c")], Some("/home/me/.cache/querymend"));
        check("linux", &[home, ("QUERYMEND_CACHE", "q")], Some("q"));
        check("linux", &[home, ("QUERYMEND_CACHE", "")], Some("/home/me/.cache/querymend"));
        check("macos", &[home], Some("/home/me/Library/Caches/querymend"));
        check("windows", &[home, ("LOCALAPPDATA", "/local")], Some("/local/querymend"));
        check("linux", &[], None);
    }

    #[test]
    fn removes_a_model_and_only_its_repacked_files() {
        let folder = tempfile::tempdir().unwrap();
        let cache = ModelCache::at(folder.path());
        let catalogue = ModelRegistry::builtin().unwrap();
        let text = include_str!("models.toml").replace("qwen2.5-coder-1.5b", "smollm2-135m-large");
        let catalogue = catalogue.merge_text(&text, "more").unwrap();
        let entry = catalogue.get("smollm2-135m").unwrap();
        fs::create_dir_all(cache.repacked_dir()).unwrap();
        fs::create_dir_all(cache.work_dir(entry)).unwrap();
        assert_eq!(cache.presence(entry), Presence::Absent);
        fs::write(cache.work_dir(entry).join(PARTIAL_FILE), "four").unwrap();
        assert_eq!(cache.presence(entry), Presence::Partial(4));
        fs::write(cache.model_path(entry), "half").unwrap();
        assert_eq!(cache.presence(entry), Presence::Damaged);
        for name in ["smollm2-135m.q8", "smollm2-135m-large.q8", "other"] {
            fs::write(cache.repacked_dir().join(name), "12345").unwrap();
        }
        let held = cache.lock(entry).unwrap().unwrap();
        assert_eq!(cache.remove(entry, &catalogue).unwrap(), None);
        drop(held);
        assert_eq!(cache.remove(entry, &catalogue).unwrap(), Some(13));
        assert_eq!(cache.remove(entry, &catalogue).unwrap(), Some(0));
        let mut left: Vec<_> =
            fs::read_dir(cache.repacked_dir()).unwrap().map(|found| found.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(left, ["other", "smollm2-135m-large.q8"]);
    }

    #[test]
    fn reports_unknown_and_unpulled_models() {
        let catalogue = ModelRegistry::builtin().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let cache = ModelCache::at(folder.path());
        let error = catalogue.model_path("gpt", &cache).unwrap_err();
        assert!(error.to_string().contains("no model `gpt`") && error.hint().unwrap().contains("smollm2-135m"));
        let error = catalogue.model_path("smollm2-135m", &cache).unwrap_err();
        assert!(error.hint().unwrap().contains("querymend model pull smollm2-135m"), "{error:?}");
    }

    #[test]
    fn sha256_matches_the_standard() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("abc");
        fs::write(&path, "abc").unwrap();
        assert_eq!(sha256(&path).unwrap(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert!(sha256(&folder.path().join("nothing")).is_err());
    }
}
