//! What Spark and Hive say when they refuse, and where in the query they point.
//!
//! Their words come wrapped in Java: names of classes before them, a plan and a stack behind them. What stands between is kept
//! as it is, but for the numbers of lines: a query is sent on a line below our own.

use querymend_sql::EngineError;

use super::address::{Greeting, Settings};
use super::fault::{Fault, Status};
use crate::stop::Stop;
use crate::{Error, catalogue};

/// Where in the text a server points: the line, and the character on it, both counted from zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place {
    line: usize,
    character: usize,
}

/// A refusal of a query, which was sent below so many lines of ours.
pub(super) fn of_query(status: &Status, sql: &str, above: usize) -> EngineError {
    let (class, words) = bare(&status.message);
    let (words, seen) = without_surroundings(words);
    let mut message = words.to_string();
    let place = seen.or_else(|| place_in(words)).map(|place| Place { line: place.line.wrapping_sub(above), ..place });
    for line in (0..=sql.lines().count()).filter(|_| above > 0) {
        for form in [["line ", " pos "], ["(line ", ", pos "], ["ine ", ":"]] {
            let [before, after] = form;
            let from = format!("{before}{}{after}", line + above + 1);
            message = message.replace(&from, &format!("{before}{}{after}", line + 1));
        }
    }
    EngineError {
        code: code(status, class, words),
        message,
        hint: None,
        position: place.and_then(|place| offset(sql, place)),
    }
}

/// The words without the Java around them, and the last class that was named before them.
fn bare(message: &str) -> (&str, &str) {
    // What follows is the stack, or the same once more.
    let end = ["\n\tat ", "\nDriver stacktrace:", "\nCaused by: "].iter().filter_map(|end| message.find(end)).min();
    let mut words = message[..end.unwrap_or(message.len())].trim();
    let mut class = "";
    // Hive's own prefixes say nothing that its code does not.
    for prefix in ["Error while compiling statement: ", "Error while processing statement: "] {
        words = words.strip_prefix(prefix).unwrap_or(words);
    }
    loop {
        let before = words;
        if let Some(rest) = words.strip_prefix("Error running query: ") {
            words = rest;
        }
        // `[CLASS] package.Exception: words`, where the class comes again in the words unless it is an old one.
        if let Some((named, rest)) = words.strip_prefix('[').and_then(|rest| rest.split_once("] "))
            && exception(rest).is_some()
        {
            (class, words) = (named, rest);
        }
        if let Some((name, rest)) = exception(words) {
            if class.is_empty() || !class.contains('_') {
                class = name;
            }
            words = rest;
        }
        // What went wrong on some worker; which one it was helps nobody.
        if words.starts_with("Job aborted due to stage failure: Task ")
            && let Some((_, rest)) = words.split_once(" executor ").and_then(|(_, rest)| rest.split_once("): "))
        {
            words = rest;
        }
        words = words.trim();
        if words == before {
            return (class, words);
        }
    }
}

/// The simple name of the exception that words begin with, and what follows it.
fn exception(words: &str) -> Option<(&str, &str)> {
    let (name, rest) = words.split_once(':')?;
    let fits = |c: char| c.is_ascii_alphanumeric() || "._$".contains(c);
    let (package, class) = name.rsplit_once('.')?;
    let known = class.ends_with("Exception") || class.ends_with("Error");
    (known && !package.is_empty() && name.chars().all(fits)).then(|| (class, rest.trim()))
}

/// The words without the query that is repeated below them and without the plan; the query's place, if it is only named there.
fn without_surroundings(words: &str) -> (&str, Option<Place>) {
    let mut place = None;
    let mut kept = words;
    if let Some((before, repeated)) = words.split_once("\n== SQL") {
        kept = before;
        place = numbers(repeated.split_once("==").map_or("", |(head, _)| head), "(line ", ", position ")
            .map(|(line, position)| Place { line: line.wrapping_sub(1), character: position.wrapping_sub(1) });
    }
    // A plan begins with the name of a step, which is marked if it could not be resolved.
    let plan = kept.match_indices(";\n").find(|(at, _)| {
        let plan = kept[at + 2..].trim_start_matches(['\'', '!']);
        let name = plan.split(|c: char| !c.is_ascii_alphanumeric()).next().unwrap_or_default();
        name.starts_with(|c: char| c.is_ascii_uppercase())
            && (plan.contains("\n+- ") || plan.contains("\n:- ") || plan.contains('['))
    });
    (plan.map_or(kept, |(at, _)| &kept[..at]).trim_end_matches([';', '\n', ' ']), place)
}

fn place_in(words: &str) -> Option<Place> {
    let place = |(line, character): (usize, usize)| Place { line: line.wrapping_sub(1), character };
    numbers(words, "line ", ", pos ")
        .or_else(|| numbers(words, "line ", " pos "))
        .or_else(|| numbers(words, "ine ", ":"))
        .or_else(|| {
            // Hive leaves the word out at times.
            let rest = words.strip_prefix("FAILED: SemanticException ")?;
            numbers(rest.split(' ').next()?, "", ":")
        })
        .map(place)
}

/// The last two numbers that stand in such a form.
fn numbers(text: &str, before: &str, between: &str) -> Option<(usize, usize)> {
    text.match_indices(before)
        .filter_map(|(at, _)| {
            let rest = &text[at + before.len()..];
            let (first, rest) = rest.split_once(between)?;
            let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
            Some((first.parse().ok()?, rest[..digits].parse().ok()?))
        })
        .last()
}

/// From the place to the byte.
fn offset(sql: &str, place: Place) -> Option<usize> {
    let mut start = 0;
    for _ in 0..place.line {
        start += sql.get(start..)?.find('\n')? + 1;
    }
    let line = sql[start..].split('\n').next()?;
    let within = line.char_indices().map(|(at, _)| at).chain([line.len()]).nth(place.character)?;
    Some(start + within)
}

/// What Spark calls a class of errors, Hive's number, the SQLSTATE, or the name of the exception.
fn code(status: &Status, class: &str, words: &str) -> String {
    let fits = |name: &str| !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "_.".contains(c));
    if let Some((named, _)) =
        words.strip_prefix('[').and_then(|rest| rest.split_once(']')).filter(|(name, _)| fits(name))
    {
        return named.to_string();
    }
    if let Some((number, _)) = words.split_once("[Error ").and_then(|(_, rest)| rest.split_once(']'))
        && number.parse::<u32>().is_ok()
    {
        return number.to_string();
    }
    if class.contains('_') {
        return class.to_string();
    }
    match status {
        Status { code, .. } if *code != 0 => code.to_string(),
        Status { state, .. } if !state.is_empty() => state.clone(),
        _ if class.is_empty() => "ERROR".into(),
        _ => class.to_string(),
    }
}

/// What a fault means to whoever asked.
pub(super) fn meaning(fault: Fault, settings: &Settings, stop: &Stop) -> Error {
    let name = &settings.name;
    let unavailable = |what: String, hint: &str, transient: bool, cause: Option<Box<EngineError>>| Error::Unavailable {
        what,
        hint: hint.into(),
        transient,
        cause,
    };
    match fault {
        Fault::Stopped => stop.reason().unwrap_or(Error::Cancelled),
        Fault::TimedOut => Error::TimedOut { after: stop.time() },
        Fault::Rejected(error) => Error::Rejected(error),
        Fault::TooMuch => catalogue::too_much(name),
        Fault::Lost { why, secret: true } => unavailable(
            format!("there is no secure connection to {name}: {why}"),
            "if its certificate is of your own making, name the file of the authority with sslrootcert=FILE in the address; if \
             it speaks no TLS, write tls=false",
            false,
            None,
        ),
        Fault::Lost { why, .. } => unavailable(
            format!("{name} cannot be reached: {why}"),
            match settings.greeting {
                Greeting::Plain => {
                    "is the server running, and are host and port right? If it was set up with \
                     hive.server2.authentication=NOSASL, write auth=nosasl in the address"
                }
                Greeting::None => {
                    "is the server running, and are host and port right? If it asks for a name and a password, write \
                     auth=plain in the address"
                }
            },
            true,
            None,
        ),
        Fault::Unknown(words) => {
            let said = EngineError { code: "28000".into(), message: words, hint: None, position: None };
            unavailable(
                format!("{name} does not take the user name and password"),
                "give the right ones in the address, or the password in QUERYMEND_DB_PASSWORD",
                false,
                Some(Box::new(said)),
            )
        }
        Fault::Strange(why) => unavailable(
            format!("{name} gave an answer that cannot be read: {why}"),
            "is it a HiveServer2 or Spark's Thrift server, in binary mode? If an answer is too large, ask for fewer or shorter \
             columns",
            false,
            None,
        ),
        Fault::NoDatabase(status) => unavailable(
            format!("{name} has no such database"),
            "check the name after the last / of the address; SHOW DATABASES lists them",
            false,
            Some(Box::new(of_query(&status, "", 0))),
        ),
        Fault::Refused(status) => {
            let said = of_query(&status, "", 0);
            let transient = status.is_forgotten();
            unavailable(
                format!("{name} refused: {}", said.message),
                "see what it says",
                transient,
                Some(Box::new(said)),
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(message: &str, sql: &str, above: usize) -> EngineError {
        of_query(&Status { message: message.into(), ..Status::default() }, sql, above)
    }

    #[test]
    fn l03_java_is_taken_off_and_the_place_is_found() {
        let error = refused(
            "org.apache.hive.service.cli.HiveSQLException: Error running query: [UNRESOLVED_COLUMN.WITH_SUGGESTION] \
             org.apache.spark.sql.AnalysisException: [UNRESOLVED_COLUMN.WITH_SUGGESTION] A column with name `nmae` cannot be \
             resolved. Did you mean one of the following? [`id`].; line 3 pos 5;\n'Project ['nmae]\n+- SubqueryAlias things\n\
             \tat org.apache.spark.X.y(Z.scala:1)\nCaused by: org.apache.spark.sql.AnalysisException: again",
            "SELECT\n 'ü', nmae FROM things",
            1,
        );
        assert_eq!(error.code, "UNRESOLVED_COLUMN.WITH_SUGGESTION");
        assert_eq!(
            error.message,
            "[UNRESOLVED_COLUMN.WITH_SUGGESTION] A column with name `nmae` cannot be resolved. Did you mean one of the \
             following? [`id`].; line 2 pos 5"
        );
        assert_eq!(error.position, Some(13));

        let error = refused(
            "org.apache.hive.service.cli.HiveSQLException: Error running query: [PARSE_SYNTAX_ERROR] \
             org.apache.spark.sql.catalyst.parser.ParseException: \n[PARSE_SYNTAX_ERROR] Syntax error at or near 'FROM'.(line 2, \
             pos 13)\n\n== SQL ==\nDESCRIBE QUERY\nSELECT (name FROM things\n-------------^^^\n\n\tat org.apache",
            "SELECT (name FROM things",
            1,
        );
        assert_eq!(error.message, "[PARSE_SYNTAX_ERROR] Syntax error at or near 'FROM'.(line 1, pos 13)");
        assert_eq!((error.code.as_str(), error.position), ("PARSE_SYNTAX_ERROR", Some(13)));

        let error = refused(
            "org.apache.hive.service.cli.HiveSQLException: Error running query: org.apache.spark.SparkException: Job aborted due \
             to stage failure: Task 1 in stage 10.0 failed 1 times, most recent failure: Lost task 1.0 in stage 10.0 (TID 14) \
             (localhost executor driver): org.apache.spark.SparkArithmeticException: [DIVIDE_BY_ZERO] Division by zero.\n\
             == SQL(line 2, position 8) ==\nSELECT 1/(id-1) FROM things\n       ^^^^^^^^\n\n\tat x\nDriver stacktrace:",
            "SELECT 1/(id-1) FROM things",
            1,
        );
        assert_eq!(
            (error.code.as_str(), error.message.as_str()),
            ("DIVIDE_BY_ZERO", "[DIVIDE_BY_ZERO] Division by zero.")
        );
        assert_eq!(error.position, Some(7));

        let error = refused(
            "org.apache.hive.service.cli.HiveSQLException: Error running query: [_LEGACY_ERROR_TEMP_1034] \
             org.apache.spark.sql.AnalysisException: It is not allowed to use window functions inside WHERE clause.",
            "SELECT 1",
            1,
        );
        assert_eq!(error.code, "_LEGACY_ERROR_TEMP_1034");
        assert_eq!(error.message, "It is not allowed to use window functions inside WHERE clause.");

        let error = refused("Error running query: java.lang.RuntimeException: boom", "SELECT 1", 1);
        assert_eq!((error.code.as_str(), error.message.as_str()), ("RuntimeException", "boom"));
    }

    #[test]
    fn l03_hive_is_read_as_well() {
        let sql = "SELECT x.name FROM products p";
        let status = Status {
            code: 10_004,
            state: "42000".into(),
            message: "Error while compiling statement: FAILED: SemanticException [Error 10004]: Line 1:7 Invalid table alias or \
                      column reference 'x': (possible column names are: name)"
                .into(),
        };
        let error = of_query(&status, sql, 0);
        assert_eq!((error.code.as_str(), error.position), ("10004", Some(7)));
        assert!(
            error.message.starts_with("FAILED: SemanticException [Error 10004]: Line 1:7 Invalid"),
            "{}",
            error.message
        );
        let status = Status {
            code: 40_000,
            message: "Error while compiling statement: FAILED: ParseException line 2:9 missing EOF at 'FORM' near '*'"
                .into(),
            ..Status::default()
        };
        let error = of_query(&status, "SELECT * FORM products", 1);
        assert_eq!((error.code.as_str(), error.position), ("40000", Some(9)));
        assert_eq!(error.message, "FAILED: ParseException line 1:9 missing EOF at 'FORM' near '*'");
    }

    #[test]
    fn places_outside_the_query_are_none() {
        for message in ["x; line 9 pos 1", "x; line 1 pos 99", "x (line 0, pos 3)", "Line 0:-1 wrong", "a line up to 7"]
        {
            assert_eq!(refused(message, "SELECT 1", 1).position, None, "{message}");
        }
    }
}
