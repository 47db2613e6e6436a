//! Where conversations and runs are kept, used by sixty-four threads at once: in this process, and on a real PostgreSQL server by two.

use std::sync::Arc;
use std::time::Duration;

use querymend::{AnswerStatus, Conversation, Event, Stage, Turn, trace_id};
use querymend_server::clock::now;
use querymend_server::store::{InMemoryStore, PostgresSessionStore, SessionStore, StoredSession};
use querymend_testing::is_full_suite;
use querymend_testing::watchdog::{THREADS, run_concurrently, run_watched};
use tokio::runtime::Runtime;

/// Conversations and runs of one user that are kept.
const MOST: usize = 10;
const RUNS: usize = 20;

fn talk(user: &str) -> StoredSession {
    StoredSession {
        user: user.to_owned(),
        database: "shop".into(),
        at: now(),
        version: 1,
        conversation: Conversation::new(),
    }
}

fn turn(thread: usize, n: usize) -> Turn {
    Turn { question: format!("{thread} {n}"), sql: None, status: AnswerStatus::Answered, trace_id: trace_id() }
}

/// Each thread uses one of the shelves, which all keep the same.
fn race(what: &'static str, runtime: Runtime, shelves: Vec<Arc<dyn SessionStore>>) {
    // Turns that each thread adds to the conversation of all.
    let turns_each = if is_full_suite() { 5 } else { 2 };
    run_watched(what, move || {
        let shelf = |thread: usize| &shelves[thread % shelves.len()];
        // Nobody else on the server has this name.
        let user = format!("ann-{}", trace_id());
        let first = talk(&user);
        assert!(runtime.block_on(shelf(0).save_session(&first)).unwrap());
        let (id, user) = (first.conversation.id.as_str(), user.as_str());
        let faster: usize = run_concurrently(|thread| {
            let mut faster = 0;
            for n in 0..turns_each {
                loop {
                    let mut talk = runtime.block_on(shelf(thread).session(user, id)).unwrap().unwrap();
                    // Others come in between, which they may.
                    std::thread::yield_now();
                    talk.version += 1;
                    talk.conversation.asked += 1;
                    talk.conversation.turns.push(turn(thread, n));
                    if runtime.block_on(shelf(thread).save_session(&talk)).unwrap() {
                        break;
                    }
                    faster += 1;
                }
            }
            faster
        })
        .into_iter()
        .sum();
        let kept = runtime.block_on(shelf(0).session(user, id)).unwrap().unwrap();
        let turns = &kept.conversation.turns;
        assert_eq!(
            (kept.conversation.asked as usize, kept.version as usize),
            (THREADS * turns_each, 1 + THREADS * turns_each)
        );
        for thread in 0..THREADS {
            let own = turns.iter().filter(|turn| turn.question.split(' ').next() == Some(&thread.to_string()));
            assert!(
                own.map(|turn| turn.question.clone()).eq((0..turns_each).map(|n| turn_of(thread, n))),
                "in their order"
            );
        }
        let late = talk(user);
        // Many begin at once, and one user's conversations stay within bounds; so do runs.
        let run = [Event::Stage { stage: Stage::Generation, attempt: 1 }];
        run_concurrently(|thread| {
            for n in 0..turns_each {
                let new = talk(user);
                assert!(runtime.block_on(shelf(thread).save_session(&new)).unwrap());
                // What was begun just now is there, unless others have begun as many since.
                let known = runtime.block_on(shelf(thread).list_sessions(user, 1_000)).unwrap();
                assert!(known.iter().all(|one| one.user == user), "{known:?}");
                let digit = if (thread + n).is_multiple_of(4) { "0" } else { "1" };
                let id = format!("{}{digit}", &trace_id()[..35]);
                runtime.block_on(shelf(thread).save_trace(user, &id, &run)).unwrap();
            }
        });
        // Two that begin in the same moment may each make room.
        let kept = runtime.block_on(shelf(0).list_sessions(user, 1_000)).unwrap().len();
        assert!((MOST / 2..=MOST).contains(&kept), "{kept}");
        // One that was made before all others and is kept after them is there, and another one makes room for it.
        assert!(runtime.block_on(shelf(0).save_session(&late)).unwrap());
        assert!(runtime.block_on(shelf(0).session(user, &late.conversation.id)).unwrap().is_some());
        assert!(runtime.block_on(shelf(0).list_sessions(user, 1_000)).unwrap().len() <= MOST);
        // A run whose id ends in 0 makes room.
        let last = format!("{}0", &trace_id()[..35]);
        runtime.block_on(shelf(1).save_trace(user, &last, &run)).unwrap();
        assert!(runtime.block_on(shelf(0).trace(user, &last)).unwrap().is_some());
        // One that two want to forget is forgotten by one of them.
        let newest = &runtime.block_on(shelf(0).list_sessions(user, 1)).unwrap()[0].conversation.id;
        let gone = run_concurrently(|thread| runtime.block_on(shelf(thread).delete_session(user, newest)).unwrap());
        assert_eq!(gone.into_iter().filter(|gone| *gone).count(), 1);
        println!("{what}: {} turns in one conversation, {faster} times another was faster", turns.len());
    });
}

fn turn_of(thread: usize, n: usize) -> String {
    format!("{thread} {n}")
}

#[test]
fn in_memory_sessions_survive_races() {
    let folder = tempfile::tempdir().unwrap();
    let shelf = InMemoryStore::new(MOST, Duration::from_secs(3600), Some((folder.path().to_owned(), RUNS)));
    race("conversations in this process", Runtime::new().unwrap(), vec![Arc::new(shelf)]);
}

#[test]
fn postgres_sessions_survive_races() {
    let Ok(address) = std::env::var("QUERYMEND_TEST_STORE") else {
        eprintln!("skipped: QUERYMEND_TEST_STORE names no PostgreSQL server");
        return;
    };
    let runtime = Runtime::new().unwrap();
    // Connections of their own, as two processes have them.
    let open = || async {
        let shelf = PostgresSessionStore::open(&address, MOST, Duration::from_secs(3600), RUNS).await.unwrap();
        Arc::new(shelf) as Arc<dyn SessionStore>
    };
    let shelves = runtime.block_on(async { vec![open().await, open().await] });
    race("conversations on PostgreSQL", runtime, shelves);
}
