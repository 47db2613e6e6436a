//! Databases that vanish, and questions that are stopped at any stage.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use querymend::{Answer, AnswerStatus, CancellationToken, Config, Event, ProblemCode, Querymend, StopReason};
use querymend_engine::{self as engine, Limits};
use querymend_model::{self as model, BoxFuture, CancelSignal, Completion, CompletionRequest, Model, ScriptedModel};
use tokio::sync::Notify;

use super::support::{Answering, Call, Hooked, QUESTION, Shop, ask_engine, ended, listen, quiet, refusal};
use crate::long_deadline::ENDLESS;

#[tokio::test]
async fn reports_database_that_disappears_between_attempts() {
    let shop = Shop::new();
    let (file, ran) = (shop.file.clone(), Mutex::new(0));
    let engine = shop.hooked(move |call| match call {
        Call::Execute(_) => {
            let mut ran = ran.lock().unwrap();
            *ran += 1;
            if *ran == 1 {
                std::fs::remove_file(&file).unwrap();
                return Some(refusal("the moon is full"));
            }
            None
        }
        Call::Schema | Call::Probe(_) => None,
    });
    let lines = ["SELECT name FROM products", "SELECT price FROM products"];
    let told = ask_engine(engine, lines, Config::default(), QUESTION).await;
    assert_eq!(
        (told.answer.status, told.answer.stop),
        (AnswerStatus::Failed, StopReason::DatabaseFailed),
        "{:?}",
        told.answer
    );
    let problem = told.problem();
    assert_eq!(problem.code, ProblemCode::DatabaseUnavailable);
    assert!(problem.message.contains("shop.db") && problem.hint.is_some(), "{problem:?}");
    assert_eq!(told.answer.sql.as_deref(), Some("SELECT name FROM products"), "the best attempt is shown");
}

#[tokio::test]
async fn recovers_when_a_missing_database_returns() {
    let shop = Shop::new();
    let engine = shop.engine();
    let aside = shop.file.with_extension("aside");
    std::fs::rename(&shop.file, &aside).unwrap();
    let script = ScriptedModel::new(["SELECT count(*) FROM products"]);
    let querymend = Querymend::new(engine, Arc::new(script), quiet(Config::default()));
    let answer = querymend.ask(QUESTION).await;
    assert_eq!((answer.status, answer.metadata.llm_calls), (AnswerStatus::Failed, 0));
    std::fs::rename(&aside, &shop.file).unwrap();
    assert_eq!(querymend.ask(QUESTION).await.status, AnswerStatus::Answered);
}

#[tokio::test]
async fn reports_engine_failure_without_retrying_the_query() {
    for trouble in [
        engine::Error::Internal("stumbled".into()),
        engine::Error::WrongDialect { approved: "sqlite", expected: "postgres" },
    ] {
        let engine = Shop::new().hooked(move |call| matches!(call, Call::Execute(_)).then(|| trouble.clone()));
        let told = ask_engine(engine, ["SELECT name FROM products"], Config::default(), QUESTION).await;
        assert_eq!((told.answer.stop, told.asked.len()), (StopReason::DatabaseFailed, 1));
    }
}

/// Stops the question when this is about to happen, and gives what it ended with.
async fn stopped_at(stage: &'static str, drafts: &'static [&'static str]) -> (Answer, Vec<Event>) {
    let (shop, cancel) = (Shop::new(), CancellationToken::new());
    let (by_engine, by_model) = (cancel.clone(), cancel.clone());
    let hook = move |call: Call<'_>| {
        let now = match call {
            Call::Schema => "gather",
            Call::Probe(_) => "mend",
            Call::Execute(sql) if sql.starts_with("SELECT 1 FROM") => "look",
            Call::Execute(sql) if sql.starts_with("SELECT * FROM") => "fetch",
            Call::Execute(_) => "execute",
        };
        if now == stage {
            by_engine.cancel();
        }
        None
    };
    let engine = Hooked { inner: shop.engine(), hook: Box::new(hook) };
    let asked = Mutex::new(0);
    let model = Answering(move |_: &querymend_model::CompletionRequest| {
        let mut asked = asked.lock().unwrap();
        *asked += 1;
        let now = match *asked {
            1 => "draft",
            2 => "revise",
            _ => "analyse",
        };
        if now == stage {
            by_model.cancel();
            return Err(querymend_model::Error::Cancelled);
        }
        Ok(Completion::text(drafts[*asked - 1]))
    });
    let config = Config::default().with_max_attempts(2);
    let querymend = Querymend::new(Arc::new(engine), Arc::new(model), quiet(config));
    listen(&querymend, QUESTION, &cancel).await
}

#[tokio::test]
async fn cancels_a_question_at_every_stage() {
    let hopeless = &["SELECT flurb FROM products", "SELECT blorp FROM products", "SELECT max(price) FROM products"];
    for (stage, drafts) in [
        ("gather", &hopeless[..]),
        ("draft", hopeless),
        ("mend", &["SELECT id FROM products"]),
        ("execute", &["SELECT name FROM products"]),
        ("revise", hopeless),
        ("fetch", hopeless),
        ("analyse", hopeless),
    ] {
        let (answer, _) = stopped_at(stage, drafts).await;
        assert_eq!((answer.status, answer.stop), (AnswerStatus::Failed, StopReason::Cancelled), "{stage}: {answer:?}");
        let problem = answer.problem.unwrap();
        assert_eq!((problem.code, problem.message.as_str()), (ProblemCode::Cancelled, "the question was cancelled"));
        assert_eq!(answer.rows, None, "{stage}");
    }
    let nothing = &["SELECT name FROM customers WHERE city = 'Atlantis'", "SELECT name FROM customers"];
    let (answer, _) = stopped_at("look", nothing).await;
    assert_eq!((answer.status, answer.stop), (AnswerStatus::Failed, StopReason::Cancelled), "{answer:?}");
}

/// A model that says nothing until it is cancelled: no time ends it.
#[derive(Default)]
struct Silent {
    asked: Notify,
}

impl Model for Silent {
    fn name(&self) -> &str {
        "silent"
    }

    fn complete<'a>(
        &'a self,
        _: &'a CompletionRequest,
        _: &'a mut (dyn FnMut(&str) + Send),
        cancel: &'a CancelSignal,
    ) -> BoxFuture<'a, Completion> {
        Box::pin(async move {
            self.asked.notify_one();
            cancel.cancelled().await;
            Err(model::Error::Cancelled)
        })
    }
}

#[tokio::test]
async fn cancels_while_the_model_is_silent() {
    let (shop, model, cancel) = (Shop::new(), Arc::new(Silent::default()), CancellationToken::new());
    let querymend = Querymend::new(shop.engine(), model.clone(), Config::default());
    let stop = async {
        model.asked.notified().await;
        cancel.cancel();
    };
    let both = async { tokio::join!(listen(&querymend, QUESTION, &cancel), stop) };
    let ((answer, _), ()) = ended(both).await;
    assert_eq!(answer.stop, StopReason::Cancelled);
}

#[tokio::test]
async fn cancels_a_running_query() {
    let (sent, cancel) = (Arc::new(Notify::new()), CancellationToken::new());
    let sends = Arc::clone(&sent);
    let (_shop, engine) = Shop::new().hooked(move |call| {
        if matches!(call, Call::Execute(_)) {
            sends.notify_one();
        }
        None
    });
    // No limit ends it before the test gives up.
    let day = Duration::from_secs(24 * 60 * 60);
    let limits = Limits { time: day, ..Limits::default() };
    let config = quiet(Config::default().with_limits(limits).with_max_time(day));
    let querymend = Querymend::new(engine, Arc::new(ScriptedModel::new([ENDLESS])), config);
    let stop = async {
        sent.notified().await;
        // Most likely it runs by then. One that is stopped before it begins ends in the same way.
        tokio::time::sleep(Duration::from_millis(100)).await;
        cancel.cancel();
    };
    let both = async { tokio::join!(listen(&querymend, QUESTION, &cancel), stop) };
    let ((answer, _), ()) = ended(both).await;
    assert_eq!(answer.stop, StopReason::Cancelled, "{answer:?}");
}

#[tokio::test]
async fn cancelled_question_leaves_the_session_unchanged() {
    let shop = Shop::new();
    let lines = ["SELECT count(*) FROM products", "SELECT flurb FROM orders", "SELECT count(*) FROM orders"];
    let script = Arc::new(ScriptedModel::new(lines));
    let querymend = Querymend::new(shop.engine(), script.clone(), Config::default());
    let mut session = querymend.session();
    session.ask("How many products?", &mut |_| {}, &CancellationToken::new()).await;
    let cancel = CancellationToken::new();
    let stop = cancel.clone();
    let mut tell = |event: &Event| {
        if matches!(event, Event::Stage { stage: querymend::Stage::Generation, .. }) {
            stop.cancel();
        }
    };
    assert_eq!(session.ask("And orders?", &mut tell, &cancel).await.stop, StopReason::Cancelled);
    assert_eq!(querymend.error_history().get(session.id()), None, "being stopped is no failure of a query");
    session.ask("And orders, then?", &mut |_| {}, &CancellationToken::new()).await;
    let last = script.requests().last().unwrap().messages[1].text.clone();
    assert!(last.contains("How many products?") && !last.contains("And orders?\n"), "{last}");
}
