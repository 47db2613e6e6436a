//! Every way in which a question can end, and how protocols say it.

use std::collections::HashSet;
use std::time::Duration;

use querymend::resilience::{Breakers, ManualClock};
use querymend::{AnswerStatus, Confidence, Config, ProblemCode, Querymend, StopReason};
use querymend_engine as engine;
use querymend_model::{Completion, ScriptedReply, Usage};
use std::sync::Arc;

use super::support::{
    Call, Hooked, QUESTION, Shop, Told, ask, ask_engine, hopeless, listen, quiet, refusal, refusing, unreachable_model,
};
use querymend::CancellationToken;
use querymend_engine::Engine;
use querymend_model::ScriptedModel;

fn gone() -> engine::Error {
    engine::Error::Unavailable {
        what: "the file is gone".into(),
        hint: "find it".into(),
        transient: false,
        cause: None,
    }
}

/// The tables of a shop without a database.
fn offline() -> Arc<dyn Engine> {
    let schema = querymend_sql::Schema::from_ddl(
        "CREATE TABLE products (product_id INTEGER PRIMARY KEY, name TEXT, price REAL)",
        &querymend_sql::dialect::SQLITE,
    );
    Arc::new(querymend_engine::OfflineEngine::new("shop.sql", schema.unwrap(), &querymend_sql::dialect::SQLITE))
}

#[tokio::test]
async fn drafts_and_checks_sql_without_a_database() {
    for (drafts, status, sql, calls) in [
        (vec!["SELECT name FROM products".to_string()], AnswerStatus::Drafted, "SELECT name FROM products", 1),
        // Rules mend, and the model is asked again, as with a database.
        (vec!["SELECT id FROM products".into()], AnswerStatus::Drafted, "SELECT product_id FROM products", 1),
        (
            vec![hopeless("flurb"), "SELECT price FROM products".into()],
            AnswerStatus::Drafted,
            "SELECT price FROM products",
            2,
        ),
        // What no check lets pass is not handed out as a draft.
        (["flurb", "blorp", "wibble"].map(hopeless).to_vec(), AnswerStatus::GaveUp, "SELECT wibble FROM products", 3),
    ] {
        let told = ask_engine((None, offline()), drafts, Config::default(), QUESTION).await;
        let answer = &told.answer;
        assert_eq!((answer.status, told.sql(), told.asked.len()), (status, sql, calls), "{answer:?}");
        assert_eq!((answer.rows.as_ref(), answer.confidence), (None, Confidence::Low));
        assert!(!answer.fallback && answer.metadata.tool_executions == 0, "{answer:?}");
    }
}

fn costing(text: String, usage: Usage) -> Completion {
    Completion { usage, ..Completion::text(text) }
}

/// One question for each reason to stop.
async fn every_end() -> Vec<(StopReason, Told)> {
    let config = || Config::default().with_fallback(false);
    let three = || [hopeless("flurb"), hopeless("blorp"), hopeless("wibble")];
    let mut all = Vec::new();
    let good = "SELECT name FROM products";
    all.push((StopReason::Answered, ask([good], config(), QUESTION).await));
    all.push((StopReason::Chat, ask(["Hello, ask me about the shop."], config(), "Hello!").await));
    all.push((StopReason::MaxAttempts, ask(three(), config(), QUESTION).await));
    all.push((StopReason::RepeatedSql, ask([hopeless("flurb"), hopeless("FLURB")], config(), QUESTION).await));
    let same = [hopeless("flurb"), "SELECT flurb, name FROM products".into()];
    all.push((StopReason::SameError, ask(same, config(), QUESTION).await));
    let denied = || Shop::new().hooked(refusing([refusal("access to products.name is prohibited")]));
    all.push((StopReason::NotRetryable, ask_engine(denied(), [good], config(), QUESTION).await));
    let off = config().with_self_correction(false);
    all.push((StopReason::CorrectionOff, ask([hopeless("flurb")], off.clone(), QUESTION).await));
    all.push((StopReason::CorrectionOff, ask(["DROP TABLE products"], off, QUESTION).await));
    let odd = [refusal("the moon is full"), refusal("the moon is new")];
    let odd = Shop::new().hooked(refusing(odd));
    all.push((
        StopReason::RetryPolicy,
        ask_engine(odd, [good, "SELECT price FROM products"], config(), QUESTION).await,
    ));
    let tokens = Usage { input: 90, output: 20, cost_usd: None };
    let tokens = [costing(hopeless("flurb"), tokens)];
    all.push((StopReason::TokenBudget, ask(tokens, config().with_max_tokens(100), QUESTION).await));
    let usd = Usage { input: 1, output: 1, cost_usd: Some(0.5) };
    let usd = [costing(hopeless("flurb"), usd)];
    all.push((StopReason::CostBudget, ask(usd, config().with_max_cost_usd(0.5), QUESTION).await));
    let slow = |call: Call<'_>| match call {
        Call::Execute(_) => {
            std::thread::sleep(Duration::from_millis(60));
            Some(engine::Error::TimedOut { after: Duration::from_millis(60) })
        }
        Call::Schema | Call::Probe(_) => None,
    };
    let short = config().with_max_time(Duration::from_millis(50));
    all.push((StopReason::TimeBudget, ask_engine(Shop::new().hooked(slow), [good], short, QUESTION).await));
    all.push((StopReason::ModelFailed, ask([ScriptedReply::Fail(unreachable_model())], config(), QUESTION).await));
    let absent = Shop::new().hooked(|call| (call == Call::Schema).then(gone));
    all.push((StopReason::DatabaseFailed, ask_engine(absent, [good], config(), QUESTION).await));
    all.push((StopReason::BadQuestion, ask([good], config(), " \n").await));
    all.push((StopReason::NotRun, ask_engine((None, offline()), [good], config(), QUESTION).await));
    // Only where values are read is it known that none covers the subject.
    let (shop, script) = (Shop::new(), Arc::new(ScriptedModel::new([good])));
    let querymend = Querymend::new(shop.engine(), script, config());
    let (answer, events) = listen(&querymend, "List all employees", &CancellationToken::new()).await;
    all.push((StopReason::MissingSubject, Told { answer, events, asked: Vec::new() }));
    all.push((StopReason::WriteRequest, ask([good], config(), "delete all products").await));
    let ambiguous = ["SELECT name FROM customers, products"];
    all.push((StopReason::Ambiguous, ask(ambiguous, config().with_ask_user(true), "List all the names").await));

    let cancel = CancellationToken::new();
    cancel.cancel();
    let shop = Shop::new();
    let querymend = Querymend::new(shop.engine(), Arc::new(ScriptedModel::new([good])), config());
    let (answer, events) = listen(&querymend, QUESTION, &cancel).await;
    all.push((StopReason::Cancelled, Told { answer, events, asked: Vec::new() }));
    all
}

#[tokio::test]
async fn reaches_every_stop_reason() {
    let all = every_end().await;
    for (stop, told) in &all {
        let answer = &told.answer;
        assert_eq!(answer.stop, *stop, "{answer:?}");
        assert_eq!(answer.metadata.llm_calls as usize, told.asked.len());
        match answer.status {
            AnswerStatus::Answered | AnswerStatus::Drafted | AnswerStatus::Chat | AnswerStatus::AskUser => {
                assert_eq!(answer.problem, None)
            }
            AnswerStatus::GaveUp | AnswerStatus::Failed | AnswerStatus::Abstained | AnswerStatus::Refused => {
                let problem = told.problem();
                assert!(!problem.message.is_empty(), "{stop:?}");
                assert!(problem.hint.is_some() || *stop == StopReason::Cancelled, "{stop:?}: {problem:?}");
                assert_eq!(answer.confidence, Confidence::Low);
            }
        }
    }
    let stops: HashSet<StopReason> = all.iter().map(|(stop, _)| *stop).collect();
    // A stop that is added must be added above: this match does not compile without it.
    let number = |stop: StopReason| match stop {
        StopReason::Answered
        | StopReason::Chat
        | StopReason::MaxAttempts
        | StopReason::RepeatedSql
        | StopReason::SameError => 5,
        StopReason::NotRetryable
        | StopReason::CorrectionOff
        | StopReason::RetryPolicy
        | StopReason::TokenBudget
        | StopReason::CostBudget => 5,
        StopReason::TimeBudget
        | StopReason::ModelFailed
        | StopReason::DatabaseFailed
        | StopReason::Cancelled
        | StopReason::BadQuestion => 5,
        StopReason::NotRun | StopReason::MissingSubject | StopReason::WriteRequest | StopReason::Ambiguous => 4,
    };
    assert_eq!(stops.len(), 3 * number(StopReason::Answered) + number(StopReason::NotRun));
}

#[tokio::test]
async fn maps_every_problem_to_http_and_grpc() {
    let mut found: HashSet<ProblemCode> = HashSet::new();
    let statuses = |code: ProblemCode| match code {
        ProblemCode::MaxRetriesExceeded => (500, "FAILED_PRECONDITION"),
        ProblemCode::CircuitBreakerOpen => (503, "UNAVAILABLE"),
        ProblemCode::PreflightValidationFailed => (400, "INVALID_ARGUMENT"),
        ProblemCode::PermissionDeniedNotRetryable => (403, "PERMISSION_DENIED"),
        ProblemCode::BudgetExceeded => (500, "RESOURCE_EXHAUSTED"),
        ProblemCode::ModelUnavailable => (503, "UNAVAILABLE"),
        ProblemCode::DatabaseUnavailable => (503, "UNAVAILABLE"),
        ProblemCode::Cancelled => (499, "CANCELLED"),
        ProblemCode::BadRequest => (400, "INVALID_ARGUMENT"),
        ProblemCode::SubjectMissing => (404, "NOT_FOUND"),
        ProblemCode::WriteRefused => (403, "PERMISSION_DENIED"),
        // Only servers say these: no question ends with one of them.
        ProblemCode::Unauthenticated => (401, "UNAUTHENTICATED"),
        ProblemCode::Forbidden => (403, "PERMISSION_DENIED"),
        ProblemCode::NotFound => (404, "NOT_FOUND"),
        ProblemCode::Conflict => (409, "ABORTED"),
        ProblemCode::TooLarge => (413, "RESOURCE_EXHAUSTED"),
        ProblemCode::TooManyRequests => (429, "RESOURCE_EXHAUSTED"),
        ProblemCode::Unavailable => (503, "UNAVAILABLE"),
        ProblemCode::Internal => (500, "INTERNAL"),
    };
    let wanted = |stop: StopReason, told: &Told| match stop {
        StopReason::Answered | StopReason::Chat | StopReason::NotRun | StopReason::Ambiguous => None,
        StopReason::MaxAttempts | StopReason::RepeatedSql | StopReason::SameError | StopReason::RetryPolicy => {
            Some(ProblemCode::MaxRetriesExceeded)
        }
        StopReason::NotRetryable => Some(ProblemCode::PermissionDeniedNotRetryable),
        // The database refused one of the two; the critic held the other back.
        StopReason::CorrectionOff if told.answer.attempts[0].held_back => Some(ProblemCode::PreflightValidationFailed),
        StopReason::CorrectionOff => Some(ProblemCode::MaxRetriesExceeded),
        StopReason::TokenBudget | StopReason::CostBudget | StopReason::TimeBudget => Some(ProblemCode::BudgetExceeded),
        StopReason::ModelFailed => Some(ProblemCode::ModelUnavailable),
        StopReason::DatabaseFailed => Some(ProblemCode::DatabaseUnavailable),
        StopReason::Cancelled => Some(ProblemCode::Cancelled),
        StopReason::BadQuestion => Some(ProblemCode::BadRequest),
        StopReason::MissingSubject => Some(ProblemCode::SubjectMissing),
        StopReason::WriteRequest => Some(ProblemCode::WriteRefused),
    };
    let mut all = every_end().await;
    all.push((StopReason::ModelFailed, tired_model().await));
    for (stop, told) in &all {
        let code = told.answer.problem.as_ref().map(|p| p.code);
        if code != Some(ProblemCode::CircuitBreakerOpen) {
            assert_eq!(code, wanted(*stop, told), "{:?}", told.answer);
        }
        found.extend(code);
    }
    for code in &found {
        assert_eq!((code.http_status(), code.grpc_status()), statuses(*code));
    }
    assert_eq!(found.len(), 11, "{found:?}");
}

#[tokio::test]
async fn fallback_is_not_counted_as_an_attempt() {
    let failing = ["flurb", "blorp", "wibble", "quux"].map(hopeless);
    let repeating = [hopeless("flurb"), hopeless("FLURB"), hopeless("blorp")];
    for (drafts, stop, numbers) in [
        (failing.to_vec(), StopReason::MaxAttempts, vec![1, 2, 3]),
        (repeating.to_vec(), StopReason::RepeatedSql, vec![1, 2]),
        (
            [failing[..3].to_vec(), vec!["SELECT name FROM products".into()]].concat(),
            StopReason::Answered,
            vec![1, 2, 3],
        ),
    ] {
        let calls = drafts.len();
        let told = ask(drafts, Config::default(), QUESTION).await;
        let answer = &told.answer;
        assert_eq!((answer.stop, told.asked.len()), (stop, calls), "{answer:?}");
        assert_eq!(answer.attempts.iter().map(|a| a.number).collect::<Vec<_>>(), numbers, "{answer:?}");
        assert_eq!(answer.fallback, stop == StopReason::Answered);
    }
}

#[tokio::test]
async fn error_message_describes_the_returned_query() {
    let [a, b, c] = ["flurb", "blorp", "wibble"].map(hopeless);
    let refused = || Shop::new().hooked(refusing([refusal("the moon is full")]));
    let config = || Config::default().with_fallback(false);
    for (told, sql, words) in [
        (ask([a.clone(), b.clone(), a.clone()], config(), QUESTION).await, &b, "blorp"),
        (ask([a.clone(), a.clone()], config(), QUESTION).await, &a, "flurb"),
        // With a fallback that fails as well.
        (ask([a.clone(), a.clone(), c.clone()], Config::default(), QUESTION).await, &a, "flurb"),
        // The first reached the database, the others did not.
        (
            ask_engine(refused(), ["SELECT name FROM products", &a, &b], config(), QUESTION).await,
            &"SELECT name FROM products".to_string(),
            "the moon is full",
        ),
    ] {
        assert_eq!(told.sql(), sql);
        assert!(told.problem().message.contains(words), "{sql}: {:?}", told.problem());
    }
}

#[tokio::test]
async fn measures_duration_of_model_corrections() {
    let slow = super::support::Answering(|request: &querymend_model::CompletionRequest| {
        if request.messages.len() > 2 {
            std::thread::sleep(Duration::from_millis(5));
            return Ok(Completion::text("SELECT name FROM products"));
        }
        Ok(Completion::text(hopeless("flurb")))
    });
    let shop = Shop::new();
    let answer = Querymend::new(shop.engine(), Arc::new(slow), quiet(Config::default())).ask(QUESTION).await;
    let [correction] = answer.corrections.as_slice() else { panic!("{:?}", answer.corrections) };
    assert!(correction.successful && correction.duration_ms >= 5.0, "{correction:?}");
}

/// Breakers whose clock stands still: one that has opened stays open.
fn breakers() -> Arc<Breakers> {
    Arc::new(Breakers::default().with_clock(Arc::new(ManualClock::new())))
}

/// The sixth question to a model whose server is down.
async fn tired_model() -> Told {
    let shop = Shop::new();
    let script = Arc::new(ScriptedModel::new((0..5).map(|_| unreachable_model())));
    let querymend = Querymend::with_shared_breakers(shop.engine(), script.clone(), Config::default(), breakers());
    for _ in 0..5 {
        let answer = querymend.ask(QUESTION).await;
        assert_eq!(answer.problem.unwrap().code, ProblemCode::ModelUnavailable);
    }
    let (answer, events) = listen(&querymend, QUESTION, &CancellationToken::new()).await;
    // The database is not left alone with it.
    assert!(querymend.schema().await.is_ok());
    let stats = querymend.breakers().stats();
    let states: Vec<String> = stats.iter().map(|s| format!("{:?}", s.state).to_lowercase()).collect();
    assert_eq!(states.iter().filter(|s| s.starts_with("open")).count(), 1, "{states:?}");
    Told { answer, events, asked: script.requests() }
}

#[tokio::test]
async fn open_breaker_fails_fast_with_retry_after() {
    let told = tired_model().await;
    let problem = told.problem();
    assert_eq!((problem.code, told.answer.status), (ProblemCode::CircuitBreakerOpen, AnswerStatus::Failed));
    assert_eq!(problem.retry_after_s, Some(30), "{problem:?}");
    assert_eq!(told.asked.len(), 5, "the model itself is not asked a sixth time");
}

#[tokio::test]
async fn shares_one_breaker_per_model_across_databases() {
    let (here, there) = (Shop::new(), Shop::new());
    let script = Arc::new(ScriptedModel::new((0..5).map(|_| unreachable_model())));
    let breakers = breakers();
    let about = |shop: &Shop| {
        Querymend::with_shared_breakers(shop.engine(), script.clone(), Config::default(), Arc::clone(&breakers))
    };
    let (first, second) = (about(&here), about(&there));
    for _ in 0..5 {
        assert_eq!(first.ask(QUESTION).await.problem.unwrap().code, ProblemCode::ModelUnavailable);
    }
    assert_eq!(second.ask(QUESTION).await.problem.unwrap().code, ProblemCode::CircuitBreakerOpen);
    assert!(second.schema().await.is_ok(), "the databases have their own");
    assert_eq!(breakers.stats().len(), 3);
}

#[tokio::test]
async fn counts_unreachable_databases_but_not_rejections() {
    let shop = Shop::new();
    let refuses = Hooked { inner: shop.engine(), hook: Box::new(refusing((0..20).map(|_| refusal("no")))) };
    let off = Config::default().with_self_correction(false);
    let script = Arc::new(ScriptedModel::new((0..12).map(|_| "SELECT name FROM products")));
    let querymend = Querymend::new(Arc::new(refuses), script, quiet(off.clone()));
    for _ in 0..7 {
        assert_eq!(querymend.ask(QUESTION).await.stop, StopReason::CorrectionOff);
    }
    let dead = Hooked { inner: shop.engine(), hook: Box::new(|call| matches!(call, Call::Execute(_)).then(gone)) };
    let dead: Arc<dyn Engine> = Arc::new(dead);
    let script = Arc::new(ScriptedModel::new((0..12).map(|_| "SELECT name FROM products")));
    let querymend = Querymend::with_shared_breakers(dead, script, quiet(off), breakers());
    for _ in 0..5 {
        assert_eq!(querymend.ask(QUESTION).await.problem.unwrap().code, ProblemCode::DatabaseUnavailable);
    }
    let answer = querymend.ask(QUESTION).await;
    assert_eq!(
        (answer.stop, answer.problem.unwrap().code),
        (StopReason::DatabaseFailed, ProblemCode::CircuitBreakerOpen)
    );
}

/// A model that writes several texts at once.
struct Several(Vec<&'static str>);

impl querymend_model::Model for Several {
    fn name(&self) -> &str {
        "several"
    }

    fn complete<'a>(
        &'a self,
        request: &'a querymend_model::CompletionRequest,
        _watch: &'a mut (dyn FnMut(&str) + Send),
        _cancel: &'a querymend_model::CancelSignal,
    ) -> querymend_model::BoxFuture<'a, querymend_model::Completion> {
        Box::pin(async move {
            let more = self.0[1..].iter().take(request.extra_samples as usize).map(ToString::to_string).collect();
            Ok(querymend_model::Completion { more, ..querymend_model::Completion::text(self.0[0]) })
        })
    }
}

#[tokio::test]
async fn selects_the_result_most_drafts_agree_on() {
    let count = "SELECT count(*) FROM customers";
    for (drafts, sql, calls) in [
        // Two say the same in other words, and the first stands alone.
        (vec!["SELECT count(*) FROM orders", count, "SELECT count(customer_id) FROM customers"], count, 3),
        // One that the critic would hold back has no vote, whoever wrote it.
        (vec!["SELECT flurb FROM customers", count], count, 1),
        // Where none agrees with another, the likeliest has it.
        (vec!["SELECT count(*) FROM orders", count, "SELECT 7"], "SELECT count(*) FROM orders", 3),
        // All the same: nothing is weighed.
        (vec![count, count, count], count, 1),
        // None is clean: the first is mended.
        (vec!["SELECT id FROM products", "SELECT flurb FROM customers"], "SELECT product_id FROM products", 1),
    ] {
        let shop = super::support::Shop::new();
        let config = Config { candidates: Some(4), ..Config::default() };
        let querymend = querymend::Querymend::new(shop.engine(), std::sync::Arc::new(Several(drafts.clone())), config);
        let answer = querymend.ask("How many customers are there?").await;
        assert_eq!((answer.sql.as_deref(), answer.metadata.tool_executions), (Some(sql), calls), "{drafts:?}");
        assert_eq!((answer.metadata.llm_calls, answer.attempts.len()), (1, 1), "{drafts:?}");
    }
}
