//! The calls of HiveServer2, and what is in their answers. The numbers are those of its protocol.

use std::io::Write;

use thrift::TConfiguration;
use thrift::protocol::{
    TBinaryInputProtocol, TBinaryOutputProtocol, TInputProtocol, TMessageIdentifier, TMessageType, TOutputProtocol,
};

use super::fault::{Fault, Status};
use super::line::Line;
use super::value::{Allowance, Value};

/// Rows come by columns since the sixth; this is the eighth.
const PROTOCOL: i32 = 7;
/// The most memory that one answer may take on its way. Rows are asked for in parts that stay far below it.
const LARGEST_ANSWER: usize = 256 << 20;

/// Questions about the server.
pub(super) const NAME_OF_SERVER: i32 = 17;
pub(super) const VERSION_OF_SERVER: i32 = 18;

/// How far an operation is.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum State {
    Running,
    Finished,
    /// Somebody has stopped it.
    Stopped,
    TimedOut,
    Failed(Status),
}

/// A line with somebody on the other end.
pub(super) struct Server {
    line: Line,
    calls: i32,
}

impl Server {
    pub(super) fn new(line: Line) -> Self {
        Self { line, calls: 0 }
    }

    pub(super) fn line(&mut self) -> &mut Line {
        &mut self.line
    }

    fn call(&mut self, name: &str, request: Vec<(i16, Value)>) -> Result<Value, Fault> {
        self.calls = self.calls.wrapping_add(1);
        let mut message = Vec::new();
        let mut to = TBinaryOutputProtocol::new(&mut message, true);
        to.write_message_begin(&TMessageIdentifier::new(name, TMessageType::Call, self.calls))?;
        Value::Struct(vec![(1, Value::Struct(request))]).write(&mut to)?;
        to.write_message_end()?;
        self.line.write_all(&message)?;
        self.line.flush()?;

        let names = TConfiguration::builder().max_string_size(Some(4 << 10)).build()?;
        let mut from = TBinaryInputProtocol::with_config(&mut self.line, true, names);
        let head = from.read_message_begin()?;
        let body = Value::read(&mut from, &mut Allowance(LARGEST_ANSWER))?;
        if head.message_type == TMessageType::Exception {
            let words = body.field(1).and_then(Value::string).unwrap_or_default();
            return Err(Fault::Strange(words.lines().next().unwrap_or_default().to_string()));
        }
        if head.message_type != TMessageType::Reply || head.name != name || head.sequence_number != self.calls {
            return Err(Fault::Strange("an answer to something else".into()));
        }
        let answer = body.take(0).ok_or_else(|| Fault::Strange("an answer without content".into()))?;
        Fault::check(&answer)?;
        Ok(answer)
    }

    /// Begins a session, and gives its handle.
    pub(super) fn open_session(
        &mut self,
        user: &str,
        password: &str,
        settings: &[(&str, &str)],
    ) -> Result<Value, Fault> {
        let answer = self.call(
            "OpenSession",
            vec![
                (1, Value::Int(PROTOCOL)),
                (2, Value::text(user)),
                (3, Value::text(password)),
                (4, Value::texts(settings)),
            ],
        )?;
        // Older ones give rows one by one, in a form that nobody has used for ten years.
        if answer.field(2).and_then(Value::number).is_none_or(|version| version < 5) {
            return Err(Fault::Strange("the server speaks too old a version of the protocol".into()));
        }
        handle(answer, 3)
    }

    pub(super) fn close_session(&mut self, session: &Value) -> Result<(), Fault> {
        self.call("CloseSession", vec![(1, session.clone())]).map(drop)
    }

    pub(super) fn info(&mut self, session: &Value, what: i32) -> Result<String, Fault> {
        let answer = self.call("GetInfo", vec![(1, session.clone()), (2, Value::Int(what))])?;
        Ok(answer.field(2).and_then(|info| info.field(1)).and_then(Value::string).unwrap_or_default())
    }

    /// Begins a statement. The server is to end it by itself after so many seconds.
    pub(super) fn execute(&mut self, session: &Value, sql: &str, seconds: i64) -> Result<Value, Fault> {
        let answer = self.call(
            "ExecuteStatement",
            vec![(1, session.clone()), (2, Value::text(sql)), (4, Value::Bool(true)), (5, Value::Long(seconds))],
        )?;
        handle(answer, 2)
    }

    /// Asks for the tables whose names fit.
    pub(super) fn tables(&mut self, session: &Value, database: &str) -> Result<Value, Fault> {
        let request = vec![(1, session.clone()), (3, Value::text(database)), (4, Value::text("%"))];
        handle(self.call("GetTables", request)?, 2)
    }

    /// Asks for their columns.
    pub(super) fn columns(&mut self, session: &Value, database: &str) -> Result<Value, Fault> {
        let request =
            vec![(1, session.clone()), (3, Value::text(database)), (4, Value::text("%")), (5, Value::text("%"))];
        handle(self.call("GetColumns", request)?, 2)
    }

    pub(super) fn state(&mut self, operation: &Value) -> Result<State, Fault> {
        let answer = self.call("GetOperationStatus", vec![(1, operation.clone())])?;
        Ok(match answer.field(2).and_then(Value::number) {
            Some(0 | 1 | 7) => State::Running,
            Some(2) => State::Finished,
            Some(3 | 4) => State::Stopped,
            Some(8) => State::TimedOut,
            _ => State::Failed(Status {
                code: answer.field(4).and_then(Value::number).unwrap_or_default(),
                state: answer.field(3).and_then(Value::string).unwrap_or_default(),
                message: answer.field(5).and_then(Value::string).unwrap_or_default(),
            }),
        })
    }

    pub(super) fn cancel(&mut self, operation: &Value) -> Result<(), Fault> {
        self.call("CancelOperation", vec![(1, operation.clone())]).map(drop)
    }

    pub(super) fn close(&mut self, operation: &Value) -> Result<(), Fault> {
        self.call("CloseOperation", vec![(1, operation.clone())]).map(drop)
    }

    /// The columns of the rows that an operation gives: name, and number of the type.
    pub(super) fn describe(&mut self, operation: &Value) -> Result<Vec<(String, i64)>, Fault> {
        const TEXT: i64 = 7;
        let answer = self.call("GetResultSetMetadata", vec![(1, operation.clone())])?;
        let columns = answer.field(2).and_then(|schema| schema.field(1)).map(Value::list).unwrap_or_default();
        let described = |column: &Value| {
            let name = column.field(1).and_then(Value::string).unwrap_or_default();
            let entries = column.field(2).and_then(|kind| kind.field(1)).map(Value::list).unwrap_or_default();
            let kind = entries.first().and_then(|entry| entry.field(1)).and_then(|entry| entry.field(1));
            (name, kind.and_then(Value::number).unwrap_or(TEXT))
        };
        Ok(columns.iter().map(described).collect())
    }

    /// The next rows, at most so many, by columns.
    pub(super) fn fetch(&mut self, operation: &Value, rows: usize) -> Result<Vec<Value>, Fault> {
        let rows = i64::try_from(rows).unwrap_or(i64::MAX);
        let request = vec![(1, operation.clone()), (2, Value::Int(0)), (3, Value::Long(rows)), (4, Value::Short(0))];
        let answer = self.call("FetchResults", request)?;
        let rows = answer.take(3).ok_or_else(|| Fault::Strange("an answer without rows".into()))?;
        Ok(rows.take(3).map(Value::into_list).unwrap_or_default())
    }
}

fn handle(answer: Value, field: i16) -> Result<Value, Fault> {
    answer.take(field).ok_or_else(|| Fault::Strange("an answer without a handle".into()))
}
