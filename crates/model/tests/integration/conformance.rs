//! What every model does, whoever it is: on each wire, from a recording, and from a script.

use std::sync::Arc;
use std::time::Duration;

use querymend_model::{
    CancelSignal, Completion, Error, FinishReason, Message, Model, ProviderProtocol, RecordingModel, ReplayModel,
    ScriptedModel, ScriptedReply,
};
use querymend_testing::hang_timeout;

use crate::common::{Act, Server, WIRES, ask, question};

/// What a model is made to do, in words that all kinds of model can be told.
#[derive(Clone, Copy)]
enum Task {
    Say(&'static str, FinishReason),
    TooLong,
    BadKey,
    Hang,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Wire(ProviderProtocol),
    Script,
    Replay,
}

const KINDS: [Kind; 5] = [
    Kind::Wire(ProviderProtocol::OpenAi),
    Kind::Wire(ProviderProtocol::Anthropic),
    Kind::Wire(ProviderProtocol::Gemini),
    Kind::Script,
    Kind::Replay,
];

/// A model that does these tasks one after the other, and what must live as long as it.
struct Stage {
    model: Arc<dyn Model>,
    server: Option<Server>,
    _folder: Option<tempfile::TempDir>,
}

async fn stage(kind: Kind, tasks: &[Task]) -> Stage {
    match kind {
        Kind::Wire(wire) => {
            let server = Server::start(wire, tasks.iter().map(|task| act(*task))).await;
            Stage { model: server.model(), server: Some(server), _folder: None }
        }
        Kind::Script => Stage { model: Arc::new(script(tasks)), server: None, _folder: None },
        Kind::Replay => {
            // What is played back was recorded from a script that did the same tasks.
            let folder = tempfile::tempdir().unwrap();
            let file = folder.path().join("takes.jsonl");
            let recorder = RecordingModel::new(Arc::new(script(tasks)), &file).unwrap();
            for _ in tasks {
                let _ = ask(&recorder, &question("How many orders?")).await;
            }
            Stage { model: Arc::new(ReplayModel::read(&file).unwrap()), server: None, _folder: Some(folder) }
        }
    }
}

fn act(task: Task) -> Act {
    match task {
        Task::Say(text, FinishReason::End) => Act::Say(text, "end"),
        Task::Say(text, FinishReason::Length) => Act::Say(text, "length"),
        Task::Say(text, FinishReason::Refused) => Act::Say(text, "refused"),
        Task::TooLong => {
            Act::Status(400, "", r#"{"error":{"message":"prompt is too long: 9 tokens > 8 maximum"}}"#.into())
        }
        Task::BadKey => Act::Status(401, "", r#"{"error":{"message":"who are you?"}}"#.into()),
        Task::Hang => Act::Hang(""),
    }
}

fn script(tasks: &[Task]) -> ScriptedModel {
    ScriptedModel::new(tasks.iter().map(|task| match *task {
        Task::Say(text, stopped) => ScriptedReply::Reply(Completion { stopped, ..Completion::text(text) }),
        Task::TooLong => ScriptedReply::Fail(Error::ContextTooLong { model: "script".into(), message: "9 > 8".into() }),
        Task::BadKey => ScriptedReply::Fail(Error::Auth {
            model: "script".into(),
            message: "who?".into(),
            hint: "check the key".into(),
        }),
        Task::Hang => ScriptedReply::Hang,
    }))
}

#[tokio::test]
async fn streamed_pieces_equal_the_reply_text() {
    for kind in KINDS {
        for text in ["SELECT count(*) FROM orders", "Grüße, 你好 🙂 und mehr", "a\n\n\"b\"\\ \u{1}", ""] {
            let stage = stage(kind, &[Task::Say(text, FinishReason::End)]).await;
            assert!(!stage.model.name().is_empty());
            let (reply, watched) = ask(&*stage.model, &question("How many orders?")).await;
            let reply = reply.unwrap();
            assert_eq!(reply.text, text, "{kind:?}");
            assert_eq!(watched.concat(), text, "{kind:?}");
            assert!(watched.iter().all(|piece| !piece.is_empty()), "{kind:?}: {watched:?}");
            assert!(text.split(' ').count() < 2 || watched.len() > 1, "{kind:?} streams");
            assert_eq!(reply.stopped, FinishReason::End, "{kind:?}");
            assert!(!reply.model.is_empty());
        }
    }
}

#[tokio::test]
async fn replies_have_a_finish_reason() {
    for kind in KINDS {
        for stopped in [FinishReason::Length, FinishReason::Refused] {
            let stage = stage(kind, &[Task::Say("I will not say that", stopped)]).await;
            let reply = ask(&*stage.model, &question("How many orders?")).await.0.unwrap();
            assert_eq!((reply.stopped, reply.text.as_str()), (stopped, "I will not say that"), "{kind:?}");
        }
    }
}

#[tokio::test]
async fn errors_have_the_same_kind_in_every_model() {
    for kind in KINDS {
        let stage = stage(kind, &[Task::TooLong, Task::BadKey, Task::Say("fine", FinishReason::End)]).await;
        let (first, watched) = ask(&*stage.model, &question("How many orders?")).await;
        assert!(matches!(first, Err(Error::ContextTooLong { .. })), "{kind:?}: {first:?}");
        assert!(watched.is_empty());
        let second = ask(&*stage.model, &question("How many orders?")).await.0;
        assert!(matches!(second, Err(Error::Auth { .. })), "{kind:?}: {second:?}");
        for error in [first, second].into_iter().filter_map(Result::err) {
            assert!(!error.is_transient() && error.hint().is_some());
        }
        let third = ask(&*stage.model, &question("How many orders?")).await.0.unwrap();
        assert_eq!(third.text, "fine", "an error does not outlive its request");
    }
}

#[tokio::test]
async fn sends_nothing_for_a_request_cancelled_beforehand() {
    for kind in KINDS {
        let stage = stage(kind, &[Task::Say("fine", FinishReason::End)]).await;
        let cancel = CancelSignal::new();
        cancel.cancel();
        let question = question("How many orders?");
        let reply = stage.model.complete(&question, &mut |_| panic!("nothing is said"), &cancel).await;
        assert_eq!(reply, Err(Error::Cancelled), "{kind:?}");
        assert!(stage.server.is_none_or(|server| server.asked().is_empty()), "{kind:?}");
    }
}

#[tokio::test]
async fn hanging_requests_are_cancelled_or_time_out() {
    // A recording never hangs.
    for kind in KINDS.into_iter().filter(|kind| *kind != Kind::Replay) {
        let stage = stage(kind, &[Task::Hang, Task::Hang]).await;
        let cancel = CancelSignal::new();
        // A script hangs as soon as it is asked, a server once the request is there.
        let stop = async {
            while stage.server.as_ref().is_some_and(|server| server.asked().is_empty()) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            cancel.cancel();
        };
        let endless = question("How many orders?").timeout(Duration::MAX);
        let mut ignore = |_: &str| {};
        let both = async { tokio::join!(stage.model.complete(&endless, &mut ignore, &cancel), stop) };
        let reply = tokio::time::timeout(hang_timeout(), both).await.map(|(reply, ())| reply);
        assert_eq!(reply, Ok(Err(Error::Cancelled)), "{kind:?}");
        let time = Duration::from_millis(80);
        let reply = ask(&*stage.model, &question("How many orders?").timeout(time)).await.0;
        assert!(matches!(reply, Err(Error::Timeout { after, .. }) if after == time), "{kind:?}: {reply:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_requests_get_their_own_replies() {
    for wire in WIRES {
        let server = Server::start(wire, vec![Act::EchoTogether(32); 32]).await;
        let model = server.model();
        let asking: Vec<_> = (0..32)
            .map(|number| {
                let model = model.clone();
                tokio::spawn(async move {
                    let text = format!("question {number} of many");
                    let (reply, watched) = ask(&*model, &question(&text)).await;
                    assert_eq!(reply.unwrap().text, text);
                    assert_eq!(watched.concat(), text);
                })
            })
            .collect();
        for one in asking {
            one.await.unwrap();
        }
        assert_eq!(server.asked().len(), 32);
        assert_eq!(server.busiest(), 32, "they run side by side");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn recordings_and_scripts_are_thread_safe() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("takes.jsonl");
    let server = Server::start(ProviderProtocol::OpenAi, []).await;
    let script = Arc::new(ScriptedModel::new((0..32).map(|number| format!("line {number}"))));
    let recorder: Arc<dyn Model> = Arc::new(RecordingModel::new(server.model(), &file).unwrap());
    for round in 0..2 {
        let model = if round == 0 { recorder.clone() } else { Arc::new(ReplayModel::read(&file).unwrap()) };
        let asking: Vec<_> = (0..32)
            .map(|number| {
                let (model, script) = (model.clone(), script.clone());
                tokio::spawn(async move {
                    let text = format!("question {number} {}", "with a long tail ".repeat(200));
                    let reply = ask(&*model, &question(&text)).await.0.unwrap();
                    assert_eq!(reply.text.trim_end(), text.trim_end());
                    if round == 0 { ask(&*script, &question("x")).await.0.unwrap().text } else { String::new() }
                })
            })
            .collect();
        let mut lines = Vec::new();
        for one in asking {
            lines.push(one.await.unwrap());
        }
        if round == 0 {
            lines.sort();
            lines.dedup();
            assert_eq!(lines.len(), 32, "each line is said once");
            assert_eq!((script.remaining(), script.requests().len()), (0, 32));
        }
    }
}

#[tokio::test]
async fn sends_the_error_in_the_same_conversation() {
    for wire in WIRES {
        let server =
            Server::start(wire, [Act::Say("SELECT nme FROM t", "end"), Act::Say("SELECT name FROM t", "end")]).await;
        let model = server.model();
        let mut request = question("List the names");
        let first = ask(&*model, &request).await.0.unwrap();
        request.messages.push(Message::assistant(first.text));
        request.messages.push(Message::user("no such column: nme"));
        let second = ask(&*model, &request).await.0.unwrap();
        assert_eq!(second.text, "SELECT name FROM t");
        let (_, body) = &server.asked()[1];
        let sent = body.to_string();
        let places: Vec<_> =
            ["List the names", "SELECT nme FROM t", "no such column: nme"].map(|text| sent.find(text)).into();
        assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{sent}");
    }
}

#[tokio::test]
async fn replay_rejects_unrecorded_requests() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("takes.jsonl");
    let busy = Error::RateLimited { model: "script".into(), message: "slow".into(), retry_after: None };
    let lines = [ScriptedReply::Fail(busy.clone()), "first".into(), "second".into(), "third".into()];
    let recorder = RecordingModel::new(Arc::new(ScriptedModel::new(lines)), &file).unwrap();
    for text in ["List the cheap orders", "List the cheap orders", "List the cheap orders", "List all customers"] {
        let _ = ask(&recorder, &question(text)).await;
    }
    let cancel = CancelSignal::new();
    cancel.cancel();
    assert_eq!(recorder.complete(&question("x"), &mut |_| {}, &cancel).await, Err(Error::Cancelled));
    assert_eq!(std::fs::read_to_string(&file).unwrap().lines().count(), 4, "what was cancelled is not recorded");

    let spec = format!("replay:{}", file.display());
    let replay = querymend_model::open(&spec, &querymend_model::Providers::builtin().unwrap()).unwrap();
    assert_eq!(replay.name(), spec);
    let cheap = question("List the cheap orders");
    assert_eq!(ask(&*replay, &question("List all customers")).await.0.unwrap().text, "third", "in any order");
    assert_eq!(ask(&*replay, &cheap).await.0, Err(busy), "errors are played back too");
    for expected in ["first", "second", "second"] {
        assert_eq!(ask(&*replay, &cheap).await.0.unwrap().text, expected);
    }
    let error = ask(&*replay, &question("List the cheapest orders")).await.0.unwrap_err();
    let said = error.to_string();
    assert!(said.contains("/messages/1/text, character 15") && said.contains("cheapest"), "{said}");
    assert!(!error.is_transient() && error.hint().is_some());

    std::fs::write(&file, "{\"request\": 1}\n").unwrap();
    let error = ReplayModel::read(&file).err().unwrap();
    assert!(error.to_string().contains("takes.jsonl:1:"), "{error}");
}

#[tokio::test]
async fn scripted_model_replies_in_order_and_keeps_requests() {
    let script = ScriptedModel::new(["one", "two"]);
    assert_eq!(ask(&script, &question("a")).await.0.unwrap().text, "one");
    assert_eq!(ask(&script, &question("b")).await.0.unwrap().text, "two");
    let error = ask(&script, &question("c")).await.0.unwrap_err();
    assert!(error.to_string().contains("request 3"), "{error}");
    let asked: Vec<String> = script.requests().iter().map(|request| request.messages[1].text.clone()).collect();
    assert_eq!(asked, ["a", "b", "c"]);
}
