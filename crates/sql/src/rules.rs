//! One failure, one file: how it is detected, what a person reads, what a model is told.
//!
//! Each rule has a page (`<rule>.md`), which is its documentation, the output of `querymend explain`, and its test.

pub mod artefact;
pub mod engine;
pub mod names;
pub mod portable;
pub mod question;
pub mod result;
pub mod safety;
pub mod shape;
pub mod syntax;
pub mod types;
pub mod value;

use crate::dialect::Classified;
use crate::finding::Finding;
use crate::query::Query;
use crate::review::Context;
use crate::safety::Hazard;
use crate::scope::{BlockId, Facts};

/// What a rule looks at.
pub struct Subject<'s> {
    /// The text, its statements and what was salvaged.
    pub query: &'s Query,
    /// What the resolver found; empty if there is not exactly one statement.
    pub facts: &'s Facts<'s>,
    pub(crate) hazards: &'s [Hazard],
    /// Schema, dialect and policy.
    pub context: &'s Context<'s>,
    /// What the database said against this very text, where it did.
    pub refusal: Option<&'s Classified>,
}

impl Subject<'_> {
    /// Whether the database refused this text for what the rule of that code speaks of.
    pub(crate) fn refused_for(&self, code: &str) -> bool {
        self.refusal.is_some_and(|r| r.finding == code)
    }

    /// Whether an item of a SELECT list computes an aggregate.
    pub(crate) fn item_aggregates(&self, block: BlockId, item: usize) -> bool {
        let Some(expression) = self.facts.blocks[block].items.get(item).and_then(|i| i.expression) else {
            return false;
        };
        let span = self.query.span(crate::scope::place(expression));
        self.facts.calls.iter().any(|c| {
            let call = self.query.span(c.place);
            c.aggregate && c.block == Some(block) && span.start <= call.start && call.end <= span.end
        })
    }
}

/// A failure and how it is found.
pub struct Rule {
    /// Its name, as findings carry it.
    pub code: &'static str,
    /// The family it belongs to.
    pub group: &'static str,
    /// Its page, in Markdown.
    pub page: &'static str,
    /// Looks for it before the query is run.
    pub check: fn(&Subject<'_>, &mut Vec<Finding>),
}

impl Rule {
    /// The rule of that code.
    pub fn named(code: &str) -> Option<&'static Rule> {
        RULES.iter().find(|r| r.code == code).copied()
    }

    /// The first sentence of its page.
    pub fn summary(&self) -> &'static str {
        self.page
            .lines()
            .map(str::trim)
            .find(|l| !l.is_empty() && !l.starts_with('#') && !l.starts_with("<!--"))
            .unwrap_or("")
    }
}

/// For failures that no look at the text can foresee; the dialects' error tables name them.
fn only_the_engine_knows(_: &Subject<'_>, _: &mut Vec<Finding>) {}

/// All rules, in the order in which they look. `syntax-error` is last of those that speak of text that does not parse.
pub static RULES: &[&Rule] = &[
    // What models put around SQL.
    &artefact::json_wrapped::RULE,
    &artefact::code_fence::RULE,
    &artefact::escaped_characters::RULE,
    &artefact::typographic_signs::RULE,
    &artefact::unescaped_apostrophe::RULE,
    &artefact::foreign_comment::RULE,
    &artefact::flattened_comment::RULE,
    &artefact::surrounding_prose::RULE,
    &artefact::continuation::RULE,
    &artefact::trailing_semicolon::RULE,
    &artefact::no_sql::RULE,
    // What is not reading.
    &safety::too_deep::RULE,
    &safety::writes_data::RULE,
    &safety::many_statements::RULE,
    &safety::comments::RULE,
    &safety::forbidden_function::RULE,
    &safety::locking::RULE,
    &safety::protected_table::RULE,
    &safety::protected_column::RULE,
    // What almost parses. A fix here is known to make the text a query, so these come before those that only suspect.
    &syntax::trailing_comma::RULE,
    &syntax::limited_part::RULE,
    &syntax::clause_order::RULE,
    &syntax::sorted_group_by::RULE,
    &syntax::condition_behind_aggregate::RULE,
    &syntax::missing_select::RULE,
    &syntax::with_list::RULE,
    &syntax::between_bounds::RULE,
    &syntax::missing_operand::RULE,
    &syntax::grouped_digits::RULE,
    &syntax::missing_comma::RULE,
    &syntax::bare_list::RULE,
    &syntax::missing_end::RULE,
    &syntax::missing_on::RULE,
    &syntax::using_columns::RULE,
    &syntax::sorted_argument::RULE,
    &syntax::bare_call::RULE,
    &syntax::misplaced_distinct::RULE,
    &syntax::percent_sign::RULE,
    &syntax::bare_subquery::RULE,
    &syntax::arithmetic_of_queries::RULE,
    &syntax::cast_syntax::RULE,
    &syntax::misplaced_quote::RULE,
    &syntax::misspelt_keyword::RULE,
    &syntax::dangling_word::RULE,
    &syntax::unbalanced_parenthesis::RULE,
    &syntax::broken_rest::RULE,
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
    &names::wrong_quotes::RULE,
    // Types.
    &types::compared_types::RULE,
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
    &shape::off_key_join::RULE,
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
    &value::unmentioned_value::RULE,
    // The question.
    &question::uncovered_term::RULE,
    &question::unused_name::RULE,
    &question::missing_group::RULE,
    &question::most_without_count::RULE,
    // From one dialect to another.
    &portable::function_of_another_dialect::RULE,
    &portable::syntax_of_another_dialect::RULE,
    &portable::limit_syntax::RULE,
    &portable::string_concat::RULE,
    // What did not parse and nobody above recognised.
    &syntax::unfinished::RULE,
    &artefact::syntax_error::RULE,
    // What rows say.
    &result::empty_result::RULE,
    &result::null_result::RULE,
    &result::implausible_share::RULE,
    // What only a database can say.
    &engine::timed_out::RULE,
    &engine::permission_denied::RULE,
    &engine::locked::RULE,
    &engine::connection_failed::RULE,
    &engine::too_large::RULE,
    &engine::unknown_schema::RULE,
    &engine::not_a_database::RULE,
    &engine::engine_error::RULE,
];

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use crate::dialect::DIALECTS;

    /// The source files of a folder and of those in it.
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

    /// What differs between dialects is a field of [`crate::Dialect`].
    #[test]
    fn no_rule_names_a_dialect() {
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
