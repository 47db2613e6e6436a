//! Values of the wrong kind.

pub mod compared_types;
pub mod date_format;
pub mod division_by_zero;
pub mod integer_division;
pub mod invalid_cast;

use sqlparser::ast::BinaryOperator;

/// Whether an operator compares its sides.
pub(super) fn compares(operator: &BinaryOperator) -> bool {
    matches!(
        operator,
        BinaryOperator::Eq
            | BinaryOperator::NotEq
            | BinaryOperator::Lt
            | BinaryOperator::LtEq
            | BinaryOperator::Gt
            | BinaryOperator::GtEq
    )
}
