//! Deterministic pseudo-random numbers.

/// Pseudo-random number generator (xorshift64*).
pub struct Random(u64);

impl Random {
    /// Creates a generator; the same seed gives the same numbers.
    pub fn new(seed: u64) -> Self {
        // A zero state would stay zero forever.
        Self(seed | 1)
    }

    /// Returns the next number.
    pub fn next_u64(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// Returns a number below `end`, or 0 if `end` is 0.
    pub fn below(&mut self, end: usize) -> usize {
        ((self.next_u64() >> 33) as usize).checked_rem(end).unwrap_or(0)
    }

    /// Returns a random element, or `None` if the slice is empty.
    pub fn pick<'a, T>(&mut self, of: &'a [T]) -> Option<&'a T> {
        let at = self.below(of.len());
        of.get(at)
    }
}
