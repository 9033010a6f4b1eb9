//! Reading what the host's stack sends.

use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use rxo_device::{DeviceError, FrameSource, SourceCapabilities, SourceCounters};
use rxo_frame::{Frame, Pool, PoolBuf};

use super::device::TapDevice;
use crate::clock;
use crate::vnet::{LARGE_BUFFER_BYTES, VNET_HEADER_BYTES, VnetHeader};

/// Buffers of 64 KiB: two usual budgets.
const BUFFERS: usize = 128;

/// Gives what the host's stack sends: one frame a read, super-packets whole.
///
/// A frame from here counts as arrived when its batch is begun: the stack handed it over before
/// that, and when exactly nobody says.
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

    /// Reads one packet; `None` when there is none, or no buffer for it.
    fn read(&mut self) -> Result<Option<(VnetHeader, TapBuf)>, DeviceError> {
        let Some(mut buffer) = self.pool.take() else { return Ok(None) };
        let read = loop {
            match self.device.file().read(&mut buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => break other,
            }
        };
        match read {
            Ok(bytes) => {
                buffer.truncate(bytes);
                Ok(VnetHeader::read(&buffer).map(|header| (header, TapBuf(buffer))))
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(self.device.lost(error)),
        }
    }
}

impl FrameSource for TapSource {
    type Buffer = TapBuf;

    fn capabilities(&self) -> SourceCapabilities {
        SourceCapabilities {
            link: self.device.kind.link(),
            mtu: self.mtu,
            says_checksum: true,
            gives_gso: true,
        }
    }

    fn receive(
        &mut self,
        batch: &mut Vec<Frame<TapBuf>>,
        budget: usize,
    ) -> Result<usize, DeviceError> {
        let mut arrived_at = None;
        for given in 0..budget {
            let Some((header, bytes)) = self.read()? else { return Ok(given) };
            let arrived_at = *arrived_at.get_or_insert_with(clock::now);
            self.counters.frames += 1;
            self.counters.bytes += bytes.as_ref().len() as u64;
            let (checksum, gso) = (header.checksum(), header.gso());
            batch.push(Frame { bytes, arrived_at, checksum, gso, vlan: None });
        }
        Ok(budget)
    }

    fn lends(&self) -> Option<usize> {
        Some(BUFFERS)
    }

    fn counters(&mut self) -> SourceCounters {
        self.counters
    }
}

impl AsFd for TapSource {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.device.as_fd()
    }
}

/// A frame's bytes, read from a TAP or TUN. Dropping it gives the buffer back.
///
/// The buffer begins with the header that came before the frame.
#[derive(Debug)]
pub struct TapBuf(PoolBuf);

impl AsRef<[u8]> for TapBuf {
    fn as_ref(&self) -> &[u8] {
        self.0.get(VNET_HEADER_BYTES..).unwrap_or_default()
    }
}
