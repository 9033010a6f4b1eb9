//! Gives the frames that the device has for the driver.

use std::cell::RefCell;
use std::os::fd::{AsFd, BorrowedFd};
use std::rc::Rc;

use rxo_device::{Descriptors, DeviceError, FrameSource, SourceCapabilities, SourceCounters};
use rxo_frame::{Frame, Instant, LinkKind, Pool};
use rxo_vnet::VIRTIO_HEADER_BYTES;

use super::driver::Given;
use super::frontend::Frontend;
use crate::buffer::{DeviceBuf, LARGE_BUFFER_BYTES};
use crate::clock;
use crate::device::SystemSource;
use crate::virtio_net::Events;

/// Buffers of 64 KiB: a default budget of frames, and as many that are held.
const BUFFERS: usize = 512;

/// How many frames one call discards at most, so that it ends whatever the device sends.
const MOST_DISCARDS: usize = 1_024;

/// How often a call looks again for frames that came while it prepared to wait.
const MOST_LOOKS: usize = 4;

/// The receive ring of the driver. GSO frames stay whole.
///
/// The time of arrival is the time of the first frame of a batch.
#[derive(Debug)]
pub(super) struct VirtioSource {
    frontend: Rc<RefCell<Frontend>>,
    events: Rc<Events>,
    pool: Pool,
    mtu: u32,
    counters: SourceCounters,
    discards: u64,
    /// Whether the last call left frames behind. No notification comes for them.
    has_more: bool,
}

impl VirtioSource {
    pub(super) fn new(frontend: &Rc<RefCell<Frontend>>, mtu: u32) -> Self {
        Self {
            frontend: Rc::clone(frontend),
            events: frontend.borrow().events(),
            pool: Pool::new(BUFFERS, LARGE_BUFFER_BYTES),
            mtu,
            counters: SourceCounters::default(),
            discards: 0,
            has_more: false,
        }
    }

    /// Takes frames until there are `budget`, or none is left. Returns how many it took.
    fn take(&mut self, batch: &mut Vec<Frame<DeviceBuf>>, budget: usize) -> usize {
        let mut frontend = self.frontend.borrow_mut();
        let Some(link) = frontend.link() else { return 0 };
        let gives = link.gives();
        let (mut given, mut discards, mut arrived_at) = (0, MOST_DISCARDS, None);
        while given < budget && discards > 0 {
            let read = match link.take(&self.pool) {
                Given::Frame(buffer) => {
                    let bytes = buffer.len().saturating_sub(VIRTIO_HEADER_BYTES);
                    gives.read(&buffer, bytes).map(|facts| (buffer, facts, bytes))
                }
                Given::Discarded => None,
                Given::Nothing | Given::Broken => break,
            };
            let Some((buffer, (checksum, gso), frame_bytes)) = read else {
                self.discards += 1;
                discards -= 1;
                continue;
            };
            let arrived_at: Instant = *arrived_at.get_or_insert_with(clock::now);
            given += 1;
            self.counters.frames += 1;
            self.counters.bytes += frame_bytes as u64;
            let bytes = DeviceBuf::behind(VIRTIO_HEADER_BYTES, buffer);
            batch.push(Frame { bytes, arrived_at, checksum, gso, vlan: None });
        }
        link.finish_taking();
        given
    }

    /// Prepares to wait: looks at the socket, and asks for notifications. Returns whether there may be
    /// something to take after all.
    fn prepare_to_wait(&self) -> bool {
        let mut frontend = self.frontend.borrow_mut();
        let is_new = frontend.attend();
        let has_more = frontend.link().is_some_and(|link| link.driver.ask_for_notifications());
        is_new || has_more
    }
}

impl FrameSource for VirtioSource {
    type Buffer = DeviceBuf;

    fn capabilities(&self) -> SourceCapabilities {
        SourceCapabilities {
            link: LinkKind::Ethernet,
            mtu: self.mtu,
            says_checksum: true,
            gives_gso: true,
        }
    }

    fn receive(
        &mut self,
        batch: &mut Vec<Frame<DeviceBuf>>,
        budget: usize,
    ) -> Result<usize, DeviceError> {
        let mut given = 0;
        self.has_more = true;
        for _ in 0..MOST_LOOKS {
            given += self.take(batch, budget - given);
            if given == budget {
                break;
            }
            self.has_more = self.prepare_to_wait();
            if !self.has_more {
                break;
            }
        }
        Ok(given)
    }

    fn lends(&self) -> Option<usize> {
        Some(BUFFERS)
    }

    fn is_starved(&self) -> bool {
        self.pool.is_exhausted()
    }

    /// At once, if frames were left behind: the device notifies of later ones only. While there is no back
    /// end, nothing wakes the worker, so it looks for one.
    fn poll_at(&self) -> Option<Instant> {
        let left_behind = (self.has_more && !self.is_starved()).then_some(Instant::ZERO);
        left_behind.or_else(|| self.frontend.borrow().next_attempt())
    }

    fn counters(&mut self) -> SourceCounters {
        let truncated = self.discards + self.frontend.borrow().invalid();
        SourceCounters { truncated, ..self.counters }
    }
}

impl Descriptors for VirtioSource {
    fn visit_descriptors<'f>(&'f self, visit: &mut dyn FnMut(BorrowedFd<'f>)) {
        visit(self.events.as_fd());
    }
}

impl SystemSource for VirtioSource {}
