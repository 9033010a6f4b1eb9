//! Puts packets into the guest's receive ring.

use std::cell::RefCell;
use std::io;
use std::os::fd::BorrowedFd;
use std::rc::Rc;

use rxo_device::{Descriptors, DeviceError, SinkCapabilities};
use rxo_frame::LinkKind;

use super::backend::Backend;
use crate::clock;
use crate::device::Port;
use crate::interface::Interface;
use crate::transmit::batch::Sealed;
use crate::transmit::{Writer, Written};
use crate::virtio_net::Encoder;

/// The largest packet that a ring takes, as an IP packet in bytes.
const LARGEST_PACKET_BYTES: u32 = 65_535;

/// The receive ring of a guest: the first one, whichever queues the guest has.
#[derive(Debug)]
pub(super) struct VhostPort {
    backend: Rc<RefCell<Backend>>,
    encoder: Encoder,
    label: String,
    mtu: u32,
}

impl VhostPort {
    pub(super) fn new(backend: &Rc<RefCell<Backend>>, label: &str, mtu: u32) -> Self {
        let (backend, label) = (Rc::clone(backend), label.to_owned());
        Self { backend, encoder: Encoder::new(), label, mtu }
    }
}

impl Port for VhostPort {
    fn capabilities(&self) -> SinkCapabilities {
        SinkCapabilities {
            link: LinkKind::Ethernet,
            mtu: self.mtu,
            gso_bytes: LARGEST_PACKET_BYTES,
            gathers: true,
            completes_checksums: true,
        }
    }

    fn label(&self) -> &str {
        &self.label
    }

    fn interface(&self) -> Option<&Interface> {
        None
    }

    /// A guest that has gone comes back, or another one.
    fn lost(&self, _: io::Error) -> Option<DeviceError> {
        None
    }

    fn is_batched(&self) -> bool {
        true
    }

    fn take_notice(&mut self) -> Option<String> {
        self.backend.borrow_mut().notices.take()
    }
}

impl Writer for VhostPort {
    fn write(&mut self, batch: &Sealed<'_, '_>, from: usize) -> Written {
        let mut backend = self.backend.borrow_mut();
        let Some(connection) = backend.started() else {
            let refused = Some(io::Error::from_raw_os_error(libc::ENETDOWN));
            return Written { sent: 0, submissions: 0, refused };
        };
        let accepts = connection.accepts();
        let mut written = Written { sent: 0, submissions: 0, refused: None };
        for n in from..batch.list().len() {
            if let Err(error) = self.encoder.put(connection, accepts, batch, n) {
                written.refused = Some(error);
                break;
            }
            written.sent += 1;
        }
        connection.finish_putting(written.sent, clock::now());
        written.submissions = connection.take_notified();
        written
    }
}

/// The source's descriptor reports room, too: an eventfd becomes readable, never writable.
impl Descriptors for VhostPort {
    fn visit_descriptors<'f>(&'f self, _: &mut dyn FnMut(BorrowedFd<'f>)) {}
}
