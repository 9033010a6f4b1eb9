//! Header: the twelve bytes before every message.

use super::Wrong;

/// The length of a header, in bytes.
pub const HEADER_BYTES: usize = 12;

/// The longest payload that is accepted, in bytes. The longest request, a table of memory regions, has 264
/// bytes.
pub const MOST_PAYLOAD_BYTES: usize = 4_096;

const VERSION: u32 = 1;
const VERSION_MASK: u32 = 0b11;
const REPLY: u32 = 1 << 2;
const NEEDS_REPLY: u32 = 1 << 3;

/// The header of a message, as a value with one field per header field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The number of the request; a reply has the number of its request.
    pub request: u32,
    /// `true` if the message is a reply.
    pub is_reply: bool,
    /// `true` if the front end requests a reply even to a request that has no reply of its own.
    pub needs_reply: bool,
    /// The length of the payload in bytes, at most [`MOST_PAYLOAD_BYTES`].
    pub payload_bytes: usize,
}

impl Header {
    /// Parses a header.
    ///
    /// # Errors
    /// If the version is not 1, or the payload is too long.
    pub fn read(bytes: &[u8; HEADER_BYTES]) -> Result<Self, Wrong> {
        let word = |at: usize| {
            u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        let (request, flags) = (word(0), word(4));
        let payload_bytes = word(8) as usize;
        if flags & VERSION_MASK != VERSION {
            return Err(Wrong::Version(flags & VERSION_MASK));
        }
        if payload_bytes > MOST_PAYLOAD_BYTES {
            return Err(Wrong::TooLong(payload_bytes));
        }
        let (is_reply, needs_reply) = (flags & REPLY != 0, flags & NEEDS_REPLY != 0);
        Ok(Self { request, is_reply, needs_reply, payload_bytes })
    }

    /// Returns the header as the bytes that are sent.
    #[must_use]
    pub fn to_bytes(self) -> [u8; HEADER_BYTES] {
        let reply = if self.is_reply { REPLY } else { 0 };
        let needs_reply = if self.needs_reply { NEEDS_REPLY } else { 0 };
        let words = [self.request, VERSION | reply | needs_reply, self.payload_bytes as u32];
        let mut bytes = [0; HEADER_BYTES];
        for (to, word) in bytes.chunks_exact_mut(4).zip(words) {
            to.copy_from_slice(&word.to_ne_bytes());
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_survives_the_way_through_bytes() {
        for (is_reply, needs_reply) in [(false, false), (true, false), (false, true)] {
            let header = Header { request: 38, is_reply, needs_reply, payload_bytes: 264 };
            assert_eq!(Header::read(&header.to_bytes()).unwrap(), header);
        }
    }

    #[test]
    fn other_versions_and_long_payloads_are_refused() {
        let header =
            Header { request: 1, is_reply: false, needs_reply: false, payload_bytes: 4_097 };
        let mut bytes = header.to_bytes();
        assert_eq!(Header::read(&bytes), Err(Wrong::TooLong(4_097)));
        bytes[4..8].copy_from_slice(&2_u32.to_ne_bytes());
        assert_eq!(Header::read(&bytes), Err(Wrong::Version(2)));
    }
}
