//! Expressions: binds the names in them and says what type comes out.

use sqlparser::ast::{
    AccessExpr, BinaryOperator, CastKind, Expr, OneOrManyWithParens, Query, Spanned, Subscript, UnaryOperator,
    Value as Literal,
};
use sqlparser::tokenizer::Span as Place;

use super::{Clause, Operation, Resolver, Spot, Value};
use crate::dialect::Feature;
use crate::schema::Type;

static EQUALS: BinaryOperator = BinaryOperator::Eq;
static LIKE: BinaryOperator = BinaryOperator::PGLikeMatch;

impl<'a> Resolver<'a> {
    /// Walks an expression. The stack grows with it: a chain of a thousand ORs is as deep as it is long.
    pub(super) fn expression(&mut self, expr: &'a Expr, spot: Spot) -> Value<'a> {
        let negates = usize::from(is_negation(expr));
        self.negated += negates;
        let value = stacker::maybe_grow(96 * 1024, 2 * 1024 * 1024, || self.walk(expr, spot));
        self.negated -= negates;
        value
    }

    fn walk(&mut self, expr: &'a Expr, mut spot: Spot) -> Value<'a> {
        if !spot.in_key
            && let Some(block) = spot.block
            && matches!(spot.clause, Clause::Select | Clause::Having | Clause::OrderBy | Clause::Qualify)
            && self.facts.blocks[block].keys.contains(&expr)
        {
            spot.in_key = true;
        }
        let required = spot.required;
        spot.required = false;
        spot.inside |= !matches!(expr, Expr::Identifier(_) | Expr::Nested(_));
        if let Some(feature) = self.feature_of(expr) {
            self.feature(feature, expr.span());
        }
        match expr {
            Expr::Identifier(name) => self.name(name, spot),
            Expr::CompoundIdentifier(parts) => self.qualified_name(parts, spot),
            Expr::Value(v) => literal(&v.value),
            Expr::Nested(inner) => self.expression(inner, Spot { required, ..spot }),
            Expr::BinaryOp { left, op, right } => self.binary(left, op, right, spot, required),
            Expr::UnaryOp { op, expr } => {
                let value = self.expression(expr, spot);
                match op {
                    UnaryOperator::Not | UnaryOperator::BangNot => {
                        Value { aggregate: value.aggregate, ..Value::of(Type::Boolean) }
                    }
                    _ => Value { column: None, ..value },
                }
            }
            Expr::IsFalse(e)
            | Expr::IsNotFalse(e)
            | Expr::IsTrue(e)
            | Expr::IsNotTrue(e)
            | Expr::IsNull(e)
            | Expr::IsNotNull(e)
            | Expr::IsUnknown(e)
            | Expr::IsNotUnknown(e) => self.all([&**e], spot, Type::Boolean),
            Expr::IsJson { expr, .. } | Expr::IsNormalized { expr, .. } => self.all([&**expr], spot, Type::Boolean),
            Expr::IsDistinctFrom(a, b) | Expr::IsNotDistinctFrom(a, b) => self.all([&**a, &**b], spot, Type::Boolean),
            Expr::InList { expr, list, .. } => {
                let left = self.expression(expr, spot);
                let mut aggregate = left.aggregate;
                for member in list {
                    let right = self.expression(member, spot);
                    aggregate |= right.aggregate;
                    self.operation(&EQUALS, (expr, left), (member, right), spot, false, true);
                }
                Value { aggregate, ..Value::of(Type::Boolean) }
            }
            Expr::InSubquery { expr, subquery, .. } => {
                let left = self.expression(expr, spot);
                let wanted = if let Expr::Tuple(members) = &**expr { members.len() } else { 1 };
                let right = self.subquery(subquery, spot, Some(wanted));
                self.operation(&EQUALS, (expr, left), (expr, Value { many_rows: false, ..right }), spot, false, true);
                Value { aggregate: left.aggregate, ..Value::of(Type::Boolean) }
            }
            Expr::InUnnest { expr, array_expr, .. } => self.all([&**expr, &**array_expr], spot, Type::Boolean),
            Expr::Between { expr, low, high, .. } => {
                let value = self.expression(expr, spot);
                let mut aggregate = value.aggregate;
                for end in [low, high] {
                    let right = self.expression(end, spot);
                    aggregate |= right.aggregate;
                    self.operation(&EQUALS, (expr, value), (end, right), spot, false, true);
                    if let Some(last) = self.facts.operations.last_mut() {
                        last.is_end = true;
                    }
                }
                Value { aggregate, ..Value::of(Type::Boolean) }
            }
            Expr::Like { expr, pattern, escape_char, .. }
            | Expr::ILike { expr, pattern, escape_char, .. }
            | Expr::SimilarTo { expr, pattern, escape_char, .. } => {
                if let Some(escape) = escape_char {
                    self.expression(escape, spot);
                }
                let (left, right) = (self.expression(expr, spot), self.expression(pattern, spot));
                self.operation(&LIKE, (expr, left), (pattern, right), spot, false, false);
                let (aggregate, touches) = (left.aggregate || right.aggregate, left.touches | right.touches);
                Value { aggregate, touches, ..Value::of(Type::Boolean) }
            }
            Expr::RLike { expr, pattern, .. } => self.all([&**expr, &**pattern], spot, Type::Boolean),
            Expr::AnyOp { left, right, .. } | Expr::AllOp { left, right, .. } => {
                let left = self.expression(left, spot);
                match &**right {
                    Expr::Subquery(query) => _ = self.subquery(query, spot, Some(1)),
                    other => _ = self.expression(other, spot),
                }
                Value { aggregate: left.aggregate, ..Value::of(Type::Boolean) }
            }
            Expr::Cast { expr, data_type, kind, .. } => {
                let inner = self.expression(expr, spot);
                let to = Type::from_name(&data_type.to_string());
                // A number stays one; a column of dates becomes one where there are no dates.
                let column = matches!(&**expr, Expr::Identifier(_) | Expr::CompoundIdentifier(_));
                if *kind == CastKind::Cast && (to.is_moment() || to == Type::Time) && column && !inner.kind.is_numeric()
                {
                    self.feature(Feature::CastToDate, expr.span());
                }
                Value { aggregate: inner.aggregate, touches: inner.touches, ..Value::of(to) }
            }
            Expr::Convert { expr, data_type, .. } => {
                let kind = data_type.as_ref().map_or(Type::Any, |t| Type::from_name(&t.to_string()));
                self.all([&**expr], spot, kind)
            }
            Expr::AtTimeZone { timestamp, time_zone } => self.all([&**timestamp, &**time_zone], spot, Type::Timestamp),
            Expr::Extract { expr, .. } => self.all([&**expr], spot, Type::Number),
            Expr::Ceil { expr, .. } | Expr::Floor { expr, .. } => self.all([&**expr], spot, Type::Any),
            Expr::Position { expr, r#in } => self.all([&**expr, &**r#in], spot, Type::Integer),
            Expr::Substring { expr, substring_from, substring_for, .. } => self.all(
                [Some(expr), substring_from.as_ref(), substring_for.as_ref()].into_iter().flatten().map(|e| &**e),
                spot,
                Type::Text,
            ),
            Expr::Trim { trim_what, expr, trim_characters, .. } => {
                let parts = trim_what.iter().map(|e| &**e).chain([&**expr]).chain(trim_characters.iter().flatten());
                self.all(parts, spot, Type::Text)
            }
            Expr::Overlay { expr, overlay_what, overlay_from, overlay_for } => {
                let parts = [expr, overlay_what, overlay_from].into_iter().chain(overlay_for).map(|e| &**e);
                self.all(parts, spot, Type::Text)
            }
            Expr::Collate { expr, .. } => self.expression(expr, spot),
            Expr::Prefixed { value, .. } => self.expression(value, spot),
            Expr::TypedString(typed) => Value::of(Type::from_name(&typed.data_type.to_string())),
            Expr::Function(call) => self.call(call, spot),
            Expr::Case { operand, conditions, else_result, .. } => {
                self.case(operand.as_deref(), conditions, else_result.as_deref(), spot)
            }
            Expr::Exists { subquery, .. } => {
                self.subquery(subquery, spot, None);
                Value::of(Type::Boolean)
            }
            Expr::Subquery(query) => self.subquery(query, spot, Some(1)),
            Expr::GroupingSets(sets) | Expr::Cube(sets) | Expr::Rollup(sets) => {
                self.all(sets.iter().flatten(), spot, Type::Any)
            }
            Expr::Tuple(members) => {
                let mut aggregate = false;
                for member in members {
                    aggregate |= self.expression(member, spot).aggregate;
                }
                Value { aggregate, ..Value::of(Type::Any) }
            }
            Expr::Struct { values, .. } => self.all(values, spot, Type::Json),
            Expr::Named { expr, .. } => self.expression(expr, spot),
            Expr::Dictionary(fields) => self.all(fields.iter().map(|f| &*f.value), spot, Type::Json),
            Expr::Map(map) => self.all(map.entries.iter().flat_map(|e| [&*e.key, &*e.value]), spot, Type::Json),
            Expr::Array(array) => self.all(&array.elem, spot, Type::Array),
            Expr::Interval(interval) => self.all([&*interval.value], spot, Type::Interval),
            Expr::CompoundFieldAccess { root, access_chain } => {
                for access in access_chain {
                    if let AccessExpr::Subscript(subscript) = access {
                        self.subscript(subscript, spot);
                    }
                }
                self.all([&**root], spot, Type::Any)
            }
            Expr::JsonAccess { value, .. } => self.all([&**value], spot, Type::Any),
            Expr::OuterJoin(inner) | Expr::Prior(inner) => self.expression(inner, spot),
            Expr::Lambda(lambda) => {
                let before = self.locals.len();
                match &lambda.params {
                    OneOrManyWithParens::One(p) => self.locals.push(&p.name),
                    OneOrManyWithParens::Many(ps) => self.locals.extend(ps.iter().map(|p| &p.name)),
                }
                let value = self.expression(&lambda.body, spot);
                self.locals.truncate(before);
                Value { column: None, ..value }
            }
            Expr::MemberOf(member) => self.all([&*member.value, &*member.array], spot, Type::Boolean),
            Expr::MatchAgainst { columns, .. } => {
                for column in columns {
                    if let [part] = column.0.as_slice()
                        && let Some(ident) = part.as_ident()
                    {
                        self.name(ident, spot);
                    }
                }
                Value::of(Type::Number)
            }
            Expr::QualifiedWildcard(name, _) => {
                self.wildcard_of(name, spot);
                Value::of(Type::Any)
            }
            Expr::Wildcard(_) => Value::of(Type::Any),
        }
    }

    /// Notes syntax that not every dialect has.
    pub(super) fn feature(&mut self, feature: Feature, place: Place) {
        self.facts.features.push((feature, place));
    }

    /// Syntax of an expression that not every dialect has.
    fn feature_of(&self, expr: &Expr) -> Option<Feature> {
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

    fn all(&mut self, parts: impl IntoIterator<Item = &'a Expr>, spot: Spot, kind: Type) -> Value<'a> {
        let (mut aggregate, mut touches) = (false, 0);
        for part in parts {
            let value = self.expression(part, spot);
            aggregate |= value.aggregate;
            touches |= value.touches;
        }
        Value { aggregate, touches, ..Value::of(kind) }
    }

    fn subscript(&mut self, subscript: &'a Subscript, spot: Spot) {
        match subscript {
            Subscript::Index { index } => _ = self.expression(index, spot),
            Subscript::Slice { lower_bound, upper_bound, stride } => {
                for bound in lower_bound.iter().chain(upper_bound).chain(stride) {
                    self.expression(bound, spot);
                }
            }
        }
    }

    fn binary(
        &mut self,
        left: &'a Expr,
        op: &'a BinaryOperator,
        right: &'a Expr,
        spot: Spot,
        required: bool,
    ) -> Value<'a> {
        let inner = Spot { required: required && *op == BinaryOperator::And, ..spot };
        let l = self.side(left, right, inner);
        let r = self.side(right, left, inner);
        self.operation(op, (left, l), (right, r), spot, required, false);
        let kind = match op {
            BinaryOperator::StringConcat if l.kind == Type::Array || r.kind == Type::Array => Type::Array,
            BinaryOperator::StringConcat => Type::Text,
            BinaryOperator::Plus
            | BinaryOperator::Minus
            | BinaryOperator::Multiply
            | BinaryOperator::Divide
            | BinaryOperator::Modulo => arithmetic(op, l.kind, r.kind, self.dialect.integer_division),
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
        Value { aggregate: l.aggregate || r.aggregate, touches: l.touches | r.touches, ..Value::of(kind) }
    }

    /// One side of a comparison; a subquery gives as many columns as the row on the other side has.
    fn side(&mut self, side: &'a Expr, other: &'a Expr, spot: Spot) -> Value<'a> {
        match (side, other) {
            (Expr::Subquery(query), Expr::Tuple(members)) => self.subquery(query, spot, Some(members.len())),
            _ => self.expression(side, spot),
        }
    }

    fn operation(
        &mut self,
        operator: &'a BinaryOperator,
        left: (&'a Expr, Value<'a>),
        right: (&'a Expr, Value<'a>),
        spot: Spot,
        required: bool,
        is_in: bool,
    ) {
        // Conditions that are joined tell nothing, unless one is a number.
        let joins = matches!(operator, BinaryOperator::And | BinaryOperator::Or);
        if joins && !left.1.kind.is_numeric() && !right.1.kind.is_numeric() {
            return;
        }
        self.facts.operations.push(Operation {
            operator,
            left: left.1,
            right: right.1,
            left_node: left.0,
            right_node: right.0,
            block: spot.block,
            clause: spot.clause,
            required,
            is_in,
            is_end: false,
            negated: self.negated > 0,
        });
    }

    fn case(
        &mut self,
        operand: Option<&'a Expr>,
        conditions: &'a [sqlparser::ast::CaseWhen],
        otherwise: Option<&'a Expr>,
        spot: Spot,
    ) -> Value<'a> {
        let (mut aggregate, mut touches) = (false, 0);
        let mut kind: Option<Type> = None;
        let operand = operand.map(|o| self.expression(o, spot));
        let mut unify = |value: Value<'a>| {
            if !matches!(value.literal, Some(Literal::Null)) {
                kind = Some(kind.map_or(value.kind, |k| unified(k, value.kind)));
            }
            aggregate |= value.aggregate;
            touches |= value.touches;
        };
        if let Some(operand) = operand {
            unify(Value { literal: Some(&Literal::Null), ..operand });
        }
        for when in conditions {
            let condition = self.expression(&when.condition, spot);
            let result = self.expression(&when.result, spot);
            unify(Value { literal: Some(&Literal::Null), ..condition });
            unify(result);
        }
        if let Some(otherwise) = otherwise {
            unify(self.expression(otherwise, spot));
        }
        Value { aggregate, touches, ..Value::of(kind.unwrap_or(Type::Any)) }
    }

    pub(super) fn subquery(&mut self, query: &'a Query, spot: Spot, wanted: Option<usize>) -> Value<'a> {
        let shape = self.query(query, spot.block);
        if let Some(wanted) = wanted {
            self.expect_width(&shape.columns, wanted, query.span());
        }
        let kind = match &shape.columns {
            super::Columns::Listed(outputs) => outputs.first().map_or(Type::Any, |o| o.kind),
            super::Columns::Table(_) | super::Columns::Open => Type::Any,
        };
        Value { many_rows: !shape.single_row, ..Value::of(kind) }
    }
}

/// Whether what holds inside of it keeps a row away.
fn is_negation(expr: &Expr) -> bool {
    matches!(
        expr,
        Expr::InSubquery { negated: true, .. }
            | Expr::InList { negated: true, .. }
            | Expr::Exists { negated: true, .. }
            | Expr::UnaryOp { op: UnaryOperator::Not | UnaryOperator::BangNot, .. }
    )
}

fn literal(value: &Literal) -> Value<'_> {
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
    Value { literal: Some(value), ..Value::of(kind) }
}

fn unified(a: Type, b: Type) -> Type {
    match (a, b) {
        _ if a == b => a,
        _ if a.is_numeric() && b.is_numeric() => Type::Number,
        _ => Type::Any,
    }
}

fn arithmetic(op: &BinaryOperator, left: Type, right: Type, integer_division: bool) -> Type {
    match (left, right) {
        (Type::Integer, Type::Integer) if *op == BinaryOperator::Divide && !integer_division => Type::Number,
        (Type::Integer, Type::Integer) => Type::Integer,
        _ if left.is_numeric() && right.is_numeric() => Type::Number,
        _ => Type::Any,
    }
}

/// The place of an expression, which the parser works out on demand.
pub(crate) fn place(expr: &Expr) -> Place {
    expr.span()
}
