//! BIRD format: `[{"question_id", "db_id", "question", "evidence", "SQL", "difficulty"}]`.

use anyhow::Result;

use super::json::JsonRecord;
use super::{DatabaseRef, DatasetContents, DatasetFormat, RawCase};

pub fn read(records: &[JsonRecord]) -> Result<DatasetContents> {
    let entries = records.iter().map(entry).collect::<Result<_>>()?;
    Ok(DatasetContents { name: None, format: DatasetFormat::Bird, entries })
}

fn entry(record: &JsonRecord) -> Result<RawCase> {
    Ok(RawCase {
        id: record.id(&["question_id", "id"]).unwrap_or_else(|| record.index.to_string()),
        question: record.required_text(&["question"])?,
        evidence: record.optional_text(&["evidence"])?.filter(|text| !text.trim().is_empty()),
        database: DatabaseRef::Named(record.required_text(&["db_id"])?),
        gold: vec![record.required_text(&["SQL"])?],
        tags: record.optional_text(&["difficulty"])?.into_iter().collect(),
        expect: None,
    })
}
