//! The direction from the TUN to the peers: GSO frames are split, encrypted, and sent as trains of datagrams.
//!
//! Several threads may share the direction. One thread at a time, the leader, reads frames for one peer, and locks that
//! peer before another thread becomes the leader. The thread locks the socket before it unlocks the peer. As a result,
//! the packets of a session are encrypted and sent in the order in which the host sent them.

use std::fmt;
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, MutexGuard};

use anyhow::Result;
use rxo::device::Descriptors;
use rxo::driver::udp::{Outbox, UdpSink, UdpSinkCounters, UdpSocket};
use rxo::driver::wait::Interest;
use rxo::io::PacketSplitter;
use rxo::{Frame, FrameSource, LinkKind};

use crate::ecn;
use crate::interface::{Interface, Shared};
use crate::peer::{Outcome, Peer};
use crate::waiting::{has_ended, lock, send, wait_for};

/// Maximum number of frames, of up to 64 KiB each, that are read in one batch.
const BUDGET: usize = 4;

/// The size of an outbox in bytes: enough for the datagrams of one batch of frames, unless their segments are
/// tiny.
const OUTBOX_BYTES: usize = 512 << 10;

/// The state of the direction from the TUN to the peers, which its threads share.
pub(crate) struct Outward<S: FrameSource> {
    pub(crate) entry: Mutex<Entry<S>>,
    exit: Mutex<Exit>,
}

/// The input of the direction, which the leader locks: the TUN, and frames that were read from it.
pub(crate) struct Entry<S: FrameSource> {
    pub(crate) tun: S,
    /// Frames that were read from the TUN and are not part of a batch yet.
    waiting: Vec<Frame<S::Buffer>>,
}

/// The output of the direction: the UDP socket, and totals.
struct Exit {
    udp: UdpSink,
    /// The generation of the UDP socket in use; see [`Outside::renewed`](crate::outside::Outside::renewed).
    generation: u64,
    /// Totals, in this order: frames from the TUN, encrypted packets, and dropped packets.
    totals: [u64; 3],
}

/// The memory of one thread.
pub(crate) struct Encryptor<B> {
    batch: Vec<Frame<B>>,
    splitter: PacketSplitter,
    outbox: Outbox,
}

impl<B: AsRef<[u8]>> Encryptor<B> {
    pub(crate) fn new() -> Self {
        let (splitter, outbox) = (PacketSplitter::new(LinkKind::RawIp), Outbox::new(OUTBOX_BYTES));
        Self { batch: Vec::with_capacity(BUDGET), splitter, outbox }
    }

    /// Returns `true` if datagrams wait to be sent, because the socket was full.
    pub(crate) const fn is_blocked(&self) -> bool {
        !self.outbox.is_empty()
    }
}

impl<S: FrameSource + Descriptors> Outward<S> {
    pub(crate) fn new(tun: S, socket: &UdpSocket) -> Self {
        let entry = Mutex::new(Entry { tun, waiting: Vec::with_capacity(BUDGET) });
        let exit = Exit { udp: socket.sink(), generation: 0, totals: [0; 3] };
        Self { entry, exit: Mutex::new(exit) }
    }

    /// Reads frames from the TUN, at most [`BUDGET`], and sends those for one peer. Returns `true` if frames for other
    /// peers were read, which wait for the next call. Threads that share the direction pass `stop`: the leader waits
    /// for frames, and a thread whose datagrams do not fit into the socket waits for the socket until `stop` is set. A
    /// single thread passes `None`, and does not wait: its next call sends datagrams that did not fit.
    pub(crate) fn turn(
        &self,
        own: &mut Encryptor<S::Buffer>,
        shared: &Shared,
        stop: Option<&AtomicBool>,
    ) -> Result<bool> {
        if own.is_blocked() && !lock(&self.exit).udp.send(&mut own.outbox) {
            return Ok(false);
        }
        let mut entry = lock(&self.entry);
        if has_ended(stop) {
            return Ok(false);
        }
        if stop.is_some() && entry.waiting.is_empty() {
            wait_for(&entry.tun, Interest::Readable)?;
        }
        let interface = shared.read();
        let slot = entry.take(&interface, &mut own.batch)?;
        if own.batch.is_empty() {
            // The former socket occupies its port until it is dropped.
            if let Ok(mut exit) = self.exit.try_lock()
                && let Some(socket) = interface.outside.renewed(&mut exit.generation)
            {
                exit.udp = socket.sink();
            }
            return Ok(false);
        }
        let peer = slot.and_then(|slot| interface.peer(slot));
        let have_others = !entry.waiting.is_empty();
        drop(entry);
        let mut exit = self.encrypt(own, peer, stop)?;
        if let Some(socket) = interface.outside.renewed(&mut exit.generation) {
            exit.udp = socket.sink();
        }
        // The interface is unlocked first: sending may wait for the socket, and must not block a change of
        // settings.
        drop(interface);
        send(&mut exit.udp, &mut own.outbox, stop)?;
        Ok(have_others)
    }

    /// Splits and encrypts the batch for `peer` into the outbox, and updates the totals. Without a peer, drops the
    /// batch. Sends the outbox whenever it is full. Returns the locked exit; the exit is locked before the peer is
    /// unlocked, so that no other thread sends datagrams of this peer first.
    fn encrypt(
        &self,
        own: &mut Encryptor<S::Buffer>,
        mut peer: Option<MutexGuard<'_, Peer>>,
        stop: Option<&AtomicBool>,
    ) -> Result<MutexGuard<'_, Exit>> {
        let Encryptor { batch, splitter, outbox } = own;
        let (mut totals, mut locked, mut sent) = ([batch.len() as u64, 0, 0], None, Ok(()));
        for frame in batch.drain(..) {
            // All packets of a GSO frame have the ECN field of the frame.
            let ecn = ecn::of(frame.bytes());
            let split = peer.as_mut().and_then(|peer| {
                splitter.split(&frame, |packet| {
                    let mut outcome = peer.encrypt(packet, ecn, outbox);
                    if outcome == Outcome::Refused && !outbox.is_empty() {
                        let exit = locked.get_or_insert_with(|| lock(&self.exit));
                        sent = send(&mut exit.udp, outbox, stop);
                        outcome = peer.encrypt(packet, ecn, outbox);
                    }
                    totals[if outcome == Outcome::Refused { 2 } else { 1 }] += 1;
                })
            });
            totals[2] += u64::from(split.is_none());
        }
        let mut exit = locked.unwrap_or_else(|| lock(&self.exit));
        exit.totals.iter_mut().zip(totals).for_each(|(total, more)| *total += more);
        sent.map(|()| exit)
    }
}

impl<S: FrameSource> Entry<S> {
    /// Moves consecutive frames for one peer from the waiting frames to `batch`, and returns the slot of this peer.
    /// `None` if there are no frames, or if no peer is responsible for their destination. Reads frames from the TUN if
    /// none wait.
    fn take(
        &mut self,
        interface: &Interface,
        batch: &mut Vec<Frame<S::Buffer>>,
    ) -> Result<Option<u32>> {
        let Self { tun, waiting } = self;
        if waiting.is_empty() {
            tun.receive(waiting, BUDGET)?;
        }
        let mut slots = waiting.iter().map(|frame| interface.slot_for(frame.bytes()));
        let Some(slot) = slots.next() else { return Ok(None) };
        let count = 1 + slots.take_while(|other| *other == slot).count();
        batch.extend(waiting.drain(..count));
        Ok(slot)
    }
}

impl<S: FrameSource> fmt::Display for Outward<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let exit = lock(&self.exit);
        let ([frames, packets, dropped], sent) = (exit.totals, exit.udp.counters());
        let UdpSinkCounters { datagrams, messages, calls, bytes, refused_trains, .. } = sent;
        let dropped = dropped + sent.dropped;
        write!(
            f,
            "out: {frames} frames from the TUN, {packets} packets, {datagrams} datagrams in \
             {messages} messages, {calls} calls, {bytes} bytes, {dropped} dropped, \
             {refused_trains} trains refused",
        )
    }
}

#[cfg(test)]
mod tests;
