//! The direction from the TUN to the peers: large packets are split, encrypted, and sent as trains of
//! datagrams.

use std::fmt;

use rxo::driver::udp::{Outbox, UdpSink, UdpSinkCounters};
use rxo::driver::wait::{Interest, WaitList};
use rxo::driver::{DeviceBuf, TapSource};
use rxo::{DeviceError, Frame, FrameSource};

use crate::cut::Cutter;
use crate::ecn;
use crate::interface::Shared;
use crate::outside::Outside;
use crate::peer::{Outcome, Peer};

/// Maximum number of frames, of up to 64 KiB each, that are read before anything is sent.
const BUDGET: usize = 4;

/// The size of the outbox: space for the datagrams of one batch of frames, unless their segments are tiny.
const OUTBOX_BYTES: usize = 512 << 10;

/// The state of the direction from the TUN to the peers.
pub(crate) struct Outward {
    tun: TapSource,
    udp: UdpSink,
    /// The generation of the socket; see [`Outside::renewed`].
    generation: u64,
    batch: Vec<Frame<DeviceBuf>>,
    cutter: Cutter,
    outbox: Outbox,
    /// Numbers of frames from the TUN, of packets made from them, and of dropped packets.
    totals: [u64; 3],
}

impl Outward {
    pub(crate) fn new(tun: TapSource, outside: &Outside) -> Self {
        let (udp, generation) = (outside.socket().sink(), outside.generation());
        let (batch, cutter) = (Vec::with_capacity(BUDGET), Cutter::new());
        let (outbox, totals) = (Outbox::new(OUTBOX_BYTES), [0; 3]);
        Self { tun, udp, generation, batch, cutter, outbox, totals }
    }

    /// Adds the descriptors that this direction waits for to `list`: packets from the TUN, or space in the
    /// socket if it was full.
    pub(crate) fn wait_in<'f>(&'f self, list: &mut WaitList<'f>) {
        if self.outbox.is_empty() {
            list.add(Some(&self.tun), Interest::Readable);
        } else {
            list.add(Some(&self.udp), Interest::Writable);
        }
    }

    /// Sends waiting datagrams, then reads packets from the TUN, up to a budget, and sends them.
    pub(crate) fn turn(&mut self, shared: &Shared) -> Result<(), DeviceError> {
        if !self.udp.send(&mut self.outbox) {
            return Ok(());
        }
        self.tun.receive(&mut self.batch, BUDGET)?;
        let (mut interface, mut batch) = (shared.lock(), std::mem::take(&mut self.batch));
        if let Some(socket) = interface.outside.renewed(&mut self.generation) {
            self.udp = socket.sink();
        }
        self.totals[0] += batch.len() as u64;
        for frame in batch.drain(..) {
            let peer = interface.peer_for(frame.bytes());
            if peer.and_then(|peer| self.encrypt(peer, &frame)).is_none() {
                self.totals[2] += 1;
            }
        }
        drop(interface);
        self.batch = batch;
        self.udp.send(&mut self.outbox);
        Ok(())
    }

    fn encrypt(&mut self, peer: &mut Peer, frame: &Frame<DeviceBuf>) -> Option<()> {
        let Self { outbox, udp, totals, .. } = self;
        // All packets of a GSO frame have its field.
        let ecn = ecn::of(frame.bytes());
        self.cutter.cut(frame, |packet| {
            let mut outcome = peer.encrypt(packet, ecn, outbox);
            if outcome == Outcome::Refused && !outbox.is_empty() && udp.send(outbox) {
                outcome = peer.encrypt(packet, ecn, outbox);
            }
            totals[if outcome == Outcome::Refused { 2 } else { 1 }] += 1;
        })
    }
}

impl fmt::Display for Outward {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ([frames, packets, dropped], sent) = (self.totals, self.udp.counters());
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
