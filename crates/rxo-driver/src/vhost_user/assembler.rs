//! Assembler: reconstructs messages from a stream of bytes and descriptors.

use std::os::fd::OwnedFd;

use super::{HEADER_BYTES, Header, MOST_DESCRIPTORS, Wrong};

/// A complete message of the vhost-user protocol.
#[derive(Debug)]
pub struct Message {
    /// The message's header.
    pub header: Header,
    /// The payload of the message, whose length the header contains.
    pub payload: Vec<u8>,
    /// The descriptors that came with the bytes of the message, in order.
    pub descriptors: Vec<OwnedFd>,
}

/// Assembles messages. The caller must read at most [`wanted`](Self::wanted) bytes at a time from the socket, so
/// that it does not receive the descriptors of the next message together with the current message.
#[derive(Debug, Default)]
pub struct Assembler {
    bytes: Vec<u8>,
    descriptors: Vec<OwnedFd>,
}

impl Assembler {
    /// Returns the number of bytes that are missing from the header or the payload of the current message, at
    /// least 1.
    ///
    /// # Errors
    /// If the header is invalid.
    pub fn wanted(&self) -> Result<usize, Wrong> {
        Ok(self.whole_bytes()? - self.bytes.len())
    }

    /// Returns `true` if no message has begun.
    pub(super) const fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Adds received bytes and descriptors. Returns the message once it is complete.
    ///
    /// # Errors
    /// If the header is invalid, `bytes` is longer than [`wanted`](Self::wanted), or there are too many
    /// descriptors.
    pub fn push(
        &mut self,
        bytes: &[u8],
        descriptors: impl IntoIterator<Item = OwnedFd>,
    ) -> Result<Option<Message>, Wrong> {
        if bytes.len() > self.wanted()? {
            return Err(Wrong::Size);
        }
        self.bytes.extend_from_slice(bytes);
        self.descriptors.extend(descriptors);
        if self.descriptors.len() > MOST_DESCRIPTORS {
            return Err(Wrong::Descriptors);
        }
        match self.header()? {
            Some(header) if self.bytes.len() == self.whole_bytes()? => {
                let payload = self.bytes.split_off(HEADER_BYTES);
                self.bytes.clear();
                let descriptors = std::mem::take(&mut self.descriptors);
                Ok(Some(Message { header, payload, descriptors }))
            }
            _ => Ok(None),
        }
    }

    /// Returns the length of the whole message, in bytes; as long as the header is incomplete, the length of the
    /// header.
    fn whole_bytes(&self) -> Result<usize, Wrong> {
        let payload_bytes = self.header()?.map_or(0, |header| header.payload_bytes);
        Ok(HEADER_BYTES + payload_bytes)
    }

    fn header(&self) -> Result<Option<Header>, Wrong> {
        self.bytes.first_chunk().map(Header::read).transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(payload_bytes: usize) -> Vec<u8> {
        let header = Header { request: 2, is_reply: false, needs_reply: false, payload_bytes };
        let mut bytes = header.to_bytes().to_vec();
        bytes.extend((0..payload_bytes).map(|n| n as u8));
        bytes
    }

    #[test]
    fn messages_come_out_whole_however_the_bytes_come() {
        let stream = [message(8), message(0), message(264)].concat();
        for at_once in [1, 5, 12, 4_096] {
            let (mut assembler, mut rest, mut seen) =
                (Assembler::default(), &stream[..], Vec::new());
            while !rest.is_empty() {
                let count = assembler.wanted().unwrap().min(at_once).min(rest.len());
                let (bytes, after) = rest.split_at(count);
                rest = after;
                seen.extend(assembler.push(bytes, []).unwrap());
            }
            let sizes: Vec<_> = seen.iter().map(|message| message.payload.len()).collect();
            assert_eq!(sizes, [8, 0, 264], "{at_once} at once");
        }
    }

    #[test]
    fn a_message_has_a_bounded_number_of_descriptors() {
        let file = || OwnedFd::from(std::fs::File::open("/dev/null").unwrap());
        let mut assembler = Assembler::default();
        assert!(assembler.push(&[1], (0..MOST_DESCRIPTORS).map(|_| file())).is_ok());
        assert_eq!(assembler.push(&[0], [file()]).unwrap_err(), Wrong::Descriptors);
    }
}
