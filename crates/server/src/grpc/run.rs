//! Queries that are run: rows in pages that no client finds too large.

use std::sync::Arc;

use prost::Message;
use querymend::Cancel;
use querymend::direct::Ran;

use super::call::given;
use super::proto::{Row, RunHead, RunPage, RunRequest};
use super::sql;
use super::status::not_run;
use super::stream::{Teller, Told, pieces};
use crate::http::{Caller, Gone};
use crate::service::{QueryText, Service};

/// Rows of a page, where nothing is said.
const PAGE_ROWS: usize = 1_000;
/// A page is full at this length, in bytes. Clients commonly take no message of more than four megabytes.
const PAGE_BYTES: usize = 1 << 20;
/// Pages that wait for a client that reads slowly.
const WAITING: usize = 2;

/// The rows of a query, page by page.
pub fn stream(service: Arc<Service>, caller: Arc<Caller>, request: RunRequest) -> Told<RunPage> {
    let cancel = Cancel::new();
    let (teller, told) = pieces(WAITING, Gone(cancel.clone()));
    tokio::spawn(async move {
        let page_rows = if request.page_rows == 0 { PAGE_ROWS } else { request.page_rows as usize };
        let max_rows = (request.max_rows > 0).then_some(request.max_rows as usize);
        let query = QueryText { sql: request.sql, database: given(request.database), question: None, max_rows };
        match service.run(&caller.asking(), &query, &cancel).await {
            Ok(ran) => tell(ran, page_rows, teller).await,
            Err(not) => teller.end(None, Some(not_run(not))).await,
        }
        drop(caller);
    });
    told
}

async fn tell(ran: Ran, page_rows: usize, teller: Teller<RunPage>) {
    let mut head = Some(RunHead {
        sql: ran.sql,
        columns: ran.rows.columns,
        warnings: ran.warnings.into_iter().map(Into::into).collect(),
        duration_ms: ran.ms,
    });
    let mut rows = ran.rows.rows.into_iter().map(sql::row).peekable();
    loop {
        let mut page = RunPage { head: head.take(), ..RunPage::default() };
        let mut bytes = 0;
        while let Some(row) = rows.next_if(|row: &Row| fits(page.rows.len(), page_rows, bytes, row)) {
            bytes += row.encoded_len();
            page.rows.push(row);
        }
        if rows.peek().is_none() {
            page.last = true;
            page.truncated = ran.rows.truncated;
            return teller.end(Some(page), None).await;
        }
        if !teller.send(page).await {
            return;
        }
    }
}

/// The first row of a page always does.
fn fits(rows: usize, most_rows: usize, bytes: usize, row: &Row) -> bool {
    rows == 0 || (rows < most_rows && bytes + row.encoded_len() <= PAGE_BYTES)
}
