//! The settings and counters of an impairment.

use rxo_frame::Duration;
use thiserror::Error;

/// What a network does to frames. The default does nothing, with limits that a test of a few
/// connections does not reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImpairmentSettings {
    /// The seed of all draws.
    pub seed: u64,
    /// Frames lost, of a million.
    pub loss_ppm: u32,
    /// Frames duplicated, of a million; the copy follows at once.
    pub duplicate_ppm: u32,
    /// Frames that others overtake, of a million.
    pub reorder_ppm: u32,
    /// How far such a frame is set back.
    pub displacement: Displacement,
    /// How long every frame takes.
    pub delay: Duration,
    /// The most that is added to `delay`, uniformly at random. Frames stay in order.
    pub jitter: Duration,
    /// Frames come out together, this long after the first of them, as behind a network card that
    /// moderates its interrupts (`rx-usecs`). Zero: each frame comes out at its own time.
    pub gather: Duration,
    /// The rate of a link that sends one frame after the other, in bytes of frames a second (no
    /// preamble, no gap). `None` for no such link.
    pub rate_bytes_per_s: Option<u64>,
    /// The most frames in the network at a time, delayed frames included.
    pub limit_frames: usize,
    /// The most bytes in the network at a time.
    pub limit_bytes: usize,
}

/// How far a frame is set back. It comes out when `frames` others have overtaken it or `time` has
/// passed, whichever is first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Displacement {
    /// How many later frames that are not set back themselves go before it; `None` for as many as come
    /// within `time`.
    pub frames: Option<u32>,
    /// How much later it comes out at most.
    pub time: Duration,
}

impl Default for ImpairmentSettings {
    fn default() -> Self {
        Self {
            seed: 0,
            loss_ppm: 0,
            duplicate_ppm: 0,
            reorder_ppm: 0,
            displacement: Displacement::default(),
            delay: Duration::ZERO,
            jitter: Duration::ZERO,
            gather: Duration::ZERO,
            rate_bytes_per_s: None,
            limit_frames: 65_536,
            limit_bytes: 64 << 20,
        }
    }
}

impl Default for Displacement {
    /// Three frames, which cause three duplicate ACKs; 10 ms if fewer come.
    fn default() -> Self {
        Self { frames: Some(3), time: Duration::from_millis(10) }
    }
}

/// All frames.
const ALL_PPM: u32 = 1_000_000;

impl ImpairmentSettings {
    pub(super) fn check(&self) -> Result<(), ImpairmentError> {
        let shares = [
            ("loss", self.loss_ppm),
            ("duplicate", self.duplicate_ppm),
            ("reorder", self.reorder_ppm),
        ];
        if let Some(&(name, ppm)) = shares.iter().find(|(_, ppm)| *ppm > ALL_PPM) {
            return Err(ImpairmentError::Share { name, ppm });
        }
        let limits = [self.limit_frames as u64, self.limit_bytes as u64];
        let is_zero = [self.rate_bytes_per_s.unwrap_or(1), limits[0], limits[1]];
        let names = ["rate", "limit of frames", "limit of bytes"];
        match names.into_iter().zip(is_zero).find(|(_, value)| *value == 0) {
            Some((name, _)) => Err(ImpairmentError::Zero { name }),
            None => Ok(()),
        }
    }
}

/// An invalid setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ImpairmentError {
    /// The share is more than all frames.
    #[error("{name} of {ppm} in a million frames: choose 0 to 1000000")]
    Share {
        /// The setting.
        name: &'static str,
        /// Its value.
        ppm: u32,
    },
    /// With this setting nothing would come out.
    #[error("a {name} of 0 lets nothing through: choose at least 1")]
    Zero {
        /// The setting.
        name: &'static str,
    },
}

rxo_frame::counters! {
    /// What an impairment did since it was made. A GSO frame counts as its segments.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct ImpairmentCounters {
        /// Frames that went in.
        pub taken: u64,
        /// Frames that came out.
        pub given: u64,
        /// Frames lost by chance.
        pub lost: u64,
        /// Frames duplicated by chance.
        pub doubled: u64,
        /// Frames set back by chance, counted when others begin to overtake them.
        pub reordered: u64,
        /// Frames dropped because of `limit_frames`.
        pub over_frames: u64,
        /// Frames dropped because of `limit_bytes`.
        pub over_bytes: u64,
        /// GSO frames that were segmented.
        pub cut: u64,
    }
}

impl ImpairmentCounters {
    /// All frames that went in and will not come out.
    #[must_use]
    pub const fn dropped(&self) -> u64 {
        self.lost + self.over_frames + self.over_bytes
    }
}
