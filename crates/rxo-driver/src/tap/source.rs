//! Source of a TAP or TUN: the packets that the host's stack sends.

use std::io::{self, Read as _};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::sync::Arc;

use rxo_device::{Descriptors, DeviceError, FrameSource, SourceCapabilities, SourceCounters};
use rxo_frame::{Frame, Pool};
use rxo_vnet::VnetHeader;

use super::device::TapDevice;
use crate::buffer::{DeviceBuf, LARGE_BUFFER_BYTES};
use crate::clock;
use crate::device::SystemSource;
use crate::gate;

/// Number of 64 KiB buffers: enough for two batches of the default budget.
const BUFFERS: usize = 128;

/// Maximum number of packets that one call discards, so that the call always ends, even if the stack sends only
/// packets that must be discarded.
const MOST_DISCARDS: usize = 4_096;

/// Reads the packets that the host's stack sends, one per system call. GSO frames stay whole.
///
/// The arrival time is the time of the first read of a batch, because the stack does not report when it sent
/// a packet.
#[derive(Debug)]
pub struct TapSource {
    device: Arc<TapDevice>,
    pool: Pool,
    mtu: u32,
    counters: SourceCounters,
}

impl TapSource {
    pub(super) fn new(device: Arc<TapDevice>) -> Result<Self, DeviceError> {
        let mtu = device.interface.mtu()?;
        let pool = Pool::new(BUFFERS, LARGE_BUFFER_BYTES);
        Ok(Self { device, pool, mtu, counters: SourceCounters::default() })
    }

    /// Reads one packet from the TAP. Does not block.
    fn read(&mut self) -> Result<Read, DeviceError> {
        let Some(mut buffer) = self.pool.take() else { return Ok(Read::Nothing) };
        let read = loop {
            match self.device.file().read(&mut buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => break other,
            }
        };
        match read {
            // A packet that fills the buffer was truncated by the kernel.
            Ok(bytes) if bytes == buffer.capacity() => Ok(Read::CutShort),
            Ok(bytes) => {
                buffer.truncate(bytes);
                let header_bytes = self.device.offloads.header_bytes;
                let header = match header_bytes {
                    0 => Some(VnetHeader::default()),
                    _ => VnetHeader::read_long(&buffer, header_bytes),
                };
                Ok(header.map_or(Read::CutShort, |header| {
                    Read::Packet(header, DeviceBuf::behind(header_bytes, buffer))
                }))
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(Read::Nothing),
            Err(error) => Err(self.device.device_error(error)),
        }
    }
}

/// The outcome of reading one packet.
enum Read {
    Packet(VnetHeader, DeviceBuf),
    /// A packet larger than 64 KiB was discarded; the stack sends such packets only if `gso_max_size` was
    /// raised.
    CutShort,
    /// No packet is waiting, or no buffer is free.
    Nothing,
}

impl FrameSource for TapSource {
    type Buffer = DeviceBuf;

    fn capabilities(&self) -> SourceCapabilities {
        SourceCapabilities {
            link: self.device.kind.link(),
            mtu: self.mtu,
            gives_gso: self.device.offloads.header_bytes > 0,
        }
    }

    fn receive(
        &mut self,
        batch: &mut Vec<Frame<DeviceBuf>>,
        budget: usize,
    ) -> Result<usize, DeviceError> {
        let mut arrived_at = None;
        let (mut given, mut discards) = (0, MOST_DISCARDS);
        while given < budget && discards > 0 {
            let ((checksum, gso), bytes) = match self.read()? {
                Read::Packet(header, bytes) => {
                    let (link, metadata) =
                        (self.device.kind.link(), (header.checksum(), header.gso()));
                    let Some(metadata) = gate::compared(link, bytes.as_ref(), metadata) else {
                        self.counters.invalid += 1;
                        discards -= 1;
                        continue;
                    };
                    (metadata, bytes)
                }
                Read::CutShort => {
                    self.counters.truncated += 1;
                    discards -= 1;
                    continue;
                }
                Read::Nothing => break,
            };
            given += 1;
            let arrived_at = *arrived_at.get_or_insert_with(clock::now);
            self.counters.frames += 1;
            self.counters.bytes += bytes.as_ref().len() as u64;
            batch.push(Frame { bytes, arrived_at, checksum, gso, vlan: None });
        }
        Ok(given)
    }

    /// Returns `true` while all buffers are held: packets may then be waiting although an edge-triggered wait
    /// reports no further event.
    fn is_starved(&self) -> bool {
        self.pool.is_exhausted()
    }

    fn lends(&self) -> Option<usize> {
        Some(BUFFERS)
    }

    /// Returns the counters, including the kernel's drops. If the interface is gone, the last known number of
    /// drops stays.
    fn counters(&mut self) -> SourceCounters {
        self.counters.ring_drops = self.counters.ring_drops.max(self.device.dropped());
        self.counters
    }
}

impl AsFd for TapSource {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.device.as_fd()
    }
}

/// Returns the descriptor as a number, which asynchronous runtimes need.
impl AsRawFd for TapSource {
    fn as_raw_fd(&self) -> RawFd {
        self.as_fd().as_raw_fd()
    }
}

impl Descriptors for TapSource {
    fn visit_descriptors<'f>(&'f self, visit: &mut dyn FnMut(BorrowedFd<'f>)) {
        visit(self.as_fd());
    }
}

impl SystemSource for TapSource {}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixDatagram;

    use rxo_vnet::VNET_HEADER_BYTES;

    use super::*;

    #[test]
    fn a_source_whose_buffers_are_all_held_says_so() {
        let (file, peer) = UnixDatagram::pair().unwrap();
        file.set_nonblocking(true).unwrap();
        let mut source = TapSource::new(Arc::new(TapDevice::for_tests(file.into()))).unwrap();
        let mut held = Vec::new();
        while held.len() < BUFFERS {
            peer.send(&[0; VNET_HEADER_BYTES + 60]).unwrap();
            assert_eq!(source.receive(&mut held, 4).unwrap(), 1);
        }
        peer.send(&[0; VNET_HEADER_BYTES + 60]).unwrap();
        assert_eq!(source.receive(&mut held, 4).unwrap(), 0);
        assert!(source.is_starved(), "not just an empty queue");
        held.pop();
        assert_eq!((source.is_starved(), source.receive(&mut held, 4).unwrap()), (false, 1));
    }

    #[test]
    fn a_short_batch_means_an_empty_queue_also_behind_discarded_packets() {
        let (file, peer) = UnixDatagram::pair().unwrap();
        file.set_nonblocking(true).unwrap();
        let device = TapDevice::for_tests(file.into());
        let mut source = TapSource::new(Arc::new(device)).unwrap();
        for _ in 0..6 {
            peer.send(&[0; VNET_HEADER_BYTES - 1]).unwrap();
        }
        peer.send(&[0; VNET_HEADER_BYTES + 60]).unwrap();
        let mut batch = Vec::new();
        for given in [1, 0] {
            assert_eq!(source.receive(&mut batch, 4).unwrap(), given);
            assert_eq!(source.counters().truncated, 6);
        }
    }
}
