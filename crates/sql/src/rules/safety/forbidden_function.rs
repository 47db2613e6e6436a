#![doc = include_str!("forbidden_function.md")]

use sqlparser::tokenizer::{Span as TokenSpan, Token, TokenWithSpan};

use crate::dialect::DIALECTS;
use crate::finding::{Finding, Severity};
use crate::fixes::transpile::calls::transpile_call;
use crate::resolve::ColumnBinding;
use crate::rule::{ErrorType, Rule, RuleContext};
use crate::rule_group::RuleGroup;
use crate::safety::side_effects::SideEffect;

/// The `forbidden-function` rule, described in the module documentation.
pub static RULE: Rule = Rule {
    code: "forbidden-function",
    group: RuleGroup::Safety,
    error_type: ErrorType::NotReadOnly,
    page: include_str!("forbidden_function.md"),
    check,
    ..Rule::DEFAULTS
};

fn check(ctx: &RuleContext<'_>, out: &mut Vec<Finding>) {
    let context = ctx.context;
    let dialect = context.dialect;
    check_user_operators(ctx, out);
    for effect in ctx.side_effects {
        let (name, schema, place, in_from, called) = match effect {
            SideEffect::Call(name, schema, place) => (name, schema.as_deref(), place, false, true),
            SideEffect::TableFunction(name, place) => (name, None, place, true, true),
            SideEffect::TableName(parts, place) => match parts.last() {
                Some(name) => (&name.to_lowercase(), None, place, true, false),
                None => continue,
            },
            // PostgreSQL calls a function that is written like a field.
            SideEffect::FieldAccess(name, place) if dialect.rows_are_values && !is_column_name(name, place, ctx) => {
                (name, None, place, false, false)
            }
            SideEffect::FieldAccess(..)
            | SideEffect::Statement(_)
            | SideEffect::Writes(..)
            | SideEffect::Locks(_)
            | SideEffect::TableCommand(_) => {
                continue;
            }
        };
        let listed = |list: &[String]| list.iter().any(|f| f.eq_ignore_ascii_case(name));
        // A function of that name in a user's schema is a different function.
        let own =
            schema.is_some_and(|s| !dialect.system_schemas.iter().any(|x| x.eq_ignore_ascii_case(s)) && s != "system");
        let field = matches!(effect, SideEffect::FieldAccess(..));
        let known = dialect.functions.get(name).filter(|f| called || field || f.table);
        let allowed = listed(&context.policy.allow_functions) || context.schema.is_some_and(|s| s.has_function(name));
        let reason = if (called || field) && context.policy.denies_function(name) {
            "the policy denies it".to_string()
        } else if allowed {
            continue;
        } else if let Some(danger) = known.and_then(|f| f.danger) {
            format!("it {}", danger.description())
        } else if called
            && (in_from || own || (dialect.user_functions && known.is_none() && !is_harmless_elsewhere(name)))
            && (known.is_none() || own)
            && !is_syntax(name)
        {
            // User-defined functions may write, and table functions may reach files and other
            // servers.
            "its effects are unknown".to_string()
        } else if field && known.is_none() && context.schema.is_some_and(|s| s.has_attribute_style_function(name)) {
            "it is a user-defined function, and its effects are unknown".to_string()
        } else {
            continue;
        };
        let mut finding = Finding::new(
            RULE.code,
            Severity::Error,
            ctx.query.span(*place),
            name,
            format!("`{name}` is not allowed: {reason}"),
        )
        .with_advice(format!("The function {name} is refused ({reason}). Answer without it."));
        // A function of another dialect is transpiled; a dangerous one is not.
        if known.is_none()
            && let Some(call) = ctx.resolution.calls.iter().find(|c| c.span == *place)
        {
            finding.fixes.extend(transpile_call(call, ctx));
        }
        out.push(finding);
    }
}

/// Returns whether a field is a column, which takes precedence over a function.
fn is_column_name(name: &str, place: &TokenSpan, ctx: &RuleContext<'_>) -> bool {
    let schema = ctx.context.schema;
    if schema.is_some_and(|schema| schema.has_attribute_style_function(name)) {
        // It must be a column of this very table, or else the function of that name is called.
        let reference = ctx.resolution.references.iter().find(|reference| reference.name.span == *place);
        return reference.is_some_and(|reference| matches!(reference.binding, ColumnBinding::Column(..)));
    }
    schema.map_or(&[][..], |schema| schema.tables()).iter().any(|table| table.column(name).is_some())
}

/// Reports user-defined operators, which are functions.
///
/// Scans the tokens: the parser reads `@@@@` as two operators, and after ORDER BY … USING a walk
/// over expressions does not reach them.
fn check_user_operators(ctx: &RuleContext<'_>, out: &mut Vec<Finding>) {
    let mut refuse = |name: &str, place: TokenSpan| {
        let message = format!("the operator `{name}` is not allowed: it is user-defined, and its effects are unknown");
        let finding = Finding::new(RULE.code, Severity::Error, ctx.query.span(place), name, message);
        out.push(finding.with_advice(format!("The operator {name} is refused. Answer without it.")));
    };
    let tokens = ctx.query.tokens.iter().filter(|t| !matches!(t.token, Token::Whitespace(_)));
    let tokens: Vec<&TokenWithSpan> = tokens.collect();
    for words in tokens.windows(4) {
        let [operator, open, schema, dot] = words else { continue };
        let (Token::Word(operator), Token::Word(owner)) = (&operator.token, &schema.token) else { continue };
        let is_operator = operator.quote_style.is_none() && operator.value.eq_ignore_ascii_case("operator");
        let ours = ctx.context.dialect.system_schemas.iter().any(|known| known.eq_ignore_ascii_case(&owner.value));
        if is_operator && open.token == Token::LParen && dot.token == Token::Period && !ours {
            refuse(&format!("{}.…", owner.value), schema.span);
        }
    }
    let Some(schema) = ctx.context.schema.filter(|schema| schema.attribute_style_operators().next().is_some()) else {
        return;
    };
    let mut run = String::new();
    let mut last = None;
    for token in tokens {
        if last != Some(token.span.start) || matches!(token.token, Token::Word(_) | Token::SingleQuotedString(_)) {
            run.clear();
        }
        if !matches!(token.token, Token::Word(_) | Token::SingleQuotedString(_)) {
            run.push_str(&token.token.to_string());
        }
        last = Some(token.span.end);
        if let Some(name) = schema.attribute_style_operators().find(|name| run.contains(name)) {
            refuse(name, token.span);
            run.clear();
        }
    }
}

/// Returns whether other dialects have the function, and none classifies it as dangerous: the query
/// is wrong here, but harmless.
fn is_harmless_elsewhere(name: &str) -> bool {
    let mut others = DIALECTS.iter().filter_map(|d| d.functions.get(name)).peekable();
    others.peek().is_some() && others.all(|f| f.danger.is_none())
}

/// Returns whether a name is a keyword that the parser, but no engine, reads as a function.
fn is_syntax(name: &str) -> bool {
    matches!(
        name,
        "row" | "array" | "table" | "values" | "in" | "any" | "all" | "some" | "exists" | "interval" | "grouping"
    )
}
