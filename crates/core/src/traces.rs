//! Past runs, as files: one line for each event, so that any run can be looked at again.

use std::borrow::Cow;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use querymend_sql::{Cell, Rows};
use serde_json::Value;

use crate::event::Event;

/// A folder of past runs. Only the newest are kept.
pub struct Traces {
    folder: PathBuf,
    keep: usize,
}

impl Traces {
    /// Keeps so many runs in a folder, which is made when the first is kept.
    pub fn new(folder: impl Into<PathBuf>, keep: usize) -> Self {
        Self { folder: folder.into(), keep }
    }

    /// Whether any run is kept.
    pub fn keeps(&self) -> bool {
        self.keep > 0
    }

    /// Keeps a run, for good once this returns, and lets go of what is too old.
    pub fn save(&self, id: &str, events: &[Event]) -> io::Result<()> {
        self.write(id, events, true)?;
        self.prune_but(id)
    }

    /// Keeps a run without waiting for the disk, and now and then lets go of what is too old.
    pub fn save_soon(&self, id: &str, events: &[Event]) -> io::Result<()> {
        self.write(id, events, false)?;
        // To list the folder each time would cost more than the run itself. The last digits of an id are as good as chance.
        let now_and_then = id.bytes().next_back().is_some_and(|last| last == b'0');
        if now_and_then { self.prune_but(id) } else { Ok(()) }
    }

    /// Keeps one run of many: the disk is not waited for, and older runs stay until [`Traces::prune`] is called.
    pub fn add(&self, id: &str, events: &[Event]) -> io::Result<()> {
        self.write(id, events, false)
    }

    /// A run as it is kept: a line for each event, without the pieces of text that make up a draft, and with long answers cut.
    pub fn lines(events: &[Event]) -> io::Result<String> {
        let mut text = String::new();
        for event in events.iter().filter(|e| !matches!(e, Event::Text { .. })) {
            text.push_str(&serde_json::to_string(&*shortened(event))?);
            text.push('\n');
        }
        Ok(text)
    }

    /// It is written beside first and then renamed, so that a run is either there or not.
    fn write(&self, id: &str, events: &[Event], sync: bool) -> io::Result<()> {
        if !self.keeps() || !is_id(id) {
            return Ok(());
        }
        fs::create_dir_all(&self.folder)?;
        let unfinished = self.folder.join(format!("{id}.part"));
        let write = || {
            let mut file = private(&unfinished)?;
            file.write_all(Self::lines(events)?.as_bytes())?;
            if sync {
                file.sync_all()?;
            }
            fs::rename(&unfinished, self.path(id))
        };
        let written = write();
        if written.is_err() {
            // On a full disk what is half written only takes room.
            fs::remove_file(&unfinished).ok();
        }
        written
    }

    /// The events of a run, by its id or the beginning of it. Nothing if there is none, or several begin like this.
    pub fn read(&self, id: &str) -> io::Result<Option<Vec<Value>>> {
        let mut fits: Vec<String> = self.ids()?.into_iter().filter(|known| known.starts_with(id)).collect();
        let (Some(id), true) = (fits.pop(), fits.is_empty() && !id.is_empty()) else { return Ok(None) };
        // Somebody else may let go of it between the two looks.
        self.exactly(&id)
    }

    /// The events of the run of this very id; nothing if there is none.
    pub fn exactly(&self, id: &str) -> io::Result<Option<Vec<Value>>> {
        if !is_id(id) {
            return Ok(None);
        }
        match fs::read(self.path(id)) {
            Ok(text) => Ok(Some(parsed(&text))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The ids of all runs that are kept, oldest first: they sort by time.
    pub fn ids(&self) -> io::Result<Vec<String>> {
        self.named(".jsonl")
    }

    /// The ids in the names of files that end like this, oldest first.
    fn named(&self, ending: &str) -> io::Result<Vec<String>> {
        let files = match fs::read_dir(&self.folder) {
            Ok(files) => files,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let name =
            |file: io::Result<fs::DirEntry>| file.ok()?.file_name().to_str()?.strip_suffix(ending).map(String::from);
        let mut ids: Vec<String> = files.filter_map(name).filter(|id| is_id(id)).collect();
        ids.sort();
        Ok(ids)
    }

    fn path(&self, id: &str) -> PathBuf {
        self.folder.join(format!("{id}.jsonl"))
    }

    /// Lets go of all but the newest runs.
    pub fn prune(&self) -> io::Result<()> {
        self.prune_but("")
    }

    /// The same, but never of the run that was just kept: ids sort by the clock on the wall, which may have been set back.
    fn prune_but(&self, new: &str) -> io::Result<()> {
        if !self.keeps() {
            return Ok(());
        }
        let ids = self.ids()?;
        let old = &ids[..ids.len().saturating_sub(self.keep)];
        for id in old.iter().filter(|id| *id != new) {
            fs::remove_file(self.path(id)).ok();
        }
        if !old.is_empty() {
            // What a program that was killed has left half written. Whoever is still writing has touched it lately.
            for id in self.named(".part")? {
                let path = self.folder.join(format!("{id}.part"));
                let touched = fs::metadata(&path).and_then(|file| file.modified());
                if touched.is_ok_and(|at| at.elapsed().is_ok_and(|age| age > LEFT)) {
                    fs::remove_file(path).ok();
                }
            }
        }
        Ok(())
    }
}

/// The events of a file. One that somebody damaged is told as far as it can be read.
fn parsed(text: &[u8]) -> Vec<Value> {
    String::from_utf8_lossy(text).lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

/// What is half written and was not touched for so long is nobody's any more.
const LEFT: Duration = Duration::from_secs(3600);
/// Rows of an answer that a trace keeps.
const KEPT_ROWS: usize = 20;
/// Bytes of a value that a trace keeps.
const KEPT_BYTES: usize = 200;

/// An event as it is kept: of an answer only the first rows, and of long values only the beginning. A trace says what
/// happened; it is no copy of the database. What was left out is said in `reasons`.
fn shortened(event: &Event) -> Cow<'_, Event> {
    let Event::Finished { answer } = event else { return Cow::Borrowed(event) };
    let Some(rows) = &answer.rows else { return Cow::Borrowed(event) };
    let mut cut = 0;
    let mut short = |text: &String| {
        if text.len() <= KEPT_BYTES {
            return text.clone();
        }
        cut += 1;
        format!("{}…", &text[..text.floor_char_boundary(KEPT_BYTES)])
    };
    let mut cell = |cell: &Cell| match cell {
        Cell::Text(text) => Cell::Text(short(text)),
        Cell::Binary(text) => Cell::Binary(short(text)),
        Cell::Null | Cell::Boolean(_) | Cell::Integer(_) | Cell::Number(_) | Cell::Decimal(_) => cell.clone(),
    };
    let kept = rows.rows.iter().take(KEPT_ROWS).map(|row| row.iter().map(&mut cell).collect()).collect();
    let left = rows.rows.len().saturating_sub(KEPT_ROWS);
    if left == 0 && cut == 0 {
        return Cow::Borrowed(event);
    }
    let mut answer = answer.clone();
    answer.rows = Some(Rows { columns: rows.columns.clone(), rows: kept, truncated: rows.truncated });
    answer.reasons.push(format!("this trace leaves out {left} rows and cuts {cut} values short"));
    Cow::Owned(Event::Finished { answer })
}

/// Only the owner may read what was asked.
fn private(path: &Path) -> io::Result<fs::File> {
    let mut options = fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// The form that [`crate::trace_id`] gives: nothing that could lead out of the folder.
fn is_id(id: &str) -> bool {
    id.len() == 36 && id.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-')
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that cannot go on must fail")]
mod tests {
    use super::*;
    use crate::event::Stage;

    #[test]
    fn q14_runs_are_kept_found_by_their_beginning_and_pruned() {
        let folder = tempfile::tempdir().unwrap();
        let traces = Traces::new(folder.path().join("runs"), 2);
        assert_eq!(traces.ids().unwrap(), Vec::<String>::new());
        let event = Event::Stage { stage: Stage::Generation, attempt: 1 };
        let ids: Vec<String> = (0..3).map(|n| format!("0000000{n}-0000-7000-8000-000000000000")).collect();
        for id in &ids {
            traces.save(id, &[event.clone(), Event::Text { piece: "x".into() }]).unwrap();
        }
        assert_eq!(traces.ids().unwrap(), ids[1..]);
        let events = traces.read("00000002").unwrap().unwrap();
        assert_eq!(events.len(), 1);
        assert_eq!(events[0]["stage"], "generation");
        for unknown in ["00000000", "0000000", "", "../../etc/passwd"] {
            assert!(traces.read(unknown).unwrap().is_none(), "{unknown}");
        }
        // Half of a run that somebody was killed over goes, one that somebody is writing stays, and a clock that is set back costs no run.
        let part = |n: u8, age: Duration| {
            let path = folder.path().join("runs").join(format!("00000000-0000-7000-8000-00000000000{n}.part"));
            let file = fs::File::create(path).unwrap();
            file.set_modified(std::time::SystemTime::now() - age).unwrap();
        };
        part(8, Duration::ZERO);
        part(9, LEFT * 2);
        traces.save(&ids[0], std::slice::from_ref(&event)).unwrap();
        assert!(traces.exactly(&ids[0]).unwrap().is_some(), "the newest is kept, whatever the clock says");
        traces.prune().unwrap();
        assert_eq!(traces.ids().unwrap(), ids[1..]);
        assert_eq!(traces.named(".part").unwrap().len(), 1, "what is being written stays");
        let many: Vec<String> = (3..7).map(|n| format!("0000000{n}-0000-7000-8000-000000000000")).collect();
        for id in &many {
            traces.add(id, std::slice::from_ref(&event)).unwrap();
        }
        assert_eq!(traces.ids().unwrap().len(), 6, "they are pruned together");
        traces.prune().unwrap();
        assert_eq!(traces.ids().unwrap(), many[2..]);
        traces.save("../evil", &[event]).unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
