//! The settings and the counters of an impairment, a simulated network.

use rxo_frame::Duration;
use thiserror::Error;

/// Properties of an impaired network. The default impairs nothing; its limits are too high to be reached in a
/// test with a few connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImpairmentSettings {
    /// The seed of all random decisions of the impairment.
    pub seed: u64,
    /// The number of frames lost per million.
    pub loss_ppm: u32,
    /// The number of frames duplicated per million; the duplicate follows immediately.
    pub duplicate_ppm: u32,
    /// The number of frames reordered per million: later frames overtake them.
    pub reorder_ppm: u32,
    /// The distance by which a reordered frame is set back.
    pub displacement: Displacement,
    /// The constant delay that every frame gets.
    pub delay: Duration,
    /// The maximum random delay that is added to `delay`, uniformly distributed. Frames stay in order.
    pub jitter: Duration,
    /// The interval in which frames are gathered, to be released together at its end, as behind a network card
    /// with interrupt moderation (`rx-usecs`). The interval begins with the first frame. With zero, each frame is
    /// released at its own time.
    pub gather: Duration,
    /// The rate of the simulated bottleneck link, in bytes of frames per second, without preamble and inter-frame
    /// gap. `None` for no rate limit.
    pub rate_bytes_per_s: Option<u64>,
    /// The maximum number of frames in the network at a time, including delayed frames.
    pub limit_frames: usize,
    /// The maximum number of bytes in the network at a time.
    pub limit_bytes: usize,
}

/// The distance by which a reordered frame is set back. The frame is released when `frames` other frames have
/// overtaken it or `time` has passed, whichever is first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Displacement {
    /// The number of later frames that overtake the frame, not counting frames that are set back themselves;
    /// `None` if only `time` limits the displacement.
    pub frames: Option<u32>,
    /// The maximum additional delay of the frame.
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
    /// Returns the default distance: three frames, which cause three duplicate ACKs; at most 10 ms.
    fn default() -> Self {
        Self { frames: Some(3), time: Duration::from_millis(10) }
    }
}

/// The rate at which all frames are affected, in parts per million.
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

/// The reason for which a setting is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ImpairmentError {
    /// A rate exceeds one million parts per million.
    #[error("{name} of {ppm} in a million frames: choose 0 to 1000000")]
    Share {
        /// The name of the setting.
        name: &'static str,
        /// The value of the setting, in parts per million.
        ppm: u32,
    },
    /// A setting is zero, so the network would release no frame.
    #[error("a {name} of 0 lets nothing through: choose at least 1")]
    Zero {
        /// The name of the setting.
        name: &'static str,
    },
}

rxo_frame::counters! {
    /// Counters of an impairment since its creation. A GSO frame counts as its segments.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct ImpairmentCounters {
        /// The number of frames that went into the simulated network.
        pub taken: u64,
        /// The number of frames that came out of the simulated network.
        pub given: u64,
        /// The number of frames that the simulated network lost by chance.
        pub lost: u64,
        /// The number of frames that the simulated network duplicated by chance.
        pub doubled: u64,
        /// The number of frames that the simulated network set back by chance, counted when the first later
        /// frame may overtake them.
        pub reordered: u64,
        /// The number of frames that the simulated network dropped because it held `limit_frames` frames.
        pub over_frames: u64,
        /// The number of frames that the simulated network dropped because it held `limit_bytes` bytes.
        pub over_bytes: u64,
        /// The number of GSO frames that the simulated network segmented.
        pub cut: u64,
    }
}

impl ImpairmentCounters {
    /// Returns the number of frames that the network lost by chance, or dropped because of a limit.
    #[must_use]
    pub const fn dropped(&self) -> u64 {
        self.lost + self.over_frames + self.over_bytes
    }
}
