//! Rules, one per file: detection, message for people, and advice for models.
//!
//! Each rule has a page (`<rule>.md`), which is its documentation, the output of `querymend
//! explain`, and its test.

pub mod engine;
pub mod llm_output;
pub mod names;
pub mod portable;
pub mod question;
pub mod result;
pub mod safety;
pub mod shape;
pub mod syntax;
pub mod types;
pub mod value;

use crate::rule::{ErrorType, Rule};
use crate::rule_group::RuleGroup;
use crate::safety::policy::Policy;

impl Rule {
    /// Returns the rule with a code.
    pub fn from_code(code: &str) -> Option<&'static Rule> {
        RULES.iter().find(|r| r.code == code).copied()
    }

    /// Returns all rules, in the order in which they are checked.
    pub fn all() -> &'static [&'static Rule] {
        RULES
    }
}

impl Policy {
    /// Returns whether a rule is checked.
    pub fn is_rule_enabled(&self, rule: &Rule) -> bool {
        rule.group == RuleGroup::Safety
            || !self.skip_rules.iter().any(|skipped| skipped == rule.code || skipped == rule.group.as_str())
    }

    /// Returns the names of all checks that run before a query is executed: rule groups, then
    /// registered validators.
    pub fn guardrail_names(&self) -> Vec<String> {
        let mut names: Vec<&str> = Vec::new();
        // The other groups check rows and engine errors, after execution.
        let preflight = Rule::all().iter().filter(|rule| rule.group.is_preflight());
        for rule in preflight.filter(|rule| self.is_rule_enabled(rule)) {
            if !names.contains(&rule.group.as_str()) {
                names.push(rule.group.as_str());
            }
        }
        names.into_iter().chain(self.validators.names()).map(str::to_string).collect()
    }

    /// Returns the group of a rule or group, by its name.
    pub(crate) fn rule_group(name: &str) -> Option<RuleGroup> {
        RuleGroup::from_name(name).or_else(|| Rule::from_code(name).map(|rule| rule.group))
    }
}

impl ErrorType {
    /// Returns the error type of a finding by its code.
    pub fn of(code: &str) -> Self {
        Rule::from_code(code).map_or(Self::Unknown, |rule| rule.error_type)
    }
}

/// All rules, in the order in which they are checked.
///
/// `syntax-error` is the last of the rules for text that does not parse.
pub static RULES: &[&Rule] = &[
    // Text that models write around SQL.
    &llm_output::json_wrapped::RULE,
    &llm_output::code_fence::RULE,
    &llm_output::escaped_characters::RULE,
    &llm_output::typographic_punctuation::RULE,
    &llm_output::unescaped_apostrophe::RULE,
    &llm_output::foreign_comment::RULE,
    &llm_output::flattened_comment::RULE,
    &llm_output::surrounding_prose::RULE,
    &llm_output::continuation::RULE,
    &llm_output::trailing_semicolon::RULE,
    &llm_output::no_sql::RULE,
    // Statements that are not read-only.
    &safety::too_deep::RULE,
    &safety::writes_data::RULE,
    &safety::many_statements::RULE,
    &safety::comments::RULE,
    &safety::forbidden_function::RULE,
    &safety::locking::RULE,
    &safety::protected_table::RULE,
    &safety::protected_column::RULE,
    // Text that almost parses. A fix here is known to result in a query, so these precede the rules
    // that only suspect an error.
    &syntax::trailing_comma::RULE,
    &syntax::set_operand_order_limit::RULE,
    &syntax::clause_order::RULE,
    &syntax::sort_direction_in_group_by::RULE,
    &syntax::where_after_aggregate::RULE,
    &syntax::missing_select::RULE,
    &syntax::cte_list_syntax::RULE,
    &syntax::between_bounds::RULE,
    &syntax::missing_operand::RULE,
    &syntax::thousands_separator::RULE,
    &syntax::missing_comma::RULE,
    &syntax::in_list_without_parentheses::RULE,
    &syntax::missing_end::RULE,
    &syntax::missing_on::RULE,
    &syntax::using_columns::RULE,
    &syntax::sort_direction_in_call::RULE,
    &syntax::function_without_parentheses::RULE,
    &syntax::misplaced_distinct::RULE,
    &syntax::percent_literal::RULE,
    &syntax::bare_subquery::RULE,
    &syntax::subquery_arithmetic::RULE,
    &syntax::cast_syntax::RULE,
    &syntax::misplaced_quote::RULE,
    &syntax::misspelt_keyword::RULE,
    &syntax::dangling_keyword::RULE,
    &syntax::unbalanced_parenthesis::RULE,
    &syntax::trailing_garbage::RULE,
    // Names.
    &names::unknown_table::RULE,
    &names::unknown_column::RULE,
    &names::ambiguous_column::RULE,
    &names::unknown_alias::RULE,
    &names::alias_reference::RULE,
    &names::unknown_function::RULE,
    &names::wrong_argument_count::RULE,
    &names::unquoted_name::RULE,
    &names::reserved_word::RULE,
    &names::wrong_quote_style::RULE,
    // Types.
    &types::type_mismatch::RULE,
    &types::argument_types::RULE,
    &types::date_format::RULE,
    &types::integer_division::RULE,
    &types::date_difference::RULE,
    &types::division_by_zero::RULE,
    &types::invalid_cast::RULE,
    // Shape.
    &shape::missing_group_by::RULE,
    &shape::aggregate_in_where::RULE,
    &shape::join_without_condition::RULE,
    &shape::fan_out::RULE,
    &shape::join_not_on_foreign_key::RULE,
    &shape::nulls_first::RULE,
    &shape::compared_with_null::RULE,
    &shape::impossible_condition::RULE,
    &shape::set_operation_arity::RULE,
    &shape::set_operation_types::RULE,
    &shape::set_operation_order::RULE,
    &shape::subquery_many_rows::RULE,
    &shape::subquery_many_columns::RULE,
    // Values.
    &value::unknown_value::RULE,
    &value::question_value_unused::RULE,
    // Question.
    &question::uncovered_term::RULE,
    &question::unused_name::RULE,
    &question::missing_group::RULE,
    &question::most_without_count::RULE,
    // Portability between dialects.
    &portable::function_of_another_dialect::RULE,
    &portable::syntax_of_another_dialect::RULE,
    &portable::limit_syntax::RULE,
    &portable::string_concat::RULE,
    // Text that does not parse and that no rule above recognizes.
    &syntax::unfinished::RULE,
    &llm_output::syntax_error::RULE,
    // Result rows.
    &result::empty_result::RULE,
    &result::null_result::RULE,
    &result::implausible_share::RULE,
    // Errors that only a database reports.
    &engine::timed_out::RULE,
    &engine::permission_denied::RULE,
    &engine::locked::RULE,
    &engine::connection_failed::RULE,
    &engine::result_too_large::RULE,
    &engine::unknown_schema::RULE,
    &engine::not_a_database::RULE,
    &engine::engine_error::RULE,
];

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use crate::dialect::DIALECTS;

    /// Collects the source files of a folder and its subfolders.
    fn sources(folder: &Path, out: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                sources(&path, out);
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                out.push(path);
            }
        }
    }

    /// Differences between dialects belong in the fields of [`crate::Dialect`].
    #[test]
    fn keeps_dialect_names_out_of_rules() {
        let mut files = Vec::new();
        sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src/rules"), &mut files);
        assert!(files.len() > super::RULES.len(), "{} files", files.len());
        for file in files {
            let text = std::fs::read_to_string(&file).unwrap();
            let code = text.split("#[cfg(test)]").next().unwrap_or_default();
            for (number, line) in code.lines().enumerate().filter(|(_, line)| !line.trim_start().starts_with("//")) {
                let words = || line.split(|c: char| !c.is_alphanumeric() && c != '_');
                for name in DIALECTS.iter().flat_map(|d| d.other_names.iter().chain([&d.name])) {
                    let named =
                        line.contains(&format!("\"{name}\"")) || words().any(|word| word == name.to_uppercase());
                    assert!(!named, "{}:{} names {name}: {line}", file.display(), number + 1);
                }
            }
        }
    }
}
