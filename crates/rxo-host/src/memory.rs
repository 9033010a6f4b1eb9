//! The memory budget of a host's connections: a fixed amount for each connection, and a buffer for each
//! direction that holds data.
//!
//! The module is separate because all connections share one limit. A direction that holds data has reserved its
//! whole buffer and never holds more, so the reservations bound the host's memory, whatever its peers do.
//! Memory is not counted per segment, and all data inside an offered window can be stored. A direction without
//! data has reserved no buffer. It reserves the buffer with the next data, and releases it when it becomes idle
//! (`worker/rests.rs`). So there can be many idle connections whose windows together exceed the memory. If all
//! peers use their windows at once, data without memory is dropped and retransmitted, as after a full queue in
//! the network; the windows stay unchanged. The fixed amount includes a little data per direction
//! ([`MEAGER_BYTES`]), so that every connection progresses.
//!
//! Growth leaves the last quarter of the memory to new connections and to idle connections that become active.
//! When that quarter is used, grown buffers are halved, and a direction releases its buffer as soon as the
//! buffer is empty. The windows are also limited by the device's receive queue (`queue.rs`).

mod waiting;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rxo_frame::Duration;
use rxo_tcp::{Algorithm, Buffers, Config, SendBuffer};

use self::waiting::Waiting;
use crate::queue::Queue;

/// The memory budget of all connections of a host.
#[derive(Debug)]
pub(crate) struct Memory {
    left: AtomicU64,
    /// The part of the memory, in bytes, that is reserved for new connections and for idle connections that
    /// become active.
    for_new: u64,
    /// Number of segments with data that were dropped for lack of memory.
    refused: AtomicU64,
    /// The queue of connections that wait for memory to send.
    waiting: Waiting,
    queue: Queue,
}

/// The memory of one connection: the sizes of its buffers, and which of them are reserved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Share {
    buffers: Buffers,
    /// The initial sizes of the buffers, to which they shrink.
    initial: Buffers,
    /// The bookkeeping memory of the sending direction, in KiB. Stored in 16 bits, because there may be 100,000
    /// connections.
    sending_kib: u16,
    receiving_kib: u16,
    /// The directions that have reserved memory for data.
    holds: Directions,
}

/// A set of directions of a connection: sending, receiving, or both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Directions {
    pub(crate) sending: bool,
    pub(crate) receiving: bool,
}

impl Memory {
    /// Returns the device's receive queue.
    #[inline]
    pub(crate) const fn queue(&self) -> &Queue {
        &self.queue
    }

    /// Creates a budget of `bytes` bytes for the connections of a device with the receive queue `queue`.
    pub(crate) const fn new(bytes: u64, queue: Queue) -> Self {
        let (left, refused) = (AtomicU64::new(bytes), AtomicU64::new(0));
        Self { left, for_new: bytes / 4, refused, waiting: Waiting::new(), queue }
    }

    /// Returns `true` if less than a quarter of the memory is free, so that grown buffers must shrink.
    pub(crate) fn is_short(&self) -> bool {
        self.left() < self.for_new
    }

    /// Returns the free memory, in bytes.
    pub(crate) fn left(&self) -> u64 {
        self.left.load(Ordering::Relaxed)
    }

    /// Returns the number of segments with data that were dropped for lack of memory.
    pub(crate) fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    /// Reserves the fixed amount for a connection with `config`, and sets its buffer sizes: those of `config`
    /// while memory is plentiful, otherwise smaller ones. The receive window is also limited to the free
    /// capacity of the device's receive queue. `None` if there is not enough memory for even the smallest
    /// buffers.
    pub(crate) fn reserve(&self, config: &Config) -> Option<Share> {
        let window = self.queue.first(config.receive_buffer_bytes);
        self.reserve_with(|left| Share::of(config, left / SHARES).with_window(window))
    }

    /// Reserves the fixed amount and both buffers in the sizes of `config`. `None` if there is not enough
    /// memory.
    pub(crate) fn reserve_all(&self, config: &Config) -> Option<Share> {
        let holds = Directions { sending: true, receiving: true };
        self.reserve_with(|_| Share { holds, ..Share::of(config, u64::MAX) })
    }

    fn reserve_with(&self, share: impl Fn(u64) -> Share) -> Option<Share> {
        let rest = |left: u64| {
            let share = share(left);
            (left >= share.most_bytes()).then(|| left - share.bytes())
        };
        let before = self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, rest);
        let share = before.ok().map(share)?;
        self.queue.changed(0, share.buffers.receive_bytes);
        Some(share)
    }

    /// Returns `true` if `share` has memory for data to send; tries to reserve it if needed.
    pub(crate) fn wake_sending(&self, share: &mut Share) -> bool {
        share.holds.sending || self.hold(share, Directions { sending: true, ..share.holds })
    }

    /// Records that the connection with index `place`, whose memory is `share`, waits for memory to send.
    pub(crate) fn wait_to_send(&self, place: u32, share: &Share) {
        let awake = Share { holds: Directions { sending: true, ..share.holds }, ..*share };
        self.waiting.push(place, awake.bytes() - share.bytes());
    }

    /// Returns `true` if there is enough memory for the connection that has waited longest.
    pub(crate) fn serves_waiting(&self) -> bool {
        self.waiting.is_served_by(self.left())
    }

    /// Removes and returns the index of the connection that has waited longest, if there is enough memory for
    /// it; otherwise `None`.
    pub(crate) fn take_waiting(&self) -> Option<u32> {
        self.waiting.take(self.left())
    }

    /// Returns `true` if `share` has memory for received data; tries to reserve it if needed.
    pub(crate) fn wake_receiving(&self, share: &mut Share) -> bool {
        share.holds.receiving || self.hold(share, Directions { receiving: true, ..share.holds })
    }

    /// Returns `true` if a connection may accept a segment with data: memory is reserved for received data, or
    /// `fits` is `true` because the connection's fixed amount suffices. Counts the segment if it is refused.
    pub(crate) fn admits(&self, share: &mut Share, fits: bool) -> bool {
        let is_admitted = self.wake_receiving(share) || fits;
        self.refused.fetch_add(u64::from(!is_admitted), Ordering::Relaxed);
        is_admitted
    }

    /// Frees the memory that `share` has reserved for directions other than those of `in_use`.
    pub(crate) fn rest(&self, share: &mut Share, in_use: Directions) {
        let holds = Directions {
            sending: share.holds.sending && in_use.sending,
            receiving: share.holds.receiving && in_use.receiving,
        };
        let before = share.bytes();
        share.holds = holds;
        self.left.fetch_add(before - share.bytes(), Ordering::Relaxed);
    }

    fn hold(&self, share: &mut Share, holds: Directions) -> bool {
        let held = Share { holds, ..*share };
        let more = held.bytes() - share.bytes();
        let rest = |left: u64| left.checked_sub(more);
        let has_room = self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, rest).is_ok();
        if has_room {
            *share = held;
        }
        has_room
    }

    /// Grows `share` towards `wanted`, by a limited part of the free memory so that many connections can grow.
    /// Returns the granted sizes. Returns `None`, without changing `share`, if there is too little memory for
    /// growth. `round_trip` is the minimum round-trip time of the path, if known.
    pub(crate) fn grow(
        &self,
        share: &mut Share,
        wanted: Buffers,
        round_trip: Option<Duration>,
    ) -> Option<Buffers> {
        let has = share.buffers.receive_bytes;
        let receive_bytes = self.queue.grown(has, wanted.receive_bytes, round_trip);
        // A direction without data needs no growth.
        let Directions { sending, receiving } = share.holds;
        let wanted = Buffers {
            send_bytes: if sending { wanted.send_bytes } else { 0 },
            receive_bytes: if receiving { receive_bytes } else { 0 },
        };
        let for_growth = self.left().checked_sub(self.for_new)?;
        let part = (for_growth / GROWTHS).max(LEAST_PART_BYTES).min(for_growth);
        let granted = share.partial_growth(wanted, part)?;
        let more = text_bytes(granted).checked_sub(text_bytes(share.buffers))?;
        let rest = |left: u64| left.checked_sub(more).filter(|left| *left >= self.for_new);
        self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, rest).ok()?;
        share.buffers = granted;
        self.queue.changed(has, granted.receive_bytes);
        Some(granted)
    }

    /// Reduces `share` to `kept`, the buffer sizes that the connection still uses, and frees the difference.
    pub(crate) fn shrink(&self, share: &mut Share, kept: Buffers) {
        let (before, window) = (share.bytes(), share.buffers.receive_bytes);
        share.buffers = Buffers {
            send_bytes: kept.send_bytes.min(share.buffers.send_bytes),
            receive_bytes: kept.receive_bytes.min(share.buffers.receive_bytes),
        };
        if share.bytes() < before {
            self.left.fetch_add(before - share.bytes(), Ordering::Relaxed);
        }
        if share.buffers.receive_bytes < window {
            self.queue.changed(window, share.buffers.receive_bytes);
        }
    }

    /// Frees all memory of a share.
    pub(crate) fn release(&self, share: Share) {
        self.left.fetch_add(share.bytes(), Ordering::Relaxed);
        self.queue.changed(share.buffers.receive_bytes, 0);
    }
}

impl Share {
    /// Returns the share of a connection with `config` that may take `most_bytes` bytes. Reserves no memory for
    /// data.
    fn of(config: &Config, most_bytes: u64) -> Self {
        let (sending_kib, receiving_kib) = tracking_kib(config);
        let tracking = IDLE_CONNECTION_BYTES + kib(sending_kib) + kib(receiving_kib);
        let asked = config.initial_buffers();
        let wanted = text_bytes(asked);
        let given = most_bytes.saturating_sub(tracking).min(wanted);
        let part = |bytes: u32| {
            let part = u64::from(bytes) * given / wanted.max(1);
            u32::try_from(part).unwrap_or(bytes).max(bytes.min(LEAST_BUFFER_BYTES))
        };
        let buffers = Buffers {
            send_bytes: part(asked.send_bytes),
            receive_bytes: part(asked.receive_bytes),
        };
        let holds = Directions::default();
        Self { buffers, initial: buffers, sending_kib, receiving_kib, holds }
    }

    /// Returns `true` if memory for data to send is reserved.
    #[inline]
    pub(crate) const fn sends(&self) -> bool {
        self.holds.sending
    }

    /// Returns `true` if memory for received data is reserved.
    #[inline]
    pub(crate) const fn receives(&self) -> bool {
        self.holds.receiving
    }

    /// Returns `true` if only the fixed amount is reserved.
    pub(crate) const fn has_only_fixed(&self) -> bool {
        !self.holds.sending && !self.holds.receiving
    }

    /// Returns the reserved memory, in bytes.
    fn bytes(&self) -> u64 {
        let sending = sent_bytes(self.buffers) + kib(self.sending_kib);
        let receiving = received_bytes(self.buffers) + kib(self.receiving_kib);
        let part = |is_held: bool, bytes: u64| if is_held { bytes } else { 0 };
        let Directions { sending: sends, receiving: receives } = self.holds;
        IDLE_CONNECTION_BYTES + part(sends, sending) + part(receives, receiving)
    }

    /// Returns the memory that is reserved while both directions hold data, in bytes.
    fn most_bytes(&self) -> u64 {
        Self { holds: Directions { sending: true, receiving: true }, ..*self }.bytes()
    }

    /// Returns this share with its receive window limited to `bytes` bytes. The resulting sizes also become the
    /// initial sizes.
    fn with_window(mut self, bytes: u32) -> Self {
        let receive_bytes = self.buffers.receive_bytes.min(bytes);
        self.buffers.receive_bytes = receive_bytes;
        self.initial = self.buffers;
        self
    }

    /// Returns `config` with its buffers limited to this share. Connections with the configured sizes share
    /// one `Config`.
    pub(crate) fn apply(self, config: &Arc<Config>) -> Arc<Config> {
        if self.buffers == config.initial_buffers() {
            return Arc::clone(config);
        }
        let Buffers { send_bytes, receive_bytes } = self.buffers;
        Arc::new(Config {
            send_buffer_bytes: send_bytes,
            receive_buffer_bytes: receive_bytes,
            ..Config::clone(config)
        })
    }

    /// Returns half of the buffer sizes, but at least the initial sizes; `None` if the buffers have not grown.
    pub(crate) fn halved(&self) -> Option<Buffers> {
        let (has, initial) = (self.buffers, self.initial);
        let half = |bytes: u32, initial: u32| (bytes / 2).max(initial);
        let has_grown =
            has.send_bytes > initial.send_bytes || has.receive_bytes > initial.receive_bytes;
        has_grown.then(|| Buffers {
            send_bytes: half(has.send_bytes, initial.send_bytes),
            receive_bytes: half(has.receive_bytes, initial.receive_bytes),
        })
    }

    /// Returns larger buffer sizes, up to `wanted`, that take about `most_bytes` more memory; `None` if no
    /// direction gains enough to justify moving its data. A direction keeps its size if the wanted size is
    /// smaller.
    fn partial_growth(&self, wanted: Buffers, most_bytes: u64) -> Option<Buffers> {
        let has = self.buffers;
        let wanted = wanted.larger(has);
        let all = text_bytes(wanted).checked_sub(text_bytes(has)).filter(|bytes| *bytes > 0)?;
        let part = |has: u32, wanted: u32| {
            let more = u64::from(wanted - has) * most_bytes.min(all) / all;
            let worth = LEAST_GROWTH_BYTES.max(has / 8);
            has + u32::try_from(more).ok().filter(|more| *more >= worth).unwrap_or(0)
        };
        let granted = Buffers {
            send_bytes: part(has.send_bytes, wanted.send_bytes),
            receive_bytes: part(has.receive_bytes, wanted.receive_bytes),
        };
        (granted != has).then_some(granted)
    }
}

/// Returns the memory for the data of both directions, in bytes.
fn text_bytes(buffers: Buffers) -> u64 {
    sent_bytes(buffers) + received_bytes(buffers)
}

/// Returns the memory for data to send, in bytes. The result includes bookkeeping: one entry per 512 bytes for
/// sent ranges, and one entry per 2,048 bytes for pieces sent without a copy.
fn sent_bytes(buffers: Buffers) -> u64 {
    let bytes = u64::from(buffers.send_bytes);
    SendBuffer::most_memory(buffers.send_bytes) + PLACE_BYTES * (bytes / 512 + bytes / 2_048)
}

/// Returns the memory for received data, in bytes: for the receive buffers, in which data stays, and for a ring
/// of the window's size, into which small pieces are copied. Gaps take eight bytes per 512 bytes of the window.
fn received_bytes(buffers: Buffers) -> u64 {
    let bytes = u64::from(buffers.receive_bytes);
    2 * bytes + 8 * (bytes / 512)
}

/// Returns the bookkeeping memory of a connection in KiB: first for sending (ranges of sent sequence numbers),
/// then for receiving (pieces of data).
fn tracking_kib(config: &Config) -> (u16, u16) {
    let model = if config.congestion == Algorithm::Bbr { BBR_BYTES } else { 0 };
    let kib = |places: usize, more: u64| {
        u16::try_from((PLACE_BYTES * places as u64 + more).div_ceil(1 << 10)).unwrap_or(u16::MAX)
    };
    (kib(config.sent_ranges, model), kib(config.receive_pieces, 0))
}

const fn kib(count: u16) -> u64 {
    (count as u64) << 10
}

/// Number of bytes of data that a direction can hold without reserving a buffer: more than a packet of 1,500
/// bytes carries. The fixed amount of a connection includes this twice.
pub(crate) const MEAGER_BYTES: usize = 2 << 10;
/// The fixed amount in bytes that every connection reserves of
/// [`HostConfig::memory_bytes`](crate::HostConfig::memory_bytes): its state with the lock, its entry at
/// the worker, its timers, and space for a little data.
pub const IDLE_CONNECTION_BYTES: u64 = 8 << 10;
/// The memory for BBR's record of transmission times, in bytes.
const BBR_BYTES: u64 = 12 << 10;
/// The memory of one entry for a piece of data or a sent range, in bytes.
const PLACE_BYTES: u64 = 64;
const LEAST_BUFFER_BYTES: u32 = 32 << 10;
const SHARES: u64 = 1_024;
/// The divisor that limits the growth of one buffer at a time to 1/256 of the free memory for growth.
const GROWTHS: u64 = 256;
/// The minimum number of bytes that a single growth may take, if so many are free: enough for both directions
/// of a small connection.
const LEAST_PART_BYTES: u64 = 64 << 10;
/// The minimum growth of a direction in bytes. Growth must also be at least an eighth of the size, because it
/// allocates memory and moves data.
const LEAST_GROWTH_BYTES: u32 = 16 << 10;

#[cfg(test)]
mod tests;
