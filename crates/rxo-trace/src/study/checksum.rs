//! Classifies the TCP and UDP checksums of a capture.
//!
//! A capture from the sending machine shows packets before the network card has completed their checksums.
//! These packets look corrupted but are not; they are recognized by the value that the sender's system leaves
//! in the checksum field. This module is separate from the engine, because all engines of a study use the
//! result of one check.

use core::fmt;
use core::str::FromStr;

use rxo_capture::Network;
use rxo_frame::ChecksumStatus;
use rxo_wire::checksum::{Sum, Summer, pseudo_header};
use rxo_wire::{PROTOCOL_TCP, PROTOCOL_UDP};

use super::packet_kind::{PacketKind, Segment};
use crate::report::Protocol;

/// The treatment of TCP and UDP checksums in a study.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ChecksumMode {
    /// Verify the checksums that can be verified. Unfinished checksums, which the sender's card was to
    /// complete, and the checksums of truncated packets are accepted. Segments with a wrong checksum are not
    /// coalesced.
    #[default]
    Auto,
    /// Verify checksums. Only segments with a correct checksum are coalesced.
    Verify,
    /// Verify checksums, but accept unfinished ones, which the sender's card was to complete.
    Partial,
    /// Accept all checksums, including those of truncated packets.
    Trust,
}

impl ChecksumMode {
    /// Returns `true` if the mode accepts the checksums of truncated packets, which cannot be verified.
    pub(super) const fn accepts_cut(self) -> bool {
        matches!(self, Self::Auto | Self::Trust)
    }

    /// Returns the name of the mode, as the user types it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Verify => "verify",
            Self::Partial => "partial",
            Self::Trust => "trust",
        }
    }
}

impl fmt::Display for ChecksumMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for ChecksumMode {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let all = [Self::Auto, Self::Verify, Self::Partial, Self::Trust];
        all.into_iter().find(|mode| mode.name() == text).ok_or(())
    }
}

/// The result of checking a TCP or UDP checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Finding {
    Right,
    Wrong,
    /// The checksum is unfinished: the field contains only the sum of the pseudo-header.
    Unfinished,
}

/// Checks the checksum of the segment in `bytes` and returns the result. Reads the whole payload. `None` for a
/// datagram without a checksum.
#[inline]
pub(super) fn check(segment: &Segment, bytes: &[u8], summer: Summer) -> Option<Finding> {
    if segment.protocol == Protocol::Udp && segment.checksum(bytes) == 0 {
        return None;
    }
    let sum = summer.sum(bytes.get(segment.at.segment()).unwrap_or_default());
    let is_right = (sum + pseudo(segment, segment.at.segment_bytes())).is_valid();
    Some(if is_right { Finding::Right } else { unfinished(segment, bytes) })
}

/// Returns [`Finding::Unfinished`] if the checksum field contains only the folded sum of the pseudo-header,
/// which the sender's system leaves there; otherwise [`Finding::Wrong`]. For a GSO frame, some systems (NDIS)
/// use a length of 0 in the pseudo-header, because each segment has its own length.
#[cold]
fn unfinished(segment: &Segment, bytes: &[u8]) -> Finding {
    let field = segment.checksum(bytes);
    let seed = |length| pseudo(segment, length).fold();
    if field == seed(segment.at.segment_bytes()) || field == seed(0) {
        Finding::Unfinished
    } else {
        Finding::Wrong
    }
}

/// Returns the sum of the pseudo-header of a segment with `length` bytes.
#[inline]
fn pseudo(segment: &Segment, length: u32) -> Sum {
    let protocol = match segment.protocol {
        Protocol::Tcp => PROTOCOL_TCP,
        Protocol::Udp => PROTOCOL_UDP,
    };
    pseudo_header(&segment.key, protocol, length)
}

/// Returns the checksum status of `segment`, in the form that the engine needs.
#[inline]
pub(super) const fn status(
    mode: ChecksumMode,
    finding: Finding,
    segment: &Segment,
) -> ChecksumStatus {
    match (finding, mode) {
        (Finding::Right, _) => ChecksumStatus::Verified,
        (Finding::Unfinished, ChecksumMode::Auto | ChecksumMode::Partial) => {
            ChecksumStatus::Partial {
                start: segment.at.transport as u16,
                offset: segment.checksum_at() as u16,
            }
        }
        // The engine verifies the checksum again and counts the result.
        (Finding::Unfinished | Finding::Wrong, _) => ChecksumStatus::Unknown,
    }
}

/// Returns the checksum status of a captured packet of any kind, in the form that the engine needs.
pub(crate) fn checksum_status(
    network: &Network,
    mode: ChecksumMode,
    summer: Summer,
) -> ChecksumStatus {
    if mode == ChecksumMode::Trust {
        return ChecksumStatus::Unknown;
    }
    let bytes = network.packet.as_ref();
    match PacketKind::read(network.link, bytes) {
        PacketKind::Segment(segment) => check(&segment, bytes, summer)
            .map_or(ChecksumStatus::Unknown, |finding| status(mode, finding, &segment)),
        PacketKind::Ip(_) | PacketKind::Short(_) | PacketKind::Other => ChecksumStatus::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use rxo_frame::LinkKind;
    use rxo_testkit::{Packet, seg, udp};

    use super::*;

    fn finding(bytes: &[u8]) -> (Finding, Segment) {
        let PacketKind::Segment(segment) = PacketKind::read(LinkKind::Ethernet, bytes) else {
            panic!()
        };
        (check(&segment, bytes, Summer::detect()).unwrap(), segment)
    }

    fn with_field(packet: &Packet, length: impl Fn(&Segment) -> u32) -> Vec<u8> {
        let mut bytes = packet.bytes();
        let (_, segment) = finding(&bytes);
        let seed = pseudo(&segment, length(&segment)).fold();
        let at = segment.at.transport as usize + segment.checksum_at();
        bytes[at..at + 2].copy_from_slice(&seed.to_be_bytes());
        bytes
    }

    #[test]
    fn right_wrong_and_unfinished_are_told_apart() {
        for packet in
            [seg().len(1000), seg().v6().ts(1, 2), seg().vlan(3), udp().len(400), udp().v6()]
        {
            assert_eq!(finding(&packet.bytes()).0, Finding::Right, "{packet:?}");
            assert_eq!(finding(&packet.clone().bad_checksum().bytes()).0, Finding::Wrong);
            for bytes in [
                with_field(&packet, |segment| segment.at.segment_bytes()),
                with_field(&packet, |_| 0),
            ] {
                assert_eq!(finding(&bytes).0, Finding::Unfinished, "{packet:?}");
            }
        }
    }

    #[test]
    fn a_datagram_without_a_checksum_is_neither_right_nor_wrong() {
        let bytes = udp().no_checksum().bytes();
        let PacketKind::Segment(datagram) = PacketKind::read(LinkKind::Ethernet, &bytes) else {
            panic!()
        };
        assert_eq!(check(&datagram, &bytes, Summer::detect()), None);
    }

    #[test]
    fn only_a_right_one_is_verified_and_a_seed_only_on_request() {
        let (_, segment) = finding(&seg().bytes());
        let partial = ChecksumStatus::Partial { start: 34, offset: 16 };
        let rows = [
            (ChecksumMode::Verify, Finding::Right, ChecksumStatus::Verified),
            (ChecksumMode::Auto, Finding::Unfinished, partial),
            (ChecksumMode::Auto, Finding::Wrong, ChecksumStatus::Unknown),
            (ChecksumMode::Verify, Finding::Unfinished, ChecksumStatus::Unknown),
            (ChecksumMode::Verify, Finding::Wrong, ChecksumStatus::Unknown),
            (ChecksumMode::Partial, Finding::Unfinished, partial),
            (ChecksumMode::Partial, Finding::Wrong, ChecksumStatus::Unknown),
        ];
        for (mode, finding, expected) in rows {
            assert_eq!(status(mode, finding, &segment), expected, "{mode} {finding:?}");
        }
    }
}
