//! Tools: few, with short descriptions, because agents read all of them with every request.

use querymend::sql_api::QueryError;
use querymend::{Answer, CancellationToken, Event, Problem, ProblemCode};
use rmcp::{Peer, RoleServer};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::arguments::{
    self, AskToolArgs, CheckToolArgs, ExplainEmptyToolArgs, FindValuesToolArgs, RepairToolArgs, RunToolArgs,
    SchemaToolArgs,
};
use super::caller::McpCaller;
use super::elicitation;
use super::render::{self, MAX_TEXT_BYTES, ToolOutput};
use crate::service::{Service, SqlRequest};

/// Maximum length of a query, in bytes. A repaired query must fit into a result without truncation.
const MAX_SQL_BYTES: usize = 16 << 10;

/// Instructions for agents on combining the tools.
pub const INSTRUCTIONS: &str = "Read-only access to SQL databases. For a plain question use `ask`. To write SQL yourself: \
    `schema`, then `check_sql`; `fix_sql` fixes errors; `run_sql` runs it. If it returns no rows, `explain_empty` \
    tells why and `find_values` finds the spelling of a value. `querymend://rules/{code}` explains a finding.";

/// Definition of a tool.
pub struct Tool {
    /// Name of the tool.
    pub name: &'static str,
    /// Description for the agent.
    pub description: &'static str,
    /// `true` if repeated calls have no additional effect.
    pub is_idempotent: bool,
    /// Returns the JSON schema of the arguments.
    pub input_schema: fn() -> Map<String, Value>,
}

/// All tools.
pub static TOOLS: &[Tool] = &[
    Tool {
        name: "ask",
        description: "Answer a question in plain English from the database",
        is_idempotent: false,
        input_schema: arguments::input_schema::<AskToolArgs>,
    },
    Tool {
        name: "check_sql",
        description: "Find the errors of a query without running it",
        is_idempotent: true,
        input_schema: arguments::input_schema::<CheckToolArgs>,
    },
    Tool {
        name: "fix_sql",
        description: "Fix a broken query by rules and the schema",
        is_idempotent: true,
        input_schema: arguments::input_schema::<RepairToolArgs>,
    },
    Tool {
        name: "run_sql",
        description: "Run one read-only query",
        is_idempotent: true,
        input_schema: arguments::input_schema::<RunToolArgs>,
    },
    Tool {
        name: "schema",
        description: "Show all tables, or those named, as CREATE TABLE",
        is_idempotent: true,
        input_schema: arguments::input_schema::<SchemaToolArgs>,
    },
    Tool {
        name: "find_values",
        description: "Find the spelling and the column of a value",
        is_idempotent: true,
        input_schema: arguments::input_schema::<FindValuesToolArgs>,
    },
    Tool {
        name: "explain_empty",
        description: "Explain why a query returns no rows",
        is_idempotent: true,
        input_schema: arguments::input_schema::<ExplainEmptyToolArgs>,
    },
];

/// Context of a tool call.
pub struct ToolCall<'c> {
    pub service: &'c Service,
    pub caller: &'c McpCaller,
    pub cancel: &'c CancellationToken,
    /// Client connection; `None` if the client does not support elicitation.
    pub elicitation_peer: Option<&'c Peer<RoleServer>>,
}

/// Callback for the events of a run.
pub type EventSink<'t> = &'t mut (dyn FnMut(&Event) + Send);

impl ToolCall<'_> {
    /// Runs a tool. Failures are results too.
    pub async fn run(&self, tool: &Tool, arguments: Value, on_event: EventSink<'_>) -> ToolOutput {
        let output = match tool.name {
            "ask" => self.ask(arguments, on_event).await,
            "check_sql" => self.check(arguments).await,
            "fix_sql" => self.repair(arguments).await,
            "run_sql" => self.run_sql(arguments).await,
            "schema" => self.schema(arguments).await,
            "find_values" => self.find_values(arguments).await,
            _ => self.explain_empty(arguments).await,
        };
        output.unwrap_or_else(ToolOutput::from)
    }

    async fn ask(&self, arguments: Value, on_event: EventSink<'_>) -> Result<ToolOutput, QueryError> {
        let mut args: AskToolArgs = parse_arguments(arguments)?;
        let (service, caller) = (self.service, self.caller);
        let session = match args.session_id.take() {
            Some(id) if id == "new" => {
                Some(service.create_session(caller.user(), args.database.as_deref()).await?.conversation.id)
            }
            session => session,
        };
        let mut request = args.into_request(session.clone());
        request.is_interactive = self.elicitation_peer.is_some();
        let mut answer = service.ask(&caller.context(), &request, on_event, self.cancel).await;
        if let (Some(peer), Ok(Answer { clarification: Some(clarification), .. })) = (self.elicitation_peer, &answer) {
            request.choice = elicitation::choose(peer, clarification, self.cancel).await;
            if request.choice.is_some() {
                answer = service.ask(&caller.context(), &request, on_event, self.cancel).await;
            }
        }
        let answer = answer.map_err(|problem| match (&session, problem.code) {
            (Some(_), ProblemCode::NotFound) => problem.hint("\"new\" as `session_id` creates a session"),
            _ => problem,
        })?;
        Ok(render::answer_output(answer, session.as_deref()))
    }

    async fn check(&self, arguments: Value) -> Result<ToolOutput, QueryError> {
        let query = parse_sql_request::<CheckToolArgs>(arguments)?;
        Ok(render::check_output(&self.service.check(&self.caller.context(), &query).await?))
    }

    async fn repair(&self, arguments: Value) -> Result<ToolOutput, QueryError> {
        let mut args: RepairToolArgs = parse_arguments(arguments)?;
        check_sql_length(&args.sql)?;
        let database = args.database.take();
        let corrected =
            self.service.correct(&self.caller.context(), database.as_deref(), args.into(), false, self.cancel).await?;
        Ok(render::correction_output(&corrected))
    }

    async fn run_sql(&self, arguments: Value) -> Result<ToolOutput, QueryError> {
        let query = parse_sql_request::<RunToolArgs>(arguments)?;
        let ran = self.service.run(&self.caller.context(), &query, self.cancel).await.map_err(with_repair_hint)?;
        Ok(render::run_output(ran))
    }

    async fn schema(&self, arguments: Value) -> Result<ToolOutput, QueryError> {
        let SchemaToolArgs { database, tables: named } = parse_arguments(arguments)?;
        let tables = self.service.tables(self.caller.user(), database.as_deref(), &named).await?;
        let count = tables.iter().count();
        let mut data = Map::new();
        data.insert("database".into(), tables.database.clone().into());
        data.insert("dialect".into(), tables.dialect.name.into());
        data.insert("table_count".into(), count.into());
        let (ddl, written) = tables.ddl(MAX_TEXT_BYTES - 1_000);
        data.insert("truncated".into(), (written < count).into());
        let head = format!("-- {} ({})\n", tables.database, tables.dialect.name);
        if written == count {
            data.insert("ddl".into(), ddl.clone().into());
            return Ok(ToolOutput::new(head + &ddl, Value::Object(data)));
        }
        // For a wide database, all names are more useful than the DDL of the first tables.
        let mut names: Vec<String> = Vec::new();
        let mut room = MAX_TEXT_BYTES - 1_000;
        for table in tables.iter() {
            let name = table.full_name();
            let Some(left) = room.checked_sub(name.len() + 4) else { break };
            room = left;
            names.push(name);
        }
        let shown = names.len();
        let text = format!(
            "{head}-- truncated: {shown} of {count} names; call again with `tables` for columns\n{}\n",
            names.join(", ")
        );
        data.insert("tables".into(), json!(names));
        Ok(ToolOutput::new(text, Value::Object(data)))
    }

    async fn find_values(&self, arguments: Value) -> Result<ToolOutput, QueryError> {
        let FindValuesToolArgs { word, database, column } = parse_arguments(arguments)?;
        let target_column = match column.as_deref().map(|column| column.rsplit_once('.')) {
            None => None,
            Some(Some(target)) => Some(target),
            Some(None) => {
                return Err(Problem::new(ProblemCode::BadRequest, "`column` must have the form table.column").into());
            }
        };
        let found = self.service.find_values(&self.caller.context(), database.as_deref(), &word, target_column).await?;
        Ok(render::values_output(&word, &found))
    }

    async fn explain_empty(&self, arguments: Value) -> Result<ToolOutput, QueryError> {
        let query = parse_sql_request::<ExplainEmptyToolArgs>(arguments)?;
        let report =
            self.service.explain_empty(&self.caller.context(), &query, self.cancel).await.map_err(with_repair_hint)?;
        Ok(render::empty_result_output(&report))
    }
}

/// Returns the tool with a name.
pub fn find_tool(name: &str) -> Option<&'static Tool> {
    TOOLS.iter().find(|tool| tool.name == name)
}

/// Parses tool arguments. The error is returned to the model, which can correct its call.
fn parse_arguments<T: DeserializeOwned>(arguments: Value) -> Result<T, Problem> {
    serde_json::from_value(arguments)
        .map_err(|error| Problem::new(ProblemCode::BadRequest, format!("invalid arguments: {error}")))
}

fn parse_sql_request<T: DeserializeOwned + Into<SqlRequest>>(arguments: Value) -> Result<SqlRequest, Problem> {
    let query: SqlRequest = parse_arguments::<T>(arguments)?.into();
    check_sql_length(&query.sql)?;
    Ok(query)
}

fn check_sql_length(sql: &str) -> Result<(), Problem> {
    if sql.len() <= MAX_SQL_BYTES {
        return Ok(());
    }
    Err(Problem::new(ProblemCode::TooLarge, format!("the query has more than {MAX_SQL_BYTES} bytes")))
}

/// Replaces the hint, because the repair operation has another name in MCP than in other protocols.
fn with_repair_hint(mut error: QueryError) -> QueryError {
    if !error.findings.is_empty() && error.problem.code == ProblemCode::PreflightValidationFailed {
        error.problem.hint = Some("`fix_sql` fixes what it can; statements that write are never run".to_owned());
    }
    error
}
