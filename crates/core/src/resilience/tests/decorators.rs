//! Tests of guarded engines and models.

use querymend_engine::{self as engine, CancelFlag, Engine, EngineFuture, Limits, demo};
use querymend_model::{
    self as model, CancelSignal, CompletionRequest, Message, Model, ScriptedModel, ScriptedReply, TimeoutPhase,
};
use querymend_sql::{Approved, Cell, Dialect, EngineError, Policy, ReviewContext, Rows, Schema, review};

use super::*;

/// Engine with configurable failures that counts its calls.
#[derive(Default)]
struct FlakyEngine {
    error: Mutex<Option<engine::Error>>,
    hangs: bool,
    calls: Mutex<u32>,
}

impl FlakyEngine {
    fn fail_with(&self, error: Option<engine::Error>) {
        *self.error.lock().unwrap() = error;
    }

    fn answer<T: Send + 'static>(&self, good: T) -> EngineFuture<'_, T> {
        Box::pin(async move {
            *self.calls.lock().unwrap() += 1;
            if self.hangs {
                std::future::pending::<()>().await;
            }
            self.error.lock().unwrap().clone().map_or(Ok(good), Err)
        })
    }
}

impl Engine for FlakyEngine {
    fn name(&self) -> &str {
        "moody"
    }

    fn dialect(&self) -> &'static Dialect {
        Dialect::from_name("sqlite").unwrap()
    }

    fn schema(&self) -> EngineFuture<'_, Schema> {
        self.answer(Schema::default())
    }

    fn probe<'a>(&'a self, _: &'a Approved) -> EngineFuture<'a, ()> {
        self.answer(())
    }

    fn execute<'a>(&'a self, _: &'a Approved, _: &'a Limits, _: &'a CancelFlag) -> EngineFuture<'a, Rows> {
        self.answer(Rows::default())
    }

    fn test_connection(&self) -> EngineFuture<'_, ()> {
        self.answer(())
    }
}

fn unavailable() -> engine::Error {
    engine::Error::Unavailable { what: "gone".into(), hint: "wait".into(), transient: true, cause: None }
}

fn approved(sql: &str) -> Approved {
    let policy = Policy::default();
    let dialect = Dialect::from_name("sqlite").unwrap();
    review(sql, &ReviewContext { schema: None, dialect, policy: &policy, question: None }).approve().unwrap()
}

#[tokio::test]
async fn counts_only_unavailable_databases_as_failures() {
    let rejected =
        engine::Error::Rejected(EngineError { message: "no such table: x".into(), ..EngineError::default() });
    let nothing = [
        engine::Error::TimedOut { after: Duration::from_secs(1) },
        engine::Error::Cancelled,
        engine::Error::WrongDialect { approved: "mysql", expected: "sqlite" },
    ];
    let alive = [None, Some(rejected)];
    let down = [unavailable(), engine::Error::Internal("thread".into())];
    let cases = nothing.into_iter().map(|e| (Some(e), 1));
    let cases = cases.chain(alive.into_iter().map(|e| (e, 0))).chain(down.into_iter().map(|e| (Some(e), 2)));
    for (error, failures) in cases {
        let moody = Arc::new(FlakyEngine::default());
        let engine = Breakers::default().guard_engine(moody.clone());
        moody.fail_with(Some(unavailable()));
        assert!(engine.schema().await.is_err());
        moody.fail_with(error.clone());
        assert_eq!(engine.test_connection().await.err(), error, "what the engine says is passed on");
        assert_eq!(engine.breaker().stats().consecutive_failures, failures, "{error:?}");
    }
}

#[tokio::test]
async fn open_breaker_skips_the_database_and_returns_retry_after() {
    let clock = Arc::new(ManualClock::new());
    let breakers = Breakers::default().with_clock(clock.clone());
    let moody = Arc::new(FlakyEngine::default());
    let engine: Arc<dyn Engine> = Arc::new(breakers.guard_engine(moody.clone()));
    let query = approved("SELECT 1");
    let (limits, cancel) = (Limits::default(), CancelFlag::new());
    moody.fail_with(Some(unavailable()));
    engine.schema().await.unwrap_err();
    engine.probe(&query).await.unwrap_err();
    engine.test_connection().await.unwrap_err();
    for _ in 0..2 {
        let error = engine.execute(&query, &limits, &cancel).await.unwrap_err();
        assert_eq!(BreakerOpen::from_engine_error(&error), None);
    }
    moody.fail_with(None);
    clock.advance(Duration::from_secs(10));
    let error = engine.execute(&query, &limits, &cancel).await.unwrap_err();
    assert_eq!(error.to_string(), "database:moody failed too often; its circuit breaker is open for 20 s");
    assert_eq!(error.hint(), Some("try again in 20 s, or fix the cause and reset its circuit breaker"));
    let open = BreakerOpen { tool: "database:moody".into(), retry_after: Duration::from_secs(20) };
    assert_eq!(BreakerOpen::from_engine_error(&error), Some(open));
    assert_eq!(*moody.calls.lock().unwrap(), 5);
    drop(engine.schema());
    clock.advance(Duration::from_secs(20));
    drop(engine.schema());
    engine.schema().await.unwrap();
    engine.execute(&query, &limits, &cancel).await.unwrap();
    assert_eq!(breakers.get_or_create("database:moody").state(), BreakerState::Closed);
}

#[tokio::test]
async fn releases_the_permit_of_a_dropped_call() {
    let bench = BreakerHarness::new(BreakerSettings::default());
    bench.fail(5);
    bench.seconds(30);
    let breaker = Arc::new(bench.breaker);
    let hanging =
        GuardedEngine::new(Arc::new(FlakyEngine { hangs: true, ..FlakyEngine::default() }), Arc::clone(&breaker));
    let sound = GuardedEngine::new(Arc::new(FlakyEngine::default()), Arc::clone(&breaker));
    {
        let mut call = hanging.schema();
        assert!(tokio::time::timeout(Duration::from_millis(5), &mut call).await.is_err());
        let error = sound.schema().await.unwrap_err();
        assert_eq!(BreakerOpen::from_engine_error(&error).unwrap().retry_after, Duration::from_secs(1));
    }
    sound.schema().await.unwrap();
    sound.schema().await.unwrap();
    assert_eq!(breaker.state(), BreakerState::Closed);
}

#[tokio::test]
async fn passes_sqlite_results_through_the_breaker() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("shop.db");
    demo::write(&file).unwrap();
    let engine = Breakers::default().guard_engine(Arc::from(querymend_engine::open(&file.to_string_lossy()).unwrap()));
    let (limits, cancel) = (Limits::default(), CancelFlag::new());
    let schema = engine.schema().await.unwrap();
    assert!(!schema.tables().is_empty());
    let query = approved("SELECT count(*) FROM products WHERE category = 'Electronics'");
    engine.probe(&query).await.unwrap();
    assert_eq!(engine.execute(&query, &limits, &cancel).await.unwrap().rows, [[Cell::Integer(8)]]);
    let wrong = approved("SELECT nothing FROM products");
    for _ in 0..10 {
        let error = engine.execute(&wrong, &limits, &cancel).await.unwrap_err();
        assert!(matches!(error, engine::Error::Rejected(_)), "{error:?}");
    }
    let stats = engine.breaker().stats();
    assert_eq!((stats.state, stats.successes, stats.failures), (BreakerState::Closed, 13, 0));
}

#[tokio::test]
async fn counts_only_unavailable_models_as_failures() {
    let model = || "m".to_owned();
    let message = String::new;
    let down = [
        model::Error::Unreachable { model: model(), message: message(), transient: false },
        model::Error::Overloaded { model: model(), status: 503, message: message(), retry_after: None },
        model::Error::Timeout { model: model(), after: Duration::from_secs(1), waiting_for: TimeoutPhase::End },
        model::Error::RateLimited { model: model(), message: message(), retry_after: None },
        model::Error::BadResponse { model: model(), message: message() },
    ];
    let others = [
        (model::Error::Auth { model: model(), message: message(), hint: message() }, 1),
        (model::Error::Configuration { what: message(), hint: message() }, 1),
        (model::Error::Cancelled, 1),
        (model::Error::Refused { model: model(), message: message() }, 0),
        (model::Error::ContextTooLong { model: model(), message: message() }, 0),
    ];
    let request = CompletionRequest::new(vec![Message::user("How many?")]);
    let cancel = CancelSignal::new();
    for (error, failures) in others.into_iter().chain(down.clone().map(|error| (error, 2))) {
        let model = Breakers::default().guard_model(Arc::new(ScriptedModel::new([down[0].clone(), error.clone()])));
        for _ in 0..2 {
            model.complete(&request, &mut |_| {}, &cancel).await.unwrap_err();
        }
        assert_eq!(model.breaker().stats().consecutive_failures, failures, "{error:?}");
    }
}

#[tokio::test]
async fn open_breaker_skips_the_model() {
    let clock = Arc::new(ManualClock::new());
    let breakers = Breakers::default().with_clock(clock.clone());
    let down = model::Error::Unreachable { model: "script".into(), message: "refused".into(), transient: true };
    let mut lines: Vec<ScriptedReply> = vec![down.into(); 5];
    lines.extend(["one".into(), ScriptedReply::Hang, "two".into()]);
    let script = Arc::new(ScriptedModel::new(lines));
    let model = breakers.guard_model(script.clone());
    let request = CompletionRequest::new(vec![Message::user("How many?")]);
    let mut heard = String::new();
    for _ in 0..5 {
        model.complete(&request, &mut |_| {}, &CancelSignal::new()).await.unwrap_err();
    }
    let error = model.complete(&request, &mut |_| {}, &CancelSignal::new()).await.unwrap_err();
    let open = BreakerOpen { tool: "model:script".into(), retry_after: Duration::from_secs(30) };
    assert_eq!(
        (BreakerOpen::from_model_error(&error), error.retry_after()),
        (Some(open.clone()), Some(open.retry_after))
    );
    assert_eq!(script.requests().len(), 5);
    clock.advance(Duration::from_secs(30));
    let reply = model.complete(&request, &mut |piece| heard.push_str(piece), &CancelSignal::new()).await.unwrap();
    assert_eq!((reply.text.as_str(), heard.as_str()), ("one", "one"));
    let cancel = CancelSignal::new();
    let mut deaf = |_: &str| {};
    let (cancelled, ()) = tokio::join!(model.complete(&request, &mut deaf, &cancel), async {
        assert!(breakers.get_or_create("model:script").admit().is_err(), "one at a time");
        cancel.cancel();
    });
    assert_eq!(cancelled, Err(model::Error::Cancelled));
    assert_eq!(model.breaker().state(), BreakerState::HalfOpen);
    model.complete(&request, &mut |_| {}, &CancelSignal::new()).await.unwrap();
    assert_eq!((model.breaker().state(), script.remaining()), (BreakerState::Closed, 0));
    assert_eq!(model.limits(), script.limits());
}
