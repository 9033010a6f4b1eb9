//! The TCP options that this crate reads and writes: maximum segment size (RFC 9293), window scale and
//! timestamps (RFC 7323), SACK (RFC 2018).
//!
//! Separate so that the options of a segment are parsed only once. An option with an invalid length ends the
//! parsing; the options before it count. Nothing here allocates or panics.

use rxo_wire::build::{maximum_segment_size_option, timestamp_option};
use rxo_wire::tcp::{OptionKind, Options, SackBlocks, TcpOption, Timestamp};

/// The TCP options of one segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SegmentOptions {
    /// The largest segment that the peer accepts, in bytes of payload and options. `None` without the MSS
    /// option, which only a SYN has.
    pub maximum_segment_size: Option<u16>,
    /// The shift of the peer's windows in bits. `None` without the window scale option, which only a SYN has.
    pub window_scale: Option<u8>,
    /// `true` if the peer accepts SACK options. Only a SYN has this option.
    pub is_sack_permitted: bool,
    /// TSval and TSecr: the sender's clock and the echo of the receiver's. `None` without the timestamp
    /// option.
    pub timestamp: Option<Timestamp>,
    /// The SACK blocks: the data that the peer has received out of order.
    pub sack: SackBlocks,
}

impl SegmentOptions {
    /// Parses the TCP options in `bytes`, the part of a header after its first 20 bytes. Takes a fast path if
    /// there are no options, or only a timestamp in its usual position (RFC 7323, appendix A).
    #[inline]
    #[must_use]
    pub fn read(bytes: &[u8]) -> Self {
        if bytes.is_empty() {
            return Self::default();
        }
        match Timestamp::find_aligned(bytes) {
            None => Self::read_each(bytes),
            timestamp => Self { timestamp, ..Self::default() },
        }
    }

    /// Parses the TCP options of a header one by one.
    fn read_each(bytes: &[u8]) -> Self {
        let mut read = Self::default();
        for option in Options::new(bytes).map_while(Result::ok) {
            read.take(&option);
        }
        read
    }

    /// Returns `true` if there is no option except possibly a timestamp.
    #[inline]
    pub(crate) const fn is_plain(&self) -> bool {
        let Self { maximum_segment_size, window_scale, is_sack_permitted, timestamp: _, sack } =
            self;
        let is_of_syn =
            maximum_segment_size.is_some() || window_scale.is_some() || *is_sack_permitted;
        !is_of_syn && sack.is_empty()
    }

    fn take(&mut self, option: &TcpOption<'_>) {
        match (option.kind, option.data) {
            (OptionKind::MaximumSegmentSize, &[high, low]) => {
                self.maximum_segment_size = Some(u16::from_be_bytes([high, low]));
            }
            (OptionKind::WindowScale, &[shift]) => self.window_scale = Some(shift),
            (OptionKind::SackPermitted, []) => self.is_sack_permitted = true,
            (OptionKind::Timestamp, _) => self.timestamp = option.timestamp().or(self.timestamp),
            (OptionKind::Sack, data) => self.sack.push_option(data),
            _ => {}
        }
    }
}

/// The encoded TCP options of a segment to send; the length is a multiple of 4 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OptionBytes {
    bytes: [u8; Self::MAX],
    length: u8,
}

impl Default for OptionBytes {
    fn default() -> Self {
        Self { bytes: [0; Self::MAX], length: 0 }
    }
}

impl OptionBytes {
    const MAX: usize = 40;

    /// Returns the encoded TCP options.
    #[must_use]
    pub fn as_slice(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.length)).unwrap_or_default()
    }

    pub(crate) fn push_maximum_segment_size(&mut self, bytes: u16) {
        self.push(&maximum_segment_size_option(bytes));
    }

    pub(crate) fn push_window_scale(&mut self, shift: u8) {
        self.push(&[1, 3, 3, shift]);
    }

    pub(crate) fn push_sack_permitted(&mut self) {
        self.push(&[1, 1, 4, 2]);
    }

    /// Appends the option SACK-permitted and the timestamp, in the space of a padded timestamp.
    pub(crate) fn push_sack_permitted_and_timestamp(&mut self, timestamp: Timestamp) {
        let mut both = timestamp_option(timestamp);
        both[..2].copy_from_slice(&[4, 2]);
        self.push(&both);
    }

    pub(crate) fn push_timestamp(&mut self, timestamp: Timestamp) {
        self.push(&timestamp_option(timestamp));
    }

    /// Replaces TSecr if a timestamp is the only option. Otherwise does nothing.
    #[inline]
    pub(crate) fn set_echo(&mut self, echo: u32) {
        let at = TIMESTAMP_BYTES as usize - size_of::<u32>();
        if u32::from(self.length) == TIMESTAMP_BYTES
            && let Some(place) = self.bytes.get_mut(at..TIMESTAMP_BYTES as usize)
        {
            place.copy_from_slice(&echo.to_be_bytes());
        }
    }

    /// Appends as many SACK blocks of `blocks` as fit into `room` bytes.
    pub(crate) fn push_sack_within(&mut self, mut blocks: SackBlocks, room: u32) {
        blocks
            .truncate((room as usize).saturating_sub(SACK_PREFIX_BYTES) / SackBlocks::BLOCK_BYTES);
        self.push_sack(blocks);
    }

    /// Appends as many SACK blocks of `blocks` as fit; the first blocks are the most important (RFC 2018,
    /// section 4).
    pub(crate) fn push_sack(&mut self, mut blocks: SackBlocks) {
        let room = Self::MAX - usize::from(self.length);
        blocks.truncate(room.saturating_sub(SACK_PREFIX_BYTES) / SackBlocks::BLOCK_BYTES);
        if blocks.is_empty() {
            return;
        }
        let bytes = (2 + blocks.as_slice().len() * SackBlocks::BLOCK_BYTES) as u8;
        self.push(&[1, 1, 5, bytes]);
        for block in blocks.as_slice() {
            self.push(&block.start.0.to_be_bytes());
            self.push(&block.end.0.to_be_bytes());
        }
    }

    fn push(&mut self, option: &[u8]) {
        let start = usize::from(self.length);
        if let Some(place) = self.bytes.get_mut(start..start + option.len()) {
            place.copy_from_slice(option);
            self.length += option.len() as u8;
        }
    }
}

/// The length of a padded timestamp option in bytes, by which the payload of each segment shrinks.
pub(crate) const TIMESTAMP_BYTES: u32 = 12;

/// The length of a SACK option with one block and its padding, in bytes.
pub(crate) const LEAST_SACK_BYTES: u32 = 12;

/// The length of the prefix of a SACK option, in bytes: two no-operations, kind and length.
const SACK_PREFIX_BYTES: usize = 4;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use rxo_wire::SeqNumber;
    use rxo_wire::tcp::SackBlock;

    use super::*;

    proptest! {
        #[test]
        fn the_usual_options_are_what_reading_each_finds(
            is_usual: bool, mut options in prop::collection::vec(any::<u8>(), 0..=40),
        ) {
            if is_usual {
                options.resize(12, 0);
                options[..4].copy_from_slice(&[1, 1, 8, 10]);
            }
            prop_assert_eq!(SegmentOptions::read(&options), SegmentOptions::read_each(&options));
        }
    }

    #[test]
    fn a_syns_options_are_read_back() {
        let mut written = OptionBytes::default();
        written.push_maximum_segment_size(1460);
        written.push_sack_permitted();
        written.push_timestamp(Timestamp { value: 7, echo: 9 });
        written.push_window_scale(5);
        let read = SegmentOptions::read(written.as_slice());
        assert_eq!(read.maximum_segment_size, Some(1460));
        assert_eq!(read.window_scale, Some(5));
        assert!(read.is_sack_permitted);
        assert_eq!(read.timestamp, Some(Timestamp { value: 7, echo: 9 }));
    }

    /// Four SACK blocks fit alone, three beside a timestamp (RFC 2018, section 3 (b)).
    #[test]
    fn sack_blocks_fill_the_room_there_is() {
        let mut blocks = SackBlocks::default();
        for start in [100, 300, 500, 700, 900] {
            blocks.push(SackBlock { start: SeqNumber(start), end: SeqNumber(start + 50) });
        }
        let mut alone = OptionBytes::default();
        alone.push_sack(blocks);
        assert_eq!(SegmentOptions::read(alone.as_slice()).sack, blocks);
        let mut beside = OptionBytes::default();
        beside.push_timestamp(Timestamp::default());
        beside.push_sack(blocks);
        let read = SegmentOptions::read(beside.as_slice()).sack;
        assert_eq!(read.as_slice(), &blocks.as_slice()[..3]);
    }

    /// An invalid length ends the parsing; the options before it count (RFC 9293, section 3.1, MUST-7).
    #[test]
    fn what_stands_before_a_wrong_length_counts() {
        let read = SegmentOptions::read(&[2, 4, 5, 0xb4, 3, 0, 4, 2]);
        assert_eq!(read.maximum_segment_size, Some(1460));
        assert!(!read.is_sack_permitted);
        assert_eq!(SegmentOptions::read(&[2, 3, 5]), SegmentOptions::default());
    }
}
