//! Conversations in memory and past runs as files: for one process.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use querymend::{Event, Problem, ProblemCode, Traces};
use ring::digest::{SHA256, digest};
use serde_json::Value;

use super::{Kept, Shelf, Talk};
use crate::service::Past;

/// Conversations of all users together.
const MOST: usize = 20_000;

/// A conversation, and when it was last spoken in: the clock on the wall may be set to another time, which ends no conversation.
struct Held {
    talk: Talk,
    at: Instant,
}

/// Keeps everything in this process, but for past runs, which are files.
pub struct Here {
    talks: Mutex<HashMap<String, Held>>,
    /// Conversations of one user.
    most: usize,
    age: Duration,
    runs: Option<(PathBuf, usize)>,
}

impl Here {
    /// Keeps so many conversations of each user for so long, and so many runs in a folder where one is given.
    pub fn new(most: usize, age: Duration, runs: Option<(PathBuf, usize)>) -> Self {
        Self { talks: Mutex::default(), most, age, runs }
    }

    fn talks(&self) -> MutexGuard<'_, HashMap<String, Held>> {
        self.talks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_old(&self, held: &Held) -> bool {
        held.at.elapsed() > self.age
    }

    /// The runs of each user lie in a folder of their own; whatever stands in a name, it cannot lead out of it.
    fn runs(&self, user: &str) -> Option<Traces> {
        let (folder, keep) = self.runs.as_ref()?;
        let folder = if user.is_empty() { folder.clone() } else { folder.join(folder_of(user)) };
        Some(Traces::new(folder, *keep))
    }

    /// The runs of all users.
    fn all_runs(&self) -> Vec<(String, Traces)> {
        let Some((folder, keep)) = &self.runs else { return Vec::new() };
        let mut all = vec![(String::new(), Traces::new(folder.clone(), *keep))];
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let user = entry.file_name().to_str().and_then(user_of);
            all.extend(user.map(|user| (user, Traces::new(entry.path(), *keep))));
        }
        all
    }
}

/// The user of a folder: whose name was too long to be the folder's is not known by it.
fn user_of(folder: &str) -> Option<String> {
    let Some(digits) = folder.strip_prefix("user-") else {
        return folder.strip_prefix("users-").map(|sum| format!("({})", &sum[..sum.len().min(8)]));
    };
    let bytes: Option<Vec<u8>> =
        (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(digits.get(at..at + 2)?, 16).ok()).collect();
    String::from_utf8(bytes?).ok()
}

/// A name of a folder for each user and no other. A long one would not fit into the name of a file; its sum does.
fn folder_of(user: &str) -> String {
    let hexadecimal = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    match user.len() {
        ..=64 => format!("user-{}", hexadecimal(user.as_bytes())),
        _ => format!("users-{}", hexadecimal(digest(&SHA256, user.as_bytes()).as_ref())),
    }
}

/// The newest runs in short, of all these users.
fn newest(folders: &[(String, Traces)], most: usize) -> std::io::Result<Vec<Past>> {
    let mut runs: Vec<(String, &String, &Traces)> = Vec::new();
    for (user, traces) in folders {
        // Ids sort by time: of each user no more than so many can be among the newest.
        runs.extend(traces.ids()?.into_iter().rev().take(most).map(|id| (id, user, traces)));
    }
    runs.sort_by(|one, other| other.0.cmp(&one.0));
    // One that was let go of meanwhile is not listed.
    let past = runs.into_iter().take(most).filter_map(|(id, user, traces)| {
        let events = traces.exactly(&id).ok().flatten()?;
        Past::of(&id, user, &events)
    });
    Ok(past.collect())
}

fn unwritable(error: &std::io::Error) -> Problem {
    Problem::new(ProblemCode::Internal, format!("past runs cannot be kept or read: {error}"))
}

impl Shelf for Here {
    fn name(&self) -> &str {
        "this process"
    }

    fn talk<'a>(&'a self, user: &'a str, id: &'a str) -> Kept<'a, Option<Talk>> {
        Box::pin(async move {
            let talks = self.talks();
            let held = talks.get(id).filter(|held| held.talk.user == user && !self.is_old(held));
            Ok(held.map(|held| held.talk.clone()))
        })
    }

    fn keep_talk<'a>(&'a self, talk: &'a Talk) -> Kept<'a, bool> {
        Box::pin(async move {
            let mut talks = self.talks();
            let id = &talk.conversation.id;
            match talks.get(id).map(|held| &held.talk) {
                Some(known) if known.user != talk.user || known.version + 1 != talk.version => return Ok(false),
                None if talk.version != 1 => return Ok(false),
                _ => {}
            }
            talks.insert(id.clone(), Held { talk: talk.clone(), at: Instant::now() });
            let mut own: Vec<(Instant, String)> =
                talks.iter().filter(|(_, h)| h.talk.user == talk.user).map(|(id, h)| (h.at, id.clone())).collect();
            if own.len() > self.most {
                own.sort();
                for (_, old) in own.iter().filter(|(_, old)| old != id).take(own.len() - self.most) {
                    talks.remove(old);
                }
            }
            if talks.len() > MOST {
                talks.retain(|_, held| !self.is_old(held));
                let oldest = talks.iter().filter(|(known, _)| *known != id).min_by_key(|(_, held)| held.at);
                let oldest = oldest.map(|(id, _)| id.clone()).filter(|_| talks.len() > MOST);
                oldest.and_then(|id| talks.remove(&id));
            }
            Ok(true)
        })
    }

    fn talks<'a>(&'a self, user: &'a str, most: usize) -> Kept<'a, Vec<Talk>> {
        Box::pin(async move {
            let talks = self.talks();
            let mut own: Vec<&Held> =
                talks.values().filter(|held| held.talk.user == user && !self.is_old(held)).collect();
            own.sort_by_key(|held| std::cmp::Reverse(held.at));
            Ok(own.into_iter().take(most).map(|held| held.talk.clone()).collect())
        })
    }

    fn forget_talk<'a>(&'a self, user: &'a str, id: &'a str) -> Kept<'a, bool> {
        Box::pin(async move {
            let mut talks = self.talks();
            let own = talks.get(id).is_some_and(|held| held.talk.user == user);
            Ok(own && talks.remove(id).is_some())
        })
    }

    fn keep_run<'a>(&'a self, user: &'a str, id: &'a str, events: &'a [Event]) -> Kept<'a, ()> {
        Box::pin(async move {
            let Some(traces) = self.runs(user).filter(Traces::keeps) else { return Ok(()) };
            traces.save_soon(id, events).map_err(|error| unwritable(&error))
        })
    }

    fn run<'a>(&'a self, user: &'a str, id: &'a str) -> Kept<'a, Option<Vec<Value>>> {
        Box::pin(async move {
            // The beginning of an id is enough on the command line; over a network it would help to guess.
            let Some(traces) = self.runs(user).filter(|_| id.len() == 36) else { return Ok(None) };
            traces.read(id).map_err(|error| unwritable(&error))
        })
    }

    fn past<'a>(&'a self, user: Option<&'a str>, most: usize) -> Kept<'a, Vec<Past>> {
        let folders = match user {
            Some(user) => self.runs(user).map(|traces| (user.to_owned(), traces)).into_iter().collect(),
            None => self.all_runs(),
        };
        Box::pin(async move {
            // Many files are read: others are not kept waiting by it.
            let read = tokio::task::spawn_blocking(move || newest(&folders, most)).await;
            read.map_err(|error| Problem::new(ProblemCode::Internal, error.to_string()))?
                .map_err(|error| unwritable(&error))
        })
    }
}

#[cfg(test)]
mod tests {
    use querymend::Conversation;

    use super::*;

    #[tokio::test]
    async fn f04_a_clock_that_is_set_to_another_time_ends_no_conversation() {
        let shelf = Here::new(2, Duration::from_secs(3600), None);
        // Kept when the clock on the wall stood hours before now, and hours after.
        let now = crate::service::now();
        for at in [now - 100 * 3600, now + 100 * 3600] {
            let conversation = Conversation::default();
            let id = conversation.id.clone();
            let talk = Talk { user: "ann".into(), database: "shop".into(), at, version: 1, conversation };
            assert!(shelf.keep_talk(&talk).await.unwrap());
            assert!(shelf.talk("ann", &id).await.unwrap().is_some());
        }
        assert_eq!(Shelf::talks(&shelf, "ann", 9).await.unwrap().len(), 2);
        // What was kept last is listed first, and stays longest.
        let late = Talk {
            user: "ann".into(),
            database: "shop".into(),
            at: 1,
            version: 1,
            conversation: Conversation::default(),
        };
        assert!(shelf.keep_talk(&late).await.unwrap());
        let kept: Vec<u64> = Shelf::talks(&shelf, "ann", 9).await.unwrap().iter().map(|talk| talk.at).collect();
        assert_eq!(kept, [1, now + 100 * 3600]);
        let short = Here::new(2, Duration::ZERO, None);
        short.keep_talk(&late).await.unwrap();
        assert!(short.talk("ann", &late.conversation.id).await.unwrap().is_none());
    }

    #[test]
    fn a01_every_user_has_a_folder_of_their_own() {
        let long = "x".repeat(127);
        let names = ["ann", "bob", &format!("{long}a"), &format!("{long}b"), "../ann", "user-616e6e", "key:ann"];
        let folders: std::collections::HashSet<String> = names.iter().map(|name| folder_of(name)).collect();
        assert_eq!(folders.len(), names.len());
        assert!(folders.iter().all(|name| name.len() < 200 && !name.contains(['/', '.'])));
        assert_eq!(user_of(&folder_of("../ann")).as_deref(), Some("../ann"));
        assert_eq!(user_of(&folder_of(&long)).map(|name| name.len()), Some(10));
        assert_eq!((user_of("user-zz"), user_of("user-6"), user_of("other")), (None, None, None));
    }
}
