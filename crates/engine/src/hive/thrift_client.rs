//! Calls of the HiveServer2 protocol. Numeric ids are those of the protocol.

use std::io::Write;

use thrift::TConfiguration;
use thrift::protocol::{
    TBinaryInputProtocol, TBinaryOutputProtocol, TInputProtocol, TMessageIdentifier, TMessageType, TOutputProtocol,
};

use super::hive_error::{HiveError, ThriftStatus};
use super::thrift_value::{ReadBudget, ThriftValue};
use super::transport::HiveTransport;

/// Version 8 of the protocol (counted from 0). Results are column-oriented since version 6.
const PROTOCOL_VERSION: i32 = 7;
/// Maximum memory of one response. Rows are fetched in batches that stay far below it.
const MAX_RESPONSE_BYTES: usize = 256 << 20;

/// Ids of `GetInfo` requests.
pub(super) const INFO_DBMS_NAME: i32 = 17;
pub(super) const INFO_DBMS_VERSION: i32 = 18;

#[derive(Debug, PartialEq, Eq)]
pub(super) enum OperationState {
    Running,
    Finished,
    /// The operation was cancelled.
    Cancelled,
    TimedOut,
    Failed(ThriftStatus),
}

/// Client of a HiveServer2.
pub(super) struct ThriftClient {
    transport: HiveTransport,
    sequence_number: i32,
}

impl ThriftClient {
    pub(super) fn new(line: HiveTransport) -> Self {
        Self { transport: line, sequence_number: 0 }
    }

    pub(super) fn transport(&mut self) -> &mut HiveTransport {
        &mut self.transport
    }

    fn call(&mut self, name: &str, request: Vec<(i16, ThriftValue)>) -> Result<ThriftValue, HiveError> {
        self.sequence_number = self.sequence_number.wrapping_add(1);
        let mut message = Vec::new();
        let mut to = TBinaryOutputProtocol::new(&mut message, true);
        to.write_message_begin(&TMessageIdentifier::new(name, TMessageType::Call, self.sequence_number))?;
        ThriftValue::Struct(vec![(1, ThriftValue::Struct(request))]).write(&mut to)?;
        to.write_message_end()?;
        self.transport.write_all(&message)?;
        self.transport.flush()?;

        let names = TConfiguration::builder().max_string_size(Some(4 << 10)).build()?;
        let mut from = TBinaryInputProtocol::with_config(&mut self.transport, true, names);
        let head = from.read_message_begin()?;
        let body = ThriftValue::read(&mut from, &mut ReadBudget(MAX_RESPONSE_BYTES))?;
        if head.message_type == TMessageType::Exception {
            let words = body.field(1).and_then(ThriftValue::as_string).unwrap_or_default();
            return Err(HiveError::InvalidResponse(words.lines().next().unwrap_or_default().to_string()));
        }
        if head.message_type != TMessageType::Reply || head.name != name || head.sequence_number != self.sequence_number
        {
            return Err(HiveError::InvalidResponse("a response to another request".into()));
        }
        let answer =
            body.take_field(0).ok_or_else(|| HiveError::InvalidResponse("a response without content".into()))?;
        HiveError::check_status(&answer)?;
        Ok(answer)
    }

    /// Opens a session and returns its handle.
    pub(super) fn open_session(
        &mut self,
        user: &str,
        password: &str,
        settings: &[(&str, &str)],
    ) -> Result<ThriftValue, HiveError> {
        let answer = self.call(
            "OpenSession",
            vec![
                (1, ThriftValue::Int(PROTOCOL_VERSION)),
                (2, ThriftValue::from_text(user)),
                (3, ThriftValue::from_text(password)),
                (4, ThriftValue::from_text_pairs(settings)),
            ],
        )?;
        // Older versions return rows one by one, in a format that has been obsolete for ten years.
        if answer.field(2).and_then(ThriftValue::as_i64).is_none_or(|version| version < 5) {
            return Err(HiveError::InvalidResponse("the protocol version of the server is too old".into()));
        }
        take_handle(answer, 3)
    }

    pub(super) fn close_session(&mut self, session: &ThriftValue) -> Result<(), HiveError> {
        self.call("CloseSession", vec![(1, session.clone())]).map(drop)
    }

    pub(super) fn get_info(&mut self, session: &ThriftValue, what: i32) -> Result<String, HiveError> {
        let answer = self.call("GetInfo", vec![(1, session.clone()), (2, ThriftValue::Int(what))])?;
        Ok(answer.field(2).and_then(|info| info.field(1)).and_then(ThriftValue::as_string).unwrap_or_default())
    }

    /// Starts a statement, which the server ends after `seconds`.
    pub(super) fn execute_statement(
        &mut self,
        session: &ThriftValue,
        sql: &str,
        seconds: i64,
    ) -> Result<ThriftValue, HiveError> {
        let answer = self.call(
            "ExecuteStatement",
            vec![
                (1, session.clone()),
                (2, ThriftValue::from_text(sql)),
                (4, ThriftValue::Bool(true)),
                (5, ThriftValue::Long(seconds)),
            ],
        )?;
        take_handle(answer, 2)
    }

    /// Lists the tables of the databases that match a pattern.
    pub(super) fn get_tables(&mut self, session: &ThriftValue, database: &str) -> Result<ThriftValue, HiveError> {
        let request =
            vec![(1, session.clone()), (3, ThriftValue::from_text(database)), (4, ThriftValue::from_text("%"))];
        take_handle(self.call("GetTables", request)?, 2)
    }

    /// Lists the columns of the databases that match a pattern.
    pub(super) fn get_columns(&mut self, session: &ThriftValue, database: &str) -> Result<ThriftValue, HiveError> {
        let request = vec![
            (1, session.clone()),
            (3, ThriftValue::from_text(database)),
            (4, ThriftValue::from_text("%")),
            (5, ThriftValue::from_text("%")),
        ];
        take_handle(self.call("GetColumns", request)?, 2)
    }

    pub(super) fn operation_state(&mut self, operation: &ThriftValue) -> Result<OperationState, HiveError> {
        let answer = self.call("GetOperationStatus", vec![(1, operation.clone())])?;
        Ok(match answer.field(2).and_then(ThriftValue::as_i64) {
            Some(0 | 1 | 7) => OperationState::Running,
            Some(2) => OperationState::Finished,
            Some(3 | 4) => OperationState::Cancelled,
            Some(8) => OperationState::TimedOut,
            _ => OperationState::Failed(ThriftStatus {
                code: answer.field(4).and_then(ThriftValue::as_i64).unwrap_or_default(),
                sql_state: answer.field(3).and_then(ThriftValue::as_string).unwrap_or_default(),
                message: answer.field(5).and_then(ThriftValue::as_string).unwrap_or_default(),
            }),
        })
    }

    pub(super) fn cancel_operation(&mut self, operation: &ThriftValue) -> Result<(), HiveError> {
        self.call("CancelOperation", vec![(1, operation.clone())]).map(drop)
    }

    pub(super) fn close_operation(&mut self, operation: &ThriftValue) -> Result<(), HiveError> {
        self.call("CloseOperation", vec![(1, operation.clone())]).map(drop)
    }

    /// Returns the names and type ids of an operation's result columns.
    pub(super) fn result_columns(&mut self, operation: &ThriftValue) -> Result<Vec<(String, i64)>, HiveError> {
        const TEXT: i64 = 7;
        let answer = self.call("GetResultSetMetadata", vec![(1, operation.clone())])?;
        let columns = answer.field(2).and_then(|schema| schema.field(1)).map(ThriftValue::as_list).unwrap_or_default();
        let described = |column: &ThriftValue| {
            let name = column.field(1).and_then(ThriftValue::as_string).unwrap_or_default();
            let entries = column.field(2).and_then(|kind| kind.field(1)).map(ThriftValue::as_list).unwrap_or_default();
            let kind = entries.first().and_then(|entry| entry.field(1)).and_then(|entry| entry.field(1));
            (name, kind.and_then(ThriftValue::as_i64).unwrap_or(TEXT))
        };
        Ok(columns.iter().map(described).collect())
    }

    /// Fetches the next batch of at most `rows` rows, as columns.
    pub(super) fn fetch_results(
        &mut self,
        operation: &ThriftValue,
        rows: usize,
    ) -> Result<Vec<ThriftValue>, HiveError> {
        let rows = i64::try_from(rows).unwrap_or(i64::MAX);
        let request = vec![
            (1, operation.clone()),
            (2, ThriftValue::Int(0)),
            (3, ThriftValue::Long(rows)),
            (4, ThriftValue::Short(0)),
        ];
        let answer = self.call("FetchResults", request)?;
        let rows = answer.take_field(3).ok_or_else(|| HiveError::InvalidResponse("a response without rows".into()))?;
        Ok(rows.take_field(3).map(ThriftValue::into_list).unwrap_or_default())
    }
}

fn take_handle(answer: ThriftValue, field: i16) -> Result<ThriftValue, HiveError> {
    answer.take_field(field).ok_or_else(|| HiveError::InvalidResponse("a response without a handle".into()))
}
