//! The direction from the TUN to the peers: GSO frames are split, encrypted, and sent as trains of datagrams.
//!
//! Several threads may share it. One at a time, the leader, takes frames for one peer with a ticket, and locks that peer
//! before the next thread leads. So the counters of a session have the order of its packets, and with the tickets its
//! datagrams leave in this order. A thread that waits for its turn or for a full socket holds neither a peer nor the
//! interface.

use std::fmt;
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, MutexGuard};

use anyhow::Result;
use rxo::device::Descriptors;
use rxo::driver::udp::{Outbox, UdpSink, UdpSinkCounters, UdpSocket};
use rxo::driver::wait::Interest;
use rxo::io::{Ordered, PacketSplitter};
use rxo::{Frame, FrameSource, LinkKind};

use crate::ecn;
use crate::interface::{Interface, Shared};
use crate::peer::{HANDSHAKE_BYTES, Outcome, Peer};
use crate::waiting::{add, lock, wait_for};

/// Maximum number of frames, of up to 64 KiB each, that are read in one batch.
const BUDGET: usize = 4;

/// The size of an outbox: space for the datagrams of one batch of frames. The segments of Linux's TCP carry at least 8 bytes
/// (an MSS of 48, less 40 of options), and then take less than a handshake message. Memory is not touched before its use.
const OUTBOX_BYTES: usize = BUDGET * (1 << 16) / 8 * HANDSHAKE_BYTES;

/// The state of the direction from the TUN to the peers, which its threads share.
pub(crate) struct Outward<S: FrameSource> {
    pub(crate) entry: Mutex<Entry<S>>,
    pub(crate) exit: Ordered<Exit>,
    /// The totals of the batches, and the counters of the socket. Apart from the exit, which a thread holds while it
    /// waits for the socket.
    figures: Mutex<(Totals, UdpSinkCounters)>,
}

/// The input of the direction, which the leader locks: the TUN, and frames that were read from it.
pub(crate) struct Entry<S: FrameSource> {
    pub(crate) tun: S,
    /// Frames that were read from the TUN and are not part of a batch yet.
    waiting: Vec<Frame<S::Buffer>>,
}

/// The end at which datagrams leave.
pub(crate) struct Exit {
    pub(crate) udp: UdpSink,
    /// The generation of the socket; see [`Outside::renewed`](crate::outside::Outside::renewed).
    generation: u64,
}

/// Numbers of frames from the TUN, of packets made from them, and of dropped packets.
type Totals = [u64; 3];

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

    /// Encrypts the batch for `peer` into the outbox, or drops it without one. Frees the peer.
    fn encrypt(&mut self, mut peer: Option<MutexGuard<'_, Peer>>) -> Totals {
        let Self { batch, splitter, outbox } = self;
        let mut totals = [batch.len() as u64, 0, 0];
        for frame in batch.drain(..) {
            // All packets of a GSO frame have its field.
            let ecn = ecn::of(frame.bytes());
            let split = peer.as_mut().and_then(|peer| {
                splitter.split(&frame, |packet| {
                    let outcome = peer.encrypt(packet, ecn, outbox);
                    totals[if outcome == Outcome::Refused { 2 } else { 1 }] += 1;
                })
            });
            totals[2] += u64::from(split.is_none());
        }
        totals
    }
}

impl<S: FrameSource + Descriptors> Outward<S> {
    pub(crate) fn new(tun: S, socket: &UdpSocket) -> Self {
        let entry = Mutex::new(Entry { tun, waiting: Vec::with_capacity(BUDGET) });
        let exit = Ordered::new(Exit { udp: socket.sink(), generation: 0 });
        Self { entry, exit, figures: Mutex::default() }
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
        if own.is_blocked() && !self.send(&mut self.exit.lock(), own) {
            return Ok(false);
        }
        let mut entry = lock(&self.entry);
        if entry.waiting.is_empty() {
            wait_for(&entry.tun, Interest::Readable, stop)?;
        }
        let interface = shared.read();
        let slot = entry.take(&interface, &mut own.batch)?;
        let (ticket, have_others) = (self.exit.ticket(), !entry.waiting.is_empty());
        let peer = slot.and_then(|slot| interface.peers.get(slot));
        drop(entry);
        let totals = own.encrypt(peer);
        drop(interface);
        let mut exit = ticket.wait();
        // Without packets, too: the former socket holds its port until it is dropped.
        if let Some(socket) = shared.read().outside.renewed(&mut exit.generation) {
            exit.udp = socket.sink();
        }
        add(&mut lock(&self.figures).0, totals);
        while !self.send(&mut exit, own) && wait_for(&exit.udp, Interest::Writable, stop)? {}
        Ok(have_others)
    }

    /// Sends the datagrams of `own`, and records the counters of the socket. Returns `false` if the socket is full.
    fn send(&self, exit: &mut Exit, own: &mut Encryptor<S::Buffer>) -> bool {
        let is_sent = exit.udp.send(&mut own.outbox);
        lock(&self.figures).1 = exit.udp.counters();
        is_sent
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
        let ([frames, packets, dropped], sent) = *lock(&self.figures);
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
