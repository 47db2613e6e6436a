//! Numbers that look like chance and are the same each time.

/// A generator (xorshift64*).
pub struct Random(u64);

impl Random {
    /// Begins; each seed gives other numbers.
    pub fn new(seed: u64) -> Self {
        // It stays at 0 for ever if it begins there.
        Self(seed | 1)
    }

    /// The next number.
    pub fn number(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A number below another; 0 below 0.
    pub fn below(&mut self, most: usize) -> usize {
        ((self.number() >> 33) as usize).checked_rem(most).unwrap_or(0)
    }

    /// One of several.
    pub fn pick<'a, T>(&mut self, of: &'a [T]) -> Option<&'a T> {
        let at = self.below(of.len());
        of.get(at)
    }
}
