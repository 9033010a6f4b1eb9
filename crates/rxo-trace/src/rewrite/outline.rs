//! Encodes descriptions of sections and interfaces, for custom options and for the digest.

use rxo_capture::{Described, LinkType, Part, limits};

use super::beside::{UNKNOWN, bytes, put_bytes};
use super::note::{BadNote, Reader, put_number};

const SECTION: u8 = 0;
const INTERFACE: u8 = 1;

/// Appends the number of descriptions, and then each description, to `to`.
pub(super) fn put(to: &mut Vec<u8>, described: &[Described]) {
    put_number(to, described.len() as u64);
    for Described { records_before, part } in described {
        put_number(to, *records_before);
        match part {
            Part::Section { options } => {
                to.push(SECTION);
                put_bytes(to, options);
            }
            Part::Interface { link, snap_bytes, options } => {
                to.push(INTERFACE);
                put_number(to, link.0.into());
                put_number(to, (*snap_bytes).into());
                put_bytes(to, options);
            }
        }
    }
}

/// Reads the descriptions that [`put`] appended.
pub(super) fn read(reader: &mut Reader<'_>) -> Result<Vec<Described>, BadNote> {
    let count = reader.size(limits::DESCRIBED)?;
    let one = |reader: &mut Reader<'_>| {
        Ok(Described { records_before: reader.number()?, part: part(reader)? })
    };
    (0..count).map(|_| one(reader)).collect()
}

fn part(reader: &mut Reader<'_>) -> Result<Part, BadNote> {
    match reader.byte()? {
        SECTION => Ok(Part::Section { options: bytes(reader)? }),
        INTERFACE => Ok(Part::Interface {
            link: LinkType(reader.size(usize::from(u16::MAX))? as u16),
            snap_bytes: reader.size(u32::MAX as usize)? as u32,
            options: bytes(reader)?,
        }),
        _ => Err(UNKNOWN),
    }
}
