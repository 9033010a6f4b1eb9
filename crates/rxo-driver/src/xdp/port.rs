//! Port: the part of a sink that is specific to an AF_XDP socket. It segments GSO frames and completes checksums
//! before a frame is written into a chunk, because an AF_XDP socket carries only the bytes of a frame, no
//! metadata.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use rxo_device::{Descriptors, DeviceError, SinkCapabilities};
use rxo_frame::LinkKind;

use super::sender::Sender;
use super::shared::Shared;
use super::source::most_frame_bytes;
use crate::device::Port;
use crate::fault;
use crate::interface::Interface;
use crate::transmit::batch::Sealed;
use crate::transmit::{Writer, Written};
use crate::virtio_net::{Accepts, Copies, Copying, Encoder};

/// The port that sends by an AF_XDP socket.
#[derive(Debug)]
pub(super) struct XdpPort {
    device: String,
    interface: Interface,
    mtu: u32,
    sender: Sender,
    encoder: Encoder,
    shared: Arc<Shared>,
    has_reported_drops: bool,
}

impl XdpPort {
    pub(super) fn new(
        (device, interface): (&str, Interface),
        mtu: u32,
        sender: Sender,
        shared: Arc<Shared>,
    ) -> Self {
        let (device, encoder) = (device.to_owned(), Encoder::new(Copying::default()));
        Self { device, interface, mtu, sender, encoder, shared, has_reported_drops: false }
    }
}

impl XdpPort {
    /// Writes packet `n` of a batch into the ring. If a frame is too long, reads the interface's MTU again,
    /// because it may have been raised.
    fn put(&mut self, batch: &Sealed<'_, '_>, n: usize) -> io::Result<()> {
        let accepts = Accepts::default();
        let put = self.encoder.put(&mut self.sender, accepts, batch, n);
        match put {
            Err(error) if error.raw_os_error() == Some(libc::EMSGSIZE) && self.has_grown() => {
                self.encoder.put(&mut self.sender, accepts, batch, n)
            }
            put => put,
        }
    }

    #[cold]
    fn has_grown(&mut self) -> bool {
        let mtu = self.interface.mtu().unwrap_or(self.mtu);
        self.sender.allow(most_frame_bytes(mtu))
    }
}

impl Port for XdpPort {
    fn capabilities(&self) -> SinkCapabilities {
        SinkCapabilities::with_gso(LinkKind::Ethernet, self.mtu)
    }

    fn label(&self) -> &str {
        &self.device
    }

    fn interface(&self) -> Option<&Interface> {
        Some(&self.interface)
    }

    fn device_error(&self, error: io::Error) -> Option<DeviceError> {
        fault::device_error(&self.device, self.interface.index().is_err(), error)
    }

    fn is_batched(&self) -> bool {
        true
    }

    fn has_unsent(&self) -> bool {
        self.sender.is_stuck()
    }

    fn push(&mut self) {
        // The same error occurs again with the next packet, which is then dropped.
        _ = self.sender.kick();
    }

    fn take_notice(&mut self) -> Option<String> {
        if let Some(line) = self.shared.take_notice() {
            return Some(line.to_owned());
        }
        let dropped = self.sender.take_dropped();
        if dropped == 0 || std::mem::replace(&mut self.has_reported_drops, true) {
            return None;
        }
        Some(format!(
            "the interface dropped {dropped} frames that were sent, because its queue was full; later ones are not told; \
             a longer queue helps, such as `ethtool -G`"
        ))
    }
}

impl Writer for XdpPort {
    fn write(&mut self, batch: &Sealed<'_, '_>, from: usize) -> Written {
        let mut written = Written::default();
        // Packets left over from the last batch are sent first; the result shows whether the interface is up.
        match self.sender.kick() {
            Ok(calls) => written.submissions = calls,
            Err(error) => return Written { refused: Some(error), ..written },
        }
        for n in from..batch.list().len() {
            if let Err(error) = self.put(batch, n) {
                written.refused = Some(error);
                break;
            }
            written.sent += 1;
        }
        match self.sender.kick() {
            Ok(calls) => written.submissions += calls,
            // The packets stay in the ring until the interface is up.
            Err(error) => _ = written.refused.get_or_insert(error),
        }
        let Copies { bytes, pieces } = self.encoder.take_copies();
        (written.bytes_copied, written.pieces) = (bytes, pieces);
        written
    }
}

impl Descriptors for XdpPort {
    fn visit_descriptors<'f>(&'f self, visit: &mut dyn FnMut(BorrowedFd<'f>)) {
        visit(self.sender.socket());
    }
}
