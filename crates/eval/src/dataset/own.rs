//! Our own form: YAML, or the same as JSON.
//!
//! ```yaml
//! name: correction
//! database: demo                  # or a path from this file's folder, or an address
//! cases:
//!   - id: electronics-ids
//!     question: Show the id and the price of every product in the category Electronics.
//!     gold: SELECT product_id, price FROM products WHERE category = 'Electronics'
//!     kind: column                # first_try, column, aggregation: what is expected, in a word
//!     expect: { outcome: corrected, error_type: column_not_found }
//! ```

use std::fmt;
use std::path::Path;

use anyhow::Result;
use querymend_sql::ErrorType;
use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::{Contents, Entry, Expect, Format, Place};
use crate::{Outcome, Trouble, record};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    name: Option<String>,
    database: Option<String>,
    cases: Vec<serde_saphyr::Spanned<Case>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    id: String,
    question: String,
    evidence: Option<String>,
    database: Option<String>,
    #[serde(default)]
    gold: Gold,
    kind: Option<Kind>,
    #[serde(default)]
    tags: Vec<String>,
    expect: Option<Expected>,
    /// For people.
    #[serde(rename = "notes")]
    _notes: Option<String>,
}

/// What a question is made to show.
#[derive(Deserialize, Clone, Copy)]
#[serde(rename_all = "snake_case")]
enum Kind {
    FirstTry,
    Column,
    Aggregation,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Expected {
    outcome: Outcome,
    error_type: Option<String>,
}

/// One query or several.
#[derive(Default)]
struct Gold(Vec<String>);

impl<'de> Deserialize<'de> for Gold {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Queries;
        impl<'de> Visitor<'de> for Queries {
            type Value = Gold;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a query or a list of queries in the field `gold`")
            }
            fn visit_str<E>(self, query: &str) -> Result<Gold, E> {
                Ok(Gold(vec![query.to_string()]))
            }
            fn visit_unit<E>(self) -> Result<Gold, E> {
                Ok(Gold::default())
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Gold, A::Error> {
                let mut queries = Vec::new();
                while let Some(query) = list.next_element()? {
                    queries.push(query);
                }
                Ok(Gold(queries))
            }
        }
        from.deserialize_any(Queries)
    }
}

pub fn read(path: &Path, text: &str) -> Result<Contents> {
    let shown = path.display();
    let file: File = serde_saphyr::from_str(text).map_err(|error| {
        // What follows the first line repeats the file.
        let words = error.to_string();
        let first = words.lines().next().unwrap_or_default();
        let first = first.strip_prefix("error: ").unwrap_or(first);
        Trouble::error(
            format!("`{shown}`: {first}"),
            "a set has `name`, `database` and `cases`, each with `id`, `question`, `gold`, and maybe `kind`, `expect`, \
             `evidence`, `tags`, `database`, `notes`",
        )
    })?;
    let mut entries = Vec::new();
    for spanned in file.cases {
        let place = format!("`{shown}`, line {}", spanned.referenced.line());
        let case = spanned.value;
        for (field, text) in [("id", &case.id), ("question", &case.question)] {
            if text.trim().is_empty() {
                return Err(Trouble::error(
                    format!("{place}: field `{field}` is empty"),
                    "each case has an id and a question",
                ));
            }
        }
        let expect = expected(case.kind, case.expect, &place)?;
        let database = case.database.or_else(|| file.database.clone());
        let kind = case.kind.map(|kind| match kind {
            Kind::FirstTry => "first_try",
            Kind::Column => "column",
            Kind::Aggregation => "aggregation",
        });
        entries.push(Entry {
            id: case.id,
            question: case.question,
            evidence: case.evidence,
            database: match database.as_deref() {
                Some("demo") => Place::Demo,
                Some(address) => Place::At(address.to_string()),
                None => Place::Nowhere("no database is named, for this question or for the set".into()),
            },
            gold: case.gold.0.into_iter().filter(|query| !query.trim().is_empty()).collect(),
            tags: kind.map(str::to_string).into_iter().chain(case.tags).collect(),
            expect,
        });
    }
    Ok(Contents { name: file.name, format: Format::Own, entries })
}

/// What is said outright, or what the kind says.
fn expected(kind: Option<Kind>, said: Option<Expected>, place: &str) -> Result<Option<Expect>> {
    let Some(said) = said else {
        return Ok(kind.map(|kind| {
            let (outcome, error_type) = match kind {
                Kind::FirstTry => (Outcome::FirstAttempt, None),
                Kind::Column => (Outcome::Corrected, Some(record::name_of(ErrorType::ColumnNotFound))),
                Kind::Aggregation => (Outcome::Corrected, Some(record::name_of(ErrorType::Aggregation))),
            };
            Expect { outcome, error_type }
        }));
    };
    if let Some(error_type) = &said.error_type {
        let known: Vec<String> = record::ERROR_TYPES.iter().copied().map(record::name_of).collect();
        if !known.contains(error_type) {
            let what = format!("{place}: field `expect.error_type` is `{error_type}`, which is no family of failure");
            return Err(Trouble::error(what, format!("it is one of {}", known.join(", "))));
        }
    }
    Ok(Some(Expect { outcome: said.outcome, error_type: said.error_type }))
}
