//! Reads the interface description blocks of pcapng.

use super::PcapNg;
use super::block::Block;
use crate::limits::{INTERFACES, NAME_BYTES, PACKET_BYTES};
use crate::options::{INTERFACE_NUMBERS, OptionIter};
use crate::stream::Stream;
use crate::{Clock, Fault, Interface, LinkType, Part};

const NAME: u16 = 2;

/// The offset of the options in the body of an interface description, in bytes.
const OPTIONS_AT: usize = 8;

impl PcapNg {
    /// Reads an interface description block and adds the interface to the list.
    pub(super) fn interface(&mut self, stream: &mut Stream, length: u32) -> Result<(), Fault> {
        if self.interfaces.len() == INTERFACES {
            return Err(Fault::Unsupported(format!(
                "it describes more than {INTERFACES} interfaces; split it with editcap"
            )));
        }
        let block = Block::read(stream, length, self.is_big_endian)?;
        block.require(OPTIONS_AT, "an interface description")?;
        let (interface, clock, described) = describe(&block, self.is_big_endian)?;
        if self.interfaces.len() == self.first_interface
            && let Part::Interface { snap_bytes, .. } = described
        {
            self.first_snap_bytes = if snap_bytes == 0 { u32::MAX } else { snap_bytes };
        }
        self.interfaces.push(interface);
        self.clocks.push(clock);
        self.outline.add(self.records, described);
        stream.consume(length as usize);
        Ok(())
    }
}

fn describe(block: &Block<'_>, is_big_endian: bool) -> Result<(Interface, Clock, Part), Fault> {
    let options = OptionIter::new(block.body.get(OPTIONS_AT..).unwrap_or_default(), is_big_endian);
    if options.sound_bytes().is_none() {
        return Err(Fault::Damaged("an option of an interface leaves its block".to_owned()));
    }
    let (link, snap_bytes) = (LinkType(block.short(0)), block.number(4));
    let interface = Interface {
        link,
        // Zero means no limit, and libpcap writes its own maximum for no limit.
        snap_bytes: (1..PACKET_BYTES).contains(&snap_bytes).then_some(snap_bytes),
        name: options.clone().find(|(code, _)| *code == NAME).map(|(_, name)| readable(name)),
    };
    let clock = Clock::described(&options);
    let options = options.little_endian(&INTERFACE_NUMBERS);
    Ok((interface, clock, Part::Interface { link, snap_bytes, options }))
}

/// Returns an interface name as a printable string: invalid UTF-8 is replaced, and a long name is truncated.
fn readable(name: &[u8]) -> String {
    String::from_utf8_lossy(name.get(..NAME_BYTES).unwrap_or(name)).into_owned()
}
