//! Gives the frames that the guest sends.

use std::cell::RefCell;
use std::os::fd::{AsFd, BorrowedFd};
use std::rc::Rc;

use rxo_device::{Descriptors, DeviceError, FrameSource, SourceCapabilities, SourceCounters};
use rxo_frame::{Frame, Instant, LinkKind, Pool};

use super::backend::Backend;
use super::connection::Given;
use crate::buffer::{DeviceBuf, LARGE_BUFFER_BYTES};
use crate::clock;
use crate::device::SystemSource;
use crate::virtio_net::Events;

/// Buffers of 64 KiB: two default budgets.
const BUFFERS: usize = 128;

/// How many chains one call discards at most, so that it ends whatever the guest sends.
const MOST_DISCARDS: usize = 1_024;

/// The transmit rings of a guest. GSO frames stay whole.
///
/// The time of arrival is the time of the first frame of a batch.
#[derive(Debug)]
pub(super) struct VhostSource {
    backend: Rc<RefCell<Backend>>,
    events: Rc<Events>,
    pool: Pool,
    mtu: u32,
    counters: SourceCounters,
    discards: u64,
    /// Whether the last call left frames behind. No notification comes for them.
    has_more: bool,
}

impl VhostSource {
    pub(super) fn new(backend: &Rc<RefCell<Backend>>, mtu: u32) -> Self {
        Self {
            backend: Rc::clone(backend),
            events: backend.borrow().events(),
            pool: Pool::new(BUFFERS, LARGE_BUFFER_BYTES),
            mtu,
            counters: SourceCounters::default(),
            discards: 0,
            has_more: false,
        }
    }

    /// Takes frames until there are `budget`, or none is left. Returns how many it took.
    fn take(&mut self, batch: &mut Vec<Frame<DeviceBuf>>, budget: usize) -> usize {
        let mut backend = self.backend.borrow_mut();
        let Some(connection) = backend.started() else { return 0 };
        let (header_bytes, gives) = (connection.header_bytes(), connection.gives());
        let (mut given, mut discards, mut arrived_at) = (0, MOST_DISCARDS, None);
        while given < budget && discards > 0 {
            let Some(mut buffer) = self.pool.take() else { break };
            let bytes = match connection.take(&mut buffer) {
                Given::Frame(bytes) => bytes,
                Given::Discarded => {
                    discards -= 1;
                    continue;
                }
                Given::Nothing => break,
            };
            buffer.truncate(bytes);
            let Some((checksum, gso)) = gives.read(&buffer, bytes.saturating_sub(header_bytes))
            else {
                self.discards += 1;
                discards -= 1;
                continue;
            };
            let arrived_at: Instant = *arrived_at.get_or_insert_with(clock::now);
            given += 1;
            self.counters.frames += 1;
            self.counters.bytes += (bytes - header_bytes) as u64;
            let bytes = DeviceBuf::behind(header_bytes, buffer);
            batch.push(Frame { bytes, arrived_at, checksum, gso, vlan: None });
        }
        connection.finish_taking();
        given
    }

    /// Serves the sink, which nobody calls while it has nothing to send.
    fn notify_when_due(&self) {
        let mut backend = self.backend.borrow_mut();
        if let Some(connection) = backend.started()
            && connection.notify_at().is_some()
        {
            connection.notify_when_due(clock::now());
        }
    }

    /// Prepares to wait: looks at the sockets, and asks for notifications. Returns whether there may be
    /// something to take after all.
    fn prepare_to_wait(&self) -> bool {
        let mut backend = self.backend.borrow_mut();
        let has_changed = backend.attend();
        let has_more =
            backend.started().is_some_and(|connection| connection.ask_for_notifications());
        has_changed || has_more
    }
}

/// How often a call looks again for frames that came while it prepared to wait.
const MOST_LOOKS: usize = 4;

impl FrameSource for VhostSource {
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
        self.notify_when_due();
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

    /// At once, if frames were left behind: the guest notifies of later ones only. Otherwise when the guest
    /// must be notified.
    fn poll_at(&self) -> Option<Instant> {
        let left_behind = (self.has_more && !self.is_starved()).then_some(Instant::ZERO);
        left_behind.or_else(|| self.backend.borrow_mut().started()?.notify_at())
    }

    fn counters(&mut self) -> SourceCounters {
        let truncated = self.discards + self.backend.borrow().invalid();
        SourceCounters { truncated, ..self.counters }
    }
}

impl Descriptors for VhostSource {
    fn visit_descriptors<'f>(&'f self, visit: &mut dyn FnMut(BorrowedFd<'f>)) {
        visit(self.events.as_fd());
    }
}

impl SystemSource for VhostSource {}
