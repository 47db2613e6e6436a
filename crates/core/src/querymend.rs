//! A database, a model and a way of using them: what people hold in their hands.

use std::sync::Arc;
use std::time::Instant;

use querymend_engine::{Engine, Error as EngineTrouble};
use querymend_model::{Model, Request};
use querymend_sql::schema::Schema;
use querymend_sql::{Policy, Validator};

use crate::config::Config;
use crate::context::Tables;
use crate::drive::Driver;
use crate::event::{Answer, Event, Problem};
use crate::guard::{Breakers, GuardedEngine, GuardedModel};
use crate::id;
use crate::known::Known;
use crate::memory::{self, Memory};
use crate::prompts;
use crate::records::ErrorRecords;
use crate::run::{Ask, Clarify, Hindrance, Run, Settings};
use crate::session::{Conversation, Session};
use crate::trouble::model_trouble;

/// Bytes of schema text where nothing is known about the model's window: about 6,000 tokens.
const SCHEMA_BYTES: usize = 24_000;

/// Stops a question from elsewhere. Clones share one flag.
#[derive(Debug, Clone, Default)]
pub struct Cancel {
    pub(crate) engine: querymend_engine::Cancel,
    pub(crate) model: querymend_model::Cancel,
}

impl Cancel {
    /// One that is not cancelled.
    pub fn new() -> Self {
        Self::default()
    }

    /// Stops every question that holds a clone of this one.
    pub fn cancel(&self) {
        self.engine.cancel();
        self.model.cancel();
    }

    /// Whether [`Cancel::cancel`] was called.
    pub fn is_cancelled(&self) -> bool {
        self.engine.is_cancelled()
    }
}

/// A database, a model and a way of using them. Cheap to clone, and clones know what the others have read; everything in it may be
/// used from many threads at once.
#[derive(Clone)]
pub struct Querymend {
    pub(crate) engine: GuardedEngine,
    pub(crate) model: GuardedModel,
    pub(crate) config: Arc<Config>,
    breakers: Arc<Breakers>,
    records: Arc<ErrorRecords>,
    pub(crate) policy: Arc<Policy>,
    pub(crate) known: Arc<Known>,
    pub(crate) memory: Option<Memory>,
}

impl Querymend {
    /// Puts a database and a model behind circuit breakers.
    pub fn new(engine: Arc<dyn Engine>, model: Arc<dyn Model>, config: Config) -> Self {
        let breakers = Arc::new(Breakers::new(config.circuit_breaker));
        Self::guarded(engine, model, config, breakers)
    }

    /// The same with breakers that others share: a model that several databases are asked with is one tool.
    pub fn guarded(engine: Arc<dyn Engine>, model: Arc<dyn Model>, config: Config, breakers: Arc<Breakers>) -> Self {
        let policy = Arc::new(config.policy.clone());
        let (values, age, clock) = (config.values.clone(), config.schema_age, breakers.clock());
        let known = Known::new(Arc::clone(&engine), Arc::clone(&policy), values, age, clock);
        Self {
            known: Arc::new(known),
            engine: breakers.engine(engine),
            model: breakers.model(model),
            config: Arc::new(config),
            breakers,
            records: Arc::default(),
            policy,
            memory: None,
        }
    }

    /// With a memory of what was asked before.
    pub fn with_memory(mut self, memory: Memory) -> Self {
        self.memory = Some(memory);
        self
    }

    /// With a validator of one's own, which every query is checked by before the database sees it.
    pub fn with_validator(mut self, validator: Arc<dyn Validator>) -> Self {
        Arc::make_mut(&mut self.policy).validators.register(validator);
        self
    }

    /// With error records that others share: they outlive a change of the configuration.
    pub fn with_records(mut self, records: Arc<ErrorRecords>) -> Self {
        self.records = records;
        self
    }

    /// What is remembered of the database, where anything is.
    pub fn memory(&self) -> Option<&Memory> {
        self.memory.as_ref()
    }

    /// The database, behind its breaker.
    pub fn engine(&self) -> &dyn Engine {
        &self.engine
    }

    /// What to call the model.
    pub fn model_name(&self) -> &str {
        self.model.name()
    }

    /// How it is set.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The circuit breakers of the database and the model.
    pub fn breakers(&self) -> &Breakers {
        &self.breakers
    }

    /// What went wrong in each conversation.
    pub fn records(&self) -> &ErrorRecords {
        &self.records
    }

    /// The tables. They are read once, and again when they have become old or the database has proved them wrong.
    pub async fn schema(&self) -> Result<Arc<Schema>, EngineTrouble> {
        self.tables().await.map(|tables| Arc::clone(tables.schema()))
    }

    /// The same with what is known of them.
    pub(crate) async fn tables(&self) -> Result<Arc<Tables>, EngineTrouble> {
        self.known.tables(&self.engine).await
    }

    /// Waits until the values of the database are read. A question waits for them too; this is for those who want them before
    /// the first one.
    pub async fn learned(&self) {
        if self.tables().await.is_ok() {
            self.known.learned().await;
        }
    }

    /// Begins a conversation.
    pub fn session(&self) -> Session<'_> {
        self.resume(Conversation::new())
    }

    /// Goes on with a conversation that was begun elsewhere.
    pub fn resume(&self, conversation: Conversation) -> Session<'_> {
        Session::new(self, conversation)
    }

    /// Answers one question.
    pub async fn ask(&self, question: &str) -> Answer {
        let ask = Ask { question: question.to_string(), ..Ask::default() };
        self.ask_with(ask, &mut |_| {}, &Cancel::new()).await
    }

    /// Answers one question, and tells what happens on the way.
    pub async fn ask_with(&self, ask: Ask, tell: &mut (dyn FnMut(&Event) + Send), cancel: &Cancel) -> Answer {
        let settings = self.settings(ask.trace_id.clone(), ask.clarify);
        tell(&Event::Started {
            trace_id: settings.trace_id.clone(),
            question: prompts::clipped(&ask.question, 10_000).to_string(),
            database: self.engine.name().to_string(),
            model: self.model.name().to_string(),
            dialect: settings.dialect.name,
            max_attempts: settings.budget.max_attempts,
        });
        let began = Instant::now();
        let words = format!("{} {}", ask.question, ask.evidence.as_deref().unwrap_or_default());
        let alone = ask.earlier.is_empty() || !memory::refers_back(&ask.question);
        let mut driver = Driver::new(self, &ask.question, alone, words, cancel);
        driver.traceparent.clone_from(&ask.traceparent);
        let budget = settings.budget.clone();
        let mut run = Run::new(ask, settings);
        loop {
            run.events().iter().for_each(&mut *tell);
            if let Some(answer) = run.take_answer() {
                if let Some(memory) = &self.memory
                    && let Err(error) = memory.note(&answer, run.stale()).await
                {
                    tracing::warn!("memory cannot be written: {error}");
                }
                return answer;
            }
            let left = budget.time_left(began.elapsed());
            let outcome = driver.carry_out(run.step(), left, tell).await;
            run.feed(outcome, began.elapsed());
        }
    }

    /// Says in a sentence or two what the rows of an answer say. There is nothing to say where there are none.
    pub async fn summarise(&self, answer: &Answer, cancel: &Cancel) -> Result<Option<String>, Problem> {
        let Some(rows) = &answer.rows else { return Ok(None) };
        let messages = prompts::summarise(&answer.question, &prompts::rows(rows));
        let request = Request::new(messages).temperature(self.config.temperature).timeout(self.config.budget.request);
        let reply = self.model.complete(&request, &mut |_| {}, &cancel.model).await;
        match reply.map_err(|error| model_trouble(&error)) {
            Ok(reply) => Ok(Some(reply.text.trim().to_string()).filter(|text| !text.is_empty())),
            Err(Hindrance::Gone(problem) | Hindrance::TooLong(problem)) => Err(problem),
            // Nobody waits for it any more.
            Err(_) => Ok(None),
        }
    }

    fn settings(&self, trace_id: Option<String>, clarify: Option<Clarify>) -> Settings {
        let correction = &self.config.self_correction;
        Settings {
            trace_id: trace_id.unwrap_or_else(id::fresh),
            dialect: self.engine.dialect(),
            policy: Arc::clone(&self.policy),
            budget: self.config.budget(),
            retry: self.config.retry_policy.clone(),
            correction: correction.enabled,
            preflight: correction.preflight_validation,
            offline: self.engine.is_offline(),
            fallback: correction.fallback && !self.engine.is_offline(),
            clarify: clarify.unwrap_or(Clarify::from_setting(correction.ask_user, false)),
            variant: prompts::variant(&self.config.prompt).unwrap_or(&prompts::VARIANTS[0]),
            temperature: self.config.temperature,
            more: self.config.candidates.unwrap_or(self.model.limits().candidates).saturating_sub(1),
            schema_bytes: self.schema_bytes(),
        }
    }

    /// How long the text of the tables may be: two thirds of the model's window, at some three bytes a token of DDL.
    pub(crate) fn schema_bytes(&self) -> usize {
        self.model.limits().context.map_or(SCHEMA_BYTES, |tokens| tokens as usize * 2)
    }
}
