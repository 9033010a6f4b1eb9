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
use rxo::device::SinkCounters;
use rxo::driver::DeviceSink;
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

/// The size of an outbox in bytes: enough for handshake messages, and for packets that waited for a handshake.
const OUTBOX_BYTES: usize = 1 << 20;

/// Returns the number of messages that each of `threads` threads receives per system call.
pub(crate) const fn messages(threads: usize) -> usize {
    MESSAGES / threads
}

/// The state of the direction from the peers to the TUN, which its threads share.
pub(crate) struct Inward {
    /// The lock that the leader holds while it receives.
    entry: Mutex<()>,
    /// The MTU for which the buffers are large enough, in bytes, and the pool of these buffers.
    buffers: Mutex<(u32, Pool)>,
    pub(crate) exit: Ordered<Exit>,
}

/// The output of the direction: the TUN, and the totals of written batches.
pub(crate) struct Exit {
    pub(crate) tun: PacketWriter<DeviceSink>,
    totals: Totals,
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

impl Inward {
    /// Creates the direction for packets of at most `mtu` bytes, or 1,500 bytes if `mtu` is smaller. Packets
    /// are coalesced if `coalesces` is set.
    pub(crate) fn new(tun: DeviceSink, mtu: u32, coalesces: bool) -> Result<Self> {
        let policy = if coalesces { Policy::linux_gro() } else { Policy::none() };
        let tun = PacketWriter::with_policy(tun, MOST_PACKETS, policy)?;
        let buffers = Mutex::new((0, tun.pool().clone()));
        let exit = Ordered::new(Exit { tun, totals: Totals::default() });
        let inward = Self { entry: Mutex::new(()), buffers, exit };
        inward.follow_mtu(mtu);
        Ok(inward)
    }

    /// Allocates larger buffers if `mtu`, the current MTU of the TUN in bytes, exceeds the former one. Other
    /// programs may change the MTU.
    pub(crate) fn follow_mtu(&self, mtu: u32) {
        let (mtu, mut buffers) = (mtu.max(LEAST_MTU), lock(&self.buffers));
        if mtu > buffers.0 {
            let mut exit = self.exit.lock();
            exit.tun.set_mtu(mtu);
            *buffers = (mtu, exit.tun.pool().clone());
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
        if stop.is_none() && self.exit.lock().tun.sink().is_blocked() {
            return Ok(self.exit.lock().tun.sink_mut().resume()?);
        }
        wait_for(&own.udp, Interest::Readable, stop)?;
        let (pool, interface) = (lock(&self.buffers).1.clone(), shared.read());
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
        let mut exit = ticket.wait();
        batch.totals[2] += 1;
        add(&mut exit.totals, std::mem::take(&mut batch.totals));
        batch.packets.drain(..).for_each(|packet| exit.tun.push(packet));
        exit.tun.flush()?;
        while exit.tun.sink().is_blocked() && wait_for(exit.tun.sink(), Interest::Writable, stop)? {
            exit.tun.sink_mut().resume()?;
        }
        Ok(())
    }
}

impl fmt::Display for Inward {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let exit = self.exit.lock();
        let [datagrams, messages, calls, bytes, refused] = exit.totals;
        let SinkCounters { frames, packets, dropped_frames, .. } = exit.tun.sink().counters();
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
