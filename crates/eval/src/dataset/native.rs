//! Native format: YAML, or the same structure as JSON.
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

use super::{DatabaseRef, DatasetContents, DatasetFormat, Expectation, RawCase};
use crate::{CaseOutcome, EvalError, record};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NativeFile {
    name: Option<String>,
    database: Option<String>,
    cases: Vec<serde_saphyr::Spanned<NativeCase>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NativeCase {
    id: String,
    question: String,
    evidence: Option<String>,
    database: Option<String>,
    #[serde(default)]
    gold: GoldQueries,
    kind: Option<CaseKind>,
    #[serde(default)]
    tags: Vec<String>,
    expect: Option<NativeExpectation>,
    /// Notes for people; ignored.
    #[serde(rename = "notes")]
    _notes: Option<String>,
}

/// Purpose of a question, which implies its expected outcome.
#[derive(Deserialize, Clone, Copy)]
#[serde(rename_all = "snake_case")]
enum CaseKind {
    FirstTry,
    Column,
    Aggregation,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NativeExpectation {
    outcome: CaseOutcome,
    error_type: Option<String>,
}

/// One or several gold queries.
#[derive(Default)]
struct GoldQueries(Vec<String>);

impl<'de> Deserialize<'de> for GoldQueries {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Queries;
        impl<'de> Visitor<'de> for Queries {
            type Value = GoldQueries;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a query or a list of queries in the field `gold`")
            }
            fn visit_str<E>(self, query: &str) -> Result<GoldQueries, E> {
                Ok(GoldQueries(vec![query.to_string()]))
            }
            fn visit_unit<E>(self) -> Result<GoldQueries, E> {
                Ok(GoldQueries::default())
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<GoldQueries, A::Error> {
                let mut queries = Vec::new();
                while let Some(query) = list.next_element()? {
                    queries.push(query);
                }
                Ok(GoldQueries(queries))
            }
        }
        from.deserialize_any(Queries)
    }
}

pub fn read(path: &Path, text: &str) -> Result<DatasetContents> {
    let shown = path.display();
    let file: NativeFile = serde_saphyr::from_str(text).map_err(|error| {
        // Lines after the first repeat the file.
        let words = error.to_string();
        let first = words.lines().next().unwrap_or_default();
        let first = first.strip_prefix("error: ").unwrap_or(first);
        EvalError::anyhow(
            format!("`{shown}`: {first}"),
            "a set has `name`, `database` and `cases`, each with `id`, `question`, `gold`, and maybe `kind`, `expect`, \
             `evidence`, `tags`, `database`, `notes`",
        )
    })?;
    let mut entries = Vec::new();
    for spanned in file.cases {
        let location = format!("`{shown}`, line {}", spanned.referenced.line());
        let case = spanned.value;
        for (field, text) in [("id", &case.id), ("question", &case.question)] {
            if text.trim().is_empty() {
                return Err(EvalError::anyhow(
                    format!("{location}: field `{field}` is empty"),
                    "each case has an id and a question",
                ));
            }
        }
        let expect = resolve_expectation(case.kind, case.expect, &location)?;
        let database = case.database.or_else(|| file.database.clone());
        let kind = case.kind.map(|kind| match kind {
            CaseKind::FirstTry => "first_try",
            CaseKind::Column => "column",
            CaseKind::Aggregation => "aggregation",
        });
        entries.push(RawCase {
            id: case.id,
            question: case.question,
            evidence: case.evidence,
            database: match database.as_deref() {
                Some("demo") => DatabaseRef::Demo,
                Some(address) => DatabaseRef::Address(address.to_string()),
                None => DatabaseRef::Missing("no database is named, for this question or for the set".into()),
            },
            gold: case.gold.0.into_iter().filter(|query| !query.trim().is_empty()).collect(),
            tags: kind.map(str::to_string).into_iter().chain(case.tags).collect(),
            expect,
        });
    }
    Ok(DatasetContents { name: file.name, format: DatasetFormat::Own, entries })
}

/// Returns the explicit expectation, or else the one implied by the kind.
fn resolve_expectation(
    kind: Option<CaseKind>,
    explicit: Option<NativeExpectation>,
    location: &str,
) -> Result<Option<Expectation>> {
    let Some(explicit) = explicit else {
        return Ok(kind.map(|kind| {
            let (outcome, error_type) = match kind {
                CaseKind::FirstTry => (CaseOutcome::FirstAttempt, None),
                CaseKind::Column => (CaseOutcome::Corrected, Some(record::error_type_name(ErrorType::ColumnNotFound))),
                CaseKind::Aggregation => {
                    (CaseOutcome::Corrected, Some(record::error_type_name(ErrorType::Aggregation)))
                }
            };
            Expectation { outcome, error_type }
        }));
    };
    if let Some(error_type) = &explicit.error_type {
        let known: Vec<String> = record::ALL_ERROR_TYPES.iter().copied().map(record::error_type_name).collect();
        if !known.contains(error_type) {
            let what = format!("{location}: field `expect.error_type` is `{error_type}`, which is not an error type");
            return Err(EvalError::anyhow(what, format!("it is one of {}", known.join(", "))));
        }
    }
    Ok(Some(Expectation { outcome: explicit.outcome, error_type: explicit.error_type }))
}
