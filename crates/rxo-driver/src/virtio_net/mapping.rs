//! Mapping: shared memory of this process: mapped files, and memory files to be mapped.
//!
//! Contract: a mapping is never longer than its file was, and its file is sealed against shrinking if
//! possible. Otherwise the file may lose its memory; the mapping then contains zeros, and [`Loss`] reports
//! it.
#![allow(unsafe_code, reason = "memory is mapped")]

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::ptr::NonNull;

use rxo_virtqueue::Mapping;

use super::lost::{Guard, Loss};
use crate::sys::check;

/// Maps the first `bytes` bytes of `file` for reading and writing. Also returns the flag that reports whether
/// the file has shrunk since.
///
/// # Errors
/// `InvalidInput` if the file is shorter; otherwise the system's error.
pub(crate) fn map(file: BorrowedFd<'_>, bytes: u64) -> io::Result<(Mapping, Loss)> {
    let file = File::from(file.try_clone_to_owned()?);
    seal(&file, libc::F_SEAL_SHRINK);
    let length = usize::try_from(bytes).ok().filter(|length| *length > 0);
    let length = length.filter(|_| file.metadata().is_ok_and(|metadata| metadata.len() >= bytes));
    let length = length.ok_or_else(|| {
        io::Error::new(io::ErrorKind::InvalidInput, "its file is shorter than the region")
    })?;
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let (shared, fd) = (libc::MAP_SHARED | libc::MAP_NORESERVE, file.as_raw_fd());
    // SAFETY: the call creates a mapping at an address that the kernel chooses.
    let start = unsafe { libc::mmap(std::ptr::null_mut(), length, access, shared, fd, 0) };
    if start == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    let start = NonNull::new(start.cast::<u8>()).ok_or(io::ErrorKind::OutOfMemory)?;
    let bytes = mapped_bytes(&file, length);
    let mut owner = Box::new(Mapped { start, bytes, guard: None });
    // SAFETY: the call creates a mapping, which only `Mapping` accesses.
    let guard = owner.guard.insert(unsafe { Guard::new(start, bytes) }?);
    let loss = guard.loss();
    // SAFETY: the memory stays mapped until `owner` is dropped; nothing else of this process has its
    // address; it is guarded in case that the file shrinks.
    Ok((unsafe { Mapping::from_raw(start, length, owner) }, loss))
}

/// Returns the number of bytes that a mapping of `length` bytes of `file` occupies. The system rounds to
/// normal pages by itself, but requires whole huge pages for unmapping. Only hugetlbfs has huge pages in this
/// sense: on other file systems the block size may exceed the mapping, and unmapping that much would unmap
/// its neighbours.
fn mapped_bytes(file: &File, length: usize) -> usize {
    let huge = is_on_hugetlbfs(file).then(|| file.metadata().ok()).flatten();
    let page = huge.and_then(|metadata| usize::try_from(metadata.blksize()).ok());
    page.map_or(length, |page| length.next_multiple_of(page.max(1)))
}

fn is_on_hugetlbfs(file: &File) -> bool {
    let mut system = std::mem::MaybeUninit::<libc::statfs>::zeroed();
    // SAFETY: the descriptor is open, and the structure is the kernel's.
    let done = check(unsafe { libc::fstatfs(file.as_raw_fd(), system.as_mut_ptr()) });
    // SAFETY: zeros are a value of the structure, and the kernel filled it.
    done.is_ok() && unsafe { system.assume_init() }.f_type == libc::HUGETLBFS_MAGIC as _
}

/// Creates a file of `bytes` zeros in memory, whose length is fixed by seals.
///
/// # Errors
/// If the system refuses.
pub(crate) fn memory_file(bytes: u64) -> io::Result<OwnedFd> {
    let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
    // SAFETY: the name is a C string.
    let fd = check(unsafe { libc::memfd_create(c"rxo-virtio".as_ptr(), flags) })?;
    // SAFETY: the descriptor is new and has no other owner.
    let file = File::from(unsafe { OwnedFd::from_raw_fd(fd) });
    file.set_len(bytes)?;
    seal(&file, libc::F_SEAL_SHRINK | libc::F_SEAL_GROW);
    Ok(file.into())
}

/// Adds seals to a file; does nothing if it cannot be sealed.
fn seal(file: &File, seals: libc::c_int) {
    // SAFETY: the call takes only numbers.
    unsafe { libc::fcntl(file.as_fd().as_raw_fd(), libc::F_ADD_SEALS, seals) };
}

/// A mapping that is unmapped when it is dropped.
struct Mapped {
    start: NonNull<u8>,
    bytes: usize,
    guard: Option<Guard>,
}

impl Drop for Mapped {
    fn drop(&mut self) {
        self.guard = None;
        // SAFETY: the memory was mapped with this length, and the only user of the address is being dropped.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}

// SAFETY: the value owns its mapping; the pointer is only used to unmap it.
unsafe impl Send for Mapped {}
// SAFETY: as above; nothing is accessible through a shared reference.
unsafe impl Sync for Mapped {}

/// Creates a file of `bytes` zeros in memory that cannot be sealed, and so may shrink.
#[cfg(test)]
pub(crate) fn unsealed_file(bytes: u64) -> OwnedFd {
    // SAFETY: the name is a C string.
    let fd = check(unsafe { libc::memfd_create(c"test".as_ptr(), 0) }).unwrap();
    // SAFETY: the descriptor is new and has no other owner.
    let file = File::from(unsafe { OwnedFd::from_raw_fd(fd) });
    file.set_len(bytes).unwrap();
    file.into()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rxo_virtqueue::{Memory, Region};

    use super::*;

    #[test]
    fn a_file_shorter_than_its_region_is_refused() {
        let file = memory_file(8_192).unwrap();
        assert_eq!(map(file.as_fd(), 8_192).unwrap().0.len(), 8_192);
        for bytes in [8_193, 0, u64::MAX] {
            let error = map(file.as_fd(), bytes).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{bytes}");
        }
    }

    /// A file system may have blocks larger than pages: `tmpfs` with huge pages reports 2 MiB.
    #[test]
    fn no_more_is_unmapped_than_was_mapped() {
        let file = File::from(memory_file(12_288).unwrap());
        assert_eq!(mapped_bytes(&file, 12_288), 12_288);
        assert_eq!(mapped_bytes(&File::open("/proc/self/exe").unwrap(), 5_000), 5_000);
    }

    /// A file that cannot be sealed, such as one on hugetlbfs or one that its owner has sealed against
    /// further seals.
    #[test]
    fn a_file_that_shrinks_ends_nothing() {
        let file = File::from(unsealed_file(12_288));
        let (mapping, loss) = map(file.as_fd(), 12_288).unwrap();
        let (other, other_loss) = map(file.as_fd(), 4_096).unwrap();
        let mut memory = Memory::new();
        memory.add(Region::new(0, 0, Arc::new(mapping), 0, 12_288).unwrap()).unwrap();
        let mut bytes = [7; 100];
        assert!(memory.write(8_000, &bytes) && memory.read(8_000, &mut bytes));
        file.set_len(4_096).unwrap();
        assert!(!loss.is_lost(), "nobody has looked yet");
        assert!(memory.read(8_192, &mut bytes));
        assert_eq!((bytes, loss.is_lost()), ([0; 100], true));
        assert!(memory.write(12_000, &bytes), "and it stays mapped");
        assert!(!other_loss.is_lost() && other.len() == 4_096);
    }

    #[test]
    fn a_mapped_file_cannot_shrink_afterwards() {
        let flags = libc::MFD_ALLOW_SEALING;
        // SAFETY: the name is a C string.
        let fd = check(unsafe { libc::memfd_create(c"test".as_ptr(), flags) }).unwrap();
        // SAFETY: the descriptor is new and has no other owner.
        let file = File::from(unsafe { OwnedFd::from_raw_fd(fd) });
        file.set_len(8_192).unwrap();
        let _mapping = map(file.as_fd(), 8_192).unwrap();
        assert!(file.set_len(4_096).is_err());
    }
}
