//! `Run`: executes a query and streams its rows in pages below the message size limit of clients.

use std::sync::Arc;

use prost::Message;
use querymend::CancellationToken;
use querymend::sql_api::QueryResult;

use super::fields::non_empty;
use super::messages;
use super::proto::{Row, RunHead, RunPage, RunRequest};
use super::status::query_error_status;
use super::stream::{ResponseStream, StreamSender, channel};
use crate::caller::Caller;
use crate::request_task::CancelOnDisconnect;
use crate::service::{Service, SqlRequest};

/// Number of rows in a page if the request does not specify it.
const DEFAULT_PAGE_ROWS: usize = 1_000;
/// Maximum size of a page, in bytes. Clients commonly reject messages over 4 MB.
const MAX_PAGE_BYTES: usize = 1 << 20;
/// Maximum number of pages queued for a slow client.
const PAGE_QUEUE_SIZE: usize = 2;

/// Executes a query and streams its rows page by page.
pub fn stream(service: Arc<Service>, caller: Arc<Caller>, request: RunRequest) -> ResponseStream<RunPage> {
    let cancel = CancellationToken::new();
    let (sender, responses) = channel(PAGE_QUEUE_SIZE, CancelOnDisconnect(cancel.clone()));
    tokio::spawn(async move {
        let page_rows = if request.page_rows == 0 { DEFAULT_PAGE_ROWS } else { request.page_rows as usize };
        let max_rows = (request.max_rows > 0).then_some(request.max_rows as usize);
        let query = SqlRequest { sql: request.sql, database: non_empty(request.database), question: None, max_rows };
        match service.run(&caller.context(), &query, &cancel).await {
            Ok(ran) => send_pages(ran, page_rows, sender).await,
            Err(error) => sender.finish(None, Some(query_error_status(error))).await,
        }
        drop(caller);
    });
    responses
}

async fn send_pages(ran: QueryResult, page_rows: usize, sender: StreamSender<RunPage>) {
    let mut head = Some(RunHead {
        sql: ran.sql,
        columns: ran.rows.columns,
        warnings: ran.warnings.into_iter().map(Into::into).collect(),
        duration_ms: ran.ms,
    });
    let mut rows = ran.rows.rows.into_iter().map(messages::row).peekable();
    loop {
        let mut page = RunPage { head: head.take(), ..RunPage::default() };
        let mut bytes = 0;
        while let Some(row) = rows.next_if(|row: &Row| fits_on_page(page.rows.len(), page_rows, bytes, row)) {
            bytes += row.encoded_len();
            page.rows.push(row);
        }
        if rows.peek().is_none() {
            page.last = true;
            page.truncated = ran.rows.truncated;
            return sender.finish(Some(page), None).await;
        }
        if !sender.send(page).await {
            return;
        }
    }
}

/// Returns whether a row fits on a page. The first row always does.
fn fits_on_page(rows: usize, max_rows: usize, bytes: usize, row: &Row) -> bool {
    rows == 0 || (rows < max_rows && bytes + row.encoded_len() <= MAX_PAGE_BYTES)
}
