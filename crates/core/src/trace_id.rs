//! Unique identifiers of runs, requests, sessions and cursors.

use std::hash::{BuildHasher, RandomState};
use std::process;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// Generates a UUID version 7, which sorts by time.
pub fn generate() -> String {
    static CALLS: AtomicU64 = AtomicU64::new(0);
    // Each process has random hash keys, so equal process IDs on two machines do not collide.
    static KEYS: LazyLock<[RandomState; 2]> = LazyLock::new(|| [RandomState::new(), RandomState::new()]);
    let call = CALLS.fetch_add(1, Ordering::Relaxed);
    let time = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis());
    let [first, second] = [0, 1].map(|i: usize| KEYS[i].hash_one((time, process::id(), call)));
    let time = time & 0xffff_ffff_ffff;
    format!(
        "{:08x}-{:04x}-7{:03x}-{:04x}-{:012x}",
        time >> 16,
        time & 0xffff,
        first & 0xfff,
        (first >> 12) & 0x3fff | 0x8000,
        second & 0xffff_ffff_ffff,
    )
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    #[test]
    fn generates_unique_version_7_uuids() {
        let ids: HashSet<String> = (0..10_000).map(|_| super::generate()).collect();
        assert_eq!(ids.len(), 10_000);
        for id in ids {
            let parts: Vec<&str> = id.split('-').collect();
            assert_eq!(parts.iter().map(|part| part.len()).collect::<Vec<_>>(), [8, 4, 4, 4, 12], "{id}");
            assert!(parts.iter().all(|part| part.bytes().all(|b| b.is_ascii_hexdigit())), "{id}");
            assert!(parts[2].starts_with('7') && parts[3].starts_with(['8', '9', 'a', 'b']), "{id}");
        }
    }
}
