//! The direction from the peers to the TUN: datagrams are decrypted into buffers, which are then coalesced.
//!
//! Several threads may share it. One at a time, the leader, receives a batch of datagrams. All decrypt their batches side by
//! side, one datagram of a peer at a time, and write them to the TUN in the order of arrival. Batches are so small that no
//! datagram is decrypted behind so many later ones that its counter would be refused as too old ([`messages`]).

use std::fmt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Result;
use rxo::device::SinkCounters;
use rxo::driver::DeviceSink;
use rxo::driver::udp::{Outbox, Train, UdpSink, UdpSocket, UdpSource};
use rxo::driver::wait::Interest;
use rxo::frame::{Pool, PoolBuf};
use rxo::io::{Ordered, PacketWriter};
use rxo::{FrameSink, Policy};

use crate::ecn;
use crate::interface::{Interface, Shared};
use crate::peer::{Origin, Outcome};
use crate::waiting::{has_ended, lock, wait_for};

/// Maximum number of datagrams in a message, which no kernel exceeds.
const MOST_IN_MESSAGE: usize = 128;

/// Maximum number of messages that all threads together have received and not written yet.
const MESSAGES: usize = 8;

/// Maximum number of packets that all threads together have. It is also the number of datagrams that one may be late by
/// (boringtun's replay window has 1,024).
const MOST_PACKETS: usize = MESSAGES * MOST_IN_MESSAGE;

/// The MTU for which there are buffers at least: a peer with another MTU may send packets of 1,500 bytes.
const LEAST_MTU: u32 = 1_500;

/// The size of an outbox: space for the answers of a handshake, and for packets that waited for it.
const OUTBOX_BYTES: usize = 1 << 20;

/// Returns the number of messages that each of `threads` threads receives in a call.
pub(crate) const fn messages(threads: usize) -> usize {
    MESSAGES / threads
}

/// The state of the direction from the peers to the TUN, which its threads share.
pub(crate) struct Inward {
    /// Held by the leader.
    entry: Mutex<()>,
    /// The MTU of the TUN, and buffers for its packets.
    buffers: Mutex<(u32, Pool)>,
    pub(crate) exit: Ordered<Exit>,
}

/// The end at which packets leave.
pub(crate) struct Exit {
    pub(crate) tun: PacketWriter<DeviceSink>,
    totals: Totals,
}

/// Numbers of datagrams, of messages, of calls, of bytes, and of what was refused.
type Totals = [u64; 5];

/// The memory of one thread.
pub(crate) struct Decryptor {
    pub(crate) udp: UdpSource,
    pub(crate) answers: UdpSink,
    /// The generation of the socket; see [`Outside::renewed`](crate::outside::Outside::renewed).
    generation: u64,
    batch: Batch,
}

/// A batch of decrypted packets.
struct Batch {
    packets: Vec<PoolBuf>,
    /// Answers of the protocol.
    outbox: Outbox,
    totals: Totals,
}

impl Decryptor {
    pub(crate) fn new(socket: &UdpSocket) -> Self {
        let batch = Batch::new();
        Self { udp: socket.source(), answers: socket.sink(), generation: 0, batch }
    }
}

impl Batch {
    fn new() -> Self {
        let (packets, outbox) = (Vec::with_capacity(MOST_PACKETS), Outbox::new(OUTBOX_BYTES));
        Self { packets, outbox, totals: Totals::default() }
    }

    /// Decrypts the datagrams of `train`, which is in batch `number`, into buffers of `pool`.
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
    /// Creates the direction for packets of at most `mtu` bytes.
    pub(crate) fn new(tun: DeviceSink, mtu: u32, coalesces: bool) -> Result<Self> {
        let policy = if coalesces { Policy::linux_gro() } else { Policy::none() };
        let tun = PacketWriter::with_policy(tun, MOST_PACKETS, policy)?;
        let buffers = Mutex::new((0, tun.pool().clone()));
        let exit = Ordered::new(Exit { tun, totals: Totals::default() });
        let inward = Self { entry: Mutex::new(()), buffers, exit };
        inward.follow_mtu(mtu);
        Ok(inward)
    }

    /// Makes larger buffers if the MTU of the TUN has grown, which others may change.
    pub(crate) fn follow_mtu(&self, mtu: u32) {
        let (mtu, mut buffers) = (mtu.max(LEAST_MTU), lock(&self.buffers));
        if mtu > buffers.0 {
            let mut exit = self.exit.lock();
            exit.tun.set_mtu(mtu);
            *buffers = (mtu, exit.tun.pool().clone());
        }
    }

    /// Receives a batch of datagrams, if there are any, and writes their packets to the TUN. With `stop`, threads share the
    /// direction: the leader waits for datagrams, and each thread until the TUN has taken its packets or `stop` is set. A
    /// thread that is alone passes `None` and does not wait here.
    pub(crate) fn turn(
        &self,
        own: &mut Decryptor,
        shared: &Shared,
        stop: Option<&AtomicBool>,
    ) -> Result<()> {
        let mut entry = Some(lock(&self.entry));
        if has_ended(stop) {
            return Ok(());
        }
        if let Some(socket) = shared.read().outside.renewed(&mut own.generation) {
            (own.udp, own.answers) = (socket.source(), socket.sink());
        }
        if stop.is_some() {
            wait_for(&own.udp, Interest::Readable)?;
        } else if self.exit.lock().tun.sink().is_blocked() {
            return Ok(self.exit.lock().tun.sink_mut().resume()?);
        }
        let (pool, interface) = (lock(&self.buffers).1.clone(), shared.read());
        let Decryptor { udp, answers, batch, .. } = own;
        let mut ticket = None;
        udp.receive(|train| {
            let ticket = ticket.get_or_insert_with(|| self.exit.ticket());
            // The whole batch has been received, so the next thread may lead.
            entry = None;
            batch.decrypt(&train, ticket.number(), &interface, &pool);
        })?;
        drop((entry, interface));
        let Some(ticket) = ticket else { return Ok(()) };
        answers.send(&mut batch.outbox);
        let mut exit = ticket.wait();
        batch.totals[2] += 1;
        add(&mut exit.totals, std::mem::take(&mut batch.totals));
        batch.packets.drain(..).for_each(|packet| exit.tun.push(packet));
        exit.tun.flush()?;
        let goes_on = || stop.is_some_and(|stop| !stop.load(Ordering::Relaxed));
        while exit.tun.sink().is_blocked() && goes_on() {
            wait_for(exit.tun.sink(), Interest::Writable)?;
            exit.tun.sink_mut().resume()?;
        }
        Ok(())
    }
}

fn add(totals: &mut Totals, more: Totals) {
    totals.iter_mut().zip(more).for_each(|(total, more)| *total += more);
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
