//! The memory of a host's connections: a place for each, and the buffers of a direction while it holds text.
//!
//! Separate because it is one bound for many owners. A direction that holds text has reserved its whole buffer and
//! never holds more, so what is reserved bounds the host, whatever its peers do. Nothing is counted for each segment,
//! and everything inside an offered window can be kept. A direction that holds nothing has reserved nothing: it takes
//! its memory with the next text, and gives it back when it is at rest (`worker/rests.rs`). So idle connections are
//! many, and together they offer more than there is memory. If all their peers use it at once, what finds no memory is
//! dropped and comes again, as from a full queue of the network; the windows stay. A place has room for a little text
//! in each direction ([`MEAGER_BYTES`]), so that every connection gets on, one piece after the other.
//!
//! Growth leaves the last quarter to new connections and to those that wake; when these take it, buffers that have
//! grown are halved, and directions rest as soon as they are empty. The windows are counted for the device's queue,
//! too (`queue.rs`).

mod waiting;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rxo_frame::Duration;
use rxo_tcp::{Algorithm, Buffers, Config, SendBuffer};

use self::waiting::Waiting;
use crate::queue::Queue;

/// The memory of all connections, in bytes.
#[derive(Debug)]
pub(crate) struct Memory {
    left: AtomicU64,
    /// What growth leaves to new connections and to those that wake.
    for_new: u64,
    /// Segments with text that found no memory.
    refused: AtomicU64,
    /// Who waits for memory to send.
    waiting: Waiting,
    queue: Queue,
}

/// The memory of one connection: what it may hold, and what of it is reserved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Share {
    buffers: Buffers,
    /// The sizes at the start, to which the buffers shrink.
    initial: Buffers,
    /// The bookkeeping of each direction, in KiB: 100,000 connections have one of these each.
    sending_kib: u16,
    receiving_kib: u16,
    /// Which directions have reserved their memory.
    holds: Directions,
}

/// Directions of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Directions {
    pub(crate) sending: bool,
    pub(crate) receiving: bool,
}

impl Memory {
    /// The device's queue.
    #[inline]
    pub(crate) const fn queue(&self) -> &Queue {
        &self.queue
    }

    /// So many `bytes`, for connections over a device with `queue`.
    pub(crate) const fn new(bytes: u64, queue: Queue) -> Self {
        let (left, refused) = (AtomicU64::new(bytes), AtomicU64::new(0));
        Self { left, for_new: bytes / 4, refused, waiting: Waiting::new(), queue }
    }

    /// Whether buffers that have grown are to shrink.
    pub(crate) fn is_short(&self) -> bool {
        self.left() < self.for_new
    }

    /// How much is left, in bytes.
    pub(crate) fn left(&self) -> u64 {
        self.left.load(Ordering::Relaxed)
    }

    /// How many segments with text found no memory, and were dropped.
    pub(crate) fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    /// Reserves a place for a connection with `config`. It may hold all that it asks for while there is plenty, else
    /// less, and a window that the device's queue has room for. `None` if not even the least is left, for then it
    /// could do nothing.
    pub(crate) fn reserve(&self, config: &Config) -> Option<Share> {
        let window = self.queue.first(config.receive_buffer_bytes);
        self.reserve_with(|left| Share::of(config, left / SHARES).with_window(window))
    }

    /// Reserves a place, and all that `config` asks for. `None` if that is not left.
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

    /// Whether `share` has memory for text to be sent; reserves it if not.
    pub(crate) fn wake_sending(&self, share: &mut Share) -> bool {
        share.holds.sending || self.hold(share, Directions { sending: true, ..share.holds })
    }

    /// The cell at `place`, whose memory is `share`, waits for memory to send.
    pub(crate) fn wait_to_send(&self, place: u32, share: &Share) {
        let awake = Share { holds: Directions { sending: true, ..share.holds }, ..*share };
        self.waiting.push(place, awake.bytes() - share.bytes());
    }

    /// Whether there is memory for the cell that has waited longest.
    pub(crate) fn serves_waiting(&self) -> bool {
        self.waiting.is_served_by(self.left())
    }

    /// The place of the cell that has waited longest, if there is memory for it. It waits no more.
    pub(crate) fn take_waiting(&self) -> Option<u32> {
        self.waiting.take(self.left())
    }

    /// Whether `share` has memory for received text; reserves it if not.
    pub(crate) fn wake_receiving(&self, share: &mut Share) -> bool {
        share.holds.receiving || self.hold(share, Directions { receiving: true, ..share.holds })
    }

    /// Whether a connection may take a segment with text: if there is memory for it, or the text `fits` into its
    /// place. Counts what is refused.
    pub(crate) fn admits(&self, share: &mut Share, fits: bool) -> bool {
        let is_admitted = self.wake_receiving(share) || fits;
        self.refused.fetch_add(u64::from(!is_admitted), Ordering::Relaxed);
        is_admitted
    }

    /// Gives back what `share` has reserved for directions that are not `in_use`.
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

    /// Grows `share` towards `wanted`: a part of what is left at most, so that many can grow. Returns the
    /// granted sizes; `None` if too little is left for growth, which is found out without writing. `round_trip` is the
    /// least of the path, if it is known.
    pub(crate) fn grow(
        &self,
        share: &mut Share,
        wanted: Buffers,
        round_trip: Option<Duration>,
    ) -> Option<Buffers> {
        let has = share.buffers.receive_bytes;
        let receive_bytes = self.queue.grown(has, wanted.receive_bytes, round_trip);
        // What holds nothing needs no growth.
        let Directions { sending, receiving } = share.holds;
        let wanted = Buffers {
            send_bytes: if sending { wanted.send_bytes } else { 0 },
            receive_bytes: if receiving { receive_bytes } else { 0 },
        };
        let for_growth = self.left().checked_sub(self.for_new)?;
        let part = (for_growth / GROWTHS).max(LEAST_PART_BYTES).min(for_growth);
        let granted = share.towards(wanted, part)?;
        let more = text_bytes(granted).checked_sub(text_bytes(share.buffers))?;
        let rest = |left: u64| left.checked_sub(more).filter(|left| *left >= self.for_new);
        self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, rest).ok()?;
        share.buffers = granted;
        self.queue.changed(has, granted.receive_bytes);
        Some(granted)
    }

    /// Takes back what `share` has beyond `kept`, which is what the connection still holds.
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

    /// Gives a share back.
    pub(crate) fn give_back(&self, share: Share) {
        self.left.fetch_add(share.bytes(), Ordering::Relaxed);
        self.queue.changed(share.buffers.receive_bytes, 0);
    }
}

impl Share {
    /// The share of a connection with `config` that may take `most_bytes`. Nothing is reserved for text.
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

    /// Whether memory for text to be sent is reserved.
    #[inline]
    pub(crate) const fn sends(&self) -> bool {
        self.holds.sending
    }

    /// Whether memory for received text is reserved.
    #[inline]
    pub(crate) const fn receives(&self) -> bool {
        self.holds.receiving
    }

    /// Whether no memory is reserved but that of the place.
    pub(crate) const fn is_at_rest(&self) -> bool {
        !self.holds.sending && !self.holds.receiving
    }

    /// What is reserved, in bytes.
    fn bytes(&self) -> u64 {
        let sending = sent_bytes(self.buffers) + kib(self.sending_kib);
        let receiving = received_bytes(self.buffers) + kib(self.receiving_kib);
        let part = |is_held: bool, bytes: u64| if is_held { bytes } else { 0 };
        let Directions { sending: sends, receiving: receives } = self.holds;
        IDLE_CONNECTION_BYTES + part(sends, sending) + part(receives, receiving)
    }

    /// What is reserved while both directions hold text, in bytes.
    fn most_bytes(&self) -> u64 {
        Self { holds: Directions { sending: true, receiving: true }, ..*self }.bytes()
    }

    /// With a window of `bytes` at most.
    fn with_window(mut self, bytes: u32) -> Self {
        let receive_bytes = self.buffers.receive_bytes.min(bytes);
        self.buffers.receive_bytes = receive_bytes;
        self.initial = self.buffers;
        self
    }

    /// Limits `config` to this share. Connections that get all that they ask for share the settings.
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

    /// Half of the buffers, at least their first sizes; `None` if they have not grown.
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

    /// The sizes on the way to `wanted` that take about `most_bytes` more; `None` if no direction gets enough to be
    /// worth moving its data. A direction that wants less than it has keeps that.
    fn towards(&self, wanted: Buffers, most_bytes: u64) -> Option<Buffers> {
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

/// The memory of text in both directions.
fn text_bytes(buffers: Buffers) -> u64 {
    sent_bytes(buffers) + received_bytes(buffers)
}

/// The memory of text to be sent. Larger buffers have more places: for a range of each 512 bytes, for a part of each
/// 2,048 that is lent.
fn sent_bytes(buffers: Buffers) -> u64 {
    let bytes = u64::from(buffers.send_bytes);
    SendBuffer::most_memory(buffers.send_bytes) + PLACE_BYTES * (bytes / 512 + bytes / 2_048)
}

/// The memory of received text. It stays in buffers of its own, and small pieces are moved into a ring with room for
/// all of it. Eight bytes are for a gap in each 512 bytes of the window.
fn received_bytes(buffers: Buffers) -> u64 {
    let bytes = u64::from(buffers.receive_bytes);
    2 * bytes + 8 * (bytes / 512)
}

/// The memory of a connection without its text, to send and to receive: its ranges of sent numbers, its pieces of text.
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

/// The most text, in bytes, that a direction takes without memory of its own: more than a packet of 1,500 bytes has. A
/// place has room for it twice.
pub(crate) const MEAGER_BYTES: usize = 2 << 10;
/// What a connection that holds no text reserves of [`HostConfig::memory_bytes`](crate::HostConfig::memory_bytes): a
/// cell, its place at the worker, its timers, and room for a little text.
pub const IDLE_CONNECTION_BYTES: u64 = 8 << 10;
/// What BBR knows of each time at which something left.
const BBR_BYTES: u64 = 12 << 10;
/// A place for a piece of text or for a range that was sent.
const PLACE_BYTES: u64 = 64;
const LEAST_BUFFER_BYTES: u32 = 32 << 10;
const SHARES: u64 = 1_024;
/// One growth takes this part of what is left for growth.
const GROWTHS: u64 = 256;
/// And at least so much, as far as it is left: both directions of a small connection can grow.
const LEAST_PART_BYTES: u64 = 64 << 10;
/// Growth allocates and moves data. A direction grows by so much at least, and by an eighth.
const LEAST_GROWTH_BYTES: u32 = 16 << 10;

#[cfg(test)]
mod tests;
