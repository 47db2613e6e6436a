//! What may be asked of a database: tables, functions, comments and sizes.

mod columns;
mod pattern;

pub(crate) use self::columns::DeniedColumn;

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};

use crate::rules::{RULES, Rule};
use crate::schema::{Schema, Table};
use crate::validator::Validators;

/// The group of rules that no policy can skip.
const SAFETY: &str = "safety";

/// What is done with comments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Comments {
    /// They are removed before anything is sent, and that is noted.
    #[default]
    Strip,
    /// A query with a comment is refused.
    Reject,
}

/// The rules of the house. The default allows reading every table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Policy {
    /// Only these tables may be read; absent allows all, an empty list none. An entry is a name, `schema.name`, or either
    /// with `*` for any letters; a name with other signs in it stands in double quotes.
    #[serde(deserialize_with = "read_allowed")]
    pub allow_tables: Option<Vec<String>>,
    /// These tables may never be read, whatever else says so. An entry that cannot be understood denies every table.
    #[serde(deserialize_with = "read_denied")]
    pub deny_tables: Vec<String>,
    /// These columns may never be read nor tested: `table.column`, `schema.table.column`, or `*.column` for every table. An
    /// entry that cannot be understood denies every column.
    #[serde(deserialize_with = "columns::read")]
    pub deny_columns: Vec<String>,
    /// Functions that are known to be harmless although the dialect does not list them.
    pub allow_functions: Vec<String>,
    /// Functions that are refused besides the dangerous ones.
    pub deny_functions: Vec<String>,
    /// What is done with comments.
    pub comments: Comments,
    /// The longest text that is looked at, in bytes.
    pub max_bytes: usize,
    /// How deep a query may be nested.
    pub max_depth: usize,
    /// Rules that are not checked: codes such as `fan-out`, or whole groups such as `portable`. Those of the group `safety` are
    /// always checked.
    #[serde(deserialize_with = "read_skipped")]
    pub skip_rules: Vec<String>,
    /// Checks that a program registers beside the rules.
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
            comments: Comments::Strip,
            max_bytes: 1 << 20,
            max_depth: 64,
            skip_rules: Vec::new(),
            validators: Validators::default(),
        }
    }
}

impl Policy {
    /// Whether a table may be read, by all parts of its name; case is ignored.
    pub fn allows_table(&self, parts: &[&str]) -> bool {
        // What is left open is denied if it may be meant, and allowed only if it is.
        let allowed = self.allow_tables.as_ref().is_none_or(|list| list.iter().any(|p| pattern::fits(p, parts, false)));
        allowed && !self.denies_table(parts)
    }

    /// Whether a table may not be read, whatever else is allowed.
    pub fn denies_table(&self, parts: &[&str]) -> bool {
        self.deny_tables.iter().any(|p| denies(p, parts))
    }

    /// Whether some tables may not be read.
    pub fn restricts_tables(&self) -> bool {
        self.allow_tables.is_some() || !self.deny_tables.is_empty()
    }

    /// Whether calling a function is denied, whatever else is allowed.
    pub fn denies_function(&self, name: &str) -> bool {
        self.deny_functions.iter().any(|denied| denied.trim().eq_ignore_ascii_case(name))
    }

    /// Whether a rule is checked.
    pub fn checks(&self, rule: &Rule) -> bool {
        rule.group == SAFETY || !self.skip_rules.iter().any(|skipped| skipped == rule.code || skipped == rule.group)
    }

    /// The names of what every query is checked against before it is run: groups of rules, then registered validators.
    pub fn guardrails(&self) -> Vec<String> {
        let mut names: Vec<&str> = Vec::new();
        // What rows and engines say comes after the query was run.
        let preflight = RULES.iter().filter(|rule| !["result", "engine"].contains(&rule.group));
        for rule in preflight.filter(|rule| self.checks(rule)) {
            if !names.contains(&rule.group) {
                names.push(rule.group);
            }
        }
        names.into_iter().chain(self.validators.names()).map(str::to_string).collect()
    }

    /// Both policies at once. What either denies is denied, a table must be allowed by both, and the smaller size holds.
    #[must_use]
    pub fn and(mut self, other: Policy) -> Policy {
        self.allow_tables = match (self.allow_tables, other.allow_tables) {
            (Some(ours), Some(theirs)) => {
                // An entry of one list that the other allows too. What only overlaps is left out, which allows less.
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
        other.validators.each().for_each(|validator| self.validators.register(validator));
        if other.comments == Comments::Reject {
            self.comments = Comments::Reject;
        }
        // A size that nobody set is no wish for a smaller one.
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

    /// A schema in which the tables and columns that may not be read are hidden, so that nothing suggests them.
    pub fn readable(&self, schema: Schema) -> Schema {
        let hide = |table: &Table| !self.allows_table(&full(table));
        let schema =
            if self.restricts_tables() && schema.tables().iter().any(hide) { schema.hiding(hide) } else { schema };
        self.without_denied_columns(schema)
    }

    /// Entries of `deny_tables` that fit none of the tables, and of `deny_columns` that fit none of their columns: they may be
    /// misspelt.
    pub fn idle_denies(&self, schema: &Schema) -> Vec<&str> {
        let idle = |entry: &&String| !schema.tables().iter().any(|table| denies(entry, &full(table)));
        // Tables of the system are in no schema.
        let listed = |entry: &&String| !entry.trim().to_lowercase().starts_with("sqlite_");
        let tables = self.deny_tables.iter().filter(listed).filter(idle).map(String::as_str);
        tables.chain(self.idle_columns(schema)).collect()
    }
}

fn full(table: &Table) -> Vec<&str> {
    table.schema.as_deref().into_iter().chain([table.name.as_str()]).collect()
}

fn denies(entry: &str, parts: &[&str]) -> bool {
    variants(parts).iter().any(|v| pattern::fits(entry, v, true))
        // A table may be called `hr.salaries`, dot and all.
        || parts.last().is_some_and(|name| name.contains('.') && name.eq_ignore_ascii_case(entry.trim()))
}

/// A name, and what it may stand for: `secret$files` and `secret@v1` are `secret`, and `secret.files` may be.
fn variants<'n>(parts: &[&'n str]) -> Vec<Vec<&'n str>> {
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
        if entry == SAFETY || Rule::named(entry).is_some_and(|rule| rule.group == SAFETY) {
            return Err(D::Error::custom(format!("`{entry}` keeps queries harmless and is always checked")));
        }
        if !RULES.iter().any(|rule| rule.code == entry || rule.group == entry) {
            let hint = "`querymend explain` lists the rules with their groups";
            return Err(D::Error::custom(format!("there is no rule and no group of rules `{entry}`; {hint}")));
        }
    }
    Ok(entries)
}

fn read_denied<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    let entries = Vec::<String>::deserialize(from)?;
    entries.iter().try_for_each(|entry| pattern::read(entry).map(|_| ())).map_err(D::Error::custom)?;
    Ok(entries)
}

fn read_allowed<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Vec<String>>, D::Error> {
    let entries = Option::<Vec<String>>::deserialize(from)?;
    entries.iter().flatten().try_for_each(|entry| pattern::read(entry).map(|_| ())).map_err(D::Error::custom)?;
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
    fn entries_are_trimmed_unquoted_and_may_hold_stars() {
        for (entry, denied, not_denied) in [
            ("main.*", &["salaries", "main.salaries"][..], &["hr.salaries"][..]),
            ("hr.*", &["hr.salaries"], &["salaries", "main.salaries"]),
            ("sal*", &["salaries", "SALES", "main.sales"], &["orders", "resales"]),
            ("*_private", &["pay_private"], &["private"]),
            ("salaries ", &["salaries"], &["salary"]),
            ("\"salaries\"", &["salaries", "Salaries"], &["orders"]),
            ("`hr`.[salaries]", &["hr.salaries", "salaries"], &["x.salaries"]),
            // What cannot be understood denies everything.
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
            assert!(read.unwrap_err().to_string().contains("cannot be understood"), "{wrong}");
        }
    }

    #[test]
    fn two_policies_hold_together() {
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
            comments: Comments::Reject,
            ..Policy::default()
        };
        let both = one.and(two);
        assert_eq!(both.allow_tables, Some(vec!["sales".to_string()]));
        assert_eq!((both.deny_tables, both.deny_functions), (vec!["a".into(), "b".into()], vec!["f".to_string()]));
        assert_eq!((both.comments, both.max_depth, both.max_bytes), (Comments::Reject, 10, 1 << 20));
    }

    #[test]
    fn what_may_not_be_read_is_hidden_and_entries_that_fit_nothing_are_told() {
        let ddl =
            "CREATE TABLE staff (id INTEGER PRIMARY KEY); CREATE TABLE salaries (staff_id INT REFERENCES staff (id));
                   CREATE TABLE pay (salary_id INT REFERENCES salaries (staff_id));";
        let schema = Schema::from_ddl(ddl, &crate::dialect::SQLITE).unwrap();
        let policy = Policy { deny_tables: vec!["salaries".into(), "salary".into()], ..Policy::default() };
        assert_eq!(policy.idle_denies(&schema), ["salary"]);
        let shown = policy.readable(schema);
        assert_eq!(shown.tables().iter().map(|t| t.name.as_str()).collect::<Vec<_>>(), ["staff", "pay"]);
        assert!(shown.tables()[1].foreign_keys.is_empty() && shown.table("salaries").is_some());
    }
}
