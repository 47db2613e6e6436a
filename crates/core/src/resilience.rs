//! Circuit breakers for databases and models, and budgets.
//!
//! A [`Breaker`] guards one tool. [`Breakers`] keeps one per tool and wraps engines and models
//! transparently: a [`GuardedEngine`] is an engine, and a [`GuardedModel`] is a model.
//!
//! A rejection by a breaker reaches the caller as an error of the wrapped trait.
//! [`BreakerOpen::from_engine_error`] and [`BreakerOpen::from_model_error`] distinguish it from
//! errors of the tool itself, and recover the time to retry; a [`BreakerOpen`] converts to the
//! [`Problem`](crate::event::Problem) that protocols map.

mod breaker;
mod breaker_open;
mod breakers;
mod budget;
mod clock;
mod decorators;
mod settings;
mod sync;
#[cfg(test)]
mod tests;

pub use breaker::{Breaker, BreakerState, BreakerStateChange, BreakerStats, OnChange, Permit};
pub use breaker_open::BreakerOpen;
pub use breakers::Breakers;
pub use budget::Budget;
pub use clock::{Clock, ManualClock, SystemClock};
pub use decorators::{GuardedEngine, GuardedModel};
pub use settings::BreakerSettings;
