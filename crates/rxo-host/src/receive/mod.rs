//! What arrives: a delivery of the engine becomes segments for a connection.
//!
//! Separate because it is the only place that reads frames: behind it there are segments and records.
//! An aggregate's headers were read by the engine, so each of its segments is read at known places.

mod large;
mod segments;

use rxo_frame::{ChecksumStatus, Frame, LinkKind};
use rxo_wire::checksum::{Summer, verify_transport};
use rxo_wire::{Parsed, Transport, parse, parse_ip};

pub(crate) use self::large::cut;
pub(crate) use self::segments::{Layout, segment_of};

/// Reads the headers of a frame that stands alone; `None` when it is no TCP segment that can be
/// trusted.
pub(crate) fn read_tcp<B: AsRef<[u8]>>(
    frame: &Frame<B>,
    link: LinkKind,
    summer: Summer,
) -> Option<Parsed> {
    let bytes = frame.bytes();
    let parsed = match link {
        LinkKind::Ethernet => parse(bytes),
        LinkKind::RawIp => parse_ip(bytes),
    };
    let parsed = parsed.ok().filter(|parsed| matches!(parsed.transport, Transport::Tcp(_)))?;
    let is_right = parsed.ip.checksum_ok
        && match frame.checksum {
            ChecksumStatus::Verified | ChecksumStatus::Partial { .. } => true,
            ChecksumStatus::Unknown => verify_transport(&parsed, bytes, summer),
        };
    is_right.then_some(parsed)
}
