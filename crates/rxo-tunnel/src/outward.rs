//! The direction from the TUN to the peer: large packets are split, encrypted, and sent as trains of
//! datagrams.

use std::fmt;

use boringtun::noise::Tunn;
use rxo::driver::udp::{Outbox, UdpSink, UdpSinkCounters};
use rxo::driver::wait::{Interest, WaitList};
use rxo::driver::{DeviceBuf, TapSource};
use rxo::{DeviceError, Frame, FrameSource};

use crate::cut::Cutter;
use crate::peer::{Outcome, Peer, Session};

/// Maximum number of frames, of up to 64 KiB each, that are read before anything is sent.
const BUDGET: usize = 4;

/// The size of the outbox: space for the datagrams of one batch of frames, unless their segments are tiny.
const OUTBOX_BYTES: usize = 512 << 10;

/// The state of the direction from the TUN to the peer.
pub(crate) struct Outward {
    tun: TapSource,
    udp: UdpSink,
    batch: Vec<Frame<DeviceBuf>>,
    cutter: Cutter,
    outbox: Outbox,
    /// Numbers of frames from the TUN, of packets made from them, and of dropped packets.
    totals: [u64; 3],
}

impl Outward {
    pub(crate) fn new(tun: TapSource, udp: UdpSink) -> Self {
        let (batch, cutter) = (Vec::with_capacity(BUDGET), Cutter::new());
        let (outbox, totals) = (Outbox::new(OUTBOX_BYTES), [0; 3]);
        Self { tun, udp, batch, cutter, outbox, totals }
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
    pub(crate) fn turn(&mut self, peer: &Peer) -> Result<(), DeviceError> {
        if !self.udp.send(&mut self.outbox) {
            return Ok(());
        }
        self.tun.receive(&mut self.batch, BUDGET)?;
        let (mut session, mut batch) = (peer.session(), std::mem::take(&mut self.batch));
        self.totals[0] += batch.len() as u64;
        for frame in batch.drain(..) {
            let is_allowed = Tunn::dst_address(frame.bytes()).is_some_and(|ip| peer.allows(ip));
            if !is_allowed || self.encrypt(&mut session, &frame).is_none() {
                self.totals[2] += 1;
            }
        }
        drop(session);
        self.batch = batch;
        self.udp.send(&mut self.outbox);
        Ok(())
    }

    fn encrypt(&mut self, session: &mut Session, frame: &Frame<DeviceBuf>) -> Option<()> {
        let Self { outbox, udp, totals, .. } = self;
        self.cutter.cut(frame, |packet| {
            let mut outcome = session.encrypt(packet, outbox);
            if outcome == Outcome::Refused && !outbox.is_empty() && udp.send(outbox) {
                outcome = session.encrypt(packet, outbox);
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
