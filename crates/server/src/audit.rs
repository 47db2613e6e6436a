//! Who asked what, which SQL ran where and how many rows came back: a file that only grows, one line of JSON each.
//!
//! A request is answered only when its line is on disk. One thread writes; lines that come while it waits for the disk are written
//! together, so that many requests at once wait for one write.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};

use querymend::{Problem, ProblemCode};
use serde::Serialize;
use tokio::sync::oneshot;

/// One line.
#[derive(Debug, Clone, Serialize)]
pub struct Line<'l> {
    /// When, in milliseconds since 1970.
    pub at_ms: u64,
    /// The request.
    pub request_id: &'l str,
    /// Who.
    pub user: &'l str,
    /// What was wanted: `ask`, `run`, `correct`, …
    pub action: &'static str,
    /// Of which database.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub database: &'l str,
    /// The question.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub question: Option<&'l str>,
    /// The query that ran, or that was refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sql: Option<&'l str>,
    /// How many rows were given back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rows: Option<usize>,
    /// How it ended.
    pub outcome: &'l str,
    /// The run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace_id: Option<&'l str>,
}

/// A line to write, and whoever waits until it is on disk.
type Job = (Vec<u8>, oneshot::Sender<Result<(), String>>);

/// The file, or none.
#[derive(Clone, Default)]
pub struct Audit {
    work: Option<mpsc::Sender<Job>>,
    lines: Arc<AtomicU64>,
}

impl Audit {
    /// Opens a file, which is made if it is not there. A line that was cut off when the machine stopped is ended, so that those
    /// that follow can be read.
    pub fn open(path: &Path) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.append(true).create(true).read(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(path)?;
        if is_cut(&file)? {
            file.write_all(b"\n")?;
        }
        let (work, jobs) = mpsc::channel();
        std::thread::Builder::new().name("audit".into()).spawn(move || write_all(&mut file, &jobs))?;
        Ok(Self { work: Some(work), lines: Arc::default() })
    }

    /// Writes a line, for good once this returns. Where it cannot be written, the request must not be answered as if it were.
    pub async fn write(&self, line: &Line<'_>) -> Result<(), Problem> {
        self.write_all(std::slice::from_ref(line)).await
    }

    /// Writes the lines of a request together, so that it waits for the disk once.
    pub async fn write_all(&self, lines: &[Line<'_>]) -> Result<(), Problem> {
        let Some(work) = &self.work else { return Ok(()) };
        let failed =
            |why: String| Problem::new(ProblemCode::Internal, format!("the audit log cannot be written: {why}"));
        let mut text = Vec::new();
        for line in lines {
            serde_json::to_writer(&mut text, line).map_err(|error| failed(error.to_string()))?;
            text.push(b'\n');
        }
        let (done, written) = oneshot::channel();
        work.send((text, done)).map_err(|_| failed("its thread is gone".into()))?;
        written.await.map_err(|_| failed("its thread is gone".into()))?.map_err(failed)?;
        self.lines.fetch_add(lines.len() as u64, Ordering::Relaxed);
        Ok(())
    }

    /// How many lines were written since it was opened.
    pub fn lines(&self) -> u64 {
        self.lines.load(Ordering::Relaxed)
    }
}

fn is_cut(mut file: &File) -> io::Result<bool> {
    use std::io::{Read, Seek, SeekFrom};
    if file.metadata()?.len() == 0 {
        return Ok(false);
    }
    file.seek(SeekFrom::End(-1))?;
    let mut last = [0];
    file.read_exact(&mut last)?;
    Ok(last != *b"\n")
}

fn write_all(file: &mut File, jobs: &mpsc::Receiver<Job>) {
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
            // The last write broke off half way: what follows must not stand on the same line.
            text.insert(0, b'\n');
        }
        let written = file.write_all(&text).and_then(|()| file.sync_data()).map_err(|error| error.to_string());
        cut = written.is_err();
        for done in waiting {
            done.send(written.clone()).ok();
        }
    }
}
