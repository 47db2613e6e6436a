//! BIRD: `[{"question_id", "db_id", "question", "evidence", "SQL", "difficulty"}]`.

use anyhow::Result;

use super::json::Record;
use super::{Contents, Entry, Format, Place};

pub fn read(records: &[Record]) -> Result<Contents> {
    let entries = records.iter().map(entry).collect::<Result<_>>()?;
    Ok(Contents { name: None, format: Format::Bird, entries })
}

fn entry(record: &Record) -> Result<Entry> {
    Ok(Entry {
        id: record.id(&["question_id", "id"]).unwrap_or_else(|| record.index.to_string()),
        question: record.text(&["question"])?,
        evidence: record.maybe(&["evidence"])?.filter(|text| !text.trim().is_empty()),
        database: Place::Named(record.text(&["db_id"])?),
        gold: vec![record.text(&["SQL"])?],
        tags: record.maybe(&["difficulty"])?.into_iter().collect(),
        expect: None,
    })
}
