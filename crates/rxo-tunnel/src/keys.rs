//! Keys: 32 bytes, in base64 in files and on the command line, in hexadecimal on the control socket.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use anyhow::{Context, Result, anyhow, bail};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;

/// A private, public or preshared key.
pub(crate) type Key = [u8; 32];

/// Maximum number of bytes that are read of a key file; a key with its line end has 45.
const MOST_BYTES: u64 = 100;

/// Reads a key in base64 from a file that only its owner may read.
///
/// # Errors
/// If the file cannot be read, if its mode permits access by other users, or if it does not contain a key.
pub(crate) fn key_in(path: &Path) -> Result<Key> {
    let file = File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
    let mode = file.metadata().map_or(0, |it| it.permissions().mode() & 0o777);
    if mode & 0o077 != 0 {
        let path = path.display();
        bail!("{path} has mode {mode:04o}, so others can use the key; `chmod 600 {path}`");
    }
    let mut text = String::new();
    let read = file.take(MOST_BYTES).read_to_string(&mut text);
    let key = read.ok().and_then(|_| from_base64(text.trim()).ok());
    key.ok_or_else(|| anyhow!("{} holds no key; `wg genkey` makes one", path.display()))
}

/// Parses a key in base64.
///
/// # Errors
/// If `text` is not the base64 form of 32 bytes.
pub(crate) fn from_base64(text: &str) -> Result<Key, String> {
    let bytes = BASE64_STANDARD.decode(text).ok().and_then(|bytes| bytes.try_into().ok());
    bytes.ok_or_else(|| "a key is 32 bytes in base64, 44 characters".to_owned())
}

/// Parses a key of 64 hexadecimal digits; `None` if `text` is anything else.
pub(crate) fn from_hex(text: &str) -> Option<Key> {
    let digits: Option<Vec<u32>> = text.chars().map(|it| it.to_digit(16)).collect();
    let digits: [u32; 64] = digits?.try_into().ok()?;
    Some(std::array::from_fn(|n| (digits[2 * n] << 4 | digits[2 * n + 1]) as u8))
}

/// Formats a key as 64 hexadecimal digits.
pub(crate) fn to_hex(key: &Key) -> String {
    key.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_has_32_bytes() {
        assert_eq!(from_base64(&BASE64_STANDARD.encode([7; 32])), Ok([7; 32]));
        from_base64(&BASE64_STANDARD.encode([7; 31])).unwrap_err();
        from_base64("no key").unwrap_err();
    }

    #[test]
    fn hexadecimal_comes_back() {
        let key = std::array::from_fn(|n| n as u8 * 7);
        assert_eq!(from_hex(&to_hex(&key)), Some(key));
        assert_eq!(from_hex(&to_hex(&key).to_uppercase()), Some(key));
        for wrong in ["", "00", &"0".repeat(63), &"g".repeat(64), &"é".repeat(32)] {
            assert_eq!(from_hex(wrong), None, "{wrong}");
        }
    }
}
