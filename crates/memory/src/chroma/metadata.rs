//! Examples as documents and metadata of ChromaDB, and filters on them.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use crate::example::{Example, Provenance, VerificationStatus};
use crate::query::ExampleFilter;

/// Builds a document filter for texts that contain any of these words.
///
/// The server compares case-sensitively, so each word is searched for in its original spelling,
/// upper case, lower case and capitalized.
pub(crate) fn contains_any(words: &[&str]) -> Value {
    let mut ways: BTreeSet<String> = BTreeSet::new();
    for word in words {
        let small = word.to_lowercase();
        let mut letters = small.chars();
        let begun: String = letters.next().into_iter().flat_map(char::to_uppercase).chain(letters).collect();
        ways.extend([(*word).to_string(), word.to_uppercase(), begun, small]);
    }
    let mut ways: Vec<Value> = ways.into_iter().map(|way| json!({ "$contains": way })).collect();
    if ways.len() == 1 { ways.remove(0) } else { json!({ "$or": ways }) }
}

/// Converts an example to metadata; counters and the time it was added are included only if it is
/// new.
pub(crate) fn metadata(example: &Example, new: bool) -> Value {
    let mut metadata = Map::new();
    for (name, text) in [
        ("sql", example.sql.as_str()),
        ("database", &example.database),
        ("dialect", &example.dialect),
        ("provenance", example.provenance.name()),
        ("standing", example.standing.name()),
    ] {
        metadata.insert(name.into(), text.into());
    }
    if let Some(metric) = &example.metric {
        metadata.insert("metric".into(), metric.as_str().into());
    }
    if new {
        metadata.insert("added".into(), example.added.into());
        for (name, count) in [("uses", example.uses), ("helped", example.helped), ("hurt", example.hurt)] {
            metadata.insert(name.into(), count.into());
        }
    }
    Value::Object(metadata)
}

pub(crate) fn example(id: &str, question: Option<&str>, metadata: &Value) -> Option<Example> {
    let text = |name: &str| metadata.get(name).and_then(Value::as_str);
    let count = |name: &str| {
        let count = metadata.get(name).and_then(Value::as_u64).unwrap_or(0);
        u32::try_from(count).unwrap_or(u32::MAX)
    };
    Some(Example {
        id: id.to_string(),
        question: question?.to_string(),
        sql: text("sql")?.to_string(),
        database: text("database")?.to_string(),
        dialect: text("dialect")?.to_string(),
        metric: text("metric").map(String::from),
        provenance: Provenance::from_name(text("provenance")?)?,
        standing: VerificationStatus::from_name(text("standing")?)?,
        uses: count("uses"),
        helped: count("helped"),
        hurt: count("hurt"),
        added: metadata.get("added").and_then(Value::as_u64).unwrap_or(0),
    })
}

/// Converts a filter to metadata predicates.
pub(crate) fn conditions(filter: &ExampleFilter) -> Vec<Value> {
    let all = [
        filter.database.as_ref().map(|database| json!({ "database": database })),
        filter.dialect.as_ref().map(|dialect| json!({ "dialect": dialect })),
        filter.provenance.map(|provenance| json!({ "provenance": provenance.name() })),
        filter.standing.map(|standing| json!({ "standing": standing.name() })),
    ];
    all.into_iter().flatten().collect()
}

/// Combines predicates with `$and`, which ChromaDB accepts only for two or more operands.
pub(crate) fn all_conditions(mut conditions: Vec<Value>) -> Value {
    match conditions.len() {
        1 => conditions.remove(0),
        _ => json!({ "$and": conditions }),
    }
}
