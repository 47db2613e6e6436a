//! What may be asked of a database: tables, functions, comments and sizes.

use serde::{Deserialize, Serialize};

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
    /// Only these tables may be read; absent allows all, an empty list none. `schema.table` and `schema.*` are understood.
    pub allow_tables: Option<Vec<String>>,
    /// These tables may never be read, whatever else says so.
    pub deny_tables: Vec<String>,
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
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            allow_tables: None,
            deny_tables: Vec::new(),
            allow_functions: Vec::new(),
            deny_functions: Vec::new(),
            comments: Comments::Strip,
            max_bytes: 1 << 20,
            max_depth: 64,
        }
    }
}

impl Policy {
    /// Whether a table may be read, by all parts of its name; case is ignored.
    pub fn allows_table(&self, parts: &[&str]) -> bool {
        // What is left open is denied if it may be meant, and allowed only if it is.
        let denied = self.deny_tables.iter().any(|p| variants(parts).iter().any(|v| fits(p, v, true)));
        let allowed = self.allow_tables.as_ref().is_none_or(|list| list.iter().any(|p| fits(p, parts, false)));
        allowed && !denied
    }

    /// Whether some tables may not be read.
    pub fn restricts_tables(&self) -> bool {
        self.allow_tables.is_some() || !self.deny_tables.is_empty()
    }
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

/// Compares a pattern with a name part by part from the right. A pattern with more parts than the name fits only if the
/// missing ones may be anything.
fn fits(pattern: &str, parts: &[&str], missing_may_fit: bool) -> bool {
    let pattern: Vec<&str> = pattern.split('.').collect();
    let all_stars = pattern.iter().rev().take(parts.len()).all(|p| *p == "*");
    let same = |p: &str, n: &str| p == "*" || p.eq_ignore_ascii_case(n) || p.to_lowercase() == n.to_lowercase();
    let overlap = pattern.iter().rev().zip(parts.iter().rev()).all(|(p, n)| same(p, n));
    overlap && (pattern.len() <= parts.len() || (missing_may_fit && !all_stars))
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
}
