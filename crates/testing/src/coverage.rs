//! Code coverage of fuzz inputs. Counters exist only if the program was built with them, as by
//! `scripts/fuzz.sh --coverage`; the compiler's instrumentation then calls the function below with
//! their address, once per part of the program.

// The counters are plain bytes that the compiled code increments; they can only be read in place.
#![allow(unsafe_code)]

use std::cell::RefCell;
use std::sync::Mutex;

/// Start address and number of the counters of each part.
static COUNTERS: Mutex<Vec<(usize, usize)>> = Mutex::new(Vec::new());

/// Registers the counters of a part of the program. Called before `main`.
///
/// # Safety
///
/// The compiler calls it with the two ends of a byte array that never moves.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __sanitizer_cov_8bit_counters_init(start: *mut u8, stop: *mut u8) {
    let (start, stop) = (start as usize, stop as usize);
    if let Ok(mut counters) = COUNTERS.lock()
        && stop > start
        && !counters.iter().any(|(known, _)| *known == start)
    {
        counters.push((start, stop - start));
    }
}

thread_local! {
    /// Hit-count buckets reached so far at each location, as a bit set.
    static SEEN: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Returns whether a location was reached for the first time, or reached a new hit-count bucket,
/// since the last call. Resets all counters to 0.
pub(crate) fn has_new_coverage() -> bool {
    let Ok(counters) = COUNTERS.lock() else { return false };
    SEEN.with_borrow_mut(|seen| {
        seen.resize(counters.iter().map(|(_, length)| length).sum(), 0);
        let (mut rest, mut new) = (seen.as_mut_slice(), false);
        for (start, length) in counters.iter() {
            // SAFETY: the compiler declared these bytes to exist; targets that count run one at a
            // time.
            let counted = unsafe { std::slice::from_raw_parts_mut(*start as *mut u8, *length) };
            let (here, others) = rest.split_at_mut(*length);
            for (count, seen) in counted.iter_mut().zip(here).filter(|(count, _)| **count != 0) {
                // Buckets as in AFL: 1, 2, 3, 4 to 7, 8 to 15, 16 to 31, 32 to 127, more.
                let order = match *count {
                    count @ 1..=3 => 1 << (count - 1),
                    4..=7 => 8,
                    8..=15 => 16,
                    16..=31 => 32,
                    32..=127 => 64,
                    _ => 128,
                };
                new |= *seen & order == 0;
                *seen |= order;
                *count = 0;
            }
            rest = others;
        }
        new
    })
}

/// Returns the number of locations reached.
pub(crate) fn covered_count() -> usize {
    SEEN.with_borrow(|seen| seen.iter().filter(|seen| **seen != 0).count())
}
