//! The pcapng format: blocks that say their length twice (draft-ietf-opsawg-pcapng).
//!
//! Packets come in enhanced, simple and obsolete packet blocks; whatever else is not needed to
//! read them is skipped without being kept. A section's length is not relied on: blocks say where
//! the next begins, and many writers leave it open (-1).

mod block;
mod interface;
mod packet;

use rxo_frame::Instant;

use self::block::Block;
use super::options::OptionIter;
use super::outline::Outline;
use super::stream::Stream;
use super::{Clock, Fault, Interface, Options, Part, Record};

/// What every pcapng file begins with: a section header, the same in both byte orders.
pub(super) const MAGIC: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];

const SECTION: u32 = 0x0a0d_0d0a;
/// Where the options of a section header begin, in bytes from its first.
const SECTION_OPTIONS_AT: usize = 24;
const INTERFACE: u32 = 1;
const OBSOLETE_PACKET: u32 = 2;
const SIMPLE_PACKET: u32 = 3;
const ENHANCED_PACKET: u32 = 6;

/// What is known of a pcapng file so far.
#[derive(Debug)]
pub(super) struct PcapNg {
    /// The current section's byte order.
    is_big_endian: bool,
    /// The first of `interfaces` that the current section described.
    first_interface: usize,
    /// What that one keeps of a packet: simple packet blocks do not say.
    first_snap_bytes: u32,
    /// Those of all sections.
    pub(super) interfaces: Vec<Interface>,
    /// Each interface's clock.
    clocks: Vec<Clock>,
    /// Sections and interfaces as they were described.
    pub(super) outline: Outline,
    /// Packets read.
    records: u64,
    /// When the last packet was seen.
    last_at: Instant,
    /// What the first section says of itself.
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

    /// The next packet; `None` at the end.
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

    /// The type and length of the next block, if there is one.
    #[inline]
    fn peek(&self, stream: &mut Stream) -> Result<Option<(u32, u32)>, Fault> {
        if !stream.has(block::LEAST_BYTES as usize).map_err(Fault::Read)? {
            return block::end(stream);
        }
        Ok(Some(block::head(stream.bytes(), self.is_big_endian)))
    }

    /// A section begins: byte order and interfaces anew.
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
