//! Interface description blocks.

use super::super::limits::{INTERFACES, NAME_BYTES, PACKET_BYTES};
use super::super::options::OptionIter;
use super::super::stream::Stream;
use super::super::ticks::Ticks;
use super::super::{Fault, Interface, LinkType};
use super::PcapNg;
use super::block::Block;

const NAME: u16 = 2;
const RESOLUTION: u16 = 9;
const OFFSET: u16 = 14;

/// Where the options begin, in the body.
const OPTIONS_AT: usize = 8;

impl PcapNg {
    /// Takes one more interface in.
    pub(super) fn interface(&mut self, stream: &mut Stream, length: u32) -> Result<(), Fault> {
        if self.interfaces.len() == INTERFACES {
            return Err(Fault::Unsupported(format!(
                "it describes more than {INTERFACES} interfaces; split it with editcap"
            )));
        }
        let block = Block::read(stream, length, self.is_big_endian)?;
        block.require(OPTIONS_AT, "an interface description")?;
        let (interface, clock) = describe(&block, self.is_big_endian)?;
        self.interfaces.push(interface);
        self.clocks.push(clock);
        stream.consume(length as usize);
        Ok(())
    }
}

fn describe(block: &Block<'_>, is_big_endian: bool) -> Result<(Interface, Ticks), Fault> {
    let options = OptionIter::new(block.body.get(OPTIONS_AT..).unwrap_or_default(), is_big_endian);
    if !options.is_sound() {
        return Err(Fault::Damaged("an option of an interface leaves its block".to_owned()));
    }
    let find = |code| options.clone().find(|(found, _)| *found == code).map(|(_, value)| value);
    let resolution = find(RESOLUTION).and_then(|value| value.first().copied()).unwrap_or(6);
    let offset_s = find(OFFSET).and_then(|value| value.first_chunk()).map_or(0, |bytes| {
        if is_big_endian { i64::from_be_bytes(*bytes) } else { i64::from_le_bytes(*bytes) }
    });
    let snap_bytes = block.number(4);
    let interface = Interface {
        link: LinkType(block.short(0)),
        // Zero means no limit, and libpcap writes its own largest packet when it is told so.
        snap_bytes: (1..PACKET_BYTES).contains(&snap_bytes).then_some(snap_bytes),
        name: find(NAME).map(readable),
    };
    Ok((interface, Ticks::new(resolution, offset_s)))
}

/// A name to show and to keep: what is no text is replaced, what is very long is cut.
fn readable(name: &[u8]) -> String {
    String::from_utf8_lossy(name.get(..NAME_BYTES).unwrap_or(name)).into_owned()
}
