//! What is remembered: examples that a model is shown, questions that are answered without one, and what becomes of answers.

use std::sync::Arc;

use querymend::config::MemorySection;
use querymend::{Ask, Cancel, Confidence, Config, Event, Memory, Querymend, Status};
use querymend_memory::{Change, Example, ExampleStore, FileStore, Filter, Provenance, Standing, id};
use querymend_model::{Script, Static};
use querymend_sql::Policy;
use tempfile::TempDir;

use super::support::{Shop, listen};

const COUNT: &str = "SELECT count(*) AS n FROM customers";
const NAMES: &str = "SELECT name FROM products WHERE price > 100";

/// A shop with a memory of its own.
struct Remembering {
    shop: Shop,
    _folder: TempDir,
    store: Arc<FileStore>,
}

impl Remembering {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let embedder = Arc::new(Static::builtin().unwrap());
        let store = FileStore::open(folder.path().join("memory.db"), embedder).await.unwrap();
        Self { shop: Shop::new(), _folder: folder, store: Arc::new(store) }
    }

    async fn knows(&self, question: &str, sql: &str, standing: Standing) {
        let example = Example { standing, ..Example::new(question, sql, "shop", "sqlite") };
        self.store.add(&[example]).await.unwrap();
    }

    fn querymend(&self, says: &[&str], config: Config) -> (Querymend, Arc<Script>) {
        let script = Arc::new(Script::new(says.iter().copied()));
        let memory = Memory::new(self.store.clone(), "shop", "sqlite", &config.memory);
        (Querymend::new(self.shop.engine(), script.clone(), config).with_memory(memory), script)
    }

    async fn of(&self, question: &str) -> Option<Example> {
        self.store.get(&id(question, "shop")).await.unwrap()
    }
}

#[tokio::test]
async fn f08_what_is_like_the_question_is_shown_to_the_model() {
    let memory = Remembering::new().await;
    memory.knows("Which products cost more than 100?", NAMES, Standing::Verified).await;
    memory.knows("Which products cost more than 500?", "SELECT flurb FROM products", Standing::Verified).await;
    memory.knows("How many products cost more than 9?", "SELECT 1", Standing::Rejected).await;
    let (querymend, script) = memory.querymend(&["SELECT name FROM products WHERE price > 200"], Config::default());
    let (answer, events) = listen(&querymend, "Which products cost more than 200?", &Cancel::new()).await;
    assert_eq!(answer.status, Status::Answered);
    let asked = &script.asked()[0].messages[1].text;
    let shown = format!(
        "\n\nQuestion: Which products cost more than 100?\n{NAMES}\n\nQuestion: Which products cost more than 200?"
    );
    assert!(asked.ends_with(&shown), "{asked}");
    assert_eq!(answer.examples, [id("Which products cost more than 100?", "shop")]);
    let Some(Event::Recalled { known: None, examples, stale, .. }) =
        events.iter().find(|event| matches!(event, Event::Recalled { .. }))
    else {
        panic!("{events:?}")
    };
    assert!(examples.len() == 1 && examples[0].similarity > 0.8 && stale.len() == 1, "{examples:?} {stale:?}");
    // What does not fit the tables any more is marked, what was shown is counted.
    assert_eq!(memory.of("Which products cost more than 500?").await.unwrap().standing, Standing::Stale);
    assert_eq!(memory.of("Which products cost more than 100?").await.unwrap().uses, 1);
}

#[tokio::test]
async fn f09_the_same_question_is_answered_without_a_model_if_its_query_can_be_trusted() {
    let memory = Remembering::new().await;
    memory.knows("How many customers are there?", COUNT, Standing::Verified).await;
    memory.knows("How many are there?", COUNT, Standing::Unverified).await;
    let (querymend, script) = memory.querymend(&["SELECT 7 AS n"], Config::default());
    let (answer, _) = listen(&querymend, " how many CUSTOMERS are there", &Cancel::new()).await;
    assert_eq!((answer.status, answer.sql.as_deref(), answer.metadata.llm_calls), (Status::Answered, Some(COUNT), 0));
    assert_eq!(answer.confidence, Confidence::High);
    assert_eq!(answer.remembered, Some(id("How many customers are there?", "shop")));
    assert_eq!(answer.attempts[0].strategy, "memory");
    assert!(script.asked().is_empty());
    // Whoever wants it anew gets it anew, and what nobody has verified answers nothing.
    let fresh = Ask { question: "How many customers are there?".into(), fresh: true, ..Ask::default() };
    let answer = querymend.ask_with(fresh, &mut |_| {}, &Cancel::new()).await;
    assert_eq!((answer.remembered, answer.metadata.llm_calls), (None, 1));
    let (answer, _) = listen(&querymend, "How many are there?", &Cancel::new()).await;
    assert_eq!((answer.remembered, answer.metadata.llm_calls), (None, 1));
}

#[tokio::test]
async fn a_query_that_is_remembered_is_reviewed_like_any_other() {
    for (sql, deny) in [
        ("SELECT count(*) AS n FROM clients", ""),
        ("DELETE FROM customers", ""),
        (COUNT, "customers"),
        ("SELECT json_extract('{', '$.a') AS n FROM customers", ""),
    ] {
        let memory = Remembering::new().await;
        memory.knows("How many customers are there?", sql, Standing::Verified).await;
        let policy = Policy {
            deny_tables: Some(deny.to_string()).into_iter().filter(|d| !d.is_empty()).collect(),
            ..Policy::default()
        };
        let config = Config { policy, ..Config::default() };
        let (querymend, script) = memory.querymend(&["SELECT 7 AS n"], config);
        let (answer, events) = listen(&querymend, "How many customers are there?", &Cancel::new()).await;
        assert_eq!((answer.status, answer.sql.as_deref()), (Status::Answered, Some("SELECT 7 AS n")), "{sql}");
        assert_eq!((answer.remembered.as_ref(), script.asked().len(), answer.attempts.len()), (None, 1, 1), "{sql}");
        assert!(!events.iter().any(|event| matches!(event, Event::Executed { sql: ran, .. } if ran == sql)), "{sql}");
        let kept = memory.of("How many customers are there?").await.unwrap();
        assert_eq!(kept.standing, Standing::Stale, "{sql}");
        let asked = &script.asked()[0].messages[1].text;
        assert!(!asked.contains("clients") && !asked.contains("DELETE"), "{asked}");
    }
}

#[tokio::test]
async fn f09_an_answer_is_kept_when_the_next_message_is_no_complaint() {
    let memory = Remembering::new().await;
    let says =
        [COUNT, NAMES, COUNT, COUNT, "SELECT id FROM products", "SELECT name FROM products WHERE price < 0", NAMES];
    let (querymend, _) = memory.querymend(&says, Config::default());
    let mut session = querymend.session();
    let (ignore, cancel) = (&mut |_: &Event| {}, &Cancel::new());
    session.ask("How many customers are there?", ignore, cancel).await;
    assert!(memory.of("How many customers are there?").await.is_none(), "nobody has said anything yet");
    session.ask("Which products cost more than 100?", ignore, cancel).await;
    let kept = memory.of("How many customers are there?").await.unwrap();
    assert_eq!((kept.standing, kept.provenance, kept.sql.as_str()), (Standing::Unverified, Provenance::Auto, COUNT));
    // A complaint keeps the answer out.
    session.ask("No, that is wrong", ignore, cancel).await;
    assert!(memory.of("Which products cost more than 100?").await.is_none());
    assert!(memory.of("No, that is wrong").await.is_none());
    // The same once more, and no complaint: it can be trusted, and answers from now on.
    session.ask("How many customers are there?", ignore, cancel).await;
    session.ask("Which products are there?", ignore, cancel).await;
    assert_eq!(memory.of("How many customers are there?").await.unwrap().standing, Standing::Verified);
    // One that finds nothing is not kept, nor one that can only be understood with those before it.
    session.ask("Which products cost less than 0?", ignore, cancel).await;
    session.ask("And those that cost more?", ignore, cancel).await;
    session.ask("How many customers are there?", ignore, cancel).await;
    let all = memory.store.list(&Filter::default(), 0, 100).await.unwrap();
    let questions: Vec<&str> = all.iter().map(|example| example.question.as_str()).collect();
    assert_eq!(questions.len(), 2, "{questions:?}");
    let last = session.turns().last().unwrap();
    assert_eq!(last.remembered, Some(id("How many customers are there?", "shop")));
    // Somebody complains about what was remembered: it answers no longer.
    session.hear("That is wrong").await;
    let doubted = memory.of("How many customers are there?").await.unwrap();
    assert_eq!((doubted.standing, doubted.hurt), (Standing::Unverified, 2), "once as an example, once by itself");
}

#[tokio::test]
async fn f09_what_a_person_rejected_is_not_captured_again_and_what_was_saved_is_not_overwritten() {
    let memory = Remembering::new().await;
    let (querymend, _) = memory.querymend(&[COUNT, "SELECT name FROM products", COUNT, COUNT], Config::default());
    let question = "How many customers are there?";
    memory.knows(question, COUNT, Standing::Rejected).await;
    let mut session = querymend.session();
    let (ignore, cancel) = (&mut |_: &Event| {}, &Cancel::new());
    session.ask(question, ignore, cancel).await;
    session.ask("Which products are there?", ignore, cancel).await;
    assert_eq!(memory.of(question).await.unwrap().standing, Standing::Rejected);
    let of = querymend.memory().unwrap();
    assert!(of.save("How many people buy here?", COUNT).await.unwrap());
    assert!(!of.save("How many people buy here?", COUNT).await.unwrap(), "it is known");
    assert!(of.forget("How many people buy here?").await.unwrap());
    assert!(!of.forget("How many people buy here?").await.unwrap());
}

#[tokio::test]
async fn what_is_not_wanted_or_did_harm_is_not_recalled() {
    let off = Config { memory: MemorySection { examples: 0, ..MemorySection::default() }, ..Config::default() };
    let memory = Remembering::new().await;
    memory.knows("How many customers are here?", COUNT, Standing::Verified).await;
    let (querymend, script) = memory.querymend(&["SELECT 7 AS n"], off);
    let (answer, _) = listen(&querymend, "How many customers are there?", &Cancel::new()).await;
    assert_eq!(answer.status, Status::Answered);
    assert!(!script.asked()[0].messages[1].text.contains(COUNT), "no example is shown where none is wanted");
    let change = Change { hurt: 3, ..Change::default() };
    memory.store.change(&[(&id("How many customers are here?", "shop"), change)]).await.unwrap();
    let (answer, _) = listen(&querymend, "How many customers are here?", &Cancel::new()).await;
    assert_eq!(answer.remembered, None, "it did more harm than good");
}
