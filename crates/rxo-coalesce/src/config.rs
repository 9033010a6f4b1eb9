//! The configuration of an engine.

use rxo_frame::{ConfigError, LinkKind};
use rxo_wire::checksum::Summer;
use rxo_wire::{Parsed, Unparsed, parse, parse_ip};

use crate::{ChecksumForm, Hold, Policy};

/// The configuration of an engine. It determines the amount of memory that the engine allocates.
///
/// # Examples
/// ```
/// use std::hash::{BuildHasher, RandomState};
///
/// use rxo_coalesce::{Config, Policy};
/// use rxo_frame::LinkKind;
///
/// let seed = RandomState::new().hash_one(0);
/// let config = Config { link: LinkKind::RawIp, ..Config::new(Policy::remember(), seed) };
/// assert!(config.check().is_ok());
/// let refused = Config { batch_frames: 0, ..config }.check();
/// assert!(refused.is_err_and(|error| error.to_string().contains("batch_frames")));
/// ```
#[derive(Clone, Debug)]
pub struct Config {
    /// The rules for coalescing, holding and limits.
    pub policy: Policy,
    /// The first header of each frame: Ethernet, or IP without a link-layer header.
    pub link: LinkKind,
    /// `true` if a frame of unknown checksum status counts as verified; if `false`, software verifies it
    /// before merging.
    pub trust_checksums: bool,
    /// The form of the TCP checksum in a merged header.
    pub form: ChecksumForm,
    /// The maximum number of frames expected in one poll. Larger batches are processed in several parts.
    pub batch_frames: usize,
    /// Seed of the flow hash. A sender that knows the seed can choose flows that share one bucket of a table; the
    /// engine then flushes these flows early ([`FlushReason::Collision`](crate::FlushReason::Collision)).
    /// Otherwise deliveries do not depend on the seed.
    pub seed: u64,
    /// The implementation that sums payloads for checksums.
    pub summer: Summer,
}

impl Config {
    /// Creates a configuration for Ethernet, checksums verified in software, merged headers with the
    /// pseudo-header checksum (see [`ChecksumForm`]), and polls of up to 256 frames. `seed` must be a new random
    /// value for each engine, because the engine has no source of randomness. A fixed seed is safe only if every
    /// sender is trusted, as in tests.
    #[must_use]
    pub fn new(policy: Policy, seed: u64) -> Self {
        Self {
            policy,
            link: LinkKind::Ethernet,
            trust_checksums: false,
            form: ChecksumForm::PseudoHeader,
            batch_frames: 256,
            seed,
            summer: Summer::detect(),
        }
    }

    /// Checks that every number is in its range.
    ///
    /// # Errors
    /// [`ConfigError`] names the first number that is out of its range.
    pub fn check(&self) -> Result<(), ConfigError> {
        let policy = &self.policy;
        let (hold_count, hold_most) = match policy.hold {
            Hold::EveryNthPoll(polls) | Hold::Auto { most_polls: polls, .. } => (polls, u32::MAX),
            Hold::EveryNPackets(packets) => (packets, u32::MAX),
            Hold::EndOfPoll | Hold::Within(_) => (1, 1),
        };
        ConfigError::check([
            ("flows", u64::from(policy.flows), 1, 4_096),
            ("max_segments", u64::from(policy.max_segments), 1, 65_535),
            ("max_bytes", u64::from(policy.max_bytes), 576, policy.most_bytes().into()),
            ("batch_frames", self.batch_frames as u64, 1, MAX_BATCH_FRAMES),
            ("hold", u64::from(hold_count), 1, u64::from(hold_most)),
        ])
    }

    /// Returns the number of frame slots of the engine: enough for one poll and for the frames that the policy
    /// may hold from earlier polls. When all slots are in use, the least recently used flow is flushed.
    pub(crate) fn frame_slots(&self) -> usize {
        let held = match self.policy.hold {
            Hold::EndOfPoll => 0,
            Hold::EveryNthPoll(polls) | Hold::Auto { most_polls: polls, .. } => {
                self.batch_frames.saturating_mul(polls as usize)
            }
            Hold::EveryNPackets(packets) => packets as usize,
            // A time limit does not bound the number of frames: memory for four full polls.
            Hold::Within(_) => self.batch_frames.saturating_mul(4),
        };
        let most = usize::from(self.policy.flows) * usize::from(self.policy.max_segments);
        self.batch_frames + held.min(most).min(MAX_HELD_FRAMES)
    }

    /// Parses the headers of a frame, whose first header is that of [`Config::link`].
    #[inline]
    pub(crate) fn read(&self, bytes: &[u8]) -> Result<Parsed, Unparsed> {
        self.link.read(bytes, parse, parse_ip)
    }
}

/// Maximum number of frames in a batch. This limit and [`MAX_HELD_FRAMES`] keep the index of every aggregate
/// within 16 bits.
const MAX_BATCH_FRAMES: u64 = 32_768;
const MAX_HELD_FRAMES: usize = 65_536;

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use super::*;
    use crate::Engine;

    fn refused(config: Config) -> Option<&'static str> {
        Engine::<&[u8]>::new(config).err().map(|error| error.name)
    }

    #[test]
    fn a_hold_of_no_packets_or_no_polls_is_refused() {
        let auto = Hold::Auto { budget: Duration::from_micros(50), most_polls: 0 };
        for hold in [Hold::EveryNPackets(0), Hold::EveryNthPoll(0), auto] {
            let policy = Policy { hold, ..Policy::linux_gro() };
            assert_eq!(refused(Config::new(policy, 1)), Some("hold"), "{hold:?}");
        }
        let policy = Policy { hold: Hold::EveryNPackets(1), ..Policy::linux_gro() };
        assert_eq!(refused(Config::new(policy, 1)), None);
    }

    #[test]
    fn the_largest_engine_has_an_index_for_every_aggregate() {
        let hold = Hold::EveryNPackets(u32::MAX);
        let policy = Policy { hold, flows: 4_096, ..Policy::linux_gro() };
        let largest = Config { batch_frames: MAX_BATCH_FRAMES as usize, ..Config::new(policy, 1) };
        let indices = usize::from(policy.flows) + largest.frame_slots() / 2 + 1;
        assert!(indices < usize::from(u16::MAX), "{indices} indices exceed 16 bits");
        let larger = Config { batch_frames: largest.batch_frames + 1, ..largest };
        assert_eq!(refused(larger), Some("batch_frames"));
    }
}
