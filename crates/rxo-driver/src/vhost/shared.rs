//! Shared memory of a front end: the regions that this process has mapped.
//!
//! This module is separate from the connection, because it decides which memory is mapped. The total size of the
//! regions is limited. If a new table repeats a region, the region stays mapped, so a front end that sends its
//! table again and again causes little work. Memory that is no longer shared is unmapped by a separate thread:
//! unmapping a file for the last time frees its pages, which takes about 0.3 s for some gigabytes.

use std::fmt::Display;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::MetadataExt;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, OnceLock};
use std::thread;

use rxo_virtqueue::{Mapping, Memory, Region};

use super::connection::invalid;
use super::options::GuestMemory;
use crate::vhost_user::{Session, SharedRegion};
use crate::virtio_net::Loss;
use crate::virtio_net::mapping;

/// The memory regions in use, and the mapped parts of files that contain them.
#[derive(Debug, Default)]
pub(super) struct Shared {
    memory: Memory,
    parts: Vec<Part>,
}

/// A part of a file that is mapped.
#[derive(Clone, Debug)]
struct Part {
    place: Place,
    mapping: Arc<Mapping>,
    loss: Loss,
}

/// The part of a file that contains a memory region: device and inode number of the file, offset and length
/// in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    file: (u64, u64),
    offset: u64,
    bytes: u64,
}

impl Shared {
    pub(super) const fn memory(&self) -> &Memory {
        &self.memory
    }

    /// Returns `true` if the memory behind the mapping of a region is lost, for example because its file was
    /// truncated.
    pub(super) fn is_lost(&self) -> bool {
        self.parts.iter().any(|part| part.loss.is_lost())
    }

    /// Maps the regions of `session` that are new. Returns the previous regions: drop them when no queue uses
    /// them any more.
    ///
    /// # Errors
    /// If the regions are larger than `allowed`, or a region cannot be mapped; nothing has changed in that
    /// case.
    pub(super) fn follow(&mut self, session: &Session, allowed: GuestMemory) -> io::Result<Self> {
        let regions = session.regions();
        check_sum(regions, allowed)?;
        let (mut memory, mut parts) = (Memory::new(), Vec::with_capacity(regions.len()));
        for shared in regions {
            let region = shared.region;
            let refused =
                |why: &dyn Display| invalid(format!("{region:x?} cannot be mapped: {why}"));
            let part = self.part(shared, allowed).map_err(|why| refused(&why))?;
            let (guest, user) = (region.guest_address, region.user_address);
            let mapping = Arc::clone(&part.mapping);
            Region::new(guest, user, mapping, region.file_offset, region.bytes)
                .and_then(|region| memory.add(region))
                .map_err(|why| refused(&why))?;
            parts.push(part);
        }
        Ok(std::mem::replace(self, Self { memory, parts }))
    }

    /// Returns the part of a file that contains a region: an existing mapping, or a new one.
    fn part<F: AsFd>(&self, shared: &SharedRegion<F>, allowed: GuestMemory) -> io::Result<Part> {
        let place = Place::of(shared)?;
        if let Some(part) = self.parts.iter().find(|part| part.place == place) {
            return Ok(part.clone());
        }
        // The session has checked that the end of the region does not overflow.
        let end = place.offset.saturating_add(place.bytes);
        let (mapping, loss) =
            mapping::map(shared.file.as_fd(), place.offset..end, allowed.holes())?;
        Ok(Part { place, mapping: Arc::new(mapping), loss })
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.memory = Memory::new();
        unmap(self.parts.drain(..).map(|part| part.mapping).collect());
    }
}

/// Unmaps memory that nothing uses any more, on a thread of its own.
pub(super) fn unmap(mappings: Vec<Arc<Mapping>>) {
    static UNMAPPER: OnceLock<Option<SyncSender<Vec<Arc<Mapping>>>>> = OnceLock::new();
    if mappings.is_empty() {
        return;
    }
    let unmapper = UNMAPPER.get_or_init(|| {
        let (sender, receiver) = sync_channel(MOST_WAITING);
        let unmap = move || receiver.into_iter().for_each(drop);
        let started = thread::Builder::new().name("rxo-unmapper".into()).spawn(unmap);
        started.ok().map(|_| sender)
    });
    if let Some(unmapper) = unmapper {
        // A front end that changes its memory faster than it can be unmapped waits here.
        drop(unmapper.try_send(mappings));
    }
}

/// Maximum number of lists of regions that wait to be unmapped.
const MOST_WAITING: usize = 16;

impl Place {
    fn of<F: AsFd>(shared: &SharedRegion<F>) -> io::Result<Self> {
        let file: BorrowedFd<'_> = shared.file.as_fd();
        let metadata = File::from(file.try_clone_to_owned()?).metadata()?;
        let file = (metadata.dev(), metadata.ino());
        Ok(Self { file, offset: shared.region.file_offset, bytes: shared.region.bytes })
    }
}

/// Checks that all regions together are no larger than `allowed`.
fn check_sum<F>(regions: &[SharedRegion<F>], allowed: GuestMemory) -> io::Result<()> {
    let sizes = regions.iter().map(|shared| shared.region.bytes);
    let (bytes, most) = (sizes.fold(0, u64::saturating_add), allowed.most_bytes);
    match most.filter(|most| bytes > *most) {
        None => Ok(()),
        Some(most) => Err(invalid(format!(
            "it shares {bytes} bytes of memory and {most} are allowed; raise memory=, or give the guest less"
        ))),
    }
}
