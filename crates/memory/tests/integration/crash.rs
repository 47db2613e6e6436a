//! What was acknowledged survives: a program that adds examples is killed again and again, at any moment.

use std::collections::HashSet;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use querymend_memory::{Example, ExampleFilter, ExampleQuery, ExampleStore, FileStore};
use querymend_model::StaticEmbedder;
use querymend_testing::{hang_timeout, is_full_suite};

const FILE: &str = "QUERYMEND_CRASH_FILE";
/// So many are added at once, now and then.
const BATCH: usize = 8;
/// Every eighth program is killed before its first acknowledgement is due, which may be before it has opened the file: within the
/// time that an earlier program took to acknowledge, at least this.
const MIN_START: Duration = Duration::from_millis(90);

async fn open(path: &Path) -> FileStore {
    FileStore::open(path, Arc::new(StaticEmbedder::builtin().unwrap())).await.unwrap()
}

/// The program that is killed. It does nothing where it is run as a test.
#[tokio::test]
async fn adds_examples_until_killed() {
    let Some(path) = std::env::var_os(FILE) else { return };
    let store = open(path.as_ref()).await;
    let round = std::env::var("QUERYMEND_CRASH_ROUND").unwrap();
    let mut out = std::io::stdout();
    for at in 0_usize.. {
        let count = if at % 5 == 4 { BATCH } else { 1 };
        let examples: Vec<Example> = (0..count)
            .map(|one| {
                Example::new(&format!("How many parcels went to p{round}x{at}x{one}z?"), "SELECT 1", "shop", "sqlite")
            })
            .collect();
        store.add(&examples).await.unwrap();
        let said: String = examples.iter().map(|one| format!("\nkept {} {}", one.id, one.question)).collect();
        out.write_all(format!("{said}\n").as_bytes()).unwrap();
        out.flush().unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn kills_lose_no_acknowledged_example() {
    let rounds = if is_full_suite() { 200 } else { 32 };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("examples.db");
    let mut dice = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64;
    let mut kept: HashSet<String> = HashSet::new();
    let mut before = 0;
    let mut start = MIN_START;
    for round in 0..rounds {
        let begun = Instant::now();
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "crash::adds_examples_until_killed", "--nocapture"])
            .env(FILE, &path)
            .env("QUERYMEND_CRASH_ROUND", round.to_string())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        let (acknowledge, acknowledged) = mpsc::channel::<(String, String)>();
        let reader = thread::spawn(move || {
            let whole = |line: String| {
                let mut words = line.strip_prefix("kept ")?.splitn(2, ' ').map(str::to_string);
                Some((words.next()?, words.next()?)).filter(|(_, question)| question.ends_with('?'))
            };
            out.lines().map_while(Result::ok).filter_map(whole).for_each(|one| drop(acknowledge.send(one)));
        });
        dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let fraction = (dice >> 33) as f64 / (1_u64 << 31) as f64;
        // On any machine most programs acknowledge some, and are then killed at any moment of the next few additions.
        let wanted = round % 8;
        let mut new = Vec::new();
        for _ in 0..wanted {
            match acknowledged.recv_timeout(hang_timeout()) {
                Ok(one) => {
                    if new.is_empty() {
                        start = begun.elapsed().max(MIN_START);
                    }
                    new.push(one);
                }
                Err(error) => {
                    child.kill().unwrap();
                    panic!("round {round}: {} of {wanted} were acknowledged: {error}", new.len());
                }
            }
        }
        let longest = if wanted == 0 { start } else { begun.elapsed() };
        thread::sleep(longest.mul_f64(fraction));
        child.kill().unwrap();
        child.wait().unwrap();
        reader.join().unwrap();
        new.extend(acknowledged.try_iter());
        let store = open(&path).await;
        for (at, (id, question)) in new.iter().enumerate() {
            assert!(store.get(id).await.unwrap().is_some(), "round {round}: {question} was acknowledged and is lost");
            if at % 4 == 0 {
                let sought = ExampleQuery {
                    question,
                    database: "shop",
                    dialect: None,
                    only_database: false,
                    only_verified: false,
                    limit: 5,
                };
                let found = store.search(&sought).await.unwrap();
                assert_eq!(&found[0].example.id, id);
            }
        }
        // What was written and not acknowledged any more is the last addition at most, and whole.
        let count = store.count(&ExampleFilter::default()).await.unwrap();
        let more = count - before - new.len();
        assert!([0, 1, BATCH].contains(&more), "round {round}: {more} more than were acknowledged");
        kept.extend(new.into_iter().map(|(id, _)| id));
        before = count;
    }
    let store = open(&path).await;
    let all: HashSet<String> =
        store.list(&ExampleFilter::default(), 0, usize::MAX).await.unwrap().into_iter().map(|one| one.id).collect();
    assert!(all.len() == before && kept.is_subset(&all) && kept.len() > rounds, "{} of {}", kept.len(), all.len());
    println!("{rounds} kills, {} acknowledged, {} there", kept.len(), all.len());
}
