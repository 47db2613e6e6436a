//! Literals of a query, compared with the values that its columns contain.

pub mod question_value_unused;
pub mod unknown_value;

use sqlparser::ast::Expr;

use crate::resolve::{BinaryOperation, literal_text};
use crate::rule::RuleContext;
use crate::schema::{Column, Table};

/// A text literal that a stored column is compared with.
pub(super) struct ComparedText<'a> {
    pub(super) operation: &'a BinaryOperation<'a>,
    pub(super) table: &'a Table,
    pub(super) column: &'a Column,
    pub(super) text: &'a str,
    pub(super) node: &'a Expr,
}

/// Returns every text literal that a column of the schema is compared with.
pub(super) fn compared_texts<'s>(ctx: &'s RuleContext<'s>) -> impl Iterator<Item = ComparedText<'s>> {
    ctx.resolution.operations.iter().filter_map(|operation| {
        let (left, right) = (operation.left, operation.right);
        let sides = [(left, right, operation.right_node), (right, left, operation.left_node)];
        sides.into_iter().find_map(|(side, other, node)| {
            let (source, index) = side.column?;
            let (table, column) = ctx.resolution.sources[source].origin(index)?;
            let text = literal_text(other, node)?;
            // Under a collation in the query itself, other spellings are equal.
            let collates = |node: &Expr| matches!(node, Expr::Collate { .. });
            if collates(operation.left_node) || collates(operation.right_node) {
                return None;
            }
            Some(ComparedText { operation, table, column, text, node })
        })
    })
}
