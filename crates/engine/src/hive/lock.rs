//! The second lock. Neither Spark nor Hive knows a transaction that only reads, so the lock is in how a query is sent.
//!
//! To Spark, only as a table inside a query of ours: `SELECT * FROM (…)`. Its grammar takes nothing but a query there, and
//! nothing behind it; commands, whatever they are, do not parse. Functions that run any code of Java are hidden behind others that cannot
//! be called, files cannot be named as tables, and nothing in a text stands for a variable. Programs that rows are sent
//! through are found in the plan.
//!
//! To Hive, only after its plan was looked at: a plan that does more than to read and to fetch is refused.

use std::mem::size_of;
use std::time::Duration;

use querymend_sql::{Cell, EngineError};

use super::cells::Gathered;
use super::fault::Fault;
use super::refusal;
use super::session::{Product, Session};
use crate::Limits;
use crate::stop::Stop;

/// What is asked for when a session begins: how long a server keeps the line busy before it says that a query still runs. Until
/// then it cannot hear on the same line that the query is to end.
pub(super) const AT_OPENING: &[(&str, &str)] = &[("set:hiveconf:hive.server2.long.polling.timeout", "100ms")];

/// Settings of Spark that change how a text is read, or what it can reach.
const SPARK: &[(&str, &str)] = &[
    ("spark.sql.variable.substitute", "false"),
    ("spark.sql.runSQLOnFiles", "false"),
    ("spark.sql.parser.escapedStringLiterals", "false"),
    ("spark.sql.parser.quotedRegexColumnNames", "false"),
    ("spark.sql.ansi.doubleQuotedIdentifiers", "false"),
    ("spark.sql.ansi.relationPrecedence", "false"),
    ("spark.sql.legacy.setopsPrecedence.enabled", "false"),
    ("spark.sql.caseSensitive", "false"),
    ("spark.sql.session.timeZone", "UTC"),
    ("spark.sql.thriftServer.interruptOnCancel", "true"),
];

/// Functions that call any method of any class of the server.
const ANY_CODE: &[&str] = &["reflect", "java_method", "try_reflect"];

/// Settings of Hive of the same kinds, and whether a session is of no use without.
const HIVE: &[(&str, &str, bool)] = &[
    ("hive.support.quoted.identifiers", "column", true),
    ("hive.variable.substitute", "false", true),
    // The plan in the form that is read here, also where another would be shown.
    ("hive.explain.user", "false", true),
    ("hive.resultset.use.unique.column.names", "false", false),
    ("hive.local.time.zone", "UTC", false),
];

/// Functions of Hive that run any code or read files of the server.
const HIVE_ANY_CODE: &[&str] = &["reflect(", "reflect2(", "java_method(", "in_file("];

/// Makes a session ready for queries that nobody has looked at.
pub(super) fn prepare(session: &mut Session, database: &str, stop: &Stop) -> Result<(), Fault> {
    match session.product {
        Product::Spark => {
            for (name, value) in SPARK {
                session.command(&format!("SET {name}={value}"), stop)?;
            }
            for name in ANY_CODE {
                // For this session alone. No function can be made of such a class, which is only noticed when it is called.
                session.command(&format!("CREATE OR REPLACE TEMPORARY FUNCTION {name} AS 'java.lang.Object'"), stop)?;
            }
        }
        Product::Hive => {
            for (name, value, needed) in HIVE {
                match session.command(&format!("SET {name}={value}"), stop) {
                    Err(Fault::Refused(_)) if !needed => {}
                    outcome => outcome?,
                }
            }
        }
    }
    match session.command(&format!("USE `{database}`"), stop) {
        Err(Fault::Refused(status)) if !status.is_forgotten() => Err(Fault::NoDatabase(status)),
        outcome => outcome,
    }
}

/// Asks whether the server would run the query, without running it.
pub(super) fn probe(session: &mut Session, sql: &str, stop: &Stop) -> Result<(), Fault> {
    let sql = whole(sql)?;
    match session.product {
        // EXPLAIN takes commands too, and hides what is wrong with a query in the plan.
        Product::Spark => match session.command(&format!("DESCRIBE QUERY\n{sql}"), stop) {
            Err(Fault::Refused(status)) if !status.is_forgotten() => {
                Err(Fault::Rejected(refusal::of_query(&status, sql, 1)))
            }
            outcome => outcome,
        },
        Product::Hive => plan(session, &format!("EXPLAIN\n{sql}"), sql, stop).and_then(|plan| only_reads(&plan)),
    }
}

/// Runs a query, and gives its rows as far as they are allowed.
pub(super) fn execute(session: &mut Session, sql: &str, limits: &Limits, stop: &Stop) -> Result<Gathered, Fault> {
    let sql = whole(sql)?;
    let (text, above) = match session.product {
        Product::Spark => {
            if may_call_programs(sql) {
                let plan = plan(session, &format!("EXPLAIN SELECT * FROM (\n{sql}\n)"), sql, stop)?;
                if plan.contains("ScriptTransformation") {
                    return Err(refused("rows are not sent through programs of the server"));
                }
            }
            (format!("SELECT * FROM (\n{sql}\n) LIMIT {}", enough(limits)), 1)
        }
        Product::Hive => {
            probe(session, sql, stop)?;
            (sql.to_string(), 0)
        }
    };
    let operation = match session.run(&text, stop) {
        Err(Fault::Refused(status)) if !status.is_forgotten() => {
            // The query is told what is wrong with it as it would be if it stood alone.
            if session.product == Product::Spark {
                probe(session, sql, stop)?;
            }
            return Err(Fault::Rejected(refusal::of_query(&status, sql, above)));
        }
        outcome => outcome?,
    };
    let gathered = session.gather(&operation, limits, stop);
    session.let_go(&operation, matches!(gathered, Err(Fault::Stopped)));
    gathered.map_err(|fault| match fault {
        Fault::Refused(status) if !status.is_forgotten() => Fault::Rejected(refusal::of_query(&status, sql, above)),
        other => other,
    })
}

/// The query without the semicolon that may end it.
fn whole(sql: &str) -> Result<&str, Fault> {
    if sql.contains('\0') {
        return Err(refused("the query holds a NUL character"));
    }
    let sql = sql.trim_end_matches(|c: char| c.is_whitespace() || c == ';');
    if sql.trim().is_empty() { Err(refused("the query is empty")) } else { Ok(sql) }
}

/// One row more than can be given back is all that the server has to find.
fn enough(limits: &Limits) -> usize {
    let most = limits.rows.min(limits.bytes / size_of::<Cell>()).saturating_add(1);
    most.min(i32::MAX as usize - 1)
}

/// Whether the words are there that it takes to send rows through a program.
///
/// Upper case, as the server's own reader turns every letter: there is more than one letter whose upper case is an S or an I.
fn may_call_programs(sql: &str) -> bool {
    let sql = sql.to_uppercase();
    sql.contains("USING") && ["TRANSFORM", "MAP", "REDUCE"].iter().any(|word| sql.contains(word))
}

fn plan(session: &mut Session, text: &str, sql: &str, stop: &Stop) -> Result<String, Fault> {
    let operation = match session.run(text, stop) {
        Err(Fault::Refused(status)) if !status.is_forgotten() => {
            return Err(Fault::Rejected(refusal::of_query(&status, sql, 1)));
        }
        outcome => outcome?,
    };
    let limits = Limits { rows: 100_000, bytes: 16 << 20, time: Duration::MAX, memory: 0, steps: None };
    let gathered = session.gather(&operation, &limits, stop);
    session.let_go(&operation, matches!(gathered, Err(Fault::Stopped)));
    let rows = gathered?.taking.done();
    if rows.truncated {
        return Err(refused("the plan of the query is too long to be looked at"));
    }
    let line = |row: &Vec<Cell>| match row.first() {
        Some(Cell::Text(line)) => format!("{line}\n"),
        _ => String::new(),
    };
    Ok(rows.rows.iter().map(line).collect())
}

/// Whether a plan of Hive does nothing but read. Each stage is named by what it does; those that are not known do something else.
fn only_reads(plan: &str) -> Result<(), Fault> {
    const READING: &[&str] =
        &["Map Reduce", "Map Reduce Local Work", "Tez", "Spark", "Fetch Operator", "Conditional Operator"];
    // Nothing that a query says may be taken for the beginning.
    if !plan.trim_start().starts_with("STAGE DEPENDENCIES:") {
        return Err(refused("the plan of the query cannot be read"));
    }
    let Some((_, stages)) = plan.split_once("STAGE PLANS:") else {
        return Err(refused("the plan of the query cannot be read"));
    };
    let mut lines = stages.lines().filter(|line| !line.trim().is_empty()).peekable();
    let mut found = false;
    while let Some(line) = lines.next() {
        if !line.trim_start().starts_with("Stage: ") {
            continue;
        }
        let Some(work) = lines.peek().filter(|next| !next.trim_start().starts_with("Stage: ")) else { continue };
        found = true;
        if !READING.contains(&work.trim()) {
            return Err(refused(&format!("the query does more than read: {}", work.trim())));
        }
    }
    if !found {
        return Err(refused("the plan of the query cannot be read"));
    }
    if plan.contains("Transform Operator") || plan.contains("Script Operator") {
        return Err(refused("rows are not sent through programs of the server"));
    }
    if let Some(function) = HIVE_ANY_CODE.iter().find(|function| plan.contains(*function)) {
        return Err(refused(&format!("the function {function}…) is not called")));
    }
    Ok(())
}

/// A refusal that this engine speaks in the server's place.
fn refused(message: &str) -> Fault {
    Fault::Rejected(EngineError { code: "25006".into(), message: message.into(), hint: None, position: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c01_plans_of_hive_that_do_more_than_read_are_refused() {
        let plan = |work: &str| {
            format!(
                "STAGE DEPENDENCIES:\n  Stage-1 is a root stage\n\nSTAGE PLANS:\n  Stage: Stage-1\n    Map Reduce\n      Map \
                 Operator Tree:\n          TableScan\n\n  Stage: Stage-0\n    {work}\n      limit: -1\n"
            )
        };
        assert_eq!(only_reads(&plan("Fetch Operator")), Ok(()));
        for work in ["Move Operator", "Create Table", "Drop Table", "Stats Work", "Explain", "Something New"] {
            assert!(only_reads(&plan(work)).is_err(), "{work}");
        }
        assert!(only_reads(&plan("Fetch Operator\n      expressions: reflect('java.lang.System','exit',1)")).is_err());
        assert!(only_reads(&plan("Fetch Operator\n      Transform Operator\n        command: cat")).is_err());
        assert!(only_reads("Vertex: 'STAGE PLANS:\n Stage: x\n Fetch Operator\n'").is_err());
        assert!(
            may_call_programs("select transform(a) U\u{17f}ING 'cat' from t")
                && may_call_programs("map a us\u{131}ng 'x'")
        );
        assert!(only_reads("").is_err() && only_reads("STAGE PLANS:\n").is_err());
    }
}
