//! Frames from an interface, through a memory-mapped ring.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rxo_device::{DeviceError, FrameSource, SourceCapabilities, SourceCounters};
use rxo_frame::{Frame, LinkKind, Pool};

use super::buffer::PacketBuf;
use super::ring::RingMap;
use super::socket::{Opened, lost};
use super::take::{Taken, take};
use crate::clock::StampScale;
use crate::interface::Interface;
use crate::vnet::LARGE_BUFFER_BYTES;
use crate::{fault, sys};

/// How a packet source is set up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketOptions {
    /// Slots in the ring, rounded up to a multiple of 64. At a million frames a second, 8,192
    /// bridge 8 ms in which nobody reads. More is not better: a ring is written from end to end,
    /// so one that does not fit the caches costs the kernel more for every frame (measured with
    /// 1,600 bytes a slot: 4,096 slots 10 ns, 8,192 70 ns, 16,384 200 ns).
    pub ring_slots: u32,
    /// Buffers for frames too large for a slot; while all are held, such frames wait in the ring.
    pub large_buffers: usize,
    /// Whether to take frames for other hosts too.
    pub promiscuous: bool,
}

impl Default for PacketOptions {
    fn default() -> Self {
        Self { ring_slots: 8_192, large_buffers: 128, promiscuous: true }
    }
}

/// Gives the frames that arrive on an interface; never those that leave it.
///
/// The host's own stack gets the same frames, too: give the interface no addresses, or both
/// answer. A frame larger than a slot (a super-packet) is read from a second queue, in its place
/// in the order.
#[derive(Debug)]
pub struct PacketSource {
    device: String,
    interface: Interface,
    socket: OwnedFd,
    ring: Arc<RingMap>,
    large: Pool,
    next_slot: u32,
    mtu: u32,
    counters: SourceCounters,
    gone: bool,
}

impl PacketSource {
    /// Opens a source on the interface `name`, which must be up.
    ///
    /// # Errors
    /// When there is no such interface, it is down, privilege is missing, or there is no memory
    /// for the ring.
    pub fn open(name: &str, options: PacketOptions) -> Result<Self, DeviceError> {
        let opened = Opened::new(name)?;
        opened.set(libc::PACKET_VERSION, libc::tpacket_versions::TPACKET_V2 as _)?;
        // Any value but zero: a frame that does not fit into its slot is queued whole as well.
        opened.set(libc::PACKET_COPY_THRESH, 1)?;
        opened.try_set(libc::PACKET_IGNORE_OUTGOING, 1);
        opened.enlarge_queue(libc::SO_RCVBUFFORCE, libc::SO_RCVBUF);
        let mtu = opened.interface.mtu()?;
        let ring = RingMap::new(opened.socket(), options.ring_slots, mtu)
            .map_err(|e| fault::opening(&opened.device, e))?;
        if options.promiscuous {
            opened.be_promiscuous()?;
        }
        opened.bind(libc::ETH_P_ALL as u16)?;
        let Opened { device, interface, socket } = opened;
        let (ring, large) = (Arc::new(ring), Pool::new(options.large_buffers, LARGE_BUFFER_BYTES));
        let counters = SourceCounters::default();
        let gone = false;
        Ok(Self { device, interface, socket, ring, large, next_slot: 0, mtu, counters, gone })
    }

    /// The interface.
    #[must_use]
    pub fn interface(&self) -> &Interface {
        &self.interface
    }

    /// What is wrong when nothing is there to read, if something is.
    fn fault_when_idle(&mut self) -> Option<DeviceError> {
        if self.gone {
            return Some(DeviceError::Gone(self.device.clone()));
        }
        sys::pending_error(self.socket.as_fd()).map(|error| self.lost(error))
    }

    fn lost(&mut self, error: io::Error) -> DeviceError {
        self.gone = true;
        lost(&self.device, &self.interface, error)
    }

    fn advance(&mut self) {
        self.next_slot += 1;
        if self.next_slot == self.ring.slots() {
            self.next_slot = 0;
        }
    }
}

impl FrameSource for PacketSource {
    type Buffer = PacketBuf;

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
        batch: &mut Vec<Frame<PacketBuf>>,
        budget: usize,
    ) -> Result<usize, DeviceError> {
        let mut given = 0;
        let mut scale = None;
        while given < budget {
            let Some(slot) = self.ring.filled(self.next_slot) else { break };
            self.ring.prefetch_ahead_of(self.next_slot);
            let scale = *scale.get_or_insert_with(StampScale::take);
            match take(slot, self.socket.as_fd(), &self.large, scale) {
                Taken::Frame(frame) => {
                    self.counters.frames += 1;
                    self.counters.bytes += frame.bytes().len() as u64;
                    batch.push(frame);
                    given += 1;
                }
                Taken::Own => {}
                Taken::CutShort => self.counters.truncated += 1,
                Taken::NoBuffer => break,
                Taken::Lost(error) => return Err(self.lost(error)),
            }
            self.advance();
        }
        if given == 0
            && let Some(error) = self.fault_when_idle()
        {
            return Err(error);
        }
        Ok(given)
    }

    fn lends(&self) -> Option<usize> {
        Some(self.ring.slots() as usize)
    }

    fn counters(&mut self) -> SourceCounters {
        // Reading resets the kernel's count, so it is added up here. A socket that is gone has
        // nothing more to say.
        let (level, option) = (libc::SOL_PACKET, libc::PACKET_STATISTICS);
        if let Ok(new) = sys::option::<libc::tpacket_stats>(self.socket.as_fd(), level, option) {
            self.counters.ring_drops += u64::from(new.tp_drops);
        }
        self.counters
    }
}

impl AsFd for PacketSource {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
