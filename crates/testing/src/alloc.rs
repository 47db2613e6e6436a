//! How much memory is asked for: a length that a file claims is asked for long before anything is read, and the system gives it
//! without a word, so that only who counts sees it.

// An allocator cannot be written without it; all that is done here is to add up and to pass on.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicIsize, Ordering};

static ALL_HELD: AtomicIsize = AtomicIsize::new(0);
static ALL_MOST: AtomicIsize = AtomicIsize::new(0);

thread_local! {
    static HELD: Cell<isize> = const { Cell::new(0) };
    static MOST: Cell<isize> = const { Cell::new(0) };
}

/// The system's allocator, counted. Crates whose targets count memory make it the one of their tests.
pub struct Counted;

fn count(change: isize) {
    let held = ALL_HELD.fetch_add(change, Ordering::Relaxed) + change;
    ALL_MOST.fetch_max(held, Ordering::Relaxed);
    // A thread that ends has no counter any more, and nobody who would ask.
    _ = HELD.try_with(|held| {
        held.set(held.get() + change);
        _ = MOST.try_with(|most| most.set(most.get().max(held.get())));
    });
}

// SAFETY: every call is passed on to the system's allocator as it came.
unsafe impl GlobalAlloc for Counted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, place: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size as isize - layout.size() as isize);
        unsafe { System.realloc(place, layout, size) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        unsafe { System.dealloc(place, layout) }
    }
}

/// Does something, and gives how much more memory than before was held at once meanwhile by this thread. That is 0 where
/// [`Counted`] is not the allocator.
pub fn peak<T>(work: impl FnOnce() -> T) -> (T, usize) {
    let before = HELD.get();
    MOST.set(before);
    let done = work();
    (done, usize::try_from(MOST.get() - before).unwrap_or(0))
}

/// The same for all threads together; nothing else may run in the same process.
pub fn peak_everywhere<T>(work: impl FnOnce() -> T) -> (T, usize) {
    let before = ALL_HELD.load(Ordering::Relaxed);
    ALL_MOST.store(before, Ordering::Relaxed);
    let done = work();
    (done, usize::try_from(ALL_MOST.load(Ordering::Relaxed) - before).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[global_allocator]
    static COUNTED: Counted = Counted;

    #[test]
    fn what_is_asked_for_is_counted_though_nobody_touches_it() {
        let (room, most) = peak(|| Vec::<u8>::with_capacity(1 << 28));
        assert!(room.capacity() >= 1 << 28 && most >= 1 << 28, "{most}");
        drop(room);
        let (_, most) = peak(|| (0..100).map(|_| vec![0_u8; 1 << 20].len()).sum::<usize>());
        assert!((1 << 20..2 << 20).contains(&most), "{most}");
        let asked = || std::thread::spawn(|| Vec::<u8>::with_capacity(1 << 28).capacity()).join().unwrap_or(0);
        // Another test may let go of some meanwhile.
        assert!(peak(asked).1 < 1 << 20 && peak_everywhere(asked).1 >= 1 << 27);
    }
}
