//! The byte stream of a cast, as the sender writes it: head, file, hash (docs/cast.md).
//!
//! Separate from the cast: this module only reads the file, once in order for the group, and again for late receivers.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::Path;

use anyhow::{Context, Result, bail};
use rxo_host::SharedBytes;
use sha2::{Digest, Sha256};

use crate::exit::usage;

/// The byte stream of a cast that is being sent.
#[derive(Debug)]
pub(super) struct Outgoing {
    file: File,
    head: Vec<u8>,
    /// The length of the file, in bytes.
    pub(super) bytes: u64,
    /// The number of bytes of the file that were read in order so far.
    read: u64,
    hasher: Sha256,
    /// The hash to send after the file: `None` before all of the file is read; empty if the file is sent without a
    /// head.
    hash: Option<Vec<u8>>,
    has_begun: bool,
    is_raw: bool,
}

impl Outgoing {
    /// Opens the file at `path` as a stream with head and hash; with the file alone if `is_raw`.
    ///
    /// # Errors
    /// If the file cannot be opened, is no regular file, or has a name that no receiver accepts.
    pub(super) fn open(path: &Path, is_raw: bool) -> Result<Self> {
        let open = || format!("cannot read {}", path.display());
        let file = File::open(path).with_context(open)?;
        let seen = file.metadata().with_context(open)?;
        if !seen.is_file() {
            return Err(usage(format!("{}: give a regular file", path.display())));
        }
        let name = path.file_name().and_then(|name| name.to_str());
        let name = name.filter(|name| name.len() <= 255 && !name.chars().any(char::is_control));
        let head = match name {
            _ if is_raw => Vec::new(),
            Some(name) => head(name, seen.len()),
            None => {
                let message = "its name is no text of at most 255 bytes; rename it, or use --raw";
                return Err(usage(format!("{}: {message}", path.display())));
            }
        };
        Ok(Self {
            file,
            head,
            bytes: seen.len(),
            read: 0,
            hasher: Sha256::new(),
            hash: None,
            has_begun: false,
            is_raw,
        })
    }

    /// Returns the next piece of the stream; `None` at the end of the stream.
    ///
    /// # Errors
    /// If the file cannot be read, or has become shorter.
    pub(super) fn next_piece(&mut self) -> Result<Option<SharedBytes>> {
        if !std::mem::replace(&mut self.has_begun, true) && !self.head.is_empty() {
            return Ok(Some(self.head.clone().into()));
        }
        if self.read == self.bytes {
            return Ok(self.end());
        }
        let left = usize::try_from(self.bytes - self.read).unwrap_or(usize::MAX);
        let mut piece = vec![0; left.min(PIECE_BYTES)];
        let got = fill(&mut self.file, &mut piece).context("cannot read the file")?;
        if got < piece.len() {
            bail!("the file became shorter while it was sent; no receiver has it");
        }
        self.hasher.update(&piece);
        self.read += got as u64;
        Ok(Some(piece.into()))
    }

    fn end(&mut self) -> Option<SharedBytes> {
        if self.hash.is_some() {
            return None;
        }
        let hash = self.hasher.clone().finalize().to_vec();
        let piece = (!self.is_raw).then(|| hash.clone().into());
        self.hash = Some(hash);
        piece
    }

    /// Returns up to `bytes` bytes of the stream again, starting at position `from`, for a late receiver.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub(super) fn earlier(&self, from: u64, bytes: u64) -> Result<SharedBytes> {
        let wanted = usize::try_from(bytes).unwrap_or(PIECE_BYTES).min(PIECE_BYTES);
        let head_bytes = self.head.len() as u64;
        if from < head_bytes {
            let mut head = SharedBytes::from(self.head.clone());
            head.advance(from as usize);
            return Ok(head.first(wanted));
        }
        let at = from - head_bytes;
        if at < self.bytes {
            let left = usize::try_from(self.bytes - at).unwrap_or(usize::MAX);
            let mut piece = vec![0; wanted.min(left)];
            self.file.read_exact_at(&mut piece, at).context("cannot read the file again")?;
            return Ok(piece.into());
        }
        let mut hash = SharedBytes::from(self.hash.clone().unwrap_or_default());
        hash.advance((at - self.bytes) as usize);
        Ok(hash.first(wanted))
    }

    /// Returns the SHA-256 of the file in hexadecimal digits; `None` before all of the file is read.
    pub(super) fn sha256(&self) -> Option<String> {
        Some(self.hash.as_ref()?.iter().map(|byte| format!("{byte:02x}")).collect())
    }
}

fn head(name: &str, bytes: u64) -> Vec<u8> {
    let length = (name.len() as u16).to_be_bytes();
    [&b"RXOCAST1"[..], &bytes.to_be_bytes(), &length, name.as_bytes()].concat()
}

/// Reads from `file` until `to` is full or the file ends. Returns the number of bytes read.
fn fill(file: &mut File, to: &mut [u8]) -> io::Result<usize> {
    let mut got = 0;
    while got < to.len() {
        match file.read(&mut to[got..]) {
            Ok(0) => break,
            Ok(read) => got += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(got)
}

/// Length of a piece of the stream, in bytes: large enough that the overhead per piece is small, small enough that late
/// receivers rarely cause a piece to be read twice.
const PIECE_BYTES: usize = 256 << 10;

#[cfg(test)]
mod tests {
    use super::super::stream::{self, Head};
    use super::*;

    /// The receiver's parser reads back the same file, and late receivers get the same bytes.
    #[test]
    fn a_receiver_reads_what_was_written() {
        let path = std::env::temp_dir().join(format!("rxo-cast-{}.img", std::process::id()));
        let file: Vec<u8> = (0..600_000_u32).map(|at| (at ^ at >> 8) as u8).collect();
        std::fs::write(&path, &file).unwrap();
        let mut outgoing = Outgoing::open(&path, false).unwrap();
        let mut all = Vec::new();
        while let Some(piece) = outgoing.next_piece().unwrap() {
            all.extend_from_slice(&piece);
        }
        let mut again = Vec::new();
        while again.len() < all.len() {
            again.extend_from_slice(&outgoing.earlier(again.len() as u64, 100_000).unwrap());
        }
        std::fs::remove_file(&path).unwrap();
        assert!(all == again);
        let (mut from, mut got) = (&all[..], Vec::new());
        let head = Head::read(&mut from).unwrap();
        let hash = stream::copy(&mut from, &mut got, head.bytes, |_| {}).unwrap();
        assert!(got == file && path.ends_with(head.name));
        let hash: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(Some(hash), outgoing.sha256());
    }
}
