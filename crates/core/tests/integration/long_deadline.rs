//! An engine whose queries have time enough on a machine of any speed, whatever deadline they come with.

use std::sync::Arc;

use querymend_engine::{CancelFlag, Engine, EngineFuture, Limits};
use querymend_sql::{Approved, Dialect, Rows, Schema};
use querymend_testing::hang_timeout;

/// A query of the demo shop that only a deadline or a cancellation ends.
pub const ENDLESS: &str =
    "SELECT count(*) FROM order_items a, order_items b, order_items c, order_items d, order_items e";

/// Gives every query [`hang_timeout`], except [`ENDLESS`], which keeps the deadline that it came with.
pub struct LongDeadline(pub Arc<dyn Engine>);

impl Engine for LongDeadline {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn dialect(&self) -> &'static Dialect {
        self.0.dialect()
    }

    fn schema(&self) -> EngineFuture<'_, Schema> {
        self.0.schema()
    }

    fn probe<'a>(&'a self, query: &'a Approved) -> EngineFuture<'a, ()> {
        self.0.probe(query)
    }

    fn execute<'a>(
        &'a self,
        query: &'a Approved,
        limits: &'a Limits,
        cancel: &'a CancelFlag,
    ) -> EngineFuture<'a, Rows> {
        Box::pin(async move {
            let time = if query.sql().contains("order_items e") { limits.time } else { hang_timeout() };
            let limits = Limits { time, ..limits.clone() };
            self.0.execute(query, &limits, cancel).await
        })
    }

    fn test_connection(&self) -> EngineFuture<'_, ()> {
        self.0.test_connection()
    }
}
