//! Setters of the transport layer.

use super::{ACK, Packet};

const FIN: u16 = 0x001;
const SYN: u16 = 0x002;
const RST: u16 = 0x004;
const PSH: u16 = 0x008;
const URG: u16 = 0x020;
const ECE: u16 = 0x040;
const CWR: u16 = 0x080;

impl Packet {
    /// Sets SEG.SEQ.
    #[must_use]
    pub fn seq(mut self, seq: u32) -> Self {
        self.seq = seq;
        self
    }

    /// Sets SEG.ACK.
    #[must_use]
    pub fn ack(mut self, ack: u32) -> Self {
        self.ack = ack;
        self
    }

    /// Sets SEG.WND, unscaled.
    #[must_use]
    pub fn window(mut self, window: u16) -> Self {
        self.window = window;
        self
    }

    /// Sets the payload length, in bytes.
    #[must_use]
    pub fn len(mut self, bytes: usize) -> Self {
        self.len = bytes;
        self
    }

    /// Removes the payload.
    #[must_use]
    pub fn pure_ack(self) -> Self {
        self.len(0)
    }

    /// Sets the stream from which the payload is taken. [`Packet::flow`] sets it too, so call this
    /// afterwards.
    #[must_use]
    pub fn stream(mut self, stream: u32) -> Self {
        self.stream = stream;
        self
    }

    /// Sets the twelve bits between data offset and window to exactly `bits`.
    #[must_use]
    pub fn flags(mut self, bits: u16) -> Self {
        self.flags = bits & 0x0fff;
        self
    }

    /// Sets PSH.
    #[must_use]
    pub fn psh(self) -> Self {
        self.with(PSH)
    }

    /// Sets FIN.
    #[must_use]
    pub fn fin(self) -> Self {
        self.with(FIN)
    }

    /// Sets SYN.
    #[must_use]
    pub fn syn(self) -> Self {
        self.with(SYN)
    }

    /// Sets RST.
    #[must_use]
    pub fn rst(self) -> Self {
        self.with(RST)
    }

    /// Sets URG.
    #[must_use]
    pub fn urg(self) -> Self {
        self.with(URG)
    }

    /// Sets ECE.
    #[must_use]
    pub fn ece(self) -> Self {
        self.with(ECE)
    }

    /// Sets CWR.
    #[must_use]
    pub fn cwr(self) -> Self {
        self.with(CWR)
    }

    /// Clears ACK.
    #[must_use]
    pub fn no_ack(mut self) -> Self {
        self.flags &= !ACK;
        self
    }

    fn with(mut self, bits: u16) -> Self {
        self.flags |= bits;
        self
    }

    /// Sets the urgent pointer, but not the flag.
    #[must_use]
    pub fn urgent(mut self, pointer: u16) -> Self {
        self.urgent = pointer;
        self
    }

    /// Adds options as raw bytes, padded to whole words with end-of-list bytes.
    #[must_use]
    pub fn options(mut self, bytes: &[u8]) -> Self {
        self.tcp_options.extend_from_slice(bytes);
        self
    }

    /// Adds a timestamp after two no-operations, its usual position.
    #[must_use]
    pub fn ts(self, value: u32, echo: u32) -> Self {
        self.options(&[1, 1]).bare_timestamp(value, echo)
    }

    /// Adds a no-operation, a timestamp, and a no-operation.
    #[must_use]
    pub fn ts_in_the_middle(self, value: u32, echo: u32) -> Self {
        self.options(&[1]).bare_timestamp(value, echo).options(&[1])
    }

    /// Adds a timestamp, followed by two no-operations.
    #[must_use]
    pub fn ts_first(self, value: u32, echo: u32) -> Self {
        self.bare_timestamp(value, echo).options(&[1, 1])
    }

    /// Adds a timestamp without padding: ten bytes.
    #[must_use]
    pub fn bare_timestamp(self, value: u32, echo: u32) -> Self {
        self.options(&[8, 10]).options(&value.to_be_bytes()).options(&echo.to_be_bytes())
    }

    /// Adds a no-operation and a window scale option.
    #[must_use]
    pub fn window_scale(self, shift: u8) -> Self {
        self.options(&[1, 3, 3, shift])
    }

    /// Adds two no-operations and a SACK option with `blocks`.
    #[must_use]
    pub fn sack(self, blocks: &[(u32, u32)]) -> Self {
        let mut bytes = vec![1, 1, 5, (2 + 8 * blocks.len()) as u8];
        for (left, right) in blocks {
            bytes.extend_from_slice(&left.to_be_bytes());
            bytes.extend_from_slice(&right.to_be_bytes());
        }
        self.options(&bytes)
    }

    /// Makes the data offset wrong by `words`.
    #[must_use]
    pub fn offset_lie(mut self, words: i8) -> Self {
        self.offset_lie = words;
        self
    }

    /// Makes the transport checksum wrong by one.
    #[must_use]
    pub fn bad_checksum(mut self) -> Self {
        self.checksum_error = 1;
        self
    }
}
