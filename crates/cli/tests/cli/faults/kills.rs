//! Commands that are killed at any moment: what they said was kept is kept, and nothing is half.

use std::cell::Cell;
use std::collections::HashSet;
use std::process::{Output, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use querymend_testing::is_full_suite;
use serde_json::Value;

use crate::TestDir;
use crate::server::ScriptedModelServer;

/// Returns how often a command is killed; `QUERYMEND_KILLS` makes it more.
fn rounds() -> usize {
    let set: Option<usize> = std::env::var("QUERYMEND_KILLS").ok().and_then(|count| count.parse().ok());
    set.unwrap_or(if is_full_suite() { 15 } else { 4 }).max(1)
}

/// Kills a command at moments that are spread over the time that it takes, and a little beyond.
struct Killer {
    random: u64,
    usual: Duration,
}

impl Killer {
    fn after(usual: Duration) -> Self {
        let random = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64 | 1;
        Self { random, usual }
    }

    /// Kills a command at a random moment of one of so many equal parts of its time. If it ends before, it takes less time than
    /// was thought.
    fn run(&mut self, place: &TestDir, arguments: &[&str], part: usize, parts: usize) -> Output {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        let within = (self.random % 1_000) as f64 / 1_000.0;
        let moment = self.usual.mul_f64(1.25 * ((part % parts) as f64 + within) / parts as f64);
        let begun = Instant::now();
        let mut child = place.command(arguments).stdin(Stdio::null()).spawn().unwrap();
        while begun.elapsed() < moment {
            if child.try_wait().unwrap().is_some() {
                self.usual = self.usual.min(begun.elapsed());
                break;
            }
            std::thread::sleep(Duration::from_micros(500));
        }
        child.kill().unwrap();
        child.wait_with_output().unwrap()
    }
}

/// Returns the rounds: as many as are wanted, and more until something was killed, however fast the command has become.
fn until_killed(killed: &Cell<usize>) -> impl Iterator<Item = usize> {
    (0..rounds() + 100).take_while(move |round| *round < rounds() || killed.get() == 0)
}

fn list_examples(place: &TestDir) -> Vec<Value> {
    place.run(&["memory", "list", "--limit", "100000", "--format", "json"]).json().as_array().unwrap().clone()
}

#[test]
#[allow(clippy::print_stderr, reason = "how much was tried is part of the result")]
fn killed_seed_is_atomic() {
    const EACH: usize = 25;
    let place = TestDir::with_demo();
    let question = |round: usize, n: usize| format!("How many orders of round {round} have more than {n} things?");
    let file = |round: usize| {
        let one = |n| {
            format!(
                "- {{question: '{}', sql: SELECT count(*) FROM order_items WHERE quantity > {n}}}\n",
                question(round, n)
            )
        };
        place.write_file(&format!("{round}.yaml"), (0..EACH).map(one).collect::<String>());
    };
    file(0);
    let begun = Instant::now();
    assert_eq!(place.run(&["memory", "seed", "0.yaml", "--db", "shop.db"]).code, 0);
    let mut killer = Killer::after(begun.elapsed());
    let (mut acknowledged, killed, mut whole) = (HashSet::from([0]), Cell::new(0), 0);
    for part in until_killed(&killed) {
        let round = part + 1;
        file(round);
        let name = format!("{round}.yaml");
        let ended = killer.run(&place, &["memory", "seed", &name, "--db", "shop.db"], part, rounds());
        let said = String::from_utf8(ended.stderr).unwrap();
        if said.contains(&format!("{EACH} imported")) {
            acknowledged.insert(round);
        }
        killed.set(killed.get() + usize::from(ended.status.code().is_none()));
        let all = list_examples(&place);
        let of = |round: usize| {
            let words = format!("of round {round} have");
            all.iter().filter(|one| one["question"].as_str().unwrap().contains(&words)).count()
        };
        let count = of(round);
        assert!(
            count == EACH || count == 0 && !acknowledged.contains(&round),
            "round {round}: {count} of {EACH}: {said}"
        );
        whole += usize::from(count == EACH);
        assert!(all.iter().all(|one| one["sql"].as_str().unwrap().starts_with("SELECT count(*) FROM order_items")));
    }
    let all = list_examples(&place);
    for round in &acknowledged {
        for n in 0..EACH {
            assert!(all.iter().any(|one| one["question"] == question(*round, n)), "round {round}: {n} is lost");
        }
    }
    let killed = killed.get();
    assert!(killed > 0, "nothing was killed");
    // Found, too, and not only listed. Round 7 may have the same words in another order.
    let found = place.run(&["memory", "search", &question(0, 7), "--db", "shop.db", "--limit", "3"]);
    assert!(found.stdout.contains(&question(0, 7)), "{}", found.stdout);
    eprintln!(
        "memory seed: {} times, {killed} killed, {} acknowledged, {whole} there, 0 lost, 0 half",
        rounds(),
        acknowledged.len() - 1
    );
}

#[test]
#[allow(clippy::print_stderr, reason = "how much was tried is part of the result")]
fn killed_question_leaves_a_whole_trace_or_none() {
    let place = TestDir::with_demo();
    place.write_file(
        "known.yaml",
        "- {question: How many customers are there?, sql: SELECT count(*) AS n FROM customers}\n",
    );
    assert_eq!(place.run(&["memory", "seed", "known.yaml", "--db", "shop.db"]).code, 0);
    let model = ScriptedModelServer::with_replies(&["SELECT id, price FROM products WHERE category = 'Electronics'"]);
    let ask = |question: &'static str| ["ask", "--db", "shop.db", "--model", &model.model, "--format", "csv", question];
    let mut killers = Vec::new();
    // One that the model answers and that is mended, and one that is answered from memory, which counts that.
    for question in ["Which electronics are there?", "How many customers are there?"] {
        let begun = Instant::now();
        assert_eq!(place.run(&ask(question)).code, 0);
        killers.push((question, Killer::after(begun.elapsed())));
    }
    let runs = || -> HashSet<String> {
        let list = place.run(&["trace", "--format", "json"]).json();
        list.as_array().unwrap().iter().map(|run| run["id"].as_str().unwrap().to_owned()).collect()
    };
    let mut before = runs();
    assert_eq!(before.len(), 2);
    let (killed, mut acknowledged, mut kept) = (Cell::new(0), 0, 0);
    for round in until_killed(&killed) {
        let (question, killer) = &mut killers[round % 2];
        let ended = killer.run(&place, &ask(question), round / 2, rounds().div_ceil(2));
        killed.set(killed.get() + usize::from(ended.status.code().is_none()));
        let after = runs();
        let new: Vec<&String> = after.difference(&before).collect();
        assert!(new.len() <= 1 && before.is_subset(&after), "{new:?}");
        for id in &new {
            let events = place.run(&["trace", id, "--format", "json"]).json();
            let (first, last) = (&events[0], events.as_array().unwrap().last().unwrap());
            assert_eq!((&first["event"], &last["event"]), (&"started".into(), &"finished".into()), "{events}");
        }
        // Rows are shown when the run is kept, and not before.
        let rows = String::from_utf8(ended.stdout).unwrap();
        if !rows.is_empty() {
            acknowledged += 1;
            assert_eq!(new.len(), 1, "an answer was shown whose run is not there: {rows}");
        }
        kept += new.len();
        assert_eq!(list_examples(&place).len(), 1);
        before = after;
    }
    let known = list_examples(&place);
    assert!(known[0]["uses"].as_u64().is_some() || known[0].get("uses").is_none(), "{}", known[0]);
    // All of it still works.
    let again = place.run(&ask("How many customers are there?"));
    assert!(again.code == 0 && again.stdout.starts_with("n\n"), "{}", again.stderr);
    let killed = killed.get();
    eprintln!("ask: {} times, {killed} killed, {acknowledged} acknowledged, {kept} kept, 0 lost, 0 half", rounds());
}
