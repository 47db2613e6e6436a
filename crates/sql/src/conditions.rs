//! Which condition keeps all rows away: the query again, with one of its conditions left out at a time.

use sqlparser::ast::{BinaryOperator, Expr, SetExpr, Statement};

use crate::finding::{Edit, apply};
use crate::query::Query;
use crate::review::{Approved, Context, review};
use crate::rules::types::span_of;

/// Conditions that are left out in turn, at most so many.
const MOST: usize = 6;

/// A query without one of its conditions.
#[derive(Debug, Clone, PartialEq)]
pub struct Without {
    /// The condition, as it is written.
    pub condition: String,
    /// The rest of the query. It is reviewed like any other.
    pub query: Approved,
}

/// The query without each of the conditions that WHERE joins by AND; none if there is only one way to see it, or it cannot be
/// sent.
pub fn without_each(text: &str, context: &Context<'_>) -> Vec<Without> {
    let query = Query::read(text, context.dialect, context.policy);
    let [Statement::Query(statement)] = query.statements.as_slice() else { return Vec::new() };
    let SetExpr::Select(select) = &*statement.body else { return Vec::new() };
    let mut conditions = Vec::new();
    if let Some(selection) = &select.selection {
        flatten(selection, &mut conditions);
    }
    if conditions.len() > MOST {
        return Vec::new();
    }
    let without = |condition: &&Expr| {
        let span = span_of(&query, condition);
        let edit = Edit { span, text: "1 = 1".into() };
        let rest = review(&apply(&query.source, &[edit]), context);
        let condition = query.text(span).split_whitespace().collect::<Vec<_>>().join(" ");
        Some(Without { condition, query: rest.approve().ok().filter(|_| rest.is_clean())? })
    };
    conditions.iter().filter_map(without).collect()
}

fn flatten<'a>(condition: &'a Expr, out: &mut Vec<&'a Expr>) {
    match condition {
        Expr::BinaryOp { left, op: BinaryOperator::And, right } if out.len() <= MOST => {
            flatten(left, out);
            flatten(right, out);
        }
        Expr::Nested(inner) => flatten(inner, out),
        other => out.push(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::SQLITE;
    use crate::{Policy, Schema};

    #[test]
    fn f11_each_condition_is_left_out_in_turn() {
        let schema = Schema::from_ddl(include_str!("../tests/pages/shop.sql"), &SQLITE).unwrap();
        let policy = Policy::default();
        let context = Context { schema: Some(&schema), dialect: &SQLITE, policy: &policy, question: None };
        let all = |text: &str| -> Vec<(String, String)> {
            let without = without_each(text, &context);
            without.into_iter().map(|w| (w.condition, w.query.sql().to_string())).collect()
        };
        let found =
            all("SELECT name FROM products WHERE (category = 'Toys' AND price > 3) AND lower(name) = 'x' ORDER BY 1");
        assert_eq!(found.len(), 3);
        assert_eq!(
            found[0],
            (
                "category = 'Toys'".into(),
                "SELECT name FROM products WHERE (1 = 1 AND price > 3) AND lower(name) = 'x' ORDER BY 1".into()
            )
        );
        assert_eq!(
            found[2].1,
            "SELECT name FROM products WHERE (category = 'Toys' AND price > 3) AND 1 = 1 ORDER BY 1"
        );
        assert!(all("SELECT name FROM products").is_empty() && all("DELETE FROM products WHERE price = 1").is_empty());
        assert_eq!(all("SELECT name FROM products WHERE price = 1 OR stock = 2").len(), 1);
    }
}
