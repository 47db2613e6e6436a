//! A model server for tests: it listens on this machine, does what it is told, and remembers what it was sent.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use querymend_model::{
    Completion, CompletionRequest, Error, Message, Model, ProviderProtocol, Providers, Retry, RetryClock, open,
};
use querymend_testing::hang_timeout;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

pub const WIRES: [ProviderProtocol; 3] =
    [ProviderProtocol::OpenAi, ProviderProtocol::Anthropic, ProviderProtocol::Gemini];
pub const SECRET: &str = "sk-test-0123456789abcdef";

/// What the server does with one request.
#[derive(Clone)]
pub enum Act {
    /// Replies with this text in pieces, and stops for this reason: `end`, `length`, `refused`, or `refused-silently`.
    Say(&'static str, &'static str),
    /// Sends the last message back.
    Echo,
    /// Sends the last message back once so many requests have been under way at the same time.
    EchoTogether(usize),
    /// Answers with a status, headers and a body.
    Status(u16, &'static str, String),
    /// Sends these bytes as a stream of events, and ends it properly.
    Events(Vec<u8>),
    /// Says this much of a reply and then nothing, until the other side goes away.
    Hang(&'static str),
    /// Says this much of a reply and goes away.
    Break(&'static str),
    /// Replies whole, as servers that do not stream do.
    Whole(&'static str),
}

pub struct Server {
    pub address: SocketAddr,
    pub wire: ProviderProtocol,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    acts: Mutex<VecDeque<Act>>,
    asked: Mutex<Vec<(String, Value)>>,
    /// How many times someone went away while the server hung.
    left: AtomicUsize,
    /// How many connections there were, and how many requests are under way and were at most.
    connections: AtomicUsize,
    busy: AtomicUsize,
    busiest: AtomicUsize,
}

impl Server {
    pub async fn start(wire: ProviderProtocol, acts: impl IntoIterator<Item = Act>) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(State::default());
        state.acts.lock().unwrap().extend(acts);
        let serving = state.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                serving.connections.fetch_add(1, Ordering::SeqCst);
                let state = serving.clone();
                tokio::spawn(async move {
                    // The other side may go away at any time; that is what some tests are about.
                    let _ = serve(stream, wire, &state).await;
                });
            }
        });
        Server { address, wire, state }
    }

    /// The requests so far: their heads in lower case, and their bodies.
    pub fn asked(&self) -> Vec<(String, Value)> {
        self.state.asked.lock().unwrap().clone()
    }

    pub fn connections(&self) -> usize {
        self.state.connections.load(Ordering::SeqCst)
    }

    pub fn busiest(&self) -> usize {
        self.state.busiest.load(Ordering::SeqCst)
    }

    /// Waits until someone has gone away while the server hung.
    pub async fn was_left(&self) -> bool {
        let left = async {
            while self.state.left.load(Ordering::SeqCst) == 0 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(hang_timeout(), left).await.is_ok()
    }

    /// Providers that know this server as `test`, and pause without waiting.
    pub fn providers(&self, pauses: &Pauses, more: &str) -> Providers {
        let wire = serde_json::to_value(self.wire).unwrap();
        let base = if self.wire == ProviderProtocol::Anthropic { "" } else { "/v1" };
        let text = format!(
            "[test]\nwire = {wire}\nbase = 'http://{}{base}'\nkey = 'TEST_KEY'\nconnect_seconds = {:.1}\nmodels.priced = {{ context = 8000, input_price = 1, output_price = 2 }}\n{more}",
            self.address,
            hang_timeout().as_secs_f64()
        );
        let mut providers = Providers::builtin().unwrap().merge_text(&text, "test").unwrap();
        providers.retry = Retry { clock: Arc::new(pauses.clone()), ..Retry::default() };
        providers.with_variables(|name| (name == "TEST_KEY").then(|| SECRET.to_owned()))
    }

    pub fn model(&self) -> Arc<dyn Model> {
        open("test:priced", &self.providers(&Pauses::default(), "")).unwrap()
    }
}

/// A clock that takes no time and remembers the pauses.
#[derive(Clone, Default)]
pub struct Pauses(Arc<Mutex<Vec<Duration>>>);

impl Pauses {
    pub fn all(&self) -> Vec<Duration> {
        self.0.lock().unwrap().clone()
    }
}

impl RetryClock for Pauses {
    fn sleep(&self, time: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        self.0.lock().unwrap().push(time);
        Box::pin(std::future::ready(()))
    }

    fn random_fraction(&self) -> f64 {
        0.5
    }
}

async fn serve(mut stream: TcpStream, wire: ProviderProtocol, state: &State) -> std::io::Result<()> {
    let mut buffer = Vec::new();
    loop {
        let Some((head, body)) = read_request(&mut stream, &mut buffer).await? else { return Ok(()) };
        let busy = state.busy.fetch_add(1, Ordering::SeqCst) + 1;
        state.busiest.fetch_max(busy, Ordering::SeqCst);
        state.asked.lock().unwrap().push((head, body.clone()));
        // What is not JSON is refused, as servers do.
        let otherwise = if body.is_null() { Act::Status(400, "", "not JSON".into()) } else { Act::Echo };
        let act = state.acts.lock().unwrap().pop_front().unwrap_or(otherwise);
        let goes_on = perform(&mut stream, wire, state, act, &body).await;
        state.busy.fetch_sub(1, Ordering::SeqCst);
        if !goes_on? {
            return Ok(());
        }
    }
}

async fn read_request(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> std::io::Result<Option<(String, Value)>> {
    loop {
        if let Some(end) = buffer.windows(4).position(|four| four == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&buffer[..end]).to_lowercase();
            let length = head.split("content-length: ").nth(1).and_then(|rest| rest.split_whitespace().next());
            let length: usize = length.map_or(0, |length| length.parse().unwrap());
            if buffer.len() >= end + 4 + length {
                let body = serde_json::from_slice(&buffer[end + 4..end + 4 + length]).unwrap_or(Value::Null);
                buffer.drain(..end + 4 + length);
                return Ok(Some((head, body)));
            }
        }
        if stream.read_buf(buffer).await? == 0 {
            return Ok(None);
        }
    }
}

/// Does it, and says whether the connection can be used again.
async fn perform(
    stream: &mut TcpStream,
    wire: ProviderProtocol,
    state: &State,
    act: Act,
    body: &Value,
) -> std::io::Result<bool> {
    match act {
        Act::Say(text, stopped) => send_events(stream, &events(wire, text, Some(stopped))).await?,
        Act::Echo => send_events(stream, &events(wire, &last_message(wire, body), Some("end"))).await?,
        Act::EchoTogether(count) => {
            while state.busiest.load(Ordering::SeqCst) < count {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
            send_events(stream, &events(wire, &last_message(wire, body), Some("end"))).await?;
        }
        Act::Status(status, headers, body) => {
            let head = format!("HTTP/1.1 {status} Status\r\ncontent-length: {}\r\n{headers}\r\n", body.len());
            stream.write_all(head.as_bytes()).await?;
            stream.write_all(body.as_bytes()).await?;
        }
        Act::Events(bytes) => send_events(stream, &bytes).await?,
        Act::Whole(text) => {
            let body = whole(wire, text).to_string();
            let head =
                format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n", body.len());
            stream.write_all(head.as_bytes()).await?;
            stream.write_all(body.as_bytes()).await?;
        }
        Act::Hang(text) => {
            if !text.is_empty() {
                begin(stream).await?;
                chunks(stream, &events(wire, text, None)).await?;
            }
            let mut rest = Vec::new();
            // The wait ends when the other side closes the connection.
            let _ = stream.read_to_end(&mut rest).await;
            state.left.fetch_add(1, Ordering::SeqCst);
            return Ok(false);
        }
        Act::Break(text) => {
            begin(stream).await?;
            chunks(stream, &events(wire, text, None)).await?;
            return Ok(false);
        }
    }
    Ok(true)
}

async fn begin(stream: &mut TcpStream) -> std::io::Result<()> {
    stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n").await
}

/// Small streams are cut where it hurts: in the middle of words, of characters and of line ends.
async fn chunks(stream: &mut TcpStream, bytes: &[u8]) -> std::io::Result<()> {
    let size = if bytes.len() < 4096 { 7 } else { 16 << 10 };
    for piece in bytes.chunks(size) {
        stream.write_all(format!("{:x}\r\n", piece.len()).as_bytes()).await?;
        stream.write_all(piece).await?;
        stream.write_all(b"\r\n").await?;
    }
    stream.flush().await
}

async fn send_events(stream: &mut TcpStream, bytes: &[u8]) -> std::io::Result<()> {
    begin(stream).await?;
    chunks(stream, bytes).await?;
    stream.write_all(b"0\r\n\r\n").await
}

fn last_message(wire: ProviderProtocol, body: &Value) -> String {
    let text = match wire {
        ProviderProtocol::OpenAi | ProviderProtocol::Anthropic => {
            body["messages"].as_array().unwrap().last().unwrap()["content"].as_str()
        }
        ProviderProtocol::Gemini => body["contents"].as_array().unwrap().last().unwrap()["parts"][0]["text"].as_str(),
    };
    text.unwrap().to_owned()
}

/// A reply as events: 12 tokens read, 5 written. Without a reason to stop, the end is left out.
fn events(wire: ProviderProtocol, text: &str, stopped: Option<&str>) -> Vec<u8> {
    let pieces: Vec<&str> = text.split_inclusive(' ').collect();
    let refused_silently = stopped == Some("refused-silently");
    let pieces = if refused_silently { Vec::new() } else { pieces };
    let mut events: Vec<Value> = Vec::new();
    match wire {
        ProviderProtocol::OpenAi => {
            let said = if stopped == Some("refused") { "refusal" } else { "content" };
            events.push(
                json!({"model": "m-2", "choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}}]}),
            );
            for piece in pieces {
                events.push(json!({"model": "m-2", "choices": [{"index": 0, "delta": {said: piece}}]}));
            }
            if let Some(stopped) = stopped {
                let reason = match stopped {
                    "length" => "length",
                    "refused-silently" => "content_filter",
                    _ => "stop",
                };
                events.push(json!({"model": "m-2", "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}));
                events.push(
                    json!({"model": "m-2", "choices": [], "usage": {"prompt_tokens": 12, "completion_tokens": 5}}),
                );
            }
        }
        ProviderProtocol::Anthropic => {
            let usage = json!({"input_tokens": 12, "output_tokens": 1});
            events.push(json!({"type": "message_start", "message": {"model": "m-2", "content": [], "usage": usage}}));
            events.push(
                json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
            );
            for piece in pieces {
                let delta = json!({"type": "text_delta", "text": piece});
                events.push(json!({"type": "content_block_delta", "index": 0, "delta": delta}));
            }
            if let Some(stopped) = stopped {
                let reason = match stopped {
                    "length" => "max_tokens",
                    "end" => "end_turn",
                    _ => "refusal",
                };
                let usage = json!({"output_tokens": 5});
                events.push(json!({"type": "message_delta", "delta": {"stop_reason": reason}, "usage": usage}));
                events.push(json!({"type": "message_stop"}));
            }
        }
        ProviderProtocol::Gemini => {
            for piece in pieces {
                let content = json!({"role": "model", "parts": [{"text": piece}]});
                events.push(json!({"candidates": [{"content": content}], "modelVersion": "m-2"}));
            }
            if let Some(stopped) = stopped {
                let reason = match stopped {
                    "length" => "MAX_TOKENS",
                    "end" => "STOP",
                    _ => "SAFETY",
                };
                let usage = json!({"promptTokenCount": 12, "candidatesTokenCount": 3, "thoughtsTokenCount": 2});
                events.push(
                    json!({"candidates": [{"finishReason": reason}], "usageMetadata": usage, "modelVersion": "m-2"}),
                );
            }
        }
    }
    let mut text: String = events.iter().map(|event| format!("event: x\r\ndata: {event}\r\n\r\n")).collect();
    if wire == ProviderProtocol::OpenAi && stopped.is_some() {
        text.push_str("data: [DONE]\n\n");
    }
    text.into_bytes()
}

/// A reply whole.
fn whole(wire: ProviderProtocol, text: &str) -> Value {
    match wire {
        ProviderProtocol::OpenAi => json!({
            "model": "m-2",
            "choices": [{"message": {"role": "assistant", "content": text}, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 12, "completion_tokens": 5}
        }),
        ProviderProtocol::Anthropic => json!({
            "type": "message",
            "model": "m-2",
            "content": [{"type": "text", "text": text}],
            "stop_reason": "end_turn",
            "usage": {"input_tokens": 12, "output_tokens": 5}
        }),
        ProviderProtocol::Gemini => json!([{
            "modelVersion": "m-2",
            "candidates": [{"content": {"parts": [{"text": text}]}, "finishReason": "STOP"}],
            "usageMetadata": {"promptTokenCount": 12, "candidatesTokenCount": 5}
        }]),
    }
}

/// Asks, and gives what was watched beside the outcome.
pub async fn ask(model: &dyn Model, request: &CompletionRequest) -> (Result<Completion, Error>, Vec<String>) {
    let mut watched = Vec::new();
    let reply = model
        .complete(request, &mut |piece| watched.push(piece.to_owned()), &querymend_model::CancelSignal::new())
        .await;
    (reply, watched)
}

pub fn question(text: &str) -> CompletionRequest {
    CompletionRequest::new(vec![Message::system("You write SQL."), Message::user(text)]).timeout(hang_timeout())
}
