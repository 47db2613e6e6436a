//! Merging of updates before they are applied.

use std::collections::BTreeMap;

use crate::query::ExampleUpdate;

/// Merges updates by id, in the order of the ids: increments are added, and the last status and
/// provenance win.
pub(crate) fn merge_updates<'a>(updates: &[(&'a str, ExampleUpdate)]) -> BTreeMap<&'a str, ExampleUpdate> {
    let mut all: BTreeMap<&str, ExampleUpdate> = BTreeMap::new();
    for (id, change) in updates {
        let merged_update = all.entry(id).or_default();
        merged_update.standing = change.standing.or(merged_update.standing);
        merged_update.provenance = change.provenance.or(merged_update.provenance);
        merged_update.uses = merged_update.uses.saturating_add(change.uses);
        merged_update.helped = merged_update.helped.saturating_add(change.helped);
        merged_update.hurt = merged_update.hurt.saturating_add(change.hurt);
    }
    all
}
