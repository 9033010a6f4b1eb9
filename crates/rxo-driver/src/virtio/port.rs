//! Puts packets into the driver's transmit ring.

use std::cell::RefCell;
use std::io;
use std::os::fd::BorrowedFd;
use std::rc::Rc;

use rxo_device::{Descriptors, DeviceError, SinkCapabilities};
use rxo_frame::LinkKind;

use super::frontend::Frontend;
use crate::device::Port;
use crate::interface::Interface;
use crate::transmit::batch::Sealed;
use crate::transmit::{Writer, Written};
use crate::virtio_net::Encoder;

/// The largest packet that a ring takes, as an IP packet in bytes.
const LARGEST_PACKET_BYTES: u32 = 65_535;

/// The transmit ring of the driver.
#[derive(Debug)]
pub(super) struct VirtioPort {
    frontend: Rc<RefCell<Frontend>>,
    encoder: Encoder,
    label: String,
    mtu: u32,
}

impl VirtioPort {
    pub(super) fn new(frontend: &Rc<RefCell<Frontend>>, label: &str, mtu: u32) -> Self {
        let (frontend, label) = (Rc::clone(frontend), label.to_owned());
        Self { frontend, encoder: Encoder::new(), label, mtu }
    }
}

impl Port for VirtioPort {
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

    /// A back end that has gone is looked for.
    fn lost(&self, _: io::Error) -> Option<DeviceError> {
        None
    }

    fn is_batched(&self) -> bool {
        true
    }

    fn take_notice(&mut self) -> Option<String> {
        self.frontend.borrow_mut().notices.take()
    }
}

impl Writer for VirtioPort {
    fn write(&mut self, batch: &Sealed<'_, '_>, from: usize) -> Written {
        let mut frontend = self.frontend.borrow_mut();
        let Some(link) = frontend.link() else {
            let refused = Some(io::Error::from_raw_os_error(libc::ENETDOWN));
            return Written { sent: 0, submissions: 0, refused };
        };
        let accepts = link.accepts();
        let mut written = Written { sent: 0, submissions: 0, refused: None };
        for n in from..batch.list().len() {
            if let Err(error) = self.encoder.put(&mut link.driver, accepts, batch, n) {
                written.refused = Some(error);
                break;
            }
            written.sent += 1;
        }
        written.submissions = u64::from(link.finish_putting());
        written
    }
}

/// The source's descriptor reports room, too: an eventfd becomes readable, never writable.
impl Descriptors for VirtioPort {
    fn visit_descriptors<'f>(&'f self, _: &mut dyn FnMut(BorrowedFd<'f>)) {}
}
