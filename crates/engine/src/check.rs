//! What is found when a connection is looked over, for people who set one up.

/// How something is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// As it should be.
    Good,
    /// It works, and could be safer.
    Doubtful,
    /// It does not work.
    Bad,
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// What was looked at, in a word or two: "connection", "read-only lock", "rights".
    pub what: &'static str,
    /// How it is.
    pub standing: Standing,
    /// What was seen.
    pub seen: String,
    /// What can be done about it, where something can.
    pub hint: Option<String>,
}

impl Check {
    /// All is well.
    pub fn good(what: &'static str, seen: impl Into<String>) -> Self {
        Self { what, standing: Standing::Good, seen: seen.into(), hint: None }
    }

    /// It works, and could be safer.
    pub fn doubtful(what: &'static str, seen: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { what, standing: Standing::Doubtful, seen: seen.into(), hint: Some(hint.into()) }
    }

    /// It does not work.
    pub fn bad(what: &'static str, seen: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { what, standing: Standing::Bad, seen: seen.into(), hint: Some(hint.into()) }
    }
}
