//! From the peer to the TUN: datagrams are decrypted into frames, and those are coalesced.

use std::collections::hash_map::RandomState;
use std::fmt;
use std::hash::BuildHasher;
use std::net::SocketAddr;
use std::ops::Range;

use anyhow::Result;
use rxo::device::SinkCounters;
use rxo::driver::udp::{Outbox, Train, UdpSink, UdpSource, UdpSourceCounters};
use rxo::driver::{DeviceSink, clock, wait};
use rxo::frame::{Pool, PoolBuf};
use rxo::{Config, DeviceError, Engine, Frame, FrameSink, LinkKind, Policy};

use crate::peer::{Outcome, Peer, Session};

/// Packets that are coalesced together at most.
const BATCH: usize = 512;

/// Room for what a handshake answers, and for the packets that waited for it.
const OUTBOX_BYTES: usize = 1 << 20;

/// The way in.
pub(crate) struct Inward {
    udp: UdpSource,
    answers: UdpSink,
    outbox: Outbox,
    tun: DeviceSink,
    to_tun: ToTun,
    refused: u64,
}

/// Decrypted packets on their way to the TUN.
struct ToTun {
    pool: Pool,
    batch: Vec<Frame<PoolBuf>>,
    /// `None` if packets are not coalesced.
    engine: Option<Engine<PoolBuf>>,
}

impl Inward {
    /// Packets have at most `mtu` bytes.
    pub(crate) fn new(
        udp: UdpSource,
        answers: UdpSink,
        tun: DeviceSink,
        mtu: usize,
        coalesces: bool,
    ) -> Result<Self> {
        let seed = RandomState::new().hash_one(0);
        // A TUN that takes no GSO frames of UDP refuses them, and its sink then writes datagram by datagram.
        let policy = Policy::linux_gro().with_udp_if(true);
        let config =
            Config { link: LinkKind::RawIp, batch_frames: BATCH, seed, ..Config::new(policy) };
        let to_tun = ToTun {
            // The cipher writes its tag, and padding to 16 bytes, behind the packet.
            pool: Pool::new(BATCH, mtu + 64),
            batch: Vec::with_capacity(BATCH),
            engine: if coalesces { Some(Engine::new(config)?) } else { None },
        };
        let outbox = Outbox::new(OUTBOX_BYTES);
        Ok(Self { udp, answers, outbox, tun, to_tun, refused: 0 })
    }

    /// Adds to `list` what it waits for: datagrams, or room in the TUN if there was none.
    pub(crate) fn wait_in<'f>(&'f self, list: &mut wait::WaitList<'f>) -> Range<usize> {
        if self.tun.is_blocked() {
            list.add(Some(&self.tun), wait::Interest::Writable)
        } else {
            list.add(Some(&self.udp), wait::Interest::Readable)
        }
    }

    /// Receives a batch of datagrams and writes what was in them to the TUN.
    pub(crate) fn turn(&mut self, peer: &Peer) -> Result<(), DeviceError> {
        if self.tun.is_blocked() {
            return self.tun.resume();
        }
        let Self { udp, outbox, tun, to_tun, refused, .. } = self;
        let mut written = Ok(());
        let mut session = peer.session();
        udp.receive(|train: Train<'_>| {
            for datagram in train.datagrams() {
                if to_tun.batch.len() == BATCH && written.is_ok() {
                    written = to_tun.write(tun);
                }
                let taken = to_tun.take(&mut session, peer, (train.from, datagram), outbox);
                *refused += u64::from(!taken);
            }
        })?;
        drop(session);
        written?;
        self.to_tun.write(&mut self.tun)?;
        self.answers.send(&mut self.outbox);
        Ok(())
    }

    /// Does what is due by the clock.
    pub(crate) fn on_time(&mut self, peer: &Peer) {
        peer.session().on_time(&mut self.outbox);
        self.answers.send(&mut self.outbox);
    }
}

impl ToTun {
    /// Decrypts a datagram into a frame. Returns whether it was valid.
    fn take(
        &mut self,
        session: &mut Session,
        peer: &Peer,
        (from, datagram): (SocketAddr, &[u8]),
        outbox: &mut Outbox,
    ) -> bool {
        let Some(mut buffer) = self.pool.take() else { return false };
        buffer.set_len(buffer.capacity());
        match session.decrypt(from, datagram, &mut buffer, outbox) {
            Outcome::Packet(bytes, ip) if peer.allows(ip) => {
                buffer.truncate(bytes);
                self.batch.push(Frame::new(buffer, clock::now()));
                true
            }
            Outcome::Packet(..) | Outcome::Refused => false,
            Outcome::Done | Outcome::Answered => true,
        }
    }

    fn write(&mut self, tun: &mut DeviceSink) -> Result<(), DeviceError> {
        let Some(engine) = &mut self.engine else {
            let sent = tun.transmit(self.batch.iter().map(Frame::borrowed));
            self.batch.clear();
            return sent;
        };
        let mut sent = Ok(());
        engine.poll(&mut self.batch, clock::now(), |deliveries| {
            let done = tun.transmit(deliveries.iter());
            sent = std::mem::replace(&mut sent, Ok(())).and(done);
        });
        sent
    }
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
