//! Stores traces of past runs as files with one line per event, so that any run can be inspected.

use std::borrow::Cow;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use querymend_sql::{Cell, Rows};
use serde_json::Value;

use crate::event::Event;

/// Directory of traces. Only the newest are kept.
pub struct TraceStore {
    folder: PathBuf,
    max_traces: usize,
}

impl TraceStore {
    /// Creates a store that keeps up to `keep` runs. The directory is created when the first run is
    /// saved.
    pub fn new(folder: impl Into<PathBuf>, keep: usize) -> Self {
        Self { folder: folder.into(), max_traces: keep }
    }

    /// Returns whether traces are kept at all.
    pub fn is_enabled(&self) -> bool {
        self.max_traces > 0
    }

    /// Saves a run durably (with fsync), and prunes old runs.
    pub fn save(&self, id: &str, events: &[Event]) -> io::Result<()> {
        self.write(id, events, true)?;
        self.prune_except(id)
    }

    /// Saves a run without fsync, and prunes old runs occasionally.
    pub fn save_without_sync(&self, id: &str, events: &[Event]) -> io::Result<()> {
        self.write(id, events, false)?;
        // Listing the directory each time would cost more than the run itself. The last digit of an
        // ID is effectively random.
        let should_prune = id.bytes().next_back().is_some_and(|last| last == b'0');
        if should_prune { self.prune_except(id) } else { Ok(()) }
    }

    /// Saves one run of a batch without fsync. Old runs are kept until [`TraceStore::prune`] is
    /// called.
    pub fn save_without_prune(&self, id: &str, events: &[Event]) -> io::Result<()> {
        self.write(id, events, false)
    }

    /// Serializes a run with one line per event. Streamed text is omitted, and long answers are
    /// truncated.
    pub fn to_jsonl(events: &[Event]) -> io::Result<String> {
        let mut text = String::new();
        for event in events.iter().filter(|e| !matches!(e, Event::Text { .. })) {
            text.push_str(&serde_json::to_string(&*truncate_event(event))?);
            text.push('\n');
        }
        Ok(text)
    }

    /// Writes a run atomically: to a temporary file that is then renamed.
    fn write(&self, id: &str, events: &[Event], sync: bool) -> io::Result<()> {
        if !self.is_enabled() || !is_id(id) {
            return Ok(());
        }
        fs::create_dir_all(&self.folder)?;
        let partial = self.folder.join(format!("{id}.part"));
        let write = || {
            let mut file = create_private_file(&partial)?;
            file.write_all(Self::to_jsonl(events)?.as_bytes())?;
            if sync {
                file.sync_all()?;
            }
            fs::rename(&partial, self.path(id))
        };
        let written = write();
        if written.is_err() {
            // On a full disk, a partial file only occupies space.
            fs::remove_file(&partial).ok();
        }
        written
    }

    /// Reads the events of a run by its ID or a prefix. Returns `None` if there is none, or the
    /// prefix is ambiguous.
    pub fn read(&self, id: &str) -> io::Result<Option<Vec<Value>>> {
        let mut fits: Vec<String> = self.ids()?.into_iter().filter(|known| known.starts_with(id)).collect();
        let (Some(id), true) = (fits.pop(), fits.is_empty() && !id.is_empty()) else { return Ok(None) };
        // Another process may have pruned the run between the two reads.
        self.read_exact(&id)
    }

    /// Reads the events of the run with exactly this ID. Returns `None` if there is none.
    pub fn read_exact(&self, id: &str) -> io::Result<Option<Vec<Value>>> {
        if !is_id(id) {
            return Ok(None);
        }
        match fs::read(self.path(id)) {
            Ok(text) => Ok(Some(parse_events(&text))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns the IDs of all runs, oldest first: IDs sort by time.
    pub fn ids(&self) -> io::Result<Vec<String>> {
        self.ids_with_suffix(".jsonl")
    }

    /// Returns the IDs in file names with this suffix, oldest first.
    fn ids_with_suffix(&self, ending: &str) -> io::Result<Vec<String>> {
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

    /// Removes all but the newest runs.
    pub fn prune(&self) -> io::Result<()> {
        self.prune_except("")
    }

    /// Removes all but the newest runs, but never `new`.
    ///
    /// IDs sort by wall clock, which may have been set back.
    fn prune_except(&self, new: &str) -> io::Result<()> {
        if !self.is_enabled() {
            return Ok(());
        }
        let ids = self.ids()?;
        let old = &ids[..ids.len().saturating_sub(self.max_traces)];
        for id in old.iter().filter(|id| *id != new) {
            fs::remove_file(self.path(id)).ok();
        }
        if !old.is_empty() {
            // Remove partial files of killed processes. Files in use were modified recently.
            for id in self.ids_with_suffix(".part")? {
                let path = self.folder.join(format!("{id}.part"));
                let touched = fs::metadata(&path).and_then(|file| file.modified());
                if touched.is_ok_and(|at| at.elapsed().is_ok_and(|age| age > PARTIAL_FILE_TTL)) {
                    fs::remove_file(path).ok();
                }
            }
        }
        Ok(())
    }
}

/// Parses the events of a file. Damaged lines are skipped.
fn parse_events(text: &[u8]) -> Vec<Value> {
    String::from_utf8_lossy(text).lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

/// Age at which a partial file is considered abandoned.
const PARTIAL_FILE_TTL: Duration = Duration::from_secs(3600);
/// Maximum number of rows of an answer in a trace.
const MAX_TRACE_ROWS: usize = 20;
/// Maximum length of a value in a trace, in bytes.
const MAX_TRACE_VALUE_BYTES: usize = 200;

/// Truncates the rows and long values of an answer. The omissions are listed in `reasons`.
///
/// A trace documents the run; it is not a copy of the database.
fn truncate_event(event: &Event) -> Cow<'_, Event> {
    let Event::Finished { answer } = event else { return Cow::Borrowed(event) };
    let Some(rows) = &answer.rows else { return Cow::Borrowed(event) };
    let mut cut = 0;
    let mut short = |text: &String| {
        if text.len() <= MAX_TRACE_VALUE_BYTES {
            return text.clone();
        }
        cut += 1;
        format!("{}…", &text[..text.floor_char_boundary(MAX_TRACE_VALUE_BYTES)])
    };
    let mut cell = |cell: &Cell| match cell {
        Cell::Text(text) => Cell::Text(short(text)),
        Cell::Binary(text) => Cell::Binary(short(text)),
        Cell::Null | Cell::Boolean(_) | Cell::Integer(_) | Cell::Number(_) | Cell::Decimal(_) => cell.clone(),
    };
    let kept = rows.rows.iter().take(MAX_TRACE_ROWS).map(|row| row.iter().map(&mut cell).collect()).collect();
    let left = rows.rows.len().saturating_sub(MAX_TRACE_ROWS);
    if left == 0 && cut == 0 {
        return Cow::Borrowed(event);
    }
    let mut answer = answer.clone();
    answer.rows = Some(Rows { columns: rows.columns.clone(), rows: kept, truncated: rows.truncated });
    answer.reasons.push(format!("this trace omits {left} rows and truncates {cut} values"));
    Cow::Owned(Event::Finished { answer })
}

/// Creates a file that only the owner can read, because traces contain questions.
fn create_private_file(path: &Path) -> io::Result<fs::File> {
    let mut options = fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// Returns whether the text has the format of [`crate::trace_id`], which rules out path traversal.
fn is_id(id: &str) -> bool {
    id.len() == 36 && id.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-')
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that cannot go on must fail")]
mod tests {
    use super::*;
    use crate::event::Stage;

    #[test]
    fn stores_finds_by_prefix_and_prunes_traces() {
        let folder = tempfile::tempdir().unwrap();
        let traces = TraceStore::new(folder.path().join("runs"), 2);
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
        // An abandoned partial file is removed, one in use is kept, and a clock that is set back
        // does not lose a run.
        let part = |n: u8, age: Duration| {
            let path = folder.path().join("runs").join(format!("00000000-0000-7000-8000-00000000000{n}.part"));
            let file = fs::File::create(path).unwrap();
            file.set_modified(std::time::SystemTime::now() - age).unwrap();
        };
        part(8, Duration::ZERO);
        part(9, PARTIAL_FILE_TTL * 2);
        traces.save(&ids[0], std::slice::from_ref(&event)).unwrap();
        assert!(traces.read_exact(&ids[0]).unwrap().is_some(), "the newest is kept, whatever the clock says");
        traces.prune().unwrap();
        assert_eq!(traces.ids().unwrap(), ids[1..]);
        assert_eq!(traces.ids_with_suffix(".part").unwrap().len(), 1, "what is being written stays");
        let many: Vec<String> = (3..7).map(|n| format!("0000000{n}-0000-7000-8000-000000000000")).collect();
        for id in &many {
            traces.save_without_prune(id, std::slice::from_ref(&event)).unwrap();
        }
        assert_eq!(traces.ids().unwrap().len(), 6, "they are pruned together");
        traces.prune().unwrap();
        assert_eq!(traces.ids().unwrap(), many[2..]);
        traces.save("../evil", &[event]).unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
