//! Handlers of the routes, one file per resource.

pub(super) mod ask;
pub(super) mod breakers;
pub(super) mod databases;
pub(super) mod examples;
pub(super) mod health;
pub(super) mod me;
pub(super) mod metrics;
pub(super) mod rules;
pub(super) mod schema;
pub(super) mod sessions;
pub(super) mod sql;
pub(super) mod traces;
