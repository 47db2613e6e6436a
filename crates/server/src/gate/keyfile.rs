//! The file of API keys: a line of JSON for each key that was made, and one for each that was revoked. It is only ever added to, so
//! that nothing is lost when two people change it at once, and it holds no key: only what a key can be checked with.

use std::collections::HashSet;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;

use argon2::Argon2;
use argon2::password_hash::{PasswordHasher, PasswordVerifier};
use querymend_net::Error;
use ring::rand::{SecureRandom, SystemRandom};
use serde::{Deserialize, Serialize};

use super::{KEY_USER, is_user};
use crate::service::now;

/// What every key begins with, so that people and scanners know one when they see it.
const PREFIX: &str = "qm_";
/// Letters of an id, which is no secret.
const ID: usize = 16;
/// Letters of the secret: 32 bytes.
const SECRET: usize = 64;
/// A file that is longer is something else.
const LONGEST_FILE: u64 = 16 << 20;

/// What is known of a key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// By which it is found; it stands in the key.
    pub id: String,
    /// Who uses it.
    pub name: String,
    /// Their role; nothing leaves it to `server.default_role`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// By which it is checked (argon2id).
    pub hash: String,
    /// When it was made, in seconds since 1970.
    pub made: u64,
}

impl Record {
    /// By which sessions, traces and the audit log know who uses it.
    pub fn user(&self) -> String {
        format!("{KEY_USER}{}", self.name)
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Revoked {
    revoked: String,
    at: u64,
}

/// What a file holds.
#[derive(Debug, Default)]
pub struct Listing {
    /// The keys that are valid, oldest first.
    pub keys: Vec<Record>,
    /// Lines that cannot be read.
    pub broken: Vec<usize>,
}

/// Whether a text is meant as a key, right or wrong.
pub(super) fn looks_like_one(text: &str) -> bool {
    text.starts_with(PREFIX)
}

/// The id in a key, if the key has the form of one.
pub(super) fn id(key: &str) -> Option<&str> {
    let (id, secret) = key.strip_prefix(PREFIX)?.split_once('_')?;
    let hex = |text: &str, length: usize| {
        text.len() == length && text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
    };
    (hex(id, ID) && hex(secret, SECRET)).then_some(id)
}

/// Whether a key is the one that a hash was made of. Slow on purpose; the comparison takes the same time for all of them.
pub(super) fn verify(key: &str, hash: &str) -> bool {
    Argon2::default().verify_password(key.as_bytes(), hash).is_ok()
}

fn wrong(file: &Path, why: &dyn std::fmt::Display) -> Error {
    Error::new(
        format!("the keys in {} cannot be used: {why}", file.display()),
        "check `--keys`, or `server.sign_in.keys_file`",
    )
}

/// What could not be added.
fn unwritten(file: &Path, why: &io::Error) -> Error {
    match why.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => Error::new(
            format!("{} cannot be written: {why}", file.display()),
            "make room on the disk, then try again; the keys that were there are still valid",
        ),
        _ => wrong(file, why),
    }
}

/// Reads a file.
pub fn read(file: &Path) -> Result<Listing, Error> {
    let mut opened = File::open(file).map_err(|why| wrong(file, &why))?;
    listed(&mut opened).map_err(|why| wrong(file, &why))
}

fn listed(file: &mut File) -> io::Result<Listing> {
    if file.metadata()?.len() > LONGEST_FILE {
        return Err(io::Error::other("the file is too long to be one of keys"));
    }
    let mut text = String::new();
    file.seek(SeekFrom::Start(0))?;
    file.read_to_string(&mut text)?;
    let (mut made, mut gone, mut broken) = (Vec::new(), HashSet::new(), Vec::new());
    for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        if let Ok(key) = serde_json::from_str::<Record>(line) {
            made.push(key);
        } else if let Ok(revoked) = serde_json::from_str::<Revoked>(line) {
            gone.insert(revoked.revoked);
        } else {
            broken.push(number + 1);
        }
    }
    made.retain(|key| !gone.contains(&key.id));
    Ok(Listing { keys: made, broken })
}

/// Makes a key, which is given back this one time. Where somebody of that name has one already, it must be said that another is
/// meant: all keys of a name are one user.
pub fn make(file: &Path, name: &str, role: Option<&str>, another: bool) -> Result<String, Error> {
    if !is_user(name) || name.chars().count() > 100 {
        return Err(Error::new("a name has 1 to 100 letters that can be seen", "such as `reports` or `ann`"));
    }
    let mut opened = locked(file, true)?;
    let known = listed(&mut opened).map_err(|why| wrong(file, &why))?;
    if !another && known.keys.iter().any(|key| key.name == name) {
        let message = format!("there is a key of `{name}` already");
        return Err(Error::new(
            message,
            "choose another name, revoke that key, or say --another to give the same user one more",
        ));
    }
    let unmade = |_| Error::new("this system gives no random numbers", "try again");
    let random = SystemRandom::new();
    let (mut id, mut secret, mut salt) = ([0; ID / 2], [0; SECRET / 2], [0; 16]);
    for bytes in [&mut id[..], &mut secret[..], &mut salt[..]] {
        random.fill(bytes).map_err(unmade)?;
    }
    let id = hexadecimal(&id);
    let key = format!("{PREFIX}{id}_{}", hexadecimal(&secret));
    let hash = Argon2::default().hash_password_with_salt(key.as_bytes(), &salt).map_err(|why| wrong(file, &why))?;
    let role = role.map(str::to_owned);
    let record = Record { id, name: name.to_owned(), role, hash: hash.to_string(), made: now() };
    append(&mut opened, &record).map_err(|why| unwritten(file, &why))?;
    Ok(key)
}

/// Revokes a key by its id, or all keys of a name. Gives back those that were.
pub fn revoke(file: &Path, which: &str) -> Result<Vec<Record>, Error> {
    let mut opened = locked(file, false)?;
    let known = listed(&mut opened).map_err(|why| wrong(file, &why))?;
    let meant: Vec<Record> = known.keys.into_iter().filter(|key| key.id == which || key.name == which).collect();
    if meant.is_empty() {
        return Err(Error::new(
            format!("there is no key `{which}`"),
            "`querymend key list` shows those that there are",
        ));
    }
    for key in &meant {
        append(&mut opened, &Revoked { revoked: key.id.clone(), at: now() }).map_err(|why| unwritten(file, &why))?;
    }
    Ok(meant)
}

/// Opened for one at a time.
fn locked(file: &Path, create: bool) -> Result<File, Error> {
    let mut options = OpenOptions::new();
    options.read(true).append(true).create(create);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let opened = options.open(file).map_err(|why| wrong(file, &why))?;
    opened.lock().map_err(|why| wrong(file, &why))?;
    Ok(opened)
}

fn append(file: &mut File, line: &impl Serialize) -> io::Result<()> {
    let mut text = serde_json::to_vec(line)?;
    text.push(b'\n');
    // A line that was cut off is ended, so that this one can be read.
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

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that cannot go on must fail")]
mod tests {
    use super::*;

    #[test]
    fn a01_keys_are_made_checked_and_revoked() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("keys");
        let key = make(&file, "ann", Some("analyst"), false).unwrap();
        assert!(looks_like_one(&key) && key.len() == 3 + ID + 1 + SECRET, "{key}");
        assert!(make(&file, "ann", None, false).is_err_and(|error| error.hint.contains("--another")));
        let second = make(&file, "ann", None, true).unwrap();
        let listing = read(&file).unwrap();
        assert_eq!(listing.keys.len(), 2);
        assert_eq!((listing.keys[0].id.as_str(), listing.keys[0].user().as_str()), (id(&key).unwrap(), "key:ann"));
        assert!(listing.keys[0].hash.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"));
        assert!(verify(&key, &listing.keys[0].hash) && !verify(&second, &listing.keys[0].hash));
        let text = std::fs::read_to_string(&file).unwrap();
        assert!(!text.contains(&key) && !text.contains(&key[3 + ID + 1..]));
        assert_eq!(revoke(&file, id(&key).unwrap()).unwrap().len(), 1);
        assert_eq!(read(&file).unwrap().keys.len(), 1);
        assert!(revoke(&file, id(&key).unwrap()).is_err());
        // A machine that stopped in the middle of a line spoils this line alone.
        std::fs::write(&file, format!("{text}{{\"id\":\"cut")).unwrap();
        make(&file, "bob", None, false).unwrap();
        let listing = read(&file).unwrap();
        assert_eq!((listing.keys.len(), listing.broken), (3, vec![3]));
    }

    #[test]
    fn a01_what_has_not_the_form_of_a_key_is_none() {
        let (id_of, secret) = ("0123456789abcdef", "0".repeat(SECRET));
        assert_eq!(id(&format!("qm_{id_of}_{secret}")), Some(id_of));
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
            assert_eq!(id(&wrong), None, "{wrong}");
        }
    }
}
