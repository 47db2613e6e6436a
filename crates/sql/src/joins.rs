//! How two tables hang together: paths over declared and inferred foreign keys.

use std::cmp::Ordering;
use std::collections::VecDeque;

use crate::schema::{Schema, Table};

/// One step from a table to another.
#[derive(Debug, Clone)]
pub(crate) struct Link<'a> {
    /// Where it starts.
    pub from: &'a Table,
    /// Where it leads.
    pub to: &'a Table,
    /// Columns that must be equal: here, there.
    pub columns: Vec<(&'a str, &'a str)>,
    /// Nobody declared the key.
    pub inferred: bool,
    /// A row here may meet several there.
    pub multiplies: bool,
}

/// Longer paths say more about the schema than about the query.
const MOST_HOPS: usize = 3;

/// Paths that are as good as the best are no help beyond so many.
const MOST_RIVALS: usize = 3;

/// The shortest paths from any of the tables to another; of several, those with the least doubt, where `favoured` links
/// count for more. The first link starts at one of `from`.
pub(crate) fn paths<'a>(
    schema: &'a Schema,
    from: &[&'a Table],
    to: &'a Table,
    favoured: &dyn Fn(&Link<'_>) -> usize,
) -> Vec<Vec<Link<'a>>> {
    let doubt = |path: &[Link<'_>]| (10 + 2 * doubt(path)).saturating_sub(path.iter().map(favoured).sum());
    let mut queue: VecDeque<Vec<Link<'a>>> = VecDeque::new();
    let mut reached: Vec<&Table> = from.to_vec();
    for &table in from {
        queue.extend(links(schema, table).into_iter().map(|l| vec![l]));
    }
    let mut found: Vec<Vec<Link<'a>>> = Vec::new();
    while let Some(path) = queue.pop_front() {
        let Some(last) = path.last() else { continue };
        if let Some(best) = found.first()
            && path.len() > best.len()
        {
            break;
        }
        if same(last.to, to) {
            match found.first().map(|b| doubt(&path).cmp(&doubt(b))) {
                None | Some(Ordering::Less) => found = vec![path],
                Some(Ordering::Equal) if found.len() < MOST_RIVALS => found.push(path),
                Some(Ordering::Equal | Ordering::Greater) => {}
            }
            continue;
        }
        if path.len() >= MOST_HOPS || reached.iter().any(|t| same(t, last.to)) {
            continue;
        }
        reached.push(last.to);
        for next in links(schema, last.to) {
            if !path.iter().any(|l| same(l.from, next.to)) {
                let mut longer = path.clone();
                longer.push(next);
                queue.push_back(longer);
            }
        }
    }
    found
}

/// All links between a table and one of several others.
pub(crate) fn between<'a>(schema: &'a Schema, table: &'a Table, others: &[&'a Table]) -> Vec<Link<'a>> {
    links(schema, table).into_iter().filter(|l| others.iter().any(|o| same(o, l.to)) && !same(l.to, table)).collect()
}

/// Inferred keys and steps that multiply rows make a path more doubtful.
pub(crate) fn doubt(path: &[Link<'_>]) -> usize {
    path.iter().map(|l| 2 + usize::from(l.inferred) * 2 + usize::from(l.multiplies)).sum()
}

fn same(a: &Table, b: &Table) -> bool {
    std::ptr::eq(a, b)
}

/// All steps that lead away from a table, in both directions of its keys.
fn links<'a>(schema: &'a Schema, table: &'a Table) -> Vec<Link<'a>> {
    let mut out = Vec::new();
    for key in &table.foreign_keys {
        if let Some(to) = schema.table(&key.table)
            && let Some(columns) = paired(&key.columns, &key.references, to)
        {
            let there: Vec<&str> = columns.iter().map(|(_, t)| *t).collect();
            out.push(Link { from: table, to, multiplies: !to.is_unique(&there), columns, inferred: key.inferred });
        }
    }
    for other in schema.tables() {
        for key in other.foreign_keys.iter().filter(|k| k.table.eq_ignore_ascii_case(&table.name)) {
            if let Some(columns) = paired(&key.columns, &key.references, table) {
                let columns: Vec<(&str, &str)> = columns.into_iter().map(|(a, b)| (b, a)).collect();
                let there: Vec<&str> = columns.iter().map(|(_, t)| *t).collect();
                out.push(Link {
                    from: table,
                    to: other,
                    multiplies: !other.is_unique(&there),
                    columns,
                    inferred: key.inferred,
                });
            }
        }
    }
    // Tables that no key ties may still share a column that identifies something: `uuid`, `set_code`.
    for other in schema.tables().iter().filter(|o| !same(o, table)) {
        if out.iter().any(|l| same(l.to, other)) {
            continue;
        }
        let shared = table.columns.iter().filter(|c| identifies(&c.name)).find_map(|c| {
            let there = other.columns.iter().find(|o| o.name.eq_ignore_ascii_case(&c.name) && o.kind() == c.kind())?;
            Some((c.name.as_str(), there.name.as_str()))
        });
        if let Some((here, there)) = shared {
            out.push(Link {
                from: table,
                to: other,
                columns: vec![(here, there)],
                inferred: true,
                multiplies: !other.is_unique(&[there]),
            });
        }
    }
    out.sort_by_key(|l| l.inferred);
    out
}

/// Whether a column's name says that it tells things apart, and which things.
fn identifies(name: &str) -> bool {
    let lower = name.to_lowercase();
    ["id", "code", "key", "uuid", "number"].iter().any(|e| lower.ends_with(e))
        && lower.len() > 3
        && !["code", "number"].contains(&lower.as_str())
}

/// A key without named columns on the other side means its primary key.
fn paired<'a>(own: &'a [String], references: &'a [String], to: &'a Table) -> Option<Vec<(&'a str, &'a str)>> {
    let there = if references.is_empty() { &to.primary_key } else { references };
    (own.len() == there.len() && !own.is_empty())
        .then(|| own.iter().zip(there).map(|(a, b)| (a.as_str(), b.as_str())).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shortest_path_is_found_in_both_directions() {
        let schema = Schema::from_ddl(include_str!("../tests/pages/shop.sql"), &crate::dialect::SQLITE).unwrap();
        let steps = |from: &str, to: &str| -> Vec<String> {
            let found = paths(&schema, &[schema.table(from).unwrap()], schema.table(to).unwrap(), &|_| 0);
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
