//! Questions and queries: answered, checked, mended, run, and written down.

use std::time::Instant;

use querymend::correct::{Correct, Corrected};
use querymend::direct::{Checked, Emptiness, Grounded, NotRun, Ran};
use querymend::{Answer, Ask, Cancel, Clarify, Event, Problem, ProblemCode, Status};
use querymend_engine::Limits;

use super::lines::{line, lines_of};
use super::{Analysing, Asking, LONGEST_QUESTION, QueryText, Question, Service, now, short, word};
use crate::audit::Line;
use crate::sent::{Log, Sent};
use crate::shelf::Talk;

/// The longest value that is looked for, in bytes.
const LONGEST_WORD: usize = 1_000;

impl Service {
    /// Answers a question, and tells what happens on the way.
    pub async fn ask(
        &self,
        asking: &Asking<'_>,
        asked: &Question,
        tell: &mut (dyn FnMut(&Event) + Send),
        cancel: &Cancel,
    ) -> Result<Answer, Problem> {
        let (evidence, choice) = (asked.evidence.as_ref(), asked.choice.as_ref());
        for (what, text) in [("question", Some(&asked.question)), ("evidence", evidence), ("choice", choice)] {
            short(what, text.map_or("", String::as_str), LONGEST_QUESTION)?;
        }
        let user = asking.user;
        let talk = match &asked.session_id {
            Some(id) => Some(self.talk(user, id).await?),
            None => None,
        };
        let named = match (&talk, &asked.database) {
            (Some(talk), Some(named)) if talk.database != *named => {
                let message = format!("the session is about the database `{}`", talk.database);
                return Err(Problem::new(ProblemCode::BadRequest, message));
            }
            (Some(talk), _) => Some(talk.database.as_str()),
            (None, named) => named.as_deref(),
        };
        let desk = self.desk(user, named)?;
        let talk = match talk {
            Some(talk) if desk.querymend.memory().is_some() => Some(self.heard_once(talk).await?),
            talk => talk,
        };
        let trace_id = querymend::trace_id();
        let place = desk.place(asking);
        let mut hearings: Vec<_> = self.listeners.iter().map(|one| one.question(&place, &trace_id)).collect();
        // Where nobody here traces, a trace that somebody else began goes on as it came.
        let own = hearings.iter().find_map(|hearing| hearing.traceparent());
        let traceparent = own.or_else(|| asking.traceparent.map(str::to_owned));
        let mut events: Vec<Event> = Vec::new();
        let mut hear = |event: &Event| {
            // Where the database is, clients need not know; by which name they ask it, they do.
            let named = match event.clone() {
                Event::Started { trace_id, question, model, dialect, max_attempts, .. } => {
                    let database = desk.name.clone();
                    Some(Event::Started { trace_id, question, database, model, dialect, max_attempts })
                }
                _ => None,
            };
            let event = named.as_ref().unwrap_or(event);
            hearings.iter_mut().for_each(|hearing| hearing.hear(event));
            tell(event);
            if !matches!(event, Event::Text { .. } | Event::Finished { .. }) {
                events.push(event.clone());
            }
        };
        let ask = Ask {
            question: asked.question.clone(),
            evidence: asked.evidence.clone(),
            fresh: asked.fresh,
            clarify: asked.clarify.or_else(|| {
                let setting = desk.querymend.config().self_correction.ask_user;
                asked.is_interactive.then(|| Clarify::from_setting(setting, true))
            }),
            choice: asked.choice.clone(),
            hand_over: asked.analysis == Analysing::Browser,
            trace_id: Some(trace_id.clone()),
            traceparent,
            ..Ask::default()
        };
        let conversation = talk.as_ref().map(|talk| talk.conversation.clone());
        let mut session = conversation.map(|conversation| desk.querymend.resume(conversation));
        let log = Log::default();
        let asked_for = async {
            match &mut session {
                Some(session) => session.ask_with(ask, &mut hear, cancel).await.clone(),
                None => desk.querymend.ask_with(ask, &mut hear, cancel).await,
            }
        };
        let mut answer = log.keeping(asked_for).await;
        if asked.summary && answer.status == Status::Answered {
            let summary = desk.querymend.summarise(&answer, cancel).await.ok().flatten();
            answer.text = summary.or(answer.text);
        }
        self.audit_question(asking, &desk.name, &answer, &events, &log.taken()).await?;
        events.push(Event::Finished { answer: Box::new(answer.clone()) });
        if let Err(problem) = self.shelf.keep_run(user.name(), &answer.trace_id, &events).await {
            tracing::warn!(message = problem.message, "a run is not kept");
        }
        if let (Some(talk), Some(session)) = (talk, session) {
            let conversation = session.into_conversation();
            let next = Talk { at: now(), version: talk.version + 1, conversation, ..talk };
            if !self.shelf.keep_talk(&next).await? {
                return Err(too_late());
            }
        }
        Ok(answer)
    }

    /// The next message of a conversation is a word on the answer before it, which memory counts. Of several that come at the
    /// same time only the first may be counted: it takes that answer out of what is kept, and the others are told.
    async fn heard_once(&self, talk: Talk) -> Result<Talk, Problem> {
        if talk.conversation.unjudged.is_none() {
            return Ok(talk);
        }
        let mut taken = Talk { version: talk.version + 1, ..talk.clone() };
        taken.conversation.unjudged = None;
        if !self.shelf.keep_talk(&taken).await? {
            return Err(too_late());
        }
        Ok(Talk { version: taken.version, ..talk })
    }

    /// A line for every query that was sent or held back on the way, and one for the question.
    async fn audit_question(
        &self,
        asking: &Asking<'_>,
        database: &str,
        answer: &Answer,
        events: &[Event],
        sent: &[Sent],
    ) -> Result<(), Problem> {
        let trace_id = Some(answer.trace_id.as_str());
        let mut lines = lines_of(sent, asking, database, trace_id);
        for event in events {
            if let Event::Reviewed { sql, approved: false, .. } = event {
                lines.push(Line { sql: Some(sql), trace_id, ..line(asking, "query", database, "held back") });
            }
        }
        let outcome = word(&answer.status);
        let (question, sql) = (Some(answer.question.as_str()), answer.sql.as_deref());
        let rows = answer.rows.as_ref().map(|rows| rows.rows.len());
        lines.push(Line { question, sql, rows, trace_id, ..line(asking, "ask", database, &outcome) });
        self.audit.write_all(&lines).await
    }

    /// What the critic says of a query.
    pub async fn check(&self, asking: &Asking<'_>, query: &QueryText) -> Result<Checked, Problem> {
        let desk = self.desk(asking.user, query.database.as_deref())?;
        desk.querymend.check(&query.sql, query.question.as_deref()).await
    }

    /// Corrects a query: by rules, and where they give up by the model, if `with_model` says so and there is one.
    pub async fn correct(
        &self,
        asking: &Asking<'_>,
        database: Option<&str>,
        mut asked: Correct,
        with_model: bool,
        cancel: &Cancel,
    ) -> Result<Corrected, Problem> {
        // Tables that come with the request stand for a database: any that the user may ask has the right policy.
        let any = match (database, &asked.schema_context) {
            (None, Some(_)) => self.any_database(asking.user, asked.dialect.as_deref())?,
            _ => None,
        };
        let desk = self.desk(asking.user, database.or(any.as_deref()))?;
        // Who asks is known; what a request says about it is not believed.
        if self.signs_in() {
            asked.user_id.clone_from(&asking.user.id);
        }
        let dialect = desk.querymend.engine().dialect();
        self.recall_error(asking.user, &mut asked, dialect)?;
        let began = Instant::now();
        let log = Log::default();
        let corrected = if with_model {
            log.keeping(desk.querymend.correct_with_model(&asked, cancel)).await
        } else {
            log.keeping(desk.querymend.correct(&asked)).await
        };
        let (sent, failed) = (log.taken(), corrected.as_ref().err().map(|problem| word(&problem.code)));
        let mut lines = lines_of(&sent, asking, &desk.name, None);
        let sql = Some(asked.original_query.as_str());
        if let Some(outcome) = &failed {
            lines.push(Line { sql, ..line(asking, "correct", &desk.name, outcome) });
            self.audit.write_all(&lines).await?;
        }
        let corrected = corrected?;
        self.record_error(asking.user, &asked, &corrected, dialect);
        let (place, took) = (desk.place(asking), began.elapsed());
        self.listeners.iter().for_each(|listener| listener.corrected(&place, &corrected, took));
        let outcome = word(&corrected.status);
        let trace_id = Some(corrected.trace_id.as_str());
        lines.push(Line { sql, trace_id, ..line(asking, "correct", &desk.name, &outcome) });
        self.audit.write_all(&lines).await?;
        Ok(corrected)
    }

    /// Reviews a query and runs it as it is.
    pub async fn run(&self, asking: &Asking<'_>, query: &QueryText, cancel: &Cancel) -> Result<Ran, NotRun> {
        let desk = self.desk(asking.user, query.database.as_deref())?;
        let own = desk.querymend.config().limits();
        let limits = Limits { rows: query.max_rows.unwrap_or(own.rows).clamp(1, own.rows), ..own };
        let began = Instant::now();
        let ran = desk.querymend.run(&query.sql, &limits, cancel).await;
        let (place, took) = (desk.place(asking), began.elapsed());
        self.listeners.iter().for_each(|listener| listener.ran(&place, &ran, took));
        let (sql, rows, outcome) = match &ran {
            Ok(ran) => (ran.sql.as_str(), Some(ran.rows.rows.len()), "ran".to_string()),
            Err(not) => (query.sql.as_str(), None, word(&not.problem.code)),
        };
        self.audit.write(&Line { sql: Some(sql), rows, ..line(asking, "run", &desk.name, &outcome) }).await?;
        ran
    }

    /// Values that are like a word.
    pub async fn ground(
        &self,
        asking: &Asking<'_>,
        database: Option<&str>,
        sought: &str,
        place: Option<(&str, &str)>,
    ) -> Result<Vec<Grounded>, Problem> {
        if sought.len() > LONGEST_WORD {
            return Err(Problem::new(ProblemCode::TooLarge, format!("the word has more than {LONGEST_WORD} bytes")));
        }
        let desk = self.desk(asking.user, database)?;
        let found = desk.querymend.ground(sought, place).await;
        let outcome = found.as_ref().map_or_else(|problem| word(&problem.code), |_| "ran".to_string());
        let rows = found.as_ref().ok().map(Vec::len);
        let line = Line { question: Some(sought), rows, ..line(asking, "values", &desk.name, &outcome) };
        self.audit.write(&line).await?;
        found
    }

    /// Why a query finds nothing.
    pub async fn explain_empty(
        &self,
        asking: &Asking<'_>,
        query: &QueryText,
        cancel: &Cancel,
    ) -> Result<Emptiness, NotRun> {
        let desk = self.desk(asking.user, query.database.as_deref())?;
        let log = Log::default();
        let told = log.keeping(desk.querymend.explain_empty(&query.sql, cancel)).await;
        let outcome = told.as_ref().map_or_else(|not| word(&not.problem.code), |_| "ran".to_string());
        let sent = log.taken();
        let mut lines = lines_of(&sent, asking, &desk.name, None);
        lines.push(Line { sql: Some(&query.sql), ..line(asking, "explain", &desk.name, &outcome) });
        self.audit.write_all(&lines).await?;
        told
    }
}

fn too_late() -> Problem {
    let message = "another question of this session was answered meanwhile, or it was removed";
    Problem::new(ProblemCode::Conflict, message).hint("ask one question after the other")
}
