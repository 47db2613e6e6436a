#![doc = include_str!("comments.md")]

use crate::finding::{Applicability, Edit, Finding, Fix, Severity};
use crate::policy::Comments;
use crate::rules::{Rule, Subject};

/// See the page.
pub static RULE: Rule = Rule { code: "comments", group: "safety", page: include_str!("comments.md"), check };

fn check(subject: &Subject<'_>, out: &mut Vec<Finding>) {
    for comment in &subject.query.comments {
        let text = subject.query.text(comment.span);
        if comment.executable {
            out.push(
                Finding::new(
                    "comments",
                    Severity::Error,
                    comment.span,
                    text,
                    "this comment is code to MySQL and is not allowed",
                )
                .advise("Leave out comments of the form /*! … */."),
            );
        } else if subject.context.policy.comments == Comments::Reject {
            out.push(
                Finding::new("comments", Severity::Error, comment.span, text, "SQL comments not allowed")
                    .advise("SQL comments not allowed: write the query without them."),
            );
        } else {
            let fix = Fix {
                tied: false,
                edits: vec![Edit { span: comment.span, text: " ".into() }],
                applicability: Applicability::Safe,
                why: "a comment changes nothing of what the query asks".into(),
            };
            out.push(
                Finding::new(
                    "comments",
                    Severity::Info,
                    comment.span,
                    text,
                    "the comment is left out when the query is sent",
                )
                .mend(fix),
            );
        }
    }
}
