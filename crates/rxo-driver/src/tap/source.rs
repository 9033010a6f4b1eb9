//! Reading what the host's stack sends.
#![allow(unsafe_code, reason = "buffers of an arena are read into and lent out")]

use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::ptr::NonNull;
use std::rc::Rc;
use std::slice;
use std::sync::Arc;

use rxo_device::{DeviceError, FrameSource, SourceCapabilities, SourceCounters};
use rxo_frame::Frame;

use super::device::TapDevice;
use crate::arena::{Arena, BUFFER_BYTES};
use crate::clock;
use crate::vnet::{VNET_HEADER_BYTES, VnetHeader};

/// Buffers of 64 KiB; pages are touched only when used, and the warm ones are used first.
const BUFFERS: u32 = 256;

/// Gives what the host's stack sends: one frame a read, super-packets whole.
///
/// A frame from here counts as arrived when its batch is begun: the stack handed it over before
/// that, and when exactly nobody says.
#[derive(Debug)]
pub struct TapSource {
    device: Arc<TapDevice>,
    arena: Rc<Arena>,
    mtu: u32,
    counters: SourceCounters,
}

impl TapSource {
    pub(super) fn new(device: Arc<TapDevice>) -> Result<Self, DeviceError> {
        let mtu = device.interface.mtu()?;
        let arena = Rc::new(Arena::new(BUFFERS));
        Ok(Self { device, arena, mtu, counters: SourceCounters::default() })
    }

    /// Reads one packet; `None` when there is none, or no buffer for it.
    fn read(&mut self) -> Result<Option<(VnetHeader, TapBuf)>, DeviceError> {
        let Some(buffer) = self.arena.take() else { return Ok(None) };
        // From here on the buffer goes back when `target` is dropped.
        let mut target = TapBuf { arena: Rc::clone(&self.arena), buffer, len: 0 };
        let read = loop {
            match self.device.file().read(target.whole()) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => break other,
            }
        };
        match read {
            Ok(bytes) => {
                let header = VnetHeader::read(&target.whole()[..bytes]);
                target.len = bytes.saturating_sub(VNET_HEADER_BYTES);
                Ok(header.map(|header| (header, target)))
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
            self.counters.bytes += bytes.len as u64;
            let (checksum, gso) = (header.checksum(), header.gso());
            batch.push(Frame { bytes, arrived_at, checksum, gso, vlan: None });
        }
        Ok(budget)
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
#[derive(Debug)]
pub struct TapBuf {
    arena: Rc<Arena>,
    buffer: u32,
    len: usize,
}

impl TapBuf {
    /// The whole buffer, the header's place in front.
    fn whole(&mut self) -> &mut [u8] {
        // SAFETY: a buffer of the arena has this many bytes, and this value alone has it.
        unsafe { slice::from_raw_parts_mut(self.start().as_ptr(), BUFFER_BYTES) }
    }

    fn start(&self) -> NonNull<u8> {
        self.arena.start(self.buffer)
    }
}

impl AsRef<[u8]> for TapBuf {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: `len` bytes after the header were read into the buffer, and this value alone
        // has it.
        unsafe { slice::from_raw_parts(self.start().add(VNET_HEADER_BYTES).as_ptr(), self.len) }
    }
}

impl Drop for TapBuf {
    fn drop(&mut self) {
        self.arena.give_back(self.buffer);
    }
}
