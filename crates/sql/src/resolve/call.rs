//! Resolves function calls: arguments, aggregation and result types.

use sqlparser::ast::{
    Expr, Function as CallNode, FunctionArg, FunctionArgExpr, FunctionArgumentClause, FunctionArguments,
    ListAggOnOverflow, ObjectName, Spanned, WindowFrameBound, WindowSpec, WindowType,
};
use sqlparser::tokenizer::Span as TokenSpan;

use super::{BlockId, Clause, ExprContext, ExprInfo, FunctionCall, Resolver};
use crate::dialect::{Feature, Function};
use crate::schema::Type;

/// Returns the last part of a function's name, in lower case.
pub(super) fn function_name(name: &ObjectName) -> String {
    name.0.last().and_then(|p| p.as_ident()).map(|i| i.value.to_lowercase()).unwrap_or_default()
}

/// Date units that some functions take as a bare first argument: `timestampdiff(DAY, a, b)`.
const DATE_UNITS: &[&str] = &[
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

/// Functions that take a date unit as their last argument.
const UNIT_LAST_FUNCTIONS: &[&str] =
    &["date_trunc", "timestamp_trunc", "datetime_trunc", "date_diff", "timestamp_diff", "datetime_diff"];

/// Keywords that yield a value by themselves, and that some dialects allow with parentheses.
const CALLABLE_KEYWORDS: &[&str] =
    &["current_date", "current_time", "current_timestamp", "localtime", "localtimestamp"];

impl<'a> Resolver<'a> {
    pub(super) fn resolve_call(&mut self, call: &'a CallNode, context: ExprContext) -> ExprInfo<'a> {
        let lower = function_name(&call.name);
        let known = self.dialect.functions.get(&lower);
        let (count, distinct) = match &call.args {
            FunctionArguments::List(list) => (list.args.len(), list.duplicate_treatment.is_some()),
            FunctionArguments::Subquery(_) => (1, false),
            FunctionArguments::None => (0, false),
        };
        let window = call.over.is_some();
        let aggregate = !window && known.is_some_and(|f| is_aggregate_call(f, &lower, count));
        let span = call.name.span();
        let index = self.resolution.calls.len();
        if aggregate && distinct && count > 1 {
            self.record_feature(Feature::DistinctMultipleArguments, span);
        }
        self.resolution.calls.push(FunctionCall {
            lower_name: lower.clone(),
            name: &call.name,
            node: Some(call),
            block: context.block,
            clause: context.clause,
            definition: known,
            is_aggregate: aggregate,
            is_inside_aggregate: context.in_aggregate,
            first_argument: ExprInfo::of_type(Type::Any),
            argument_count: count,
            has_over: window,
            is_distinct: distinct,
            span,
        });
        if aggregate
            && let Some(block) = context.block
            && matches!(context.clause, Clause::Select | Clause::Having | Clause::OrderBy | Clause::Qualify)
        {
            self.resolution.blocks[block].has_aggregates = true;
        }
        let inner = ExprContext { in_aggregate: context.in_aggregate || aggregate, ..context };
        let mut first: Option<ExprInfo<'a>> = None;
        let (mut any_aggregate, mut touches) = (false, 0);
        for arguments in [&call.parameters, &call.args] {
            match arguments {
                FunctionArguments::None => {}
                FunctionArguments::Subquery(query) => _ = self.resolve_subquery(query, inner, None),
                FunctionArguments::List(list) => {
                    for (i, argument) in list.args.iter().enumerate() {
                        if is_unit_argument(argument, i, &lower, count) || is_type_argument(argument, i, &lower) {
                            continue;
                        }
                        if let Some(value) = self.resolve_argument(argument, inner) {
                            any_aggregate |= value.has_aggregate;
                            touches |= value.source_mask;
                            first.get_or_insert(value);
                        }
                    }
                    list.clauses.iter().for_each(|c| self.resolve_argument_clause(c, inner));
                }
            }
        }
        if CALLABLE_KEYWORDS.contains(&lower.as_str())
            && matches!(&call.args, FunctionArguments::List(list) if list.args.is_empty())
        {
            self.record_feature(Feature::KeywordCall, span);
        }
        if call.null_treatment.is_some() {
            self.record_feature(Feature::NullTreatment, span);
        }
        if let Some(filter) = &call.filter {
            self.record_feature(Feature::Filter, span);
            self.resolve_expr(filter, inner);
        }
        for order in &call.within_group {
            self.resolve_expr(&order.expr, inner);
        }
        if let Some(WindowType::WindowSpec(spec)) = &call.over {
            any_aggregate |= self.resolve_window(spec, context);
        }
        let first = first.unwrap_or(ExprInfo::of_type(Type::Any));
        self.resolution.calls[index].first_argument = first;
        let kind = match (known.map_or(Type::Any, |f| f.returns), lower.as_str()) {
            (
                _,
                "sum" | "min" | "max" | "coalesce" | "ifnull" | "nullif" | "abs" | "first_value" | "last_value" | "lag"
                | "lead",
            ) => first.kind,
            (_, "avg") => Type::Number,
            (kind, _) => kind,
        };
        ExprInfo { has_aggregate: aggregate || any_aggregate, source_mask: touches, ..ExprInfo::of_type(kind) }
    }

    fn resolve_argument(&mut self, argument: &'a FunctionArg, context: ExprContext) -> Option<ExprInfo<'a>> {
        let inner = match argument {
            FunctionArg::Named { arg, .. } | FunctionArg::ExprNamed { arg, .. } | FunctionArg::Unnamed(arg) => arg,
        };
        match inner {
            FunctionArgExpr::Expr(expr) => Some(self.resolve_expr(expr, context)),
            FunctionArgExpr::QualifiedWildcard(name) => {
                self.resolve_wildcard(name, context);
                None
            }
            FunctionArgExpr::Wildcard | FunctionArgExpr::WildcardWithOptions(_) => None,
        }
    }

    fn resolve_argument_clause(&mut self, clause: &'a FunctionArgumentClause, context: ExprContext) {
        match clause {
            FunctionArgumentClause::OrderBy(terms) => {
                terms.iter().for_each(|t| _ = self.resolve_expr(&t.expr, context))
            }
            FunctionArgumentClause::Where(e) => {
                self.record_feature(Feature::FilterInArguments, e.span());
                self.resolve_expr(e, context);
            }
            FunctionArgumentClause::Limit(e) => _ = self.resolve_expr(e, context),
            FunctionArgumentClause::Having(bound) => _ = self.resolve_expr(&bound.1, context),
            FunctionArgumentClause::OnOverflow(ListAggOnOverflow::Truncate { filler: Some(e), .. }) => {
                _ = self.resolve_expr(e, context)
            }
            FunctionArgumentClause::Separator(separator) => self.record_feature(Feature::Separator, separator.span),
            FunctionArgumentClause::IgnoreOrRespectNulls(_) => {
                self.record_feature(Feature::NullTreatment, TokenSpan::empty())
            }
            FunctionArgumentClause::OnOverflow(_)
            | FunctionArgumentClause::JsonNullClause(_)
            | FunctionArgumentClause::JsonReturningClause(_) => {}
        }
    }

    /// Resolves PARTITION BY and ORDER BY of a window. Returns whether they contain an aggregate.
    pub(super) fn resolve_window(&mut self, spec: &'a WindowSpec, context: ExprContext) -> bool {
        let mut aggregate = false;
        for e in spec.partition_by.iter().chain(spec.order_by.iter().map(|o| &o.expr)) {
            aggregate |= self.resolve_expr(e, context).has_aggregate;
        }
        if let Some(frame) = &spec.window_frame {
            for bound in std::iter::once(&frame.start_bound).chain(&frame.end_bound) {
                if let WindowFrameBound::Preceding(Some(e)) | WindowFrameBound::Following(Some(e)) = bound {
                    self.resolve_expr(e, context);
                }
            }
        }
        aggregate
    }

    /// Records a call of a table function, whose arguments may refer to the tables before it.
    pub(super) fn record_table_function(&mut self, name: &'a ObjectName, args: &'a [FunctionArg], block: BlockId) {
        let lower = function_name(name);
        let known = self.dialect.functions.get(&lower);
        self.resolution.calls.push(FunctionCall {
            lower_name: lower,
            name,
            node: None,
            block: Some(block),
            clause: Clause::From,
            definition: known,
            is_aggregate: false,
            is_inside_aggregate: false,
            first_argument: ExprInfo::of_type(Type::Any),
            argument_count: args.len(),
            has_over: false,
            is_distinct: false,
            span: name.span(),
        });
        for argument in args {
            self.resolve_argument(argument, ExprContext::new(block, Clause::From));
        }
    }
}

/// Returns whether a call aggregates: in SQLite, `min(a)` does and `min(a, b)` does not.
fn is_aggregate_call(function: &Function, lower: &str, arguments: usize) -> bool {
    function.aggregate && !(function.scalar && matches!(lower, "min" | "max") && arguments > 1)
}

/// Returns whether an argument is a type, as in SQL Server's `CONVERT(VARCHAR(10), x)`.
fn is_type_argument(argument: &FunctionArg, index: usize, function: &str) -> bool {
    let FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) = argument else { return false };
    let name = match expr {
        Expr::Identifier(name) => name.value.to_lowercase(),
        Expr::Function(call) => function_name(&call.name),
        _ => return false,
    };
    index == 0 && ["convert", "try_convert"].contains(&function) && Type::from_name(&name) != Type::Any
}

/// Returns whether an argument is a bare date unit: the first argument of many functions, the last
/// one in BigQuery.
fn is_unit_argument(argument: &FunctionArg, index: usize, function: &str, arguments: usize) -> bool {
    let at_end = index + 1 == arguments && index > 0 && UNIT_LAST_FUNCTIONS.contains(&function);
    let name = match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Identifier(name))) => name,
        // `WEEK(MONDAY)`
        FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Function(call))) => {
            return at_end && function_name(&call.name) == "week";
        }
        _ => return false,
    };
    let can_be_unit = at_end || index == 0 && arguments >= 2;
    can_be_unit && name.quote_style.is_none() && DATE_UNITS.contains(&name.value.to_lowercase().as_str())
}
