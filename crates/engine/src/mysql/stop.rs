//! Ends a query on the server: closing the connection is not enough, as a server only notices that when it has rows to send.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use mysql_async::Conn;
use mysql_async::prelude::Queryable;

use super::address::Server;

/// So long may it take to tell the server.
const PATIENCE: Duration = Duration::from_secs(3);

/// Ends what runs on a connection when it is dropped, unless it was taken back before.
pub(super) struct Stop {
    server: Arc<Server>,
    id: Option<u32>,
}

impl Stop {
    /// For the connection with this number.
    pub(super) fn new(server: &Arc<Server>, id: u32) -> Self {
        Self { server: Arc::clone(server), id: Some(id) }
    }

    /// Nothing runs any more.
    pub(super) fn take_back(mut self) {
        self.id = None;
    }

    /// Ends it now, and waits until the server knows.
    pub(super) async fn now(mut self) {
        if let Some(id) = self.id.take() {
            end(&self.server, id).await;
        }
    }
}

impl Drop for Stop {
    fn drop(&mut self) {
        let Some(id) = self.id.take() else { return };
        let server = Arc::clone(&self.server);
        // The runtime may end together with whoever asked, so that this needs one of its own.
        let tell = move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            if let Ok(runtime) = runtime {
                runtime.block_on(end(&server, id));
            }
        };
        // If no thread can be had, the server's own limit ends the query.
        drop(std::thread::Builder::new().name("mysql-stop".into()).spawn(tell));
    }
}

/// From a second connection; whoever asked may end their own queries without further rights. The server may have ended the first
/// one by itself, and need not be there any more.
async fn end(server: &Server, id: u32) {
    let tell = async {
        let mut second = Conn::new(server.opts.clone()).await?;
        second.query_drop(format!("KILL {id}")).await?;
        second.disconnect().await
    };
    drop(tokio::time::timeout(PATIENCE, tell).await);
}

/// A connection. Unless it is known to be clean it is closed at once when it is dropped: the driver would first read all rows that
/// are still to come, and does not if it was interrupted in the middle of something.
pub(super) struct Held {
    pub(super) connection: Conn,
    pub(super) is_clean: bool,
}

impl Drop for Held {
    fn drop(&mut self) {
        if !self.is_clean {
            drop(self.connection.ping().now_or_never());
        }
    }
}
