//! The direction from the peers to the TUN: datagrams are decrypted into frames, which are then coalesced.

use std::collections::hash_map::RandomState;
use std::fmt;
use std::hash::BuildHasher;

use anyhow::Result;
use rxo::device::SinkCounters;
use rxo::driver::udp::{Outbox, UdpSink, UdpSource, UdpSourceCounters};
use rxo::driver::wait::{Interest, WaitList};
use rxo::driver::{DeviceSink, clock};
use rxo::frame::{Pool, PoolBuf};
use rxo::{Config, DeviceError, Engine, Frame, FrameSink, Instant, LinkKind, Policy};

use crate::ecn;
use crate::interface::Shared;
use crate::outside::Outside;
use crate::peer::Outcome;

/// Maximum number of packets per receive call: eight messages of 128 datagrams, which no kernel exceeds.
const BATCH: usize = 1_024;

/// The size of the outbox: space for the answers of a handshake, and for packets that waited for it.
const OUTBOX_BYTES: usize = 1 << 20;

/// The bytes of a buffer beyond a packet: the cipher writes its tag, and padding to 16 bytes, behind it.
const BEHIND_BYTES: usize = 64;

/// The state of the direction from the peers to the TUN.
pub(crate) struct Inward {
    udp: UdpSource,
    answers: UdpSink,
    /// The generation of the socket; see [`Outside::renewed`].
    generation: u64,
    outbox: Outbox,
    pool: Pool,
    mtu: u32,
    batch: Vec<Frame<PoolBuf>>,
    /// The receive engine; `None` if coalescing is off.
    engine: Option<Engine<PoolBuf>>,
    tun: DeviceSink,
    refused: u64,
}

impl Inward {
    /// Creates the direction for packets of at most `mtu` bytes.
    pub(crate) fn new(
        outside: &Outside,
        tun: DeviceSink,
        mtu: u32,
        coalesces: bool,
    ) -> Result<Self> {
        let policy = Policy::linux_gro().with_udp_if(tun.capabilities().segments_udp);
        let (link, seed) = (LinkKind::RawIp, RandomState::new().hash_one(0));
        let config = Config { link, batch_frames: BATCH, ..Config::new(policy, seed) };
        let engine = coalesces.then(|| Engine::new(config)).transpose()?;
        let (udp, answers) = (outside.socket().source(), outside.socket().sink());
        let (pool, batch) = (pool(mtu), Vec::with_capacity(BATCH));
        let outbox = Outbox::new(OUTBOX_BYTES);
        let (generation, refused) = (outside.generation(), 0);
        Ok(Self { udp, answers, generation, outbox, pool, mtu, batch, engine, tun, refused })
    }

    /// Adds the descriptors that this direction waits for to `list`: datagrams, or space in the TUN if it was
    /// full.
    pub(crate) fn wait_in<'f>(&'f self, list: &mut WaitList<'f>) {
        if self.tun.is_blocked() {
            list.add(Some(&self.tun), Interest::Writable);
        } else {
            list.add(Some(&self.udp), Interest::Readable);
        }
    }

    /// Receives a batch of datagrams, if there are any, and writes their packets to the TUN.
    pub(crate) fn turn(&mut self, shared: &Shared) -> Result<(), DeviceError> {
        if self.tun.is_blocked() {
            return self.tun.resume();
        }
        let (now, mut interface) = (clock::now(), shared.lock());
        if let Some(socket) = interface.outside.renewed(&mut self.generation) {
            (self.udp, self.answers) = (socket.source(), socket.sink());
        }
        let Self { udp, outbox, pool, batch, refused, .. } = self;
        udp.receive(|train| {
            for datagram in train.datagrams() {
                let Some(mut buffer) = pool.take() else {
                    *refused += 1;
                    continue;
                };
                buffer.set_len(buffer.capacity());
                match interface.decrypt(train.from, datagram, &mut buffer, outbox) {
                    Outcome::Packet(bytes, _) => {
                        buffer.truncate(bytes);
                        match ecn::decapsulate(&mut buffer, train.ecn) {
                            Some(()) => batch.push(Frame::new(buffer, now)),
                            None => *refused += 1,
                        }
                    }
                    Outcome::Refused => *refused += 1,
                    Outcome::Done => {}
                }
            }
        })?;
        drop(interface);
        self.answers.send(&mut self.outbox);
        self.write(now)
    }

    /// Runs the timers of the protocol and sends their messages. `mtu` is that of the TUN, which others may have
    /// raised.
    pub(crate) fn on_time(&mut self, shared: &Shared, mtu: u32) {
        if mtu > self.mtu {
            (self.pool, self.mtu) = (pool(mtu), mtu);
        }
        let Self { outbox, answers, .. } = self;
        shared.lock().on_time(outbox, |outbox| _ = answers.send(outbox));
    }

    fn write(&mut self, now: Instant) -> Result<(), DeviceError> {
        let Self { batch, tun, .. } = self;
        let Some(engine) = &mut self.engine else {
            let sent = tun.transmit(batch.iter().map(Frame::borrowed));
            batch.clear();
            return sent;
        };
        let mut sent = Ok(());
        engine.poll(batch, now, |deliveries| {
            let done = tun.transmit(deliveries.iter());
            sent = std::mem::replace(&mut sent, Ok(())).and(done);
        });
        sent
    }
}

/// Creates the buffers for packets of at most `mtu` bytes, and of 1,500, which a peer with another MTU may send.
fn pool(mtu: u32) -> Pool {
    Pool::new(BATCH, mtu.max(1_500) as usize + BEHIND_BYTES)
}

impl fmt::Display for Inward {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (refused, written) = (self.refused, self.tun.counters());
        let UdpSourceCounters { datagrams, messages, bytes, calls } = self.udp.counters();
        let SinkCounters { frames, packets, dropped_frames, .. } = written;
        write!(
            f,
            "in: {datagrams} datagrams in {messages} messages, {calls} calls, {bytes} bytes, \
             {refused} refused, {frames} packets in {packets} writes to the TUN, \
             {dropped_frames} dropped",
        )
    }
}
