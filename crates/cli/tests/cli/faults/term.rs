//! A server that is told to end while many ask.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use querymend_testing::{is_full_suite, wait_until};
use serde_json::{Value, json};

use crate::audit::{HttpOutcome, post, start_server};
use crate::server::ScriptedModelServer;
use crate::{TestDir, signals};

const CLIENTS: usize = 32;

/// What came of all requests of one round.
#[derive(Default)]
struct RequestOutcomes {
    answered: Vec<String>,
    refused: Vec<String>,
    /// Nobody took them: the server listened no longer.
    not_accepted: Vec<String>,
    truncated: Vec<String>,
}

#[test]
#[allow(clippy::print_stderr, reason = "how much was tried is part of the result")]
fn sigterm_answers_all_accepted_requests() {
    let set = std::env::var("QUERYMEND_KILLS").ok().and_then(|count| count.parse().ok());
    let rounds: usize = set.unwrap_or(if is_full_suite() { 3 } else { 1 });
    let place = TestDir::with_demo();
    place.disable_model_discovery("");
    // Requests that run may go on as long as they take: what is cut off here was not waited for.
    place.write_file(
        "querymend.yaml",
        "providers: providers.toml\nmodels: models.toml\nserver: {limits: {requests_per_minute: 0, max_concurrent_per_user: 64, shutdown: 24h, stalled: 24h}}\nbudget: {time: 24h}\nlimits: {time: 24h}\ntrace: {max_traces: 0}\nmemory: {enabled: false}\n",
    );
    let model = ScriptedModelServer::with_replies(&["SELECT id FROM products WHERE category = 'Electronics'"]);
    let mut all = RequestOutcomes::default();
    for round in 0..rounds {
        let (mut child, address) = start_server(&place, &model.model);
        let (heard, answers) = (Arc::new(Mutex::new(RequestOutcomes::default())), Arc::new(AtomicUsize::new(0)));
        let clients: Vec<_> = (0..CLIENTS)
            .map(|client| {
                let (address, heard, answers) = (address.clone(), Arc::clone(&heard), Arc::clone(&answers));
                std::thread::spawn(move || {
                    for number in 0.. {
                        let id = format!("r{round}-{client}-{number}");
                        let (path, body) = match number % 3 {
                            0 => ("/v1/run", json!({"sql": format!("SELECT {number} AS n FROM products LIMIT 1")})),
                            1 => ("/v1/ask", json!({"question": "Which electronics are there?"})),
                            _ => ("/v1/check", json!({"sql": "SELECT nmae FROM products"})),
                        };
                        let reply = post(&address, path, &id, &body);
                        let mut heard = heard.lock().unwrap();
                        match reply {
                            HttpOutcome::Complete(200, _) => {
                                answers.fetch_add(1, Ordering::Relaxed);
                                // Only looking at a text is nothing that an audit is about.
                                if path != "/v1/check" {
                                    heard.answered.push(id);
                                }
                            }
                            HttpOutcome::Complete(503 | 429, body) => {
                                let problem: Value = serde_json::from_str(&body).unwrap();
                                assert!(problem.to_string().len() > 20, "{body}");
                                heard.refused.push(id);
                            }
                            HttpOutcome::NotAccepted => {
                                heard.not_accepted.push(id);
                                return;
                            }
                            other => {
                                heard.truncated.push(format!("{id}: {other:?}"));
                                return;
                            }
                        }
                    }
                })
            })
            .collect();
        wait_until("the clients are answered twice", || {
            assert!(child.try_wait().unwrap().is_none(), "the server is gone before it was told to end");
            answers.load(Ordering::Relaxed) >= 2 * CLIENTS
        });
        signals::terminate(&child);
        let ended = signals::exit_code(&mut child);
        clients.into_iter().for_each(|client| client.join().unwrap());
        assert_eq!(ended, Some(0), "round {round}");
        let heard = std::mem::take(&mut *heard.lock().unwrap());
        all.answered.extend(heard.answered);
        all.refused.extend(heard.refused);
        all.truncated.extend(heard.truncated);
        all.not_accepted.extend(heard.not_accepted);
    }
    assert!(all.truncated.is_empty(), "{:?}", all.truncated);
    let mut ends: HashMap<String, usize> = HashMap::new();
    for line in std::fs::read_to_string(place.path("audit.jsonl")).unwrap().lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        if line["action"] == "run" || line["action"] == "ask" {
            *ends.entry(line["request_id"].as_str().unwrap().to_owned()).or_default() += 1;
        }
    }
    let answered: HashSet<&String> = all.answered.iter().collect();
    assert!(ends.values().all(|count| *count == 1), "{ends:?}");
    let written: HashSet<&String> = ends.keys().collect();
    let lost: Vec<&&String> = answered.difference(&written).collect();
    assert!(lost.is_empty(), "answered, and not in the log: {lost:?}");
    // What was refused on the way may be in the log, as what it was; what nobody heard of must not have been done.
    let unheard: Vec<&String> = all.not_accepted.iter().filter(|id| written.contains(id)).collect();
    assert!(unheard.is_empty(), "in the log, and nobody was told: {unheard:?}");
    eprintln!(
        "SIGTERM {rounds} times under {CLIENTS} clients: {} answered, {} lines, {} refused, {} not taken, 0 half",
        answered.len(),
        written.len(),
        all.refused.len(),
        all.not_accepted.len()
    );
}
