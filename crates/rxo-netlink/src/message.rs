//! Netlink messages: encodes requests, and parses answers and attributes.
//!
//! The module is pure: it does no input or output. Contract: no bytes cause a panic; parsing stops at an
//! invalid length.

use std::io;

/// A request to the kernel: its message type, its flags in addition to the flags of every request, a fixed
/// header, and attributes.
#[derive(Clone, Debug)]
pub struct Request {
    kind: u16,
    flags: u16,
    body: Vec<u8>,
}

/// A message within the kernel's answer.
pub(crate) enum Answer<'a> {
    /// An object of the answer, without the netlink header.
    Object(&'a [u8]),
    /// The kernel has completed the request with this sequence number.
    Done(u32),
    /// The network configuration changed during the dump, so the dumped objects may be inconsistent.
    Overtaken,
    /// The kernel refuses the request with this sequence number, with this error.
    Refused(u32, io::Error),
}

const HEADER_BYTES: usize = 16;
const ATTRIBUTE_HEADER_BYTES: usize = 4;
/// The mask that removes the two flag bits (nested; in network byte order) from the type field of an attribute.
const TYPE_MASK: u16 = 0x3fff;
const NESTED: u16 = 0x8000;
const DUMP_INTERRUPTED: u16 = 0x10;

impl Request {
    /// Creates a request without flags and attributes. `kind` is the message type, such as `libc::RTM_NEWADDR`.
    /// `header` is the fixed structure at the start of such a message, such as `ifaddrmsg`.
    #[must_use]
    pub fn new(kind: u16, header: &[u8]) -> Self {
        Self { kind, flags: 0, body: header.to_vec() }
    }

    /// Returns a request of the type `kind` with the header and the attributes of this request, but without
    /// flags.
    #[must_use]
    pub fn with_kind(self, kind: u16) -> Self {
        Self { kind, flags: 0, ..self }
    }

    /// Adds flags to the request, such as `libc::NLM_F_CREATE`.
    #[must_use]
    pub fn flags(self, flags: libc::c_int) -> Self {
        Self { flags: self.flags | flags as u16, ..self }
    }

    /// Adds an attribute, whose value may have at most 65,531 bytes.
    #[must_use]
    pub fn attribute(mut self, kind: u16, value: &[u8]) -> Self {
        push(&mut self.body, kind, value);
        self
    }

    /// Adds a string attribute with a terminating zero byte.
    #[must_use]
    pub fn string(self, kind: u16, text: &str) -> Self {
        self.attribute(kind, &[text.as_bytes(), &[0]].concat())
    }

    /// Adds an attribute that contains other attributes.
    #[must_use]
    pub fn nest(self, kind: u16, inside: &[(u16, &[u8])]) -> Self {
        self.attribute(kind | NESTED, &nested(inside))
    }

    /// Adds several attributes in this order.
    #[must_use]
    pub fn attributes(self, all: &[(u16, Vec<u8>)]) -> Self {
        all.iter().fold(self, |request, (kind, value)| request.attribute(*kind, value))
    }

    /// Returns `true` if the kernel answers the request with an acknowledgement or the end of a dump. `flags`
    /// are sent in addition to the request's own flags.
    pub(crate) const fn is_answered(&self, flags: u16) -> bool {
        (self.flags | flags) & (libc::NLM_F_ACK | libc::NLM_F_DUMP) as u16 != 0
    }

    pub(crate) fn write(&self, to: &mut Vec<u8>, flags: u16, sequence: u32) {
        let bytes = HEADER_BYTES + self.body.len();
        to.extend_from_slice(&u32::try_from(bytes).unwrap_or(u32::MAX).to_ne_bytes());
        to.extend_from_slice(&self.kind.to_ne_bytes());
        to.extend_from_slice(&(self.flags | flags).to_ne_bytes());
        to.extend_from_slice(&sequence.to_ne_bytes());
        to.extend_from_slice(&0_u32.to_ne_bytes());
        to.extend_from_slice(&self.body);
        pad(to);
    }
}

/// Encodes attributes as the value of a nested attribute.
#[must_use]
pub fn nested(inside: &[(u16, &[u8])]) -> Vec<u8> {
    let mut bytes = Vec::new();
    inside.iter().for_each(|(kind, value)| push(&mut bytes, *kind, value));
    bytes
}

/// Parses the attributes in `bytes`. Returns the type, without flag bits, and the value of each attribute.
/// Stops at an invalid length.
pub fn attributes(bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let length = usize::from(u16_at(rest, 0)?);
        let kind = u16_at(rest, 2)? & TYPE_MASK;
        let value = rest.get(ATTRIBUTE_HEADER_BYTES..length)?;
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, value))
    })
}

/// Returns the value of the first attribute of type `kind` in `bytes`; `None` if there is none. O(n) in the
/// number of attributes.
#[must_use]
pub fn attribute(bytes: &[u8], kind: u16) -> Option<&[u8]> {
    attributes(bytes).find(|(found, _)| *found == kind).map(|(_, value)| value)
}

/// Reads the 32-bit number at offset `at` of `bytes`, in host byte order. `None` if `bytes` is too short.
#[must_use]
pub fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// Reads the 64-bit number at offset `at` of `bytes`, in host byte order. `None` if `bytes` is too short.
#[must_use]
pub fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// A change that the kernel reports without a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// The message type, such as `libc::RTM_DELADDR`.
    pub kind: u16,
    /// The object that was added, changed or removed, without its netlink header.
    pub object: Vec<u8>,
}

/// Parses the notices in a datagram of the kernel. Stops at an invalid length.
pub(crate) fn notices(datagram: &[u8]) -> impl Iterator<Item = Notice> {
    let mut rest = datagram;
    std::iter::from_fn(move || {
        let length = u32_at(rest, 0)? as usize;
        let (kind, object) = (u16_at(rest, 4)?, rest.get(HEADER_BYTES..length)?.to_vec());
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some(Notice { kind, object })
    })
}

/// Parses the messages in a datagram of the kernel. After an invalid length, yields an error and stops.
pub(crate) fn answers(datagram: &[u8]) -> impl Iterator<Item = io::Result<Answer<'_>>> {
    let mut rest = datagram;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let Some((answer, length)) = first(rest) else {
            rest = &[];
            return Some(Err(io::Error::other("an answer of the kernel is malformed")));
        };
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some(Ok(answer))
    })
}

fn first(bytes: &[u8]) -> Option<(Answer<'_>, usize)> {
    let length = u32_at(bytes, 0)? as usize;
    let (kind, flags) = (u16_at(bytes, 4)?, u16_at(bytes, 6)?);
    let sequence = u32_at(bytes, 8)?;
    let body = bytes.get(HEADER_BYTES..length)?;
    let answer = match libc::c_int::from(kind) {
        libc::NLMSG_ERROR => match u32_at(body, 0)?.cast_signed() {
            0 => Answer::Done(sequence),
            code => Answer::Refused(sequence, io::Error::from_raw_os_error(code.saturating_neg())),
        },
        libc::NLMSG_DONE => Answer::Done(sequence),
        _ if flags & DUMP_INTERRUPTED != 0 => Answer::Overtaken,
        _ => Answer::Object(body),
    };
    Some((answer, length))
}

fn push(to: &mut Vec<u8>, kind: u16, value: &[u8]) {
    let length = u16::try_from(ATTRIBUTE_HEADER_BYTES + value.len()).unwrap_or(u16::MAX);
    to.extend_from_slice(&length.to_ne_bytes());
    to.extend_from_slice(&kind.to_ne_bytes());
    to.extend_from_slice(value);
    pad(to);
}

fn pad(to: &mut Vec<u8>) {
    to.resize(to.len().next_multiple_of(4), 0);
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        let inside: [(u16, &[u8]); 2] = [(1, b"abc"), (7, &[9; 8])];
        let bytes = nested(&inside);
        assert_eq!(bytes.len(), 8 + 12);
        assert_eq!(attributes(&bytes).collect::<Vec<_>>(), inside);
        assert_eq!(attribute(&bytes, 7), Some([9; 8].as_slice()));
        assert_eq!(attribute(&bytes, 2), None);
    }

    #[test]
    fn numbers_beyond_the_end_are_none() {
        assert_eq!(u32_at(&7_u32.to_ne_bytes(), 0), Some(7));
        assert_eq!(u64_at(&7_u64.to_ne_bytes(), 0), Some(7));
        for at in [1, 8, 9, usize::MAX] {
            assert_eq!((u32_at(&[0; 4], at), u64_at(&[0; 8], at)), (None, None));
        }
    }

    #[test]
    fn lengths_that_cannot_be_end_what_is_read() {
        for length in [0_u16, 3, 9, u16::MAX] {
            let bytes = [&length.to_ne_bytes()[..], &[1, 0, 5, 5, 5, 5]].concat();
            assert_eq!(attributes(&bytes).count(), 0, "{length}");
        }
        assert!(answers(&[1, 2, 3]).next().unwrap().is_err());
        let short = [&40_u32.to_ne_bytes()[..], &[0; 12]].concat();
        assert!(answers(&short).next().unwrap().is_err());
    }

    #[test]
    fn notices_are_read_up_to_an_invalid_length() {
        let mut bytes = Vec::new();
        Request::new(libc::RTM_NEWADDR, &[1; 8]).write(&mut bytes, 0, 0);
        Request::new(libc::RTM_DELADDR, &[2; 5]).write(&mut bytes, 0, 0);
        let found: Vec<_> = notices(&bytes).collect();
        let expected = [(libc::RTM_NEWADDR, vec![1; 8]), (libc::RTM_DELADDR, vec![2; 5])];
        assert_eq!(found, expected.map(|(kind, object)| Notice { kind, object }));
        for cut in 0..bytes.len() {
            assert!(notices(&bytes[..cut]).count() < 2 || cut >= 16 + 8 + 16 + 5, "{cut}");
        }
    }

    #[test]
    fn a_refusal_is_told_from_an_acknowledgement() {
        let mut bytes = Vec::new();
        for (code, sequence) in [(0_i32, 3), (-libc::EPERM, 4)] {
            let error = Request::new(libc::NLMSG_ERROR as u16, &code.to_ne_bytes());
            error.write(&mut bytes, 0, sequence);
        }
        let mut found = answers(&bytes);
        assert!(matches!(found.next(), Some(Ok(Answer::Done(3)))));
        let refused = |error: &io::Error| error.raw_os_error() == Some(libc::EPERM);
        assert!(matches!(found.next(), Some(Ok(Answer::Refused(4, error))) if refused(&error)));
        assert!(found.next().is_none());
    }
}
