//! The direction from the peers to the TUN: datagrams are decrypted into packets, which are then coalesced.
//!
//! Several threads may share the direction. One thread at a time, the leader, receives a batch of datagrams. The
//! threads decrypt their batches in parallel, except that two datagrams of one peer are decrypted one after the other.
//! The packets are written to the TUN in the order of arrival. The batches are small ([`messages`]), because a datagram
//! that is decrypted after too many later ones would be refused as a replay.

use std::fmt;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;

use anyhow::Result;
use rxo::device::{Descriptors, SinkCounters};
use rxo::driver::udp::{Outbox, Train, UdpSocket, UdpSource};
use rxo::driver::wait::Interest;
use rxo::frame::{Pool, PoolBuf};
use rxo::io::{Ordered, PacketWriter};
use rxo::{FrameSink, Policy};

use crate::ecn;
use crate::interface::{Interface, Shared};
use crate::peer::{Origin, Outcome};
use crate::waiting::{add, lock, wait_for};

/// Maximum number of datagrams that a kernel delivers in one message.
const MOST_IN_MESSAGE: usize = 128;

/// Maximum number of messages that all threads together process at a time, from receiving to writing.
const MESSAGES: usize = 8;

/// Maximum number of packets that all threads together process at a time. A datagram is decrypted after at most this
/// many later ones, which is the size of boringtun's replay window (1,024).
const MOST_PACKETS: usize = MESSAGES * MOST_IN_MESSAGE;

/// The minimum buffer size, as an MTU in bytes: a peer with a larger MTU than this interface may send packets
/// of 1,500 bytes.
const LEAST_MTU: u32 = 1_500;

/// The number of bytes of a buffer beyond the MTU, for the padding and the authentication tag of a datagram.
const SPARE_BYTES: usize = 64;

/// The size of an outbox in bytes: enough for handshake messages, and for packets that waited for a handshake.
const OUTBOX_BYTES: usize = 1 << 20;

/// Returns the number of messages that each of `threads` threads receives per system call.
pub(crate) const fn messages(threads: usize) -> usize {
    MESSAGES / threads
}

/// The state of the direction from the peers to the TUN, which its threads share.
pub(crate) struct Inward<S> {
    /// The lock that the leader holds while it receives.
    entry: Mutex<()>,
    /// The buffers into which all threads decrypt.
    buffers: Mutex<Pool>,
    /// The TUN.
    pub(crate) exit: Ordered<PacketWriter<S>>,
    /// The totals of the batches, and the counters of the TUN. Apart from the exit, which a thread holds while it waits
    /// for the TUN.
    figures: Mutex<(Totals, SinkCounters)>,
}

/// Totals, in this order: datagrams, messages, system calls, bytes, and refused datagrams.
type Totals = [u64; 5];

/// The memory of one thread.
pub(crate) struct Decryptor {
    pub(crate) udp: UdpSource,
    /// The generation of the socket; see [`Outside::renewed`](crate::outside::Outside::renewed).
    generation: u64,
    batch: Batch,
}

/// A batch of decrypted packets.
struct Batch {
    packets: Vec<PoolBuf>,
    /// Protocol messages to send in answer to datagrams of the batch.
    outbox: Outbox,
    totals: Totals,
}

impl Decryptor {
    pub(crate) fn new(socket: &UdpSocket) -> Self {
        Self { udp: socket.source(), generation: 0, batch: Batch::new() }
    }
}

impl Batch {
    fn new() -> Self {
        let (packets, outbox) = (Vec::with_capacity(MOST_PACKETS), Outbox::new(OUTBOX_BYTES));
        Self { packets, outbox, totals: Totals::default() }
    }

    /// Decrypts the datagrams of `train`, a message of batch `number`, into buffers of `pool`.
    fn decrypt(&mut self, train: &Train<'_>, number: u64, interface: &Interface, pool: &Pool) {
        let origin = Origin { from: train.from, number };
        for datagram in train.datagrams() {
            let Some(mut buffer) = pool.take() else {
                self.totals[4] += 1;
                continue;
            };
            buffer.set_len(buffer.capacity());
            match interface.decrypt(origin, datagram, &mut buffer, &mut self.outbox) {
                Outcome::Packet(bytes, _) => {
                    buffer.truncate(bytes);
                    match ecn::decapsulate(&mut buffer, train.ecn) {
                        Some(()) => self.packets.push(buffer),
                        None => self.totals[4] += 1,
                    }
                }
                Outcome::Refused => self.totals[4] += 1,
                Outcome::Done => {}
            }
        }
        let more = [train.datagrams().len() as u64, 1, 0, train.bytes.len() as u64, 0];
        add(&mut self.totals, more);
    }
}

impl<S: FrameSink + Descriptors> Inward<S> {
    /// Creates the direction for packets of at most `mtu` bytes, or 1,500 bytes if `mtu` is smaller. Packets
    /// are coalesced if `coalesces` is set.
    pub(crate) fn new(tun: S, mtu: u32, coalesces: bool) -> Result<Self> {
        let policy = if coalesces { Policy::linux_gro() } else { Policy::none() };
        let mut tun = PacketWriter::with_policy(tun, MOST_PACKETS, policy)?;
        tun.set_mtu(mtu.max(LEAST_MTU));
        let (entry, buffers) = (Mutex::new(()), Mutex::new(tun.pool().clone()));
        Ok(Self { entry, buffers, exit: Ordered::new(tun), figures: Mutex::default() })
    }

    /// Allocates larger buffers if `mtu`, the current MTU of the TUN in bytes, exceeds the former one. Other
    /// programs may change the MTU. Does not wait for the TUN.
    pub(crate) fn follow_mtu(&self, mtu: u32) {
        let (bytes, mut buffers) = (mtu as usize + SPARE_BYTES, lock(&self.buffers));
        if bytes > buffers.bytes_each() {
            *buffers = Pool::new(MOST_PACKETS, bytes);
        }
    }

    /// Receives one batch of datagrams, if any have arrived, and writes their packets to the TUN. Threads that share
    /// the direction pass `stop`: the leader waits for datagrams, and a thread whose packets the TUN does not accept
    /// yet waits for the TUN until `stop` is set. A single thread passes `None`, and does not wait.
    pub(crate) fn turn(
        &self,
        own: &mut Decryptor,
        shared: &Shared,
        stop: Option<&AtomicBool>,
    ) -> Result<()> {
        let mut entry = Some(lock(&self.entry));
        if let Some(socket) = shared.read().outside.renewed(&mut own.generation) {
            own.udp = socket.source();
        }
        if stop.is_none() && self.exit.lock().sink().is_blocked() {
            return self.write(&mut self.exit.lock()).map(drop);
        }
        wait_for(&own.udp, Interest::Readable, stop)?;
        let (pool, interface) = (lock(&self.buffers).clone(), shared.read());
        let Decryptor { udp, batch, .. } = own;
        let mut ticket = None;
        udp.receive(|train| {
            let ticket = ticket.get_or_insert_with(|| self.exit.ticket());
            // The whole batch has been received, so the next thread may lead.
            entry = None;
            batch.decrypt(&train, ticket.number(), &interface, &pool);
        })?;
        // Answers are rare. Those for which the socket has no room leave after another batch.
        if !batch.outbox.is_empty() {
            interface.outside.socket().sink().send(&mut batch.outbox);
        }
        drop((entry, interface));
        let Some(ticket) = ticket else { return Ok(()) };
        let mut tun = ticket.wait();
        batch.totals[2] += 1;
        add(&mut lock(&self.figures).0, std::mem::take(&mut batch.totals));
        batch.packets.drain(..).for_each(|packet| tun.push(packet));
        while !self.write(&mut tun)? && wait_for(tun.sink(), Interest::Writable, stop)? {}
        Ok(())
    }

    /// Passes the held packets to the TUN, and records its counters. Returns `false` if the TUN is full.
    fn write(&self, tun: &mut PacketWriter<S>) -> Result<bool> {
        let written = tun.sink_mut().resume().and_then(|()| tun.flush());
        lock(&self.figures).1 = tun.sink().counters();
        written?;
        Ok(!tun.sink().is_blocked())
    }
}

impl<S> fmt::Display for Inward<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ([datagrams, messages, calls, bytes, refused], written) = *lock(&self.figures);
        let SinkCounters { frames, packets, dropped_frames, .. } = written;
        write!(
            f,
            "in: {datagrams} datagrams in {messages} messages, {calls} calls, {bytes} bytes, \
             {refused} refused, {frames} packets in {packets} writes to the TUN, \
             {dropped_frames} dropped",
        )
    }
}

#[cfg(test)]
mod tests;
