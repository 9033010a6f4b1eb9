//! Writing what the host's stack is to receive.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use rxo_device::{DeviceError, FrameSink, SinkCapabilities, SinkCounters};
use rxo_frame::Gather;

use super::device::TapDevice;
use crate::fault;
use crate::link_watch::LinkWatch;
use crate::transmit::batch::Sealed;
use crate::transmit::{Transmitter, Writer, Writev, Written};
use crate::uring::Uring;

/// The largest IP packet that the kernel takes with a GSO header, in bytes.
const LARGEST_PACKET_BYTES: u32 = 65_535;

/// How writes are handed to the kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum SubmitMode {
    /// Many at once through io_uring where the system has it, otherwise one at a time.
    #[default]
    Auto,
    /// One system call for each.
    Writev,
    /// Many at once through io_uring, or not at all.
    Uring,
}

/// Sends into a TAP or TUN: to the host's stack, as if it had arrived there. While the interface is
/// down, what is sent is dropped and counted.
#[derive(Debug)]
pub struct TapSink {
    device: Arc<TapDevice>,
    transmitter: Transmitter<TapWriter>,
    watch: LinkWatch,
    mtu: u32,
}

impl TapSink {
    pub(super) fn new(device: Arc<TapDevice>, mode: SubmitMode) -> Result<Self, DeviceError> {
        let mtu = device.interface.mtu()?;
        let writer = TapWriter::new(&device, mode)?;
        let transmitter = Transmitter::new(writer, device.kind.link());
        Ok(Self { device, transmitter, watch: LinkWatch::default(), mtu })
    }

    /// Whether many writes are submitted at once.
    #[must_use]
    pub fn is_batched(&self) -> bool {
        matches!(self.transmitter.writer(), TapWriter::Uring(_))
    }

    /// One line the user should see, once; `None` when there is nothing new to say. Asks the system
    /// whether the interface is up.
    pub fn take_notice(&mut self) -> Option<String> {
        let TapDevice { label, interface, .. } = &*self.device;
        let own = self.transmitter.take_notice().map(|notice| format!("{label}: {notice}"));
        own.or_else(|| self.watch.notice(label, interface))
    }

    /// A TAP or TUN that is down takes nothing, and does again when it is up.
    fn or_lost(&self, sent: io::Result<()>) -> Result<(), DeviceError> {
        let lost = sent.err().filter(|error| !fault::means_down(error));
        lost.map_or(Ok(()), |error| Err(self.device.lost(error)))
    }
}

impl FrameSink for TapSink {
    fn capabilities(&self) -> SinkCapabilities {
        SinkCapabilities {
            link: self.device.kind.link(),
            mtu: self.mtu,
            gso_bytes: LARGEST_PACKET_BYTES,
            gathers: true,
            completes_checksums: true,
        }
    }

    fn transmit<'a, G: Gather<'a>>(
        &mut self,
        batch: impl ExactSizeIterator<Item = G>,
    ) -> Result<(), DeviceError> {
        let sent = self.transmitter.transmit(batch);
        self.or_lost(sent)
    }

    fn counters(&self) -> SinkCounters {
        self.transmitter.counters()
    }

    fn is_blocked(&self) -> bool {
        self.transmitter.is_blocked()
    }

    fn resume(&mut self) -> Result<(), DeviceError> {
        let sent = self.transmitter.resume();
        self.or_lost(sent)
    }

    fn abandon(&mut self) {
        self.transmitter.abandon();
    }
}

impl AsFd for TapSink {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.device.as_fd()
    }
}

/// One of the two ways.
#[derive(Debug)]
enum TapWriter {
    Writev(Writev<TapDevice>),
    Uring(Box<Uring<TapDevice>>),
}

impl TapWriter {
    fn new(device: &Arc<TapDevice>, mode: SubmitMode) -> Result<Self, DeviceError> {
        let writev = || Self::Writev(Writev::new(Arc::clone(device)));
        if mode == SubmitMode::Writev {
            return Ok(writev());
        }
        match Uring::new(Arc::clone(device)) {
            Ok(uring) => Ok(Self::Uring(Box::new(uring))),
            Err(_) if mode == SubmitMode::Auto => Ok(writev()),
            Err(error) => Err(fault::system(
                format!("cannot use io_uring for {}; let writes go one by one", device.label),
                error,
            )),
        }
    }
}

impl Writer for TapWriter {
    fn write(&mut self, batch: &Sealed<'_, '_>, from: usize) -> Written {
        match self {
            Self::Writev(writev) => writev.write(batch, from),
            Self::Uring(uring) => uring.write(batch, from),
        }
    }

    fn descriptor(&self) -> BorrowedFd<'_> {
        match self {
            Self::Writev(writev) => writev.descriptor(),
            Self::Uring(uring) => uring.descriptor(),
        }
    }
}
