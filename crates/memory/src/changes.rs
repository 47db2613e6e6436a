//! Changes on their way into a store.

use std::collections::BTreeMap;

use crate::sought::Change;

/// One change for each id, in the order of the ids: counts are added up, and of what is said twice the last holds.
pub(crate) fn merged<'a>(changes: &[(&'a str, Change)]) -> BTreeMap<&'a str, Change> {
    let mut all: BTreeMap<&str, Change> = BTreeMap::new();
    for (id, change) in changes {
        let one = all.entry(id).or_default();
        one.standing = change.standing.or(one.standing);
        one.provenance = change.provenance.or(one.provenance);
        one.uses = one.uses.saturating_add(change.uses);
        one.helped = one.helped.saturating_add(change.helped);
        one.hurt = one.hurt.saturating_add(change.hurt);
    }
    all
}
