//! Random numbers that are the same on every machine and in every version, so that a kept seed stays valid.

/// A SplitMix64 generator.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Random(u64);

impl Random {
    /// Makes a generator whose numbers the seed determines.
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns all 64 bits of the next number.
    pub(crate) const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// Returns a number below `limit`, which is at least 1.
    pub(crate) fn below(&mut self, limit: u32) -> u32 {
        bits(self.next()) % limit
    }

    /// True `part` times in 100.
    pub(crate) fn percent(&mut self, part: u32) -> bool {
        self.below(100) < part
    }
}

/// Returns the upper half of a number.
pub(crate) const fn bits(number: u64) -> u32 {
    (number >> 32) as u32
}

/// Hashes a number: every bit of the input changes about half of the bits.
pub(crate) const fn mix(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}
