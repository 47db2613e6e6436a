//! The state machine under random fates: whatever models, rules and databases do, a run ends, keeps to its bounds, never repeats
//! itself and never sends anything that was not approved.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use proptest::prelude::*;
use proptest::sample::select;
use proptest::strategy::ValueTree;
use querymend::event::Cost;
use querymend::linking::SchemaLinker;
use querymend::memory::RetrievedExamples;
use querymend::prompts::VARIANTS;
use querymend::resilience::Budget;
use querymend::retry::{RetryPolicy, RetryRule, RetryStrategy};
use querymend::run::{GatheredContext, ModelDraft, QuestionRun, RunSettings, RunStep, StepError, StepOutcome};
use querymend::{Answer, AnswerStatus, AskInput, Clarify, Event, Problem, ProblemCode, StopReason};
use querymend_memory::{Example, ScoredExample};
use querymend_sql::dialect::SQLITE;
use querymend_sql::{
    Applicability, AppliedFix, Cell, EngineError, ErrorType, LiteralFilter, MAX_INTERPRETATIONS, Policy, RepairOutcome,
    RepairRequest, RepairStatus, ReviewContext, Rows, Schema, Verdict, classify, diff, repair, review,
};
use querymend_testing::is_full_suite;

const DDL: &str = "CREATE TABLE customers (customer_id INTEGER PRIMARY KEY, name TEXT, city TEXT);
    CREATE TABLE products (product_id INTEGER PRIMARY KEY, name TEXT, category TEXT, price REAL);
    CREATE TABLE orders (order_id INTEGER PRIMARY KEY, customer_id INTEGER REFERENCES customers (customer_id), status TEXT);
    CREATE TABLE reviews (review_id INTEGER PRIMARY KEY, product_id INTEGER REFERENCES products (product_id), stars INTEGER);
    CREATE TABLE visits (visit_id INTEGER PRIMARY KEY, began_on DATE, ended_on DATE);";

/// What models write, the harmless first, since a failing run shrinks towards the beginning.
const DRAFTS: &[&str] = &[
    // Good.
    "SELECT name FROM products",
    "select NAME from Products -- the same again",
    "SELECT count(*) FROM orders WHERE status = 'open'",
    "SELECT count(*) FROM orders WHERE status = 'closed'",
    "SELECT name FROM customers WHERE city = 'Atlantis'",
    "SELECT * FROM reviews",
    // A program, for what is handed over.
    "```python\nresult = len(orders)\n```",
    // Mended by rules.
    "SELECT id, price FROM products WHERE category = 'Electronics'",
    "SELECT nme FROM custmers",
    "SELECT orders.order_id, city FROM orders",
    "```sql\nSELECT name FROM products WHERE price > 3\n```",
    "Sure! Here it is: SELECT stars FROM reviews; Let me know.",
    "{\"corrected_sql\": \"SELECT stars, product_id FROM reviews\", \"correction_applied\": \"x\"}",
    "SELECT name FROM products WHERE name = 'O'Brien'",
    "SELECT TOP 3 name FROM products",
    // Several readings.
    "SELECT name FROM customers, products",
    "SELECT date FROM visits",
    // Hopeless.
    "SELECT flurb FROM products",
    "SELECT blorp FROM products",
    "SELECT wibble, wobble FROM orders",
    "SELECT x FROM flurb",
    "SELECT glorp(name) FROM products",
    "SELECT name FROM products WHERE count(*) > wibble",
    // Unsafe.
    "DROP TABLE products",
    "DELETE FROM orders",
    "SELECT 1; DROP TABLE orders",
    "WITH x AS (SELECT 1) INSERT INTO orders SELECT * FROM x",
    "SELECT load_extension('evil')",
    "PRAGMA writable_schema = 1",
    // Garbage.
    "",
    "   \n\t ",
    "I cannot answer that.",
    "((((((((((",
    "SELECT 'unfinished FROM",
    "\u{0}\u{1}\u{fffd} \u{202e}TCELES",
];

const QUESTIONS: &[&str] = &["How many orders are open?", "Which products are there? {schema}", "Hello!", "", "  "];

/// Every refusal that was recorded from a real SQLite.
static REFUSALS: LazyLock<Vec<EngineError>> = LazyLock::new(|| {
    let lines = include_str!("../../../sql/tests/errors/sqlite.jsonl").lines();
    lines.map(|line| serde_json::from_str(line).unwrap()).collect()
});

static SHOP: LazyLock<Arc<Schema>> = LazyLock::new(|| Arc::new(Schema::from_ddl(DDL, &SQLITE).unwrap()));

/// What stands in the way instead of what was asked for.
#[derive(Debug, Clone, Copy)]
enum Fate {
    Cancelled,
    TimedOut,
    Gone,
    BreakerOpen,
    /// Only a model says so.
    TooLong,
    /// One of [`REFUSALS`].
    Refused(usize),
}

#[derive(Debug, Clone, Copy)]
enum Says {
    Draft(&'static str, u64),
    Fails(Fate),
}

#[derive(Debug, Clone, Copy)]
enum Mends {
    /// The real search, without a database.
    Honestly,
    /// Something that no search would say.
    Wildly(RepairStatus, &'static str),
    Fails(Fate),
}

#[derive(Debug, Clone, Copy)]
enum Runs {
    Rows(usize),
    Fails(Fate),
}

/// One run of chance. Each list is gone through once, and then its last entry is all there is.
#[derive(Debug, Clone)]
struct World {
    question: &'static str,
    gathers: Option<Fate>,
    /// What memory has: a query that answered the question before, and one that is shown.
    remembers: (Option<&'static str>, Option<&'static str>),
    says: Vec<Says>,
    /// What is drafted beside the first.
    more: Vec<&'static str>,
    mends: Vec<Mends>,
    runs: Vec<Runs>,
    looks: Vec<Option<Fate>>,
    absent: Vec<bool>,
    fetches: Option<Fate>,
    /// How long each step takes, in milliseconds.
    step_ms: u64,
    max_attempts: u32,
    max_tokens: Option<u64>,
    max_time_ms: u64,
    rules: Vec<(ErrorType, RetryRule)>,
    correction: bool,
    preflight: bool,
    fallback: bool,
    clarify: Clarify,
    denied: bool,
    /// Whoever asks computes for themselves.
    hand_over: bool,
    /// Outcomes that nobody asked for are fed between the others.
    strays: bool,
}

fn fate() -> impl Strategy<Value = Fate> {
    prop_oneof![
        4 => (0..REFUSALS.len()).prop_map(Fate::Refused),
        1 => Just(Fate::TimedOut),
        1 => Just(Fate::Gone),
        1 => Just(Fate::BreakerOpen),
        1 => Just(Fate::Cancelled),
    ]
}

fn says() -> impl Strategy<Value = Says> {
    prop_oneof![
        20 => (select(DRAFTS), 0..200u64).prop_map(|(text, tokens)| Says::Draft(text, tokens)),
        1 => fate().prop_map(Says::Fails),
        1 => Just(Says::Fails(Fate::TooLong)),
    ]
}

fn mends() -> impl Strategy<Value = Mends> {
    let status =
        select(&[RepairStatus::Untouched, RepairStatus::Mended, RepairStatus::GaveUp, RepairStatus::Refused][..]);
    prop_oneof![
        8 => Just(Mends::Honestly),
        4 => (status, select(DRAFTS)).prop_map(|(status, sql)| Mends::Wildly(status, sql)),
        1 => fate().prop_map(Mends::Fails),
    ]
}

fn runs() -> impl Strategy<Value = Runs> {
    prop_oneof![4 => (0..3usize).prop_map(Runs::Rows), 5 => fate().prop_map(Runs::Fails)]
}

fn rule() -> impl Strategy<Value = (ErrorType, RetryRule)> {
    use RetryStrategy::{AutoRetryWithLlm, AutoRetryWithSchema, FailImmediately, LimitedRetry, RetryWithOptimization};
    let kinds = [
        ErrorType::ColumnNotFound,
        ErrorType::TableNotFound,
        ErrorType::SyntaxError,
        ErrorType::NotReadOnly,
        ErrorType::Unknown,
        ErrorType::Timeout,
    ];
    let ways = [AutoRetryWithLlm, AutoRetryWithSchema, FailImmediately, LimitedRetry, RetryWithOptimization];
    (select(kinds.to_vec()), select(ways.to_vec()), proptest::option::of(1..4u32))
        .prop_map(|(kind, strategy, max_attempts)| (kind, RetryRule { strategy, max_attempts }))
}

fn world() -> impl Strategy<Value = World> {
    let fates = (
        prop_oneof![8 => Just(QUESTIONS[0]), 1 => select(QUESTIONS)],
        prop_oneof![12 => Just(None), 1 => fate().prop_map(Some)],
        prop::collection::vec(says(), 1..12),
        prop::collection::vec(mends(), 1..12),
        prop::collection::vec(runs(), 1..12),
        prop::collection::vec(prop_oneof![9 => Just(None), 1 => fate().prop_map(Some)], 1..4),
        prop::collection::vec(any::<bool>(), 1..4),
        prop_oneof![3 => Just(None), 1 => fate().prop_map(Some)],
    );
    let bounds = (
        0..800u64,
        1..=10u32,
        prop_oneof![3 => Just(None), 1 => (1..600u64).prop_map(Some)],
        prop_oneof![3 => Just(120_000u64), 1 => 1..4_000u64],
        prop::collection::vec(rule(), 0..3),
    );
    let remembered = || prop_oneof![2 => Just(None), 1 => select(DRAFTS).prop_map(Some)];
    let mostly = || prop_oneof![4 => Just(true), 1 => Just(false)];
    let clarify = select(&[Clarify::Ask, Clarify::Assume, Clarify::Off][..]);
    let flags = (mostly(), mostly(), mostly(), clarify, any::<bool>(), any::<bool>(), any::<bool>());
    let more = prop_oneof![2 => Just(Vec::new()), 1 => prop::collection::vec(select(DRAFTS), 1..4)];
    let remembers = (remembered(), remembered(), more);
    (fates, bounds, flags, remembers).prop_map(|(fates, bounds, flags, remembers)| {
        let (question, gathers, says, mends, runs, looks, absent, fetches) = fates;
        let (step_ms, max_attempts, max_tokens, max_time_ms, rules) = bounds;
        let (correction, preflight, fallback, clarify, denied, strays, hand_over) = flags;
        World {
            question,
            gathers,
            remembers: (remembers.0, remembers.1),
            more: remembers.2,
            says,
            mends,
            runs,
            looks,
            absent,
            fetches,
            step_ms,
            max_attempts,
            max_tokens,
            max_time_ms,
            rules,
            correction,
            preflight,
            fallback,
            clarify,
            denied,
            hand_over,
            strays,
        }
    })
}

impl World {
    fn recalled(&self) -> RetrievedExamples {
        let example = |sql: &str| Example::new(self.question, sql, "shop", "sqlite");
        let found = |sql: &str| ScoredExample { example: example(sql), similarity: 0.9, score: 0.9 };
        let (known, shown) = self.remembers;
        RetrievedExamples {
            exact_match: known.map(example),
            examples: shown.into_iter().map(found).collect(),
            database: Some("shop".into()),
            error: None,
        }
    }

    fn settings(&self) -> RunSettings {
        let mut retry = RetryPolicy::default();
        for (kind, rule) in &self.rules {
            retry = retry.with(*kind, *rule).unwrap();
        }
        let deny_tables = if self.denied { vec!["reviews".to_string()] } else { Vec::new() };
        RunSettings {
            trace_id: "t".into(),
            dialect: &SQLITE,
            policy: Arc::new(Policy { deny_tables, ..Policy::default() }),
            budget: Budget {
                max_attempts: self.max_attempts,
                max_tokens: self.max_tokens,
                max_cost_usd: None,
                max_time: Duration::from_millis(self.max_time_ms),
            },
            retry,
            self_correction: self.correction,
            preflight: self.preflight,
            offline: false,
            fallback: self.fallback,
            clarify: self.clarify,
            variant: &VARIANTS[0],
            temperature: 0.0,
            max_schema_bytes: 10_000,
            extra_candidates: self.more.len() as u32,
        }
    }
}

fn hindrance(fate: Fate) -> StepError {
    let gone = |code, message: &str| {
        StepError::Unavailable(Problem { code, message: message.into(), hint: None, retry_after_s: Some(30) })
    };
    match fate {
        Fate::Cancelled => StepError::Cancelled,
        Fate::TimedOut => StepError::TimedOut(Duration::from_secs(1)),
        Fate::Gone => gone(ProblemCode::DatabaseUnavailable, "the file is gone"),
        Fate::TooLong => match gone(ProblemCode::ModelUnavailable, "too long") {
            StepError::Unavailable(problem) => StepError::ContextTooLong(problem),
            other => other,
        },
        Fate::BreakerOpen => gone(ProblemCode::CircuitBreakerOpen, "left alone"),
        Fate::Refused(which) => StepError::Rejected(REFUSALS[which % REFUSALS.len()].clone()),
    }
}

fn pick<T: Copy>(list: &[T], at: usize) -> T {
    list[at.min(list.len() - 1)]
}

fn rows(how_many: usize) -> Rows {
    let row = |n: usize| vec![Cell::Integer(n as i64 + 1)];
    Rows { columns: vec!["n".into()], rows: (0..how_many).map(row).collect(), truncated: false }
}

/// What came of a run, for the checks.
struct Log {
    events: Vec<Event>,
    answer: Answer,
    /// Every query that was sent, and whether it was sent to the fetched rows.
    sent: Vec<(bool, String)>,
    model_calls: u32,
    drafts: u32,
    fetches: u32,
    elapsed: Duration,
    /// How often the model said that it cannot read that much.
    too_long: u32,
}

/// Plays the run to its end, and checks what must hold at each step.
fn play(world: &World) -> Result<Log, TestCaseError> {
    let settings = world.settings();
    let ask = AskInput { question: world.question.into(), client_analysis: world.hand_over, ..AskInput::default() };
    let mut run = QuestionRun::new(ask, settings.clone());
    let mut log = Log {
        events: run.events(),
        answer: never(),
        sent: Vec::new(),
        model_calls: 0,
        drafts: 0,
        fetches: 0,
        elapsed: Duration::ZERO,
        too_long: 0,
    };
    let (mut now, mut cost, mut mended, mut looked) = (Duration::ZERO, Cost::default(), 0, 0);
    // Each attempt is at most: asked, mended, run, mended again, run again, looked up; and the fallback is one more.
    let most_steps = 6 * (world.max_attempts + 1) + 2 + 12;
    let mut local = false;
    for _ in 0..=most_steps {
        prop_assert!(run.attempt() <= world.max_attempts, "attempt {} of {}", run.attempt(), world.max_attempts);
        let step = run.step().clone();
        if world.strays {
            strays(&mut run, &step, now)?;
        }
        now += Duration::from_millis(world.step_ms);
        let outcome = match &step {
            RunStep::Gather => StepOutcome::Gathered(match world.gathers {
                Some(fate) => Err(hindrance(fate)),
                None => {
                    let tables = Arc::new(SchemaLinker::new(SHOP.clone(), &SQLITE, &settings.policy));
                    Ok(GatheredContext { linker: tables, retrieved: world.recalled(), ..GatheredContext::default() })
                }
            }),
            RunStep::Complete { messages, extra_candidates: more, .. } => {
                let spent = settings.budget.exhausted(&cost, now - Duration::from_millis(world.step_ms));
                prop_assert_eq!(spent, None, "the model is asked although the budget is spent");
                prop_assert!(
                    messages
                        .iter()
                        .all(|m| !m.text.trim().is_empty() || m.role == querymend_model::MessageRole::Assistant)
                );
                log.model_calls += 1;
                StepOutcome::Completed(match pick(&world.says, log.model_calls as usize - 1) {
                    Says::Draft(text, tokens) => {
                        log.drafts += 1;
                        let spent = Cost { input_tokens: tokens, output_tokens: 1, usd: None };
                        cost = cost.plus(spent);
                        let further = world.more.iter().filter(|_| *more > 0).map(ToString::to_string).collect();
                        Ok(ModelDraft { text: text.into(), alternatives: further, cost: spent })
                    }
                    Says::Fails(fate) => {
                        log.too_long += u32::from(matches!(fate, Fate::TooLong));
                        Err(hindrance(fate))
                    }
                })
            }
            RunStep::Repair { text, error } => {
                mended += 1;
                StepOutcome::Repaired(mend(&settings.policy, text, error.as_ref(), pick(&world.mends, mended - 1)))
            }
            RunStep::CompareCandidates(queries) => {
                prop_assert!(queries.len() > 1 && queries.len() <= (1 + world.more.len()).max(MAX_INTERPRETATIONS));
                let mut outcomes = Vec::new();
                let mut stopped = None;
                for query in queries {
                    harmless(query.sql(), &settings.policy)?;
                    log.sent.push((local, query.sql().to_string()));
                    match pick(&world.runs, log.sent.len() - 1) {
                        Runs::Rows(n) => outcomes.push(Ok(rows(n))),
                        Runs::Fails(fate @ (Fate::TimedOut | Fate::Refused(_))) => outcomes.push(Err(hindrance(fate))),
                        Runs::Fails(fate) => stopped = Some(hindrance(fate)),
                    }
                }
                StepOutcome::CandidatesCompared(stopped.map_or(Ok(outcomes), Err))
            }
            RunStep::Execute(query) => {
                harmless(query.sql(), &settings.policy)?;
                log.sent.push((local, query.sql().to_string()));
                StepOutcome::Executed(match pick(&world.runs, log.sent.len() - 1) {
                    Runs::Rows(n) => Ok(rows(n)),
                    Runs::Fails(fate) => Err(hindrance(fate)),
                })
            }
            RunStep::LookUpValues(stated) => {
                prop_assert!(!stated.is_empty());
                looked += 1;
                let absent = |(i, s): (usize, &LiteralFilter)| {
                    pick(&world.absent, i + looked - 1).then(|| (s.clone(), vec!["held".to_string()]))
                };
                StepOutcome::ValuesLookedUp(match pick(&world.looks, looked - 1) {
                    None => Ok(stated.iter().enumerate().filter_map(absent).collect()),
                    Some(fate) => Err(hindrance(fate)),
                })
            }
            RunStep::ExplainEmpty(queries) => {
                prop_assert!(!queries.is_empty());
                for without in queries {
                    harmless(without.query.sql(), &settings.policy)?;
                }
                looked += 1;
                StepOutcome::EmptyExplained(match pick(&world.looks, looked - 1) {
                    None => Ok(queries.iter().map(|without| without.predicate.clone()).collect()),
                    Some(fate) => Err(hindrance(fate)),
                })
            }
            RunStep::FetchTables(tables) => {
                log.fetches += 1;
                for (_, query) in tables {
                    harmless(query.sql(), &settings.policy)?;
                }
                local = world.fetches.is_none();
                StepOutcome::TablesFetched(match world.fetches {
                    Some(fate) => Err(hindrance(fate)),
                    None => Ok(SHOP.clone()),
                })
            }
            RunStep::Done => {
                log.elapsed = now - Duration::from_millis(world.step_ms);
                log.answer = run.answer().expect("it is done").clone();
                return Ok(log);
            }
        };
        run.feed(outcome, now);
        log.events.extend(run.events());
    }
    Err(TestCaseError::fail(format!("it goes on after {most_steps} steps")))
}

/// What a run that is done has; no run ends like this.
fn never() -> Answer {
    let mut done = QuestionRun::new(AskInput::default(), World::settings(&plain()));
    done.feed(StepOutcome::ValuesLookedUp(Ok(Vec::new())), Duration::ZERO);
    done.answer().expect("an empty question is turned down").clone()
}

fn plain() -> World {
    World {
        question: QUESTIONS[0],
        gathers: None,
        remembers: (None, None),
        more: Vec::new(),
        says: vec![Says::Draft(DRAFTS[0], 1)],
        mends: vec![Mends::Honestly],
        runs: vec![Runs::Rows(1)],
        looks: vec![None],
        absent: vec![true],
        fetches: None,
        step_ms: 1,
        max_attempts: 3,
        max_tokens: None,
        max_time_ms: 120_000,
        rules: Vec::new(),
        correction: true,
        preflight: true,
        fallback: true,
        clarify: Clarify::Off,
        denied: false,
        hand_over: false,
        strays: false,
    }
}

/// Outcomes of all other steps change nothing.
fn strays(run: &mut QuestionRun, step: &RunStep, now: Duration) -> Result<(), TestCaseError> {
    let (attempt, later) = (run.attempt(), now + Duration::from_secs(3_600));
    for stray in [
        StepOutcome::Gathered(Ok(GatheredContext::default())),
        StepOutcome::Completed(Ok(ModelDraft { text: DRAFTS[0].into(), ..ModelDraft::default() })),
        StepOutcome::Repaired(Err(StepError::Cancelled)),
        StepOutcome::CandidatesCompared(Ok(Vec::new())),
        StepOutcome::Executed(Ok(rows(1))),
        StepOutcome::ValuesLookedUp(Ok(Vec::new())),
        StepOutcome::EmptyExplained(Ok(Vec::new())),
        StepOutcome::TablesFetched(Err(StepError::Cancelled)),
    ] {
        let fits = matches!(
            (step, &stray),
            (RunStep::Gather, StepOutcome::Gathered(_))
                | (RunStep::Complete { .. }, StepOutcome::Completed(_))
                | (RunStep::CompareCandidates(_), StepOutcome::CandidatesCompared(_))
                | (RunStep::Repair { .. }, StepOutcome::Repaired(_))
                | (RunStep::Execute(_), StepOutcome::Executed(_))
                | (RunStep::LookUpValues(_), StepOutcome::ValuesLookedUp(_))
                | (RunStep::ExplainEmpty(_), StepOutcome::EmptyExplained(_))
                | (RunStep::FetchTables(_), StepOutcome::TablesFetched(_))
        );
        if !fits {
            run.feed(stray, later);
            prop_assert_eq!(run.step(), step);
            prop_assert_eq!(run.attempt(), attempt);
            prop_assert!(run.events().is_empty());
        }
    }
    Ok(())
}

fn mend(policy: &Policy, text: &str, error: Option<&EngineError>, how: Mends) -> Result<RepairOutcome, StepError> {
    let context = ReviewContext { schema: Some(&SHOP), dialect: &SQLITE, policy, question: None };
    match how {
        Mends::Honestly => {
            let said = error.map(|error| classify(&SQLITE, error));
            let apply = Applicability::Likely;
            Ok(repair(
                &RepairRequest { text, context, question: None, max_applicability: apply, error: said.as_ref() },
                None,
            ))
        }
        Mends::Wildly(status, sql) => Ok(RepairOutcome {
            status,
            sql: sql.into(),
            applied: vec![AppliedFix {
                code: "unknown-column",
                applicability: Applicability::Likely,
                why: "a guess".into(),
            }],
            findings: review(sql, &context).findings,
            doubts: Vec::new(),
        }),
        Mends::Fails(fate) => Err(hindrance(fate)),
    }
}

/// The review and SQLite itself both say that a query only reads what it may.
fn harmless(sql: &str, policy: &Policy) -> Result<(), TestCaseError> {
    let context = ReviewContext { schema: Some(&SHOP), dialect: &SQLITE, policy, question: None };
    prop_assert_eq!(review(sql, &context).verdict(), Verdict::Approved, "{}", sql);
    thread_local! {
        static SHADOW: rusqlite::Connection = {
            let shadow = rusqlite::Connection::open_in_memory().unwrap();
            shadow.execute_batch(DDL).unwrap();
            shadow
        };
    }
    // What SQLite does not take at all cannot write either.
    let writes = SHADOW.with(|shadow| shadow.prepare(sql).is_ok_and(|statement| !statement.readonly()));
    prop_assert!(!writes, "{}", sql);
    Ok(())
}

/// The events tell one story, and the answer tells the same.
fn check(world: &World, log: &Log) -> Result<(), TestCaseError> {
    let Log { events, answer, .. } = log;
    prop_assert!(log.model_calls <= world.max_attempts + 1 + log.too_long, "{} calls", log.model_calls);
    prop_assert!(log.too_long < 10, "packed {} times", log.too_long);
    prop_assert!(log.fetches <= 1);

    let mut seen = HashSet::new();
    for (local, sql) in &log.sent {
        prop_assert!(seen.insert((*local, diff::normalized_tokens(sql, &SQLITE))), "sent twice: {}", sql);
    }

    let finished = events.iter().filter(|e| matches!(e, Event::Finished { .. })).count();
    prop_assert_eq!(finished, 1);
    let Some(Event::Finished { answer: told }) = events.last() else {
        return Err(TestCaseError::fail("the last event is not the end"));
    };
    prop_assert_eq!(told.as_ref(), answer);
    let drivers = events.iter().filter(|e| matches!(e, Event::Started { .. } | Event::Text { .. })).count();
    prop_assert_eq!(drivers, 0, "these are the driver's");

    let (mut drafted, mut attempt, mut fell_back, mut retries) = (0, 1, 0, 0);
    let mut reviewed: Vec<(u32, &str)> = Vec::new();
    let mut outcomes: HashMap<&str, usize> = HashMap::new();
    for event in events {
        match event {
            Event::Stage { attempt: at, .. } => prop_assert!(*at == attempt, "{event:?} in attempt {attempt}"),
            Event::Drafted { attempt: at, .. } => {
                drafted += 1;
                prop_assert_eq!(*at, attempt);
            }
            Event::Reviewed { attempt: at, sql, .. } => {
                prop_assert_eq!(*at, attempt);
                // The query of the fallback is not an attempt.
                if fell_back == 0 {
                    reviewed.push((*at, sql));
                }
            }
            Event::Retrying { attempt: at, of, feedback, .. } => {
                retries += 1;
                prop_assert_eq!((*at, *of), (attempt + 1, world.max_attempts));
                prop_assert!(feedback.iter().all(|f| !f.kind.is_empty() && !f.text.is_empty()));
                attempt += 1;
            }
            Event::Repaired { attempt: at, applied, .. } => {
                prop_assert_eq!(*at, attempt);
                prop_assert!(!applied.is_empty());
            }
            Event::Executed { attempt: at, .. } => {
                *outcomes.entry("rows").or_default() += 1;
                prop_assert_eq!(*at, attempt);
            }
            Event::Rejected { attempt: at, .. } => {
                *outcomes.entry("refused").or_default() += 1;
                prop_assert_eq!(*at, attempt);
            }
            Event::Changed { attempt: at, .. } => prop_assert_eq!(*at, attempt),
            Event::FallbackStarted { tables } => {
                fell_back += 1;
                prop_assert!(!tables.is_empty() && world.fallback && world.correction);
            }
            Event::ExamplesRetrieved { examples, known, .. } => {
                prop_assert!(examples.len() <= 1 && (known.is_some() == world.remembers.0.is_some()));
                for shown in examples {
                    prop_assert!(log.model_calls == 0 || log.too_long > 0 || answer.examples.contains(&shown.id));
                }
            }
            Event::CandidatesCompared { attempt: at, drafts, agree, of } => {
                prop_assert_eq!(*at, attempt);
                prop_assert!(drafts.len() > 1 && agree <= of && drafts.len() <= *of);
            }
            Event::SchemaLinked { .. } | Event::Started { .. } | Event::Text { .. } | Event::Finished { .. } => {}
        }
    }
    prop_assert!(attempt <= world.max_attempts && fell_back <= 1);
    prop_assert_eq!(drafted, log.drafts);
    let linked = events.iter().filter(|e| matches!(e, Event::SchemaLinked { .. })).count();
    prop_assert!(linked <= 1 + log.too_long as usize, "linked {linked} times");
    if !world.correction {
        prop_assert!(retries == 0 && log.sent.len() <= 1 + usize::from(world.remembers.0.is_some()) + world.more.len());
    }

    let drafts = answer.attempts.iter().filter(|a| a.strategy != "memory");
    let attempts: Vec<(u32, &str)> = drafts.map(|a| (a.number, a.sql.as_str())).collect();
    if answer.remembered.is_some() {
        prop_assert!(log.model_calls == 0 && answer.status == AnswerStatus::Answered && answer.attempts.len() == 1);
    }
    prop_assert!(attempts.len() <= world.max_attempts as usize, "{} attempts", attempts.len());
    prop_assert_eq!(attempts, reviewed);
    let calls = (answer.metadata.llm_calls, answer.metadata.tool_executions);
    prop_assert_eq!(calls, (log.model_calls, log.sent.len() as u32 + log.fetches));
    prop_assert!(outcomes.values().sum::<usize>() <= log.sent.len());
    prop_assert_eq!(answer.metadata.total_duration_ms, log.elapsed.as_secs_f64() * 1e3);
    prop_assert!(answer.stop != StopReason::TimeBudget || log.elapsed.as_millis() as u64 >= world.max_time_ms);
    prop_assert!(!answer.fallback || fell_back == 1);
    // What is handed over is fetched by others, once, and is no answer.
    prop_assert!(!world.hand_over || (log.fetches == 0 && !answer.fallback));
    if let Some(program) = &answer.analysis {
        prop_assert!(world.hand_over && fell_back == 1 && answer.status != AnswerStatus::Answered);
        prop_assert!(program.code.contains("result") && !program.tables.is_empty());
        for table in &program.tables {
            harmless(&table.sql, &world.settings().policy)?;
        }
    }
    prop_assert_eq!(answer.problem.is_some(), matches!(answer.status, AnswerStatus::GaveUp | AnswerStatus::Failed));
    prop_assert_eq!(answer.clarification.is_some(), answer.status == AnswerStatus::AskUser);
    prop_assert_eq!(answer.status == AnswerStatus::Answered, answer.stop == StopReason::Answered);
    if answer.status == AnswerStatus::Answered {
        let sql = answer.sql.as_deref().unwrap_or_default();
        prop_assert!(answer.rows.is_some() && log.sent.iter().any(|(_, sent)| sent == sql), "{sql}");
        prop_assert!(outcomes.contains_key("rows"));
    }
    // Rows that came are an answer, whatever happens while a better one is looked for.
    let ran = outcomes.contains_key("rows");
    prop_assert!(!ran || matches!(answer.stop, StopReason::Answered | StopReason::Cancelled), "{:?}", answer.stop);
    if answer.status == AnswerStatus::AskUser {
        let options = answer.clarification.as_ref().map_or(0, |clarification| clarification.options.len());
        prop_assert!((2..=MAX_INTERPRETATIONS).contains(&options) && world.clarify == Clarify::Ask);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: if is_full_suite() { 3_000 } else { 750 },
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn every_run_ends_within_its_limits(world in world()) {
        let log = play(&world)?;
        check(&world, &log)?;
    }
}

/// Every reason to stop but the price, which these models have none of.
const STOPS: [StopReason; 15] = [
    StopReason::Answered,
    StopReason::Chat,
    StopReason::MaxAttempts,
    StopReason::RepeatedSql,
    StopReason::SameError,
    StopReason::NotRetryable,
    StopReason::CorrectionOff,
    StopReason::RetryPolicy,
    StopReason::TokenBudget,
    StopReason::TimeBudget,
    StopReason::ModelFailed,
    StopReason::DatabaseFailed,
    StopReason::Cancelled,
    StopReason::BadQuestion,
    StopReason::Ambiguous,
];

/// Chance is wide enough: all of [`STOPS`] come up within so many runs. Unless all of them are to be played, it ends when all have.
#[test]
fn random_runs_reach_every_stop_reason() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let (mut stops, mut fallbacks, mut programs) = (HashMap::new(), 0, 0);
    for _ in 0..4_000 {
        let world = world().new_tree(&mut runner).unwrap().current();
        let log = play(&world).unwrap();
        *stops.entry(log.answer.stop).or_insert(0) += 1;
        fallbacks += u32::from(log.answer.fallback);
        programs += u32::from(log.answer.analysis.is_some());
        let all = STOPS.iter().all(|stop| stops.contains_key(stop)) && fallbacks > 0 && programs > 0;
        if all && !is_full_suite() {
            break;
        }
    }
    for stop in STOPS {
        assert!(stops.contains_key(&stop), "{stop:?} of {stops:?}");
    }
    assert!(fallbacks > 0 && programs > 0, "{fallbacks}, {programs}");
}
