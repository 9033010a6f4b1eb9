//! Reply to a request. All replies have a payload of eight bytes, except the reply to [`Request::GetInflight`].

use super::{HEADER_BYTES, Header, InflightShape, Request, RingNumber, Wrong};

/// A reply: the number of its request, and its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply {
    request: u32,
    value: [u8; 8],
}

impl Reply {
    pub(super) fn number(request: u32, value: u64) -> Self {
        Self { request, value: value.to_ne_bytes() }
    }

    pub(super) fn ring(request: u32, RingNumber { ring, number }: RingNumber) -> Self {
        let mut value = [0; 8];
        value[..4].copy_from_slice(&ring.to_ne_bytes());
        value[4..].copy_from_slice(&number.to_ne_bytes());
        Self { request, value }
    }

    /// Returns the bytes of the reply to [`Request::GetInflight`]: a file of
    /// `bytes` bytes for a record of this shape.
    pub(super) fn inflight(shape: InflightShape, bytes: u64) -> Vec<u8> {
        let mut payload = Vec::new();
        shape.write((bytes, 0), &mut payload);
        let request = Request::<std::os::fd::OwnedFd>::GetInflight(shape).number();
        let header =
            Header { request, is_reply: true, needs_reply: false, payload_bytes: payload.len() };
        [&header.to_bytes()[..], &payload].concat()
    }

    /// Parses the reply to the request with number `request`.
    ///
    /// # Errors
    /// If the message is not a reply to that request, or has another length.
    pub fn read(request: u32, header: Header, payload: &[u8]) -> Result<Self, Wrong> {
        if !header.is_reply || header.request != request {
            return Err(Wrong::Direction);
        }
        let value = payload.try_into().map_err(|_| Wrong::Size)?;
        Ok(Self { request, value })
    }

    /// Returns the reply as the bytes of a message.
    #[must_use]
    pub fn to_bytes(self) -> [u8; HEADER_BYTES + 8] {
        let header = Header {
            request: self.request,
            is_reply: true,
            needs_reply: false,
            payload_bytes: self.value.len(),
        };
        let mut bytes = [0; HEADER_BYTES + 8];
        bytes[..HEADER_BYTES].copy_from_slice(&header.to_bytes());
        bytes[HEADER_BYTES..].copy_from_slice(&self.value);
        bytes
    }

    /// Returns the value of the reply as one number: features, counts, or zero for success.
    #[must_use]
    pub const fn value(self) -> u64 {
        u64::from_ne_bytes(self.value)
    }
}
