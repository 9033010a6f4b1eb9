//! The options that pcapng stores with a packet: comments, flags, and custom options.

use super::{Direction, SharedBytes};

const END: u16 = 0;
const COMMENT: u16 = 1;
const FLAGS: u16 = 2;
/// The codes of packet options whose values are numbers: flags, drops before the packet, the packet's identifier, its
/// queue.
const NUMBERS: [u16; 4] = [FLAGS, 4, 5, 6];
/// The codes of interface options whose values are numbers: speed, zone, clock offset, speed in each direction.
pub(super) const INTERFACE_NUMBERS: [u16; 5] = [8, 10, 14, 16, 17];
/// The codes of custom options whose value is a UTF-8 string (the first and the third) or bytes. The first two
/// codes allow programs to copy the option into a new file; the last two do not.
const CUSTOM: [u16; 4] = [2988, 2989, 19372, 19373];

/// The options of one packet, as they are in the file. A packet of a pcap file has none. Creating a value
/// copies and allocates nothing.
#[derive(Clone, Debug, Default)]
pub struct Options {
    bytes: SharedBytes,
    is_big_endian: bool,
}

impl Options {
    pub(super) fn new(bytes: SharedBytes, is_big_endian: bool) -> Self {
        Self { bytes, is_big_endian }
    }

    /// Returns the length of the options in the file, in bytes.
    pub(super) fn byte_len(&self) -> usize {
        self.bytes.as_ref().len()
    }

    /// Returns `true` if the packet has no options.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.iter().next().is_none()
    }

    /// Returns an iterator over all options, in the order of the file.
    #[must_use]
    pub fn iter(&self) -> OptionIter<'_> {
        OptionIter { rest: self.bytes.as_ref(), is_big_endian: self.is_big_endian }
    }

    /// Calls `show` for every option, with the value converted for a little-endian file: the
    /// numbers of known options are byte-swapped if necessary, everything else is treated as bytes.
    pub fn each_little_endian(&self, show: impl FnMut(u16, Vec<u8>)) {
        self.iter().each_little_endian(&NUMBERS, show);
    }

    /// Returns an iterator over all comments of the packet, in the order of the file. The comments are UTF-8 if
    /// the writer of the file followed the format.
    pub fn comments(&self) -> impl Iterator<Item = &[u8]> {
        self.iter().filter(|(code, _)| *code == COMMENT).map(|(_, value)| value)
    }

    /// Returns an iterator over the values of an enterprise's custom options, in the order of the file. `enterprise` is
    /// one of IANA's private enterprise numbers.
    pub fn custom(&self, enterprise: u32) -> impl Iterator<Item = &[u8]> {
        self.iter().filter(|(code, _)| CUSTOM.contains(code)).filter_map(move |(_, value)| {
            let (number, value) = value.split_first_chunk()?;
            (self.number(*number) == enterprise).then_some(value)
        })
    }

    /// Returns the direction of the packet; `None` if no option states it.
    #[must_use]
    pub fn direction(&self) -> Option<Direction> {
        let (_, flags) = self.iter().find(|(code, _)| *code == FLAGS)?;
        match self.number(*flags.first_chunk()?) & 0b11 {
            0b01 => Some(Direction::In),
            0b10 => Some(Direction::Out),
            _ => None,
        }
    }

    fn number(&self, bytes: [u8; 4]) -> u32 {
        if self.is_big_endian { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) }
    }
}

/// Iterator over the options of a block. Yields the code and the value of each option.
#[derive(Clone, Debug)]
pub struct OptionIter<'a> {
    rest: &'a [u8],
    is_big_endian: bool,
}

impl<'a> OptionIter<'a> {
    pub(super) fn new(bytes: &'a [u8], is_big_endian: bool) -> Self {
        Self { rest: bytes, is_big_endian }
    }

    pub(super) const fn is_big_endian(&self) -> bool {
        self.is_big_endian
    }

    /// Calls `show` for every option of the block, with the value converted for a little-endian file. Options
    /// whose codes are in `numbers` have numbers as values, which are byte-swapped if the file is big-endian.
    fn each_little_endian(self, numbers: &[u16], mut show: impl FnMut(u16, Vec<u8>)) {
        let is_big_endian = self.is_big_endian;
        for (code, value) in self {
            let mut value = value.to_vec();
            if is_big_endian {
                let number = if CUSTOM.contains(&code) { value.get_mut(..4) } else { None };
                match number {
                    Some(enterprise) => enterprise.reverse(),
                    None if numbers.contains(&code) => value.reverse(),
                    None => {}
                }
            }
            show(code, value);
        }
    }

    /// Returns all options as bytes of a little-endian file, without the end mark of the list.
    pub(super) fn little_endian(self, numbers: &[u16]) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.each_little_endian(numbers, |code, value| put_option(&mut bytes, code, &value));
        bytes
    }

    /// Returns the length of the option list without its end mark, in bytes; `None` if an option extends beyond
    /// the end of the block.
    pub(super) fn sound_bytes(&self) -> Option<usize> {
        let mut left = self.clone();
        while left.next().is_some() {}
        left.is_at_end().then(|| self.rest.len() - left.rest.len())
    }

    /// Returns `true` if the option list ends here, with or without an end mark.
    fn is_at_end(&self) -> bool {
        self.rest.is_empty() || self.rest.starts_with(&END.to_be_bytes())
    }

    fn number(&self, bytes: [u8; 2]) -> u16 {
        if self.is_big_endian { u16::from_be_bytes(bytes) } else { u16::from_le_bytes(bytes) }
    }
}

/// Appends an option to `to`, encoded as in a little-endian file: code, length, value, padding. A value that is
/// too long for the length field is truncated.
pub fn put_option(to: &mut Vec<u8>, code: u16, value: &[u8]) {
    let value = value.get(..usize::from(u16::MAX)).unwrap_or(value);
    to.extend(code.to_le_bytes());
    to.extend((value.len() as u16).to_le_bytes());
    to.extend_from_slice(value);
    to.resize(to.len().next_multiple_of(4), 0);
}

impl<'a> Iterator for OptionIter<'a> {
    type Item = (u16, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_at_end() {
            return None;
        }
        let (head, rest) = self.rest.split_first_chunk::<4>()?;
        let code = self.number([head[0], head[1]]);
        let len = usize::from(self.number([head[2], head[3]]));
        let value = rest.get(..len)?;
        self.rest = rest.get(len.next_multiple_of(4)..)?;
        Some((code, value))
    }
}
