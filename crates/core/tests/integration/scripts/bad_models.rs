//! Models that write nonsense, and servers that misbehave: a clear end each time, and nothing but reading.

use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use querymend::{AnswerStatus, CancellationToken, Confidence, Config, ProblemCode, Querymend, StopReason};
use querymend_model::{
    self as model, Completion, FinishReason, Model, Providers, Retry, RetryClock, ScriptedModel, ScriptedReply, open,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::support::{QUESTION, Shop, Told, ask, ended, listen};

const GOOD: &str = "SELECT count(*) FROM products";

fn few() -> Config {
    Config::default().with_fallback(false)
}

#[tokio::test]
async fn retries_after_replies_without_a_usable_query() {
    let noise: String =
        (0u32..4_000).filter_map(|n| char::from_u32(n.wrapping_mul(2_654_435_761) % 0x11_0000)).collect();
    let deep = format!("SELECT {}1{}", "(".repeat(50_000), ")".repeat(50_000));
    let endless = "SELECT name FROM products WHERE name = 'a' OR ".repeat(3_000);
    for nonsense in [
        String::new(),
        " \n\t\r ".into(),
        "\0\0\0".into(),
        noise,
        deep,
        endless,
        "😀".repeat(2_000),
        "{{schema}} {question}".into(),
        "SELECT SELECT SELECT FROM FROM".into(),
        "```sql\n```".into(),
        "null".into(),
        "{\"corrected_sql\": null}".into(),
        "{\"corrected_sql\": 7, \"correction_applied\": []}".into(),
    ] {
        let start: String = nonsense.chars().take(30).collect();
        let told = ask([nonsense.as_str(), GOOD], few(), QUESTION).await;
        assert_eq!(
            (told.answer.status, told.sql()),
            (AnswerStatus::Answered, GOOD),
            "{start}: {:?}",
            told.problem_or_none()
        );
        assert_eq!(told.answer.attempts.len(), 2, "{start}");
        // Nothing but nonsense ends as a failure that says what was wrong.
        let told = ask([nonsense.as_str(); 3], few(), QUESTION).await;
        assert_eq!(told.answer.status, AnswerStatus::GaveUp, "{start}");
        assert!(told.executed().is_empty() && !told.problem().message.is_empty(), "{start}");
        assert!(told.problem().message.len() < 2_000, "{start}: {} bytes", told.problem().message.len());
    }
}

#[tokio::test]
async fn returns_prose_reply_as_chat_answer() {
    let prose = "I'm sorry, but I can't help with that.";
    let told = ask([prose, GOOD], few(), QUESTION).await;
    assert_eq!((told.answer.status, told.sql()), (AnswerStatus::Answered, GOOD));
    let told = ask([prose; 3], few(), QUESTION).await;
    assert_eq!((told.answer.status, told.answer.text.as_deref()), (AnswerStatus::Chat, Some(prose)));
    assert!(told.executed().is_empty() && told.answer.sql.is_none(), "{:?}", told.answer);
    assert_eq!(told.answer.confidence, Confidence::Low);
    // A model that wrote SQL first has tried: what was wrong with it is told.
    let told = ask(["SELECT flurb FROM products", prose, prose], few(), QUESTION).await;
    assert_eq!(told.answer.status, AnswerStatus::GaveUp);
}

impl Told {
    fn problem_or_none(&self) -> Option<&querymend::Problem> {
        self.answer.problem.as_ref()
    }
}

#[tokio::test]
async fn truncates_ten_megabyte_reply() {
    let long = "SELECT name, ".repeat(800_000);
    assert!(long.len() > 10_000_000);
    let told = ended(ask([long.as_str(), GOOD], few(), QUESTION)).await;
    assert_eq!((told.answer.status, told.sql()), (AnswerStatus::Answered, GOOD));
    let sent: usize = told.asked.iter().flat_map(|r| &r.messages).map(|m| m.text.len()).sum();
    assert!(sent < 100_000, "{sent} bytes were sent to the model");
    let kept = serde_json::to_string(&told.answer).unwrap().len();
    assert!(kept < 100_000, "{kept} bytes of answer");
    let events: usize = told
        .events
        .iter()
        .filter(|e| !matches!(e, querymend::Event::Text { .. }))
        .map(|e| serde_json::to_string(e).unwrap().len())
        .sum();
    assert!(events < 400_000, "{events} bytes of events");
}

#[tokio::test]
async fn retries_refusals_without_reading_them_as_sql() {
    let declined =
        Completion { stopped: FinishReason::Refused, ..Completion::text("I can't. SELECT 1 would be wrong.") };
    let told = ask([declined.clone(), Completion::text(GOOD)], few(), QUESTION).await;
    assert_eq!((told.answer.status, told.sql()), (AnswerStatus::Answered, GOOD));
    let told = ask([declined.clone(), declined.clone(), declined], few(), QUESTION).await;
    assert_eq!((told.answer.status, told.answer.stop), (AnswerStatus::GaveUp, StopReason::RepeatedSql));
}

#[tokio::test]
async fn transpiles_sql_of_other_dialects() {
    for (said, rows) in [
        ("SELECT TOP 3 [name] FROM [products]", 3),
        ("SELECT name FROM products FETCH FIRST 2 ROWS ONLY", 2),
        ("SELECT CONCAT(name, '!') FROM products LIMIT 4", 4),
        ("SELECT `name` FROM `products` LIMIT 0, 5", 5),
        ("SELECT name::text FROM products WHERE name ILIKE '%laptop%'", 1),
    ] {
        let told = ask([said, "SELECT 1 WHERE 1 = 0"], few(), QUESTION).await;
        assert_eq!((told.answer.status, told.asked.len()), (AnswerStatus::Answered, 1), "{said}: {:?}", told.answer);
        assert_eq!(told.rows().len(), rows, "{said}: {}", told.sql());
    }
}

#[tokio::test]
async fn never_executes_a_write() {
    let shop = Shop::new();
    let before = std::fs::read(&shop.file).unwrap();
    for harm in [
        "DROP TABLE products",
        "SELECT 1; DROP TABLE products",
        "DELETE FROM products",
        "WITH x AS (SELECT 1) DELETE FROM products",
        "UPDATE products SET price = 0",
        "INSERT INTO products SELECT * FROM products",
        "CREATE TABLE t AS SELECT 1",
        "PRAGMA writable_schema = ON",
        "ATTACH DATABASE '/tmp/evil.db' AS evil",
        "VACUUM INTO '/tmp/evil.db'",
        "SELECT load_extension('evil')",
        "SELECT writefile('/tmp/evil', 'x')",
        "```sql\nDROP TABLE products;\n```",
        "{\"corrected_sql\": \"DROP TABLE products\"}",
    ] {
        for config in [few(), few().with_self_correction(false), few().with_preflight_validation(false)] {
            let script = Arc::new(ScriptedModel::new([harm, harm, harm]));
            let querymend = Querymend::new(shop.engine(), script, config);
            let (answer, events) = listen(&querymend, QUESTION, &CancellationToken::new()).await;
            assert_eq!(answer.status, AnswerStatus::GaveUp, "{harm}: {answer:?}");
            assert!(answer.attempts.iter().all(|a| a.held_back), "{harm}");
            let ran = events
                .iter()
                .any(|e| matches!(e, querymend::Event::Executed { .. } | querymend::Event::Rejected { .. }));
            assert!(!ran, "{harm} reached the database");
        }
    }
    assert_eq!(std::fs::read(&shop.file).unwrap(), before);
}

/// What the server does with a connection.
#[derive(Clone)]
enum Act {
    Status(u16, &'static str),
    /// Streams a reply.
    Say(&'static str),
    /// Begins a reply and goes away.
    Break(&'static str),
    /// Begins a reply and says no more.
    Hang(&'static str),
    /// Writes the same words again and again, until the other side goes away.
    Endless(&'static str),
}

/// A model server on this machine. Pauses between tries take no time.
async fn server(acts: impl IntoIterator<Item = Act>) -> Arc<dyn Model> {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let acts: Arc<Mutex<Vec<Act>>> = Arc::new(Mutex::new(acts.into_iter().collect()));
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let act = {
                let mut acts = acts.lock().unwrap();
                if acts.len() > 1 { acts.remove(0) } else { acts[0].clone() }
            };
            // The other side may go away at any time.
            tokio::spawn(async move { perform(stream, act).await.ok() });
        }
    });
    let mut providers = Providers::builtin().unwrap();
    providers.retry = Retry { clock: Arc::new(NoPause), ..Retry::default() };
    open(&format!("http://{address}/v1#small"), &providers).unwrap()
}

struct NoPause;

impl RetryClock for NoPause {
    fn sleep(&self, _: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(std::future::ready(()))
    }

    fn random_fraction(&self) -> f64 {
        0.5
    }
}

async fn perform(mut stream: TcpStream, act: Act) -> std::io::Result<()> {
    let mut request = Vec::new();
    loop {
        if let Some(end) = request.windows(4).position(|four| four == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&request[..end]).to_lowercase();
            let length = head.split("content-length: ").nth(1).and_then(|rest| rest.split_whitespace().next());
            if request.len() >= end + 4 + length.map_or(0, |n| n.parse::<usize>().unwrap()) {
                break;
            }
        }
        if stream.read_buf(&mut request).await? == 0 {
            return Ok(());
        }
    }
    let begin = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    let piece = |text: &str| {
        let event = serde_json::json!({"model": "m", "choices": [{"index": 0, "delta": {"content": text}}]});
        format!("data: {event}\n\n")
    };
    match act {
        Act::Status(status, body) => {
            let head =
                format!("HTTP/1.1 {status} X\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}", body.len());
            stream.write_all(head.as_bytes()).await?;
        }
        Act::Say(text) => {
            let end =
                "data: {\"choices\": [{\"index\": 0, \"delta\": {}, \"finish_reason\": \"stop\"}]}\n\ndata: [DONE]\n\n";
            stream.write_all(format!("{begin}{}{end}", piece(text)).as_bytes()).await?;
        }
        Act::Break(text) => stream.write_all(format!("{begin}{}", piece(text)).as_bytes()).await?,
        Act::Hang(text) => {
            stream.write_all(format!("{begin}{}", piece(text)).as_bytes()).await?;
            stream.read_to_end(&mut request).await?;
        }
        Act::Endless(text) => {
            stream.write_all(begin.as_bytes()).await?;
            loop {
                stream.write_all(piece(text).as_bytes()).await?;
                // The time is to be up before the reply is too long.
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        }
    }
    stream.shutdown().await
}

async fn through(acts: impl IntoIterator<Item = Act>, config: Config) -> querymend::Answer {
    let shop = Shop::new();
    let querymend = Querymend::new(shop.engine(), server(acts).await, config);
    listen(&querymend, QUESTION, &CancellationToken::new()).await.0
}

#[tokio::test]
async fn reports_failing_model_servers_after_retries() {
    for (acts, words) in [
        (vec![Act::Status(500, "boom")], "500"),
        (vec![Act::Status(429, "{\"error\": {\"message\": \"slow down\"}}")], "slow down"),
        (vec![Act::Status(401, "{\"error\": {\"message\": \"who are you\"}}")], "who are you"),
        (vec![Act::Status(200, "<html>It works!</html>")], "invalid response"),
        (vec![Act::Break("SELECT count(*) FR")], ""),
    ] {
        let answer = through(acts, Config::default()).await;
        let problem = answer.problem.as_ref().unwrap();
        assert_eq!((answer.status, answer.stop), (AnswerStatus::Failed, StopReason::ModelFailed), "{answer:?}");
        assert_eq!(problem.code, ProblemCode::ModelUnavailable);
        assert!(problem.message.contains(words), "{problem:?}");
        assert!(problem.hint.is_some(), "{problem:?}");
        assert_eq!((answer.metadata.llm_calls, answer.metadata.tool_executions), (1, 0));
    }
    // One that recovers is not noticed: no draft is spent on it.
    for trouble in [Act::Status(500, ""), Act::Status(429, ""), Act::Status(503, "loading")] {
        let answer = through([trouble, Act::Say(GOOD)], Config::default()).await;
        assert_eq!((answer.status, answer.attempts.len(), answer.metadata.llm_calls), (AnswerStatus::Answered, 1, 1));
    }
}

#[tokio::test]
async fn stops_waiting_for_a_hanging_server_when_time_is_spent() {
    let short = || Config::default().with_max_time(Duration::from_millis(400));
    for act in [Act::Hang("SELECT count"), Act::Endless("and then ")] {
        let answer = ended(through([act], short())).await;
        assert_eq!((answer.status, answer.stop), (AnswerStatus::GaveUp, StopReason::TimeBudget), "{answer:?}");
        let problem = answer.problem.unwrap();
        assert_eq!(problem.code, ProblemCode::BudgetExceeded);
        assert_eq!(problem.message, "the time budget was exhausted before there was a query");
    }
}

#[tokio::test]
async fn limits_reply_timeout_to_request_or_remaining_time() {
    let day = Duration::from_secs(86_400);
    let given = async |config: Config| {
        let (shop, script) = (Shop::new(), Arc::new(ScriptedModel::new([GOOD])));
        Querymend::new(shop.engine(), script.clone(), config).ask(QUESTION).await;
        script.requests()[0].timeout
    };
    let usual = Config::default().budget.request;
    assert_eq!(usual, Duration::from_secs(60));
    assert_eq!(given(Config::default().with_max_time(day)).await, usual);
    assert_eq!(given(Config::default().with_max_time(day).with_max_request_time(usual * 2)).await, usual * 2);
    assert!(given(Config::default().with_max_time(usual / 2)).await <= usual / 2);
}

#[tokio::test]
async fn shrinks_prompt_until_it_fits_the_context() {
    let too_long = || model::Error::ContextTooLong { model: "script".into(), message: "it has 9000 tokens".into() };
    let lines = [
        ScriptedReply::from(too_long()),
        ScriptedReply::from(too_long()),
        ScriptedReply::from("SELECT count(*) AS n FROM orders"),
    ];
    let told = ask(lines, Config::default(), "How many orders are there?").await;
    assert_eq!((told.answer.status, told.answer.attempts.len()), (AnswerStatus::Answered, 1));
    let lengths: Vec<usize> = told.asked.iter().map(|request| request.messages[1].text.len()).collect();
    assert!(lengths[0] > lengths[1] && lengths[1] > lengths[2], "{lengths:?}");
    assert!(told.message(2).text.contains("CREATE TABLE orders"), "{}", told.message(2).text);
    assert!(told.message(2).text.ends_with("Question: How many orders are there?"));

    let told =
        ask((0..30).map(|_| ScriptedReply::from(too_long())), Config::default(), "How many orders are there?").await;
    assert_eq!((told.answer.status, told.answer.stop), (AnswerStatus::Failed, StopReason::ModelFailed));
    assert!(told.problem().message.contains("too long") && told.problem().hint.is_some(), "{:?}", told.problem());
    assert!(told.asked.len() < 8, "{} times", told.asked.len());
}
