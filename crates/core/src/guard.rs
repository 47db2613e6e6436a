//! What keeps a run within bounds: circuit breakers around databases and models, and budgets.
//!
//! A [`Breaker`] stands before one tool. [`Breakers`] keeps one for each tool and wraps engines and models, so that
//! whoever asks them need not know: a [`GuardedEngine`] is an engine, and a [`GuardedModel`] is a model.
//!
//! A refusal by a breaker reaches the caller as an error of the wrapped trait. [`Open::in_engine_error`] and
//! [`Open::in_model_error`] tell it from what the tool itself said, and give back when to try again; an [`Open`]
//! becomes the [`Problem`](crate::event::Problem) that protocols map.

mod breaker;
mod breakers;
mod budget;
mod clock;
mod open;
mod settings;
mod sync;
#[cfg(test)]
mod tests;
mod wrapped;

pub use breaker::{Breaker, Change, OnChange, Permit, State, Stats};
pub use breakers::Breakers;
pub use budget::Budget;
pub use clock::{Clock, ManualClock, SystemClock};
pub use open::Open;
pub use settings::BreakerSettings;
pub use wrapped::{GuardedEngine, GuardedModel};
