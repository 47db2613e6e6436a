//! The tools: few, and each said in few words, because agents read them all before every question.

use querymend::direct::NotRun;
use querymend::{Answer, Cancel, Event, Problem, ProblemCode};
use rmcp::{Peer, RoleServer};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::arguments::{self, Ask, Check, Explain, Ground, Repair, Run, Show};
use super::elicitation;
use super::telling::{self, MOST_TEXT, Told};
use super::who::Who;
use crate::service::{QueryText, Service};

/// The longest query, in bytes: one that is mended must fit into an answer whole.
const LONGEST_SQL: usize = 16 << 10;

/// How the tools go together.
pub const INSTRUCTIONS: &str = "Read-only access to SQL databases. For a plain question use `ask`. To write SQL yourself: \
    `schema`, then `check_sql`; `repair_sql` mends what is broken; `run_sql` runs it. If no rows come, `explain_empty` says \
    why and `ground_value` how a value is spelled. `querymend://rules/{code}` explains a finding.";

/// A tool.
pub struct Tool {
    /// Its name.
    pub name: &'static str,
    /// What it is for.
    pub description: &'static str,
    /// Asked twice it does no more than asked once.
    pub idempotent: bool,
    /// The schema of what it takes.
    pub takes: fn() -> Map<String, Value>,
}

/// Every tool.
pub static TOOLS: &[Tool] = &[
    Tool {
        name: "ask",
        description: "Answer a question in plain words from the database",
        idempotent: false,
        takes: arguments::schema::<Ask>,
    },
    Tool {
        name: "check_sql",
        description: "Find what is wrong with a query, without running it",
        idempotent: true,
        takes: arguments::schema::<Check>,
    },
    Tool {
        name: "repair_sql",
        description: "Mend a broken query by rules and the real tables",
        idempotent: true,
        takes: arguments::schema::<Repair>,
    },
    Tool {
        name: "run_sql",
        description: "Run one query that only reads",
        idempotent: true,
        takes: arguments::schema::<Run>,
    },
    Tool {
        name: "schema",
        description: "Show all tables, or those named, as CREATE TABLE",
        idempotent: true,
        takes: arguments::schema::<Show>,
    },
    Tool {
        name: "ground_value",
        description: "Find how a value is spelled in the data, and where",
        idempotent: true,
        takes: arguments::schema::<Ground>,
    },
    Tool {
        name: "explain_empty",
        description: "Say why a query finds no rows",
        idempotent: true,
        takes: arguments::schema::<Explain>,
    },
];

/// A call of a tool.
pub struct Call<'c> {
    pub service: &'c Service,
    pub who: &'c Who,
    pub cancel: &'c Cancel,
    /// The client, if it can ask its user.
    pub person: Option<&'c Peer<RoleServer>>,
}

/// Hears what happens on the way.
pub type Tell<'t> = &'t mut (dyn FnMut(&Event) + Send);

impl Call<'_> {
    /// Does what a tool is for. What cannot be done is told as well.
    pub async fn run(&self, tool: &Tool, arguments: Value, tell: Tell<'_>) -> Told {
        let told = match tool.name {
            "ask" => self.ask(arguments, tell).await,
            "check_sql" => self.check(arguments).await,
            "repair_sql" => self.repair(arguments).await,
            "run_sql" => self.run_sql(arguments).await,
            "schema" => self.schema(arguments).await,
            "ground_value" => self.ground(arguments).await,
            _ => self.explain_empty(arguments).await,
        };
        told.unwrap_or_else(Told::from)
    }

    async fn ask(&self, arguments: Value, tell: Tell<'_>) -> Result<Told, NotRun> {
        let mut asked: Ask = read(arguments)?;
        let (service, who) = (self.service, self.who);
        let session = match asked.session_id.take() {
            Some(word) if word == "new" => {
                Some(service.begin(who.user(), asked.database.as_deref()).await?.conversation.id)
            }
            session => session,
        };
        let mut question = asked.question(session.clone());
        question.is_interactive = self.person.is_some();
        let mut answer = service.ask(&who.asking(), &question, tell, self.cancel).await;
        if let (Some(peer), Ok(Answer { clarification: Some(clarification), .. })) = (self.person, &answer) {
            question.choice = elicitation::choose(peer, clarification, self.cancel).await;
            if question.choice.is_some() {
                answer = service.ask(&who.asking(), &question, tell, self.cancel).await;
            }
        }
        let answer = answer.map_err(|problem| match (&session, problem.code) {
            (Some(_), ProblemCode::NotFound) => problem.hint("\"new\" as `session_id` begins a conversation"),
            _ => problem,
        })?;
        Ok(telling::answer(answer, session.as_deref()))
    }

    async fn check(&self, arguments: Value) -> Result<Told, NotRun> {
        let query = query::<Check>(arguments)?;
        Ok(telling::checked(&self.service.check(&self.who.asking(), &query).await?))
    }

    async fn repair(&self, arguments: Value) -> Result<Told, NotRun> {
        let mut asked: Repair = read(arguments)?;
        fits(&asked.sql)?;
        let database = asked.database.take();
        let corrected =
            self.service.correct(&self.who.asking(), database.as_deref(), asked.into(), false, self.cancel).await?;
        Ok(telling::corrected(&corrected))
    }

    async fn run_sql(&self, arguments: Value) -> Result<Told, NotRun> {
        let query = query::<Run>(arguments)?;
        let ran = self.service.run(&self.who.asking(), &query, self.cancel).await.map_err(mendable)?;
        Ok(telling::ran(ran))
    }

    async fn schema(&self, arguments: Value) -> Result<Told, NotRun> {
        let Show { database, tables: named } = read(arguments)?;
        let tables = self.service.tables(self.who.user(), database.as_deref(), &named).await?;
        let count = tables.iter().count();
        let mut data = Map::new();
        data.insert("database".into(), tables.database.clone().into());
        data.insert("dialect".into(), tables.dialect.name.into());
        data.insert("table_count".into(), count.into());
        let (ddl, written) = tables.ddl(MOST_TEXT - 1_000);
        data.insert("truncated".into(), (written < count).into());
        let head = format!("-- {} ({})\n", tables.database, tables.dialect.name);
        if written == count {
            data.insert("ddl".into(), ddl.clone().into());
            return Ok(Told::new(head + &ddl, Value::Object(data)));
        }
        // Names alone say more about a wide database than the first tables do.
        let mut names: Vec<String> = Vec::new();
        let mut room = MOST_TEXT - 1_000;
        for table in tables.iter() {
            let name = table.full_name();
            let Some(left) = room.checked_sub(name.len() + 4) else { break };
            room = left;
            names.push(name);
        }
        let shown = names.len();
        let text = format!(
            "{head}-- truncated: {shown} of {count} names; ask again with `tables` to see columns\n{}\n",
            names.join(", ")
        );
        data.insert("tables".into(), json!(names));
        Ok(Told::new(text, Value::Object(data)))
    }

    async fn ground(&self, arguments: Value) -> Result<Told, NotRun> {
        let Ground { word, database, column } = read(arguments)?;
        let place = match column.as_deref().map(|column| column.rsplit_once('.')) {
            None => None,
            Some(Some(place)) => Some(place),
            Some(None) => {
                return Err(Problem::new(ProblemCode::BadRequest, "`column` is written table.column").into());
            }
        };
        let found = self.service.ground(&self.who.asking(), database.as_deref(), &word, place).await?;
        Ok(telling::grounded(&word, &found))
    }

    async fn explain_empty(&self, arguments: Value) -> Result<Told, NotRun> {
        let query = query::<Explain>(arguments)?;
        let why = self.service.explain_empty(&self.who.asking(), &query, self.cancel).await.map_err(mendable)?;
        Ok(telling::emptiness(&why))
    }
}

/// The tool of that name.
pub fn named(name: &str) -> Option<&'static Tool> {
    TOOLS.iter().find(|tool| tool.name == name)
}

/// Arguments that are not as they should be are told to the model, which can do better then.
fn read<T: DeserializeOwned>(arguments: Value) -> Result<T, Problem> {
    serde_json::from_value(arguments)
        .map_err(|error| Problem::new(ProblemCode::BadRequest, format!("the arguments are not right: {error}")))
}

fn query<T: DeserializeOwned + Into<QueryText>>(arguments: Value) -> Result<QueryText, Problem> {
    let query: QueryText = read::<T>(arguments)?.into();
    fits(&query.sql)?;
    Ok(query)
}

fn fits(sql: &str) -> Result<(), Problem> {
    if sql.len() <= LONGEST_SQL {
        return Ok(());
    }
    Err(Problem::new(ProblemCode::TooLarge, format!("the query has more than {LONGEST_SQL} bytes")))
}

/// What mends a query has another name here than elsewhere.
fn mendable(mut not: NotRun) -> NotRun {
    if !not.findings.is_empty() && not.problem.code == ProblemCode::PreflightValidationFailed {
        not.problem.hint = Some("`repair_sql` mends what can be mended; nothing that writes is ever run".to_owned());
    }
    not
}
