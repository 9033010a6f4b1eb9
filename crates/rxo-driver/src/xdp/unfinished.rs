//! Unfinished: recognizes frames whose sender has left the checksum to the device.
//!
//! An AF_XDP socket receives bytes without metadata. Between two interfaces of one machine (a veth, a TAP) the
//! kernel leaves checksums incomplete: the field contains the sum of the pseudo-header, and only the metadata
//! reports that. This module recognizes such frames by the value of the checksum field.
//!
//! Contract: a frame with a complete checksum may be recognized only if its checksum equals that sum;
//! completing it again then does not change the frame. A frame with a wrong checksum may be recognized by
//! accident, with probability 1/65,536. So only frames of interfaces without hardware are examined, where no
//! wire can damage a frame.

use rxo_frame::ChecksumStatus;
use rxo_wire::checksum::pseudo_header;
use rxo_wire::{PROTOCOL_TCP, PROTOCOL_UDP, Parsed, Transport, parse};

/// Returns the checksum status of the Ethernet frame `bytes`: partial if the transport checksum field
/// contains the sum of the pseudo-header, otherwise unknown.
pub(super) fn status(bytes: &[u8]) -> ChecksumStatus {
    let Ok(parsed) = parse(bytes) else { return ChecksumStatus::Unknown };
    found(&parsed, bytes).unwrap_or_default()
}

fn found(parsed: &Parsed, bytes: &[u8]) -> Option<ChecksumStatus> {
    let start = parsed.at.transport as usize;
    let (protocol, offset, summed) = match parsed.transport {
        Transport::Tcp(_) => (PROTOCOL_TCP, TCP_CHECKSUM_AT, parsed.at.segment_bytes()),
        Transport::Udp(udp) => (PROTOCOL_UDP, UDP_CHECKSUM_AT, u32::from(udp.length)),
        Transport::Fragment | Transport::Other(_) => return None,
    };
    let at = start + usize::from(offset);
    let field = u16::from_be_bytes([*bytes.get(at)?, *bytes.get(at + 1)?]);
    let is_seed = field == pseudo_header(&parsed.key, protocol, summed).fold();
    is_seed.then_some(ChecksumStatus::Partial { start: start as u16, offset })
}

const TCP_CHECKSUM_AT: u16 = 16;
const UDP_CHECKSUM_AT: u16 = 6;

#[cfg(test)]
mod tests {
    use rxo_wire::checksum::{Summer, complete};

    use super::*;
    use crate::virtio_net::samples::{tcp, tcp_v6};

    #[test]
    fn a_checksum_is_unfinished_until_it_is_completed() {
        for (mut frame, start) in [(tcp(100), 34), (tcp(0), 34), (tcp_v6(1_001), 54)] {
            assert_eq!(status(&frame), ChecksumStatus::Partial { start, offset: 16 });
            for end in 0..frame.len() {
                assert_ne!(status(&frame[..end]), ChecksumStatus::Verified);
            }
            let start = usize::from(start);
            let sum = complete(&frame, start, 16, Summer::detect()).unwrap();
            frame[start + 16..start + 18].copy_from_slice(&sum.to_be_bytes());
            assert_eq!(status(&frame), ChecksumStatus::Unknown);
        }
    }
}
