//! The byte stream of a cast, as the sender writes it: manifest, file (docs/cast-protocol.md).
//!
//! This module is separate from the cast. It only reads the file, once for its hashes, then in order for the
//! group, and again for late receivers and for blocks that receivers request.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use anyhow::{Context, Result, anyhow, bail};
use rxo_host::SharedBytes;
use sha2::{Digest, Sha256};

use super::again::MANIFEST;
use super::manifest::{BLOCK_BYTES, Hash, MOST_FILE_BYTES, Manifest, hexadecimal};
use crate::exit::usage;

/// The file of a cast, before its hashes are known.
#[derive(Debug)]
pub(super) struct Original {
    file: File,
    /// The name that receivers see; `None` if the file is sent without a manifest.
    name: Option<String>,
    /// The length of the file, in bytes.
    pub(super) bytes: u64,
}

/// The file of a cast with its manifest, shared by all threads that send the file.
#[derive(Debug)]
pub(super) struct Source {
    file: File,
    /// The manifest in its encoded form; empty if the file is sent without one.
    manifest: Vec<u8>,
    bytes: u64,
    /// The hash of the manifest; `None` if the file is sent without one.
    root: Option<Hash>,
    sha256: Hash,
}

impl Original {
    /// Opens the file at `path`, to be sent with a manifest, or without one if `is_raw` is `true`.
    ///
    /// # Errors
    /// If the file cannot be opened, is no regular file, or has a name or a length that no receiver accepts.
    pub(super) fn open(path: &Path, is_raw: bool) -> Result<Self> {
        let open = || format!("cannot read {}", path.display());
        let wrong = |message: &str| Err(usage(format!("{}: {message}", path.display())));
        // Opening a pipe would wait for its writer.
        if !path.metadata().with_context(open)?.is_file() {
            return wrong("give a regular file");
        }
        let file = File::open(path).with_context(open)?;
        let seen = file.metadata().with_context(open)?;
        if is_raw {
            return Ok(Self { file, name: None, bytes: seen.len() });
        }
        if seen.len() > MOST_FILE_BYTES {
            return wrong("it is longer than 8 TiB; use --raw");
        }
        let name = path.file_name().and_then(|name| name.to_str());
        match name.filter(|name| name.len() <= 255 && !name.chars().any(char::is_control)) {
            Some(name) => Ok(Self { file, name: Some(name.to_owned()), bytes: seen.len() }),
            None => wrong("its name is no text of at most 255 bytes; rename it, or use --raw"),
        }
    }

    /// Starts a thread that reads the file and computes its hashes. The thread returns the file with its
    /// manifest.
    ///
    /// # Errors
    /// If the thread cannot be started.
    pub(super) fn begin_hashing(self) -> io::Result<JoinHandle<Result<Source>>> {
        thread::Builder::new().name("hashes".into()).spawn(|| self.hash())
    }

    fn hash(self) -> Result<Source> {
        let Self { file, name, bytes } = self;
        let (mut whole, mut hashes) = (Sha256::new(), Vec::new());
        let mut block = vec![0; BLOCK_BYTES];
        let mut at = 0;
        while at < bytes {
            let block = &mut block[..(bytes - at).min(BLOCK_BYTES as u64) as usize];
            read(&file, block, at)?;
            whole.update(&*block);
            if name.is_some() {
                hashes.push(Sha256::digest(&*block).into());
            }
            at += block.len() as u64;
        }
        let manifest = name.map(|name| Manifest { bytes, name, hashes });
        let root = manifest.as_ref().map(Manifest::root);
        let manifest = manifest.map_or(Vec::new(), |manifest| manifest.encoded());
        Ok(Source { file, manifest, bytes, root, sha256: whole.finalize().into() })
    }
}

impl Source {
    /// Returns the hash of the manifest in hexadecimal digits; `None` without a manifest.
    pub(super) fn root(&self) -> Option<String> {
        self.root.as_ref().map(hexadecimal)
    }

    /// Returns the SHA-256 of the file in hexadecimal digits.
    pub(super) fn sha256(&self) -> String {
        hexadecimal(&self.sha256)
    }

    /// Returns up to `bytes` bytes of the stream, starting at position `from`; an empty result beyond the end
    /// of the stream.
    ///
    /// # Errors
    /// If the file cannot be read, or has become shorter.
    pub(super) fn piece(&self, from: u64, bytes: u64) -> Result<SharedBytes> {
        let wanted = usize::try_from(bytes).unwrap_or(BLOCK_BYTES).min(BLOCK_BYTES);
        let manifest_bytes = self.manifest.len() as u64;
        if from < manifest_bytes {
            let rest = &self.manifest[from as usize..];
            return Ok(rest[..rest.len().min(wanted)].to_vec().into());
        }
        let at = from - manifest_bytes;
        let left = usize::try_from(self.bytes.saturating_sub(at)).unwrap_or(usize::MAX);
        let mut piece = vec![0; wanted.min(left)];
        read(&self.file, &mut piece, at)?;
        Ok(piece.into())
    }

    /// Returns block `number` of the file, or the manifest.
    ///
    /// # Errors
    /// If there is no such block, or the file cannot be read.
    pub(super) fn answer(&self, number: u64) -> io::Result<Vec<u8>> {
        if number == MANIFEST {
            return Ok(self.manifest.clone());
        }
        let at = number.saturating_mul(BLOCK_BYTES as u64);
        let left = self.bytes.checked_sub(at).filter(|left| *left > 0);
        let left = left.ok_or(io::ErrorKind::InvalidInput)?;
        let mut block = vec![0; left.min(BLOCK_BYTES as u64) as usize];
        self.file.read_exact_at(&mut block, at)?;
        Ok(block)
    }
}

/// The stream of a cast, read in order.
#[derive(Debug)]
pub(super) struct Outgoing {
    pub(super) source: Arc<Source>,
    /// The number of bytes that were read so far.
    read: u64,
}

impl Outgoing {
    /// Waits until the hashes of the file are known, and returns the stream from its beginning.
    ///
    /// # Errors
    /// If the file cannot be read, or has become shorter.
    pub(super) fn after(hashing: JoinHandle<Result<Source>>) -> Result<Self> {
        let source =
            hashing.join().map_err(|_| anyhow!("the thread for the hashes has failed"))??;
        Ok(Self { source: Arc::new(source), read: 0 })
    }

    /// Returns the next piece of the stream; `None` at the end of the stream.
    ///
    /// # Errors
    /// If the file cannot be read, or has become shorter.
    pub(super) fn next_piece(&mut self) -> Result<Option<SharedBytes>> {
        let piece = self.source.piece(self.read, BLOCK_BYTES as u64)?;
        self.read += piece.len() as u64;
        Ok((!piece.is_empty()).then_some(piece))
    }
}

fn read(file: &File, to: &mut [u8], at: u64) -> Result<()> {
    match file.read_exact_at(to, at) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
            bail!("the file became shorter while it was sent; no receiver has it")
        }
        read => read.context("cannot read the file"),
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::super::stream;
    use super::*;

    #[test]
    fn a_pipe_that_nobody_writes_is_refused_at_once() {
        let path = std::env::temp_dir().join(format!("rxo-pipe-{}", std::process::id()));
        assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
        let said = Original::open(&path, true).unwrap_err().to_string();
        std::fs::remove_file(&path).unwrap();
        assert!(said.ends_with(": give a regular file"), "{said}");
    }

    /// The receiver reads back the same file, and whoever asks again gets the same bytes.
    #[test]
    fn a_receiver_reads_what_was_written() {
        let path = std::env::temp_dir().join(format!("rxo-cast-{}.img", std::process::id()));
        let file: Vec<u8> = (0..600_000_u32).map(|at| (at ^ at >> 8) as u8).collect();
        std::fs::write(&path, &file).unwrap();
        let hashing = Original::open(&path, false).unwrap().begin_hashing().unwrap();
        let mut outgoing = Outgoing::after(hashing).unwrap();
        std::fs::remove_file(&path).unwrap();
        let mut all = Vec::new();
        while let Some(piece) = outgoing.next_piece().unwrap() {
            all.extend_from_slice(&piece);
        }
        let source = outgoing.source;
        let mut again = Vec::new();
        while again.len() < all.len() {
            again.extend_from_slice(&source.piece(again.len() as u64, 100_000).unwrap());
        }
        assert!(all == again);
        let (mut from, mut got) = (&all[..], Vec::new());
        let manifest = Manifest::read(&mut from, MOST_FILE_BYTES).unwrap();
        let never = |_: u64, _: &mut [u8]| panic!("nothing is wrong");
        let copied = stream::copy(&mut from, &mut got, &manifest, never, |_| {}).unwrap();
        assert!(got == file && path.ends_with(&manifest.name));
        assert_eq!(hexadecimal(&copied.sha256), source.sha256());
        assert_eq!(Some(hexadecimal(&manifest.root())), source.root());
        assert_eq!(source.answer(MANIFEST).unwrap(), manifest.encoded());
        assert!(source.answer(2).unwrap() == file[2 * BLOCK_BYTES..]);
        assert!(source.answer(3).is_err() && source.answer(u64::MAX - 1).is_err());
    }
}
