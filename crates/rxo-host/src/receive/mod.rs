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

/// Reads the headers of a frame that stands alone; `None` when it is no TCP segment.
pub(crate) fn read_tcp<B: AsRef<[u8]>>(frame: &Frame<B>, link: LinkKind) -> Option<Parsed> {
    let parsed = match link {
        LinkKind::Ethernet => parse(frame.bytes()),
        LinkKind::RawIp => parse_ip(frame.bytes()),
    };
    parsed.ok().filter(|parsed| matches!(parsed.transport, Transport::Tcp(_)))
}

/// Whether the checksums of a frame that stands alone are right: the TCP checksum is computed unless it
/// `is_intact`, or the device vouches for it.
pub(crate) fn is_right<B: AsRef<[u8]>>(
    frame: &Frame<B>,
    parsed: &Parsed,
    is_intact: bool,
    summer: Summer,
) -> bool {
    let is_trusted = is_intact || frame.checksum.is_trusted();
    parsed.ip.checksum_ok && (is_trusted || verify_transport(parsed, frame.bytes(), summer))
}
