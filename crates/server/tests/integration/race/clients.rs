//! Sixty-four clients over real sockets, and sixty-four threads that ask the service itself.

use std::collections::BTreeMap;
use std::sync::Arc;

use querymend::resilience::Breakers;
use querymend::{CancellationToken, ProblemCode};
use querymend_memory::{ExampleFilter, ExampleStore, FileStore, VerificationStatus};
use querymend_model::{ScriptedModel, StaticEmbedder};
use querymend_server::audit::log::AuditLog;
use querymend_server::service::AskRequest;
use querymend_server::store::InMemoryStore;
use querymend_server::{RequestContext, Service, User};
use querymend_testing::watchdog::{THREADS, run_concurrently, run_watched};
use querymend_testing::{is_full_suite, wait_until};
use serde_json::json;
use tokio::runtime::Runtime;

use crate::http::house::{House, open, setup};
use crate::timing::{self, NEVER};

/// A server that lets all clients in, whose model always says the same.
fn opened(runtime: &Runtime) -> (House, Arc<ScriptedModel>) {
    let mut config = timing::config();
    let limits = &mut config.server.limits;
    (limits.requests_per_minute, limits.max_concurrent_per_user, limits.max_concurrent) = (0, 1_000, 1_000);
    limits.sessions = 10 + THREADS;
    let model = Arc::new(ScriptedModel::new(vec!["SELECT count(*) FROM products"; 20_000]));
    (runtime.block_on(open(model.clone(), config)), model)
}

#[test]
fn one_idempotency_key_gives_one_run() {
    let rounds = if is_full_suite() { 10 } else { 3 };
    run_watched("clients with one key", move || {
        let runtime = Runtime::new().unwrap();
        let (house, model) = opened(&runtime);
        let (mut first, mut again, mut refused) = (0, 0, 0);
        for round in 1..=rounds {
            let told = run_concurrently(|_| {
                runtime.block_on(async {
                    let request =
                        house.client.post(house.url("/v1/ask")).header("idempotency-key", format!("k{round}"));
                    let asked =
                        request.json(&json!({"question": "How many products are there?"})).send().await.unwrap();
                    (asked.status().as_u16(), asked.text().await.unwrap())
                })
            });
            let answers: Vec<&String> = told.iter().filter(|one| one.0 == 200).map(|one| &one.1).collect();
            assert!(told.iter().all(|one| [200, 409].contains(&one.0)), "{told:?}");
            assert!(!answers.is_empty() && answers.iter().all(|answer| *answer == answers[0]), "{answers:?}");
            first += 1;
            again += answers.len() - 1;
            refused += THREADS - answers.len();
            assert_eq!(model.requests().len(), round, "each key has its question asked once");
            let asked = house.audited().iter().filter(|line| line["action"] == "ask").count();
            assert_eq!(asked, round, "and written down once");
        }
        wait_until("nothing runs", || house.service.running_requests() == 0);
        println!("{rounds} keys: {first} ran, {again} were given the answer again, {refused} were told to wait");
    });
}

#[test]
fn no_turn_of_a_session_is_lost_or_duplicated() {
    /// Questions of each thread in the conversation that is its own.
    const OWN: u32 = 5;
    run_watched("conversations", || {
        let runtime = Runtime::new().unwrap();
        let (house, _) = opened(&runtime);
        let (service, user) = (&house.service, User::anonymous());
        let begin = || runtime.block_on(service.create_session(&user, None)).unwrap().conversation.id;
        let ask = |id: &str, question: String| {
            let asking = RequestContext { user: &user, request_id: "r", traceparent: None };
            let question = AskRequest { question, session_id: Some(id.to_owned()), ..AskRequest::default() };
            runtime.block_on(service.ask(&asking, &question, &mut |_| {}, &CancellationToken::new()))
        };
        let shared = begin();
        let told = run_concurrently(|thread| {
            let own = begin();
            for n in 1..=OWN {
                assert_eq!(ask(&own, format!("How many are there, {n}?")).unwrap().metadata.turns, n);
            }
            // Everybody asks one question in the conversation of all, until it is taken.
            let mut refused = 0;
            loop {
                match ask(&shared, format!("How many are there, asks {thread}?")) {
                    Ok(answer) => return (own, answer.metadata.turns, answer.trace_id, refused),
                    Err(problem) => assert_eq!(problem.code, ProblemCode::Conflict, "{problem:?}"),
                }
                refused += 1;
            }
        });
        let turns: BTreeMap<u32, &String> = told.iter().map(|(_, turn, trace, _)| (*turn, trace)).collect();
        assert!(turns.keys().copied().eq(1..=THREADS as u32), "each turn is somebody's: {turns:?}");
        let shared = runtime.block_on(service.session(&user, &shared)).unwrap();
        assert_eq!((shared.conversation.asked, shared.version), (THREADS as u32, 1 + THREADS as u64));
        // A conversation holds the last fifty.
        assert!(
            shared.conversation.turns.iter().map(|turn| &turn.trace_id).eq(turns.values().copied().skip(THREADS - 50))
        );
        for (own, ..) in &told {
            let talk = runtime.block_on(service.session(&user, own)).unwrap().conversation;
            assert!(talk.turns.iter().map(|turn| turn.question.as_str()).eq(
                (1..=OWN).map(|n| format!("How many are there, {n}?")).collect::<Vec<_>>().iter().map(String::as_str)
            ));
        }
        let refused: usize = told.iter().map(|one| one.3).sum();
        println!(
            "{} turns of {} conversations, {refused} told that another was faster",
            THREADS * (1 + OWN as usize),
            THREADS + 1
        );
    });
}

#[test]
fn feedback_counts_an_answer_once() {
    run_watched("a word on an answer", || {
        let runtime = Runtime::new().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("examples.db");
        let store = runtime.block_on(FileStore::open(path, Arc::new(StaticEmbedder::builtin().unwrap()))).unwrap();
        let store: Arc<dyn ExampleStore> = Arc::new(store);
        let model = Arc::new(ScriptedModel::new(vec!["SELECT count(*) FROM products"; 1_000]));
        let mut made = setup(folder.path(), model, timing::config());
        made.store = Some(Arc::clone(&store));
        let shelf = Arc::new(InMemoryStore::new(10, NEVER, None));
        let service = Service::new(made, Arc::new(Breakers::default()), shelf, AuditLog::default());
        let user = User::anonymous();
        let id = runtime.block_on(service.create_session(&user, None)).unwrap().conversation.id;
        let ask = |question: String| {
            let asking = RequestContext { user: &user, request_id: "r", traceparent: None };
            let question = AskRequest { question, session_id: Some(id.clone()), ..AskRequest::default() };
            runtime.block_on(service.ask(&asking, &question, &mut |_| {}, &CancellationToken::new())).is_ok()
        };
        let first = "How many products are there?";
        assert!(ask(first.to_owned()));
        // All of them speak after the same answer. None says anything against it, and that is one voice for it and not many.
        let taken =
            run_concurrently(|thread| ask(format!("How many products are there in the year {}?", 1900 + thread)));
        assert!(taken.iter().any(|taken| *taken));
        let known = runtime.block_on(store.list(&ExampleFilter::default(), 0, 1_000)).unwrap();
        assert!(known.iter().any(|one| one.question == first), "{known:?}");
        assert!(known.iter().all(|one| one.standing == VerificationStatus::Unverified), "{known:?}");
    });
}
