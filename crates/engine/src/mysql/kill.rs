//! Kills queries on the server. Closing the connection is not enough, because the server only
//! notices that when it sends rows.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use mysql_async::Conn;
use mysql_async::prelude::Queryable;

use super::address::MySqlServer;

/// Timeout for killing a query.
const KILL_TIMEOUT: Duration = Duration::from_secs(3);

/// Kills the query of a connection when dropped, unless it is disarmed.
pub(super) struct KillOnDrop {
    server: Arc<MySqlServer>,
    connection_id: Option<u32>,
}

impl KillOnDrop {
    pub(super) fn new(server: &Arc<MySqlServer>, id: u32) -> Self {
        Self { server: Arc::clone(server), connection_id: Some(id) }
    }

    /// Disarms the guard after the query has ended.
    pub(super) fn disarm(mut self) {
        self.connection_id = None;
    }

    /// Kills the query immediately, and waits until the server has acknowledged it.
    pub(super) async fn kill(mut self) {
        if let Some(id) = self.connection_id.take() {
            kill_connection(&self.server, id).await;
        }
    }
}

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        let Some(id) = self.connection_id.take() else { return };
        let server = Arc::clone(&self.server);
        // The caller's runtime may be shutting down, so this needs its own.
        let tell = move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            if let Ok(runtime) = runtime {
                runtime.block_on(kill_connection(&server, id));
            }
        };
        // If no thread can be started, the server's own time limit ends the query.
        drop(std::thread::Builder::new().name("mysql-stop".into()).spawn(tell));
    }
}

/// Kills a connection through a second one. A user may kill their own connections without
/// additional privileges.
///
/// Errors are ignored, because the first connection may already be closed.
async fn kill_connection(server: &MySqlServer, id: u32) {
    let tell = async {
        let mut second = Conn::new(server.opts.clone()).await?;
        second.query_drop(format!("KILL {id}")).await?;
        second.disconnect().await
    };
    drop(tokio::time::timeout(KILL_TIMEOUT, tell).await);
}

/// Pooled connection, which is closed immediately on drop unless it is clean.
///
/// Otherwise the driver would first read all remaining rows, which it does not do if a command was
/// interrupted.
pub(super) struct PooledMySqlConnection {
    pub(super) connection: Conn,
    pub(super) is_clean: bool,
}

impl Drop for PooledMySqlConnection {
    fn drop(&mut self) {
        if !self.is_clean {
            drop(self.connection.ping().now_or_never());
        }
    }
}
