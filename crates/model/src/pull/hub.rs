//! Downloads from the Hugging Face hub: one file over HTTP, resumed with range requests.

use std::fs::File;
use std::io::{BufWriter, Seek, SeekFrom, Write};
use std::time::Duration;

use querymend_net::root_cause;
use reqwest::header::{CONTENT_RANGE, RANGE};
use reqwest::{Response, StatusCode, Url};
use tokio::time::timeout;

use super::{PullFailure, PullJob, PullProgress};
use crate::http::download_client;
use crate::registry::Hub;

/// URL of the hub, unless `HF_ENDPOINT` specifies a mirror.
const DEFAULT_ENDPOINT: &str = "https://huggingface.co";

/// Timeouts, short enough that an unreachable hub is detected quickly.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(4);
const FIRST_BYTE_TIMEOUT: Duration = Duration::from_secs(10);
const IDLE_TIMEOUT: Duration = Duration::from_secs(30);

/// Maximum number of requests after broken connections.
const MAX_ATTEMPTS: usize = 5;

/// Downloads the missing bytes; returns the number of bytes that were already present.
pub(super) async fn fetch(
    work: &PullJob,
    hub: &Hub,
    watch: &mut (dyn FnMut(PullProgress<'_>) + Send),
) -> Result<u64, PullFailure> {
    let endpoint = std::env::var("HF_ENDPOINT").ok().filter(|endpoint| !endpoint.is_empty());
    let endpoint = endpoint.as_deref().unwrap_or(DEFAULT_ENDPOINT).trim_end_matches('/').to_owned();
    let url = Url::parse(&format!("{endpoint}/{}/resolve/{}/{}", hub.hub, hub.revision, hub.file))
        .map_err(|why| PullFailure::Source(format!("its address cannot be read: {why}")))?;
    let client = download_client(&url, CONNECT_TIMEOUT).map_err(|error| PullFailure::Source(error.to_string()))?;
    let size = work.entry.size;
    if work.bytes_downloaded() > size {
        work.reset()?;
    }
    let mut resumed_bytes = work.bytes_downloaded();
    let mut broken = "the connection broke".to_owned();
    for _ in 0..MAX_ATTEMPTS {
        let have = work.bytes_downloaded();
        if have == size {
            return Ok(resumed_bytes);
        }
        watch(PullProgress::Bytes(have));
        let mut request = client.get(url.clone());
        if have > 0 {
            request = request.header(RANGE, format!("bytes={have}-"));
        }
        let answer = match timeout(FIRST_BYTE_TIMEOUT, request.send()).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(error)) => {
                return Err(PullFailure::Source(format!("it cannot be reached: {}", download_error_cause(error))));
            }
            Err(_) => return Err(PullFailure::from_source("it does not answer")),
        };
        let at = match response_offset(&answer, have, size) {
            Ok(at) => at,
            // The remote file is smaller than the partial download, so that is from another file.
            Err(_) if answer.status() == StatusCode::RANGE_NOT_SATISFIABLE && have > 0 => {
                work.reset()?;
                continue;
            }
            Err(why) => return Err(PullFailure::Source(why)),
        };
        if at == 0 {
            resumed_bytes = 0;
            work.reset()?;
        }
        match receive(work, answer, at, watch).await? {
            None => return Ok(resumed_bytes),
            Some(why) => broken = why,
        }
    }
    Err(PullFailure::Source(format!("{broken}, {MAX_ATTEMPTS} times")))
}

/// Returns the file offset of a response body, and checks the size of the file.
fn response_offset(answer: &Response, have: u64, size: u64) -> Result<u64, String> {
    let status = answer.status();
    let (at, of) = match status {
        StatusCode::OK => (0, answer.content_length()),
        StatusCode::PARTIAL_CONTENT => {
            let range = answer.headers().get(CONTENT_RANGE).and_then(|value| value.to_str().ok()).unwrap_or_default();
            let numbers = range.strip_prefix("bytes ").and_then(|range| range.split_once('/'));
            let (from, of) = numbers.ok_or("it returned a partial response without a valid Content-Range")?;
            let from = from.split('-').next().and_then(|from| from.parse().ok());
            if from != Some(have) {
                return Err("it returned another range than was requested".to_owned());
            }
            (have, of.parse().ok())
        }
        status => return Err(format!("it answered with {status}")),
    };
    match of {
        Some(of) if of != size => Err(format!("its file has {of} bytes instead of {size}")),
        _ => Ok(at),
    }
}

/// Writes the response body to disk; returns `None` when it is complete, else the reason for ending
/// early.
async fn receive(
    work: &PullJob,
    mut answer: Response,
    at: u64,
    watch: &mut (dyn FnMut(PullProgress<'_>) + Send),
) -> Result<Option<String>, PullFailure> {
    let file = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(work.partial_path())
        .map_err(PullFailure::Disk)?;
    let mut file = BufWriter::with_capacity(1 << 20, file);
    file.seek(SeekFrom::Start(at)).map_err(PullFailure::Disk)?;
    let (mut have, size) = (at, work.entry.size);
    let broken = loop {
        match timeout(IDLE_TIMEOUT, answer.chunk()).await {
            Ok(Ok(Some(bytes))) => {
                have += bytes.len() as u64;
                if have > size {
                    drop(file);
                    work.reset()?;
                    return Err(PullFailure::from_source("the downloaded file is not the model: it is too large"));
                }
                file.write_all(&bytes).map_err(PullFailure::Disk)?;
                watch(PullProgress::Bytes(have));
            }
            Ok(Ok(None)) if have == size => break None,
            Ok(Ok(None)) => break Some(format!("it ended after {have} of {size} bytes")),
            Ok(Err(error)) => break Some(format!("the connection broke: {}", download_error_cause(error))),
            Err(_) => break Some("no more data arrived".to_owned()),
        }
    };
    file.flush().map_err(PullFailure::Disk)?;
    Ok(broken)
}

/// Returns the root cause of a failed download, without the URL.
fn download_error_cause(error: reqwest::Error) -> String {
    if error.is_timeout() {
        return "it took too long".to_owned();
    }
    root_cause(&error.without_url()).to_string()
}
