//! What is remembered: examples that a model is shown, questions that are answered without one, and what becomes of answers.

use std::sync::Arc;

use querymend::config::MemorySection;
use querymend::{AnswerStatus, AskInput, CancellationToken, Confidence, Config, Event, Memory, Querymend};
use querymend_memory::{
    Example, ExampleFilter, ExampleStore, ExampleUpdate, FileStore, Provenance, VerificationStatus, example_id,
};
use querymend_model::{ScriptedModel, StaticEmbedder};
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
        let embedder = Arc::new(StaticEmbedder::builtin().unwrap());
        let store = FileStore::open(folder.path().join("memory.db"), embedder).await.unwrap();
        Self { shop: Shop::new(), _folder: folder, store: Arc::new(store) }
    }

    async fn knows(&self, question: &str, sql: &str, standing: VerificationStatus) {
        let example = Example { standing, ..Example::new(question, sql, "shop", "sqlite") };
        self.store.add(&[example]).await.unwrap();
    }

    fn querymend(&self, says: &[&str], config: Config) -> (Querymend, Arc<ScriptedModel>) {
        let script = Arc::new(ScriptedModel::new(says.iter().copied()));
        let memory = Memory::new(self.store.clone(), "shop", "sqlite", &config.memory);
        (Querymend::new(self.shop.engine(), script.clone(), config).with_memory(memory), script)
    }

    async fn of(&self, question: &str) -> Option<Example> {
        self.store.get(&example_id(question, "shop")).await.unwrap()
    }
}

#[tokio::test]
async fn shows_similar_examples_to_the_model() {
    let memory = Remembering::new().await;
    memory.knows("Which products cost more than 100?", NAMES, VerificationStatus::Verified).await;
    memory
        .knows("Which products cost more than 500?", "SELECT flurb FROM products", VerificationStatus::Verified)
        .await;
    memory.knows("How many products cost more than 9?", "SELECT 1", VerificationStatus::Rejected).await;
    let (querymend, script) = memory.querymend(&["SELECT name FROM products WHERE price > 200"], Config::default());
    let (answer, events) = listen(&querymend, "Which products cost more than 200?", &CancellationToken::new()).await;
    assert_eq!(answer.status, AnswerStatus::Answered);
    let asked = &script.requests()[0].messages[1].text;
    let shown = format!(
        "\n\nQuestion: Which products cost more than 100?\n{NAMES}\n\nQuestion: Which products cost more than 200?"
    );
    assert!(asked.ends_with(&shown), "{asked}");
    assert_eq!(answer.examples, [example_id("Which products cost more than 100?", "shop")]);
    let Some(Event::ExamplesRetrieved { known: None, examples, stale, .. }) =
        events.iter().find(|event| matches!(event, Event::ExamplesRetrieved { .. }))
    else {
        panic!("{events:?}")
    };
    assert!(examples.len() == 1 && examples[0].similarity > 0.8 && stale.len() == 1, "{examples:?} {stale:?}");
    // What does not fit the tables any more is marked, what was shown is counted.
    assert_eq!(memory.of("Which products cost more than 500?").await.unwrap().standing, VerificationStatus::Stale);
    assert_eq!(memory.of("Which products cost more than 100?").await.unwrap().uses, 1);
}

#[tokio::test]
async fn answers_from_verified_example_without_a_model() {
    let memory = Remembering::new().await;
    memory.knows("How many customers are there?", COUNT, VerificationStatus::Verified).await;
    memory.knows("How many are there?", COUNT, VerificationStatus::Unverified).await;
    let (querymend, script) = memory.querymend(&["SELECT 7 AS n"], Config::default());
    let (answer, _) = listen(&querymend, " how many CUSTOMERS are there", &CancellationToken::new()).await;
    assert_eq!(
        (answer.status, answer.sql.as_deref(), answer.metadata.llm_calls),
        (AnswerStatus::Answered, Some(COUNT), 0)
    );
    assert_eq!(answer.confidence, Confidence::High);
    assert_eq!(answer.remembered, Some(example_id("How many customers are there?", "shop")));
    assert_eq!(answer.attempts[0].strategy, "memory");
    assert!(script.requests().is_empty());
    // Whoever wants it anew gets it anew, and what nobody has verified answers nothing.
    let fresh =
        AskInput { question: "How many customers are there?".into(), bypass_memory: true, ..AskInput::default() };
    let answer = querymend.ask_with(fresh, &mut |_| {}, &CancellationToken::new()).await;
    assert_eq!((answer.remembered, answer.metadata.llm_calls), (None, 1));
    let (answer, _) = listen(&querymend, "How many are there?", &CancellationToken::new()).await;
    assert_eq!((answer.remembered, answer.metadata.llm_calls), (None, 1));
}

#[tokio::test]
async fn reviews_remembered_queries_like_drafts() {
    for (sql, deny) in [
        ("SELECT count(*) AS n FROM clients", ""),
        ("DELETE FROM customers", ""),
        (COUNT, "customers"),
        ("SELECT json_extract('{', '$.a') AS n FROM customers", ""),
    ] {
        let memory = Remembering::new().await;
        memory.knows("How many customers are there?", sql, VerificationStatus::Verified).await;
        let policy = Policy {
            deny_tables: Some(deny.to_string()).into_iter().filter(|d| !d.is_empty()).collect(),
            ..Policy::default()
        };
        let config = Config { policy, ..Config::default() };
        let (querymend, script) = memory.querymend(&["SELECT 7 AS n"], config);
        let (answer, events) = listen(&querymend, "How many customers are there?", &CancellationToken::new()).await;
        assert_eq!((answer.status, answer.sql.as_deref()), (AnswerStatus::Answered, Some("SELECT 7 AS n")), "{sql}");
        assert_eq!((answer.remembered.as_ref(), script.requests().len(), answer.attempts.len()), (None, 1, 1), "{sql}");
        assert!(!events.iter().any(|event| matches!(event, Event::Executed { sql: ran, .. } if ran == sql)), "{sql}");
        let kept = memory.of("How many customers are there?").await.unwrap();
        assert_eq!(kept.standing, VerificationStatus::Stale, "{sql}");
        let asked = &script.requests()[0].messages[1].text;
        assert!(!asked.contains("clients") && !asked.contains("DELETE"), "{asked}");
    }
}

#[tokio::test]
async fn captures_answer_unless_next_message_is_a_complaint() {
    let memory = Remembering::new().await;
    let says =
        [COUNT, NAMES, COUNT, COUNT, "SELECT id FROM products", "SELECT name FROM products WHERE price < 0", NAMES];
    let (querymend, _) = memory.querymend(&says, Config::default());
    let mut session = querymend.session();
    let (ignore, cancel) = (&mut |_: &Event| {}, &CancellationToken::new());
    session.ask("How many customers are there?", ignore, cancel).await;
    assert!(memory.of("How many customers are there?").await.is_none(), "nobody has said anything yet");
    session.ask("Which products cost more than 100?", ignore, cancel).await;
    let kept = memory.of("How many customers are there?").await.unwrap();
    assert_eq!(
        (kept.standing, kept.provenance, kept.sql.as_str()),
        (VerificationStatus::Unverified, Provenance::Auto, COUNT)
    );
    // A complaint keeps the answer out.
    session.ask("No, that is wrong", ignore, cancel).await;
    assert!(memory.of("Which products cost more than 100?").await.is_none());
    assert!(memory.of("No, that is wrong").await.is_none());
    // The same once more, and no complaint: it can be trusted, and answers from now on.
    session.ask("How many customers are there?", ignore, cancel).await;
    session.ask("Which products are there?", ignore, cancel).await;
    assert_eq!(memory.of("How many customers are there?").await.unwrap().standing, VerificationStatus::Verified);
    // One that finds nothing is not kept, nor one that can only be understood with those before it.
    session.ask("Which products cost less than 0?", ignore, cancel).await;
    session.ask("And those that cost more?", ignore, cancel).await;
    session.ask("How many customers are there?", ignore, cancel).await;
    let all = memory.store.list(&ExampleFilter::default(), 0, 100).await.unwrap();
    let questions: Vec<&str> = all.iter().map(|example| example.question.as_str()).collect();
    assert_eq!(questions.len(), 2, "{questions:?}");
    let last = session.answers().last().unwrap();
    assert_eq!(last.remembered, Some(example_id("How many customers are there?", "shop")));
    // Somebody complains about what was remembered: it answers no longer.
    session.record_feedback("That is wrong").await;
    let doubted = memory.of("How many customers are there?").await.unwrap();
    assert_eq!(
        (doubted.standing, doubted.hurt),
        (VerificationStatus::Unverified, 2),
        "once as an example, once by itself"
    );
}

#[tokio::test]
async fn keeps_rejected_and_saved_examples_unchanged() {
    let memory = Remembering::new().await;
    let (querymend, _) = memory.querymend(&[COUNT, "SELECT name FROM products", COUNT, COUNT], Config::default());
    let question = "How many customers are there?";
    memory.knows(question, COUNT, VerificationStatus::Rejected).await;
    let mut session = querymend.session();
    let (ignore, cancel) = (&mut |_: &Event| {}, &CancellationToken::new());
    session.ask(question, ignore, cancel).await;
    session.ask("Which products are there?", ignore, cancel).await;
    assert_eq!(memory.of(question).await.unwrap().standing, VerificationStatus::Rejected);
    let of = querymend.memory().unwrap();
    assert!(of.save("How many people buy here?", COUNT).await.unwrap());
    assert!(!of.save("How many people buy here?", COUNT).await.unwrap(), "it is known");
    assert!(of.remove("How many people buy here?").await.unwrap());
    assert!(!of.remove("How many people buy here?").await.unwrap());
}

#[tokio::test]
async fn skips_unwanted_and_harmful_examples() {
    let off = Config { memory: MemorySection { examples: 0, ..MemorySection::default() }, ..Config::default() };
    let memory = Remembering::new().await;
    memory.knows("How many customers are here?", COUNT, VerificationStatus::Verified).await;
    let (querymend, script) = memory.querymend(&["SELECT 7 AS n"], off);
    let (answer, _) = listen(&querymend, "How many customers are there?", &CancellationToken::new()).await;
    assert_eq!(answer.status, AnswerStatus::Answered);
    assert!(!script.requests()[0].messages[1].text.contains(COUNT), "no example is shown where none is wanted");
    let change = ExampleUpdate { hurt: 3, ..ExampleUpdate::default() };
    memory.store.update(&[(&example_id("How many customers are here?", "shop"), change)]).await.unwrap();
    let (answer, _) = listen(&querymend, "How many customers are here?", &CancellationToken::new()).await;
    assert_eq!(answer.remembered, None, "it did more harm than good");
}
