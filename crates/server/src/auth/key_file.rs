//! API key file in JSON Lines: one line per key created and one per key revoked.
//!
//! The file is append-only, so that concurrent changes are not lost. It contains no keys, only
//! their hashes.

use std::collections::HashSet;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;

use argon2::Argon2;
use argon2::password_hash::{PasswordHasher, PasswordVerifier};
use querymend_net::Error;
use ring::rand::{SecureRandom, SystemRandom};
use serde::{Deserialize, Serialize};

use super::{API_KEY_USER_PREFIX, is_valid_user_id};
use crate::clock::now;

/// Prefix of every key, recognizable to people and secret scanners.
const KEY_PREFIX: &str = "qm_";
/// Length of a key id in hexadecimal digits. The id is not secret.
const ID_LENGTH: usize = 16;
/// Length of the secret in hexadecimal digits: 32 bytes.
const SECRET_LENGTH: usize = 64;
/// Maximum size of the key file, in bytes. A larger file is not a key file.
const MAX_FILE_BYTES: u64 = 16 << 20;

/// Record of one key, as stored in the file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApiKeyRecord {
    /// Public id, which is part of the key.
    pub id: String,
    /// Name of the key's user.
    pub name: String,
    /// Role of the user. If absent, `server.default_role` applies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// Argon2id hash of the key.
    pub hash: String,
    /// Creation time, in seconds since the Unix epoch.
    pub made: u64,
}

impl ApiKeyRecord {
    /// Returns the user id that sessions, traces and the audit log use for the key's user.
    pub fn user_id(&self) -> String {
        format!("{API_KEY_USER_PREFIX}{}", self.name)
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RevokedKey {
    revoked: String,
    at: u64,
}

/// Contents of a key file.
#[derive(Debug, Default)]
pub struct KeyListing {
    /// Keys that are not revoked, oldest first.
    pub keys: Vec<ApiKeyRecord>,
    /// 1-based numbers of lines that cannot be parsed.
    pub invalid_lines: Vec<usize>,
}

/// Returns whether a string looks like an API key, valid or not.
pub(super) fn has_key_prefix(text: &str) -> bool {
    text.starts_with(KEY_PREFIX)
}

/// Returns the id of a well-formed key.
pub(super) fn key_id(key: &str) -> Option<&str> {
    let (id, secret) = key.strip_prefix(KEY_PREFIX)?.split_once('_')?;
    let hex = |text: &str, length: usize| {
        text.len() == length && text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
    };
    (hex(id, ID_LENGTH) && hex(secret, SECRET_LENGTH)).then_some(id)
}

/// Returns whether a key matches an Argon2id hash.
///
/// Slow on purpose, with a constant-time comparison.
pub(super) fn verify(key: &str, hash: &str) -> bool {
    Argon2::default().verify_password(key.as_bytes(), hash).is_ok()
}

fn unusable_file(file: &Path, why: &dyn std::fmt::Display) -> Error {
    Error::new(
        format!("cannot use the keys in {}: {why}", file.display()),
        "check `--keys`, or `server.auth.keys_file`",
    )
}

/// Returns the error for a failed write.
fn write_error(file: &Path, why: &io::Error) -> Error {
    match why.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => Error::new(
            format!("cannot write {}: {why}", file.display()),
            "free disk space and try again; existing keys stay valid",
        ),
        _ => unusable_file(file, why),
    }
}

/// Reads a key file.
pub fn read(file: &Path) -> Result<KeyListing, Error> {
    let mut opened = File::open(file).map_err(|why| unusable_file(file, &why))?;
    read_listing(&mut opened).map_err(|why| unusable_file(file, &why))
}

fn read_listing(file: &mut File) -> io::Result<KeyListing> {
    if file.metadata()?.len() > MAX_FILE_BYTES {
        return Err(io::Error::other("the file is too large for a key file"));
    }
    let mut text = String::new();
    file.seek(SeekFrom::Start(0))?;
    file.read_to_string(&mut text)?;
    let (mut keys, mut revoked_ids, mut invalid_lines) = (Vec::new(), HashSet::new(), Vec::new());
    for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        if let Ok(key) = serde_json::from_str::<ApiKeyRecord>(line) {
            keys.push(key);
        } else if let Ok(revoked) = serde_json::from_str::<RevokedKey>(line) {
            revoked_ids.insert(revoked.revoked);
        } else {
            invalid_lines.push(number + 1);
        }
    }
    keys.retain(|key| !revoked_ids.contains(&key.id));
    Ok(KeyListing { keys, invalid_lines })
}

/// Creates a key and returns it. The key cannot be shown again.
///
/// If the name already has a key, `allow_additional` must be set: all keys of a name belong to the
/// same user.
pub fn create(file: &Path, name: &str, role: Option<&str>, allow_additional: bool) -> Result<String, Error> {
    if !is_valid_user_id(name) || name.chars().count() > 100 {
        return Err(Error::new("a name has 1 to 100 visible characters", "such as `reports` or `ann`"));
    }
    let mut opened = open_locked(file, true)?;
    let known = read_listing(&mut opened).map_err(|why| unusable_file(file, &why))?;
    if !allow_additional && known.keys.iter().any(|key| key.name == name) {
        let message = format!("`{name}` already has a key");
        return Err(Error::new(
            message,
            "choose another name, revoke that key, or pass --another to add a key for the same user",
        ));
    }
    let unmade = |_| Error::new("the random number generator of the system is unavailable", "try again");
    let random = SystemRandom::new();
    let (mut id, mut secret, mut salt) = ([0; ID_LENGTH / 2], [0; SECRET_LENGTH / 2], [0; 16]);
    for bytes in [&mut id[..], &mut secret[..], &mut salt[..]] {
        random.fill(bytes).map_err(unmade)?;
    }
    let id = to_hex(&id);
    let key = format!("{KEY_PREFIX}{id}_{}", to_hex(&secret));
    let hash =
        Argon2::default().hash_password_with_salt(key.as_bytes(), &salt).map_err(|why| unusable_file(file, &why))?;
    let role = role.map(str::to_owned);
    let record = ApiKeyRecord { id, name: name.to_owned(), role, hash: hash.to_string(), made: now() };
    append(&mut opened, &record).map_err(|why| write_error(file, &why))?;
    Ok(key)
}

/// Revokes a key by its id, or all keys of a name, and returns the revoked keys.
pub fn revoke(file: &Path, which: &str) -> Result<Vec<ApiKeyRecord>, Error> {
    let mut opened = open_locked(file, false)?;
    let known = read_listing(&mut opened).map_err(|why| unusable_file(file, &why))?;
    let meant: Vec<ApiKeyRecord> = known.keys.into_iter().filter(|key| key.id == which || key.name == which).collect();
    if meant.is_empty() {
        return Err(Error::new(format!("there is no key `{which}`"), "`querymend key list` lists all keys"));
    }
    for key in &meant {
        append(&mut opened, &RevokedKey { revoked: key.id.clone(), at: now() })
            .map_err(|why| write_error(file, &why))?;
    }
    Ok(meant)
}

/// Opens the file with an exclusive lock.
fn open_locked(file: &Path, create: bool) -> Result<File, Error> {
    let mut options = OpenOptions::new();
    options.read(true).append(true).create(create);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let opened = options.open(file).map_err(|why| unusable_file(file, &why))?;
    opened.lock().map_err(|why| unusable_file(file, &why))?;
    Ok(opened)
}

fn append(file: &mut File, line: &impl Serialize) -> io::Result<()> {
    let mut text = serde_json::to_vec(line)?;
    text.push(b'\n');
    // Terminate a partial last line, so that the new line stays readable.
    if file.metadata()?.len() > 0 {
        let mut last = [0];
        file.seek(SeekFrom::End(-1))?;
        file.read_exact(&mut last)?;
        if last != *b"\n" {
            text.insert(0, b'\n');
        }
    }
    file.write_all(&text)?;
    file.sync_all()
}

fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that cannot go on must fail")]
mod tests {
    use super::*;

    #[test]
    fn creates_verifies_and_revokes_keys() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("keys");
        let key = create(&file, "ann", Some("analyst"), false).unwrap();
        assert!(has_key_prefix(&key) && key.len() == 3 + ID_LENGTH + 1 + SECRET_LENGTH, "{key}");
        assert!(create(&file, "ann", None, false).is_err_and(|error| error.hint.contains("--another")));
        let second = create(&file, "ann", None, true).unwrap();
        let listing = read(&file).unwrap();
        assert_eq!(listing.keys.len(), 2);
        assert_eq!(
            (listing.keys[0].id.as_str(), listing.keys[0].user_id().as_str()),
            (key_id(&key).unwrap(), "key:ann")
        );
        assert!(listing.keys[0].hash.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"));
        assert!(verify(&key, &listing.keys[0].hash) && !verify(&second, &listing.keys[0].hash));
        let text = std::fs::read_to_string(&file).unwrap();
        assert!(!text.contains(&key) && !text.contains(&key[3 + ID_LENGTH + 1..]));
        assert_eq!(revoke(&file, key_id(&key).unwrap()).unwrap().len(), 1);
        assert_eq!(read(&file).unwrap().keys.len(), 1);
        assert!(revoke(&file, key_id(&key).unwrap()).is_err());
        // A crash in the middle of a write invalidates that line only.
        std::fs::write(&file, format!("{text}{{\"id\":\"cut")).unwrap();
        create(&file, "bob", None, false).unwrap();
        let listing = read(&file).unwrap();
        assert_eq!((listing.keys.len(), listing.invalid_lines), (3, vec![3]));
    }

    #[test]
    fn rejects_malformed_keys() {
        let (id_of, secret) = ("0123456789abcdef", "0".repeat(SECRET_LENGTH));
        assert_eq!(key_id(&format!("qm_{id_of}_{secret}")), Some(id_of));
        for wrong in [
            String::new(),
            "qm_".into(),
            format!("qm_{id_of}"),
            format!("qm_{id_of}_"),
            format!("qm_{id_of}_{secret}0"),
            format!("qm_{id_of}_{}", &secret[1..]),
            format!("qm_{}_{secret}", id_of.to_uppercase()),
            format!("QM_{id_of}_{secret}"),
            format!("qm_{id_of}_{}\u{e9}", &secret[2..]),
        ] {
            assert_eq!(key_id(&wrong), None, "{wrong}");
        }
    }
}
