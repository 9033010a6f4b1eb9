//! Areas that a front end shares beside the memory of its guest: the log of dirty pages, by which it is migrated, and the record of
//! chains in flight, by which the next back end goes on.
//!
//! Separate from the memory, because both are optional, are used by all queues, and outlive none of them. Contract: their
//! files are mapped like those of the memory, and bounded by [`LogArea`](crate::vhost_user::LogArea) and
//! [`InflightShape`].

use std::fmt::Display;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rxo_virtqueue::{DeviceQueue, DirtyLog, Layout, Mapping, inflight_bytes};

use super::connection::invalid;
use super::options::GuestMemory;
use super::shared::unmap;
use crate::vhost_user::{InflightShape, Ring, Session};
use crate::virtio_net::mapping::{self, memory_file};
use crate::virtio_net::{Loss, Notifier};

/// The areas in use.
#[derive(Debug, Default)]
pub(super) struct Areas {
    log: Option<DirtyLog>,
    log_file: Option<Mapped>,
    log_call: Option<Notifier>,
    inflight: Option<Mapped>,
    /// Writes that no former log covered.
    outside: u64,
}

/// A part of a file, mapped.
#[derive(Debug)]
pub(super) struct Mapped {
    /// `None` only while it is dropped.
    mapping: Option<Arc<Mapping>>,
    loss: Loss,
}

impl Areas {
    /// Returns `true` if the memory of an area is lost.
    pub(super) fn is_lost(&self) -> bool {
        self.log_file.iter().chain(&self.inflight).any(|area| area.loss.is_lost())
    }

    /// Returns how many writes of the device were not logged completely.
    pub(super) fn outside(&self) -> u64 {
        self.outside + self.log.as_ref().map_or(0, DirtyLog::outside)
    }

    /// Maps the log that the front end has set last. Afterwards [`Areas::log`] must be called for each queue; then the log
    /// before, which is returned, can be dropped.
    pub(super) fn map_log(
        &mut self,
        session: &Session,
        allowed: GuestMemory,
    ) -> io::Result<Option<Mapped>> {
        let Some(area) = session.log_area() else { return Ok(None) };
        let cannot = |why: &dyn Display| invalid(format!("its log of dirty pages: {why}"));
        let (offset, bytes) = (area.file_offset, area.bytes);
        let (mapped, mapping) =
            Mapped::new(area.file.as_fd(), (offset, bytes), allowed).map_err(|why| cannot(&why))?;
        let log = DirtyLog::new(mapping, offset, bytes).map_err(|why| cannot(&why))?;
        self.outside = self.outside();
        self.log = Some(log);
        Ok(self.log_file.replace(mapped))
    }

    /// Maps the record that the front end has set last. Afterwards all queues must be made again; then the record before,
    /// which is returned, can be dropped.
    pub(super) fn map_inflight(
        &mut self,
        session: &Session,
        allowed: GuestMemory,
    ) -> io::Result<Option<Mapped>> {
        let Some(area) = session.inflight() else { return Ok(None) };
        let (mapped, _) =
            Mapped::new(area.file.as_fd(), (area.file_offset, area.bytes), allowed)
                .map_err(|why| invalid(format!("its record of chains in flight: {why}")))?;
        Ok(self.inflight.replace(mapped))
    }

    pub(super) fn set_log_call(&mut self, call: Option<BorrowedFd<'_>>) -> io::Result<()> {
        let call = call.map(Notifier::to).transpose();
        self.log_call =
            call.map_err(|why| invalid(format!("its log cannot be reported: {why}")))?;
        Ok(())
    }

    /// Lets a queue use the log, if the front end wants it.
    pub(super) fn log(&self, session: &Session, ring: &Ring, queue: &mut DeviceQueue) {
        let log = session.log().and(self.log.clone());
        let flagged = ring.addresses.filter(|addresses| addresses.flags & LOGGED != 0);
        queue.log_to(log, flagged.map(|addresses| addresses.log));
    }

    /// Lets a new queue go on with the chains in flight of ring `n`, if they are recorded.
    pub(super) fn track(
        &self,
        session: &Session,
        (n, layout): (usize, Layout),
        queue: &mut DeviceQueue,
    ) -> Result<(), String> {
        let mapping = self.inflight.as_ref().and_then(|mapped| mapped.mapping.as_ref());
        let Some((area, mapping)) = session.inflight().zip(mapping) else { return Ok(()) };
        let InflightShape { rings, ring_size } = area.shape;
        let size = session.rings().get(n).map_or(0, |ring| ring.size);
        if n >= usize::from(rings) || size > ring_size {
            return Err(format!(
                "its chains in flight cannot be recorded in {rings} rings of {ring_size}"
            ));
        }
        let offset = area.file_offset + n as u64 * inflight_bytes(layout, ring_size);
        queue.track(mapping, offset).map_err(|why| why.to_string())
    }

    /// Reports that the device has written to the log, if that is used and the front end wants reports.
    pub(super) fn report(&self, session: &Session) {
        if let Some(call) = self.log_call.as_ref().filter(|_| session.log().is_some()) {
            call.notify();
        }
    }

    /// Returns `true` if [`Areas::report`] may do anything.
    pub(super) const fn reports(&self) -> bool {
        self.log_call.is_some()
    }
}

impl Mapped {
    /// Maps the part of a file with this offset and length, in bytes.
    fn new(
        file: BorrowedFd<'_>,
        (offset, bytes): (u64, u64),
        allowed: GuestMemory,
    ) -> io::Result<(Self, Arc<Mapping>)> {
        let range = offset..offset.saturating_add(bytes);
        let (mapping, loss) = mapping::map(file, range, allowed.holes())?;
        let mapping = Arc::new(mapping);
        Ok((Self { mapping: Some(Arc::clone(&mapping)), loss }, mapping))
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        unmap(self.mapping.take().into_iter().collect());
    }
}

/// Makes a file for a record of this shape. Returns also its length in bytes, at most `most_bytes`.
pub(super) fn inflight_file(
    shape: InflightShape,
    is_packed: bool,
    most_bytes: u64,
) -> io::Result<(OwnedFd, u64)> {
    let layout = if is_packed { Layout::Packed } else { Layout::Split };
    let bytes = u64::from(shape.rings.max(1)) * inflight_bytes(layout, shape.ring_size);
    if bytes > most_bytes {
        return Err(invalid(format!(
            "it wants {bytes} bytes to record chains in flight, and {most_bytes} are left for this device"
        )));
    }
    Ok((memory_file(bytes)?, bytes))
}

/// The bit of a ring's flags that says where its used ring is logged.
const LOGGED: u32 = 1;
