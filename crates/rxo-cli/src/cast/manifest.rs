//! The manifest of a cast, which comes before the file: its length, its name, and the hash of each of its
//! blocks (docs/cast-protocol.md).
//!
//! This module is separate from the stream, because a receiver may get the manifest again over another
//! connection (`again.rs`). A receiver that knows the [root](Manifest::root) detects a wrong manifest. With the
//! right manifest, the receiver detects each wrong block.

use std::io::Read;

use sha2::{Digest, Sha256};

use super::stream::{StreamError, array, fill};

/// A SHA-256 hash.
pub(super) type Hash = [u8; 32];

/// The manifest of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Manifest {
    /// The length of the file, in bytes.
    pub(super) bytes: u64,
    /// The name of the file, without a path.
    pub(super) name: String,
    /// The hash of each block, in order.
    pub(super) hashes: Vec<Hash>,
}

impl Manifest {
    /// Reads the manifest of a file of at most `most_bytes` bytes from `from`. It needs 1/8,192 of that in memory.
    ///
    /// # Errors
    /// If the bytes are no valid manifest, or reading fails.
    pub(super) fn read(from: &mut impl Read, most_bytes: u64) -> Result<Self, StreamError> {
        match &array(from)? {
            MAGIC => {}
            OLDER_MAGIC => return Err(StreamError::Older),
            _ => return Err(StreamError::Magic),
        }
        let bytes = u64::from_be_bytes(array(from)?);
        let mut name = vec![0; u16::from_be_bytes(array(from)?).into()];
        if !(1..=MOST_NAME_BYTES).contains(&name.len()) {
            return Err(StreamError::Name(format!("{} bytes", name.len())));
        }
        if bytes > most_bytes {
            return Err(StreamError::Length(bytes));
        }
        fill(from, &mut name)?;
        let name = String::from_utf8(name)
            .map_err(|error| StreamError::Name(String::from_utf8_lossy(error.as_bytes()).into()))?;
        if !is_name(&name) {
            return Err(StreamError::Name(name));
        }
        // The length may be false, so memory grows only with the hashes that arrive.
        let hashes = (0..blocks(bytes)).map(|_| array(from)).collect::<Result<_, _>>()?;
        Ok(Self { bytes, name, hashes })
    }

    /// Encodes the manifest in the format in which the sender sends it.
    pub(super) fn encoded(&self) -> Vec<u8> {
        let length = (self.name.len() as u16).to_be_bytes();
        let head = [&MAGIC[..], &self.bytes.to_be_bytes(), &length, self.name.as_bytes()].concat();
        [&head[..], self.hashes.as_flattened()].concat()
    }

    /// Returns the hash of the manifest, its root. The root authenticates the whole file, because the
    /// manifest contains the hash of each block.
    pub(super) fn root(&self) -> Hash {
        Sha256::digest(self.encoded()).into()
    }

    /// Returns the number of blocks of the file.
    pub(super) fn blocks(&self) -> u64 {
        blocks(self.bytes)
    }

    /// Returns the length of block `index` in bytes; 0 if there is none.
    pub(super) fn block_bytes(&self, index: u64) -> usize {
        let left = self.bytes.saturating_sub(index.saturating_mul(BLOCK_BYTES as u64));
        usize::try_from(left).unwrap_or(BLOCK_BYTES).min(BLOCK_BYTES)
    }

    /// Returns `true` if `block` has the hash of block `index`.
    pub(super) fn is_block(&self, index: u64, block: &[u8]) -> bool {
        let hash = usize::try_from(index).ok().and_then(|index| self.hashes.get(index));
        hash.is_some_and(|hash| Sha256::digest(block)[..] == hash[..])
    }
}

/// Returns `hash` in hexadecimal digits.
pub(super) fn hexadecimal(hash: &Hash) -> String {
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Parses 64 hexadecimal digits; `None` if `text` is something else.
pub(super) fn parse_hash(text: &str) -> Option<Hash> {
    let mut hash = [0; 32];
    if text.len() != 64 || !text.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    for (at, byte) in hash.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[2 * at..2 * at + 2], 16).ok()?;
    }
    Some(hash)
}

fn blocks(bytes: u64) -> u64 {
    bytes.div_ceil(BLOCK_BYTES as u64)
}

/// Returns `true` if `name` is a plain file name: without `/` and control characters, and not `.` or `..`.
fn is_name(name: &str) -> bool {
    let is_plain = |letter: char| letter != '/' && !letter.is_control();
    name != "." && name != ".." && name.chars().all(is_plain)
}

/// The length of each block but the last, in bytes. The hashes then take 1/8,192 of the file's length.
pub(super) const BLOCK_BYTES: usize = 256 << 10;
/// The length of the largest file in bytes, 8 TiB: its hashes take 1 GiB.
pub(super) const MOST_FILE_BYTES: u64 = 1 << 43;
const MAGIC: &[u8; 8] = b"RXOCAST2";
const OLDER_MAGIC: &[u8; 8] = b"RXOCAST1";
const MOST_NAME_BYTES: usize = 255;

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest(name: &str, bytes: u64) -> Manifest {
        let hashes = (0..blocks(bytes)).map(|index| [index as u8; 32]).collect();
        Manifest { bytes, name: name.to_owned(), hashes }
    }

    fn read(encoded: &[u8]) -> Result<Manifest, StreamError> {
        Manifest::read(&mut &*encoded, MOST_FILE_BYTES)
    }

    #[test]
    fn a_manifest_reads_as_it_was_written() {
        for bytes in [0, 1, BLOCK_BYTES as u64, 1_000_000] {
            let manifest = manifest("Bär.img", bytes);
            let encoded = manifest.encoded();
            assert_eq!(read(&encoded).unwrap(), manifest);
            assert_eq!(encoded[8..16], bytes.to_be_bytes());
            let all: usize = (0..manifest.blocks()).map(|index| manifest.block_bytes(index)).sum();
            assert_eq!(all as u64, bytes);
            for cut in 0..encoded.len() {
                let read = read(&encoded[..cut]);
                assert!(matches!(read, Err(StreamError::Short)), "at {cut}");
            }
        }
    }

    #[test]
    fn names_that_lead_elsewhere_are_refused() {
        for name in ["", ".", "..", "a/b", "/etc/passwd", "a\0b", "a\nb", &"a".repeat(256)] {
            let said = read(&manifest(name, 1).encoded()).unwrap_err();
            assert!(said.to_string().contains("which is no file's name"), "{said}");
        }
        for name in ["..a", &"a".repeat(255)] {
            assert!(read(&manifest(name, 1).encoded()).is_ok());
        }
    }

    #[test]
    fn a_length_that_no_file_has_allocates_nothing() {
        let empty = manifest("a", 0).encoded();
        let of = |bytes: u64| read(&[&empty[..8], &bytes.to_be_bytes(), &empty[16..]].concat());
        assert!(matches!(of(MOST_FILE_BYTES + 1), Err(StreamError::Length(_))));
        assert!(matches!(of(MOST_FILE_BYTES), Err(StreamError::Short)));
    }

    #[test]
    fn an_older_sender_is_named() {
        let older = read(b"RXOCAST1").unwrap_err().to_string();
        assert!(older.contains("older rxo"), "{older}");
        assert!(matches!(read(b"RXOCAST9"), Err(StreamError::Magic)));
    }

    #[test]
    fn a_hash_is_64_digits() {
        let hash = [0xab; 32];
        assert_eq!(parse_hash(&hexadecimal(&hash)), Some(hash));
        for wrong in ["", "ab", &"g".repeat(64), &"+a".repeat(32)] {
            assert_eq!(parse_hash(wrong), None, "{wrong}");
        }
    }
}
