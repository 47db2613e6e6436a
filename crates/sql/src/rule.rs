//! Rules: metadata, static check and repair order of each kind of failure.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::context::ReviewContext;
use crate::dialect::ClassifiedError;
use crate::finding::Finding;
use crate::parse::parsed_query::ParsedQuery;
use crate::resolve::{BlockId, Resolution};
use crate::rule_group::RuleGroup;
use crate::safety::side_effects::SideEffect;

/// Input of a rule's check.
pub struct RuleContext<'s> {
    /// Text, its statements and the extraction steps.
    pub query: &'s ParsedQuery,
    /// Result of name resolution; empty unless there is exactly one statement.
    pub resolution: &'s Resolution<'s>,
    pub(crate) side_effects: &'s [SideEffect],
    /// Schema, dialect and policy.
    pub context: &'s ReviewContext<'s>,
    /// Error that the database reported for this text.
    pub engine_error: Option<&'s ClassifiedError>,
}

impl RuleContext<'_> {
    /// Returns whether the database rejected the text with an error of the given rule.
    pub(crate) fn has_engine_error(&self, code: &str) -> bool {
        self.engine_error.is_some_and(|r| r.finding == code)
    }

    /// Returns whether an item of a SELECT list computes an aggregate.
    pub(crate) fn item_has_aggregate(&self, block: BlockId, item: usize) -> bool {
        let Some(expression) = self.resolution.blocks[block].items.get(item).and_then(|i| i.expression) else {
            return false;
        };
        let span = self.query.span(crate::resolve::expr_span(expression));
        self.resolution.calls.iter().any(|c| {
            let call = self.query.span(c.span);
            c.is_aggregate && c.block == Some(block) && span.start <= call.start && call.end <= span.end
        })
    }
}

/// Error types that retry policies refer to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum ErrorType {
    SyntaxError,
    TableNotFound,
    ColumnNotFound,
    AmbiguousColumn,
    FunctionNotFound,
    TypeMismatch,
    Aggregation,
    DivisionByZero,
    Cardinality,
    NotReadOnly,
    PermissionDenied,
    Timeout,
    ConnectionError,
    ResourceLimit,
    Unknown,
}

/// Tokens outside the span of a finding that its fixes may remove.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RewriteScope {
    /// Keywords that begin a clause.
    pub clauses: &'static [&'static str],
    /// Other tokens; `a name` is any identifier that is not reserved.
    pub tokens: &'static [&'static str],
    /// `true` if removed text may reappear elsewhere in the query.
    pub moves: bool,
}

/// A kind of failure: its metadata, its page, and the check that finds it.
pub struct Rule {
    /// Code that its findings carry, in kebab case.
    pub code: &'static str,
    /// Family it belongs to.
    pub group: RuleGroup,
    /// Error type of its findings in retry policies, metrics and traces.
    pub error_type: ErrorType,
    /// Position in the repair order: lower first, causes before their consequences.
    pub repair_order: u8,
    /// Tokens outside the span of a finding that its fixes may remove; `None` if there are none.
    pub rewrites: Option<RewriteScope>,
    /// Its page, in Markdown: documentation, output of `querymend explain`, and test.
    pub page: &'static str,
    /// Checks for the failure before the query is run.
    pub check: fn(&RuleContext<'_>, &mut Vec<Finding>),
}

impl Rule {
    /// Defaults for most rules; every rule sets `code`, `group`, `error_type` and `page`.
    pub const DEFAULTS: Self = Self {
        code: "",
        group: RuleGroup::Engine,
        error_type: ErrorType::Unknown,
        repair_order: 10,
        rewrites: None,
        page: "",
        check: no_static_check,
    };

    /// Returns the first sentence of its page.
    pub fn summary(&self) -> &'static str {
        self.page
            .lines()
            .map(str::trim)
            .find(|l| !l.is_empty() && !l.starts_with('#') && !l.starts_with("<!--"))
            .unwrap_or("")
    }
}

/// Check of a rule that cannot be detected statically; the dialects' error tables refer to it.
pub(crate) fn no_static_check(_: &RuleContext<'_>, _: &mut Vec<Finding>) {}
