//! Decisions: the random decisions about each frame, drawn from a seed.

use rxo_frame::Duration;

use super::ImpairmentSettings;

/// The random decisions about one frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Decisions {
    pub(super) is_lost: bool,
    pub(super) is_doubled: bool,
    pub(super) is_reordered: bool,
    pub(super) jitter: Duration,
}

/// A pseudo-random number generator (SplitMix64, Steele et al. 2014).
#[derive(Clone, Debug)]
pub(super) struct Dice(u64);

impl Dice {
    pub(super) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Draws the decisions about the next frame. Always draws four random numbers, whatever the settings.
    pub(super) fn decisions(&mut self, settings: &ImpairmentSettings) -> Decisions {
        Decisions {
            is_lost: self.is_one_of(settings.loss_ppm),
            is_doubled: self.is_one_of(settings.duplicate_ppm),
            is_reordered: self.is_one_of(settings.reorder_ppm),
            jitter: self.up_to(settings.jitter),
        }
    }

    /// Draws once, and returns `true` in `ppm` of a million cases.
    fn is_one_of(&mut self, ppm: u32) -> bool {
        self.below(1_000_000) < u64::from(ppm)
    }

    fn up_to(&mut self, most: Duration) -> Duration {
        let nanos = u64::try_from(most.as_nanos()).unwrap_or(u64::MAX);
        Duration::from_nanos(self.below(nanos.saturating_add(1)))
    }

    /// Draws a number from `0..bound`, uniform except for a bias of at most bound / 2⁶⁴.
    fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.draw()) * u128::from(bound)) >> 64) as u64
    }

    fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }
}
