//! Background construction of the IVF index for large files, which is persisted in the file.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;

use rusqlite::{TransactionBehavior, params};

use super::FileStoreInner;
use crate::vector_index::{Centroids, IvfIndex, MAX_UNASSIGNED_ROWS, QuantizedQuery};

/// Number of rows assigned to lists at a time; the index is locked only while they are moved.
const BATCH_SIZE: usize = 1_024;

/// Starts building the index if it is due and no build is running.
///
/// Searches continue meanwhile and see all rows.
pub(super) fn maintain_index(shared: &Arc<FileStoreInner>) {
    let due = {
        let search_index = shared.index();
        let vectors = &search_index.vectors;
        vectors.needs_training() || (vectors.is_approximate() && vectors.unassigned_count() > MAX_UNASSIGNED_ROWS)
    };
    if !due || shared.is_building.swap(true, Ordering::AcqRel) {
        return;
    }
    let inner = Arc::clone(shared);
    let begun = thread::Builder::new().name("examples index".into()).spawn(move || {
        build_index(&inner);
        inner.is_building.store(false, Ordering::Release);
    });
    if begun.is_err() {
        // Searches work without an index, only slower.
        shared.is_building.store(false, Ordering::Release);
    }
}

fn build_index(shared: &FileStoreInner) {
    let stopped = || shared.is_stopped.load(Ordering::Acquire);
    let sample = shared.index().vectors.training_sample();
    if let Some(sample) = sample {
        let Some(centroids) = Centroids::train(&sample, stopped) else { return };
        let mut search_index = shared.index_mut();
        // The file may have been reloaded in the meantime, with other vectors.
        if search_index.vectors.needs_training() {
            search_index.vectors.set_centroids(centroids);
        }
    }
    let mut assigned = 0;
    while !stopped() {
        let (rows, centroids) = {
            let search_index = shared.index();
            let Some(centres) = search_index.vectors.centroids() else { return };
            // Copied, because borrowing would hold the lock; centroids are small compared to the
            // rows.
            (search_index.vectors.unassigned_rows(64 * BATCH_SIZE), centres.clone())
        };
        if rows.is_empty() {
            break;
        }
        for part in rows.chunks(BATCH_SIZE) {
            let lists: Vec<u32> = part
                .iter()
                .map(|(_, codes)| centroids.nearest(&QuantizedQuery::from_codes(1.0, codes)) as u32)
                .collect();
            if stopped() {
                return;
            }
            assign_unchanged_rows(&mut shared.index_mut().vectors, &centroids, part, &lists);
        }
        assigned += rows.len();
    }
    if !stopped() && assigned > 0 {
        // If the index cannot be saved, the next process builds it again.
        let _ = save_index(shared);
    }
}

/// Assigns rows to the lists computed for them, skipping those that have changed.
///
/// The index is not locked during the computation. A row that was reused for another example, or
/// any row if there are other centroids, would end up in the wrong list; such rows stay unassigned
/// until the next pass.
pub(super) fn assign_unchanged_rows(
    vectors: &mut IvfIndex,
    centroids: &Centroids,
    rows: &[(u32, Vec<u8>)],
    lists: &[u32],
) {
    if vectors.centroids() != Some(centroids) {
        return;
    }
    let same = |row: u32, codes: &[u8]| vectors.quantized(row).is_some_and(|(_, now)| now == codes);
    let still: Vec<(u32, u32)> = rows
        .iter()
        .zip(lists)
        .filter(|((row, codes), _)| same(*row, codes))
        .map(|((row, _), list)| (*row, *list))
        .collect();
    vectors.assign(still);
}

/// Writes the index to the file in one transaction.
fn save_index(shared: &FileStoreInner) -> rusqlite::Result<()> {
    let lists: Vec<(f32, Vec<u8>, Vec<u8>)> = {
        let search_index = shared.index();
        let Some(centroids) = search_index.vectors.centroids() else { return Ok(()) };
        (0..centroids.len())
            .map(|at| {
                let (scale, codes) = centroids.get(at);
                let numbers = search_index.example_numbers(search_index.vectors.list_rows(at));
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
