//! Join paths between tables over declared and inferred foreign keys.

use std::cmp::Ordering;
use std::collections::VecDeque;

use crate::schema::{Schema, Table};

/// Edge of the join graph: a foreign key followed from one table to another.
#[derive(Debug, Clone)]
pub(crate) struct ForeignKeyEdge<'a> {
    /// Table that the edge starts at.
    pub from: &'a Table,
    /// Table that the edge leads to.
    pub to: &'a Table,
    /// Join columns as pairs of (`from`, `to`).
    pub columns: Vec<(&'a str, &'a str)>,
    /// `true` if the key is not declared.
    pub inferred: bool,
    /// `true` if a row of `from` may match several rows of `to`.
    pub fans_out: bool,
}

/// Maximum number of edges in a path; longer paths reflect the schema rather than the query.
const MAX_HOPS: usize = 3;

/// Maximum number of paths tied for the best; more of them do not help.
const MAX_TIED_PATHS: usize = 3;

/// Finds the shortest paths from any of several tables to another by breadth-first search.
///
/// Among paths of equal length, returns those with the lowest cost. The first edge starts at one of
/// `from`.
pub(crate) fn shortest_paths<'a>(
    schema: &'a Schema,
    from: &[&'a Table],
    to: &'a Table,
    cost: &dyn Fn(&[ForeignKeyEdge<'_>]) -> usize,
) -> Vec<Vec<ForeignKeyEdge<'a>>> {
    let mut queue: VecDeque<Vec<ForeignKeyEdge<'a>>> = VecDeque::new();
    let mut reached: Vec<&Table> = from.to_vec();
    for &table in from {
        queue.extend(table_edges(schema, table).into_iter().map(|l| vec![l]));
    }
    let mut found: Vec<Vec<ForeignKeyEdge<'a>>> = Vec::new();
    while let Some(path) = queue.pop_front() {
        let Some(last) = path.last() else { continue };
        if let Some(best) = found.first()
            && path.len() > best.len()
        {
            break;
        }
        if is_same_table(last.to, to) {
            match found.first().map(|b| cost(&path).cmp(&cost(b))) {
                None | Some(Ordering::Less) => found = vec![path],
                Some(Ordering::Equal) if found.len() < MAX_TIED_PATHS => found.push(path),
                Some(Ordering::Equal | Ordering::Greater) => {}
            }
            continue;
        }
        if path.len() >= MAX_HOPS || reached.iter().any(|t| is_same_table(t, last.to)) {
            continue;
        }
        reached.push(last.to);
        for next in table_edges(schema, last.to) {
            if !path.iter().any(|l| is_same_table(l.from, next.to)) {
                let mut longer = path.clone();
                longer.push(next);
                queue.push_back(longer);
            }
        }
    }
    found
}

/// Returns all edges between a table and any of several others.
pub(crate) fn edges_between<'a>(schema: &'a Schema, table: &'a Table, others: &[&'a Table]) -> Vec<ForeignKeyEdge<'a>> {
    table_edges(schema, table)
        .into_iter()
        .filter(|l| others.iter().any(|o| is_same_table(o, l.to)) && !is_same_table(l.to, table))
        .collect()
}

fn is_same_table(a: &Table, b: &Table) -> bool {
    std::ptr::eq(a, b)
}

/// Returns all edges of a table, in both directions of foreign keys.
fn table_edges<'a>(schema: &'a Schema, table: &'a Table) -> Vec<ForeignKeyEdge<'a>> {
    let mut out = Vec::new();
    for key in &table.foreign_keys {
        if let Some(to) = schema.table(&key.table)
            && let Some(columns) = column_pairs(&key.columns, &key.references, to)
        {
            let there: Vec<&str> = columns.iter().map(|(_, t)| *t).collect();
            out.push(ForeignKeyEdge {
                from: table,
                to,
                fans_out: !to.is_unique(&there),
                columns,
                inferred: key.inferred,
            });
        }
    }
    for other in schema.tables() {
        for key in other.foreign_keys.iter().filter(|k| k.table.eq_ignore_ascii_case(&table.name)) {
            if let Some(columns) = column_pairs(&key.columns, &key.references, table) {
                let columns: Vec<(&str, &str)> = columns.into_iter().map(|(a, b)| (b, a)).collect();
                let there: Vec<&str> = columns.iter().map(|(_, t)| *t).collect();
                out.push(ForeignKeyEdge {
                    from: table,
                    to: other,
                    fans_out: !other.is_unique(&there),
                    columns,
                    inferred: key.inferred,
                });
            }
        }
    }
    // Tables without a foreign key between them may still share an identifying column: `uuid`,
    // `set_code`.
    for other in schema.tables().iter().filter(|o| !is_same_table(o, table)) {
        if out.iter().any(|l| is_same_table(l.to, other)) {
            continue;
        }
        let shared = table.columns.iter().filter(|c| is_identifier_column(&c.name)).find_map(|c| {
            let there = other.columns.iter().find(|o| o.name.eq_ignore_ascii_case(&c.name) && o.kind() == c.kind())?;
            Some((c.name.as_str(), there.name.as_str()))
        });
        if let Some((here, there)) = shared {
            out.push(ForeignKeyEdge {
                from: table,
                to: other,
                columns: vec![(here, there)],
                inferred: true,
                fans_out: !other.is_unique(&[there]),
            });
        }
    }
    out.sort_by_key(|l| l.inferred);
    out
}

/// Returns whether the name of a column implies that it identifies a particular kind of row.
fn is_identifier_column(name: &str) -> bool {
    let lower = name.to_lowercase();
    ["id", "code", "key", "uuid", "number"].iter().any(|e| lower.ends_with(e))
        && lower.len() > 3
        && !["code", "number"].contains(&lower.as_str())
}

/// Pairs the columns of a foreign key; without referenced columns it refers to the primary key.
fn column_pairs<'a>(own: &'a [String], references: &'a [String], to: &'a Table) -> Option<Vec<(&'a str, &'a str)>> {
    let there = if references.is_empty() { &to.primary_key } else { references };
    (own.len() == there.len() && !own.is_empty())
        .then(|| own.iter().zip(there).map(|(a, b)| (a.as_str(), b.as_str())).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_shortest_join_path_in_both_directions() {
        let schema = Schema::from_ddl(include_str!("../../tests/pages/shop.sql"), &crate::dialect::SQLITE).unwrap();
        let steps = |from: &str, to: &str| -> Vec<String> {
            let found = shortest_paths(&schema, &[schema.table(from).unwrap()], schema.table(to).unwrap(), &|_| 0);
            found[0]
                .iter()
                .map(|l| format!("{}.{} = {}.{}", l.from.name, l.columns[0].0, l.to.name, l.columns[0].1))
                .collect()
        };
        assert_eq!(steps("orders", "customers"), ["orders.customer_id = customers.customer_id"]);
        assert_eq!(
            steps("customers", "products"),
            ["customers.customer_id = reviews.customer_id", "reviews.product_id = products.product_id"]
        );
        assert_eq!(
            steps("orders", "products"),
            ["orders.order_id = order_items.order_id", "order_items.product_id = products.product_id"]
        );
    }
}
