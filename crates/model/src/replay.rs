//! Recordings: what a model was asked and what it replied, to be had again without the model.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::Error;
use crate::key::read_up_to;
use crate::request::{ModelLimits, Reply, Request};
use crate::script::speak;
use crate::trouble::cut;
use crate::{Answer, Cancel, Model};

/// One line of a recording.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Take {
    request: Request,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reply: Option<Reply>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error: Option<Error>,
}

/// A model that writes down what it is asked and what it replies, a line of JSON for each.
///
/// A request that was cancelled leaves no line: when it is asked again it may be let finish.
pub struct Recorder {
    model: Arc<dyn Model>,
    file: Mutex<File>,
    path: String,
}

impl Recorder {
    /// Records a model into a file, behind what is there already.
    pub fn new(model: Arc<dyn Model>, file: &Path) -> Result<Self, Error> {
        let path = file.display().to_string();
        let file = OpenOptions::new().create(true).append(true).open(file).map_err(|why| unwritable(&path, &why))?;
        Ok(Self { model, file: Mutex::new(file), path })
    }

    fn write(&self, request: &Request, outcome: &Result<Reply, Error>) -> Result<(), Error> {
        let (reply, error) = match outcome {
            Ok(reply) => (Some(reply.clone()), None),
            Err(error) => (None, Some(error.clone())),
        };
        let take = Take { request: request.clone(), reply, error };
        let mut line = serde_json::to_vec(&take).map_err(|why| unwritable(&self.path, &why))?;
        line.push(b'\n');
        // One write for one line, under a lock: lines of requests that run together do not mix.
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.write_all(&line).map_err(|why| unwritable(&self.path, &why))
    }
}

fn unwritable(path: &str, why: &dyn std::fmt::Display) -> Error {
    Error::configuration(format!("the recording {path} cannot be written: {why}"), "check the path and the free space")
}

impl Model for Recorder {
    fn name(&self) -> &str {
        self.model.name()
    }

    fn complete<'a>(
        &'a self,
        request: &'a Request,
        watch: &'a mut (dyn FnMut(&str) + Send),
        cancel: &'a Cancel,
    ) -> Answer<'a, Reply> {
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

/// A model that replies from a recording. What is not in the recording is an error that shows the first difference.
///
/// Requests are known by what they ask, so their order does not matter and many can run at once. A request that was
/// recorded more than once gives its outcomes in the order of the recording, and then the last one again.
pub struct Replay {
    name: String,
    takes: Vec<Recorded>,
    /// Which takes answer a request, and how many of them are used up.
    by_request: Mutex<HashMap<String, (Vec<usize>, usize)>>,
}

struct Recorded {
    line: usize,
    request: Value,
    outcome: Result<Reply, Error>,
}

/// A larger file is no recording.
const LARGEST_FILE: u64 = 256 << 20;

impl Replay {
    /// Reads a recording.
    pub fn read(file: &Path) -> Result<Self, Error> {
        let path = file.display().to_string();
        let hint = "a recording is a file that was written with a recorder, a line of JSON for each request";
        let text = read_up_to(file, LARGEST_FILE)
            .map_err(|why| Error::configuration(format!("the recording {path} cannot be read: {why}"), hint))?
            .ok_or_else(|| Error::configuration(format!("the recording {path} is larger than 256 MiB"), hint))?;
        let mut takes = Vec::new();
        let mut by_request: HashMap<String, (Vec<usize>, usize)> = HashMap::new();
        for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let wrong =
                |what: &dyn std::fmt::Display| Error::configuration(format!("{path}:{}: {what}", number + 1), hint);
            let take: Take = serde_json::from_str(line).map_err(|why| wrong(&why))?;
            let outcome = match (take.reply, take.error) {
                (Some(reply), None) => Ok(reply),
                (None, Some(error)) => Err(error),
                _ => return Err(wrong(&"a line has either a reply or an error")),
            };
            let request = normal(&take.request).map_err(|why| wrong(&why))?;
            by_request.entry(request.to_string()).or_default().0.push(takes.len());
            takes.push(Recorded { line: number + 1, request, outcome });
        }
        Ok(Self { name: format!("replay:{path}"), takes, by_request: Mutex::new(by_request) })
    }

    fn outcome(&self, request: &Request) -> Result<Reply, Error> {
        let asked = normal(request).map_err(|why| Error::configuration(why.to_string(), "ask something else"))?;
        let mut by_request = self.by_request.lock().unwrap_or_else(PoisonError::into_inner);
        let Some((takes, used)) = by_request.get_mut(&asked.to_string()) else {
            drop(by_request);
            return Err(self.unknown(&asked));
        };
        let take = takes[(*used).min(takes.len() - 1)];
        *used += 1;
        self.takes[take].outcome.clone()
    }

    /// What to say of a request that is not there: how it differs from the one that is most like it.
    fn unknown(&self, asked: &Value) -> Error {
        let text = asked.to_string();
        let alike = |recorded: &&Recorded| {
            text.bytes().zip(recorded.request.to_string().bytes()).take_while(|(a, b)| a == b).count()
        };
        let what = match self.takes.iter().max_by_key(alike) {
            None => format!("{} holds nothing", self.name),
            Some(nearest) => {
                let difference = difference("", &nearest.request, asked).unwrap_or_default();
                format!("the request is not in {}; line {} differs at {difference}", self.name, nearest.line)
            }
        };
        Error::configuration(what, "record it again, or ask as it was recorded")
    }
}

impl Model for Replay {
    fn name(&self) -> &str {
        &self.name
    }

    fn complete<'a>(
        &'a self,
        request: &'a Request,
        watch: &'a mut (dyn FnMut(&str) + Send),
        cancel: &'a Cancel,
    ) -> Answer<'a, Reply> {
        Box::pin(async move {
            if cancel.is_cancelled() {
                return Err(Error::Cancelled);
            }
            let reply = self.outcome(request)?;
            speak(&reply.text, watch);
            Ok(reply)
        })
    }
}

/// A request as it is compared: without its time limit, which changes nothing about the reply, and with texts that
/// differ only in line ends and in spaces at the ends of lines made equal.
fn normal(request: &Request) -> Result<Value, serde_json::Error> {
    let mut request = request.clone();
    for message in &mut request.messages {
        let lines: Vec<&str> = message.text.lines().map(str::trim_end).collect();
        lines.join("\n").trim_end().clone_into(&mut message.text);
    }
    let mut value = serde_json::to_value(request)?;
    if let Some(fields) = value.as_object_mut() {
        fields.remove("timeout");
    }
    Ok(sorted(value))
}

/// The same value with the fields of each object in order, so that equal values are written equally.
fn sorted(value: Value) -> Value {
    match value {
        Value::Array(values) => values.into_iter().map(sorted).collect(),
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.into_iter().map(|(name, value)| (name, sorted(value))).collect();
            fields.sort_by(|a, b| a.0.cmp(&b.0));
            Value::Object(fields.into_iter().collect())
        }
        other => other,
    }
}

/// The first place where two values differ, and what stands there.
fn difference(place: &str, recorded: &Value, asked: &Value) -> Option<String> {
    match (recorded, asked) {
        (Value::Object(a), Value::Object(b)) => {
            let names = a.keys().chain(b.keys().filter(|name| !a.contains_key(*name)));
            names.into_iter().find_map(|name| difference(&format!("{place}/{name}"), &recorded[name], &asked[name]))
        }
        (Value::Array(a), Value::Array(b)) => (0..a.len().max(b.len())).find_map(|index| {
            let at = |list: &[Value]| list.get(index).cloned().unwrap_or(Value::Null);
            difference(&format!("{place}/{index}"), &at(a), &at(b))
        }),
        (Value::String(a), Value::String(b)) if a != b => {
            let same = a.chars().zip(b.chars()).take_while(|(a, b)| a == b).count();
            let from = |text: &str| cut(&text.chars().skip(same.saturating_sub(20)).collect::<String>(), 60);
            Some(format!("{place}, character {}: recorded `{}`, asked `{}`", same + 1, from(a), from(b)))
        }
        (a, b) if a != b => {
            Some(format!("{place}: recorded {}, asked {}", cut(&a.to_string(), 60), cut(&b.to_string(), 60)))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::Message;

    #[test]
    fn requests_are_compared_by_what_they_ask() {
        let ask = |text: &str| Request::new(vec![Message::user(text)]);
        let same = |a: &Request, b: &Request| normal(a).unwrap() == normal(b).unwrap();
        assert!(same(&ask("a \r\nb\n"), &ask("a\nb")));
        assert!(same(&ask("a"), &ask("a").timeout(std::time::Duration::from_secs(1))));
        let schema = |text: &str| ask("a").schema(serde_json::from_str(text).unwrap());
        assert!(same(&schema(r#"{"a":1,"b":2}"#), &schema(r#"{"b":2,"a":1}"#)));
        assert!(!same(&ask("a"), &ask("b")));
        assert!(!same(&ask("a"), &ask("a").seed(1)));
    }

    #[test]
    fn the_first_difference_is_shown() {
        let check = |a: Request, b: Request, expected: &str| {
            assert_eq!(difference("", &normal(&a).unwrap(), &normal(&b).unwrap()).unwrap(), expected);
        };
        let ask = |text: &str| Request::new(vec![Message::user(text)]);
        check(
            ask("List all products that are cheap"),
            ask("List all products that were cheap"),
            "/messages/0/text, character 24: recorded `t all products that are cheap`, asked `t all products that were cheap`",
        );
        check(ask("a"), ask("a").max_tokens(5), "/max_tokens: recorded 1024, asked 5");
        let two = Request::new(vec![Message::user("a"), Message::assistant("b")]);
        check(ask("a"), two, r#"/messages/1: recorded null, asked {"role":"assistant","text":"b"}"#);
    }
}
