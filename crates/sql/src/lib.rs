//! Static analysis and repair of SQL queries.
//!
//! [`review`] extracts the SQL from the text of a person or a model, resolves every name against
//! the schema, runs every rule of [`rules::RULES`] and reports findings with their spans and fixes.
//! Only a [`Review`] of a single read-only statement can be turned into an [`Approved`] query, and
//! engines run nothing else.
//!
//! This crate is pure: no I/O, no clock, no async.
//!
//! ```
//! use querymend_sql::{ReviewContext, Policy, Schema, dialect, review};
//!
//! let schema = Schema::from_ddl("CREATE TABLE products (product_id INTEGER PRIMARY KEY, price REAL)", &dialect::SQLITE)?;
//! let policy = Policy::default();
//! let context = ReviewContext { schema: Some(&schema), dialect: &dialect::SQLITE, policy: &policy, question: None };
//! let review = review("SELECT id FROM products", &context);
//! assert_eq!(review.findings[0].message, "`products` has no column `id` (did you mean `product_id`?)");
//! assert!(!review.is_clean());
//! # Ok::<(), querymend_sql::SchemaError>(())
//! ```

mod context;
pub mod coverage;
pub mod dialect;
pub mod diff;
mod extract;
pub mod finding;
mod fixes;
mod parse;
mod predicate_ablation;
mod query_references;
pub mod question;
mod repair;
pub mod resolve;
mod review;
mod rows;
pub mod rule;
pub mod rule_group;
pub mod rules;
mod safety;
pub mod schema;
mod text;
pub mod transpile;
pub mod validator;

pub use context::ReviewContext;
pub use dialect::{ClassifiedError, Dialect, EngineError, classify};
pub use extract::{ExtractionStep, is_wrapper_rule};
pub use finding::{Applicability, Edit, Finding, Fix, Severity, Span};
pub use parse::parsed_query::{Comment, ParseFailure, ParsedQuery};
pub use predicate_ablation::{AblatedQuery, drop_each_predicate};
pub use query_references::QueryReferences;
pub use repair::interpretations::{Interpretation, Interpretations, MAX_INTERPRETATIONS, interpretations};
pub use repair::search::{RepairSearch, SearchStep};
pub use repair::{AppliedFix, DatabaseOracle, MeaningClaim, RepairOutcome, RepairRequest, RepairStatus, repair};
pub use review::{
    ApprovalError, Approved, JoinKey, LiteralFilter, QueryFeatures, Review, Verdict, review, review_with_engine_error,
};
pub use rows::{Cell, Rows};
pub use rule::{ErrorType, RewriteScope, Rule, RuleContext};
pub use rule_group::RuleGroup;
pub use rules::RULES;
pub use rules::result::inspect_rows;
pub use safety::policy::{CommentPolicy, Policy};
pub use schema::value_index::{NotIndexed, NotIndexedReason, ValueIndex, ValueMention};
pub use schema::{Schema, SchemaError};
pub use text::semantic_similarity::{MIN_SYNONYM_SIMILARITY, Similarity, name_similarity};
pub use validator::{Validator, Validators};
