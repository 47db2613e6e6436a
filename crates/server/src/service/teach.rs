//! What people say of answers and examples.

use querymend::memory::Unjudged;
use querymend::{Problem, ProblemCode};
use querymend_memory::{Change, Example, Provenance, Standing};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::lines::line;
use super::{Asking, NewExample, Past, Service, memory_problem};
use crate::audit::Line;

/// What somebody thinks of an answer, or of an example.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Opinion {
    /// It is right.
    pub good: bool,
}

/// What became of an answer that somebody judged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Judged {
    /// The example that is kept of it, if one is.
    pub example_id: Option<String>,
}

impl Service {
    /// Somebody says whether a past answer was right. A right one is kept as an example; of a wrong one nothing stays that it taught.
    pub async fn judge(&self, asking: &Asking<'_>, trace_id: &str, opinion: Opinion) -> Result<Judged, Problem> {
        let events = self.trace(asking.user, trace_id).await?;
        let unfinished = || Problem::new(ProblemCode::NotFound, "this trace does not say how it ended");
        let past = Past::of(trace_id, asking.user.name(), &events).ok_or_else(unfinished)?;
        let (Some(sql), "answered") = (past.sql, past.status.as_str()) else {
            return Err(Problem::new(ProblemCode::BadRequest, "there was no answer that could be right or wrong"));
        };
        let database = Some(past.database.clone());
        if opinion.good {
            let new = NewExample { question: past.question, sql, database, shared: false };
            return Ok(Judged { example_id: Some(self.add_example(asking, &new).await?.id) });
        }
        let answer = events.iter().find(|event| event["event"] == "finished").map(|event| &event["answer"]);
        let listed = |name: &str| answer.and_then(|answer| answer[name].as_array()).into_iter().flatten();
        let ids = listed("examples").chain(answer.map(|answer| &answer["remembered"]));
        let shown = ids.filter_map(|id| id.as_str().map(str::to_owned)).collect();
        let answer = Unjudged { question: past.question.clone(), sql: Some(sql.clone()), worth_keeping: false, shown };
        let memory = self.memory(asking.user, database.as_deref())?;
        memory.complain(&answer).await.map_err(memory_problem)?;
        // What was captured of it, or said to be right before, is wrong after all.
        let id = querymend_memory::id(&past.question, &memory.shelf());
        let kept = memory.store().get(&id).await.map_err(memory_problem)?.filter(|example| example.sql == sql);
        if let Some(example) = kept {
            self.stand(asking, &example, Standing::Rejected).await?;
        } else {
            let told = Line {
                question: Some(&past.question),
                sql: Some(&sql),
                ..line(asking, "judge", &past.database, "wrong")
            };
            self.audit.write(&told).await?;
        }
        Ok(Judged { example_id: None })
    }

    /// Somebody says whether an example is right.
    pub async fn judge_example(
        &self,
        asking: &Asking<'_>,
        database: Option<&str>,
        id: &str,
        opinion: Opinion,
    ) -> Result<(), Problem> {
        let example = self.changeable(asking, database, id).await?;
        let standing = if opinion.good { Standing::Verified } else { Standing::Rejected };
        if opinion.good {
            let desk = self.desk(asking.user, database)?;
            if !desk.querymend.check(&example.sql, None).await?.clean {
                let problem = Problem::new(ProblemCode::PreflightValidationFailed, "its query does not fit the tables");
                return Err(problem.hint("correct the query and save it"));
            }
        }
        self.stand(asking, &example, standing).await
    }

    async fn stand(&self, asking: &Asking<'_>, example: &Example, standing: Standing) -> Result<(), Problem> {
        let memory = self.store()?;
        // What a person approves is as good as if they had saved it.
        let provenance =
            (standing == Standing::Verified && example.provenance == Provenance::Auto).then_some(Provenance::Saved);
        let change = Change { standing: Some(standing), provenance, ..Change::default() };
        memory.change(&[(&example.id, change)]).await.map_err(memory_problem)?;
        let (question, sql) = (Some(example.question.as_str()), Some(example.sql.as_str()));
        let told = Line { question, sql, ..line(asking, "example", &example.database, standing.name()) };
        self.audit.write(&told).await
    }
}
