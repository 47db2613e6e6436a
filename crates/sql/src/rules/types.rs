//! Operands and arguments of the wrong type.

pub mod argument_types;
pub mod date_difference;
pub mod date_format;
pub mod division_by_zero;
pub mod integer_division;
pub mod invalid_cast;
pub mod type_mismatch;
