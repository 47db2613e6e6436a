//! Values that a query looks for, held against those that its columns hold.

pub mod unknown_value;
pub mod unmentioned_value;

use sqlparser::ast::{Expr, Value as Literal};

use crate::rules::Subject;
use crate::schema::{Column, Table, Type};
use crate::scope::{Operation, Value};

/// A text that a stored column is compared with.
pub(super) struct Compared<'a> {
    pub(super) operation: &'a Operation<'a>,
    pub(super) table: &'a Table,
    pub(super) column: &'a Column,
    pub(super) text: &'a str,
    pub(super) node: &'a Expr,
}

/// Every text that a column of the schema is compared with.
pub(super) fn compared<'s>(subject: &'s Subject<'s>) -> impl Iterator<Item = Compared<'s>> {
    subject.facts.operations.iter().filter_map(|operation| {
        let (left, right) = (operation.left, operation.right);
        let sides = [(left, right, operation.right_node), (right, left, operation.left_node)];
        sides.into_iter().find_map(|(side, other, node)| {
            let (source, index) = side.column?;
            let (table, column) = subject.facts.sources[source].origin(index)?;
            let text = text_of(other, node)?;
            // Under a collation of the query's own, other spellings are equal.
            let collates = |node: &Expr| matches!(node, Expr::Collate { .. });
            if collates(operation.left_node) || collates(operation.right_node) {
                return None;
            }
            Some(Compared { operation, table, column, text, node })
        })
    })
}

/// The text that an expression is: a literal, or a name in double quotes that the dialect takes for one.
pub(crate) fn text_of<'a>(value: Value<'a>, node: &'a Expr) -> Option<&'a str> {
    match (value.literal, node) {
        (Some(Literal::SingleQuotedString(text) | Literal::DoubleQuotedString(text)), _) => Some(text),
        (None, Expr::Identifier(name)) if value.kind == Type::Text && value.column.is_none() => {
            name.quote_style.is_some().then_some(name.value.as_str())
        }
        _ => None,
    }
}
