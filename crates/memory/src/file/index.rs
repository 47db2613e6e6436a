//! The index of large files, built beside everything else and kept in the file.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;

use rusqlite::{TransactionBehavior, params};

use super::Shared;
use crate::vectors::{Centres, LOOSE, Query};

/// So many rows find their list at once; the memory is locked only while they move.
const AT_ONCE: usize = 1_024;

/// Begins to build if it is time to and nobody does. Searches go on meanwhile, and see all rows.
pub(super) fn tend(shared: &Arc<Shared>) {
    let due = {
        let mirror = shared.mirror();
        let vectors = &mirror.vectors;
        vectors.sample_is_due() || (vectors.is_approximate() && vectors.loose() > LOOSE)
    };
    if !due || shared.building.swap(true, Ordering::AcqRel) {
        return;
    }
    let inner = Arc::clone(shared);
    let begun = thread::Builder::new().name("examples index".into()).spawn(move || {
        build(&inner);
        inner.building.store(false, Ordering::Release);
    });
    if begun.is_err() {
        // Without it everything is found too, only slower.
        shared.building.store(false, Ordering::Release);
    }
}

fn build(shared: &Shared) {
    let stopped = || shared.stop.load(Ordering::Acquire);
    let sample = shared.mirror().vectors.sample();
    if let Some(sample) = sample {
        let Some(centres) = Centres::find(&sample, stopped) else { return };
        let mut mirror = shared.mirror_mut();
        // The file may have been read anew meanwhile, with other vectors.
        if mirror.vectors.sample_is_due() {
            mirror.vectors.adopt(centres);
        }
    }
    let mut moved = 0;
    while !stopped() {
        let (rows, centres) = {
            let mirror = shared.mirror();
            let Some(centres) = mirror.vectors.centres() else { return };
            // Borrowing them would hold everybody else up, and they are small beside the rows.
            (mirror.vectors.some_loose(64 * AT_ONCE), centres.clone())
        };
        if rows.is_empty() {
            break;
        }
        for part in rows.chunks(AT_ONCE) {
            let lists: Vec<(u32, u32)> =
                part.iter().map(|(row, codes)| (*row, centres.nearest(&Query::of(1.0, codes)) as u32)).collect();
            if stopped() {
                return;
            }
            shared.mirror_mut().vectors.settle(lists);
        }
        moved += rows.len();
    }
    if !stopped() && moved > 0 {
        // A file that cannot be written now has no index, and the next program builds it again.
        let _ = keep(shared);
    }
}

/// Writes the index into the file, all of it or nothing.
fn keep(shared: &Shared) -> rusqlite::Result<()> {
    let lists: Vec<(f32, Vec<u8>, Vec<u8>)> = {
        let mirror = shared.mirror();
        let Some(centres) = mirror.vectors.centres() else { return Ok(()) };
        (0..centres.len())
            .map(|at| {
                let (scale, codes) = centres.centre(at);
                let numbers = mirror.numbers(mirror.vectors.listed(at));
                (scale, codes.to_vec(), numbers.into_iter().flat_map(i64::to_le_bytes).collect())
            })
            .collect()
    };
    let mut writer = shared.writer();
    let step = writer.transaction_with_behavior(TransactionBehavior::Immediate)?;
    if shared.check_embedder(&step).is_err() {
        return Ok(());
    }
    step.execute("DELETE FROM list", [])?;
    let mut statement = step.prepare("INSERT INTO list VALUES (?, ?, ?, ?)")?;
    for ((scale, codes, numbers), at) in lists.iter().zip(0_i64..) {
        statement.execute(params![at, scale, codes, numbers])?;
    }
    drop(statement);
    step.commit()
}
