//! Processing of one batch line: parses it, loads its schema and runs the task.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use querymend::config::ValuesSection;
use querymend_sql::dialect::SQLITE;
use querymend_sql::{Dialect, Policy};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::task::{BatchTask, TaskInput, TaskOutput};
use crate::args::dialect::parse_dialect;
use crate::args::schema_source::LoadedSchema;
use crate::error::CliError;
use crate::input;
use querymend::correction::question_with_evidence;

/// Maximum length of a line; a longer line is skipped and answered with an error.
pub(super) const MAX_LINE_BYTES: usize = input::MAX_INPUT_BYTES;

/// Line of the input.
pub(super) enum InputLine {
    /// Bytes of the line, without the line break.
    Text(Vec<u8>),
    /// Line longer than [`MAX_LINE_BYTES`].
    TooLong,
}

/// Serialized answers to a chunk of lines, with counts by outcome.
#[derive(Default)]
pub(super) struct BatchOutput {
    pub(super) text: Vec<u8>,
    pub(super) outcomes: HashMap<&'static str, usize>,
    pub(super) failed: usize,
}

/// State shared by worker threads. Schemas are cached by their source; each is loaded once.
pub(super) struct BatchWorker<J> {
    task: J,
    root: PathBuf,
    policy: Policy,
    dialect: Option<&'static Dialect>,
    /// Schema of lines that name neither a database nor a schema; `None` if the command line names
    /// none.
    default_schema: Option<Arc<LoadedSchema>>,
    no_schema: Arc<LoadedSchema>,
    /// Settings for sampling the values of databases.
    values: ValuesSection,
    schemas: Mutex<HashMap<SchemaSource, SchemaSlot>>,
}

type SchemaSlot = Arc<OnceLock<Result<Arc<LoadedSchema>, CliError>>>;

#[derive(Clone, PartialEq, Eq, Hash)]
enum SchemaSource {
    Database(String),
    File(PathBuf, &'static str),
}

#[derive(Deserialize)]
struct BatchLine<'l> {
    #[serde(borrow)]
    id: Option<&'l RawValue>,
    sql: String,
    db: Option<String>,
    schema: Option<PathBuf>,
    dialect: Option<String>,
    question: Option<String>,
    evidence: Option<String>,
}

/// Id of a line whose other fields are invalid.
#[derive(Deserialize)]
struct BatchLineId<'l> {
    #[serde(borrow)]
    id: Option<&'l RawValue>,
}

#[derive(Serialize)]
struct BatchReply<'r, B: Serialize> {
    id: Option<&'r RawValue>,
    #[serde(flatten)]
    body: B,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'r str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<&'r str>,
}

impl<J: BatchTask> BatchWorker<J> {
    /// Creates a worker with an empty schema cache.
    pub(super) fn new(
        task: J,
        root: &Path,
        policy: Policy,
        dialect: Option<&'static Dialect>,
        default_schema: Option<Arc<LoadedSchema>>,
        values: ValuesSection,
    ) -> Self {
        let no_schema = Arc::new(LoadedSchema::without_schema(dialect.unwrap_or(&SQLITE)));
        Self {
            task,
            root: root.to_path_buf(),
            policy,
            dialect,
            default_schema,
            no_schema,
            values,
            schemas: Mutex::new(HashMap::new()),
        }
    }

    /// Creates the state of a worker thread.
    pub(super) fn new_state(&self) -> J::WorkerState {
        self.task.new_state()
    }

    /// Answers one line.
    pub(super) fn process_line(
        &self,
        line: &InputLine,
        number: usize,
        state: &mut J::WorkerState,
        output: &mut BatchOutput,
    ) {
        let bytes = match line {
            InputLine::Text(bytes) if bytes.iter().all(u8::is_ascii_whitespace) => return,
            InputLine::Text(bytes) => bytes,
            InputLine::TooLong => {
                let failure = CliError::new(format!("line {number} is longer than {} MB", MAX_LINE_BYTES >> 20));
                return self.write_error(None, "", &failure, output);
            }
        };
        let text = match std::str::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => {
                let failure =
                    CliError::new(format!("line {number} is not UTF-8 text at its byte {}", error.valid_up_to()));
                return self.write_error(None, "", &failure, output);
            }
        };
        let request: BatchLine<'_> = match serde_json::from_str(text) {
            Ok(request) => request,
            Err(error) => {
                let id = serde_json::from_str::<BatchLineId<'_>>(text).ok().and_then(|only| only.id);
                let failure = CliError::new(format!("line {number} cannot be read: {error}")).hint(
                    r#"a line is {"id": …, "sql": "…", "db": "…", "dialect": "…", "schema": "…"}; only sql is needed"#,
                );
                return self.write_error(id, "", &failure, output);
            }
        };
        // Tasks should never panic, but a panic must not affect the other lines.
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            let input = self.task_input(text, &request)?;
            let TaskOutput { outcome, body } = self.task.run(&input, state)?;
            *output.outcomes.entry(outcome).or_default() += 1;
            write_reply(&BatchReply { id: request.id, body, error: None, hint: None }, output);
            Ok(())
        }));
        let outcome = outcome.unwrap_or_else(|_| {
            Err(CliError::new(format!("an internal error occurred on line {number}"))
                .hint("this is a bug in Querymend: please report it with the line"))
        });
        if let Err(failure) = outcome {
            self.write_error(request.id, &request.sql, &failure, output);
        }
    }

    /// Resolves the schema, dialect and question of a line.
    fn task_input<'a>(&'a self, line: &'a str, request: &'a BatchLine<'_>) -> Result<TaskInput<'a>, CliError> {
        let loaded = self.load_schema(request)?;
        let named = request.dialect.as_deref().map(parse_dialect).transpose().map_err(CliError::new)?;
        let dialect = named.or(self.dialect).unwrap_or(loaded.dialect);
        let question = question_with_evidence(request.question.as_deref(), request.evidence.as_deref());
        Ok(TaskInput { line, sql: &request.sql, question, loaded, dialect, policy: &self.policy })
    }

    /// Writes the answer to a line that could not be processed.
    fn write_error(&self, id: Option<&RawValue>, sql: &str, failure: &CliError, output: &mut BatchOutput) {
        output.failed += 1;
        let (error, hint) = (Some(failure.message.as_str()), failure.hint.as_deref());
        write_reply(&BatchReply { id, body: self.task.error_output(sql), error, hint }, output);
    }

    /// Returns the schema that a line names, loaded on first use.
    fn load_schema(&self, request: &BatchLine<'_>) -> Result<Arc<LoadedSchema>, CliError> {
        let source = match (&request.db, &request.schema) {
            (Some(_), Some(_)) => {
                return Err(CliError::new("the line names both `db` and `schema`").hint("leave one of them out"));
            }
            (Some(db), None) => SchemaSource::Database(resolve_address(db, &self.root)),
            (None, Some(file)) => {
                let named = request.dialect.as_deref().and_then(Dialect::from_name).or(self.dialect);
                SchemaSource::File(self.root.join(file), named.map_or("sqlite", |d| d.name))
            }
            (None, None) => return Ok(Arc::clone(self.default_schema.as_ref().unwrap_or(&self.no_schema))),
        };
        let slot =
            Arc::clone(self.schemas.lock().unwrap_or_else(PoisonError::into_inner).entry(source.clone()).or_default());
        // Threads that need the same schema wait here, without holding the lock of the map.
        slot.get_or_init(|| {
            let known = match source {
                SchemaSource::Database(address) => LoadedSchema::from_database(&address, None, self.values.clone()),
                SchemaSource::File(path, dialect) => {
                    LoadedSchema::from_file(&path, Dialect::from_name(dialect).unwrap_or(&SQLITE))
                }
            };
            known.map(|known| Arc::new(known.apply_policy(&self.policy)))
        })
        .clone()
    }
}

/// Resolves the address of a database relative to the root folder.
pub fn resolve_address(db: &str, root: &Path) -> String {
    let path = db.strip_prefix("sqlite://").or_else(|| db.strip_prefix("sqlite:"));
    if path.is_none() && db.contains("://") {
        return db.to_string();
    }
    format!("sqlite:{}", root.join(path.unwrap_or(db)).display())
}

fn write_reply(reply: &impl Serialize, output: &mut BatchOutput) {
    let before = output.text.len();
    if serde_json::to_writer(&mut output.text, reply).is_err() {
        // Serializing a reply cannot fail; if it does, no truncated answer may be written.
        output.text.truncate(before);
        output.text.extend_from_slice(
            br#"{"id":null,"verdict":"refused","status":"refused","findings":[],"error":"the answer cannot be written"}"#,
        );
    }
    output.text.push(b'\n');
}
