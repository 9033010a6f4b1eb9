//! Random numbers from a seed, the same on every machine.

/// A small generator (SplitMix64: Steele, Lea, Flood 2014). Not for cryptography.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// Makes a generator. Equal seeds give equal numbers.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns the next 64 random bits.
    pub const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// Returns a number below `limit`, which must not be 0. For small limits the bias is below 2⁻³².
    pub const fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    /// Returns `true` with a probability of `percent` in 100.
    pub const fn percent(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

/// Spreads every bit of `word` over all bits.
pub(crate) const fn mix(word: u64) -> u64 {
    let mut mixed = word;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}
