//! Mapping: memory that this process shares with another: mapped files, and memory files to be mapped.
//!
//! Contract: a mapping is never longer than its file was when it was mapped, and a file that can be sealed
//! against shrinking is sealed. A file that cannot be sealed may lose its memory; the mapping then contains
//! zeros, and [`Loss`] reports that. Mappings are excluded from core files, and are not inherited by forked
//! processes.
#![allow(unsafe_code, reason = "memory is mapped")]

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::ptr::NonNull;

use rxo_virtqueue::Mapping;

use super::holes;
use super::lost::{Guard, Loss};
use crate::sys::check;

/// The treatment of holes (missing pages) in the file of a mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Holes {
    /// The system allocates the pages when they are accessed, and charges them to this process.
    Filled,
    /// A file with holes is not mapped. If a page goes missing later, the mapping loses its memory.
    Refused,
}

/// Maps `file` from its beginning to the end of `range`, for reading and writing. Only `range` is accessed.
/// Also returns the flag that reports whether the memory is lost.
///
/// # Errors
/// `InvalidInput` if the file is too short, or has holes in `range` that are refused; any error of the
/// system.
pub(crate) fn map(
    file: BorrowedFd<'_>,
    range: Range<u64>,
    holes: Holes,
) -> io::Result<(Mapping, Loss)> {
    let file = File::from(file.try_clone_to_owned()?);
    seal(&file, libc::F_SEAL_SHRINK);
    let length = usize::try_from(range.end).ok().filter(|_| !range.is_empty());
    let length = length.filter(|_| file.metadata().is_ok_and(|it| it.len() >= range.end));
    let length = length.ok_or_else(|| {
        io::Error::new(io::ErrorKind::InvalidInput, "its file is shorter than the region")
    })?;
    let is_watched = holes == Holes::Refused && !is_on_hugetlbfs(&file);
    if is_watched {
        holes::refuse(&file, &range)?;
    }
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
    keep_private(start, bytes);
    // SAFETY: the mapping is new, and only `Mapping` accesses it.
    let guard = owner.guard.insert(unsafe { Guard::new(start, bytes) }?);
    let loss = guard.loss();
    if is_watched {
        watch(start, range.start as usize..length)?;
    }
    // SAFETY: the memory stays mapped until `owner` is dropped; nothing else in this process has its address;
    // it is guarded in case the file shrinks.
    Ok((unsafe { Mapping::from_raw(start, length, owner) }, loss))
}

/// Excludes a mapping from core files and from forked processes. Both are precautions: this process writes no
/// core file, and forks before it maps.
fn keep_private(start: NonNull<u8>, bytes: usize) {
    for advice in [libc::MADV_DONTDUMP, libc::MADV_DONTFORK] {
        // SAFETY: the range is a mapping of this process; the advice changes none of its bytes.
        unsafe { libc::madvise(start.as_ptr().cast(), bytes, advice) };
    }
}

/// Makes every access to a hole in `range` of the mapping at `start` raise SIGBUS. The mapping must be guarded
/// against that signal.
fn watch(start: NonNull<u8>, range: Range<usize>) -> io::Result<()> {
    // SAFETY: the call takes only a number.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    let page = usize::try_from(page).map_err(|_| io::Error::last_os_error())?;
    let first = range.start / page * page;
    // SAFETY: the address is within the mapping, whose last page is whole.
    let from = unsafe { start.add(first) };
    // SAFETY: the range belongs to a mapping of this process that is guarded against the signal.
    unsafe { holes::watch(from, range.end.next_multiple_of(page) - first) }
}

/// Returns the number of bytes that a mapping of `length` bytes of `file` occupies. The system rounds to
/// pages by itself, but huge pages must be unmapped as a whole. Only hugetlbfs has them: on other file
/// systems the block size may be larger than the mapping, and unmapping that much would affect its
/// neighbours.
fn mapped_bytes(file: &File, length: usize) -> usize {
    let huge = is_on_hugetlbfs(file).then(|| file.metadata().ok()).flatten();
    let page = huge.and_then(|metadata| usize::try_from(metadata.blksize()).ok());
    page.map_or(length, |page| length.next_multiple_of(page.max(1)))
}

fn is_on_hugetlbfs(file: &File) -> bool {
    let mut system = std::mem::MaybeUninit::<libc::statfs>::zeroed();
    // SAFETY: the descriptor is open, and the structure is the one that the kernel fills.
    let done = check(unsafe { libc::fstatfs(file.as_raw_fd(), system.as_mut_ptr()) });
    // SAFETY: zeros are a valid value of the structure, and the kernel has filled it.
    done.is_ok() && unsafe { system.assume_init() }.f_type == libc::HUGETLBFS_MAGIC as _
}

/// Creates a file of `bytes` zeros in memory, which never changes its length and has no holes.
///
/// # Errors
/// If the system refuses.
pub(crate) fn memory_file(bytes: u64) -> io::Result<OwnedFd> {
    let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
    // SAFETY: the name is a C string.
    let fd = check(unsafe { libc::memfd_create(c"rxo-virtio".as_ptr(), flags) })?;
    // SAFETY: the descriptor is new and has no other owner.
    let file = File::from(unsafe { OwnedFd::from_raw_fd(fd) });
    let length = libc::off_t::try_from(bytes).map_err(|_| io::ErrorKind::InvalidInput)?;
    // SAFETY: the call takes only numbers.
    check(unsafe { libc::fallocate(file.as_raw_fd(), 0, 0, length) })?;
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

/// Creates a file of `bytes` zeros in memory that cannot be sealed, and may therefore shrink.
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
    use std::os::unix::fs::FileExt;
    use std::sync::Arc;

    use rxo_virtqueue::{Memory, Region};

    use super::*;

    fn map_first(file: &impl AsFd, bytes: u64) -> io::Result<(Mapping, Loss)> {
        map(file.as_fd(), 0..bytes, Holes::Filled)
    }

    #[test]
    fn a_file_shorter_than_its_region_is_refused() {
        let file = memory_file(8_192).unwrap();
        assert_eq!(map_first(&file, 8_192).unwrap().0.len(), 8_192);
        for bytes in [8_193, 0, u64::MAX] {
            let error = map_first(&file, bytes).unwrap_err();
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
        let (mapping, loss) = map_first(&file, 12_288).unwrap();
        let (other, other_loss) = map_first(&file, 4_096).unwrap();
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
        let _mapping = map_first(&file, 8_192).unwrap();
        assert!(file.set_len(4_096).is_err());
    }

    /// The blocks of a file in memory are pages that somebody is charged for.
    fn pages(file: &File) -> u64 {
        file.metadata().unwrap().blocks() / 8
    }

    fn refused(file: &File, range: Range<u64>) -> io::Result<(Mapping, Loss)> {
        map(file.as_fd(), range, Holes::Refused)
    }

    #[test]
    fn a_file_with_holes_is_refused_where_it_is_to_be_used() {
        let file = File::from(unsealed_file(5 * 4_096));
        file.write_all_at(&[7; 4_096], 4_096).unwrap();
        file.write_all_at(&[7; 4_096], 3 * 4_096).unwrap();
        for range in [4_096..8_192, 12_288..16_384, 5_000..6_000] {
            assert!(refused(&file, range.clone()).is_ok(), "{range:?}");
        }
        for range in [0..4_096, 4_096..8_193, 4_095..8_192, 4_096..16_384, 16_384..20_480] {
            let error = refused(&file, range.clone()).unwrap_err();
            assert!(error.to_string().contains("has holes"), "{range:?}: {error}");
            assert!(map(file.as_fd(), range, Holes::Filled).is_ok());
        }
        assert_eq!(pages(&file), 2, "to look fills nothing");
        assert!(refused(&File::from(memory_file(20_480).unwrap()), 0..20_480).is_ok());
    }

    /// The front end may make holes while the memory is in use, and again whenever they are filled.
    #[test]
    fn a_hole_that_is_made_later_is_not_filled() {
        assert!(holes::prepare(), "needs Linux 5.11");
        let file = File::from(unsealed_file(3 * 4_096));
        file.write_all_at(&[7; 3 * 4_096], 0).unwrap();
        let (mapping, loss) = refused(&file, 0..3 * 4_096).unwrap();
        let mut memory = Memory::new();
        memory.add(Region::new(0, 0, Arc::new(mapping), 0, 3 * 4_096).unwrap()).unwrap();
        let mut bytes = [0; 100];
        assert!(memory.read(5_000, &mut bytes));
        assert_eq!((bytes, loss.is_lost()), ([7; 100], false));
        punch(&file, 4_096..8_192);
        assert!(memory.write(100, &bytes) && !loss.is_lost(), "this page is there");
        assert!(memory.write(5_000, &[9; 100]));
        assert_eq!((loss.is_lost(), pages(&file)), (true, 2), "nothing was charged");
        // A page that was allocated but never written is present.
        let file = File::from(memory_file(4_096).unwrap());
        let (mapping, loss) = refused(&file, 0..4_096).unwrap();
        let mut memory = Memory::new();
        memory.add(Region::new(0, 0, Arc::new(mapping), 0, 4_096).unwrap()).unwrap();
        assert!(memory.write(0, &[9; 100]) && !loss.is_lost());
    }

    fn punch(file: &File, range: Range<u64>) {
        let (start, bytes) = (range.start as libc::off_t, (range.end - range.start) as libc::off_t);
        let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
        // SAFETY: takes numbers only.
        check(unsafe { libc::fallocate(file.as_raw_fd(), mode, start, bytes) }).unwrap();
    }
}
