//! The receive engine for C: frames go in, deliveries come out.
//!
//! * `input`: frames that the program pushes, and ends of polls.
//! * `output`: deliveries, taken one by one or written to a descriptor. `hand` stores them.
//! * `totals`: counters.
//!
//! The header has the functions in the order of the modules.

mod buffer;
mod hand;
mod input;
mod output;
mod totals;

use std::ffi::{c_char, c_int};
use std::hash::{BuildHasher, RandomState};

use rxo_coalesce::{ChecksumForm, Config, Engine, Hold, Policy};
use rxo_frame::{Frame, LinkKind, Load};

use self::buffer::Buffer;
use self::hand::Hand;
use crate::border::{Failure, RXO_BROKEN, boxed, free, guarded, object, policy, text};

pub use self::hand::RxoDelivery;
pub use self::input::{
    RxoPacket, rxo_end_of_poll, rxo_flush, rxo_on_timeout, rxo_poll_at, rxo_push, rxo_push_checked,
    rxo_push_many, rxo_report_load,
};
pub use self::output::{rxo_next, rxo_poll_writev, rxo_release};
pub use self::totals::{RxoCounters, rxo_count, rxo_count_reason};

/// Frames begin with an Ethernet header.
pub const RXO_ETHERNET: u32 = 0;
/// Frames begin with an IP header, as on a TUN device.
pub const RXO_IP: u32 = 1;
/// Frames pushed by `rxo_push` have right checksums: do not verify them in software.
pub const RXO_TRUST: u32 = 2;
/// The virtio header has 12 bytes, with a count of buffers (vhost), instead of 10 (TUN, TAP).
pub const RXO_VIRTIO_12: u32 = 4;
/// Merged TCP checksums are complete, for an output without offloads, instead of left to the receiver.
pub const RXO_COMPLETE: u32 = 8;

/// The checksum was not verified; the engine verifies it before it coalesces.
pub const RXO_CHECKSUM_UNKNOWN: u8 = 0;
/// The device has verified the checksum.
pub const RXO_CHECKSUM_VERIFIED: u8 = 1;
/// The checksum covers all from `checksum_start` to the end; it is written `checksum_offset` bytes after it.
pub const RXO_CHECKSUM_PARTIAL: u8 = 2;

/// A receive engine. Use it from one thread at a time.
pub struct RxoEngine {
    engine: Engine<Buffer>,
    /// Frames pushed since the last batch was passed to the engine.
    batch: Vec<Frame<Buffer>>,
    hand: Hand,
    /// Maximum number of frames that were pushed and not released.
    most_frames: usize,
    batch_frames: usize,
    /// The load of the receiver, as last reported; `None` before the first report.
    load: Option<Load>,
    is_broken: bool,
}

/// Creates an engine. `policy` is a profile with settings, such as "linux-gro" or "linux-gro max_segments=16
/// udp=equal". `flags` combines RXO_IP, RXO_TRUST, RXO_VIRTIO_12, RXO_COMPLETE. `batch` is the maximum number
/// of frames per poll (1 to 32768): twice as many frames, and those that the policy may hold, can be pushed
/// and not yet released. An aggregate has at most 1022 segments, so that `writev` takes it. All memory is
/// allocated here. NULL on error: see `rxo_error`.
///
/// # Safety
/// `policy` is null or zero-terminated.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rxo_new(
    policy: *const c_char,
    flags: u32,
    batch: usize,
) -> *mut RxoEngine {
    boxed(|| {
        // SAFETY: the caller's promise.
        let mut policy = self::policy(unsafe { text(policy) }?)?;
        policy.max_segments = policy.max_segments.min(MOST_SEGMENTS);
        if flags & !(RXO_IP | RXO_TRUST | RXO_VIRTIO_12 | RXO_COMPLETE) != 0 {
            return Err(Failure::invalid(format!("flags {flags:#x}: some are unknown")));
        }
        let has = |flag| flags & flag != 0;
        if policy.takes_tunnels() && !has(RXO_COMPLETE) {
            return Err(Failure::invalid(
                "tunnels=on needs RXO_COMPLETE: the virtio header cannot name a tunnel; or set tunnels=off",
            ));
        }
        let config = Config {
            link: if has(RXO_IP) { LinkKind::RawIp } else { LinkKind::Ethernet },
            trust_checksums: has(RXO_TRUST),
            form: match has(RXO_COMPLETE) {
                true => ChecksumForm::Complete,
                false => ChecksumForm::PseudoHeader,
            },
            batch_frames: batch,
            ..Config::new(policy, RandomState::new().hash_one(0))
        };
        let engine = Engine::new(config).map_err(|error| Failure::invalid(error.to_string()))?;
        totals::prepare();
        let most_frames = 2 * batch + most_held(&policy);
        Ok(RxoEngine {
            engine,
            batch: Vec::with_capacity(batch),
            hand: Hand::new(most_frames, has(RXO_VIRTIO_12)),
            most_frames,
            batch_frames: batch,
            load: None,
            is_broken: false,
        })
    })
}

/// The pieces that Linux writes at once (`IOV_MAX`), without two for the headers.
const MOST_SEGMENTS: u16 = 1_022;

/// Maximum number of frames that the policy may hold beyond a poll.
fn most_held(policy: &Policy) -> usize {
    match policy.hold {
        Hold::EndOfPoll => 0,
        _ => (usize::from(policy.flows) * usize::from(policy.max_segments)).min(65_536),
    }
}

/// Frees the engine. Buffers that were not released stay the caller's. Does nothing if `e` is NULL.
///
/// # Safety
/// `e` is null or from `rxo_new`, and is not used afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rxo_free(e: *mut RxoEngine) {
    // SAFETY: the caller's promise.
    unsafe { free(e) }
}

impl RxoEngine {
    /// Returns the number of frames that can be pushed before others are released.
    fn room(&self) -> usize {
        let taken = self.engine.counters().frames - self.hand.collected;
        let in_hand = self.batch.len() + taken as usize + self.hand.frames();
        self.most_frames.saturating_sub(in_hand)
    }
}

/// Runs `work` on an engine that is not broken, and returns its result or an error code. Marks the engine as broken
/// if the code is `RXO_BROKEN`.
///
/// # Safety
/// `e` is null or from `rxo_new`, and nothing else uses it during the call.
unsafe fn run(
    e: *mut RxoEngine,
    work: impl FnOnce(&mut RxoEngine) -> Result<c_int, Failure>,
) -> c_int {
    let result = guarded(|| {
        // SAFETY: the caller's promise.
        let e = unsafe { object(e) }?;
        if e.is_broken {
            return Err(Failure(RXO_BROKEN, "the engine is broken; free it".to_owned()));
        }
        let result = work(e)?;
        match e.hand.is_overfull {
            true => Err(Failure(RXO_BROKEN, "more frames came out than were pushed".to_owned())),
            false => Ok(result),
        }
    });
    let code = result.unwrap_or_else(|code| code);
    // SAFETY: the caller's promise.
    if let (RXO_BROKEN, Some(e)) = (code, unsafe { e.as_mut() }) {
        e.is_broken = true;
    }
    code
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A sender that knows the seed, or learns it from another program, could choose flows that share a
    /// bucket.
    #[test]
    fn each_engine_draws_a_seed() {
        let seeds = [(); 8].map(|()| {
            // SAFETY: the text ends with zero.
            let engine = unsafe { rxo_new(c"linux-gro".as_ptr(), 0, 64) };
            // SAFETY: made above, and not null because the arguments are valid.
            let seed = unsafe { &*engine }.engine.config().seed;
            // SAFETY: made above, and not used afterwards.
            unsafe { rxo_free(engine) };
            seed
        });
        let different: std::collections::HashSet<_> = seeds.into_iter().collect();
        assert_eq!(different.len(), seeds.len());
    }
}
