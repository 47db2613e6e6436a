//! Spider format and its variants: `[{"db_id", "question", "query"}]`; some call the query `gold`.

use anyhow::Result;

use super::json::JsonRecord;
use super::{DatabaseRef, DatasetContents, DatasetFormat, RawCase};

pub fn read(records: &[JsonRecord]) -> Result<DatasetContents> {
    let entries = records.iter().map(entry).collect::<Result<_>>()?;
    Ok(DatasetContents { name: None, format: DatasetFormat::Spider, entries })
}

fn entry(record: &JsonRecord) -> Result<RawCase> {
    Ok(RawCase {
        id: record.id(&["id"]).unwrap_or_else(|| record.index.to_string()),
        question: record.required_text(&["question"])?,
        evidence: None,
        database: DatabaseRef::Named(record.required_text(&["db_id"])?),
        gold: vec![record.required_text(&["query", "gold"])?],
        tags: Vec::new(),
        expect: None,
    })
}
