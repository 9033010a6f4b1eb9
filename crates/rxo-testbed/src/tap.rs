//! TAPs and monitors, which show how the kernel treats frames that this process writes.
//!
//! Taps and monitors exchange frames with the kernel. Each frame is preceded by a `virtio_net_hdr` of ten bytes
//! (virtio 1.2, section 5.1.6). This crate does not interpret these ten bytes.

use std::fs::File;
use std::io::{self, IoSlice, Read, Write};
use std::time::Duration;

use crate::error::{Context, Result};
use crate::link::Interface;
use crate::sys::{self, MonitorSocket};

/// A TAP: an interface whose other side is this process. The TAP has no offloads, so the kernel segments sent
/// frames and completes their checksums before this process reads them. The interface is removed when this
/// value is dropped.
#[derive(Debug)]
pub struct Tap(pub File);

impl Interface<'_> {
    /// Creates this interface as a TAP. The kernel processes a written frame inside the system call.
    ///
    /// # Errors
    /// If the name is taken, or `/dev/net/tun` or privilege is missing.
    pub fn create_tap(&self) -> Result<Tap> {
        self.open_tap(false)
    }

    /// Creates this interface as a TAP that receives by polls (NAPI), so that the kernel coalesces written
    /// frames. Each write causes a separate poll. With [`Interface::coalescing_hold`], the kernel coalesces
    /// across several writes.
    ///
    /// # Errors
    /// The errors of [`Interface::create_tap`].
    pub fn create_polled_tap(&self) -> Result<Tap> {
        self.open_tap(true)
    }

    fn open_tap(&self, is_polled: bool) -> Result<Tap> {
        let opened = self.namespace().run(|| sys::open_tap(self.name(), is_polled))?;
        opened.map(Tap).context(|| self.cannot("make the TAP"))
    }

    /// Starts to copy all packets that arrive at this interface, after the kernel has coalesced them.
    ///
    /// # Errors
    /// If the interface does not exist, or privilege is missing.
    pub fn monitor(&self) -> Result<Monitor> {
        let index = self.index()?;
        let opened = self.namespace().run(|| MonitorSocket::open(index))?;
        opened.map(Monitor).context(|| self.cannot("watch"))
    }
}

impl Tap {
    /// Writes a `virtio_net_hdr` and a frame, which the interface then receives.
    ///
    /// # Errors
    /// If the kernel refuses the header or the frame (`EINVAL`).
    pub fn write(&self, header: &[u8], frame: &[u8]) -> io::Result<()> {
        (&self.0).write_vectored(&[IoSlice::new(header), IoSlice::new(frame)]).map(|_| ())
    }

    /// Reads the next frame that the interface sends: the `virtio_net_hdr`, then the frame. Returns their total
    /// length in bytes; `None` if no frame is queued.
    ///
    /// # Errors
    /// If the interface is gone.
    pub fn read(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        match (&self.0).read(buffer) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Waits until a frame can be read, or `time` has passed.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn wait(&self, time: Duration) -> io::Result<()> {
        sys::wait_readable(&self.0, time)
    }
}

/// A receiver of copies of all packets that arrive at an interface.
#[derive(Debug)]
pub struct Monitor(MonitorSocket);

/// A packet that a [`Monitor`] has read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MonitoredPacket {
    /// The length of the packet and its `virtio_net_hdr` together, in bytes.
    pub bytes: usize,
    /// The outer VLAN tag, which the kernel removes from the packet: its protocol and its control
    /// information, as on the wire. `None` if the packet had no tag.
    pub tag: Option<[u8; 4]>,
}

impl Monitor {
    /// Reads the next packet: the `virtio_net_hdr`, then the packet. `None` if no packet is queued.
    ///
    /// # Errors
    /// If the interface is gone.
    pub fn read(&self, buffer: &mut [u8]) -> io::Result<Option<MonitoredPacket>> {
        Ok(self.0.receive(buffer)?.map(|(bytes, tag)| MonitoredPacket { bytes, tag }))
    }

    /// Waits until a packet can be read, or `time` has passed.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn wait(&self, time: Duration) -> io::Result<()> {
        sys::wait_readable(&self.0, time)
    }
}
