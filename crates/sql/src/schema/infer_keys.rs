//! Inference of undeclared foreign keys from names, types and keys.

use std::collections::HashMap;

use super::{ForeignKey, Table, TableKind, Type};

/// Number of candidate tables from which a key name is too generic to infer a reference.
const GENERIC_KEY_THRESHOLD: usize = 3;

/// Key names that any table may use for its own key; on their own, they imply no reference.
const GENERIC_KEY_NAMES: &[&str] =
    &["id", "key", "code", "name", "no", "number", "num", "uid", "pk", "uuid", "type", "date", "year"];

/// Adds an inferred foreign key to each column that has no declared one and matches the key of
/// exactly one other table.
///
/// The column must have the name of the key (`customer_id` → `customers.customer_id`) or the
/// table's name and its key (`customer_id` → `customers.id`), and the types must be comparable.
pub(super) fn infer_foreign_keys(tables: &mut [Table]) {
    let mut keys: HashMap<String, Vec<(usize, String)>> = HashMap::new();
    for (i, table) in tables.iter().enumerate() {
        for key in single_column_keys(table) {
            let lower = key.to_lowercase();
            let own = format!("{}_{lower}", singular(&table.name.to_lowercase()));
            keys.entry(own).or_default().push((i, key.to_string()));
            if !GENERIC_KEY_NAMES.contains(&lower.as_str()) {
                keys.entry(lower).or_default().push((i, key.to_string()));
            }
        }
    }
    for i in 0..tables.len() {
        if tables[i].kind == TableKind::View {
            continue;
        }
        let mut found = Vec::new();
        for column in &tables[i].columns {
            let declared =
                tables[i].foreign_keys.iter().any(|k| k.columns.iter().any(|c| c.eq_ignore_ascii_case(&column.name)));
            if declared {
                continue;
            }
            let Some(targets) = keys.get(&column.name.to_lowercase()) else { continue };
            // Prefer tables of the same schema.
            let own: Vec<&(usize, String)> =
                targets.iter().filter(|(t, _)| tables[*t].schema == tables[i].schema).collect();
            let targets = if own.is_empty() { targets.iter().collect() } else { own };
            if targets.len() >= GENERIC_KEY_THRESHOLD {
                continue;
            }
            let is_own_key = single_column_keys(&tables[i]).any(|k| k.eq_ignore_ascii_case(&column.name));
            let mut others = targets.iter().filter(|(t, key)| {
                *t != i && are_comparable(column.kind(), tables[*t].column(key).map_or(Type::Any, |c| c.kind()))
            });
            if let (Some((target, key)), None) = (others.next(), others.next()) {
                // Two tables that share their key may each be the other's parent: one direction is
                // enough.
                if is_own_key && *target > i {
                    continue;
                }
                found.push(ForeignKey {
                    columns: vec![column.name.clone()],
                    table: tables[*target].name.clone(),
                    references: vec![key.clone()],
                    inferred: true,
                });
            }
        }
        for key in found {
            if !tables[i].foreign_keys.contains(&key) {
                tables[i].foreign_keys.push(key);
            }
        }
    }
}

fn single_column_keys(table: &Table) -> impl Iterator<Item = &str> {
    let primary = (table.primary_key.len() == 1).then(|| table.primary_key[0].as_str());
    let unique = table.unique.iter().filter(|u| u.len() == 1).map(|u| u[0].as_str());
    let mut seen: Vec<&str> = Vec::new();
    primary.into_iter().chain(unique).filter(move |k| {
        let new = !seen.contains(k);
        seen.push(k);
        new
    })
}

fn are_comparable(a: Type, b: Type) -> bool {
    a == b || a == Type::Any || b == Type::Any || (a.is_numeric() && b.is_numeric())
}

/// Returns the singular of an English plural, as far as table names need it.
pub(crate) fn singular(name: &str) -> String {
    for (plural, one) in [("ies", "y"), ("sses", "ss"), ("xes", "x"), ("ches", "ch"), ("shes", "sh")] {
        if let Some(stem) = name.strip_suffix(plural) {
            return format!("{stem}{one}");
        }
    }
    match name.strip_suffix('s') {
        Some(stem) if !stem.ends_with('s') && !stem.ends_with('u') && stem.len() > 1 => stem.to_string(),
        _ => name.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use crate::schema::{Column, Schema, Table};

    fn table(name: &str, key: &str, columns: &[&str]) -> Table {
        Table {
            name: name.into(),
            columns: columns.iter().map(|c| Column::new(*c, "integer")).collect(),
            primary_key: if key.is_empty() { vec![] } else { vec![key.into()] },
            ..Table::default()
        }
    }

    fn check(tables: Vec<Table>, expected: &[(&str, &str, &str)]) {
        let schema = Schema::new(tables).unwrap();
        let found: Vec<_> = schema
            .tables()
            .iter()
            .flat_map(|t| t.foreign_keys.iter().map(|k| (t.name.as_str(), k.columns[0].as_str(), k.table.as_str())))
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn infers_foreign_keys_from_unambiguous_column_names() {
        check(
            vec![table("customers", "id", &["id"]), table("orders", "id", &["id", "customer_id"])],
            &[("orders", "customer_id", "customers")],
        );
        check(
            vec![table("products", "product_id", &["product_id"]), table("items", "", &["product_id", "n"])],
            &[("items", "product_id", "products")],
        );
        check(vec![table("a", "id", &["id"]), table("b", "id", &["id"]), table("c", "id", &["id"])], &[]);
    }
}
