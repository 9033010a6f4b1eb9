//! How bad a network is, and what it did.

use rxo_frame::Duration;
use thiserror::Error;

/// How bad. The default does nothing to anything, within limits that no test of a few connections
/// reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImpairmentSettings {
    /// Where the draws begin: the same seed draws the same.
    pub seed: u64,
    /// How many of a million frames are lost.
    pub loss_ppm: u32,
    /// How many of a million come twice, one right behind the other.
    pub duplicate_ppm: u32,
    /// How many of a million are overtaken.
    pub reorder_ppm: u32,
    /// By how much.
    pub displacement: Displacement,
    /// How long every frame is under way.
    pub delay: Duration,
    /// By how much longer at most, at random and evenly; frames stay in order.
    pub jitter: Duration,
    /// Frames come out together, so long after the first of them, as behind a card that moderates its
    /// interrupts (`rx-usecs`); zero: each at its own time.
    pub gather: Duration,
    /// The rate of a link that frames have to go through one after the other, in bytes a second
    /// of what the source gives (no preamble, no gap); `None` is no such link.
    pub rate_bytes_per_s: Option<u64>,
    /// The most frames in it at a time, those under way included.
    pub limit_frames: usize,
    /// The most bytes in it at a time.
    pub limit_bytes: usize,
}

/// How far a frame is set back. It comes out when so many frames have overtaken it or the time is
/// over, whichever is first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Displacement {
    /// How many that came later, and are not set back themselves, go before it; `None`: however
    /// many come in the time.
    pub frames: Option<u32>,
    /// How much later than it would have it comes out at the latest.
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
    /// Three frames, enough for three duplicate ACKs; 10 ms when no more come.
    fn default() -> Self {
        Self { frames: Some(3), time: Duration::from_millis(10) }
    }
}

/// A million of a million.
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

/// A setting that cannot be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ImpairmentError {
    /// More than all frames.
    #[error("{name} of {ppm} in a million frames: choose 0 to 1000000")]
    Share {
        /// Of which setting.
        name: &'static str,
        /// Its value.
        ppm: u32,
    },
    /// Nothing would ever come out.
    #[error("a {name} of 0 lets nothing through: choose at least 1")]
    Zero {
        /// Of which setting.
        name: &'static str,
    },
}

/// What was done to frames, since the start. A super-packet counts as the segments it is cut into.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ImpairmentCounters {
    /// Frames that went in.
    pub taken: u64,
    /// Frames that came out.
    pub given: u64,
    /// Lost by chance.
    pub lost: u64,
    /// Doubled by chance.
    pub doubled: u64,
    /// Set back by chance; counted when it happens.
    pub reordered: u64,
    /// Dropped for the limit of frames.
    pub over_frames: u64,
    /// Dropped for the limit of bytes.
    pub over_bytes: u64,
    /// Super-packets that were cut.
    pub cut: u64,
}

impl ImpairmentCounters {
    /// Everything that went in and will not come out.
    #[must_use]
    pub const fn dropped(&self) -> u64 {
        self.lost + self.over_frames + self.over_bytes
    }
}
