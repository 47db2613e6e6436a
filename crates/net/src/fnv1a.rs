//! FNV-1a hash, for identifiers that are stable between runs and need no protection against
//! collisions on purpose.

use std::hash::Hasher;

/// Offset basis and prime of the 64-bit variant.
const OFFSET_BASIS: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x0100_0000_01b3;

/// Hasher for 64-bit FNV-1a.
#[derive(Debug, Clone, Copy)]
pub struct Fnv1aHasher(u64);

impl Default for Fnv1aHasher {
    #[inline]
    fn default() -> Self {
        Self(OFFSET_BASIS)
    }
}

impl Hasher for Fnv1aHasher {
    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(PRIME);
        }
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matches_published_test_vectors() {
        for (text, hash) in
            [("", 0xcbf2_9ce4_8422_2325), ("a", 0xaf63_dc4c_8601_ec8c), ("foobar", 0x8594_4171_f739_67e8)]
        {
            let mut hasher = Fnv1aHasher::default();
            hasher.write(text.as_bytes());
            assert_eq!(hasher.finish(), hash, "{text}");
        }
    }
}
