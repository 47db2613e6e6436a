//! What can be known about a SQL query without running it.
//!
//! [`review`] reads the text of a person or a model, finds the SQL in it, binds every name to the schema, runs every
//! rule of [`rules::RULES`] and says what is wrong, where, and what to write instead. Only a [`Review`] of one statement
//! that does nothing but read can be turned into an [`Approved`] query, and engines run nothing else.
//!
//! This crate is pure: no I/O, no clock, no async.
//!
//! ```
//! use querymend_sql::{Context, Policy, Schema, dialect, review};
//!
//! let schema = Schema::from_ddl("CREATE TABLE products (product_id INTEGER PRIMARY KEY, price REAL)", &dialect::SQLITE)?;
//! let policy = Policy::default();
//! let context = Context { schema: Some(&schema), dialect: &dialect::SQLITE, policy: &policy, question: None };
//! let review = review("SELECT id FROM products", &context);
//! assert_eq!(review.findings[0].message, "`products` has no column `id` (did you mean `product_id`?)");
//! assert!(!review.is_clean());
//! # Ok::<(), querymend_sql::SchemaError>(())
//! ```

mod broken;
mod conditions;
pub mod coverage;
pub mod dialect;
pub mod diff;
mod differential;
pub mod finding;
mod joins;
mod mend;
mod near;
mod pieces;
mod policy;
mod query;
pub mod question;
mod readings;
mod repair;
mod review;
mod rows;
pub mod rules;
mod safety;
mod salvage;
pub mod schema;
pub mod scope;
mod search;
mod similarity;
pub mod validator;
pub mod values;

pub use conditions::{Without, without_each};
pub use dialect::{Classified, Dialect, EngineError, ErrorType, classify};
pub use finding::{Applicability, Edit, Finding, Fix, Severity, Span};
pub use policy::{Comments, Policy};
pub use query::{Comment, Failure, Query};
pub use readings::{MAX_READINGS, Reading, Readings, readings};
pub use repair::{Applied, Judge, MeaningClaim, Repair, Request, Status, repair};
pub use review::{
    Approved, Context, Extracted, JoinKey, Refused, Review, Shape, Stated, Verdict, review, review_refused,
};
pub use rows::{Cell, Rows};
pub use rules::result::inspect;
pub use rules::{RULES, Rule};
pub use salvage::{Step, is_wrapping};
pub use schema::{Schema, SchemaError};
pub use search::{Next, Search};
pub use similarity::{MIN_SYNONYM_SIMILARITY, Similarity, name_similarity};
pub use validator::{Validator, Validators};
pub use values::{Hit, NotIndexed, NotIndexedReason, Values};
