//! Spider and its relatives: `[{"db_id", "question", "query"}]`; some call the query `gold`.

use anyhow::Result;

use super::json::Record;
use super::{Contents, Entry, Format, Place};

pub fn read(records: &[Record]) -> Result<Contents> {
    let entries = records.iter().map(entry).collect::<Result<_>>()?;
    Ok(Contents { name: None, format: Format::Spider, entries })
}

fn entry(record: &Record) -> Result<Entry> {
    Ok(Entry {
        id: record.id(&["id"]).unwrap_or_else(|| record.index.to_string()),
        question: record.text(&["question"])?,
        evidence: None,
        database: Place::Named(record.text(&["db_id"])?),
        gold: vec![record.text(&["query", "gold"])?],
        tags: Vec::new(),
        expect: None,
    })
}
