//! Sink of a TAP or TUN: passes packets to the host's stack.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use rxo_device::{Descriptors, DeviceError, SinkCapabilities};

use super::device::TapDevice;
use crate::device::Port;
use crate::fault;
use crate::interface::Interface;
use crate::transmit::batch::Sealed;
use crate::transmit::{Writer, Writev, Written};
use crate::uring::Uring;

/// The system calls by which packets are written to a TAP or TUN.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum SubmitMode {
    /// Many writes at once through io_uring if the system has it, otherwise one at a time.
    #[default]
    Auto,
    /// One `writev` system call for each packet.
    Writev,
    /// Many writes at once through io_uring; opening fails if the system lacks it.
    Uring,
}

/// The port of a TAP or TUN. The host's stack receives the written packets as if they had arrived by an
/// interface.
#[derive(Debug)]
pub(super) struct TapPort {
    device: Arc<TapDevice>,
    writer: TapWriter,
    mtu: u32,
}

/// The writer for the chosen [`SubmitMode`].
#[derive(Debug)]
enum TapWriter {
    Writev(Writev<TapDevice>),
    Uring(Box<Uring<TapDevice>>),
}

impl TapPort {
    pub(super) fn new(device: Arc<TapDevice>, mode: SubmitMode) -> Result<Self, DeviceError> {
        let mtu = device.interface.mtu()?;
        let writer = TapWriter::new(&device, mode)?;
        Ok(Self { device, writer, mtu })
    }
}

impl Port for TapPort {
    fn capabilities(&self) -> SinkCapabilities {
        let all = SinkCapabilities::with_gso(self.device.kind.link(), self.mtu);
        let offloads = self.device.offloads;
        SinkCapabilities {
            segments_udp: offloads.udp,
            segments_tunnels: offloads.tunnels,
            gso_bytes: if offloads.header_bytes > 0 { all.gso_bytes } else { 0 },
            ..all
        }
    }

    fn header_bytes(&self) -> usize {
        self.device.offloads.header_bytes
    }

    fn label(&self) -> &str {
        &self.device.label
    }

    fn interface(&self) -> Option<&Interface> {
        self.device.is_first.then_some(&self.device.interface)
    }

    /// Returns `None` while the interface is down: it refuses packets, and accepts them again when it is up.
    fn device_error(&self, error: io::Error) -> Option<DeviceError> {
        (!fault::means_down(&error)).then(|| self.device.device_error(error))
    }

    fn is_batched(&self) -> bool {
        matches!(self.writer, TapWriter::Uring(_))
    }
}

impl Writer for TapPort {
    fn write(&mut self, batch: &Sealed<'_, '_>, from: usize) -> Written {
        match &mut self.writer {
            TapWriter::Writev(writev) => writev.write(batch, from),
            TapWriter::Uring(uring) => uring.write(batch, from),
        }
    }
}

impl Descriptors for TapPort {
    fn visit_descriptors<'f>(&'f self, visit: &mut dyn FnMut(BorrowedFd<'f>)) {
        visit(self.device.as_fd());
    }
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
