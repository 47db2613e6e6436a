//! Families of rules.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Family of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RuleGroup {
    /// Text that a model wrote around the SQL, or in place of it.
    LlmOutput,
    /// SQL that does not parse.
    Syntax,
    /// Tables, columns, functions and aliases that do not resolve.
    Names,
    /// Types that do not match.
    Types,
    /// Grouping, joins, set operations and subqueries.
    Shape,
    /// Functions and syntax of another dialect.
    Portable,
    /// Literals that a column does not contain.
    Value,
    /// Differences between the question and the query.
    Question,
    /// Statements that may not run. Rules of this group are always checked.
    Safety,
    /// Rows that the query returned.
    Result,
    /// Errors that only the database reports.
    Engine,
}

impl RuleGroup {
    /// All groups.
    pub const ALL: &[RuleGroup] = &[
        RuleGroup::LlmOutput,
        RuleGroup::Syntax,
        RuleGroup::Names,
        RuleGroup::Types,
        RuleGroup::Shape,
        RuleGroup::Portable,
        RuleGroup::Value,
        RuleGroup::Question,
        RuleGroup::Safety,
        RuleGroup::Result,
        RuleGroup::Engine,
    ];

    /// Returns the name in policies, JSON and documents.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::LlmOutput => "llm_output",
            Self::Syntax => "syntax",
            Self::Names => "names",
            Self::Types => "types",
            Self::Shape => "shape",
            Self::Portable => "portable",
            Self::Value => "value",
            Self::Question => "question",
            Self::Safety => "safety",
            Self::Result => "result",
            Self::Engine => "engine",
        }
    }

    /// Returns the group of a name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|group| group.as_str() == name)
    }

    /// Returns whether its rules check a query before it is run.
    pub fn is_preflight(self) -> bool {
        !matches!(self, Self::Result | Self::Engine)
    }
}

impl std::fmt::Display for RuleGroup {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}
