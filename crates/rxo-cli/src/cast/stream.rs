//! The byte stream of a cast, as a receiver reads it: the manifest, then the file (docs/cast-protocol.md).
//!
//! This module is separate from connections and files: it reads from any reader, writes to any writer, and
//! returns errors.

use std::io::{self, Read, Write};

use sha2::{Digest, Sha256};
use thiserror::Error;

use super::manifest::{BLOCK_BYTES, Hash, MOST_FILE_BYTES, Manifest};

/// The reason why a byte stream is not a complete file from `rxo cast send`.
#[derive(Debug, Error)]
pub(super) enum StreamError {
    /// Reading the stream failed.
    #[error("{0}")]
    Broken(io::Error),
    /// The stream ended inside the manifest.
    #[error("the sender ended early")]
    Short,
    /// The stream does not begin with the magic number of a cast.
    #[error("this is no stream of rxo cast send, or one that it sends with --raw")]
    Magic,
    /// The stream begins with the magic number of an earlier version.
    #[error("the sender is an older rxo, whose casts have no block hashes; update it")]
    Older,
    /// The manifest names a file that cannot be created under that name.
    #[error("the sender names the file {0:?}, which is no file's name")]
    Name(String),
    /// The manifest claims a length that no file has.
    #[error("the sender claims {0} bytes; a file has {MOST_FILE_BYTES} at most")]
    Length(u64),
    /// Neither the group's manifest nor the one that was requested from the sender has the hash given by
    /// `--root`.
    #[error("the sender's root is {0}, not the one of --root")]
    Root(String),
    /// A block differs from its hash, and the right block could not be requested from the sender.
    #[error("block {0} differs from its hash, and the sender does not send it again: {1}")]
    Block(u64, io::Error),
    /// The received file cannot be written.
    #[error("cannot write the file: {0}")]
    Write(io::Error),
}

/// The result of copying a file from a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Copied {
    /// The SHA-256 of the file.
    pub(super) sha256: Hash,
    /// The number of blocks that were requested again.
    pub(super) again: u64,
}

/// Copies the file of `manifest` from the stream to `to`. A block that differs from its hash, or that is missing in
/// the stream, is requested through `again` by its index. Calls `progress` with the number of bytes so far.
///
/// # Errors
/// If reading fails, a block cannot be requested, or the file cannot be written.
pub(super) fn copy(
    from: &mut impl Read,
    to: &mut impl Write,
    manifest: &Manifest,
    mut again: impl FnMut(u64, &mut [u8]) -> io::Result<()>,
    mut progress: impl FnMut(u64),
) -> Result<Copied, StreamError> {
    let (mut hasher, mut buffer) = (Sha256::new(), vec![0; BLOCK_BYTES]);
    let (mut asked, mut come) = (0, 0);
    for index in 0..manifest.blocks() {
        let block = &mut buffer[..manifest.block_bytes(index)];
        let has_ended = match fill(from, block) {
            Err(StreamError::Short) => true,
            filled => filled.map(|()| false)?,
        };
        if has_ended || !manifest.is_block(index, block) {
            asked += 1;
            again(index, block).map_err(|error| StreamError::Block(index, error))?;
            if !manifest.is_block(index, block) {
                let error = io::Error::other("what it sends has another hash, too");
                return Err(StreamError::Block(index, error));
            }
        }
        hasher.update(&*block);
        to.write_all(block).map_err(StreamError::Write)?;
        come += block.len() as u64;
        progress(come);
    }
    to.flush().map_err(StreamError::Write)?;
    // Waits for the end. The file is complete, so nothing else that comes matters.
    while from.read(&mut buffer).map_err(StreamError::Broken)? > 0 {}
    Ok(Copied { sha256: hasher.finalize().into(), again: asked })
}

pub(super) fn array<const BYTES: usize>(from: &mut impl Read) -> Result<[u8; BYTES], StreamError> {
    let mut array = [0; BYTES];
    fill(from, &mut array)?;
    Ok(array)
}

pub(super) fn fill(from: &mut impl Read, to: &mut [u8]) -> Result<(), StreamError> {
    from.read_exact(to).map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof => StreamError::Short,
        _ => StreamError::Broken(error),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest(file: &[u8]) -> Manifest {
        let hashes = file.chunks(BLOCK_BYTES).map(|block| Sha256::digest(block).into()).collect();
        Manifest { bytes: file.len() as u64, name: "a.img".to_owned(), hashes }
    }

    fn file(bytes: u32) -> Vec<u8> {
        (0..bytes).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect()
    }

    /// Copies `stream` for the manifest of `file`. Blocks that are asked for again come from `file`.
    fn copied(file: &[u8], mut stream: &[u8]) -> Result<(Copied, Vec<u8>), StreamError> {
        let mut got = Vec::new();
        let again = |index: u64, block: &mut [u8]| {
            block.copy_from_slice(&file[index as usize * BLOCK_BYTES..][..block.len()]);
            Ok(())
        };
        let copied = copy(&mut stream, &mut got, &manifest(file), again, |_| {})?;
        Ok((copied, got))
    }

    #[test]
    fn a_stream_is_the_file() {
        for bytes in [0, 1, BLOCK_BYTES as u32, 1_000_000] {
            let file = file(bytes);
            let (copied, got) = copied(&file, &file).unwrap();
            assert_eq!((copied.again, got == file), (0, true), "{bytes} bytes");
            assert_eq!(copied.sha256[..], Sha256::digest(&file)[..]);
        }
    }

    #[test]
    fn a_changed_byte_costs_one_block_and_nobody_the_file() {
        let file = file(1_000_000);
        for at in [0, BLOCK_BYTES - 1, BLOCK_BYTES, 999_999] {
            let mut forged = file.clone();
            forged[at] ^= 1;
            let (copied, got) = copied(&file, &forged).unwrap();
            assert_eq!((copied.again, got == file), (1, true), "byte {at}");
        }
    }

    #[test]
    fn a_forged_end_and_forged_bytes_behind_the_end_change_nothing() {
        let file = file(1_000_000);
        for cut in [0, 1, BLOCK_BYTES, 999_999] {
            let (copied, got) = copied(&file, &file[..cut]).unwrap();
            let whole = (cut / BLOCK_BYTES) as u64;
            assert_eq!((copied.again, got == file), (4 - whole, true), "cut at {cut}");
        }
        let long = [&file[..], b"more"].concat();
        assert!(copied(&file, &long).unwrap().1 == file);
    }

    #[test]
    fn a_block_that_stays_wrong_is_named() {
        let (original, wrong) = (file(600_000), vec![7; 600_000]);
        let manifest = manifest(&original);
        let mut got = Vec::new();
        let said = copy(&mut &wrong[..], &mut got, &manifest, |_, _| Ok(()), |_| {});
        let said = said.unwrap_err().to_string();
        assert!(said.starts_with("block 0 differs from its hash"), "{said}");
        assert!(got.is_empty(), "nothing wrong is written");
        let gone = |_: u64, _: &mut [u8]| Err(io::Error::other("nobody answers"));
        let said = copy(&mut &wrong[..], &mut got, &manifest, gone, |_| {}).unwrap_err();
        assert!(said.to_string().ends_with("nobody answers"), "{said}");
    }
}
