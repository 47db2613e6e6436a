//! A model server for tests: it speaks like OpenAI on the loopback, and says what it was told to say.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

/// What is said to the n-th request; the last one is said again and again.
type ReplyFn = Arc<dyn Fn(usize, &Value) -> Option<String> + Send + Sync>;

/// Says texts, and remembers what it was asked.
pub struct ScriptedModelServer {
    /// The address of the model, as `--model` takes it.
    pub model: String,
    requests: Arc<Mutex<Vec<Value>>>,
}

impl ScriptedModelServer {
    /// Says these texts one after the other, and the last one from then on.
    pub fn with_replies(texts: &[&str]) -> Self {
        let texts: Vec<String> = texts.iter().map(ToString::to_string).collect();
        Self::with_handler(Arc::new(move |n, _| Some(texts[n.min(texts.len() - 1)].clone())))
    }

    /// Takes requests and never answers.
    pub fn never_replying() -> Self {
        Self::with_handler(Arc::new(|_, _| None))
    }

    /// Says what a function makes of the number of the request and its body.
    pub fn with_handler(reply: ReplyFn) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let model = format!("http://{}/v1#scripted", listener.local_addr().unwrap());
        let heard = Arc::new(Mutex::new(Vec::new()));
        let requests = Arc::clone(&heard);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (reply, requests) = (Arc::clone(&reply), Arc::clone(&requests));
                std::thread::spawn(move || serve(stream, &reply, &requests));
            }
        });
        Self { model, requests: heard }
    }

    /// The requests so far.
    pub fn requests(&self) -> Vec<Value> {
        self.requests.lock().unwrap().clone()
    }
}

fn serve(stream: TcpStream, reply: &ReplyFn, requests: &Mutex<Vec<Value>>) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        let line = line.trim().to_lowercase();
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
        if line.is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    if length == 0 {
        // Someone looks for servers.
        let list =
            json!({ "object": "list", "data": [{ "id": "nomic-embed-text" }, { "id": "scripted" }] }).to_string();
        let mut stream = stream;
        return write!(stream, "HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{list}", list.len()).ok();
    }
    let body: Value = serde_json::from_slice(&body).ok()?;
    let number = {
        let mut requests = requests.lock().ok()?;
        requests.push(body.clone());
        requests.len() - 1
    };
    let Some(text) = reply(number, &body) else {
        // Nothing comes until the other side hangs up.
        reader.read_to_end(&mut Vec::new()).ok();
        return None;
    };
    let piece = json!({ "choices": [{ "index": 0, "delta": { "content": text }, "finish_reason": null }] });
    let end = json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": "stop" }] });
    let mut stream = stream;
    write!(
        stream,
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\ndata: {piece}\n\ndata: {end}\n\ndata: [DONE]\n\n"
    )
    .ok()
}
