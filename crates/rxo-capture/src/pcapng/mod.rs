//! Reads the pcapng format: blocks that state their length twice (draft-ietf-opsawg-pcapng).
//!
//! Packets come in enhanced, simple and obsolete packet blocks. Blocks that are not needed are skipped. A
//! section's length is not used, because every block has its own length, and many writers leave the section's
//! length open (-1).

pub(super) mod block;
mod interface;
mod packet;

use rxo_frame::Instant;

use self::block::Block;
use super::options::OptionIter;
use super::outline::Outline;
use super::stream::Stream;
use super::{Clock, Fault, Interface, Options, Part, Record};

/// The first bytes of every pcapng file: a section header, equal in both byte orders.
pub(super) const MAGIC: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];

const SECTION: u32 = 0x0a0d_0d0a;
/// The offset of the options in a section header, in bytes.
const SECTION_OPTIONS_AT: usize = 24;
const INTERFACE: u32 = 1;
const OBSOLETE_PACKET: u32 = 2;
const SIMPLE_PACKET: u32 = 3;
const ENHANCED_PACKET: u32 = 6;

/// Returns `true` if blocks of this type contain a packet.
pub(super) const fn is_packet(kind: u32) -> bool {
    matches!(kind, OBSOLETE_PACKET | SIMPLE_PACKET | ENHANCED_PACKET)
}

/// Returns `true` if capture programs write blocks of this type: packets, descriptions, names, statistics, the journal,
/// secrets, custom blocks.
pub(super) const fn is_known(kind: u32) -> bool {
    matches!(kind, SECTION | 1..=10 | 0x0bad | 0x4000_0bad)
}

/// The state of reading a pcapng file.
#[derive(Debug)]
pub(super) struct PcapNg {
    /// `true` if the current section is big-endian.
    is_big_endian: bool,
    /// The index in `interfaces` of the first interface of the current section.
    first_interface: usize,
    /// The maximum number of bytes that were captured of a packet, for the first interface of the section.
    /// Simple packet blocks do not contain this number.
    first_snap_bytes: u32,
    /// The interfaces of all sections.
    pub(super) interfaces: Vec<Interface>,
    /// The clock of each interface, in the order of `interfaces`.
    clocks: Vec<Clock>,
    /// The descriptions of sections and interfaces, as they are in the file.
    pub(super) outline: Outline,
    /// The number of packets read so far.
    records: u64,
    /// The time of the last packet.
    last_at: Instant,
    /// The options of the file's first section.
    pub(super) section: Options,
}

impl PcapNg {
    pub(super) fn new() -> Self {
        Self {
            is_big_endian: false,
            first_interface: 0,
            first_snap_bytes: u32::MAX,
            interfaces: Vec::new(),
            clocks: Vec::new(),
            outline: Outline::default(),
            records: 0,
            last_at: Instant::ZERO,
            section: Options::default(),
        }
    }

    /// Reads the next packet of the capture; `None` at the end of the file.
    #[inline]
    pub(super) fn next(&mut self, stream: &mut Stream) -> Result<Option<Record>, Fault> {
        while let Some((kind, length)) = self.peek(stream)? {
            match kind {
                ENHANCED_PACKET => return self.enhanced(stream, length).map(Some),
                SIMPLE_PACKET => return self.simple(stream, length).map(Some),
                OBSOLETE_PACKET => return self.obsolete(stream, length).map(Some),
                SECTION => self.section(stream)?,
                INTERFACE => self.interface(stream, length)?,
                _ => block::skip(stream, length, self.is_big_endian)?,
            }
        }
        Ok(None)
    }

    /// Returns the type and the length of the next block without consuming it; `None` at the end of the file.
    #[inline]
    fn peek(&self, stream: &mut Stream) -> Result<Option<(u32, u32)>, Fault> {
        if !stream.has(block::LEAST_BYTES as usize).map_err(Fault::Read)? {
            return block::end(stream);
        }
        Ok(Some(block::head(stream.bytes(), self.is_big_endian)))
    }

    /// Reads a section header. The blocks after a section header may use another byte order, and they refer to
    /// interfaces of the new section.
    fn section(&mut self, stream: &mut Stream) -> Result<(), Fault> {
        self.is_big_endian = block::section_order(stream.bytes())?;
        let (_, length) = block::head(stream.bytes(), self.is_big_endian);
        let block = Block::read(stream, length, self.is_big_endian)?;
        block.require(16, "a section header")?;
        let (major, minor) = (block.short(4), block.short(6));
        if major != 1 {
            return Err(Fault::Unsupported(format!(
                "a section is pcapng version {major}.{minor}; convert the file to version 1.0"
            )));
        }
        let options = block.body.get(SECTION_OPTIONS_AT - block::BODY_AT..).unwrap_or_default();
        let options = OptionIter::new(options, self.is_big_endian);
        let section = Part::Section { options: options.little_endian(&[]) };
        self.outline.add(self.records, section);
        if self.section.is_empty() && self.interfaces.is_empty() {
            let options = stream.share(SECTION_OPTIONS_AT..length as usize - 4);
            self.section = Options::new(options.detached(), self.is_big_endian);
        }
        self.first_interface = self.interfaces.len();
        stream.consume(length as usize);
        Ok(())
    }
}
