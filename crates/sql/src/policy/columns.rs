//! Columns that may not be read.

use serde::de::Error;
use serde::{Deserialize, Deserializer};

use super::pattern::{self, Part};
use super::{Policy, full, variants};
use crate::schema::{Schema, Table};

/// What an entry of `deny_columns` says of a table that it fits.
pub(crate) struct DeniedColumn {
    /// Nothing if the entry cannot be understood: then it is every column.
    column: Option<Part>,
    /// The entry names the table itself, and not every table or every one that begins alike.
    pub(crate) names_the_table: bool,
}

impl DeniedColumn {
    pub(crate) fn fits(&self, column: &str) -> bool {
        self.column.as_ref().is_none_or(|part| part.fits(column))
    }
}

impl Policy {
    /// Whether a column may not be read, by all parts of its table's name; case is ignored.
    pub fn denies_column(&self, table: &[&str], column: &str) -> bool {
        self.denied_columns(table).iter().any(|denied| denied.fits(column))
    }

    /// What `deny_columns` says of a table.
    pub(crate) fn denied_columns(&self, table: &[&str]) -> Vec<DeniedColumn> {
        self.deny_columns.iter().filter_map(|entry| denied(entry, table)).collect()
    }

    pub(super) fn without_denied_columns(&self, schema: Schema) -> Schema {
        let hide = |table: &Table, column: &str| self.denies_column(&full(table), column);
        let any = |table: &Table| table.columns.iter().map(|c| &c.name).chain(&table.hidden).any(|c| hide(table, c));
        if !self.deny_columns.is_empty() && schema.tables().iter().any(any) { schema.withholding(hide) } else { schema }
    }

    pub(super) fn idle_columns<'p>(&'p self, schema: &Schema) -> impl Iterator<Item = &'p str> {
        let fits = move |entry: &str, table: &Table| {
            let of_table = denied(entry, &full(table));
            let names = table.columns.iter().map(|c| c.name.as_str()).chain(table.hidden.iter().map(String::as_str));
            of_table.is_some_and(|denied| names.chain(schema.withheld(table)).any(|name| denied.fits(name)))
        };
        let idle = move |entry: &&str| !schema.tables().iter().any(|table| fits(entry, table));
        self.deny_columns.iter().map(String::as_str).filter(idle)
    }
}

/// What an entry says of a table; nothing if it speaks of others.
fn denied(entry: &str, table: &[&str]) -> Option<DeniedColumn> {
    let Ok((of, column)) = pattern::read_column(entry) else {
        return Some(DeniedColumn { column: None, names_the_table: true });
    };
    let dotted = |name: &&str| {
        let texts: Vec<&str> = of.iter().map(Part::text).collect();
        name.contains('.') && name.to_lowercase() == texts.join(".")
    };
    let fits = variants(table).iter().any(|v| pattern::fits_parts(&of, v, true)) || table.last().is_some_and(dotted);
    let names_the_table = of.last().is_some_and(|name| !name.is_open());
    fits.then_some(DeniedColumn { column: Some(column), names_the_table })
}

pub(super) fn read<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    let entries = Vec::<String>::deserialize(from)?;
    entries.iter().try_for_each(|entry| pattern::read_column(entry).map(|_| ())).map_err(D::Error::custom)?;
    Ok(entries)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(entries: &[&str]) -> Policy {
        Policy { deny_columns: entries.iter().map(|e| e.to_string()).collect(), ..Policy::default() }
    }

    #[test]
    fn entries_name_a_column_of_one_table_or_of_all() {
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
            // What cannot be understood denies everything.
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
            assert!(read.unwrap_err().to_string().contains("cannot be understood"), "{wrong}");
        }
        assert_eq!(policy(&["a.b"]).and(policy(&["a.b", "c.d"])).deny_columns, ["a.b", "c.d"]);
    }

    #[test]
    fn a_schema_shows_neither_the_columns_nor_the_keys_that_they_are_in() {
        let ddl = "CREATE TABLE staff (id INTEGER PRIMARY KEY, name TEXT, ssn TEXT UNIQUE, salary INT);
                   CREATE TABLE pay (staff_ssn TEXT REFERENCES staff (ssn), staff_id INT REFERENCES staff (id), day DATE,
                                     PRIMARY KEY (staff_ssn, day));";
        let schema = Schema::from_ddl(ddl, &crate::dialect::SQLITE).unwrap();
        let policy = policy(&["*.*ssn", "staff.salary", "staff.pension", "boats.length"]);
        assert_eq!(policy.idle_denies(&schema), ["staff.pension", "boats.length"]);
        let shown = policy.readable(schema);
        let names = |i: usize| shown.tables()[i].columns.iter().map(|c| c.name.as_str()).collect::<Vec<_>>();
        assert_eq!((names(0), names(1)), (vec!["id", "name"], vec!["staff_id", "day"]));
        let (staff, pay) = (&shown.tables()[0], &shown.tables()[1]);
        assert!(staff.unique.is_empty() && pay.primary_key.is_empty(), "half a key is no key");
        assert_eq!(pay.foreign_keys.iter().map(|k| k.columns.join(" ")).collect::<Vec<_>>(), ["staff_id"]);
        assert_eq!(shown.withheld(staff).collect::<Vec<_>>(), ["ssn", "salary"]);
        assert_eq!(policy.idle_denies(&shown), ["staff.pension", "boats.length"]);
    }
}
