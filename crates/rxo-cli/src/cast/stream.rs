//! The byte stream of a cast, as a receiver reads it: a head with length and name, the file, its hash (docs/cast.md).
//!
//! Separate from connections and files: this module reads from any reader, writes to any writer, and returns errors.

use std::io::{self, Read, Write};

use sha2::{Digest, Sha256};
use thiserror::Error;

/// The head of the stream, which precedes the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Head {
    /// The length of the file, in bytes.
    pub(super) bytes: u64,
    /// The name of the file, without a path.
    pub(super) name: String,
}

/// The reason why a byte stream is not a complete file from `rxo cast send`.
#[derive(Debug, Error)]
pub(super) enum StreamError {
    /// Reading the stream failed.
    #[error("{0}")]
    Broken(io::Error),
    /// The stream ended before the file was complete.
    #[error("the sender ended early")]
    Short,
    /// The stream does not begin with the magic number of a cast.
    #[error("this is no stream of rxo cast send, or one that it sends with --raw")]
    Magic,
    /// The head names a file that cannot be created under that name.
    #[error("the sender names the file {0:?}, which is no file's name")]
    Name(String),
    /// More bytes follow the hash, which should be the end of the stream.
    #[error("the stream goes on behind its end")]
    Long,
    /// The hash in the stream is not that of the received bytes, so they are not the file.
    #[error("the hash differs from the sender's: what came is not the file")]
    Hash,
    /// The received file cannot be written.
    #[error("cannot write the file: {0}")]
    Write(io::Error),
}

impl Head {
    /// Reads the head of a stream from `from`.
    ///
    /// # Errors
    /// If the stream does not begin with a valid head, or reading fails.
    pub(super) fn read(from: &mut impl Read) -> Result<Self, StreamError> {
        if array(from)? != *MAGIC {
            return Err(StreamError::Magic);
        }
        let bytes = u64::from_be_bytes(array(from)?);
        let mut name = vec![0; u16::from_be_bytes(array(from)?).into()];
        if !(1..=MOST_NAME_BYTES).contains(&name.len()) {
            return Err(StreamError::Name(format!("{} bytes", name.len())));
        }
        fill(from, &mut name)?;
        let name = String::from_utf8(name)
            .map_err(|error| StreamError::Name(String::from_utf8_lossy(error.as_bytes()).into()))?;
        if is_name(&name) { Ok(Self { bytes, name }) } else { Err(StreamError::Name(name)) }
    }
}

/// Copies the file's `bytes` bytes from the stream to `to`. Checks that the right hash follows the file, and that
/// nothing follows the hash. Calls `progress` with the number of bytes received so far. Returns the hash.
///
/// # Errors
/// If the stream is not the file, or the file cannot be written.
pub(super) fn copy(
    from: &mut impl Read,
    to: &mut impl Write,
    bytes: u64,
    mut progress: impl FnMut(u64),
) -> Result<[u8; 32], StreamError> {
    let (mut hasher, mut buffer, mut left) = (Sha256::new(), vec![0; BUFFER_BYTES], bytes);
    while left > 0 {
        let most = usize::try_from(left).unwrap_or(BUFFER_BYTES).min(BUFFER_BYTES);
        let read = from.read(&mut buffer[..most]).map_err(StreamError::Broken)?;
        if read == 0 {
            return Err(StreamError::Short);
        }
        let piece = &buffer[..read];
        hasher.update(piece);
        to.write_all(piece).map_err(StreamError::Write)?;
        left -= read as u64;
        progress(bytes - left);
    }
    to.flush().map_err(StreamError::Write)?;
    let sent: [u8; 32] = array(from)?;
    if from.read(&mut [0; 1]).map_err(StreamError::Broken)? != 0 {
        return Err(StreamError::Long);
    }
    let found: [u8; 32] = hasher.finalize().into();
    if found == sent { Ok(found) } else { Err(StreamError::Hash) }
}

fn array<const BYTES: usize>(from: &mut impl Read) -> Result<[u8; BYTES], StreamError> {
    let mut array = [0; BYTES];
    fill(from, &mut array)?;
    Ok(array)
}

fn fill(from: &mut impl Read, to: &mut [u8]) -> Result<(), StreamError> {
    from.read_exact(to).map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof => StreamError::Short,
        _ => StreamError::Broken(error),
    })
}

/// Returns `true` if `name` is a plain file name: without `/` and control characters, and not `.` or `..`.
fn is_name(name: &str) -> bool {
    let is_plain = |letter: char| letter != '/' && !letter.is_control();
    name != "." && name != ".." && name.chars().all(is_plain)
}

const MAGIC: &[u8; 8] = b"RXOCAST1";
const MOST_NAME_BYTES: usize = 255;
const BUFFER_BYTES: usize = 256 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    /// A stream as docs/cast.md describes it, byte by byte.
    fn stream(name: &[u8], file: &[u8]) -> Vec<u8> {
        let length = (file.len() as u64).to_be_bytes();
        let head = [&b"RXOCAST1"[..], &length, &(name.len() as u16).to_be_bytes(), name].concat();
        [&head, file, &Sha256::digest(file)[..]].concat()
    }

    fn received(mut stream: &[u8]) -> Result<(String, Vec<u8>), StreamError> {
        let (head, mut file) = (Head::read(&mut stream)?, Vec::new());
        copy(&mut stream, &mut file, head.bytes, |_| {})?;
        Ok((head.name, file))
    }

    #[test]
    fn a_stream_is_the_file() {
        for file in [&b""[..], b"x", &vec![7; 300_000]] {
            let (name, got) = received(&stream("Bär.img".as_bytes(), file)).unwrap();
            assert_eq!((name.as_str(), got.as_slice()), ("Bär.img", file));
        }
    }

    /// The hash of "abc" (FIPS 180-4).
    #[test]
    fn the_hash_is_sha_256() {
        let mut behind = stream(b"abc", b"abc");
        let hash = behind.split_off(behind.len() - 32);
        assert_eq!(hash[..4], [0xba, 0x78, 0x16, 0xbf]);
    }

    #[test]
    fn one_cut_anywhere_is_none() {
        let whole = stream(b"a.img", b"0123456789");
        for cut in 0..whole.len() {
            assert!(matches!(received(&whole[..cut]), Err(StreamError::Short)), "at {cut}");
        }
    }

    #[test]
    fn one_with_a_changed_byte_is_none() {
        let whole = stream(b"a", b"0123456789");
        // The name may be another one; the hash is of the file.
        for at in (0..whole.len()).filter(|at| *at != 18) {
            let mut wrong = whole.clone();
            wrong[at] ^= 1;
            assert!(received(&wrong).is_err(), "at {at}");
        }
        let long = [&whole[..], b"more"].concat();
        assert!(matches!(received(&long), Err(StreamError::Long)));
    }

    #[test]
    fn names_that_lead_elsewhere_are_refused() {
        let bad: [&[u8]; 8] =
            [b"", b".", b"..", b"a/b", b"/etc/passwd", b"a\0b", b"a\nb", &[0xff, 0xfe]];
        for name in bad {
            let said = received(&stream(name, b"x")).unwrap_err().to_string();
            assert!(said.contains("which is no file's name"), "{said}");
        }
        assert!(received(&stream(&[b'a'; 255], b"x")).is_ok());
        assert!(received(&stream(&[b'a'; 256], b"x")).is_err());
        assert!(received(&stream(b"..a", b"x")).is_ok());
    }
}
