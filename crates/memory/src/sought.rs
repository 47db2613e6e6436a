//! What stores are asked for.

use crate::example::{Example, Provenance, Standing};

/// What to look for.
#[derive(Debug, Clone, Copy)]
pub struct Sought<'s> {
    /// The question that is asked now.
    pub question: &'s str,
    /// The database that it is asked of: its own examples come before those of others that are as like.
    pub database: &'s str,
    /// Only queries of this dialect.
    pub dialect: Option<&'s str>,
    /// Only examples of this database.
    pub only_database: bool,
    /// Only examples that can be trusted.
    pub only_verified: bool,
    /// At most so many.
    pub most: usize,
}

/// An example that was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// The example.
    pub example: Example,
    /// How like its question is, by the vectors: 1 is the same.
    pub similarity: f32,
    /// By what it was ranked: likeness of words and vectors together, less for what did harm. Only for comparing.
    pub score: f32,
}

/// Which examples are meant: those for which all that is said holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// Of this database.
    pub database: Option<String>,
    /// Of this dialect.
    pub dialect: Option<String>,
    /// Of this provenance.
    pub provenance: Option<Provenance>,
    /// Of this standing.
    pub standing: Option<Standing>,
}

impl Filter {
    /// Whether it means this example.
    pub fn fits(&self, example: &Example) -> bool {
        self.database.as_ref().is_none_or(|database| *database == example.database)
            && self.dialect.as_ref().is_none_or(|dialect| *dialect == example.dialect)
            && self.provenance.is_none_or(|provenance| provenance == example.provenance)
            && self.standing.is_none_or(|standing| standing == example.standing)
    }
}

/// What changes about an example. Counts are added to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Change {
    /// Its standing from now on.
    pub standing: Option<Standing>,
    /// Its provenance from now on.
    pub provenance: Option<Provenance>,
    /// Models were shown it so many times more.
    pub uses: u32,
    /// It helped so many times more.
    pub helped: u32,
    /// It hurt so many times more.
    pub hurt: u32,
}
