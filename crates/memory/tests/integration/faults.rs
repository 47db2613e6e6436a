//! What networks do to the bytes between us and real servers that keep examples: what is found is right or the error is clear, what
//! was acknowledged is there, and the next call works.
//!
//!     scripts/stores.sh up, then QUERYMEND_TEST_FULL=1 cargo test -p querymend-memory --test integration faults -- --nocapture

#[path = "../../../net/tests/proxy/mod.rs"]
mod proxy;

use std::sync::Arc;
use std::time::{Duration, Instant};

use proxy::{Counts, Fault, Plan, Proxy, all, place, plans};
use querymend_memory::{Error, Example, ExampleQuery, ExampleStore, ScoredExample, open};
use querymend_model::StaticEmbedder;
use querymend_testing::{hang_timeout, is_full_suite};
use tokio::time::error::Elapsed;
use tokio::time::timeout;

use crate::servers;

/// Shortest time after which a store gives up a request to its server (ChromaDB; PostgreSQL has five seconds more).
const STORE_TIMEOUT: Duration = Duration::from_secs(30);
/// Longest time that one call waits for a silent server: opening a store may wait twice as long, and a search may ask three times.
const MAX_CALL: Duration = Duration::from_secs(240);
/// Maximum number of tries of a call that is slow because the machine is.
const MAX_TRIES: usize = 3;
/// Number of cases at once on each server. Those that stall do nothing but wait.
const AT_ONCE: usize = 6;
const STALLED_AT_ONCE: usize = 12;
/// The password of the server that `scripts/stores.sh` starts.
const SECRET: &str = "querymend";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Call {
    /// Opens the store and looks for something.
    Cold,
    /// Looks for something on a connection that was kept.
    Warm,
    /// Adds something on a connection that was kept.
    Add,
}

type Store = Arc<dyn ExampleStore>;

/// Returns after how long a call hangs.
fn call_timeout() -> Duration {
    MAX_CALL + hang_timeout()
}

/// Selects the plans of a quick run for the `call`-th kind of call: each fault once, in directions and places that alternate.
fn few(plans: &[Plan], call: usize) -> Vec<Plan> {
    let pick = |(fault, plans): (usize, &[Plan])| {
        let ways: Vec<&[Plan]> = plans.chunk_by(|a, b| a.way == b.way).collect();
        let way = ways[(call + fault) % ways.len()];
        way[(call + fault) % way.len()]
    };
    plans.chunk_by(|a, b| a.fault == b.fault).enumerate().map(pick).collect()
}

fn one(number: usize) -> Example {
    Example::new(
        &format!("How many parcels went to the harbour town number {number} last winter?"),
        &format!("SELECT count(*) FROM parcels WHERE town = {number} AND season = 'winter'"),
        "shop",
        "sqlite",
    )
}

async fn opened(address: &str) -> Result<Store, Error> {
    open(address, Arc::new(StaticEmbedder::builtin().unwrap())).await
}

async fn search(store: &Store) -> Result<Vec<ScoredExample>, Error> {
    let question = "How many parcels went to the harbour town number 7 last winter?";
    let sought = ExampleQuery {
        question,
        database: "shop",
        dialect: None,
        only_database: true,
        only_verified: false,
        limit: 12,
    };
    store.search(&sought).await
}

/// Makes a call, and repeats one that failed after the timeout of the store, `tries` tries in all.
///
/// On a slow machine a call may take longer than the store waits, although all bytes come.
async fn repeated<T, F>(tries: usize, mut call: impl FnMut() -> F) -> Result<Result<T, Error>, Elapsed>
where
    F: Future<Output = Result<T, Error>>,
{
    let mut tried = 0;
    loop {
        let begun = Instant::now();
        let outcome = timeout(call_timeout(), call()).await;
        tried += 1;
        let is_slow = matches!(outcome, Ok(Err(_))) && begun.elapsed() >= STORE_TIMEOUT;
        if !is_slow || tried >= tries {
            return outcome;
        }
    }
}

/// Opened where nothing is in the way, and asked once. On a machine with much to do a server may need a second try.
async fn well(address: &str) -> Store {
    for _ in 0..3 {
        if let Ok(store) = opened(address).await
            && search(&store).await.is_ok()
        {
            return store;
        }
    }
    panic!("{address} cannot be opened")
}

/// What is wrong with an error, if something is.
fn blame(error: &Error, fault: Fault) -> Option<String> {
    // A server that was cut off while it was told the password says that the password is wrong.
    let kind = error.is_transient() || matches!(fault, Fault::Garbage | Fault::HalfClose);
    let said = format!("{error} {:?} {error:?}", error.hint());
    let hint = error.hint().is_some_and(|hint| !hint.is_empty());
    (!kind || !hint || said.contains(SECRET)).then(|| format!("no clear error: {error:?}"))
}

/// Makes the call once. Returns whether what was found is right, and the store if the call opened one.
async fn attempt(
    through: &str,
    kept: Option<&Store>,
    call: Call,
    new: &Example,
    expected: &[ScoredExample],
) -> Result<(bool, Option<Store>), Error> {
    let fresh = if kept.is_none() { Some(opened(through).await?) } else { None };
    let store = kept.or(fresh.as_ref()).unwrap();
    let is_right = match call {
        Call::Cold | Call::Warm => search(store).await? == expected,
        Call::Add => {
            store.add(std::slice::from_ref(new)).await?;
            true
        }
    };
    Ok((is_right, fresh))
}

async fn suffer(
    address: &str,
    call: Call,
    plan: Plan,
    expected: &[ScoredExample],
    number: usize,
) -> (Counts, Vec<String>) {
    let mut counts = Counts { tried: 1, ..Counts::default() };
    let mut complaints = Vec::new();
    let (server, at) = place(address);
    let proxy = Proxy::start(server).await;
    let through = at(proxy.address.port());
    let kept = if call == Call::Cold { None } else { Some(well(&through).await) };
    // Of another database, so that it is not what is found.
    let new = Example::new(&one(1_000 + number).question, "SELECT 1", "other", "sqlite");
    proxy.arm(plan).await;
    let tries = if plan.fault.is_harmless() { MAX_TRIES } else { 1 };
    let outcome = repeated(tries, || attempt(&through, kept.as_ref(), call, &new, expected)).await;
    counts.struck = usize::from(proxy.has_struck());
    let mut fresh = None;
    let is_answered = matches!(outcome, Ok(Ok(_)));
    match outcome {
        Err(_) => {
            counts.hangs = 1;
            complaints.push("it hangs".into());
        }
        Ok(Ok((true, store))) => (counts.right, fresh) = (1, store),
        Ok(Ok((false, store))) => {
            (counts.wrong, fresh) = (1, store);
            complaints.push("what was found is wrong".into());
        }
        Ok(Err(error)) => {
            counts.errors = 1;
            complaints.extend(blame(&error, plan.fault));
            if plan.fault.is_harmless() {
                complaints.push(format!("it should have been waited for: {error:?}"));
            }
        }
    }
    proxy.heal().await;
    if call == Call::Add {
        let direct = well(address).await;
        let there = repeated(MAX_TRIES, || direct.get(&new.id)).await.unwrap().unwrap();
        match there {
            Some(there) if there != new => complaints.push(format!("half of it is kept: {there:?}")),
            None if is_answered => complaints.push("it was acknowledged, and is not there".into()),
            _ => {}
        }
    }
    let store = match kept.or(fresh) {
        Some(store) => store,
        None => well(&through).await,
    };
    // A store that waits on a stalled line is slow on any machine, and is not excused.
    let tries = if plan.fault == Fault::Stall { 1 } else { MAX_TRIES };
    let mut next = repeated(tries, || search(&store)).await;
    // A line that fell silent, or was fed garbage, after its answer came is like one that is slow: it costs one call, and no more.
    if is_answered && matches!(plan.fault, Fault::Stall | Fault::Garbage) && !matches!(next, Ok(Ok(_))) {
        next = repeated(MAX_TRIES, || search(&store)).await;
    }
    match next {
        Ok(Ok(found)) if found == expected => counts.recovered = 1,
        other => complaints.push(format!("the next call: {other:?}")),
    }
    drop(store);
    complaints.extend(proxy.is_left().await);
    (counts, complaints)
}

/// Tries all faults on one server, if there is one, and returns what is wrong.
async fn complaints(name: &'static str, server: Option<String>) -> Vec<String> {
    let Some(address) = server.map(|server| servers::fresh(&server)) else { return Vec::new() };
    let direct = repeated(MAX_TRIES, || opened(&address)).await.unwrap().unwrap();
    let examples: Vec<Example> = (0..40).map(one).collect();
    repeated(MAX_TRIES, || direct.add(&examples)).await.unwrap().unwrap();
    let expected: Arc<[ScoredExample]> = repeated(MAX_TRIES, || search(&direct)).await.unwrap().unwrap().into();
    assert_eq!(expected.len(), 12);
    // How much goes each way when nothing happens.
    let (server, at) = place(&address);
    let proxy = Proxy::start(server).await;
    let through = at(proxy.address.port());
    let store = repeated(MAX_TRIES, || opened(&through)).await.unwrap().unwrap();
    assert_eq!(*repeated(MAX_TRIES, || search(&store)).await.unwrap().unwrap(), *expected);
    let mut sizes = vec![(Call::Cold, proxy.most())];
    proxy.heal().await;
    repeated(MAX_TRIES, || search(&store)).await.unwrap().unwrap();
    sizes.push((Call::Warm, proxy.most()));
    proxy.heal().await;
    let other = [Example::new("How many harbours?", "SELECT 1", "other", "sqlite")];
    repeated(MAX_TRIES, || store.add(&other)).await.unwrap().unwrap();
    sizes.push((Call::Add, proxy.most()));
    let is_whole = is_full_suite() || std::env::var_os("QUERYMEND_FAULTS").is_some();
    let mut cases: Vec<(Call, Plan)> = Vec::new();
    for (number, (call, (sent, received))) in sizes.iter().enumerate() {
        let plans = plans(*sent, *received);
        let plans = if is_whole { plans } else { few(&plans, number) };
        cases.extend(plans.into_iter().map(|plan| (*call, plan)));
    }
    let tried = cases.into_iter().enumerate().map(|(number, (call, plan))| {
        let (address, expected) = (address.clone(), Arc::clone(&expected));
        let name = format!("{name} {call:?} {plan:?}");
        (plan.fault, (name, async move { suffer(&address, call, plan, &expected, number).await }))
    });
    let (stalled, others): (Vec<_>, Vec<_>) = tried.partition(|(fault, _)| *fault == Fault::Stall);
    let [stalled, others] = [stalled, others].map(|cases| cases.into_iter().map(|(_, case)| case));
    let ((stalled, mut why), (others, more)) = tokio::join!(all(stalled, STALLED_AT_ONCE), all(others, AT_ONCE));
    eprintln!("{name}: {sizes:?} bytes; stalled: {stalled:?}; others: {others:?}");
    why.extend(more);
    why
}

#[tokio::test(flavor = "multi_thread")]
async fn network_faults_give_correct_examples_or_clear_errors() {
    // Both at once: most of the time goes by waiting for servers that have fallen silent.
    let (mut all, more) =
        tokio::join!(complaints("postgres", servers::postgres()), complaints("chroma", servers::chroma()));
    all.extend(more);
    assert!(all.is_empty(), "{} complaints:\n{}", all.len(), all.join("\n"));
}
