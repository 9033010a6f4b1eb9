//! Log of dirty pages: a bitmap with one bit for each page of guest addresses. During a migration, the front end
//! copies again every page that the device has marked as written.
//!
//! The front end chooses the mapping of the log, and the log need not cover all of the guest's memory.
//! Contract: a page outside the log is counted, and nothing outside the log is written. Source:
//! `docs/interop/vhost-user.rst` of QEMU, section "Migration".

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::Mapping;

/// The length of a page of the log, in bytes.
const PAGE_BYTES: u64 = 4_096;

/// A log of dirty pages. Clones write to the same log and count together.
#[derive(Clone, Debug)]
pub struct DirtyLog {
    mapping: Arc<Mapping>,
    /// The offset of the first byte of the log in the mapping.
    offset: usize,
    /// The number of pages that the log covers, from guest address 0.
    pages: u64,
    outside: Arc<AtomicU64>,
}

impl DirtyLog {
    /// Creates a log over the `bytes` bytes at `offset` in `mapping`.
    ///
    /// # Errors
    /// If `bytes` is 0, or the bytes exceed the mapping.
    pub fn new(mapping: Arc<Mapping>, offset: u64, bytes: u64) -> Result<Self, DirtyLogError> {
        let mapped = mapping.len() as u64;
        let is_inside = offset.checked_add(bytes).is_some_and(|end| end <= mapped);
        let offset = usize::try_from(offset).ok().filter(|_| is_inside && bytes > 0);
        let offset = offset.ok_or(DirtyLogError { bytes, mapped })?;
        Ok(Self { mapping, offset, pages: bytes.saturating_mul(8), outside: Arc::default() })
    }

    /// Marks the pages that contain the `bytes` bytes at guest address `address` as dirty. Call this after the
    /// bytes were written. The cost is proportional to the number of pages.
    pub fn mark(&self, address: u64, bytes: u64) {
        if bytes == 0 {
            return;
        }
        let first = address / PAGE_BYTES;
        let last = address.saturating_add(bytes - 1) / PAGE_BYTES;
        if last >= self.pages {
            self.outside.fetch_add(1, Ordering::Relaxed);
        }
        let Some(last) = self.pages.checked_sub(1).map(|end| end.min(last)) else { return };
        for byte in first / 8..=last / 8 {
            let from = first.max(8 * byte) % 8;
            let to = last.min(8 * byte + 7) % 8;
            if first <= last {
                let bits = 0xff_u8 << from & 0xff_u8 >> (7 - to);
                // Inside the mapping, because `last` is a page of the log.
                let _ = self.mapping.set_bits(self.offset + byte as usize, bits);
            }
        }
    }

    /// Returns the number of writes that were not logged completely, because the log does not cover their
    /// pages.
    #[must_use]
    pub fn outside(&self) -> u64 {
        self.outside.load(Ordering::Relaxed)
    }
}

/// The reason for which a log of dirty pages is refused: a fault of the front end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DirtyLogError {
    bytes: u64,
    mapped: u64,
}

impl fmt::Display for DirtyLogError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { bytes, mapped } = self;
        write!(f, "a log of {bytes} bytes is not in the {mapped} bytes that are mapped")
    }
}

impl std::error::Error for DirtyLogError {}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A log of `bytes` bytes, with eight bytes before it and behind it.
    fn log(bytes: u64) -> (DirtyLog, Arc<Mapping>) {
        let mapping = Arc::new(Mapping::zeroed(bytes as usize + 16));
        (DirtyLog::new(Arc::clone(&mapping), 8, bytes).unwrap(), mapping)
    }

    fn bytes(mapping: &Mapping) -> Vec<u8> {
        let mut bytes = vec![0; mapping.len()];
        assert!(mapping.read(0, &mut bytes));
        bytes
    }

    #[test]
    fn a_log_that_is_not_in_its_mapping_is_refused() {
        let mapping = Arc::new(Mapping::zeroed(64));
        for (offset, bytes) in [(0, 0), (0, 65), (1, 64), (u64::MAX, 1), (1, u64::MAX), (64, 0)] {
            assert!(
                DirtyLog::new(Arc::clone(&mapping), offset, bytes).is_err(),
                "{offset} {bytes}"
            );
        }
        assert!(DirtyLog::new(mapping, 63, 1).is_ok());
    }

    proptest! {
        /// Compares with a bit for each page, set one by one. Bytes around the log stay zero.
        #[test]
        fn each_page_that_is_covered_is_marked_and_others_are_counted(
            log_bytes in 1_u64..6,
            writes in proptest::collection::vec((0_u64..64 * 4_096, 0_u64..20 * 4_096), 0..8),
        ) {
            let (log, mapping) = log(log_bytes);
            let (mut naive, mut outside) = (vec![0_u8; mapping.len()], 0);
            for (address, count) in writes {
                log.mark(address, count);
                let pages: std::collections::BTreeSet<u64> =
                    (address..address + count).step_by(512).chain((count > 0).then(|| address + count - 1))
                        .map(|byte| byte / 4_096).collect();
                outside += u64::from(pages.iter().any(|page| *page >= 8 * log_bytes));
                for page in pages.into_iter().filter(|page| *page < 8 * log_bytes) {
                    naive[8 + page as usize / 8] |= 1 << (page % 8);
                }
            }
            prop_assert_eq!(bytes(&mapping), naive);
            prop_assert_eq!(log.outside(), outside);
        }
    }

    #[test]
    fn the_last_addresses_are_counted() {
        let (log, mapping) = log(4);
        log.mark(u64::MAX, u64::MAX);
        log.mark(u64::MAX - 10, 1);
        assert_eq!((log.outside(), bytes(&mapping)), (2, vec![0; 20]));
    }
}
