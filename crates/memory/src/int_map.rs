//! Hash maps with integer keys.
//!
//! Hashing takes one multiplication and does not resist hash flooding; the standard library's
//! hasher does, and is ten times slower. Row numbers are assigned by the store. Token
//! hashes depend on the words of stored questions, so users who store questions can cause
//! collisions.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// Hash map with integer keys.
pub type IntMap<K, V> = HashMap<K, V, BuildHasherDefault<IntHasher>>;

/// Multiplicative hasher that spreads integers over all bits.
#[derive(Debug, Default)]
pub struct IntHasher(u64);

impl Hasher for IntHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u32(&mut self, number: u32) {
        self.write_u64(u64::from(number));
    }

    fn write_i64(&mut self, number: i64) {
        self.write_u64(number.cast_unsigned());
    }

    fn write_u64(&mut self, number: u64) {
        let product = (self.0 ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = product ^ (product >> 32);
    }
}
