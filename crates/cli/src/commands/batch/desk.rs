//! What becomes of one line of a batch: it is read, the schema that it names is found, and the job answers it.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use querymend::config::ValuesSection;
use querymend_sql::dialect::SQLITE;
use querymend_sql::{Dialect, Policy};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::job::{Answer, Asked, Job};
use crate::against::{Known, dialect};
use crate::failure::Failure;
use crate::input;
use querymend::correct::words;

/// A line that is longer gets an error for an answer and is passed over.
pub(super) const LONGEST_LINE: usize = input::MOST_BYTES;

/// A line of the input.
pub(super) enum Line {
    /// As it stands there.
    Text(Vec<u8>),
    /// Longer than is read.
    TooLong,
}

/// Answers to some lines, and how many there are of each kind.
#[derive(Default)]
pub(super) struct Answers {
    pub(super) text: Vec<u8>,
    pub(super) outcomes: HashMap<&'static str, usize>,
    pub(super) failed: usize,
}

/// What the working threads share. Schemas are kept by the path they came from; each is read once.
pub(super) struct Desk<J> {
    job: J,
    root: PathBuf,
    policy: Policy,
    dialect: Option<&'static Dialect>,
    /// For lines that name neither database nor schema, where the command line names one.
    common: Option<Arc<Known>>,
    nothing: Arc<Known>,
    /// Which values of databases are read too.
    values: ValuesSection,
    known: Mutex<HashMap<Source, Slot>>,
}

type Slot = Arc<OnceLock<Result<Arc<Known>, Failure>>>;

#[derive(Clone, PartialEq, Eq, Hash)]
enum Source {
    Database(String),
    File(PathBuf, &'static str),
}

#[derive(Deserialize)]
struct Request<'l> {
    #[serde(borrow)]
    id: Option<&'l RawValue>,
    sql: String,
    db: Option<String>,
    schema: Option<PathBuf>,
    dialect: Option<String>,
    question: Option<String>,
    evidence: Option<String>,
}

/// What is left of a request whose other fields are wrong.
#[derive(Deserialize)]
struct OnlyId<'l> {
    #[serde(borrow)]
    id: Option<&'l RawValue>,
}

#[derive(Serialize)]
struct Reply<'r, B: Serialize> {
    id: Option<&'r RawValue>,
    #[serde(flatten)]
    body: B,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'r str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<&'r str>,
}

impl<J: Job> Desk<J> {
    /// With nothing read yet.
    pub(super) fn new(
        job: J,
        root: &Path,
        policy: Policy,
        dialect: Option<&'static Dialect>,
        common: Option<Arc<Known>>,
        values: ValuesSection,
    ) -> Self {
        let nothing = Arc::new(Known::nothing(dialect.unwrap_or(&SQLITE)));
        Self {
            job,
            root: root.to_path_buf(),
            policy,
            dialect,
            common,
            nothing,
            values,
            known: Mutex::new(HashMap::new()),
        }
    }

    /// The tools of one more thread.
    pub(super) fn tools(&self) -> J::Tools {
        self.job.tools()
    }

    /// Answers one line.
    pub(super) fn answer(&self, line: &Line, number: usize, tools: &mut J::Tools, answers: &mut Answers) {
        let bytes = match line {
            Line::Text(bytes) if bytes.iter().all(u8::is_ascii_whitespace) => return,
            Line::Text(bytes) => bytes,
            Line::TooLong => {
                let failure = Failure::new(format!("line {number} is longer than {} MB", LONGEST_LINE >> 20));
                return self.refuse(None, "", &failure, answers);
            }
        };
        let text = match std::str::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => {
                let failure =
                    Failure::new(format!("line {number} is not UTF-8 text at its byte {}", error.valid_up_to()));
                return self.refuse(None, "", &failure, answers);
            }
        };
        let request: Request<'_> = match serde_json::from_str(text) {
            Ok(request) => request,
            Err(error) => {
                let id = serde_json::from_str::<OnlyId<'_>>(text).ok().and_then(|only| only.id);
                let failure = Failure::new(format!("line {number} cannot be read: {error}")).hint(
                    r#"a line is {"id": …, "sql": "…", "db": "…", "dialect": "…", "schema": "…"}; only sql is needed"#,
                );
                return self.refuse(id, "", &failure, answers);
            }
        };
        // A job never panics. If one does all the same, it must not take the other lines with it.
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            let asked = self.asked(text, &request)?;
            let Answer { outcome, body } = self.job.answer(&asked, tools)?;
            *answers.outcomes.entry(outcome).or_default() += 1;
            write(&Reply { id: request.id, body, error: None, hint: None }, answers);
            Ok(())
        }));
        let outcome = outcome.unwrap_or_else(|_| {
            Err(Failure::new(format!("Querymend stumbled over line {number}"))
                .hint("this is a fault in Querymend: please report it with the line"))
        });
        if let Err(failure) = outcome {
            self.refuse(request.id, &request.sql, &failure, answers);
        }
    }

    /// A line with all that it is held against.
    fn asked<'a>(&'a self, line: &'a str, request: &'a Request<'_>) -> Result<Asked<'a>, Failure> {
        let known = self.known(request)?;
        let named = request.dialect.as_deref().map(dialect).transpose().map_err(Failure::new)?;
        let dialect = named.or(self.dialect).unwrap_or(known.dialect);
        let question = words(request.question.as_deref(), request.evidence.as_deref());
        Ok(Asked { line, sql: &request.sql, question, known, dialect, policy: &self.policy })
    }

    /// What could not be looked at is answered all the same, with the reason.
    fn refuse(&self, id: Option<&RawValue>, sql: &str, failure: &Failure, answers: &mut Answers) {
        answers.failed += 1;
        let (error, hint) = (Some(failure.what.as_str()), failure.hint.as_deref());
        write(&Reply { id, body: self.job.unseen(sql), error, hint }, answers);
    }

    /// The schema that a line names, read at its first use.
    fn known(&self, request: &Request<'_>) -> Result<Arc<Known>, Failure> {
        let source = match (&request.db, &request.schema) {
            (Some(_), Some(_)) => {
                return Err(Failure::new("the line names both `db` and `schema`").hint("leave one of them out"));
            }
            (Some(db), None) => Source::Database(address(db, &self.root)),
            (None, Some(file)) => {
                let named = request.dialect.as_deref().and_then(Dialect::named).or(self.dialect);
                Source::File(self.root.join(file), named.map_or("sqlite", |d| d.name))
            }
            (None, None) => return Ok(Arc::clone(self.common.as_ref().unwrap_or(&self.nothing))),
        };
        let slot =
            Arc::clone(self.known.lock().unwrap_or_else(PoisonError::into_inner).entry(source.clone()).or_default());
        // Others wait for the same schema here, and not for the map.
        slot.get_or_init(|| {
            let known = match source {
                Source::Database(address) => Known::database(&address, None, self.values.clone()),
                Source::File(path, dialect) => Known::file(&path, Dialect::named(dialect).unwrap_or(&SQLITE)),
            };
            known.map(|known| Arc::new(known.hiding(&self.policy)))
        })
        .clone()
    }
}

/// The address of a database whose path starts from the root folder.
pub fn address(db: &str, root: &Path) -> String {
    let path = db.strip_prefix("sqlite://").or_else(|| db.strip_prefix("sqlite:"));
    if path.is_none() && db.contains("://") {
        return db.to_string();
    }
    format!("sqlite:{}", root.join(path.unwrap_or(db)).display())
}

fn write(reply: &impl Serialize, answers: &mut Answers) {
    let before = answers.text.len();
    if serde_json::to_writer(&mut answers.text, reply).is_err() {
        // Nothing in a reply can fail to be written as JSON; an answer that is cut short must not go out all the same.
        answers.text.truncate(before);
        answers.text.extend_from_slice(
            br#"{"id":null,"verdict":"refused","status":"refused","findings":[],"error":"the answer cannot be written"}"#,
        );
    }
    answers.text.push(b'\n');
}
