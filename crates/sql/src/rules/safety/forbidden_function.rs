#![doc = include_str!("forbidden_function.md")]

use sqlparser::tokenizer::{Span as Place, Token, TokenWithSpan};

use crate::dialect::DIALECTS;
use crate::finding::{Finding, Severity};
use crate::rules::portable::rephrase::rephrase;
use crate::rules::{Rule, Subject};
use crate::safety::Hazard;
use crate::scope::Meaning;

/// See the page.
pub static RULE: Rule =
    Rule { code: "forbidden-function", group: "safety", page: include_str!("forbidden_function.md"), check };

fn check(subject: &Subject<'_>, out: &mut Vec<Finding>) {
    let context = subject.context;
    let dialect = context.dialect;
    operators_of_others(subject, out);
    for hazard in subject.hazards {
        let (name, schema, place, in_from, called) = match hazard {
            Hazard::Calls(name, schema, place) => (name, schema.as_deref(), place, false, true),
            Hazard::CallsInFrom(name, place) => (name, None, place, true, true),
            Hazard::Names(parts, place) => match parts.last() {
                Some(name) => (&name.to_lowercase(), None, place, true, false),
                None => continue,
            },
            // PostgreSQL calls a function that stands where a field could.
            Hazard::Field(name, place) if dialect.rows_are_values && !is_column(name, place, subject) => {
                (name, None, place, false, false)
            }
            Hazard::Field(..) | Hazard::Statement(_) | Hazard::Writes(..) | Hazard::Locks(_) | Hazard::BareTable(_) => {
                continue;
            }
        };
        let listed = |list: &[String]| list.iter().any(|f| f.eq_ignore_ascii_case(name));
        // A function of that name in a schema of the users' own is another function.
        let own =
            schema.is_some_and(|s| !dialect.system_schemas.iter().any(|x| x.eq_ignore_ascii_case(s)) && s != "system");
        let field = matches!(hazard, Hazard::Field(..));
        let known = dialect.functions.get(name).filter(|f| called || field || f.table);
        let allowed = listed(&context.policy.allow_functions) || context.schema.is_some_and(|s| s.has_function(name));
        let reason = if (called || field) && context.policy.denies_function(name) {
            "the policy denies it".to_string()
        } else if allowed {
            continue;
        } else if let Some(danger) = known.and_then(|f| f.danger) {
            format!("it {}", danger.does())
        } else if called
            && (in_from || own || (dialect.user_functions && known.is_none() && !harmless_elsewhere(name)))
            && (known.is_none() || own)
            && !is_syntax(name)
        {
            // Users define functions that write, and functions that give tables reach files and other servers.
            "what it does is not known".to_string()
        } else if field && known.is_none() && context.schema.is_some_and(|s| s.has_disguised_function(name)) {
            "it is a function that somebody defined, and what it does is not known".to_string()
        } else {
            continue;
        };
        let mut finding = Finding::new(
            RULE.code,
            Severity::Error,
            subject.query.span(*place),
            name,
            format!("`{name}` is not allowed: {reason}"),
        )
        .advise(format!("The function {name} is refused ({reason}). Answer without it."));
        // A function of another dialect is said anew; a dangerous one is not.
        if known.is_none()
            && let Some(call) = subject.facts.calls.iter().find(|c| c.place == *place)
        {
            finding.fixes.extend(rephrase(call, subject));
        }
        out.push(finding);
    }
}

/// Whether it is the name of a column, which then is what is meant.
fn is_column(name: &str, place: &Place, subject: &Subject<'_>) -> bool {
    let schema = subject.context.schema;
    if schema.is_some_and(|schema| schema.has_disguised_function(name)) {
        // Of this very table, or the function of that name is called.
        let reference = subject.facts.references.iter().find(|reference| reference.name.span == *place);
        return reference.is_some_and(|reference| matches!(reference.meaning, Meaning::Column(..)));
    }
    schema.map_or(&[][..], |schema| schema.tables()).iter().any(|table| table.column(name).is_some())
}

/// Operators that somebody defined are functions. They are looked for among the words: the parser takes `@@@@` for two operators, and
/// behind ORDER BY … USING they stand where no walk over expressions comes.
fn operators_of_others(subject: &Subject<'_>, out: &mut Vec<Finding>) {
    let mut refuse = |name: &str, place: Place| {
        let message =
            format!("the operator `{name}` is not allowed: somebody defined it, and what it does is not known");
        let finding = Finding::new(RULE.code, Severity::Error, subject.query.span(place), name, message);
        out.push(finding.advise(format!("The operator {name} is refused. Answer without it.")));
    };
    let tokens = subject.query.tokens.iter().filter(|t| !matches!(t.token, Token::Whitespace(_)));
    let tokens: Vec<&TokenWithSpan> = tokens.collect();
    for words in tokens.windows(4) {
        let [operator, open, schema, dot] = words else { continue };
        let (Token::Word(operator), Token::Word(owner)) = (&operator.token, &schema.token) else { continue };
        let is_operator = operator.quote_style.is_none() && operator.value.eq_ignore_ascii_case("operator");
        let ours = subject.context.dialect.system_schemas.iter().any(|known| known.eq_ignore_ascii_case(&owner.value));
        if is_operator && open.token == Token::LParen && dot.token == Token::Period && !ours {
            refuse(&format!("{}.…", owner.value), schema.span);
        }
    }
    let Some(schema) = subject.context.schema.filter(|schema| schema.disguised_operators().next().is_some()) else {
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
        if let Some(name) = schema.disguised_operators().find(|name| run.contains(name)) {
            refuse(name, token.span);
            run.clear();
        }
    }
}

/// A function that other dialects have, and none calls dangerous: the query is wrong here, and no danger.
fn harmless_elsewhere(name: &str) -> bool {
    let mut others = DIALECTS.iter().filter_map(|d| d.functions.get(name)).peekable();
    others.peek().is_some() && others.all(|f| f.danger.is_none())
}

/// Words that the parser takes for functions, and no engine does.
fn is_syntax(name: &str) -> bool {
    matches!(
        name,
        "row" | "array" | "table" | "values" | "in" | "any" | "all" | "some" | "exists" | "interval" | "grouping"
    )
}
