//! Frames that the program pushes, ends of polls, and times at which held frames are due.

use std::ffi::{c_int, c_void};
use std::slice;

use rxo_frame::{ChecksumStatus, Frame, Instant, Load};

use super::buffer::Buffer;
use super::{RXO_CHECKSUM_UNKNOWN, RXO_CHECKSUM_VERIFIED, RxoEngine, run};
use crate::border::{Failure, MOST_BYTES, RXO_FULL, RXO_OK};

/// A frame for `rxo_push_many`. Its checksum is as `rxo_push` takes it.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct RxoPacket {
    /// The bytes of the frame.
    pub data: *const u8,
    /// The length of the frame in bytes.
    pub len: usize,
    /// Returned with the frame.
    pub cookie: *mut c_void,
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
    let work = |e: &mut RxoEngine| {
        let checksum = match checksum {
            RXO_CHECKSUM_UNKNOWN => ChecksumStatus::Unknown,
            RXO_CHECKSUM_VERIFIED => ChecksumStatus::Verified,
            other => return Err(Failure::invalid(format!("there is no checksum status {other}"))),
        };
        e.push(&[RxoPacket { data: frame, len, cookie }], now_ns)?;
        e.batch.last_mut().into_iter().for_each(|frame| frame.checksum = checksum);
        Ok(RXO_OK)
    };
    // SAFETY: the caller's promises.
    unsafe { run(e, work) }
}

/// Passes `count` frames to the engine, each as `rxo_push` does. `packets` itself is not needed afterwards.
/// Returns how many were taken, from the first on; the others stay the caller's. If the first was not taken,
/// returns RXO_FULL or RXO_INVALID; so call it again with the rest to learn why that was refused.
///
/// # Safety
/// `e` is from `rxo_new`; `count` packets can be read at `packets`, and the bytes of each until it is released.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rxo_push_many(
    e: *mut RxoEngine,
    packets: *const RxoPacket,
    count: usize,
    now_ns: u64,
) -> c_int {
    // SAFETY: the caller's promises; an engine has room for less than `isize::MAX` bytes of packets.
    unsafe {
        run(e, |e| match (packets.is_null(), count) {
            (_, 0) => Ok(0),
            (true, _) => Err(Failure::invalid(format!("null in place of {count} packets"))),
            // One more than fits, so that none at all is an error.
            _ => e.push(slice::from_raw_parts(packets, count.min(e.room() + 1)), now_ns),
        })
    }
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
            e.end_poll(Instant::from_nanos(now_ns));
            Ok(RXO_OK)
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
            Ok(RXO_OK)
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
            e.engine.on_timeout_under(e.load, now, |ready| hand.take(&ready));
            Ok(RXO_OK)
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
            e.engine.push(&mut e.batch, now, |ready| hand.take(&ready));
            e.engine.flush(now, |ready| hand.take(&ready));
            Ok(RXO_OK)
        })
    }
}

impl RxoEngine {
    /// Ends a poll at `now`, and stores the deliveries.
    pub(super) fn end_poll(&mut self, now: Instant) {
        let hand = &mut self.hand;
        self.engine.poll_under(self.load, &mut self.batch, now, |ready| hand.take(&ready));
    }

    /// Takes the first of `packets`, as many as are valid and there is room for. Returns their number, at least one.
    fn push(&mut self, packets: &[RxoPacket], now_ns: u64) -> Result<c_int, Failure> {
        let now = Instant::from_nanos(now_ns);
        let room = self.room();
        if room == 0 {
            let text = "no room: end the poll, call rxo_next and rxo_release first";
            return Err(Failure(RXO_FULL, text.to_owned()));
        }
        let mut rest = &packets[..packets.len().min(room)];
        let mut taken = 0;
        while let [first, ..] = rest {
            if self.batch.len() == self.batch_frames {
                let hand = &mut self.hand;
                self.engine.push(&mut self.batch, now, |ready| hand.take(&ready));
            }
            let (next, others) =
                rest.split_at(rest.len().min(self.batch_frames - self.batch.len()));
            let valid = self.append(next, now);
            if taken + valid == 0 {
                let text = format!("{} bytes: give memory of up to {MOST_BYTES}", first.len);
                return Err(Failure::invalid(text));
            }
            taken += valid;
            rest = if valid == next.len() { others } else { &[] };
        }
        Ok(taken as c_int)
    }

    /// Appends `packets`, up to the first that is invalid, to the batch, which has room for all. Returns their number.
    #[inline]
    fn append(&mut self, packets: &[RxoPacket], now: Instant) -> usize {
        let before = self.batch.len();
        let (mut lens, mut lowest) = (0, usize::MAX);
        // In one pass without branches, whose result only says if all are valid: what is not is taken back before
        // anything reads it.
        self.batch.extend(packets.iter().map(|packet| {
            lens |= packet.len;
            lowest = lowest.min(packet.data.addr());
            // SAFETY: as said above; the program promises that the bytes are readable until it gets the cookie back.
            let buffer = unsafe { Buffer::new(packet.data, packet.len, packet.cookie) };
            Frame::new(buffer, now)
        }));
        if lowest > 0 && lens <= MOST_BYTES {
            return packets.len();
        }
        let is_valid = |packet: &&RxoPacket| !packet.data.is_null() && packet.len <= MOST_BYTES;
        let valid = packets.iter().take_while(is_valid).count();
        self.batch.truncate(before + valid);
        valid
    }
}
