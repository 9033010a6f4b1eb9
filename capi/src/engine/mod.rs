//! The receive engine for C: frames go in, deliveries come out.

mod buffer;
mod hand;
mod reasons;

use std::ffi::{c_char, c_int, c_void};
use std::hash::{BuildHasher, RandomState};

use rxo_coalesce::{ChecksumForm, Config, Engine, Hold, Policy};
use rxo_frame::{ChecksumStatus, Frame, Instant, LinkKind, Load};

use self::buffer::Buffer;
use self::hand::Hand;
use crate::border::{
    Failure, RXO_BROKEN, RXO_FULL, RXO_OK, boxed, bytes, free, guarded, object, policy, text,
};

pub use self::hand::{RxoDelivery, RxoFrame};
pub use self::reasons::rxo_count_reason;

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

/// Totals of an engine. Later versions may append fields.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct RxoCounters {
    /// Frames processed.
    pub frames: u64,
    /// Deliveries, including aggregates.
    pub deliveries: u64,
    /// Frames that could have been coalesced but were delivered alone.
    pub singles: u64,
    /// Aggregates, each of two or more segments.
    pub aggregates: u64,
    /// Segments in all aggregates.
    pub aggregated_segments: u64,
    /// Frames that are never coalesced: not TCP, SYN, wrong checksum and so on.
    pub bypassed: u64,
}

/// Creates an engine. `policy` is a profile with settings, such as "linux-gro" or "linux-gro max_segments=16
/// udp=equal". `flags` combines RXO_IP, RXO_TRUST, RXO_VIRTIO_12, RXO_COMPLETE. `batch` is the maximum number
/// of frames per poll (1 to 32768): twice as many frames, and those that the policy may hold, can be pushed
/// and not yet released. All memory is allocated here. NULL on error: see `rxo_error`.
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
        let policy = self::policy(unsafe { text(policy) }?)?;
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
        reasons::prepare();
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

/// Passes a frame of `len` bytes to the engine. It is not copied and must not change until it is released.
/// `now_ns` is a monotonic clock; `cookie` is returned with the frame. RXO_FULL if there is no space.
///
/// # Safety
/// `e` is from `rxo_new`; `len` bytes can be read at `frame` until it is released.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rxo_push(
    e: *mut RxoEngine,
    frame: *const u8,
    len: usize,
    now_ns: u64,
    cookie: *mut c_void,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { rxo_push_checked(e, frame, len, now_ns, cookie, RXO_CHECKSUM_UNKNOWN) }
}

/// Like `rxo_push`, with the state of the checksum: RXO_CHECKSUM_VERIFIED or RXO_CHECKSUM_UNKNOWN.
///
/// # Safety
/// As for `rxo_push`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rxo_push_checked(
    e: *mut RxoEngine,
    frame: *const u8,
    len: usize,
    now_ns: u64,
    cookie: *mut c_void,
    checksum: u8,
) -> c_int {
    // SAFETY: the caller's promises.
    unsafe { run(e, |e| e.push(Buffer::new(bytes(frame, len)?, cookie), now_ns, checksum)) }
}

/// Ends a poll: no further frames are available now. All that the policy does not hold is ready for
/// `rxo_next`.
///
/// # Safety
/// `e` is from `rxo_new`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rxo_end_of_poll(e: *mut RxoEngine, now_ns: u64) -> c_int {
    // SAFETY: the caller's promise.
    unsafe {
        run(e, |e| {
            let (hand, now) = (&mut e.hand, Instant::from_nanos(now_ns));
            e.engine.poll_under(e.load, &mut e.batch, now, |ready| hand.take(ready));
            Ok(())
        })
    }
}

/// Reports how busy the receiver is, for `hold=auto`: the number of delivered packets that it has not read
/// yet, or 0 if it is idle. Applies from the next call on; before the first report nothing is held.
///
/// # Safety
/// `e` is from `rxo_new`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rxo_report_load(e: *mut RxoEngine, unread: u32) -> c_int {
    // SAFETY: the caller's promise.
    unsafe {
        run(e, |e| {
            e.load = Some(Load { unread });
            Ok(())
        })
    }
}

/// True while frames are held beyond a poll; `at_ns` is then the time at which to call `rxo_on_timeout`.
///
/// # Safety
/// `e` is from `rxo_new`; `at_ns` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rxo_poll_at(e: *const RxoEngine, at_ns: *mut u64) -> bool {
    // SAFETY: the caller's promises.
    let at = unsafe { e.as_ref() }.and_then(|e| e.engine.poll_at());
    let (Some(at), false) = (at, at_ns.is_null()) else { return false };
    // SAFETY: the caller's promise.
    unsafe { at_ns.write(at.as_nanos()) };
    true
}

/// Makes frames ready for `rxo_next` that were held for as long as the policy allows.
///
/// # Safety
/// `e` is from `rxo_new`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rxo_on_timeout(e: *mut RxoEngine, now_ns: u64) -> c_int {
    // SAFETY: the caller's promise.
    unsafe {
        run(e, |e| {
            let (hand, now) = (&mut e.hand, Instant::from_nanos(now_ns));
            e.engine.on_timeout_under(e.load, now, |ready| hand.take(ready));
            Ok(())
        })
    }
}

/// Makes all frames ready for `rxo_next`, for example before the program ends.
///
/// # Safety
/// `e` is from `rxo_new`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rxo_flush(e: *mut RxoEngine, now_ns: u64) -> c_int {
    // SAFETY: the caller's promise.
    unsafe {
        run(e, |e| {
            let (hand, now) = (&mut e.hand, Instant::from_nanos(now_ns));
            e.engine.push(&mut e.batch, now, |ready| hand.take(ready));
            e.engine.flush(now, |ready| hand.take(ready));
            Ok(())
        })
    }
}

/// Takes the next delivery, in order; false if there is none. What `d` points to is valid until
/// `rxo_release`.
///
/// # Safety
/// `e` is from `rxo_new`; `d` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rxo_next(e: *mut RxoEngine, d: *mut RxoDelivery) -> bool {
    // SAFETY: the caller's promise.
    let next = unsafe { e.as_mut() }.filter(|e| !e.is_broken).map(|e| &mut e.hand);
    if d.is_null() {
        return false;
    }
    let Some(next) = next.and_then(Hand::next) else { return false };
    // SAFETY: the caller's promise.
    unsafe { d.write(next) };
    true
}

/// Releases the frames of all deliveries that `rxo_next` has returned: calls `give_back(cookie)` for each.
/// With NULL for `give_back`, use the cookies in `rxo_delivery.frames` instead. Call it after every round of
/// `rxo_next`.
///
/// # Safety
/// `e` is from `rxo_new`; `give_back` does not use `e`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rxo_release(
    e: *mut RxoEngine,
    give_back: Option<unsafe extern "C" fn(cookie: *mut c_void)>,
) {
    // SAFETY: the caller's promise.
    let Some(e) = (unsafe { e.as_mut() }) else { return };
    for frame in e.hand.release() {
        if let Some(give_back) = give_back {
            // SAFETY: the caller's function with the cookie that it gave.
            unsafe { give_back(frame.cookie) };
        }
    }
    e.hand.forget_released();
}

/// Copies the totals of the engine. `size` is `sizeof(rxo_counters)`; no more bytes are written.
///
/// # Safety
/// `e` is from `rxo_new`; `size` bytes can be written at `counters`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rxo_count(
    e: *const RxoEngine,
    counters: *mut RxoCounters,
    size: usize,
) -> c_int {
    let known = size_of::<RxoCounters>();
    let read = guarded(|| {
        // SAFETY: the caller's promise.
        let e = unsafe { e.as_ref() }.filter(|_| !counters.is_null() && size <= known);
        let e = e.ok_or_else(|| Failure::invalid(format!("counters of {size} bytes")))?;
        Ok(e.counters())
    });
    match read {
        Ok(values) => {
            let from: *const RxoCounters = &values;
            // SAFETY: `size` bytes can be written there, and no more than `known` are read.
            unsafe { std::ptr::copy_nonoverlapping(from.cast::<u8>(), counters.cast(), size) };
            RXO_OK
        }
        Err(code) => code,
    }
}

impl RxoEngine {
    fn push(&mut self, buffer: Buffer, now_ns: u64, checksum: u8) -> Result<(), Failure> {
        if self.in_hand() >= self.most_frames {
            return Err(Failure(
                RXO_FULL,
                "no room: end the poll, call rxo_next and rxo_release first".to_owned(),
            ));
        }
        let now = Instant::from_nanos(now_ns);
        let checksum = match checksum {
            RXO_CHECKSUM_UNKNOWN => ChecksumStatus::Unknown,
            RXO_CHECKSUM_VERIFIED => ChecksumStatus::Verified,
            other => return Err(Failure::invalid(format!("there is no checksum status {other}"))),
        };
        if self.batch.len() == self.batch_frames {
            let hand = &mut self.hand;
            self.engine.push(&mut self.batch, now, |ready| hand.take(ready));
        }
        self.batch.push(Frame { checksum, ..Frame::new(buffer, now) });
        Ok(())
    }

    /// Returns the number of frames that were pushed and not released.
    fn in_hand(&self) -> usize {
        let taken = self.engine.counters().frames - self.hand.collected;
        self.batch.len() + taken as usize + self.hand.frames()
    }

    fn counters(&self) -> RxoCounters {
        let counters = self.engine.counters();
        RxoCounters {
            frames: counters.frames,
            deliveries: counters.deliveries,
            singles: counters.singles + counters.ack_singles,
            aggregates: counters.aggregates + counters.ack_aggregates,
            aggregated_segments: counters.aggregated_segments + counters.aggregated_acks,
            bypassed: counters.bypassed_total(),
        }
    }
}

/// Runs `work` on an engine that is not broken. Marks the engine as broken if the result is `RXO_BROKEN`.
///
/// # Safety
/// `e` is null or from `rxo_new`, and nothing else uses it during the call.
unsafe fn run(
    e: *mut RxoEngine,
    work: impl FnOnce(&mut RxoEngine) -> Result<(), Failure>,
) -> c_int {
    let result = guarded(|| {
        // SAFETY: the caller's promise.
        let e = unsafe { object(e) }?;
        match e.is_broken {
            true => return Err(Failure(RXO_BROKEN, "the engine is broken; free it".to_owned())),
            false => work(e)?,
        }
        match e.hand.is_overfull {
            true => Err(Failure(RXO_BROKEN, "more frames came out than were pushed".to_owned())),
            false => Ok(()),
        }
    });
    let code = result.err().unwrap_or(RXO_OK);
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
