//! Resolves expressions: binds their names and infers their types.

use sqlparser::ast::{
    AccessExpr, BinaryOperator, CastKind, Expr, OneOrManyWithParens, Query, Spanned, Subscript, UnaryOperator,
    Value as Literal,
};
use sqlparser::tokenizer::Span as TokenSpan;

use super::{BinaryOperation, Clause, ExprContext, ExprInfo, Resolver};
use crate::dialect::Feature;
use crate::schema::Type;

static EQUALS: BinaryOperator = BinaryOperator::Eq;
static LIKE: BinaryOperator = BinaryOperator::PGLikeMatch;

impl<'a> Resolver<'a> {
    /// Resolves an expression.
    ///
    /// Grows the stack as needed: a chain of a thousand ORs is as deep as it is long.
    pub(super) fn resolve_expr(&mut self, expr: &'a Expr, context: ExprContext) -> ExprInfo<'a> {
        let negates = usize::from(is_negation(expr));
        self.negation_depth += negates;
        let value = stacker::maybe_grow(96 * 1024, 2 * 1024 * 1024, || self.resolve_expr_node(expr, context));
        self.negation_depth -= negates;
        value
    }

    fn resolve_expr_node(&mut self, expr: &'a Expr, mut context: ExprContext) -> ExprInfo<'a> {
        if !context.in_group_key
            && let Some(block) = context.block
            && matches!(context.clause, Clause::Select | Clause::Having | Clause::OrderBy | Clause::Qualify)
            && self.resolution.blocks[block].group_keys.contains(&expr)
        {
            context.in_group_key = true;
        }
        let required = context.is_conjunct;
        context.is_conjunct = false;
        context.is_nested |= !matches!(expr, Expr::Identifier(_) | Expr::Nested(_));
        if let Some(feature) = self.dialect_feature(expr) {
            self.record_feature(feature, expr.span());
        }
        match expr {
            Expr::Identifier(name) => self.resolve_name(name, context),
            Expr::CompoundIdentifier(parts) => self.resolve_qualified_name(parts, context),
            Expr::Value(v) => literal_info(&v.value),
            Expr::Nested(inner) => self.resolve_expr(inner, ExprContext { is_conjunct: required, ..context }),
            Expr::BinaryOp { left, op, right } => self.resolve_binary(left, op, right, context, required),
            Expr::UnaryOp { op, expr } => {
                let value = self.resolve_expr(expr, context);
                match op {
                    UnaryOperator::Not | UnaryOperator::BangNot => {
                        ExprInfo { has_aggregate: value.has_aggregate, ..ExprInfo::of_type(Type::Boolean) }
                    }
                    _ => ExprInfo { column: None, ..value },
                }
            }
            Expr::IsFalse(e)
            | Expr::IsNotFalse(e)
            | Expr::IsTrue(e)
            | Expr::IsNotTrue(e)
            | Expr::IsNull(e)
            | Expr::IsNotNull(e)
            | Expr::IsUnknown(e)
            | Expr::IsNotUnknown(e) => self.resolve_all([&**e], context, Type::Boolean),
            Expr::IsJson { expr, .. } | Expr::IsNormalized { expr, .. } => {
                self.resolve_all([&**expr], context, Type::Boolean)
            }
            Expr::IsDistinctFrom(a, b) | Expr::IsNotDistinctFrom(a, b) => {
                self.resolve_all([&**a, &**b], context, Type::Boolean)
            }
            Expr::InList { expr, list, .. } => {
                let left = self.resolve_expr(expr, context);
                let mut aggregate = left.has_aggregate;
                for member in list {
                    let right = self.resolve_expr(member, context);
                    aggregate |= right.has_aggregate;
                    self.record_operation(&EQUALS, (expr, left), (member, right), context, false, true);
                }
                ExprInfo { has_aggregate: aggregate, ..ExprInfo::of_type(Type::Boolean) }
            }
            Expr::InSubquery { expr, subquery, .. } => {
                let left = self.resolve_expr(expr, context);
                let wanted = if let Expr::Tuple(members) = &**expr { members.len() } else { 1 };
                let right = self.resolve_subquery(subquery, context, Some(wanted));
                self.record_operation(
                    &EQUALS,
                    (expr, left),
                    (expr, ExprInfo { may_return_many_rows: false, ..right }),
                    context,
                    false,
                    true,
                );
                ExprInfo { has_aggregate: left.has_aggregate, ..ExprInfo::of_type(Type::Boolean) }
            }
            Expr::InUnnest { expr, array_expr, .. } => {
                self.resolve_all([&**expr, &**array_expr], context, Type::Boolean)
            }
            Expr::Between { expr, low, high, .. } => {
                let value = self.resolve_expr(expr, context);
                let mut aggregate = value.has_aggregate;
                for end in [low, high] {
                    let right = self.resolve_expr(end, context);
                    aggregate |= right.has_aggregate;
                    self.record_operation(&EQUALS, (expr, value), (end, right), context, false, true);
                    if let Some(last) = self.resolution.operations.last_mut() {
                        last.is_between_bound = true;
                    }
                }
                ExprInfo { has_aggregate: aggregate, ..ExprInfo::of_type(Type::Boolean) }
            }
            Expr::Like { expr, pattern, escape_char, .. }
            | Expr::ILike { expr, pattern, escape_char, .. }
            | Expr::SimilarTo { expr, pattern, escape_char, .. } => {
                if let Some(escape) = escape_char {
                    self.resolve_expr(escape, context);
                }
                let (left, right) = (self.resolve_expr(expr, context), self.resolve_expr(pattern, context));
                self.record_operation(&LIKE, (expr, left), (pattern, right), context, false, false);
                let (aggregate, touches) =
                    (left.has_aggregate || right.has_aggregate, left.source_mask | right.source_mask);
                ExprInfo { has_aggregate: aggregate, source_mask: touches, ..ExprInfo::of_type(Type::Boolean) }
            }
            Expr::RLike { expr, pattern, .. } => self.resolve_all([&**expr, &**pattern], context, Type::Boolean),
            Expr::AnyOp { left, right, .. } | Expr::AllOp { left, right, .. } => {
                let left = self.resolve_expr(left, context);
                match &**right {
                    Expr::Subquery(query) => _ = self.resolve_subquery(query, context, Some(1)),
                    other => _ = self.resolve_expr(other, context),
                }
                ExprInfo { has_aggregate: left.has_aggregate, ..ExprInfo::of_type(Type::Boolean) }
            }
            Expr::Cast { expr, data_type, kind, .. } => {
                let inner = self.resolve_expr(expr, context);
                let to = Type::from_name(&data_type.to_string());
                // A number stays a number; a date column becomes one in dialects without dates.
                let column = matches!(&**expr, Expr::Identifier(_) | Expr::CompoundIdentifier(_));
                if *kind == CastKind::Cast
                    && (to.is_date_or_timestamp() || to == Type::Time)
                    && column
                    && !inner.kind.is_numeric()
                {
                    self.record_feature(Feature::CastToDate, expr.span());
                }
                ExprInfo { has_aggregate: inner.has_aggregate, source_mask: inner.source_mask, ..ExprInfo::of_type(to) }
            }
            Expr::Convert { expr, data_type, .. } => {
                let kind = data_type.as_ref().map_or(Type::Any, |t| Type::from_name(&t.to_string()));
                self.resolve_all([&**expr], context, kind)
            }
            Expr::AtTimeZone { timestamp, time_zone } => {
                self.resolve_all([&**timestamp, &**time_zone], context, Type::Timestamp)
            }
            Expr::Extract { expr, .. } => self.resolve_all([&**expr], context, Type::Number),
            Expr::Ceil { expr, .. } | Expr::Floor { expr, .. } => self.resolve_all([&**expr], context, Type::Any),
            Expr::Position { expr, r#in } => self.resolve_all([&**expr, &**r#in], context, Type::Integer),
            Expr::Substring { expr, substring_from, substring_for, .. } => self.resolve_all(
                [Some(expr), substring_from.as_ref(), substring_for.as_ref()].into_iter().flatten().map(|e| &**e),
                context,
                Type::Text,
            ),
            Expr::Trim { trim_what, expr, trim_characters, .. } => {
                let parts = trim_what.iter().map(|e| &**e).chain([&**expr]).chain(trim_characters.iter().flatten());
                self.resolve_all(parts, context, Type::Text)
            }
            Expr::Overlay { expr, overlay_what, overlay_from, overlay_for } => {
                let parts = [expr, overlay_what, overlay_from].into_iter().chain(overlay_for).map(|e| &**e);
                self.resolve_all(parts, context, Type::Text)
            }
            Expr::Collate { expr, .. } => self.resolve_expr(expr, context),
            Expr::Prefixed { value, .. } => self.resolve_expr(value, context),
            Expr::TypedString(typed) => ExprInfo::of_type(Type::from_name(&typed.data_type.to_string())),
            Expr::Function(call) => self.resolve_call(call, context),
            Expr::Case { operand, conditions, else_result, .. } => {
                self.resolve_case(operand.as_deref(), conditions, else_result.as_deref(), context)
            }
            Expr::Exists { subquery, .. } => {
                self.resolve_subquery(subquery, context, None);
                ExprInfo::of_type(Type::Boolean)
            }
            Expr::Subquery(query) => self.resolve_subquery(query, context, Some(1)),
            Expr::GroupingSets(sets) | Expr::Cube(sets) | Expr::Rollup(sets) => {
                self.resolve_all(sets.iter().flatten(), context, Type::Any)
            }
            Expr::Tuple(members) => {
                let mut aggregate = false;
                for member in members {
                    aggregate |= self.resolve_expr(member, context).has_aggregate;
                }
                ExprInfo { has_aggregate: aggregate, ..ExprInfo::of_type(Type::Any) }
            }
            Expr::Struct { values, .. } => self.resolve_all(values, context, Type::Json),
            Expr::Named { expr, .. } => self.resolve_expr(expr, context),
            Expr::Dictionary(fields) => self.resolve_all(fields.iter().map(|f| &*f.value), context, Type::Json),
            Expr::Map(map) => {
                self.resolve_all(map.entries.iter().flat_map(|e| [&*e.key, &*e.value]), context, Type::Json)
            }
            Expr::Array(array) => self.resolve_all(&array.elem, context, Type::Array),
            Expr::Interval(interval) => self.resolve_all([&*interval.value], context, Type::Interval),
            Expr::CompoundFieldAccess { root, access_chain } => {
                for access in access_chain {
                    if let AccessExpr::Subscript(subscript) = access {
                        self.resolve_subscript(subscript, context);
                    }
                }
                self.resolve_all([&**root], context, Type::Any)
            }
            Expr::JsonAccess { value, .. } => self.resolve_all([&**value], context, Type::Any),
            Expr::OuterJoin(inner) | Expr::Prior(inner) => self.resolve_expr(inner, context),
            Expr::Lambda(lambda) => {
                let before = self.lambda_params.len();
                match &lambda.params {
                    OneOrManyWithParens::One(p) => self.lambda_params.push(&p.name),
                    OneOrManyWithParens::Many(ps) => self.lambda_params.extend(ps.iter().map(|p| &p.name)),
                }
                let value = self.resolve_expr(&lambda.body, context);
                self.lambda_params.truncate(before);
                ExprInfo { column: None, ..value }
            }
            Expr::MemberOf(member) => self.resolve_all([&*member.value, &*member.array], context, Type::Boolean),
            Expr::MatchAgainst { columns, .. } => {
                for column in columns {
                    if let [part] = column.0.as_slice()
                        && let Some(ident) = part.as_ident()
                    {
                        self.resolve_name(ident, context);
                    }
                }
                ExprInfo::of_type(Type::Number)
            }
            Expr::QualifiedWildcard(name, _) => {
                self.resolve_wildcard(name, context);
                ExprInfo::of_type(Type::Any)
            }
            Expr::Wildcard(_) => ExprInfo::of_type(Type::Any),
        }
    }

    /// Records syntax that not every dialect supports.
    pub(super) fn record_feature(&mut self, feature: Feature, span: TokenSpan) {
        self.resolution.features.push((feature, span));
    }

    /// Returns the syntax of an expression that not every dialect supports.
    fn dialect_feature(&self, expr: &Expr) -> Option<Feature> {
        Some(match expr {
            Expr::Cast { kind: CastKind::DoubleColon, .. } => Feature::DoubleColonCast,
            Expr::Cast { kind: CastKind::TryCast | CastKind::SafeCast, .. } => Feature::TryCast,
            Expr::ILike { .. } => Feature::ILike,
            Expr::SimilarTo { .. } => Feature::SimilarTo,
            Expr::RLike { .. } => Feature::RLike,
            Expr::AnyOp { .. } | Expr::AllOp { .. } | Expr::Like { any: true, .. } => Feature::AnyAll,
            Expr::Extract { .. } => Feature::Extract,
            Expr::Convert { data_type: Some(_), target_before_value: true, .. } => Feature::ConvertTypeFirst,
            Expr::Convert { data_type: Some(_), .. } => Feature::Convert,
            Expr::Interval(_) => Feature::Interval,
            Expr::TypedString(_) => Feature::TypedLiteral,
            Expr::AtTimeZone { .. } => Feature::AtTimeZone,
            Expr::Array(array) if array.named => Feature::ArrayLiteral,
            Expr::Substring { special: false, .. } => Feature::SubstringFrom,
            Expr::Position { .. } => Feature::PositionIn,
            Expr::Trim { trim_where: Some(_), .. } => Feature::TrimFrom,
            Expr::Value(v) if matches!(v.value, Literal::EscapedStringLiteral(_)) => Feature::EscapedLiteral,
            Expr::BinaryOp { op, .. } => match op {
                BinaryOperator::PGRegexMatch
                | BinaryOperator::PGRegexIMatch
                | BinaryOperator::PGRegexNotMatch
                | BinaryOperator::PGRegexNotIMatch => Feature::RegexTilde,
                BinaryOperator::Glob => Feature::Glob,
                BinaryOperator::MyIntegerDivide => Feature::DivOperator,
                _ => return None,
            },
            _ => return None,
        })
    }

    fn resolve_all(
        &mut self,
        parts: impl IntoIterator<Item = &'a Expr>,
        context: ExprContext,
        kind: Type,
    ) -> ExprInfo<'a> {
        let (mut aggregate, mut touches) = (false, 0);
        for part in parts {
            let value = self.resolve_expr(part, context);
            aggregate |= value.has_aggregate;
            touches |= value.source_mask;
        }
        ExprInfo { has_aggregate: aggregate, source_mask: touches, ..ExprInfo::of_type(kind) }
    }

    fn resolve_subscript(&mut self, subscript: &'a Subscript, context: ExprContext) {
        match subscript {
            Subscript::Index { index } => _ = self.resolve_expr(index, context),
            Subscript::Slice { lower_bound, upper_bound, stride } => {
                for bound in lower_bound.iter().chain(upper_bound).chain(stride) {
                    self.resolve_expr(bound, context);
                }
            }
        }
    }

    fn resolve_binary(
        &mut self,
        left: &'a Expr,
        op: &'a BinaryOperator,
        right: &'a Expr,
        context: ExprContext,
        required: bool,
    ) -> ExprInfo<'a> {
        let inner = ExprContext { is_conjunct: required && *op == BinaryOperator::And, ..context };
        let l = self.resolve_operand(left, right, inner);
        let r = self.resolve_operand(right, left, inner);
        self.record_operation(op, (left, l), (right, r), context, required, false);
        let kind = match op {
            BinaryOperator::StringConcat if l.kind == Type::Array || r.kind == Type::Array => Type::Array,
            BinaryOperator::StringConcat => Type::Text,
            BinaryOperator::Plus
            | BinaryOperator::Minus
            | BinaryOperator::Multiply
            | BinaryOperator::Divide
            | BinaryOperator::Modulo => arithmetic_type(op, l.kind, r.kind, self.dialect.integer_division),
            BinaryOperator::Gt
            | BinaryOperator::Lt
            | BinaryOperator::GtEq
            | BinaryOperator::LtEq
            | BinaryOperator::Spaceship
            | BinaryOperator::Eq
            | BinaryOperator::NotEq
            | BinaryOperator::And
            | BinaryOperator::Or
            | BinaryOperator::Xor => Type::Boolean,
            _ => Type::Any,
        };
        ExprInfo {
            has_aggregate: l.has_aggregate || r.has_aggregate,
            source_mask: l.source_mask | r.source_mask,
            ..ExprInfo::of_type(kind)
        }
    }

    /// Resolves one side of a comparison. A subquery returns as many columns as the row on the
    /// other side has.
    fn resolve_operand(&mut self, side: &'a Expr, other: &'a Expr, context: ExprContext) -> ExprInfo<'a> {
        match (side, other) {
            (Expr::Subquery(query), Expr::Tuple(members)) => self.resolve_subquery(query, context, Some(members.len())),
            _ => self.resolve_expr(side, context),
        }
    }

    fn record_operation(
        &mut self,
        operator: &'a BinaryOperator,
        left: (&'a Expr, ExprInfo<'a>),
        right: (&'a Expr, ExprInfo<'a>),
        context: ExprContext,
        required: bool,
        is_in: bool,
    ) {
        // AND and OR are recorded only if an operand is a number.
        let joins = matches!(operator, BinaryOperator::And | BinaryOperator::Or);
        if joins && !left.1.kind.is_numeric() && !right.1.kind.is_numeric() {
            return;
        }
        self.resolution.operations.push(BinaryOperation {
            operator,
            left: left.1,
            right: right.1,
            left_node: left.0,
            right_node: right.0,
            block: context.block,
            clause: context.clause,
            is_conjunct: required,
            is_in,
            is_between_bound: false,
            is_negated: self.negation_depth > 0,
        });
    }

    fn resolve_case(
        &mut self,
        operand: Option<&'a Expr>,
        conditions: &'a [sqlparser::ast::CaseWhen],
        otherwise: Option<&'a Expr>,
        context: ExprContext,
    ) -> ExprInfo<'a> {
        let (mut aggregate, mut touches) = (false, 0);
        let mut kind: Option<Type> = None;
        let operand = operand.map(|o| self.resolve_expr(o, context));
        let mut unify = |value: ExprInfo<'a>| {
            if !matches!(value.literal, Some(Literal::Null)) {
                kind = Some(kind.map_or(value.kind, |k| common_type(k, value.kind)));
            }
            aggregate |= value.has_aggregate;
            touches |= value.source_mask;
        };
        if let Some(operand) = operand {
            unify(ExprInfo { literal: Some(&Literal::Null), ..operand });
        }
        for when in conditions {
            let condition = self.resolve_expr(&when.condition, context);
            let result = self.resolve_expr(&when.result, context);
            unify(ExprInfo { literal: Some(&Literal::Null), ..condition });
            unify(result);
        }
        if let Some(otherwise) = otherwise {
            unify(self.resolve_expr(otherwise, context));
        }
        ExprInfo { has_aggregate: aggregate, source_mask: touches, ..ExprInfo::of_type(kind.unwrap_or(Type::Any)) }
    }

    pub(super) fn resolve_subquery(
        &mut self,
        query: &'a Query,
        context: ExprContext,
        wanted: Option<usize>,
    ) -> ExprInfo<'a> {
        let shape = self.resolve_query(query, context.block);
        if let Some(wanted) = wanted {
            self.check_subquery_arity(&shape.columns, wanted, query.span());
        }
        let kind = match &shape.columns {
            super::SourceColumns::Derived(outputs) => outputs.first().map_or(Type::Any, |o| o.kind),
            super::SourceColumns::Table(_) | super::SourceColumns::Unknown => Type::Any,
        };
        ExprInfo { may_return_many_rows: !shape.is_single_row, ..ExprInfo::of_type(kind) }
    }
}

/// Returns whether a match inside the expression excludes a row.
fn is_negation(expr: &Expr) -> bool {
    matches!(
        expr,
        Expr::InSubquery { negated: true, .. }
            | Expr::InList { negated: true, .. }
            | Expr::Exists { negated: true, .. }
            | Expr::UnaryOp { op: UnaryOperator::Not | UnaryOperator::BangNot, .. }
    )
}

fn literal_info(value: &Literal) -> ExprInfo<'_> {
    let kind = match value {
        Literal::Number(n, _) if n.bytes().all(|b| b.is_ascii_digit()) => Type::Integer,
        Literal::Number(..) => Type::Number,
        Literal::Boolean(_) => Type::Boolean,
        Literal::Null | Literal::Placeholder(_) => Type::Any,
        Literal::HexStringLiteral(_)
        | Literal::SingleQuotedByteStringLiteral(_)
        | Literal::DoubleQuotedByteStringLiteral(_) => Type::Binary,
        _ => Type::Text,
    };
    ExprInfo { literal: Some(value), ..ExprInfo::of_type(kind) }
}

fn common_type(a: Type, b: Type) -> Type {
    match (a, b) {
        _ if a == b => a,
        _ if a.is_numeric() && b.is_numeric() => Type::Number,
        _ => Type::Any,
    }
}

fn arithmetic_type(op: &BinaryOperator, left: Type, right: Type, integer_division: bool) -> Type {
    match (left, right) {
        (Type::Integer, Type::Integer) if *op == BinaryOperator::Divide && !integer_division => Type::Number,
        (Type::Integer, Type::Integer) => Type::Integer,
        _ if left.is_numeric() && right.is_numeric() => Type::Number,
        _ => Type::Any,
    }
}

/// Returns the span of an expression, which the parser computes on demand.
pub(crate) fn expr_span(expr: &Expr) -> TokenSpan {
    expr.span()
}
