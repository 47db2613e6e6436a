//! Which code an input reached. Counters are only there if the program was built with them, as `scripts/fuzz.sh --coverage` does;
//! the compiler's own pass then calls the function below with their place, once for each part of the program.

// The counters are plain bytes that the compiled code adds to; they can only be read where they are.
#![allow(unsafe_code)]

use std::cell::RefCell;
use std::sync::Mutex;

/// Where counters begin, and how many there are.
static COUNTERS: Mutex<Vec<(usize, usize)>> = Mutex::new(Vec::new());

/// Called before `main` for each part of the program that has counters.
///
/// # Safety
///
/// The compiler calls it with the two ends of an array of bytes that stays where it is.
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
    /// How often each place was reached by one input, as a set of orders of magnitude.
    static SEEN: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Whether a place was reached, or reached so often, for the first time since this was last asked. All counters are 0 afterwards.
pub(crate) fn is_new() -> bool {
    let Ok(counters) = COUNTERS.lock() else { return false };
    SEEN.with_borrow_mut(|seen| {
        seen.resize(counters.iter().map(|(_, length)| length).sum(), 0);
        let (mut rest, mut new) = (seen.as_mut_slice(), false);
        for (start, length) in counters.iter() {
            // SAFETY: the compiler said that these bytes are there; targets that count run one at a time.
            let counted = unsafe { std::slice::from_raw_parts_mut(*start as *mut u8, *length) };
            let (here, others) = rest.split_at_mut(*length);
            for (count, seen) in counted.iter_mut().zip(here).filter(|(count, _)| **count != 0) {
                // 1, 2, 3, 4 to 7, 8 to 15, 16 to 31, 32 to 127, more.
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

/// How many places were reached.
pub(crate) fn reached() -> usize {
    SEEN.with_borrow(|seen| seen.iter().filter(|seen| **seen != 0).count())
}
