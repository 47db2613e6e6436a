//! Append-only audit log in JSON Lines.
//!
//! An entry holds the user, the question, the SQL with its database, and the number of rows
//! returned.
//!
//! A request is answered only after its entry has been synced to disk. A single thread writes;
//! entries that arrive during a sync are written as one batch (group commit), so concurrent
//! requests share one sync.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};

use querymend::{Problem, ProblemCode};
use serde::Serialize;
use tokio::sync::oneshot;

/// One line of the audit log.
#[derive(Debug, Clone, Serialize)]
pub struct AuditEntry<'l> {
    /// Time of the entry, in milliseconds since the Unix epoch.
    pub at_ms: u64,
    /// Id of the request.
    pub request_id: &'l str,
    /// Id of the user; empty if authentication is off.
    pub user: &'l str,
    /// Requested operation: `ask`, `run`, `correct`, …
    pub action: &'static str,
    /// Name of the database, or of the circuit breaker for `reset`; absent if there is none.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub database: &'l str,
    /// Text of the question; absent if there was none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub question: Option<&'l str>,
    /// Query that was executed or rejected; absent if there was none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sql: Option<&'l str>,
    /// Number of rows returned; absent if no query was executed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rows: Option<usize>,
    /// Outcome of the operation.
    pub outcome: &'l str,
    /// Id of the run's trace; absent for operations without a trace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace_id: Option<&'l str>,
}

/// Bytes to write, and the channel that reports when they are on disk.
type AuditJob = (Vec<u8>, oneshot::Sender<Result<(), String>>);

/// Handle to the audit log; entries are discarded if no file is open.
#[derive(Clone, Default)]
pub struct AuditLog {
    writer: Option<mpsc::Sender<AuditJob>>,
    lines_written: Arc<AtomicU64>,
}

impl AuditLog {
    /// Opens the file, creating it if necessary.
    ///
    /// A partial last line, left by a crash, is terminated so that later lines stay readable.
    pub fn open(path: &Path) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.append(true).create(true).read(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(path)?;
        if has_partial_line(&file)? {
            file.write_all(b"\n")?;
        }
        let (work, jobs) = mpsc::channel();
        std::thread::Builder::new().name("audit".into()).spawn(move || run_writer(&mut file, &jobs))?;
        Ok(Self { writer: Some(work), lines_written: Arc::default() })
    }

    /// Writes one entry and returns after it is on disk.
    ///
    /// On an error, the request must fail: an unaudited operation must not be answered.
    pub async fn write(&self, entry: &AuditEntry<'_>) -> Result<(), Problem> {
        self.write_all(std::slice::from_ref(entry)).await
    }

    /// Writes all entries of a request as one batch, so that the request waits for one sync only.
    pub async fn write_all(&self, lines: &[AuditEntry<'_>]) -> Result<(), Problem> {
        let Some(work) = &self.writer else { return Ok(()) };
        let failed =
            |why: String| Problem::new(ProblemCode::Internal, format!("the audit log cannot be written: {why}"));
        let mut text = Vec::new();
        for line in lines {
            serde_json::to_writer(&mut text, line).map_err(|error| failed(error.to_string()))?;
            text.push(b'\n');
        }
        let (done, written) = oneshot::channel();
        work.send((text, done)).map_err(|_| failed("the writer thread has stopped".into()))?;
        written.await.map_err(|_| failed("the writer thread has stopped".into()))?.map_err(failed)?;
        self.lines_written.fetch_add(lines.len() as u64, Ordering::Relaxed);
        Ok(())
    }

    /// Returns the number of lines written since the log was opened.
    pub fn lines_written(&self) -> u64 {
        self.lines_written.load(Ordering::Relaxed)
    }
}

fn has_partial_line(mut file: &File) -> io::Result<bool> {
    use std::io::{Read, Seek, SeekFrom};
    if file.metadata()?.len() == 0 {
        return Ok(false);
    }
    file.seek(SeekFrom::End(-1))?;
    let mut last = [0];
    file.read_exact(&mut last)?;
    Ok(last != *b"\n")
}

fn run_writer(file: &mut File, jobs: &mpsc::Receiver<AuditJob>) {
    let mut cut = false;
    while let Ok((mut text, done)) = jobs.recv() {
        let mut waiting = vec![done];
        while let Ok((more, done)) = jobs.try_recv() {
            text.extend_from_slice(&more);
            waiting.push(done);
            if text.len() > 1 << 20 {
                break;
            }
        }
        if cut {
            // The previous write failed halfway: start a new line.
            text.insert(0, b'\n');
        }
        let written = file.write_all(&text).and_then(|()| file.sync_data()).map_err(|error| error.to_string());
        cut = written.is_err();
        for done in waiting {
            done.send(written.clone()).ok();
        }
    }
}
