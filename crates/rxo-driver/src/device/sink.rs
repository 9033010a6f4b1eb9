//! Sink of a device of any kind.
//!
//! The code that encodes a batch, falls back to single frames, keeps packets while the device is full, and counts
//! is the same for all devices. Only the [`Port`] differs.

use std::fmt;
use std::io;
use std::os::fd::BorrowedFd;

use rxo_device::{Descriptors, DeviceError, FrameSink, SinkCapabilities, SinkCounters};
use rxo_frame::{Frame, Gather, Load};
use rxo_vnet::{TUNNEL_HEADER_BYTES, VNET_HEADER_BYTES};

use crate::interface::Interface;
use crate::link_watch::LinkWatch;
use crate::transmit::batch::Form;
use crate::transmit::{Transmitter, Writer};

/// The part of a sink that differs between kinds of devices.
pub(crate) trait Port: Writer + Descriptors + fmt::Debug + Send {
    /// Returns the capabilities of the device, which stay the same while it is open.
    fn capabilities(&self) -> SinkCapabilities;

    /// Returns the length of the header before each packet, in bytes.
    fn header_bytes(&self) -> usize {
        if self.capabilities().segments_tunnels { TUNNEL_HEADER_BYTES } else { VNET_HEADER_BYTES }
    }

    /// Returns the device's name as the user wrote it: `tap:rxo0`.
    fn label(&self) -> &str;

    /// Returns the interface whose state is watched; `None` if the device is not an interface, or another
    /// queue of it is watched.
    fn interface(&self) -> Option<&Interface>;

    /// Converts a write error to the error for the caller; `None` if the device is only down and may come
    /// back.
    fn device_error(&self, error: io::Error) -> Option<DeviceError>;

    /// Returns `true` if many packets are submitted in one system call.
    fn is_batched(&self) -> bool;

    /// Returns `true` if the system has not yet accepted some written packets, which need a
    /// [`push`](Self::push).
    fn has_unsent(&self) -> bool {
        false
    }

    /// Submits the written packets that the system has not yet accepted.
    fn push(&mut self) {}

    /// Returns the next notice for the user, as one line without the device's name. Each notice is returned only
    /// once. `None` if there is none.
    fn take_notice(&mut self) -> Option<String> {
        None
    }

    /// Returns the value for [`FrameSink::load`], without the packets that the sink itself keeps.
    fn load(&self) -> Option<Load> {
        None
    }

    /// Returns the value for [`FrameSink::queued_bytes`].
    fn queued_bytes(&self) -> Option<u64> {
        None
    }

    /// Returns the value for [`FrameSink::departed`].
    fn departed(&mut self) -> Option<u64> {
        None
    }
}

/// The sink of a device. While the device is down, frames sent to it are dropped and counted.
#[derive(Debug)]
pub struct DeviceSink {
    transmitter: Transmitter<Box<dyn Port>>,
    watch: LinkWatch,
    /// The notice for the user from opening the device; `None` if there is none.
    opening: Option<String>,
}

impl DeviceSink {
    pub(crate) fn new(port: impl Port + 'static) -> Self {
        let SinkCapabilities { link, segments_tunnels, segments_udp, .. } = port.capabilities();
        let form = Form {
            link,
            header_bytes: port.header_bytes(),
            takes_tunnels: segments_tunnels,
            takes_trains: segments_udp,
        };
        let transmitter = Transmitter::new(Box::new(port) as Box<dyn Port>, form);
        Self { transmitter, watch: LinkWatch::default(), opening: None }
    }

    /// Returns this sink with the notice `line`, which the user sees before any other.
    pub(crate) fn with_notice(self, line: String) -> Self {
        Self { opening: Some(line), ..self }
    }

    /// Returns `true` if many packets are submitted in one system call.
    #[must_use]
    pub fn is_batched(&self) -> bool {
        self.port().is_batched()
    }

    /// Removes and returns the user's notice from opening the device; `None` if there is none. If this
    /// function is not called, [`take_notice`](Self::take_notice) returns this notice first.
    pub fn take_opening_notice(&mut self) -> Option<String> {
        self.opening.take()
    }

    /// Returns the next notice for the user, as one line; each notice is returned only once. `None` if there is
    /// none. Makes a system call to check if the interface is up.
    pub fn take_notice(&mut self) -> Option<String> {
        if let Some(line) = self.take_opening_notice() {
            return Some(line);
        }
        let own = self.transmitter.take_notice();
        let own = own.or_else(|| self.transmitter.writer_mut().take_notice());
        let port = self.transmitter.writer();
        own.map(|notice| format!("{}: {notice}", port.label()))
            .or_else(|| self.watch.notice(port.label(), port.interface()?))
    }

    /// Sends frames as [`FrameSink::transmit`] does. The function is compiled in this crate, not in each
    /// crate that calls it.
    ///
    /// # Errors
    /// Returns the errors of [`FrameSink::transmit`].
    pub fn send(&mut self, frames: &[Frame<&[u8]>]) -> Result<(), DeviceError> {
        self.transmit(frames.iter().copied())
    }

    fn port(&self) -> &dyn Port {
        &**self.transmitter.writer()
    }

    fn or_lost(&self, sent: io::Result<()>) -> Result<(), DeviceError> {
        sent.err().and_then(|error| self.port().device_error(error)).map_or(Ok(()), Err)
    }
}

impl FrameSink for DeviceSink {
    fn capabilities(&self) -> SinkCapabilities {
        self.port().capabilities()
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
        self.transmitter.is_blocked() || self.port().has_unsent()
    }

    fn resume(&mut self) -> Result<(), DeviceError> {
        self.transmitter.writer_mut().push();
        let sent = self.transmitter.resume();
        self.or_lost(sent)
    }

    fn load(&self) -> Option<Load> {
        let kept = u32::try_from(self.transmitter.kept()).unwrap_or(u32::MAX);
        let Load { unread } = self.port().load()?;
        Some(Load { unread: unread.saturating_add(kept) })
    }

    fn queued_bytes(&self) -> Option<u64> {
        self.port().queued_bytes()
    }

    fn kept_frames(&self) -> u64 {
        self.transmitter.kept() as u64
    }

    fn departed(&mut self) -> Option<u64> {
        self.transmitter.writer_mut().departed()
    }

    fn abandon(&mut self) {
        self.transmitter.abandon();
    }
}

impl Descriptors for DeviceSink {
    fn visit_descriptors<'f>(&'f self, visit: &mut dyn FnMut(BorrowedFd<'f>)) {
        self.port().visit_descriptors(visit);
    }
}
