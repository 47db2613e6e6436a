//! Counts allocated memory. A parser may allocate a length that a file claims before reading any
//! data, and the system grants it lazily, so only a counting allocator detects it.

// An allocator requires unsafe code; this one only counts and forwards.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicIsize, Ordering};

static ALLOCATED_BYTES: AtomicIsize = AtomicIsize::new(0);
static PEAK_BYTES: AtomicIsize = AtomicIsize::new(0);

thread_local! {
    static HELD: Cell<isize> = const { Cell::new(0) };
    static MOST: Cell<isize> = const { Cell::new(0) };
}

/// System allocator that counts memory. Crates whose fuzz targets measure memory set it as the
/// global allocator of their tests.
pub struct CountingAllocator;

fn record_change(change: isize) {
    let held = ALLOCATED_BYTES.fetch_add(change, Ordering::Relaxed) + change;
    PEAK_BYTES.fetch_max(held, Ordering::Relaxed);
    // The counter of a thread that is exiting may be destroyed already; its value is not needed.
    _ = HELD.try_with(|held| {
        held.set(held.get() + change);
        _ = MOST.try_with(|most| most.set(most.get().max(held.get())));
    });
}

// SAFETY: every call is forwarded unchanged to the system allocator.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        record_change(layout.size() as isize);
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        record_change(layout.size() as isize);
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, place: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        record_change(size as isize - layout.size() as isize);
        unsafe { System.realloc(place, layout, size) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        record_change(-(layout.size() as isize));
        unsafe { System.dealloc(place, layout) }
    }
}

/// Runs `work` and returns the peak memory that this thread allocated in the meantime, in bytes
/// above the start. Returns 0 if [`CountingAllocator`] is not the global allocator.
pub fn peak_memory<T>(work: impl FnOnce() -> T) -> (T, usize) {
    let before = HELD.get();
    MOST.set(before);
    let done = work();
    (done, usize::try_from(MOST.get() - before).unwrap_or(0))
}

/// Runs `work` and returns the peak memory of all threads; nothing else may run in the same
/// process.
pub fn peak_memory_all_threads<T>(work: impl FnOnce() -> T) -> (T, usize) {
    let before = ALLOCATED_BYTES.load(Ordering::Relaxed);
    PEAK_BYTES.store(before, Ordering::Relaxed);
    let done = work();
    (done, usize::try_from(PEAK_BYTES.load(Ordering::Relaxed) - before).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[global_allocator]
    static COUNTED: CountingAllocator = CountingAllocator;

    #[test]
    fn counts_allocations_that_are_never_touched() {
        let (room, most) = peak_memory(|| Vec::<u8>::with_capacity(1 << 28));
        assert!(room.capacity() >= 1 << 28 && most >= 1 << 28, "{most}");
        drop(room);
        let (_, most) = peak_memory(|| (0..100).map(|_| vec![0_u8; 1 << 20].len()).sum::<usize>());
        assert!((1 << 20..2 << 20).contains(&most), "{most}");
        let asked = || std::thread::spawn(|| Vec::<u8>::with_capacity(1 << 28).capacity()).join().unwrap_or(0);
        // Another test may free memory in the meantime.
        assert!(peak_memory(asked).1 < 1 << 20 && peak_memory_all_threads(asked).1 >= 1 << 27);
    }
}
