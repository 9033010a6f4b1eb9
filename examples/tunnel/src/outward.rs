//! From the TUN to the peer: large packets are cut, encrypted, and sent as trains of datagrams.

use std::fmt;

use rxo::driver::udp::{Outbox, UdpSink};
use rxo::driver::{DeviceBuf, TapSource, wait};
use rxo::{DeviceError, Frame, FrameSource};

use crate::cut::{Cutter, destination};
use crate::peer::{Outcome, Peer, Session};

/// Frames of up to 64 KiB that are read before anything is sent.
const BUDGET: usize = 4;

/// Room for what that many frames become, unless their segments are tiny.
const OUTBOX_BYTES: usize = 512 << 10;

/// The way out.
pub(crate) struct Outward {
    tun: TapSource,
    udp: UdpSink,
    batch: Vec<Frame<DeviceBuf>>,
    cutter: Cutter,
    outbox: Outbox,
    frames: u64,
    packets: u64,
    dropped: u64,
}

impl Outward {
    pub(crate) fn new(tun: TapSource, udp: UdpSink) -> Self {
        Self {
            tun,
            udp,
            batch: Vec::with_capacity(BUDGET),
            cutter: Cutter::new(),
            outbox: Outbox::new(OUTBOX_BYTES),
            frames: 0,
            packets: 0,
            dropped: 0,
        }
    }

    /// Adds to `list` what it waits for: the TUN's packets, or room in the socket if there was none.
    pub(crate) fn wait_in<'f>(&'f self, list: &mut wait::WaitList<'f>) -> std::ops::Range<usize> {
        if self.outbox.is_empty() {
            list.add(Some(&self.tun), wait::Interest::Readable)
        } else {
            list.add(Some(&self.udp), wait::Interest::Writable)
        }
    }

    /// Sends what waits, then takes a batch from the TUN and sends it.
    pub(crate) fn turn(&mut self, peer: &Peer) -> Result<(), DeviceError> {
        if !self.udp.send(&mut self.outbox) {
            return Ok(());
        }
        self.tun.receive(&mut self.batch, BUDGET)?;
        let mut session = peer.session();
        for frame in std::mem::take(&mut self.batch).drain(..) {
            self.frames += 1;
            let is_allowed = destination(frame.bytes()).is_some_and(|ip| peer.allows(ip));
            if !is_allowed || self.encrypt(&mut session, &frame).is_none() {
                self.dropped += 1;
            }
        }
        drop(session);
        self.udp.send(&mut self.outbox);
        Ok(())
    }

    fn encrypt(&mut self, session: &mut Session, frame: &Frame<DeviceBuf>) -> Option<()> {
        let (outbox, udp) = (&mut self.outbox, &mut self.udp);
        let (packets, dropped) = (&mut self.packets, &mut self.dropped);
        self.cutter.cut(frame, |packet| {
            let mut outcome = session.encrypt(packet, outbox);
            if outcome == Outcome::Refused && !outbox.is_empty() && udp.send(outbox) {
                outcome = session.encrypt(packet, outbox);
            }
            match outcome {
                Outcome::Refused => *dropped += 1,
                _ => *packets += 1,
            }
        })
    }
}

impl fmt::Display for Outward {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self { frames, packets, dropped, .. }, sent) = (self, self.udp.counters());
        write!(
            f,
            "out: {frames} frames from the TUN, {packets} packets, {} datagrams in {} messages, \
             {} calls, {} bytes, {} dropped, {} trains refused",
            sent.datagrams,
            sent.messages,
            sent.calls,
            sent.bytes,
            dropped + sent.dropped,
            sent.refused_trains,
        )
    }
}
