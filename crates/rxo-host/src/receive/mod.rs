//! What arrives: a delivery of the engine becomes segments for a connection.
//!
//! Separate because it is the only place that reads frames: behind it there are segments and records.
//! An aggregate's headers were read by the engine, so each of its segments is read at known places.

mod large;
mod segments;

use rxo_frame::{Frame, LinkKind};
use rxo_wire::checksum::{Summer, verify_transport};
use rxo_wire::{Parsed, Transport, parse, parse_ip};

pub(crate) use self::large::cut;
pub(crate) use self::segments::{Layout, segment_of};

/// Reads the headers of a frame that stands alone, and verifies its checksum unless it `is_intact`;
/// `None` when it is no TCP segment that can be trusted.
pub(crate) fn read_tcp<B: AsRef<[u8]>>(
    frame: &Frame<B>,
    is_intact: bool,
    link: LinkKind,
    summer: Summer,
) -> Option<Parsed> {
    let bytes = frame.bytes();
    let parsed = match link {
        LinkKind::Ethernet => parse(bytes),
        LinkKind::RawIp => parse_ip(bytes),
    };
    let parsed = parsed.ok().filter(|parsed| matches!(parsed.transport, Transport::Tcp(_)))?;
    let is_trusted = is_intact || frame.checksum.is_trusted();
    let is_right = is_trusted || verify_transport(&parsed, bytes, summer);
    (parsed.ip.checksum_ok && is_right).then_some(parsed)
}
