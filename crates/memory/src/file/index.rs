//! The index of large files, built beside everything else and kept in the file.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;

use rusqlite::{TransactionBehavior, params};

use super::Shared;
use crate::vectors::{Centres, LOOSE, Query, Vectors};

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
            let lists: Vec<u32> =
                part.iter().map(|(_, codes)| centres.nearest(&Query::of(1.0, codes)) as u32).collect();
            if stopped() {
                return;
            }
            settle(&mut shared.mirror_mut().vectors, &centres, part, &lists);
        }
        moved += rows.len();
    }
    if !stopped() && moved > 0 {
        // A file that cannot be written now has no index, and the next program builds it again.
        let _ = keep(shared);
    }
}

/// Puts rows into the lists that were found for them. Nothing was locked meanwhile: a row that was given to another example
/// since would not be found in such a list, nor would any if there are other centres by now. They stay loose, and are next.
pub(super) fn settle(vectors: &mut Vectors, centres: &Centres, rows: &[(u32, Vec<u8>)], lists: &[u32]) {
    if vectors.centres() != Some(centres) {
        return;
    }
    let same = |row: u32, codes: &[u8]| vectors.coded(row).is_some_and(|(_, now)| now == codes);
    let still: Vec<(u32, u32)> = rows
        .iter()
        .zip(lists)
        .filter(|((row, codes), _)| same(*row, codes))
        .map(|((row, _), list)| (*row, *list))
        .collect();
    vectors.settle(still);
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
