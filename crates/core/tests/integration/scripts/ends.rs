//! Every way in which a question can end, and how protocols say it.

use std::collections::HashSet;
use std::time::Duration;

use querymend::guard::{Breakers, ManualClock};
use querymend::{Confidence, Config, ProblemCode, Querymend, Status, Stop};
use querymend_engine::Error as EngineTrouble;
use querymend_model::{Line, Reply, Usage};
use std::sync::Arc;

use super::support::{
    Call, Hooked, QUESTION, Shop, Told, ask, ask_engine, hopeless, listen, quiet, refusal, refusing, unreachable_model,
};
use querymend::Cancel;
use querymend_engine::Engine;
use querymend_model::Script;

fn gone() -> EngineTrouble {
    EngineTrouble::Unavailable {
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
    Arc::new(querymend_engine::Offline::new("shop.sql", schema.unwrap(), &querymend_sql::dialect::SQLITE))
}

#[tokio::test]
async fn without_a_database_sql_is_drafted_and_checked() {
    for (drafts, status, sql, calls) in [
        (vec!["SELECT name FROM products".to_string()], Status::Drafted, "SELECT name FROM products", 1),
        // Rules mend, and the model is asked again, as with a database.
        (vec!["SELECT id FROM products".into()], Status::Drafted, "SELECT product_id FROM products", 1),
        (
            vec![hopeless("flurb"), "SELECT price FROM products".into()],
            Status::Drafted,
            "SELECT price FROM products",
            2,
        ),
        // What no check lets pass is not handed out as a draft.
        (["flurb", "blorp", "wibble"].map(hopeless).to_vec(), Status::GaveUp, "SELECT wibble FROM products", 3),
    ] {
        let told = ask_engine((None, offline()), drafts, Config::default(), QUESTION).await;
        let answer = &told.answer;
        assert_eq!((answer.status, told.sql(), told.asked.len()), (status, sql, calls), "{answer:?}");
        assert_eq!((answer.rows.as_ref(), answer.confidence), (None, Confidence::Low));
        assert!(!answer.fallback && answer.metadata.tool_executions == 0, "{answer:?}");
    }
}

fn costing(text: String, usage: Usage) -> Reply {
    Reply { usage, ..Reply::text(text) }
}

/// One question for each reason to stop.
async fn every_end() -> Vec<(Stop, Told)> {
    let config = || Config::default().with_fallback(false);
    let three = || [hopeless("flurb"), hopeless("blorp"), hopeless("wibble")];
    let mut all = Vec::new();
    let good = "SELECT name FROM products";
    all.push((Stop::Answered, ask([good], config(), QUESTION).await));
    all.push((Stop::Talked, ask(["Hello, ask me about the shop."], config(), "Hello!").await));
    all.push((Stop::AttemptsSpent, ask(three(), config(), QUESTION).await));
    all.push((Stop::SameSql, ask([hopeless("flurb"), hopeless("FLURB")], config(), QUESTION).await));
    let same = [hopeless("flurb"), "SELECT flurb, name FROM products".into()];
    all.push((Stop::SameError, ask(same, config(), QUESTION).await));
    let denied = || Shop::new().hooked(refusing([refusal("access to products.name is prohibited")]));
    all.push((Stop::NotRetryable, ask_engine(denied(), [good], config(), QUESTION).await));
    let off = config().with_self_correction(false);
    all.push((Stop::CorrectionOff, ask([hopeless("flurb")], off.clone(), QUESTION).await));
    all.push((Stop::CorrectionOff, ask(["DROP TABLE products"], off, QUESTION).await));
    let odd = [refusal("the moon is full"), refusal("the moon is new")];
    let odd = Shop::new().hooked(refusing(odd));
    all.push((Stop::PolicySpent, ask_engine(odd, [good, "SELECT price FROM products"], config(), QUESTION).await));
    let tokens = Usage { input: 90, output: 20, cost_usd: None };
    let tokens = [costing(hopeless("flurb"), tokens)];
    all.push((Stop::TokensSpent, ask(tokens, config().with_max_tokens(100), QUESTION).await));
    let usd = Usage { input: 1, output: 1, cost_usd: Some(0.5) };
    let usd = [costing(hopeless("flurb"), usd)];
    all.push((Stop::CostSpent, ask(usd, config().with_max_cost_usd(0.5), QUESTION).await));
    let slow = |call: Call<'_>| match call {
        Call::Execute(_) => {
            std::thread::sleep(Duration::from_millis(60));
            Some(EngineTrouble::TimedOut { after: Duration::from_millis(60) })
        }
        Call::Schema | Call::Probe(_) => None,
    };
    let short = config().with_max_time(Duration::from_millis(50));
    all.push((Stop::TimeSpent, ask_engine(Shop::new().hooked(slow), [good], short, QUESTION).await));
    all.push((Stop::ModelFailed, ask([Line::Fail(unreachable_model())], config(), QUESTION).await));
    let absent = Shop::new().hooked(|call| (call == Call::Schema).then(gone));
    all.push((Stop::DatabaseFailed, ask_engine(absent, [good], config(), QUESTION).await));
    all.push((Stop::BadQuestion, ask([good], config(), " \n").await));
    all.push((Stop::NotRun, ask_engine((None, offline()), [good], config(), QUESTION).await));
    // Only where values are read is it known that none covers the subject.
    let (shop, script) = (Shop::new(), Arc::new(Script::new([good])));
    let querymend = Querymend::new(shop.engine(), script, config());
    let (answer, events) = listen(&querymend, "List all employees", &Cancel::new()).await;
    all.push((Stop::MissingSubject, Told { answer, events, asked: Vec::new() }));
    all.push((Stop::WriteRequest, ask([good], config(), "delete all products").await));
    let ambiguous = ["SELECT name FROM customers, products"];
    all.push((Stop::Ambiguous, ask(ambiguous, config().with_ask_user(true), "List all the names").await));

    let cancel = Cancel::new();
    cancel.cancel();
    let shop = Shop::new();
    let querymend = Querymend::new(shop.engine(), Arc::new(Script::new([good])), config());
    let (answer, events) = listen(&querymend, QUESTION, &cancel).await;
    all.push((Stop::Cancelled, Told { answer, events, asked: Vec::new() }));
    all
}

#[tokio::test]
async fn q02_every_reason_to_stop_comes_of_a_script() {
    let all = every_end().await;
    for (stop, told) in &all {
        let answer = &told.answer;
        assert_eq!(answer.stop, *stop, "{answer:?}");
        assert_eq!(answer.metadata.llm_calls as usize, told.asked.len());
        match answer.status {
            Status::Answered | Status::Drafted | Status::Chat | Status::AskUser => assert_eq!(answer.problem, None),
            Status::GaveUp | Status::Failed | Status::Abstained | Status::Refused => {
                let problem = told.problem();
                assert!(!problem.message.is_empty(), "{stop:?}");
                assert!(problem.hint.is_some() || *stop == Stop::Cancelled, "{stop:?}: {problem:?}");
                assert_eq!(answer.confidence, Confidence::Low);
            }
        }
    }
    let stops: HashSet<Stop> = all.iter().map(|(stop, _)| *stop).collect();
    // A stop that is added must be added above: this match does not compile without it.
    let number = |stop: Stop| match stop {
        Stop::Answered | Stop::Talked | Stop::AttemptsSpent | Stop::SameSql | Stop::SameError => 5,
        Stop::NotRetryable | Stop::CorrectionOff | Stop::PolicySpent | Stop::TokensSpent | Stop::CostSpent => 5,
        Stop::TimeSpent | Stop::ModelFailed | Stop::DatabaseFailed | Stop::Cancelled | Stop::BadQuestion => 5,
        Stop::NotRun | Stop::MissingSubject | Stop::WriteRequest | Stop::Ambiguous => 4,
    };
    assert_eq!(stops.len(), 3 * number(Stop::Answered) + number(Stop::NotRun));
}

#[tokio::test]
async fn l10_every_problem_comes_of_a_script_and_maps_to_http_and_grpc() {
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
    let wanted = |stop: Stop, told: &Told| match stop {
        Stop::Answered | Stop::Talked | Stop::NotRun | Stop::Ambiguous => None,
        Stop::AttemptsSpent | Stop::SameSql | Stop::SameError | Stop::PolicySpent => {
            Some(ProblemCode::MaxRetriesExceeded)
        }
        Stop::NotRetryable => Some(ProblemCode::PermissionDeniedNotRetryable),
        // The database refused one of the two; the critic held the other back.
        Stop::CorrectionOff if told.answer.attempts[0].held_back => Some(ProblemCode::PreflightValidationFailed),
        Stop::CorrectionOff => Some(ProblemCode::MaxRetriesExceeded),
        Stop::TokensSpent | Stop::CostSpent | Stop::TimeSpent => Some(ProblemCode::BudgetExceeded),
        Stop::ModelFailed => Some(ProblemCode::ModelUnavailable),
        Stop::DatabaseFailed => Some(ProblemCode::DatabaseUnavailable),
        Stop::Cancelled => Some(ProblemCode::Cancelled),
        Stop::BadQuestion => Some(ProblemCode::BadRequest),
        Stop::MissingSubject => Some(ProblemCode::SubjectMissing),
        Stop::WriteRequest => Some(ProblemCode::WriteRefused),
    };
    let mut all = every_end().await;
    all.push((Stop::ModelFailed, tired_model().await));
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
        (failing.to_vec(), Stop::AttemptsSpent, vec![1, 2, 3]),
        (repeating.to_vec(), Stop::SameSql, vec![1, 2]),
        ([failing[..3].to_vec(), vec!["SELECT name FROM products".into()]].concat(), Stop::Answered, vec![1, 2, 3]),
    ] {
        let calls = drafts.len();
        let told = ask(drafts, Config::default(), QUESTION).await;
        let answer = &told.answer;
        assert_eq!((answer.stop, told.asked.len()), (stop, calls), "{answer:?}");
        assert_eq!(answer.attempts.iter().map(|a| a.number).collect::<Vec<_>>(), numbers, "{answer:?}");
        assert_eq!(answer.fallback, stop == Stop::Answered);
    }
}

#[tokio::test]
async fn message_speaks_of_the_query_that_is_shown() {
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
async fn corrections_by_the_model_have_a_duration() {
    let slow = super::support::Answering(|request: &querymend_model::Request| {
        if request.messages.len() > 2 {
            std::thread::sleep(Duration::from_millis(5));
            return Ok(Reply::text("SELECT name FROM products"));
        }
        Ok(Reply::text(hopeless("flurb")))
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
    let script = Arc::new(Script::new((0..5).map(|_| unreachable_model())));
    let querymend = Querymend::guarded(shop.engine(), script.clone(), Config::default(), breakers());
    for _ in 0..5 {
        let answer = querymend.ask(QUESTION).await;
        assert_eq!(answer.problem.unwrap().code, ProblemCode::ModelUnavailable);
    }
    let (answer, events) = listen(&querymend, QUESTION, &Cancel::new()).await;
    // The database is not left alone with it.
    assert!(querymend.schema().await.is_ok());
    let stats = querymend.breakers().stats();
    let states: Vec<String> = stats.iter().map(|s| format!("{:?}", s.state).to_lowercase()).collect();
    assert_eq!(states.iter().filter(|s| s.starts_with("open")).count(), 1, "{states:?}");
    Told { answer, events, asked: script.asked() }
}

#[tokio::test]
async fn l07_after_five_dead_calls_the_breaker_answers_at_once_and_says_when_to_retry() {
    let told = tired_model().await;
    let problem = told.problem();
    assert_eq!((problem.code, told.answer.status), (ProblemCode::CircuitBreakerOpen, Status::Failed));
    assert_eq!(problem.retry_after_s, Some(30), "{problem:?}");
    assert_eq!(told.asked.len(), 5, "the model itself is not asked a sixth time");
}

#[tokio::test]
async fn l07_a_model_has_one_breaker_however_many_databases_it_is_asked_about() {
    let (here, there) = (Shop::new(), Shop::new());
    let script = Arc::new(Script::new((0..5).map(|_| unreachable_model())));
    let breakers = breakers();
    let about =
        |shop: &Shop| Querymend::guarded(shop.engine(), script.clone(), Config::default(), Arc::clone(&breakers));
    let (first, second) = (about(&here), about(&there));
    for _ in 0..5 {
        assert_eq!(first.ask(QUESTION).await.problem.unwrap().code, ProblemCode::ModelUnavailable);
    }
    assert_eq!(second.ask(QUESTION).await.problem.unwrap().code, ProblemCode::CircuitBreakerOpen);
    assert!(second.schema().await.is_ok(), "the databases have their own");
    assert_eq!(breakers.stats().len(), 3);
}

#[tokio::test]
async fn l07_a_database_that_answers_no_is_alive_and_one_that_is_gone_is_not() {
    let shop = Shop::new();
    let refuses = Hooked { inner: shop.engine(), hook: Box::new(refusing((0..20).map(|_| refusal("no")))) };
    let off = Config::default().with_self_correction(false);
    let script = Arc::new(Script::new((0..12).map(|_| "SELECT name FROM products")));
    let querymend = Querymend::new(Arc::new(refuses), script, quiet(off.clone()));
    for _ in 0..7 {
        assert_eq!(querymend.ask(QUESTION).await.stop, Stop::CorrectionOff);
    }
    let dead = Hooked { inner: shop.engine(), hook: Box::new(|call| matches!(call, Call::Execute(_)).then(gone)) };
    let dead: Arc<dyn Engine> = Arc::new(dead);
    let script = Arc::new(Script::new((0..12).map(|_| "SELECT name FROM products")));
    let querymend = Querymend::guarded(dead, script, quiet(off), breakers());
    for _ in 0..5 {
        assert_eq!(querymend.ask(QUESTION).await.problem.unwrap().code, ProblemCode::DatabaseUnavailable);
    }
    let answer = querymend.ask(QUESTION).await;
    assert_eq!((answer.stop, answer.problem.unwrap().code), (Stop::DatabaseFailed, ProblemCode::CircuitBreakerOpen));
}

/// A model that writes several texts at once.
struct Several(Vec<&'static str>);

impl querymend_model::Model for Several {
    fn name(&self) -> &str {
        "several"
    }

    fn complete<'a>(
        &'a self,
        request: &'a querymend_model::Request,
        _watch: &'a mut (dyn FnMut(&str) + Send),
        _cancel: &'a querymend_model::Cancel,
    ) -> querymend_model::Answer<'a, querymend_model::Reply> {
        Box::pin(async move {
            let more = self.0[1..].iter().take(request.more as usize).map(ToString::to_string).collect();
            Ok(querymend_model::Reply { more, ..querymend_model::Reply::text(self.0[0]) })
        })
    }
}

#[tokio::test]
async fn of_several_drafts_the_answer_that_most_agree_on_is_taken() {
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
