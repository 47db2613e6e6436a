#![doc = include_str!("unknown_alias.md")]

use crate::finding::{Finding, Severity};
use crate::fixes::columns::candidates;
use crate::resolve::{Clause, ColumnBinding};
use crate::rule::{ErrorType, Rule, RuleContext};
use crate::rule_group::RuleGroup;
use crate::rules::names::did_you_mean;
use crate::text::similarity::best_match;

/// The `unknown-alias` rule, described in the module documentation.
pub static RULE: Rule = Rule {
    code: "unknown-alias",
    group: RuleGroup::Names,
    error_type: ErrorType::ColumnNotFound,
    repair_order: 5,
    page: include_str!("unknown_alias.md"),
    check,
    ..Rule::DEFAULTS
};

/// Maximum number of names with computed fixes: repair proceeds one name at a time.
const MAX_FIXED_NAMES: usize = 5;

fn check(ctx: &RuleContext<'_>, out: &mut Vec<Finding>) {
    let resolution = ctx.resolution;
    for reference in resolution.references.iter().filter(|r| r.binding == ColumnBinding::UnknownQualifier) {
        let Some(qualifier) = reference.qualifier else { continue };
        let name = qualifier.value.as_str();
        let visible = resolution.visible_sources(reference.block);
        let renamed = visible
            .iter()
            .map(|&s| &resolution.sources[s])
            .find(|s| s.table().is_some_and(|t| t.name.eq_ignore_ascii_case(name)));
        let column = reference.name.value.as_str();
        let owner = visible
            .iter()
            .map(|&s| &resolution.sources[s])
            .find(|s| !reference.is_wildcard && s.column_names().iter().any(|c| c.eq_ignore_ascii_case(column)));
        let stored = ctx.context.schema.and_then(|s| s.table(name));
        let in_scope: Vec<&str> = visible.iter().map(|&s| resolution.sources[s].display_name()).collect();
        // It is in FROM, but not visible in this ON, which sees only the tables of its own join so
        // far.
        let unseen = reference.clause == Clause::On && in_scope.iter().any(|s| s.eq_ignore_ascii_case(name));
        if unseen {
            out.push(
                Finding::new(
                    "unknown-alias",
                    Severity::Error,
                    ctx.query.span(qualifier.span),
                    name,
                    format!("`{name}` is not visible in this ON, only the tables joined so far are"),
                )
                .with_advice(format!(
                    "This ON cannot see {name}: join {name} before it, or move the condition to WHERE."
                )),
            );
            continue;
        }
        let homes: Vec<&str> = match ctx.context.schema {
            Some(schema) if !reference.is_wildcard => {
                schema.tables().iter().filter(|t| t.column(column).is_some()).map(|t| t.name.as_str()).collect()
            }
            _ => Vec::new(),
        };
        let (right, hint) = match (renamed, stored, owner) {
            (Some(source), ..) => {
                (Some(source.display_name()), format!(" (the table is called `{}` here)", source.display_name()))
            }
            (None, Some(_), _) => (None, format!(" (the table `{name}` is not in FROM)")),
            (None, None, Some(source)) => {
                (Some(source.display_name()), format!(" (`{}` has `{column}`)", source.display_name()))
            }
            (None, None, None) => match best_match(name, in_scope.iter().copied()) {
                Some(near) => (Some(near), did_you_mean(Some(near))),
                None => match homes.as_slice() {
                    [home] => (None, format!(" (`{home}` has `{column}`, but is not in this FROM)")),
                    _ => (None, String::new()),
                },
            },
        };
        let advice = match right {
            Some(right) => format!("{name} is not defined here; use {right}."),
            None if stored.is_some() => format!("The table {name} is used but not in FROM: join it."),
            None if matches!(homes.len(), 1..=3) => {
                format!("{name} is not defined; {column} is a column of {}: join it.", homes.join(" and of "))
            }
            None => format!("{name} is not defined; in FROM there are: {}.", in_scope.join(", ")),
        };
        let suggestion = right.filter(|_| !reference.is_wildcard).map(|r| {
            let dialect = ctx.context.dialect;
            format!("{}.{}", dialect.quote_identifier(r), dialect.quote_identifier(column))
        });
        let mut finding = Finding::new(
            "unknown-alias",
            Severity::Error,
            ctx.query.span(qualifier.span),
            name,
            format!("nothing in FROM is called `{name}`{hint}"),
        )
        .with_suggestion(suggestion)
        .with_advice(advice);
        if out.iter().filter(|f| !f.fixes.is_empty()).count() < MAX_FIXED_NAMES {
            finding.fixes = candidates::fixes_for_qualifier(reference, ctx);
        }
        out.push(finding);
    }
}
