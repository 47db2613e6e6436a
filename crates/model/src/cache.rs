//! Where models are kept on this machine.

use std::fs::{self, File, TryLockError};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use ring::digest::{Context, SHA256};

use crate::catalogue::{Catalogue, Entry};

/// The folder that models are kept in. A file that has its name there is whole and right: it is put there in one step, once
/// its checksum has been found right.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cache {
    folder: PathBuf,
}

/// What there is of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// It can be used.
    Here,
    /// A pull was begun; so many bytes of it are kept.
    Begun(u64),
    /// There is a file of its name and another size, which was not put there by a pull.
    Damaged,
    /// Nothing.
    Absent,
}

impl Cache {
    /// In a folder.
    pub fn at(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into() }
    }

    /// By the convention of the platform: `QUERYMEND_CACHE`, else `querymend` in `XDG_CACHE_HOME`, in `~/.cache`, in
    /// `~/Library/Caches` (macOS) or in `LOCALAPPDATA` (Windows). Nothing where none of them is known.
    pub fn of_the_user() -> Option<Self> {
        Self::from_variables(std::env::consts::OS, |name| std::env::var_os(name).map(PathBuf::from))
    }

    fn from_variables(os: &str, variable: impl Fn(&str) -> Option<PathBuf>) -> Option<Self> {
        if let Some(folder) = variable("QUERYMEND_CACHE").filter(|path| !path.as_os_str().is_empty()) {
            return Some(Self::at(folder));
        }
        // The standard asks that a folder which is not absolute be ignored.
        let absolute = |name: &str| variable(name).filter(|path| path.is_absolute());
        let base = absolute("XDG_CACHE_HOME").or_else(|| match os {
            "windows" => absolute("LOCALAPPDATA"),
            "macos" => absolute("HOME").map(|home| home.join("Library").join("Caches")),
            _ => absolute("HOME").map(|home| home.join(".cache")),
        });
        base.map(|base| Self::at(base.join("querymend")))
    }

    /// The folder itself.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Where models lie.
    pub fn models(&self) -> PathBuf {
        self.folder.join("models")
    }

    /// Where what was made of models for quicker loading lies. The name of a file begins with the name of its model.
    pub fn prepared(&self) -> PathBuf {
        self.models().join("prepared")
    }

    /// Where a model lies once it is pulled.
    pub fn path(&self, entry: &Entry) -> PathBuf {
        self.models().join(&entry.file)
    }

    /// Whether a model can be used.
    pub fn has(&self, entry: &Entry) -> bool {
        self.presence(entry) == Presence::Here
    }

    /// What there is of a model, by names and sizes; checksums are not looked at.
    pub fn presence(&self, entry: &Entry) -> Presence {
        let size = |path: &Path| fs::metadata(path).ok().filter(fs::Metadata::is_file).map(|file| file.len());
        match (size(&self.path(entry)), size(&self.work(entry).join(PARTIAL))) {
            (Some(size), _) if size == entry.size => Presence::Here,
            (Some(_), _) => Presence::Damaged,
            (None, Some(begun)) if begun > 0 => Presence::Begun(begun),
            (None, _) => Presence::Absent,
        }
    }

    /// Where a pull works. The checksum is part of the name, so that what was begun of one file is not taken for another.
    pub(crate) fn work(&self, entry: &Entry) -> PathBuf {
        self.pulling().join(format!("{}-{}", entry.name, entry.sha256.get(..12).unwrap_or_default()))
    }

    fn pulling(&self) -> PathBuf {
        self.models().join("pulling")
    }

    /// Has a model to oneself until the file is dropped, or the process ends in whatever way. Nothing if another has it.
    /// Where the file system knows no locks there are none; the checksum still keeps wrong files out.
    pub(crate) fn lock(&self, entry: &Entry) -> io::Result<Option<File>> {
        fs::create_dir_all(self.pulling())?;
        let path = self.pulling().join(format!("{}.lock", entry.name));
        let file = File::options().create(true).append(true).open(path)?;
        match file.try_lock() {
            Ok(()) | Err(TryLockError::Error(_)) => Ok(Some(file)),
            Err(TryLockError::WouldBlock) => Ok(None),
        }
    }

    /// Removes a model, what was begun of it and what was prepared of it. Says how many bytes that freed; nothing if a pull of
    /// it is under way.
    pub fn remove(&self, entry: &Entry, catalogue: &Catalogue) -> io::Result<Option<u64>> {
        let Some(_lock) = self.lock(entry)? else { return Ok(None) };
        let mut freed = take_away(&self.path(entry))? + take_away(&self.work(entry))?;
        // The name of one model may begin with the name of another; what is prepared belongs to the longest that fits.
        let owner = |file: &str| {
            let names = catalogue.iter().map(|entry| entry.name.as_str()).filter(|name| file.starts_with(name));
            names.max_by_key(|name| name.len()).map(str::to_owned)
        };
        for found in fs::read_dir(self.prepared()).into_iter().flatten().flatten() {
            if owner(&found.file_name().to_string_lossy()).as_deref() == Some(&entry.name) {
                freed += take_away(&found.path())?;
            }
        }
        Ok(Some(freed))
    }
}

/// What a pull has got so far, in its folder.
pub(crate) const PARTIAL: &str = "partial";

/// Removes a file or a folder that may not be there, and says how many bytes that freed.
pub(crate) fn take_away(path: &Path) -> io::Result<u64> {
    let size = size(path);
    let gone = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
    match gone {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(0),
        Err(error) => Err(error),
        Ok(()) => Ok(size),
    }
}

/// How many bytes lie in a file, or in a folder and below it.
pub(crate) fn size(path: &Path) -> u64 {
    match fs::symlink_metadata(path) {
        Ok(file) if file.is_file() => file.len(),
        Ok(folder) if folder.is_dir() => {
            fs::read_dir(path).into_iter().flatten().flatten().map(|found| size(&found.path())).sum()
        }
        _ => 0,
    }
}

/// The checksum of a file, in hexadecimal digits. `go_on` is asked between pieces; nothing comes back if it says no.
pub(crate) fn sha256_while(path: &Path, go_on: &dyn Fn() -> bool) -> io::Result<Option<String>> {
    let mut file = File::open(path)?;
    let mut context = Context::new(&SHA256);
    let mut buffer = vec![0; 1 << 20];
    loop {
        if !go_on() {
            return Ok(None);
        }
        match file.read(&mut buffer) {
            Ok(0) => break,
            Ok(read) => context.update(buffer.get(..read).unwrap_or_default()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(Some(context.finish().as_ref().iter().map(|byte| format!("{byte:02x}")).collect()))
}

/// The checksum of a file, in hexadecimal digits.
pub fn sha256(path: &Path) -> io::Result<String> {
    Ok(sha256_while(path, &|| true)?.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f07_the_folder_follows_the_platform() {
        let check = |os: &str, pairs: &[(&str, &str)], expected: Option<&str>| {
            let found = Cache::from_variables(os, |name| {
                pairs.iter().find(|(variable, _)| *variable == name).map(|(_, value)| PathBuf::from(value))
            });
            assert_eq!(found.as_ref().map(Cache::folder), expected.map(Path::new), "{os} {pairs:?}");
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
    fn a_model_is_removed_with_what_was_prepared_of_it_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::at(folder.path());
        let catalogue = Catalogue::builtin().unwrap();
        let text = include_str!("models.toml").replace("qwen2.5-coder-1.5b", "smollm2-135m-large");
        let catalogue = catalogue.and_text(&text, "more").unwrap();
        let entry = catalogue.get("smollm2-135m").unwrap();
        fs::create_dir_all(cache.prepared()).unwrap();
        fs::create_dir_all(cache.work(entry)).unwrap();
        assert_eq!(cache.presence(entry), Presence::Absent);
        fs::write(cache.work(entry).join(PARTIAL), "four").unwrap();
        assert_eq!(cache.presence(entry), Presence::Begun(4));
        fs::write(cache.path(entry), "half").unwrap();
        assert_eq!(cache.presence(entry), Presence::Damaged);
        for name in ["smollm2-135m.q8", "smollm2-135m-large.q8", "other"] {
            fs::write(cache.prepared().join(name), "12345").unwrap();
        }
        let held = cache.lock(entry).unwrap().unwrap();
        assert_eq!(cache.remove(entry, &catalogue).unwrap(), None);
        drop(held);
        assert_eq!(cache.remove(entry, &catalogue).unwrap(), Some(13));
        assert_eq!(cache.remove(entry, &catalogue).unwrap(), Some(0));
        let mut left: Vec<_> =
            fs::read_dir(cache.prepared()).unwrap().map(|found| found.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(left, ["other", "smollm2-135m-large.q8"]);
    }

    #[test]
    fn checksums_are_those_of_everybody_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("abc");
        fs::write(&path, "abc").unwrap();
        assert_eq!(sha256(&path).unwrap(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert!(sha256(&folder.path().join("nothing")).is_err());
    }
}
