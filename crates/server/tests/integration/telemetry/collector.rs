//! A collector of others that prints what it is sent.

use std::collections::BTreeMap;
use std::fs::File;
use std::net::{TcpListener, TcpStream};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

use querymend_testing::hang_timeout;

use super::house::telemetry_script;

/// A collector that runs.
pub struct Collector {
    pub address: String,
    child: Child,
    folder: tempfile::TempDir,
}

impl Drop for Collector {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// A span as the collector printed it.
#[derive(Debug, Clone, Default)]
pub struct Printed {
    pub name: String,
    pub kind: String,
    pub trace_id: String,
    pub id: String,
    pub parent: String,
    pub status: String,
    pub start: u64,
    pub end: u64,
    pub attributes: BTreeMap<String, String>,
    pub marks: Vec<String>,
}

impl Printed {
    pub fn says(&self, name: &str) -> &str {
        self.attributes.get(name).map(String::as_str).unwrap_or_default()
    }
}

/// A port that nobody listens at. It is none of those that the system gives to whoever asks for any, as all other servers of these
/// tests do: one of them could get it before the collector does.
fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let first = (std::process::id() % 1_000) as u16 * 10;
    loop {
        let port = 20_000 + (first + NEXT.fetch_add(1, Ordering::Relaxed) % 1_000);
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

impl Collector {
    pub fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let log = File::create(folder.path().join("log")).unwrap();
        let (http, grpc) = (free_port(), free_port());
        let child = Command::new(telemetry_script())
            .args(["collector", &http.to_string(), &grpc.to_string()])
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap();
        let mut collector = Self { address: format!("http://127.0.0.1:{http}"), child, folder };
        let began = Instant::now();
        while TcpStream::connect(("127.0.0.1", http)).is_err() {
            let ended = collector.child.try_wait().unwrap();
            let hint = "scripts/telemetry.sh fetch says more; QUERYMEND_TEST_CLIENTS=none leaves these tests out";
            let in_time = began.elapsed() < hang_timeout();
            assert!(ended.is_none() && in_time, "no collector: {}\n{hint}", collector.printed());
            std::thread::sleep(Duration::from_millis(20));
        }
        collector
    }

    pub fn printed(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    /// Checks what was printed, once it holds figures and the spans of so many requests. It prints both at once, in any order and
    /// piece by piece, so that what fails is checked again whenever more has come.
    pub async fn check(&self, requests: usize, check: impl Fn(&str)) {
        let began = Instant::now();
        let mut printed = self.wait_for(requests).await;
        while let Err(failed) = catch_unwind(AssertUnwindSafe(|| check(&printed))) {
            let checked = Instant::now();
            printed = loop {
                let more = self.wait_for(requests).await;
                let is_unchanged = more == printed;
                if began.elapsed() > hang_timeout() || is_unchanged && checked.elapsed() > hang_timeout() / 4 {
                    resume_unwind(failed);
                }
                if !is_unchanged {
                    break more;
                }
                tokio::time::sleep(Duration::from_millis(100)).await;
            };
        }
    }

    /// What was printed, once it holds figures and the spans of so many requests and seems not to grow any more.
    async fn wait_for(&self, requests: usize) -> String {
        let began = Instant::now();
        let mut before = String::new();
        loop {
            let printed = self.printed();
            let roots = spans(&printed).iter().filter(|span| span.kind == "SPAN_KIND_SERVER").count();
            if printed.contains("querymend_requests_running") && roots >= requests && printed == before {
                return printed;
            }
            before.clone_from(&printed);
            assert!(began.elapsed() < hang_timeout(), "it never came: {printed}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

/// The spans in what was printed.
pub fn spans(printed: &str) -> Vec<Printed> {
    let mut spans: Vec<Printed> = Vec::new();
    let mut in_marks = false;
    for line in printed.lines() {
        let line = line.trim();
        if line.starts_with("Span #") {
            spans.push(Printed::default());
            in_marks = false;
        }
        if line.starts_with("ResourceSpans #") || line.starts_with("ResourceMetrics #") {
            // What follows is said of the server.
            in_marks = true;
        }
        in_marks |= line.starts_with("SpanEvent #");
        let Some(span) = spans.last_mut() else { continue };
        let Some((key, value)) = line.split_once(':') else { continue };
        let value = value.trim().to_owned();
        match key.trim() {
            "-> Name" if in_marks => span.marks.push(value),
            "Trace ID" => span.trace_id = value,
            "Parent ID" => span.parent = value,
            "ID" => span.id = value,
            "Name" => span.name = value,
            "Kind" => span.kind = value,
            "Status code" => span.status = value,
            "Start time" => span.start = value.parse().unwrap_or_default(),
            "End time" => span.end = value.parse().unwrap_or_default(),
            key if !in_marks => {
                if let Some(name) = key.strip_prefix("-> ") {
                    span.attributes.insert(name.to_owned(), value);
                }
            }
            _ => {}
        }
    }
    spans
}
