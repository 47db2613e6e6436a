//! What networks do to the bytes between us and real servers that keep examples: what is found is right or the error is clear, what
//! was acknowledged is there, and the next call works.
//!
//!     scripts/stores.sh up, then cargo test --workspace --test faults f06 -- --nocapture

#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stderr)]

#[path = "../../net/tests/proxy/mod.rs"]
mod proxy;
#[path = "common/servers.rs"]
mod servers;

use std::sync::Arc;
use std::time::Duration;

use proxy::{Counts, Fault, Plan, Proxy, all, place, plans};
use querymend_memory::{Error, Example, ExampleStore, Found, Sought, open};
use querymend_model::Static;
use tokio::time::timeout;

/// Stores wait for half a minute, or twice that when they are opened, before they give a server up, and one search may ask it three
/// times.
const HUNG: Duration = Duration::from_secs(240);
/// Those that wait do nothing else, so there may be many.
const AT_ONCE: usize = 12;
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

fn one(number: usize) -> Example {
    Example::new(
        &format!("How many parcels went to the harbour town number {number} last winter?"),
        &format!("SELECT count(*) FROM parcels WHERE town = {number} AND season = 'winter'"),
        "shop",
        "sqlite",
    )
}

async fn opened(address: &str) -> Result<Store, Error> {
    open(address, Arc::new(Static::builtin().unwrap())).await
}

async fn search(store: &Store) -> Result<Vec<Found>, Error> {
    let question = "How many parcels went to the harbour town number 7 last winter?";
    let sought =
        Sought { question, database: "shop", dialect: None, only_database: true, only_verified: false, most: 12 };
    store.search(&sought).await
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

async fn suffer(address: &str, call: Call, plan: Plan, expected: &[Found], number: usize) -> (Counts, Vec<String>) {
    let mut counts = Counts { tried: 1, ..Counts::default() };
    let mut complaints = Vec::new();
    let (server, at) = place(address);
    let proxy = Proxy::start(server).await;
    let through = at(proxy.address.port());
    let kept = if call == Call::Cold { None } else { Some(well(&through).await) };
    // Of another database, so that it is not what is found.
    let new = Example::new(&one(1_000 + number).question, "SELECT 1", "other", "sqlite");
    proxy.arm(plan).await;
    let told = async {
        let fresh = if kept.is_none() { Some(opened(&through).await?) } else { None };
        let store = kept.as_ref().or(fresh.as_ref()).unwrap();
        let outcome = match call {
            Call::Cold | Call::Warm => search(store).await.map(|found| found == expected),
            Call::Add => store.add(std::slice::from_ref(&new)).await.map(|_| true),
        };
        outcome.map(|is_right| (is_right, fresh))
    };
    let outcome = timeout(HUNG, told).await;
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
        let there = well(address).await.get(&new.id).await.unwrap();
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
    let mut next = timeout(HUNG, search(&store)).await;
    // A line that fell silent, or was fed garbage, after its answer came is like one that is slow: it costs one call, and no more.
    if is_answered && matches!(plan.fault, Fault::Stall | Fault::Garbage) && !matches!(next, Ok(Ok(_))) {
        next = timeout(HUNG, search(&store)).await;
    }
    match next {
        Ok(Ok(found)) if found == expected => counts.recovered = 1,
        other => complaints.push(format!("the next call: {other:?}")),
    }
    drop(store);
    complaints.extend(proxy.is_left().await);
    (counts, complaints)
}

#[tokio::test(flavor = "multi_thread")]
async fn f06_whatever_the_network_does_examples_are_right_or_the_error_is_clear() {
    let mut complaints = Vec::new();
    for (name, address) in [("postgres", servers::postgres()), ("chroma", servers::chroma())] {
        let Some(address) = address.map(|address| servers::fresh(&address)) else { continue };
        let direct = opened(&address).await.unwrap();
        direct.add(&(0..40).map(one).collect::<Vec<_>>()).await.unwrap();
        let expected: Arc<[Found]> = search(&direct).await.unwrap().into();
        assert_eq!(expected.len(), 12);
        // How much goes each way when nothing happens.
        let (server, at) = place(&address);
        let proxy = Proxy::start(server).await;
        let store = opened(&at(proxy.address.port())).await.unwrap();
        assert_eq!(*search(&store).await.unwrap(), *expected);
        let mut sizes = vec![(Call::Cold, proxy.most())];
        proxy.heal().await;
        search(&store).await.unwrap();
        sizes.push((Call::Warm, proxy.most()));
        proxy.heal().await;
        let other = Example::new("How many harbours?", "SELECT 1", "other", "sqlite");
        store.add(&[other]).await.unwrap();
        sizes.push((Call::Add, proxy.most()));
        let cases: Vec<(Call, Plan)> = sizes
            .iter()
            .flat_map(|(call, (sent, received))| plans(*sent, *received).into_iter().map(|plan| (*call, plan)))
            .collect();
        let tried = cases.into_iter().enumerate().map(|(number, (call, plan))| {
            let (address, expected) = (address.clone(), Arc::clone(&expected));
            (format!("{name} {call:?} {plan:?}"), async move { suffer(&address, call, plan, &expected, number).await })
        });
        let (counts, why) = all(tried, AT_ONCE).await;
        eprintln!("{name}: {sizes:?} bytes; {counts:?}");
        complaints.extend(why);
    }
    assert!(complaints.is_empty(), "{} complaints:\n{}", complaints.len(), complaints.join("\n"));
}
