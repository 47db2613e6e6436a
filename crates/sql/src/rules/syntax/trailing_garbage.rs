#![doc = include_str!("trailing_garbage.md")]

use crate::extract::has_non_query_statement;
use crate::finding::{Applicability, Finding, Severity, Span};
use crate::parse::parsed_query::ParseFailure;
use crate::parse::token_stream::{UnparsedQuery, delete, fix, is_already_reported};
use crate::rule::{ErrorType, Rule, RuleContext};
use crate::rule_group::RuleGroup;
use crate::text::lexical::{SegmentKind, segments};

/// The `trailing-garbage` rule, described in the module documentation.
pub static RULE: Rule = Rule {
    code: "trailing-garbage",
    group: RuleGroup::Syntax,
    error_type: ErrorType::SyntaxError,
    repair_order: 0,
    page: include_str!("trailing_garbage.md"),
    check,
    ..Rule::DEFAULTS
};

fn check(ctx: &RuleContext<'_>, out: &mut Vec<Finding>) {
    let Some(ParseFailure::Syntax { .. }) = &ctx.query.failure else { return };
    if is_already_reported(out) || !ctx.query.steps.is_empty() {
        return;
    }
    let source = &ctx.query.source;
    let Some(semicolon) = segments(source).find(|p| p.kind == SegmentKind::Semicolon) else { return };
    let rest = Span::new(semicolon.end, source.trim_end().len().max(semicolon.end));
    let text = ctx.query.text(rest);
    // A statement that writes is not removed: the reader must see it.
    if text.trim().is_empty() || has_non_query_statement(text) || !UnparsedQuery::parses_as_query(ctx, &[delete(rest)])
    {
        return;
    }
    let shown = Span::new(rest.end - text.trim_start().len(), rest.end);
    out.push(
        Finding::new(RULE.code, Severity::Error, shown, "", "the text after the first query is not SQL")
            .with_advice("Answer with exactly one statement, and nothing after it.")
            .with_fix(fix(
                vec![delete(rest)],
                Applicability::Likely,
                "the first query is complete, and a semicolon ends it",
            )),
    );
}

#[cfg(test)]
mod tests {
    use crate::context::ReviewContext;
    use crate::dialect::SQLITE;
    use crate::review::review;

    #[test]
    fn never_removes_trailing_write_statements() {
        let policy = crate::Policy::default();
        let context = ReviewContext { schema: None, dialect: &SQLITE, policy: &policy, question: None };
        for (rest, gone) in [
            ("WITH x AS (\n  SELECT a\n  FROM t\n)\nSELECT a FROM x AS ON b", true),
            ("DROP TABLE t where is it", false),
            ("WITH x AS (SELECT a\n FROM t) SELECT a AS ON b; DELETE FROM t", false),
            ("WITH x AS (SELECT a\n FROM t) SELECT a AS ON b\n\nCREATE TABLE u (a", false),
        ] {
            let found = review(&format!("SELECT a FROM t;\n{rest}"), &context).findings;
            assert_eq!(found.iter().any(|f| f.code == super::RULE.code), gone, "{rest}: {found:?}");
        }
    }
}
