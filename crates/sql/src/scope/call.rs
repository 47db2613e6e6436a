//! Function calls: what they are given, whether they aggregate, what comes out.

use sqlparser::ast::{
    Expr, Function as CallNode, FunctionArg, FunctionArgExpr, FunctionArgumentClause, FunctionArguments,
    ListAggOnOverflow, ObjectName, Spanned, WindowFrameBound, WindowSpec, WindowType,
};
use sqlparser::tokenizer::Span as Place;

use super::{BlockId, Call, Clause, Resolver, Spot, Value};
use crate::dialect::{Feature, Function};
use crate::schema::Type;

/// The last part of a function's name, in lower case.
pub(super) fn function_name(name: &ObjectName) -> String {
    name.0.last().and_then(|p| p.as_ident()).map(|i| i.value.to_lowercase()).unwrap_or_default()
}

/// Words that some functions take as a bare first argument: `timestampdiff(DAY, a, b)`.
const UNITS: &[&str] = &[
    "microsecond",
    "millisecond",
    "second",
    "minute",
    "hour",
    "day",
    "week",
    "month",
    "quarter",
    "year",
    "decade",
    "century",
    "isoweek",
    "weekday",
    "dayofweek",
    "dayofyear",
    "dow",
    "doy",
    "epoch",
    "yy",
    "yyyy",
    "mm",
    "dd",
    "hh",
    "mi",
    "ss",
    "qq",
    "wk",
];

/// Functions whose last argument is such a word.
const UNIT_LAST: &[&str] =
    &["date_trunc", "timestamp_trunc", "datetime_trunc", "date_diff", "timestamp_diff", "datetime_diff"];

/// Words that give a value by themselves, and that some dialects take with parentheses.
const CALLED: &[&str] = &["current_date", "current_time", "current_timestamp", "localtime", "localtimestamp"];

impl<'a> Resolver<'a> {
    pub(super) fn call(&mut self, call: &'a CallNode, spot: Spot) -> Value<'a> {
        let lower = function_name(&call.name);
        let known = self.dialect.functions.get(&lower);
        let (count, distinct) = match &call.args {
            FunctionArguments::List(list) => (list.args.len(), list.duplicate_treatment.is_some()),
            FunctionArguments::Subquery(_) => (1, false),
            FunctionArguments::None => (0, false),
        };
        let window = call.over.is_some();
        let aggregate = !window && known.is_some_and(|f| aggregates(f, &lower, count));
        let place = call.name.span();
        let index = self.facts.calls.len();
        if aggregate && distinct && count > 1 {
            self.feature(Feature::DistinctOfSeveral, place);
        }
        self.facts.calls.push(Call {
            lower: lower.clone(),
            name: &call.name,
            node: Some(call),
            block: spot.block,
            clause: spot.clause,
            known,
            aggregate,
            nested: spot.in_aggregate,
            argument: Value::of(Type::Any),
            arguments: count,
            window,
            distinct,
            place,
        });
        if aggregate
            && let Some(block) = spot.block
            && matches!(spot.clause, Clause::Select | Clause::Having | Clause::OrderBy | Clause::Qualify)
        {
            self.facts.blocks[block].aggregates = true;
        }
        let inner = Spot { in_aggregate: spot.in_aggregate || aggregate, ..spot };
        let mut first: Option<Value<'a>> = None;
        let (mut any_aggregate, mut touches) = (false, 0);
        for arguments in [&call.parameters, &call.args] {
            match arguments {
                FunctionArguments::None => {}
                FunctionArguments::Subquery(query) => _ = self.subquery(query, inner, None),
                FunctionArguments::List(list) => {
                    for (i, argument) in list.args.iter().enumerate() {
                        if is_unit(argument, i, &lower, count) || is_type(argument, i, &lower) {
                            continue;
                        }
                        if let Some(value) = self.argument(argument, inner) {
                            any_aggregate |= value.aggregate;
                            touches |= value.touches;
                            first.get_or_insert(value);
                        }
                    }
                    list.clauses.iter().for_each(|c| self.argument_clause(c, inner));
                }
            }
        }
        if CALLED.contains(&lower.as_str())
            && matches!(&call.args, FunctionArguments::List(list) if list.args.is_empty())
        {
            self.feature(Feature::CalledKeyword, place);
        }
        if call.null_treatment.is_some() {
            self.feature(Feature::NullTreatment, place);
        }
        if let Some(filter) = &call.filter {
            self.feature(Feature::Filter, place);
            self.expression(filter, inner);
        }
        for order in &call.within_group {
            self.expression(&order.expr, inner);
        }
        if let Some(WindowType::WindowSpec(spec)) = &call.over {
            any_aggregate |= self.window(spec, spot);
        }
        let first = first.unwrap_or(Value::of(Type::Any));
        self.facts.calls[index].argument = first;
        let kind = match (known.map_or(Type::Any, |f| f.returns), lower.as_str()) {
            (
                _,
                "sum" | "min" | "max" | "coalesce" | "ifnull" | "nullif" | "abs" | "first_value" | "last_value" | "lag"
                | "lead",
            ) => first.kind,
            (_, "avg") => Type::Number,
            (kind, _) => kind,
        };
        Value { aggregate: aggregate || any_aggregate, touches, ..Value::of(kind) }
    }

    fn argument(&mut self, argument: &'a FunctionArg, spot: Spot) -> Option<Value<'a>> {
        let inner = match argument {
            FunctionArg::Named { arg, .. } | FunctionArg::ExprNamed { arg, .. } | FunctionArg::Unnamed(arg) => arg,
        };
        match inner {
            FunctionArgExpr::Expr(expr) => Some(self.expression(expr, spot)),
            FunctionArgExpr::QualifiedWildcard(name) => {
                self.wildcard_of(name, spot);
                None
            }
            FunctionArgExpr::Wildcard | FunctionArgExpr::WildcardWithOptions(_) => None,
        }
    }

    fn argument_clause(&mut self, clause: &'a FunctionArgumentClause, spot: Spot) {
        match clause {
            FunctionArgumentClause::OrderBy(terms) => terms.iter().for_each(|t| _ = self.expression(&t.expr, spot)),
            FunctionArgumentClause::Where(e) => {
                self.feature(Feature::FilterInside, e.span());
                self.expression(e, spot);
            }
            FunctionArgumentClause::Limit(e) => _ = self.expression(e, spot),
            FunctionArgumentClause::Having(bound) => _ = self.expression(&bound.1, spot),
            FunctionArgumentClause::OnOverflow(ListAggOnOverflow::Truncate { filler: Some(e), .. }) => {
                _ = self.expression(e, spot)
            }
            FunctionArgumentClause::Separator(separator) => self.feature(Feature::Separator, separator.span),
            FunctionArgumentClause::IgnoreOrRespectNulls(_) => self.feature(Feature::NullTreatment, Place::empty()),
            FunctionArgumentClause::OnOverflow(_)
            | FunctionArgumentClause::JsonNullClause(_)
            | FunctionArgumentClause::JsonReturningClause(_) => {}
        }
    }

    /// PARTITION BY and ORDER BY of a window; true if there is an aggregate in them.
    pub(super) fn window(&mut self, spec: &'a WindowSpec, spot: Spot) -> bool {
        let mut aggregate = false;
        for e in spec.partition_by.iter().chain(spec.order_by.iter().map(|o| &o.expr)) {
            aggregate |= self.expression(e, spot).aggregate;
        }
        if let Some(frame) = &spec.window_frame {
            for bound in std::iter::once(&frame.start_bound).chain(&frame.end_bound) {
                if let WindowFrameBound::Preceding(Some(e)) | WindowFrameBound::Following(Some(e)) = bound {
                    self.expression(e, spot);
                }
            }
        }
        aggregate
    }

    /// A table function: its arguments may use the tables before it.
    pub(super) fn call_in_from(&mut self, name: &'a ObjectName, args: &'a [FunctionArg], block: BlockId) {
        let lower = function_name(name);
        let known = self.dialect.functions.get(&lower);
        self.facts.calls.push(Call {
            lower,
            name,
            node: None,
            block: Some(block),
            clause: Clause::From,
            known,
            aggregate: false,
            nested: false,
            argument: Value::of(Type::Any),
            arguments: args.len(),
            window: false,
            distinct: false,
            place: name.span(),
        });
        for argument in args {
            self.argument(argument, Spot::new(block, Clause::From));
        }
    }
}

/// `min(a)` aggregates in SQLite, `min(a, b)` does not.
fn aggregates(function: &Function, lower: &str, arguments: usize) -> bool {
    function.aggregate && !(function.scalar && matches!(lower, "min" | "max") && arguments > 1)
}

/// SQL Server's `CONVERT(VARCHAR(10), x)`: the first argument is a type.
fn is_type(argument: &FunctionArg, index: usize, function: &str) -> bool {
    let FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) = argument else { return false };
    let name = match expr {
        Expr::Identifier(name) => name.value.to_lowercase(),
        Expr::Function(call) => function_name(&call.name),
        _ => return false,
    };
    index == 0 && ["convert", "try_convert"].contains(&function) && Type::from_name(&name) != Type::Any
}

/// A bare word that names a unit: the first argument of many functions, the last one of BigQuery's.
fn is_unit(argument: &FunctionArg, index: usize, function: &str, arguments: usize) -> bool {
    let at_end = index + 1 == arguments && index > 0 && UNIT_LAST.contains(&function);
    let name = match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Identifier(name))) => name,
        // `WEEK(MONDAY)`
        FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Function(call))) => {
            return at_end && function_name(&call.name) == "week";
        }
        _ => return false,
    };
    let place = at_end || index == 0 && arguments >= 2;
    place && name.quote_style.is_none() && UNITS.contains(&name.value.to_lowercase().as_str())
}
