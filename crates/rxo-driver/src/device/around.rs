//! Middleware around the source of a device. The wrapped source has the same type as the source of a device, so
//! that code which receives frames is compiled only once.

use std::fmt;

use rxo_device::middleware::{Expand, ImpairedSource, PacketLog, TracedSource, WireSource};
use rxo_frame::Instant;

use super::{DeviceSource, SystemSource};

/// Wraps `source` in a [`WireSource`], which converts the frames to the form that they would have on a wire.
/// The function is compiled in this crate, not in each crate that calls it.
#[must_use]
pub fn on_wire(source: DeviceSource, validates: bool, expand: Option<Expand>) -> DeviceSource {
    let wire = WireSource::new(source, validates);
    Box::new(match expand {
        None => wire,
        Some(expand) => wire.expanding(expand),
    })
}

impl<L: PacketLog + fmt::Debug + Send> SystemSource for TracedSource<DeviceSource, L> {
    fn discard_before(&mut self, instant: Instant) {
        self.inner_mut().discard_before(instant);
    }

    fn leave(&mut self) {
        self.inner_mut().leave();
    }

    fn hardware_address(&self) -> Option<[u8; 6]> {
        self.inner().hardware_address()
    }
}

impl SystemSource for ImpairedSource<DeviceSource, fn() -> Instant> {
    fn discard_before(&mut self, instant: Instant) {
        self.inner_mut().discard_before(instant);
    }

    fn leave(&mut self) {
        self.inner_mut().leave();
    }

    fn hardware_address(&self) -> Option<[u8; 6]> {
        self.inner().hardware_address()
    }
}

impl SystemSource for WireSource<DeviceSource> {
    fn discard_before(&mut self, instant: Instant) {
        self.inner_mut().discard_before(instant);
    }

    fn leave(&mut self) {
        self.inner_mut().leave();
    }

    fn hardware_address(&self) -> Option<[u8; 6]> {
        self.inner().hardware_address()
    }
}
