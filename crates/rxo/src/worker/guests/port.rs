//! Ends of a switch port, which a guest's worker has in place of a nic.

use std::cell::RefCell;
use std::rc::Rc;

use rxo_device::{
    DeviceError, FrameSink, FrameSource, SinkCapabilities, SinkCounters, SourceCapabilities,
    SourceCounters,
};
use rxo_frame::{Frame, Gather, Instant};

use super::hub::{Hub, Passed};
use crate::switch::Port;

/// The source of a guest's worker: frames that the switch has forwarded to the guest.
pub struct PortSource<I: FrameSource, O> {
    hub: Rc<RefCell<Hub<I, O>>>,
    port: Port,
}

/// The sink of a guest's worker: passes the guest's frames to the switch.
pub struct PortSink<I: FrameSource, O> {
    hub: Rc<RefCell<Hub<I, O>>>,
    port: Port,
    counters: SinkCounters,
}

/// Creates source and sink of a port.
pub(super) fn ends<I: FrameSource, O>(
    hub: &Rc<RefCell<Hub<I, O>>>,
    port: Port,
) -> (PortSource<I, O>, PortSink<I, O>) {
    let source = PortSource { hub: Rc::clone(hub), port };
    (source, PortSink { hub: Rc::clone(hub), port, counters: SinkCounters::default() })
}

impl<I: FrameSource<Buffer: From<Vec<u8>>>, O> FrameSource for PortSource<I, O> {
    type Buffer = I::Buffer;

    /// Frames from other guests may be GSO frames and have a checksum status, whatever the nic does.
    fn capabilities(&self) -> SourceCapabilities {
        let nic = self.hub.borrow().source.capabilities();
        SourceCapabilities { says_checksum: true, gives_gso: true, ..nic }
    }

    fn receive(
        &mut self,
        batch: &mut Vec<Frame<Self::Buffer>>,
        budget: usize,
    ) -> Result<usize, DeviceError> {
        Ok(self.hub.borrow_mut().queues[self.port.index() - 1].take(batch, budget))
    }

    fn counters(&mut self) -> SourceCounters {
        self.hub.borrow().queues[self.port.index() - 1].counters
    }

    fn expect_holds(&mut self) {
        self.hub.borrow_mut().source.expect_holds();
    }

    /// Returns [`Instant::ZERO`] if frames are waiting, because no system event reports them.
    fn poll_at(&self) -> Option<Instant> {
        let is_empty = self.hub.borrow().queues[self.port.index() - 1].is_empty();
        (!is_empty).then_some(Instant::ZERO)
    }
}

impl<I: FrameSource<Buffer: From<Vec<u8>>>, O: FrameSink> FrameSink for PortSink<I, O> {
    fn capabilities(&self) -> SinkCapabilities {
        self.hub.borrow().outlet.sink.capabilities()
    }

    fn transmit<'a, G: Gather<'a>>(
        &mut self,
        batch: impl ExactSizeIterator<Item = G>,
    ) -> Result<(), DeviceError> {
        let counters = &mut self.counters;
        self.hub.borrow_mut().transmit(self.port, batch, |packet, passed| {
            let Passed { frames, dropped, copied_bytes } = passed;
            let is_dropped = frames == 0;
            counters.packets += u64::from(!is_dropped);
            counters.frames += frames;
            counters.bytes += if is_dropped { 0 } else { packet.byte_len() as u64 };
            counters.dropped += u64::from(is_dropped);
            counters.dropped_frames += dropped;
            counters.bytes_copied_aside += copied_bytes;
        })
    }

    fn counters(&self) -> SinkCounters {
        self.counters
    }

    /// Returns `true` if the nic's sink is blocked. The hub resumes it.
    fn is_blocked(&self) -> bool {
        self.hub.borrow().outlet.is_blocked()
    }
}
