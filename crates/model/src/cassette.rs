//! Recording and replay of model requests, for tests without a model.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::Error;
use crate::limited_file::read_limited;
use crate::provider_error::truncate_line;
use crate::request::{Completion, CompletionRequest, ModelLimits};
use crate::scripted::stream_words;
use crate::{BoxFuture, CancelSignal, Model};

/// One line of a cassette.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct CassetteEntry {
    request: CompletionRequest,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reply: Option<Completion>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error: Option<Error>,
}

/// Wraps a model and records each request and its outcome as a line of JSON.
///
/// Cancelled requests are not recorded, because a repetition may be allowed to finish.
pub struct RecordingModel {
    model: Arc<dyn Model>,
    file: Mutex<File>,
    path: String,
}

impl RecordingModel {
    /// Records a model to a file, appending to its content.
    pub fn new(model: Arc<dyn Model>, file: &Path) -> Result<Self, Error> {
        let path = file.display().to_string();
        let file = OpenOptions::new().create(true).append(true).open(file).map_err(|why| write_error(&path, &why))?;
        Ok(Self { model, file: Mutex::new(file), path })
    }

    fn write(&self, request: &CompletionRequest, outcome: &Result<Completion, Error>) -> Result<(), Error> {
        let (reply, error) = match outcome {
            Ok(reply) => (Some(reply.clone()), None),
            Err(error) => (None, Some(error.clone())),
        };
        let take = CassetteEntry { request: request.clone(), reply, error };
        let mut line = serde_json::to_vec(&take).map_err(|why| write_error(&self.path, &why))?;
        line.push(b'\n');
        // One write per line under a lock, so that concurrent requests do not interleave.
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.write_all(&line).map_err(|why| write_error(&self.path, &why))
    }
}

fn write_error(path: &str, why: &dyn std::fmt::Display) -> Error {
    Error::configuration(format!("the recording {path} cannot be written: {why}"), "check the path and the free space")
}

impl Model for RecordingModel {
    fn name(&self) -> &str {
        self.model.name()
    }

    fn complete<'a>(
        &'a self,
        request: &'a CompletionRequest,
        watch: &'a mut (dyn FnMut(&str) + Send),
        cancel: &'a CancelSignal,
    ) -> BoxFuture<'a, Completion> {
        Box::pin(async move {
            let outcome = self.model.complete(request, watch, cancel).await;
            if outcome != Err(Error::Cancelled) {
                self.write(request, &outcome)?;
            }
            outcome
        })
    }

    fn limits(&self) -> ModelLimits {
        self.model.limits()
    }
}

/// Replays completions from a cassette; a request that was not recorded is an error that shows the
/// first difference.
///
/// Requests are matched by content, so their order does not matter and they may run concurrently. A
/// request that was recorded several times yields its outcomes in order, then repeats the last one.
pub struct ReplayModel {
    name: String,
    exchanges: Vec<RecordedExchange>,
    /// Indices of the exchanges per request, and the number that has been replayed.
    by_request: Mutex<HashMap<String, (Vec<usize>, usize)>>,
}

struct RecordedExchange {
    line: usize,
    request: Value,
    outcome: Result<Completion, Error>,
}

/// Maximum size of a cassette.
const MAX_CASSETTE_BYTES: u64 = 256 << 20;

impl ReplayModel {
    /// Reads a cassette.
    pub fn read(file: &Path) -> Result<Self, Error> {
        let path = file.display().to_string();
        let hint = "a recording is a file that was written with a recorder, a line of JSON for each request";
        let text = read_limited(file, MAX_CASSETTE_BYTES)
            .map_err(|why| Error::configuration(format!("the recording {path} cannot be read: {why}"), hint))?
            .ok_or_else(|| Error::configuration(format!("the recording {path} is larger than 256 MiB"), hint))?;
        let mut takes = Vec::new();
        let mut by_request: HashMap<String, (Vec<usize>, usize)> = HashMap::new();
        for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let wrong =
                |what: &dyn std::fmt::Display| Error::configuration(format!("{path}:{}: {what}", number + 1), hint);
            let take: CassetteEntry = serde_json::from_str(line).map_err(|why| wrong(&why))?;
            let outcome = match (take.reply, take.error) {
                (Some(reply), None) => Ok(reply),
                (None, Some(error)) => Err(error),
                _ => return Err(wrong(&"a line has either a reply or an error")),
            };
            let request = normalize_request(&take.request).map_err(|why| wrong(&why))?;
            by_request.entry(request.to_string()).or_default().0.push(takes.len());
            takes.push(RecordedExchange { line: number + 1, request, outcome });
        }
        Ok(Self { name: format!("replay:{path}"), exchanges: takes, by_request: Mutex::new(by_request) })
    }

    fn outcome(&self, request: &CompletionRequest) -> Result<Completion, Error> {
        let normalized =
            normalize_request(request).map_err(|why| Error::configuration(why.to_string(), "ask something else"))?;
        let mut by_request = self.by_request.lock().unwrap_or_else(PoisonError::into_inner);
        let Some((takes, used)) = by_request.get_mut(&normalized.to_string()) else {
            drop(by_request);
            return Err(self.not_recorded_error(&normalized));
        };
        let take = takes[(*used).min(takes.len() - 1)];
        *used += 1;
        self.exchanges[take].outcome.clone()
    }

    /// Creates the error for an unrecorded request, which describes the difference to the most
    /// similar recorded one.
    fn not_recorded_error(&self, request: &Value) -> Error {
        let text = request.to_string();
        let common_prefix = |recorded: &&RecordedExchange| {
            text.bytes().zip(recorded.request.to_string().bytes()).take_while(|(a, b)| a == b).count()
        };
        let what = match self.exchanges.iter().max_by_key(common_prefix) {
            None => format!("{} is empty", self.name),
            Some(closest) => {
                let difference = first_difference("", &closest.request, request).unwrap_or_default();
                format!("the request is not in {}; line {} differs at {difference}", self.name, closest.line)
            }
        };
        Error::configuration(what, "record it again, or ask as it was recorded")
    }
}

impl Model for ReplayModel {
    fn name(&self) -> &str {
        &self.name
    }

    fn complete<'a>(
        &'a self,
        request: &'a CompletionRequest,
        watch: &'a mut (dyn FnMut(&str) + Send),
        cancel: &'a CancelSignal,
    ) -> BoxFuture<'a, Completion> {
        Box::pin(async move {
            if cancel.is_cancelled() {
                return Err(Error::Cancelled);
            }
            let reply = self.outcome(request)?;
            stream_words(&reply.text, watch);
            Ok(reply)
        })
    }
}

/// Normalizes a request for comparison.
///
/// The timeout is removed, since it does not affect the reply; line endings and trailing whitespace
/// are unified.
fn normalize_request(request: &CompletionRequest) -> Result<Value, serde_json::Error> {
    let mut request = request.clone();
    for message in &mut request.messages {
        let lines: Vec<&str> = message.text.lines().map(str::trim_end).collect();
        lines.join("\n").trim_end().clone_into(&mut message.text);
    }
    let mut value = serde_json::to_value(request)?;
    if let Some(fields) = value.as_object_mut() {
        fields.remove("timeout");
    }
    Ok(sort_keys(value))
}

/// Sorts the keys of all objects, so that equal values serialize equally.
fn sort_keys(value: Value) -> Value {
    match value {
        Value::Array(values) => values.into_iter().map(sort_keys).collect(),
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.into_iter().map(|(name, value)| (name, sort_keys(value))).collect();
            fields.sort_by(|a, b| a.0.cmp(&b.0));
            Value::Object(fields.into_iter().collect())
        }
        other => other,
    }
}

/// Describes the first difference between two values and its path.
fn first_difference(path: &str, recorded: &Value, actual: &Value) -> Option<String> {
    match (recorded, actual) {
        (Value::Object(a), Value::Object(b)) => {
            let names = a.keys().chain(b.keys().filter(|name| !a.contains_key(*name)));
            names
                .into_iter()
                .find_map(|name| first_difference(&format!("{path}/{name}"), &recorded[name], &actual[name]))
        }
        (Value::Array(a), Value::Array(b)) => (0..a.len().max(b.len())).find_map(|index| {
            let at = |list: &[Value]| list.get(index).cloned().unwrap_or(Value::Null);
            first_difference(&format!("{path}/{index}"), &at(a), &at(b))
        }),
        (Value::String(a), Value::String(b)) if a != b => {
            let same = a.chars().zip(b.chars()).take_while(|(a, b)| a == b).count();
            let from = |text: &str| truncate_line(&text.chars().skip(same.saturating_sub(20)).collect::<String>(), 60);
            Some(format!("{path}, character {}: recorded `{}`, asked `{}`", same + 1, from(a), from(b)))
        }
        (a, b) if a != b => Some(format!(
            "{path}: recorded {}, asked {}",
            truncate_line(&a.to_string(), 60),
            truncate_line(&b.to_string(), 60)
        )),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::Message;

    #[test]
    fn compares_requests_by_their_content() {
        let ask = |text: &str| CompletionRequest::new(vec![Message::user(text)]);
        let same = |a: &CompletionRequest, b: &CompletionRequest| {
            normalize_request(a).unwrap() == normalize_request(b).unwrap()
        };
        assert!(same(&ask("a \r\nb\n"), &ask("a\nb")));
        assert!(same(&ask("a"), &ask("a").timeout(std::time::Duration::from_secs(1))));
        let schema = |text: &str| ask("a").schema(serde_json::from_str(text).unwrap());
        assert!(same(&schema(r#"{"a":1,"b":2}"#), &schema(r#"{"b":2,"a":1}"#)));
        assert!(!same(&ask("a"), &ask("b")));
        assert!(!same(&ask("a"), &ask("a").seed(1)));
    }

    #[test]
    fn shows_the_first_difference() {
        let check = |a: CompletionRequest, b: CompletionRequest, expected: &str| {
            assert_eq!(
                first_difference("", &normalize_request(&a).unwrap(), &normalize_request(&b).unwrap()).unwrap(),
                expected
            );
        };
        let ask = |text: &str| CompletionRequest::new(vec![Message::user(text)]);
        check(
            ask("List all products that are cheap"),
            ask("List all products that were cheap"),
            "/messages/0/text, character 24: recorded `t all products that are cheap`, asked `t all products that were cheap`",
        );
        check(ask("a"), ask("a").max_tokens(5), "/max_tokens: recorded 1024, asked 5");
        let two = CompletionRequest::new(vec![Message::user("a"), Message::assistant("b")]);
        check(ask("a"), two, r#"/messages/1: recorded null, asked {"role":"assistant","text":"b"}"#);
    }
}
