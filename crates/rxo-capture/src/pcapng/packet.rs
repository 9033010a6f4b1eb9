//! Reads the three pcapng blocks that contain a packet.

use core::ops::Range;

use rxo_frame::Instant;

use super::PcapNg;
use super::block::{BODY_AT, Block};
use crate::options::OptionIter;
use crate::stream::Stream;
use crate::{Clock, Fault, Options, Record, SharedBytes};

/// The offset of the packet in the body of an enhanced or obsolete packet block, in bytes.
const PACKET_AT: usize = 20;

/// The offset of the packet in the body of a simple packet block, in bytes.
const SIMPLE_PACKET_AT: usize = 4;

/// The fields of a packet block. Positions are in bytes from the start of the block.
struct PacketFields {
    packet: Range<usize>,
    options: Range<usize>,
    original_bytes: u32,
    interface: u32,
    at: Instant,
    ticks: Option<u64>,
}

impl PcapNg {
    #[inline]
    pub(super) fn enhanced(&mut self, stream: &mut Stream, length: u32) -> Result<Record, Fault> {
        let block = Block::read(stream, length, self.is_big_endian)?;
        let found = self.with_time(&block, |block| block.number(0))?;
        self.take(stream, length, found)
    }

    /// Reads an obsolete packet block. The block is like an enhanced packet block, but its interface number has
    /// only 16 bits, and is followed by a 16-bit drop count.
    pub(super) fn obsolete(&mut self, stream: &mut Stream, length: u32) -> Result<Record, Fault> {
        let block = Block::read(stream, length, self.is_big_endian)?;
        let found = self.with_time(&block, |block| u32::from(block.short(0)))?;
        self.take(stream, length, found)
    }

    /// Reads a simple packet block, which contains only a packet of the section's first interface, truncated to that
    /// interface's maximum length.
    pub(super) fn simple(&mut self, stream: &mut Stream, length: u32) -> Result<Record, Fault> {
        let block = Block::read(stream, length, self.is_big_endian)?;
        block.require(SIMPLE_PACKET_AT, "a simple packet")?;
        let interface = self.place(0)?;
        let original_bytes = block.number(0);
        let kept_bytes = original_bytes.min(self.first_snap_bytes);
        let (packet, end) = block.packet(SIMPLE_PACKET_AT, kept_bytes)?;
        let options = end.end..end.end;
        let at = self.last_at;
        let found = PacketFields { packet, options, original_bytes, interface, at, ticks: None };
        self.take(stream, length, found)
    }

    #[inline]
    fn with_time(
        &self,
        block: &Block<'_>,
        interface: impl Fn(&Block<'_>) -> u32,
    ) -> Result<PacketFields, Fault> {
        block.require(PACKET_AT, "a packet block")?;
        let interface = self.place(interface(block))?;
        let ticks = u64::from(block.number(4)) << 32 | u64::from(block.number(8));
        let clock = self.clocks.get(interface as usize).copied().unwrap_or(Clock::MICROS);
        let (packet, mut options) = block.packet(PACKET_AT, block.number(12))?;
        if !options.is_empty() {
            options = self.sound_options(block, options)?;
        }
        let original_bytes = block.number(16);
        let (at, ticks) = (clock.instant(ticks), Some(ticks));
        Ok(PacketFields { packet, options, original_bytes, interface, at, ticks })
    }

    /// Returns the part of `place`, the range of the options in the block, that precedes the end mark of the
    /// options. Any bytes may follow the end mark.
    fn sound_options(&self, block: &Block<'_>, place: Range<usize>) -> Result<Range<usize>, Fault> {
        let bytes = block.body.get(place.start - BODY_AT..).unwrap_or_default();
        match OptionIter::new(bytes, self.is_big_endian).sound_bytes() {
            Some(bytes) => Ok(place.start..place.start + bytes),
            None => Err(Fault::Damaged("an option of a packet leaves its block".to_owned())),
        }
    }

    /// Converts `number`, the number of an interface within the current section, to its index in the list of
    /// all interfaces of the file.
    #[inline]
    fn place(&self, number: u32) -> Result<u32, Fault> {
        let place = self.first_interface + number as usize;
        if place < self.interfaces.len() { Ok(place as u32) } else { Err(self.unknown(number)) }
    }

    #[cold]
    fn unknown(&self, number: u32) -> Fault {
        let known = self.interfaces.len() - self.first_interface;
        Fault::Damaged(format!(
            "a packet names interface {number}, its section has described {known}"
        ))
    }

    #[inline]
    fn take(
        &mut self,
        stream: &mut Stream,
        length: u32,
        found: PacketFields,
    ) -> Result<Record, Fault> {
        let options = if found.options.is_empty() {
            Options::default()
        } else {
            Options::new(stream.share(found.options), self.is_big_endian)
        };
        let record = Record {
            bytes: stream.share(found.packet),
            original_bytes: found.original_bytes,
            interface: found.interface,
            at: found.at,
            ticks: found.ticks,
            head: SharedBytes::default(),
            options,
        };
        self.last_at = found.at;
        self.records += 1;
        stream.consume(length as usize);
        Ok(record)
    }
}
