//! Makes the files that the servers serve, and checks received bytes against them.
//!
//! Each page of 64 KiB is one of [`PAGES`] and begins with its number. Neighbouring pages of a file differ,
//! and so do files.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use anyhow::{Context, Result};

/// Makes `count` sparse files of `bytes` bytes in `folder`, named by their numbers. Only the page marks take
/// disk space.
pub(crate) fn make(folder: &Path, count: u32, bytes: u64) -> Result<()> {
    (0..count).try_for_each(|number| {
        let path = folder.join(number.to_string());
        write(&path, number, bytes).with_context(|| format!("cannot write {}", path.display()))
    })
}

fn write(path: &Path, number: u32, bytes: u64) -> std::io::Result<()> {
    let file = File::create(path)?;
    file.set_len(bytes)?;
    let pages = bytes.div_ceil(PAGE_BYTES) as u32;
    (0..pages).try_for_each(|page| {
        file.write_all_at(&mark(page_number(number, page)), u64::from(page) * PAGE_BYTES)
    })
}

/// Returns all [`PAGES`] distinct pages.
pub(crate) fn pages() -> Vec<Vec<u8>> {
    let page = |number| {
        let mut page = vec![0; PAGE_BYTES as usize];
        page[..8].copy_from_slice(&mark(number));
        page
    };
    (0..PAGES).map(page).collect()
}

/// Returns the number of the page at index `page` of the file `file`.
pub(crate) const fn page_number(file: u32, page: u32) -> usize {
    (file as usize * 31 + page as usize) % PAGES
}

/// Returns the first bytes of a page, which identify it.
const fn mark(number: usize) -> [u8; 8] {
    (number as u64 + 1).to_be_bytes()
}

/// Returns `true` if `bytes` match the file `number` from byte `at` on. Compares only the page marks that lie
/// completely inside `bytes`.
pub(crate) fn are_right(number: u32, at: u64, bytes: &[u8]) -> bool {
    let first = at.next_multiple_of(PAGE_BYTES);
    (first..at + bytes.len() as u64).step_by(PAGE_BYTES as usize).all(|page_at| {
        let from = (page_at - at) as usize;
        let expected = mark(page_number(number, (page_at / PAGE_BYTES) as u32));
        bytes.get(from..from + 8).is_none_or(|found| found == expected)
    })
}

/// Page size, that of the cache of `rxo serve`.
pub(crate) const PAGE_BYTES: u64 = 64 << 10;
/// Number of distinct pages. It is prime, so that few files are alike.
const PAGES: usize = 251;

#[cfg(test)]
mod tests {
    use rxo_peers::Folder;

    use super::*;

    #[test]
    fn bytes_of_another_file_or_place_are_wrong() {
        let folder = Folder::new("paro-files").unwrap();
        let files = folder.file("files");
        std::fs::create_dir(&files).unwrap();
        make(&files, 3, 200_000).unwrap();
        let bytes = std::fs::read(files.join("2")).unwrap();
        assert_eq!(bytes.len(), 200_000);
        assert_eq!(bytes[..65_536], pages()[page_number(2, 0)]);
        assert!(are_right(2, 0, &bytes));
        assert!(are_right(2, 1_000, &bytes[1_000..]));
        assert!(!are_right(1, 0, &bytes));
        assert!(!are_right(2, 0, &bytes[PAGE_BYTES as usize..]));
        assert!(!are_right(2, 1_448, &bytes));
    }
}
