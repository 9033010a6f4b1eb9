//! Hub: the nic, the switch, and a queue for each guest.
//!
//! The hub is the part that guests share. A guest's worker has a [`PortSource`](super::port::PortSource) and
//! a [`PortSink`](super::port::PortSink) of the hub in place of a nic.
//!
//! Contract: frames from the nic for one guest are not copied. Frames for several guests, between guests, and
//! for a guest without free buffers are copied, which allocates. A full nic stops the guests from sending; a
//! full guest stops nobody.

use std::borrow::Cow;

use rxo_device::{DeviceError, FrameSink, FrameSource};
use rxo_frame::{Frame, Gather, Instant};
use rxo_wire::VLAN_TAG_BYTES;

use super::queue::Queue;
use crate::switch::{Forward, Port, PortSet, Switch};
use crate::worker::WorkerConfig;
use crate::worker::account::{Account, Sendings};
use crate::worker::balance::{Snapshot, Stage};
use crate::worker::outlet::Outlet;
use crate::worker::overload::CoDel;
use crate::worker::ring::Ring;
use crate::worker::work_clock::WorkClock;

/// The nic's port. Guest `n`, counted from 0, has port `n + 1`.
pub(super) const NIC: Port = Port::new(0);

pub(super) struct Hub<I: FrameSource, O> {
    pub(super) source: I,
    pub(super) outlet: Outlet<O>,
    pub(super) switch: Switch,
    /// The queues, one for each guest.
    pub(super) queues: Vec<Queue<I::Buffer>>,
    /// Frames dropped because more arrived than the guests' workers could take.
    pub(super) overload_drops: u64,
    pub(super) ring: Ring,
    pub(super) account: Account,
    pub(super) sendings: Sendings,
    /// Frames passed to the nic's sink.
    given: u64,
    codel: Option<CoDel>,
    batch: Vec<Frame<I::Buffer>>,
    budget: usize,
    now: Instant,
}

/// The outcome for a packet from a guest.
pub(super) struct Passed {
    /// Frames that left by a port.
    pub(super) frames: u64,
    /// Frames that the switch dropped, or whose VLAN no other port carries.
    pub(super) dropped: u64,
    /// Bytes of frames that were copied before they left by the nic.
    pub(super) copied_bytes: u64,
}

impl<I: FrameSource<Buffer: From<Vec<u8>>>, O: FrameSink> Hub<I, O> {
    pub(super) fn new((source, sink): (I, O), switch: Switch, config: &WorkerConfig) -> Self {
        let guests = switch.port_count() - 1;
        Self {
            source,
            outlet: Outlet::new(sink),
            switch,
            queues: (0..guests).map(|_| Queue::new()).collect(),
            overload_drops: 0,
            ring: Ring::new(),
            account: Account::default(),
            sendings: Sendings::default(),
            given: 0,
            codel: config.overload.map(CoDel::new),
            batch: Vec::with_capacity(config.budget_frames),
            budget: config.budget_frames,
            now: Instant::ZERO,
        }
    }

    /// Receives a batch from the nic and puts each frame into the queues of its guests. Returns the number of
    /// frames. Without `is_worth_a_look`, only receives frames that the source has delayed.
    ///
    /// # Errors
    /// If the nic failed. Frames received before that are in the queues.
    pub(super) fn receive(
        &mut self,
        is_worth_a_look: bool,
        clock: impl FnOnce(&mut WorkClock) -> Instant,
    ) -> Result<usize, DeviceError> {
        let resumed = self.outlet.resume();
        let is_worth_a_look = is_worth_a_look || self.source.poll_at().is_some();
        let received =
            if is_worth_a_look { self.source.receive(&mut self.batch, self.budget) } else { Ok(0) };
        self.now = clock(&mut self.ring.work);
        let is_all = self.batch.len() < self.budget;
        self.ring.look(is_all, &mut self.source);
        if is_worth_a_look && is_all && !self.source.is_starved() {
            self.account.settle(&mut self.source);
        }
        if let Some(codel) = &mut self.codel {
            let work = &self.ring.work;
            self.overload_drops += codel.drop_from(&mut self.batch, is_all, self.now, work);
        }
        let mut batch = std::mem::take(&mut self.batch);
        batch.drain(..).for_each(|frame| self.distribute(frame));
        self.batch = batch;
        resumed.and(received)
    }

    /// Puts a frame from the nic into the queues of its guests.
    fn distribute(&mut self, frame: Frame<I::Buffer>) {
        let Forward::To(ports) = self.switch.forward(NIC, &frame, self.now) else { return };
        let Some(last) = ports.last() else { return };
        self.copy_to(ports.without(last), NIC, &frame);
        let tagging = self.switch.tagging(NIC, last, &frame);
        let queue = &mut self.queues[last.index() - 1];
        if tagging.strips {
            queue.push_copy(frame.bytes().len(), || tagging.copy(&frame));
        } else {
            queue.push(Frame { vlan: tagging.tag, ..frame });
        }
    }

    fn copy_to<B: AsRef<[u8]>>(&mut self, ports: PortSet, from: Port, frame: &Frame<B>) {
        for port in ports {
            let tagging = self.switch.tagging(from, port, frame);
            self.queues[port.index() - 1].push_copy(frame.bytes().len(), || tagging.copy(frame));
        }
    }

    /// Forwards packets from the guest at port `from`: to the nic, and as copies to other guests.
    ///
    /// # Errors
    /// If the nic failed.
    pub(super) fn transmit<'a, G: Gather<'a>>(
        &mut self,
        from: Port,
        batch: impl ExactSizeIterator<Item = G>,
        mut passed: impl FnMut(G, Passed),
    ) -> Result<(), DeviceError> {
        let mut leaving: Vec<Frame<Cow<'a, [u8]>>> = Vec::with_capacity(batch.len());
        for packet in batch {
            let mut result = Passed { frames: 0, dropped: 0, copied_bytes: 0 };
            packet.for_each_frame(|frame| {
                let ports = match self.switch.forward(from, &frame, self.now) {
                    Forward::To(ports) if !ports.is_empty() => ports,
                    Forward::To(_) | Forward::Drop(_) => return result.dropped += 1,
                };
                result.frames += 1;
                self.copy_to(ports.without(NIC), from, &frame);
                if ports.contains(NIC) {
                    let tagging = self.switch.tagging(from, NIC, &frame);
                    leaving.push(if tagging.strips {
                        result.copied_bytes += (frame.bytes.len() - VLAN_TAG_BYTES) as u64;
                        tagging.copy(&frame).map_bytes(Cow::Owned)
                    } else {
                        Frame { vlan: tagging.tag, ..frame }.map_bytes(Cow::Borrowed)
                    });
                }
            });
            passed(packet, result);
        }
        if leaving.is_empty() {
            return Ok(());
        }
        self.given += leaving.len() as u64;
        self.outlet.sink.transmit(leaving.iter().map(Frame::borrowed))
    }

    /// Returns the counters of the switch and of the nic's sink, between two turns, given that guests have
    /// sent `sent` frames.
    pub(super) fn snapshot(&mut self, sent: u64) -> Snapshot {
        let received = self.source.counters().frames;
        let entered = received.saturating_sub(self.overload_drops) + sent;
        let accounted = self.switch.counters().frames();
        let switch = Stage { entered, accounted };
        Snapshot { switch, nic_out: self.outlet.stage(self.given), ..Snapshot::default() }
    }
}
