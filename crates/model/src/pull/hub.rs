//! Models on the Hugging Face hub: one file over HTTP, continued where it was broken off.

use std::fs::File;
use std::io::{BufWriter, Seek, SeekFrom, Write};
use std::time::Duration;

use reqwest::header::{CONTENT_RANGE, RANGE};
use reqwest::{Response, StatusCode, Url};
use tokio::time::timeout;

use super::{Progress, Trouble, Work};
use crate::catalogue::Hub;
use crate::http::download_client;

/// Where the hub is, unless HF_ENDPOINT names a mirror of it.
const HUB: &str = "https://huggingface.co";

/// Where the hub cannot be reached this should be noticed before anybody wonders.
const CONNECT: Duration = Duration::from_secs(4);
const FIRST_BYTE: Duration = Duration::from_secs(10);
const SILENCE: Duration = Duration::from_secs(30);

/// How often a connection that broke is taken up again.
const TRIES: usize = 5;

/// Gets what is missing. Says how many bytes were there before.
pub(super) async fn fetch(
    work: &Work,
    hub: &Hub,
    watch: &mut (dyn FnMut(Progress<'_>) + Send),
) -> Result<u64, Trouble> {
    let endpoint = std::env::var("HF_ENDPOINT").ok().filter(|endpoint| !endpoint.is_empty());
    let endpoint = endpoint.as_deref().unwrap_or(HUB).trim_end_matches('/').to_owned();
    let url = Url::parse(&format!("{endpoint}/{}/resolve/{}/{}", hub.hub, hub.revision, hub.file))
        .map_err(|why| Trouble::Source(format!("its address cannot be read: {why}")))?;
    let client = download_client(&url, CONNECT).map_err(|error| Trouble::Source(error.to_string()))?;
    let size = work.entry.size;
    if work.have() > size {
        work.begin_anew()?;
    }
    let mut taken_over = work.have();
    let mut broken = "the connection broke".to_owned();
    for _ in 0..TRIES {
        let have = work.have();
        if have == size {
            return Ok(taken_over);
        }
        watch(Progress::Bytes(have));
        let mut request = client.get(url.clone());
        if have > 0 {
            request = request.header(RANGE, format!("bytes={have}-"));
        }
        let answer = match timeout(FIRST_BYTE, request.send()).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(error)) => return Err(Trouble::Source(format!("it cannot be reached: {}", cause(error)))),
            Err(_) => return Err(Trouble::source("it does not answer")),
        };
        let at = match begins_at(&answer, have, size) {
            Ok(at) => at,
            // It has less than we have, so that what we have is not of this file.
            Err(_) if answer.status() == StatusCode::RANGE_NOT_SATISFIABLE && have > 0 => {
                work.begin_anew()?;
                continue;
            }
            Err(why) => return Err(Trouble::Source(why)),
        };
        if at == 0 {
            taken_over = 0;
            work.begin_anew()?;
        }
        match receive(work, answer, at, watch).await? {
            None => return Ok(taken_over),
            Some(why) => broken = why,
        }
    }
    Err(Trouble::Source(format!("{broken}, {TRIES} times")))
}

/// Where the bytes of an answer belong, if they are of a file of this size.
fn begins_at(answer: &Response, have: u64, size: u64) -> Result<u64, String> {
    let status = answer.status();
    let (at, of) = match status {
        StatusCode::OK => (0, answer.content_length()),
        StatusCode::PARTIAL_CONTENT => {
            let range = answer.headers().get(CONTENT_RANGE).and_then(|value| value.to_str().ok()).unwrap_or_default();
            let numbers = range.strip_prefix("bytes ").and_then(|range| range.split_once('/'));
            let (from, of) = numbers.ok_or("it answered with a part that is not described")?;
            let from = from.split('-').next().and_then(|from| from.parse().ok());
            if from != Some(have) {
                return Err("it answered with another part than was asked for".to_owned());
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

/// Writes down what comes. Nothing comes back when all has come, else why it ended before.
async fn receive(
    work: &Work,
    mut answer: Response,
    at: u64,
    watch: &mut (dyn FnMut(Progress<'_>) + Send),
) -> Result<Option<String>, Trouble> {
    let file = File::options().create(true).truncate(false).write(true).open(work.partial()).map_err(Trouble::Disk)?;
    let mut file = BufWriter::with_capacity(1 << 20, file);
    file.seek(SeekFrom::Start(at)).map_err(Trouble::Disk)?;
    let (mut have, size) = (at, work.entry.size);
    let broken = loop {
        match timeout(SILENCE, answer.chunk()).await {
            Ok(Ok(Some(bytes))) => {
                have += bytes.len() as u64;
                if have > size {
                    drop(file);
                    work.begin_anew()?;
                    return Err(Trouble::source("what it gave is not the model: it is too large"));
                }
                file.write_all(&bytes).map_err(Trouble::Disk)?;
                watch(Progress::Bytes(have));
            }
            Ok(Ok(None)) if have == size => break None,
            Ok(Ok(None)) => break Some(format!("it ended after {have} of {size} bytes")),
            Ok(Err(error)) => break Some(format!("the connection broke: {}", cause(error))),
            Err(_) => break Some("nothing more came".to_owned()),
        }
    };
    file.flush().map_err(Trouble::Disk)?;
    Ok(broken)
}

/// The last cause says what it is; those above it say only that something happened.
fn cause(error: reqwest::Error) -> String {
    let error = error.without_url();
    if error.is_timeout() {
        return "it took too long".to_owned();
    }
    let mut cause: &dyn std::error::Error = &error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    cause.to_string()
}
