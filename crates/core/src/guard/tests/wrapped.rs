//! Engines and models behind breakers.

use querymend_engine::{Answer, Cancel, Engine, Error as EngineTrouble, Limits, demo};
use querymend_model::{Cancel as ModelCancel, Error as ModelTrouble, Line, Message, Model, Request, Script, Wait};
use querymend_sql::{Approved, Cell, Context, Dialect, EngineError, Policy, Rows, Schema, review};

use super::*;

/// An engine that answers as it is told, and counts how often it was asked.
#[derive(Default)]
struct Moody {
    says: Mutex<Option<EngineTrouble>>,
    hangs: bool,
    asked: Mutex<u32>,
}

impl Moody {
    fn say(&self, trouble: Option<EngineTrouble>) {
        *self.says.lock().unwrap() = trouble;
    }

    fn answer<T: Send + 'static>(&self, good: T) -> Answer<'_, T> {
        Box::pin(async move {
            *self.asked.lock().unwrap() += 1;
            if self.hangs {
                std::future::pending::<()>().await;
            }
            self.says.lock().unwrap().clone().map_or(Ok(good), Err)
        })
    }
}

impl Engine for Moody {
    fn name(&self) -> &str {
        "moody"
    }

    fn dialect(&self) -> &'static Dialect {
        Dialect::named("sqlite").unwrap()
    }

    fn schema(&self) -> Answer<'_, Schema> {
        self.answer(Schema::default())
    }

    fn probe<'a>(&'a self, _: &'a Approved) -> Answer<'a, ()> {
        self.answer(())
    }

    fn execute<'a>(&'a self, _: &'a Approved, _: &'a Limits, _: &'a Cancel) -> Answer<'a, Rows> {
        self.answer(Rows::default())
    }

    fn test_connection(&self) -> Answer<'_, ()> {
        self.answer(())
    }
}

fn unavailable() -> EngineTrouble {
    EngineTrouble::Unavailable { what: "gone".into(), hint: "wait".into(), transient: true, cause: None }
}

fn approved(sql: &str) -> Approved {
    let policy = Policy::default();
    let dialect = Dialect::named("sqlite").unwrap();
    review(sql, &Context { schema: None, dialect, policy: &policy, question: None }).approve().unwrap()
}

#[tokio::test]
async fn l07_only_a_database_that_does_not_answer_counts() {
    let rejected =
        EngineTrouble::Rejected(EngineError { message: "no such table: x".into(), ..EngineError::default() });
    let nothing = [
        EngineTrouble::TimedOut { after: Duration::from_secs(1) },
        EngineTrouble::Cancelled,
        EngineTrouble::WrongDialect { approved: "mysql", spoken: "sqlite" },
    ];
    let alive = [None, Some(rejected)];
    let down = [unavailable(), EngineTrouble::Internal("thread".into())];
    let cases = nothing.into_iter().map(|e| (Some(e), 1));
    let cases = cases.chain(alive.into_iter().map(|e| (e, 0))).chain(down.into_iter().map(|e| (Some(e), 2)));
    for (trouble, failures) in cases {
        let moody = Arc::new(Moody::default());
        let engine = Breakers::default().engine(moody.clone());
        moody.say(Some(unavailable()));
        assert!(engine.schema().await.is_err());
        moody.say(trouble.clone());
        assert_eq!(engine.test_connection().await.err(), trouble, "what the engine says is passed on");
        assert_eq!(engine.breaker().stats().consecutive_failures, failures, "{trouble:?}");
    }
}

#[tokio::test]
async fn l07_an_open_breaker_spares_the_database_and_says_when_to_retry() {
    let clock = Arc::new(ManualClock::new());
    let breakers = Breakers::default().with_clock(clock.clone());
    let moody = Arc::new(Moody::default());
    let engine: Arc<dyn Engine> = Arc::new(breakers.engine(moody.clone()));
    let query = approved("SELECT 1");
    let (limits, cancel) = (Limits::default(), Cancel::new());
    moody.say(Some(unavailable()));
    engine.schema().await.unwrap_err();
    engine.probe(&query).await.unwrap_err();
    engine.test_connection().await.unwrap_err();
    for _ in 0..2 {
        let error = engine.execute(&query, &limits, &cancel).await.unwrap_err();
        assert_eq!(Open::in_engine_error(&error), None);
    }
    moody.say(None);
    clock.advance(Duration::from_secs(10));
    let error = engine.execute(&query, &limits, &cancel).await.unwrap_err();
    assert_eq!(error.to_string(), "database:moody failed too often and is left alone for 20 s");
    assert_eq!(error.hint(), Some("try again in 20 s, or see to it and reset its circuit breaker"));
    let open = Open { tool: "database:moody".into(), retry_after: Duration::from_secs(20) };
    assert_eq!(Open::in_engine_error(&error), Some(open));
    assert_eq!(*moody.asked.lock().unwrap(), 5);
    drop(engine.schema());
    clock.advance(Duration::from_secs(20));
    drop(engine.schema());
    engine.schema().await.unwrap();
    engine.execute(&query, &limits, &cancel).await.unwrap();
    assert_eq!(breakers.of("database:moody").state(), State::Closed);
}

#[tokio::test]
async fn l07_a_call_that_is_dropped_half_way_gives_its_place_back() {
    let bench = Bench::new(BreakerSettings::default());
    bench.fail(5);
    bench.seconds(30);
    let breaker = Arc::new(bench.breaker);
    let hanging = GuardedEngine::new(Arc::new(Moody { hangs: true, ..Moody::default() }), Arc::clone(&breaker));
    let sound = GuardedEngine::new(Arc::new(Moody::default()), Arc::clone(&breaker));
    {
        let mut call = hanging.schema();
        assert!(tokio::time::timeout(Duration::from_millis(5), &mut call).await.is_err());
        let error = sound.schema().await.unwrap_err();
        assert_eq!(Open::in_engine_error(&error).unwrap().retry_after, Duration::from_secs(1));
    }
    sound.schema().await.unwrap();
    sound.schema().await.unwrap();
    assert_eq!(breaker.state(), State::Closed);
}

#[tokio::test]
async fn l07_sqlite_behind_a_breaker_answers_as_before() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("shop.db");
    demo::write(&file).unwrap();
    let engine = Breakers::default().engine(Arc::from(querymend_engine::open(&file.to_string_lossy()).unwrap()));
    let (limits, cancel) = (Limits::default(), Cancel::new());
    let schema = engine.schema().await.unwrap();
    assert!(!schema.tables().is_empty());
    let query = approved("SELECT count(*) FROM products WHERE category = 'Electronics'");
    engine.probe(&query).await.unwrap();
    assert_eq!(engine.execute(&query, &limits, &cancel).await.unwrap().rows, [[Cell::Integer(8)]]);
    let wrong = approved("SELECT nothing FROM products");
    for _ in 0..10 {
        let error = engine.execute(&wrong, &limits, &cancel).await.unwrap_err();
        assert!(matches!(error, EngineTrouble::Rejected(_)), "{error:?}");
    }
    let stats = engine.breaker().stats();
    assert_eq!((stats.state, stats.successes, stats.failures), (State::Closed, 13, 0));
}

#[tokio::test]
async fn l07_only_a_model_that_does_not_answer_counts() {
    let model = || "m".to_owned();
    let said = String::new;
    let down = [
        ModelTrouble::Unreachable { model: model(), message: said(), transient: false },
        ModelTrouble::Overloaded { model: model(), status: 503, message: said(), retry_after: None },
        ModelTrouble::Timeout { model: model(), after: Duration::from_secs(1), waiting_for: Wait::End },
        ModelTrouble::RateLimited { model: model(), message: said(), retry_after: None },
        ModelTrouble::BadResponse { model: model(), message: said() },
    ];
    let others = [
        (ModelTrouble::Auth { model: model(), message: said(), hint: said() }, 1),
        (ModelTrouble::Configuration { what: said(), hint: said() }, 1),
        (ModelTrouble::Cancelled, 1),
        (ModelTrouble::Refused { model: model(), message: said() }, 0),
        (ModelTrouble::ContextTooLong { model: model(), message: said() }, 0),
    ];
    let request = Request::new(vec![Message::user("How many?")]);
    let cancel = ModelCancel::new();
    for (trouble, failures) in others.into_iter().chain(down.clone().map(|trouble| (trouble, 2))) {
        let model = Breakers::default().model(Arc::new(Script::new([down[0].clone(), trouble.clone()])));
        for _ in 0..2 {
            model.complete(&request, &mut |_| {}, &cancel).await.unwrap_err();
        }
        assert_eq!(model.breaker().stats().consecutive_failures, failures, "{trouble:?}");
    }
}

#[tokio::test]
async fn l07_an_open_breaker_spares_the_model() {
    let clock = Arc::new(ManualClock::new());
    let breakers = Breakers::default().with_clock(clock.clone());
    let down = ModelTrouble::Unreachable { model: "script".into(), message: "refused".into(), transient: true };
    let mut lines: Vec<Line> = vec![down.into(); 5];
    lines.extend(["one".into(), Line::Hang, "two".into()]);
    let script = Arc::new(Script::new(lines));
    let model = breakers.model(script.clone());
    let request = Request::new(vec![Message::user("How many?")]);
    let mut heard = String::new();
    for _ in 0..5 {
        model.complete(&request, &mut |_| {}, &ModelCancel::new()).await.unwrap_err();
    }
    let error = model.complete(&request, &mut |_| {}, &ModelCancel::new()).await.unwrap_err();
    let open = Open { tool: "model:script".into(), retry_after: Duration::from_secs(30) };
    assert_eq!((Open::in_model_error(&error), error.retry_after()), (Some(open.clone()), Some(open.retry_after)));
    assert_eq!(script.asked().len(), 5);
    clock.advance(Duration::from_secs(30));
    let reply = model.complete(&request, &mut |piece| heard.push_str(piece), &ModelCancel::new()).await.unwrap();
    assert_eq!((reply.text.as_str(), heard.as_str()), ("one", "one"));
    let cancel = ModelCancel::new();
    let mut deaf = |_: &str| {};
    let (cancelled, ()) = tokio::join!(model.complete(&request, &mut deaf, &cancel), async {
        assert!(breakers.of("model:script").admit().is_err(), "one at a time");
        cancel.cancel();
    });
    assert_eq!(cancelled, Err(ModelTrouble::Cancelled));
    assert_eq!(model.breaker().state(), State::HalfOpen);
    model.complete(&request, &mut |_| {}, &ModelCancel::new()).await.unwrap();
    assert_eq!((model.breaker().state(), script.left()), (State::Closed, 0));
    assert_eq!(model.limits(), script.limits());
}
