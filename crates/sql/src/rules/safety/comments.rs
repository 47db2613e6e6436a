#![doc = include_str!("comments.md")]

use crate::finding::{Applicability, Edit, Finding, Fix, Severity};
use crate::rule::{ErrorType, Rule, RuleContext};
use crate::rule_group::RuleGroup;
use crate::safety::policy::CommentPolicy;

/// The `comments` rule, described in the module documentation.
pub static RULE: Rule = Rule {
    code: "comments",
    group: RuleGroup::Safety,
    error_type: ErrorType::Unknown,
    page: include_str!("comments.md"),
    check,
    ..Rule::DEFAULTS
};

fn check(ctx: &RuleContext<'_>, out: &mut Vec<Finding>) {
    for comment in &ctx.query.comments {
        let text = ctx.query.text(comment.span);
        if comment.executable {
            out.push(
                Finding::new(
                    "comments",
                    Severity::Error,
                    comment.span,
                    text,
                    "this comment is code to MySQL and is not allowed",
                )
                .with_advice("Leave out comments of the form /*! … */."),
            );
        } else if ctx.context.policy.comments == CommentPolicy::Reject {
            out.push(
                Finding::new("comments", Severity::Error, comment.span, text, "SQL comments not allowed")
                    .with_advice("SQL comments not allowed: write the query without them."),
            );
        } else {
            let fix = Fix {
                is_tied_with_previous: false,
                edits: vec![Edit { span: comment.span, text: " ".into() }],
                applicability: Applicability::Safe,
                why: "comments do not change the result".into(),
            };
            out.push(
                Finding::new(
                    "comments",
                    Severity::Info,
                    comment.span,
                    text,
                    "the comment is removed before the query is sent",
                )
                .with_fix(fix),
            );
        }
    }
}
