//! Areas: memory that a front end shares in addition to its guest's memory. One area is the log of dirty pages,
//! for migration. The other is the record of chains in flight, with which the next back end continues.
//!
//! This module is separate from the guest's memory, because both areas are optional, and all queues use them.
//! Contract: the files of areas are mapped like those of the guest's memory. Their lengths are limited by
//! [`LogArea`](crate::vhost_user::LogArea) and [`InflightShape`].

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

/// The areas of one front end that are in use.
#[derive(Debug, Default)]
pub(super) struct Areas {
    log: Option<DirtyLog>,
    log_file: Option<Mapped>,
    log_call: Option<Notifier>,
    inflight: Option<Mapped>,
    /// The number of writes that earlier logs did not record completely.
    outside: u64,
}

/// A mapped part of a file. Dropping it unmaps the part.
#[derive(Debug)]
pub(super) struct Mapped {
    /// The mapping; `None` only while this value is dropped.
    mapping: Option<Arc<Mapping>>,
    loss: Loss,
}

impl Areas {
    /// Returns `true` if the memory behind the mapping of an area is lost, for example because its file was
    /// truncated.
    pub(super) fn is_lost(&self) -> bool {
        self.log_file.iter().chain(&self.inflight).any(|area| area.loss.is_lost())
    }

    /// Returns the number of writes by the device that were not logged completely.
    pub(super) fn outside(&self) -> u64 {
        self.outside + self.log.as_ref().map_or(0, DirtyLog::outside)
    }

    /// Maps the log that the front end has set last, and returns the previous log. The caller must call
    /// [`Areas::log`] for each queue before it drops the previous log.
    ///
    /// # Errors
    /// If the log cannot be mapped.
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

    /// Maps the record that the front end has set last, and returns the previous record. The caller must create
    /// all queues again before it drops the previous record.
    ///
    /// # Errors
    /// If the record cannot be mapped.
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

    /// Makes a queue use the log, if the front end has enabled it.
    pub(super) fn log(&self, session: &Session, ring: &Ring, queue: &mut DeviceQueue) {
        let log = session.log().and(self.log.clone());
        let flagged = ring.addresses.filter(|addresses| addresses.flags & LOGGED != 0);
        queue.log_to(log, flagged.map(|addresses| addresses.log));
    }

    /// Makes a new queue continue with the recorded chains in flight of ring `n`, if the front end records
    /// them.
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

    /// Notifies the front end that the device has written to the log, if a log is in use and the front end has
    /// requested such notifications.
    pub(super) fn report(&self, session: &Session) {
        if let Some(call) = self.log_call.as_ref().filter(|_| session.log().is_some()) {
            call.notify();
        }
    }

    /// Returns `true` if [`Areas::report`] may have to notify the front end.
    pub(super) const fn reports(&self) -> bool {
        self.log_call.is_some()
    }
}

impl Mapped {
    /// Maps the part of `file` with this offset and length, both in bytes.
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

/// Creates a file for a record of this shape. Returns the file, and its length in bytes, which is at most
/// `most_bytes`.
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

/// The bit of a ring's flags by which the front end requests that writes to the used ring are logged. The
/// ring's log address is then valid.
const LOGGED: u32 = 1;
