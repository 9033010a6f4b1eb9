//! Ring port: sends packets by a ring from which the other side receives.

use std::io;
use std::os::fd::BorrowedFd;

use rxo_device::{Descriptors, DeviceError, SinkCapabilities};
use rxo_frame::{LinkKind, Load};

use super::accepts::Accepts;
use super::copying::Copies;
use super::link::{Link, Side};
use super::{Copying, Encoder, Shared};
use crate::device::Port;
use crate::interface::Interface;
use crate::transmit::batch::Sealed;
use crate::transmit::{Writer, Written};

/// The sending port over a side's rings.
#[derive(Debug)]
pub(crate) struct RingPort<S> {
    side: Shared<S>,
    encoder: Encoder,
    label: String,
    mtu: u32,
    /// `true` if the other side that was connected when the port was created expands ACK templates. If another
    /// side connects later that does not expand them, the ACKs are expanded before they are sent.
    expands_acks: bool,
    /// `true` if the other side accepts UDP GSO frames, or if no other side was connected when the port was
    /// created. If another side connects later that does not accept them, the original frames are sent.
    segments_udp: bool,
}

impl<S: Side> RingPort<S> {
    pub(crate) fn new(side: &Shared<S>, label: &str, mtu: u32, copying: Copying) -> Self {
        let (side, label) = (side.clone(), label.to_owned());
        let accepts = side.try_lock().and_then(|mut side| side.link().map(|link| link.accepts()));
        let expands_acks = accepts.is_some_and(Accepts::ack_templates);
        let segments_udp = accepts.is_none_or(Accepts::udp);
        Self { side, encoder: Encoder::new(copying), label, mtu, expands_acks, segments_udp }
    }
}

impl<S: Side> Port for RingPort<S> {
    fn capabilities(&self) -> SinkCapabilities {
        SinkCapabilities {
            segments_udp: self.segments_udp,
            expands_acks: self.expands_acks,
            ..SinkCapabilities::with_gso(LinkKind::Ethernet, self.mtu)
        }
    }

    fn label(&self) -> &str {
        &self.label
    }

    fn interface(&self) -> Option<&Interface> {
        None
    }

    /// Always returns `None`: no error is final, because another side may connect later.
    fn device_error(&self, _: io::Error) -> Option<DeviceError> {
        None
    }

    fn is_batched(&self) -> bool {
        true
    }

    fn take_notice(&mut self) -> Option<String> {
        self.side.lock().notices().take()
    }

    fn load(&self) -> Option<Load> {
        self.side.lock().link()?.load()
    }
}

impl<S: Side> Writer for RingPort<S> {
    fn write(&mut self, batch: &Sealed<'_, '_>, from: usize) -> Written {
        let mut side = self.side.lock();
        let Some(link) = side.link() else {
            let refused = Some(io::Error::from_raw_os_error(libc::ENETDOWN));
            return Written { refused, ..Written::default() };
        };
        let accepts = link.accepts();
        let mut written = Written::default();
        for n in from..batch.list().len() {
            if let Err(error) = self.encoder.put(link, accepts, batch, n) {
                written.refused = Some(error);
                break;
            }
            written.sent += 1;
        }
        written.submissions = link.finish_putting();
        let Copies { bytes, pieces } = self.encoder.take_copies();
        (written.bytes_copied, written.pieces) = (bytes, pieces);
        written
    }
}

/// The port has no descriptors of its own. The source's descriptor also reports free space in the ring, because
/// the other side reports it by an eventfd, which becomes readable, not writable.
impl<S: Side> Descriptors for RingPort<S> {
    fn visit_descriptors<'f>(&'f self, _: &mut dyn FnMut(BorrowedFd<'f>)) {}
}
