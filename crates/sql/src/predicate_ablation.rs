//! Finds the predicate that filters out all rows by dropping one predicate at a time.

use sqlparser::ast::{BinaryOperator, Expr, SetExpr, Statement};

use crate::context::ReviewContext;
use crate::finding::{Edit, apply_edits};
use crate::parse::parsed_query::ParsedQuery;
use crate::resolve::spans::expression_span;
use crate::review::{Approved, review};

/// Maximum number of predicates that are dropped in turn.
const MAX_PREDICATES: usize = 6;

/// Query without one of its predicates.
#[derive(Debug, Clone, PartialEq)]
pub struct AblatedQuery {
    /// Source text of the dropped predicate.
    pub predicate: String,
    /// Query without the predicate, reviewed like any other.
    pub query: Approved,
}

/// Returns the query once per WHERE conjunct, with that conjunct dropped.
///
/// Returns nothing if there are more than `MAX_PREDICATES` conjuncts. Skips queries that cannot be
/// sent.
pub fn drop_each_predicate(text: &str, context: &ReviewContext<'_>) -> Vec<AblatedQuery> {
    let query = ParsedQuery::parse(text, context.dialect, context.policy);
    let [Statement::Query(statement)] = query.statements.as_slice() else { return Vec::new() };
    let SetExpr::Select(select) = &*statement.body else { return Vec::new() };
    let mut conditions = Vec::new();
    if let Some(selection) = &select.selection {
        collect_conjuncts(selection, &mut conditions);
    }
    if conditions.len() > MAX_PREDICATES {
        return Vec::new();
    }
    let ablate = |condition: &&Expr| {
        let span = expression_span(&query, condition);
        let edit = Edit { span, text: "1 = 1".into() };
        let rest = review(&apply_edits(&query.source, &[edit]), context);
        let condition = query.text(span).split_whitespace().collect::<Vec<_>>().join(" ");
        Some(AblatedQuery { predicate: condition, query: rest.approve().ok().filter(|_| rest.is_clean())? })
    };
    conditions.iter().filter_map(ablate).collect()
}

fn collect_conjuncts<'a>(condition: &'a Expr, out: &mut Vec<&'a Expr>) {
    match condition {
        Expr::BinaryOp { left, op: BinaryOperator::And, right } if out.len() <= MAX_PREDICATES => {
            collect_conjuncts(left, out);
            collect_conjuncts(right, out);
        }
        Expr::Nested(inner) => collect_conjuncts(inner, out),
        other => out.push(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::SQLITE;
    use crate::{Policy, Schema};

    #[test]
    fn drops_each_predicate_in_turn() {
        let schema = Schema::from_ddl(include_str!("../tests/pages/shop.sql"), &SQLITE).unwrap();
        let policy = Policy::default();
        let context = ReviewContext { schema: Some(&schema), dialect: &SQLITE, policy: &policy, question: None };
        let all = |text: &str| -> Vec<(String, String)> {
            let without = drop_each_predicate(text, &context);
            without.into_iter().map(|w| (w.predicate, w.query.sql().to_string())).collect()
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
