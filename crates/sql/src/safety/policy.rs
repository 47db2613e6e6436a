//! Access policy: which tables, columns and functions a query may use, comment handling and size
//! limits.

mod columns;
mod pattern;

pub(crate) use self::columns::DeniedColumn;

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};

use crate::rule_group::RuleGroup;
use crate::schema::{Schema, Table};
use crate::validator::Validators;

/// Handling of comments in a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CommentPolicy {
    /// Comments are removed before the query is sent, and a finding notes it.
    #[default]
    Strip,
    /// A query with a comment is rejected.
    Reject,
}

/// Access policy for a database. The default allows reading every table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Policy {
    /// Tables that may be read; absent allows all tables, an empty list none. An entry is `name` or
    /// `schema.name`, either with `*` for any characters. A name with other special characters must
    /// be in double quotes.
    #[serde(deserialize_with = "read_allowed")]
    pub allow_tables: Option<Vec<String>>,
    /// Tables that may never be read, even if another setting allows them. An entry that cannot be
    /// parsed denies every table.
    #[serde(deserialize_with = "read_denied")]
    pub deny_tables: Vec<String>,
    /// Columns that may never be read or tested: `table.column`, `schema.table.column`, or
    /// `*.column` for every table. An entry that cannot be parsed denies every column.
    #[serde(deserialize_with = "columns::read")]
    pub deny_columns: Vec<String>,
    /// Functions that are allowed although the dialect does not list them.
    pub allow_functions: Vec<String>,
    /// Functions that are rejected in addition to the dangerous ones.
    pub deny_functions: Vec<String>,
    /// Handling of comments.
    pub comments: CommentPolicy,
    /// Maximum length of a query in bytes.
    pub max_bytes: usize,
    /// Maximum nesting depth of a query.
    pub max_depth: usize,
    /// Rules to skip: codes such as `fan-out`, or whole groups such as `portable`. Rules of the
    /// group `safety` cannot be skipped.
    #[serde(deserialize_with = "read_skipped")]
    pub skip_rules: Vec<String>,
    /// Validators that the embedding program registers in addition to the rules.
    #[serde(skip)]
    pub validators: Validators,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            allow_tables: None,
            deny_tables: Vec::new(),
            deny_columns: Vec::new(),
            allow_functions: Vec::new(),
            deny_functions: Vec::new(),
            comments: CommentPolicy::Strip,
            max_bytes: 1 << 20,
            max_depth: 64,
            skip_rules: Vec::new(),
            validators: Validators::default(),
        }
    }
}

impl Policy {
    /// Returns whether a table may be read, given all parts of its name; case is ignored.
    pub fn allows_table(&self, parts: &[&str]) -> bool {
        // An incomplete name matches a deny entry if it may refer to the table, but an allow entry
        // only if it certainly does.
        let allowed =
            self.allow_tables.as_ref().is_none_or(|list| list.iter().any(|p| pattern::entry_matches(p, parts, false)));
        allowed && !self.denies_table(parts)
    }

    /// Returns whether a table is denied, even if another setting allows it.
    pub fn denies_table(&self, parts: &[&str]) -> bool {
        self.deny_tables.iter().any(|p| is_denied_by(p, parts))
    }

    /// Returns whether the policy restricts access to tables at all.
    pub fn restricts_tables(&self) -> bool {
        self.allow_tables.is_some() || !self.deny_tables.is_empty()
    }

    /// Returns whether calling a function is denied, even if another setting allows it.
    pub fn denies_function(&self, name: &str) -> bool {
        self.deny_functions.iter().any(|denied| denied.trim().eq_ignore_ascii_case(name))
    }

    /// Intersects two policies: the result denies everything that either denies, allows only tables
    /// that both allow, and uses the smaller limits.
    #[must_use]
    pub fn intersect(mut self, other: Policy) -> Policy {
        self.allow_tables = match (self.allow_tables, other.allow_tables) {
            (Some(ours), Some(theirs)) => {
                // Keep the entries of one list that the other list covers. Entries that only
                // overlap are dropped, which allows less.
                let within = |entry: &&String, list: &[String]| list.iter().any(|p| pattern::covers(p, entry));
                let both = ours.iter().filter(|e| within(e, &theirs)).chain(theirs.iter().filter(|e| within(e, &ours)));
                let mut both: Vec<String> = both.cloned().collect();
                both.sort();
                both.dedup();
                Some(both)
            }
            (ours, theirs) => ours.or(theirs),
        };
        let add = |ours: &mut Vec<String>, theirs: Vec<String>| {
            for name in theirs {
                if !ours.contains(&name) {
                    ours.push(name);
                }
            }
        };
        add(&mut self.deny_tables, other.deny_tables);
        add(&mut self.deny_columns, other.deny_columns);
        add(&mut self.allow_functions, other.allow_functions);
        add(&mut self.deny_functions, other.deny_functions);
        add(&mut self.skip_rules, other.skip_rules);
        other.validators.into_validators().for_each(|validator| self.validators.register(validator));
        if other.comments == CommentPolicy::Reject {
            self.comments = CommentPolicy::Reject;
        }
        // A limit at its default counts as unset and does not lower the other one.
        let unset = Policy::default();
        let least = |ours: usize, theirs: usize, unset: usize| match (ours == unset, theirs == unset) {
            (true, _) => theirs,
            (_, true) => ours,
            _ => ours.min(theirs),
        };
        self.max_bytes = least(self.max_bytes, other.max_bytes, unset.max_bytes);
        self.max_depth = least(self.max_depth, other.max_depth, unset.max_depth);
        self
    }

    /// Hides the tables and columns of a schema that may not be read, so that nothing suggests
    /// them.
    pub fn filter_schema(&self, schema: Schema) -> Schema {
        let hide = |table: &Table| !self.allows_table(&name_parts(table));
        let schema = if self.restricts_tables() && schema.tables().iter().any(hide) {
            schema.without_tables(hide)
        } else {
            schema
        };
        self.without_denied_columns(schema)
    }

    /// Returns the entries of `deny_tables` that match no table and those of `deny_columns` that
    /// match no column; they may be misspelled.
    pub fn unmatched_denies(&self, schema: &Schema) -> Vec<&str> {
        let idle = |entry: &&String| !schema.tables().iter().any(|table| is_denied_by(entry, &name_parts(table)));
        // The schema does not list system tables.
        let listed = |entry: &&String| !entry.trim().to_lowercase().starts_with("sqlite_");
        let tables = self.deny_tables.iter().filter(listed).filter(idle).map(String::as_str);
        tables.chain(self.unmatched_column_denies(schema)).collect()
    }
}

fn name_parts(table: &Table) -> Vec<&str> {
    table.schema.as_deref().into_iter().chain([table.name.as_str()]).collect()
}

fn is_denied_by(entry: &str, parts: &[&str]) -> bool {
    name_variants(parts).iter().any(|v| pattern::entry_matches(entry, v, true))
        // A table may be named `hr.salaries`, including the dot.
        || parts.last().is_some_and(|name| name.contains('.') && name.eq_ignore_ascii_case(entry.trim()))
}

/// Returns a name and the names that it may refer to: `secret$files` and `secret@v1` read `secret`,
/// and `secret.files` may do so.
fn name_variants<'n>(parts: &[&'n str]) -> Vec<Vec<&'n str>> {
    let mut out = vec![parts.to_vec()];
    if let Some((last, before)) = parts.split_last() {
        if let Some(base) = last.split(['$', '@']).next().filter(|b| !b.is_empty() && b != last) {
            out.push(before.iter().copied().chain([base]).collect());
        }
        if parts.len() > 2 {
            out.push(before.to_vec());
        }
    }
    out
}

fn read_skipped<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    let entries = Vec::<String>::deserialize(from)?;
    for entry in &entries {
        let group = Policy::rule_group(entry);
        if group == Some(RuleGroup::Safety) {
            return Err(D::Error::custom(format!("`{entry}` belongs to the safety rules, which are always checked")));
        }
        if group.is_none() {
            let hint = "`querymend explain` lists the rules with their groups";
            return Err(D::Error::custom(format!("there is no rule and no group of rules `{entry}`; {hint}")));
        }
    }
    Ok(entries)
}

fn read_denied<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    let entries = Vec::<String>::deserialize(from)?;
    entries.iter().try_for_each(|entry| pattern::parse_entry(entry).map(|_| ())).map_err(D::Error::custom)?;
    Ok(entries)
}

fn read_allowed<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Vec<String>>, D::Error> {
    let entries = Option::<Vec<String>>::deserialize(from)?;
    entries.iter().flatten().try_for_each(|entry| pattern::parse_entry(entry).map(|_| ())).map_err(D::Error::custom)?;
    Ok(entries)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deny_wins_over_allow() {
        let policy = Policy {
            allow_tables: Some(vec!["sales.*".into(), "people".into()]),
            deny_tables: vec!["salaries".into(), "hr.people".into(), "cat.hr.staff".into()],
            ..Policy::default()
        };
        for (name, allowed) in [
            ("sales.orders", true),
            ("People", false),
            ("public.People", true),
            ("sales.salaries", false),
            ("sales.salaries$files", false),
            ("cat.sales.salaries", false),
            ("cat.hr.staff", false),
            ("hr.staff", false),
            ("sales.salaries.files", false),
            ("orders", false),
        ] {
            let parts: Vec<&str> = name.split('.').collect();
            assert_eq!(policy.allows_table(&parts), allowed, "{name}");
        }
        let nothing = Policy { allow_tables: Some(Vec::new()), ..Policy::default() };
        assert!(!nothing.allows_table(&["t"]), "an empty list allows nothing");
    }

    #[test]
    fn parses_quoted_padded_and_wildcard_entries() {
        for (entry, denied, not_denied) in [
            ("main.*", &["salaries", "main.salaries"][..], &["hr.salaries"][..]),
            ("hr.*", &["hr.salaries"], &["salaries", "main.salaries"]),
            ("sal*", &["salaries", "SALES", "main.sales"], &["orders", "resales"]),
            ("*_private", &["pay_private"], &["private"]),
            ("salaries ", &["salaries"], &["salary"]),
            ("\"salaries\"", &["salaries", "Salaries"], &["orders"]),
            ("`hr`.[salaries]", &["hr.salaries", "salaries"], &["x.salaries"]),
            // An entry that cannot be parsed denies everything.
            ("sal%", &["orders"], &[]),
            ("", &["orders"], &[]),
        ] {
            let policy = Policy { deny_tables: vec![entry.into()], ..Policy::default() };
            for (names, expected) in [(denied, true), (not_denied, false)] {
                for name in names {
                    let parts: Vec<&str> = name.split('.').collect();
                    assert_eq!(policy.denies_table(&parts), expected, "{entry} {name}");
                }
            }
        }
        let literal = Policy { deny_tables: vec!["hr.salaries".into()], ..Policy::default() };
        assert!(literal.denies_table(&["hr.salaries"]) && literal.denies_table(&["main", "hr.salaries"]));
        for wrong in ["sal%", "", "a..b", "\"a", "a;b", "^a$"] {
            let read = serde_json::from_value::<Policy>(serde_json::json!({ "deny_tables": [wrong] }));
            assert!(read.unwrap_err().to_string().contains("is not a valid pattern"), "{wrong}");
        }
    }

    #[test]
    fn intersects_two_policies() {
        let one = Policy {
            allow_tables: Some(vec!["sal*".into(), "orders".into()]),
            deny_tables: vec!["a".into()],
            max_depth: 10,
            ..Policy::default()
        };
        let two = Policy {
            allow_tables: Some(vec!["sales".into(), "people".into()]),
            deny_tables: vec!["b".into()],
            deny_functions: vec!["f".into()],
            comments: CommentPolicy::Reject,
            ..Policy::default()
        };
        let both = one.intersect(two);
        assert_eq!(both.allow_tables, Some(vec!["sales".to_string()]));
        assert_eq!((both.deny_tables, both.deny_functions), (vec!["a".into(), "b".into()], vec!["f".to_string()]));
        assert_eq!((both.comments, both.max_depth, both.max_bytes), (CommentPolicy::Reject, 10, 1 << 20));
    }

    #[test]
    fn hides_denied_tables_and_reports_unmatched_entries() {
        let ddl =
            "CREATE TABLE staff (id INTEGER PRIMARY KEY); CREATE TABLE salaries (staff_id INT REFERENCES staff (id));
                   CREATE TABLE pay (salary_id INT REFERENCES salaries (staff_id));";
        let schema = Schema::from_ddl(ddl, &crate::dialect::SQLITE).unwrap();
        let policy = Policy { deny_tables: vec!["salaries".into(), "salary".into()], ..Policy::default() };
        assert_eq!(policy.unmatched_denies(&schema), ["salary"]);
        let shown = policy.filter_schema(schema);
        assert_eq!(shown.tables().iter().map(|t| t.name.as_str()).collect::<Vec<_>>(), ["staff", "pay"]);
        assert!(shown.tables()[1].foreign_keys.is_empty() && shown.table("salaries").is_some());
    }
}
