//! Columns that the policy denies.

use serde::de::Error;
use serde::{Deserialize, Deserializer};

use super::pattern::{self, NamePattern};
use super::{Policy, name_parts, name_variants};
use crate::schema::{Schema, Table};

/// Denial of columns of one table by an entry of `deny_columns`.
pub(crate) struct DeniedColumn {
    /// Denied columns; `None` denies every column because the entry cannot be parsed.
    column: Option<NamePattern>,
    /// `true` if the entry names the table itself, not a wildcard for several tables.
    pub(crate) names_table: bool,
}

impl DeniedColumn {
    pub(crate) fn matches(&self, column: &str) -> bool {
        self.column.as_ref().is_none_or(|part| part.matches(column))
    }
}

impl Policy {
    /// Returns whether a column is denied, given all parts of the name of its table; case is
    /// ignored.
    pub fn denies_column(&self, table: &[&str], column: &str) -> bool {
        self.denied_columns(table).iter().any(|denied| denied.matches(column))
    }

    /// Returns the denials in `deny_columns` that apply to a table.
    pub(crate) fn denied_columns(&self, table: &[&str]) -> Vec<DeniedColumn> {
        self.deny_columns.iter().filter_map(|entry| column_denial(entry, table)).collect()
    }

    pub(crate) fn without_denied_columns(&self, schema: Schema) -> Schema {
        let hide = |table: &Table, column: &str| self.denies_column(&name_parts(table), column);
        let any = |table: &Table| table.columns.iter().map(|c| &c.name).chain(&table.hidden).any(|c| hide(table, c));
        if !self.deny_columns.is_empty() && schema.tables().iter().any(any) {
            schema.without_columns(hide)
        } else {
            schema
        }
    }

    pub(crate) fn unmatched_column_denies<'p>(&'p self, schema: &Schema) -> impl Iterator<Item = &'p str> {
        let fits = move |entry: &str, table: &Table| {
            let of_table = column_denial(entry, &name_parts(table));
            let names = table.columns.iter().map(|c| c.name.as_str()).chain(table.hidden.iter().map(String::as_str));
            of_table.is_some_and(|denied| names.chain(schema.withheld_columns(table)).any(|name| denied.matches(name)))
        };
        let idle = move |entry: &&str| !schema.tables().iter().any(|table| fits(entry, table));
        self.deny_columns.iter().map(String::as_str).filter(idle)
    }
}

/// Returns the denial of an entry for a table; `None` if the entry is about other tables.
fn column_denial(entry: &str, table: &[&str]) -> Option<DeniedColumn> {
    let Ok((of, column)) = pattern::parse_column_entry(entry) else {
        return Some(DeniedColumn { column: None, names_table: true });
    };
    let dotted = |name: &&str| {
        let texts: Vec<&str> = of.iter().map(NamePattern::text).collect();
        name.contains('.') && name.to_lowercase() == texts.join(".")
    };
    let fits =
        name_variants(table).iter().any(|v| pattern::parts_match(&of, v, true)) || table.last().is_some_and(dotted);
    let names_the_table = of.last().is_some_and(|name| !name.has_wildcard());
    fits.then_some(DeniedColumn { column: Some(column), names_table: names_the_table })
}

pub(crate) fn read<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    let entries = Vec::<String>::deserialize(from)?;
    entries.iter().try_for_each(|entry| pattern::parse_column_entry(entry).map(|_| ())).map_err(D::Error::custom)?;
    Ok(entries)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(entries: &[&str]) -> Policy {
        Policy { deny_columns: entries.iter().map(|e| e.to_string()).collect(), ..Policy::default() }
    }

    #[test]
    fn matches_column_entries_by_table_or_wildcard() {
        for (entry, denied, not_denied) in [
            (
                "staff.salary",
                &["staff.salary", "hr.Staff.SALARY", "c.hr.staff.salary"][..],
                &["staff.name", "pay.salary"][..],
            ),
            ("hr.staff.salary", &["hr.staff.salary", "staff.salary"], &["shop.staff.salary"]),
            ("*.ssn", &["staff.ssn", "hr.pay.SSN"], &["staff.salary"]),
            ("staff.sal*", &["staff.salary", "staff.sales"], &["staff.name"]),
            ("staff.*", &["staff.id"], &["pay.id"]),
            ("`hr`.[staff].\"net pay\"", &["hr.staff.net pay"], &["hr.staff.pay"]),
            // An entry that cannot be parsed denies everything.
            ("salary", &["pay.anything"], &[]),
            ("staff.sal%", &["pay.anything"], &[]),
        ] {
            let policy = policy(&[entry]);
            for (names, expected) in [(denied, true), (not_denied, false)] {
                for name in names {
                    let (table, column) = name.rsplit_once('.').unwrap();
                    let table: Vec<&str> = table.split('.').collect();
                    assert_eq!(policy.denies_column(&table, column), expected, "{entry} {name}");
                }
            }
        }
        for wrong in ["salary", "staff.", "staff.sal%", ""] {
            let read = serde_json::from_value::<Policy>(serde_json::json!({ "deny_columns": [wrong] }));
            assert!(read.unwrap_err().to_string().contains("is not a valid pattern"), "{wrong}");
        }
        assert_eq!(policy(&["a.b"]).intersect(policy(&["a.b", "c.d"])).deny_columns, ["a.b", "c.d"]);
    }

    #[test]
    fn hides_denied_columns_and_keys_that_use_them() {
        let ddl = "CREATE TABLE staff (id INTEGER PRIMARY KEY, name TEXT, ssn TEXT UNIQUE, salary INT);
                   CREATE TABLE pay (staff_ssn TEXT REFERENCES staff (ssn), staff_id INT REFERENCES staff (id), day DATE,
                                     PRIMARY KEY (staff_ssn, day));";
        let schema = Schema::from_ddl(ddl, &crate::dialect::SQLITE).unwrap();
        let policy = policy(&["*.*ssn", "staff.salary", "staff.pension", "boats.length"]);
        assert_eq!(policy.unmatched_denies(&schema), ["staff.pension", "boats.length"]);
        let shown = policy.filter_schema(schema);
        let names = |i: usize| shown.tables()[i].columns.iter().map(|c| c.name.as_str()).collect::<Vec<_>>();
        assert_eq!((names(0), names(1)), (vec!["id", "name"], vec!["staff_id", "day"]));
        let (staff, pay) = (&shown.tables()[0], &shown.tables()[1]);
        assert!(staff.unique.is_empty() && pay.primary_key.is_empty(), "half a key is no key");
        assert_eq!(pay.foreign_keys.iter().map(|k| k.columns.join(" ")).collect::<Vec<_>>(), ["staff_id"]);
        assert_eq!(shown.withheld_columns(staff).collect::<Vec<_>>(), ["ssn", "salary"]);
        assert_eq!(policy.unmatched_denies(&shown), ["staff.pension", "boats.length"]);
    }
}
