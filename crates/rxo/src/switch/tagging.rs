//! Tagging: changes a frame's VLAN tag between two ports (IEEE 802.1Q, clause 8.6).

use std::num::NonZeroU16;

use rxo_frame::{ChecksumStatus, Frame, Gso, GsoTunnel, UdpTunnel, VlanTag};
use rxo_wire::VLAN_TAG_BYTES;

use super::header::tag_in_bytes;
use super::{Port, Switch, Vlans};

/// The change to a frame's VLAN tag before the frame leaves by a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tagging {
    /// `true` if the tag in the frame's bytes must be removed.
    pub strips: bool,
    /// The tag for the frame's metadata; `None` for no tag.
    pub tag: Option<VlanTag>,
}

/// The offset of a VLAN tag in a frame, in bytes: after the two Ethernet addresses.
const TAG_AT: usize = 12;
const DOT1Q: NonZeroU16 = NonZeroU16::new(0x8100).unwrap();
const PRIORITY: u16 = 0xf000;

impl Switch {
    /// Returns the tag with which a frame that arrived by `from` leaves by `to`. An access port sends no tag;
    /// a trunk sends the tag of the frame's VLAN. Priority and drop eligibility are preserved.
    ///
    /// # Panics
    /// If the switch has no port `from` or `to`.
    #[must_use]
    pub fn tagging<B: AsRef<[u8]>>(&self, from: Port, to: Port, frame: &Frame<B>) -> Tagging {
        let unchanged = Tagging { strips: false, tag: frame.vlan };
        let in_bytes = if frame.vlan.is_none() { tag_in_bytes(frame.bytes()) } else { None };
        match (self.settings(to).vlans, self.settings(from).vlans) {
            (Vlans::Only(_), _) => Tagging { strips: in_bytes.is_some(), tag: None },
            (Vlans::All, Vlans::All | Vlans::Only(0)) => unchanged,
            (Vlans::All, Vlans::Only(vlan)) => {
                let priority = frame.vlan.map(|tag| tag.tci).or(in_bytes).unwrap_or(0) & PRIORITY;
                let tag = Some(VlanTag { tpid: DOT1Q, tci: priority | vlan });
                Tagging { strips: in_bytes.is_some(), tag }
            }
        }
    }
}

/// A frame with the VLAN tag for the port by which the frame leaves.
pub(crate) struct Tagged<'a> {
    /// The metadata of the frame, without its bytes.
    pub(crate) facts: Frame<()>,
    /// The frame's bytes: those before a tag that is removed, and those after it.
    pub(crate) pieces: [&'a [u8]; 2],
}

impl Tagging {
    /// Applies this change of the VLAN tag to `frame`. Copies nothing.
    pub(crate) fn apply<'a>(self, frame: &Frame<&'a [u8]>) -> Tagged<'a> {
        let whole = Tagged::whole(frame);
        let facts = Frame { vlan: self.tag, ..whole.facts };
        if !self.strips {
            return Tagged { facts, ..whole };
        }
        let (addresses, rest) = frame.bytes.split_at(TAG_AT.min(frame.bytes.len()));
        let facts = Frame {
            checksum: stripped_checksum(frame.checksum),
            gso: frame.gso.map(stripped_gso),
            ..facts
        };
        Tagged { facts, pieces: [addresses, rest.get(VLAN_TAG_BYTES..).unwrap_or_default()] }
    }
}

impl<'a> Tagged<'a> {
    /// Returns a frame whose tag is not changed.
    pub(crate) const fn whole(frame: &Frame<&'a [u8]>) -> Self {
        let Frame { bytes, arrived_at, checksum, gso, vlan } = *frame;
        Self { facts: Frame { bytes: (), arrived_at, checksum, gso, vlan }, pieces: [bytes, &[]] }
    }

    pub(crate) const fn byte_len(&self) -> usize {
        self.pieces[0].len() + self.pieces[1].len()
    }

    /// Copies the frame's bytes to `target`, which must have the same length.
    pub(crate) fn copy_to(&self, target: &mut [u8]) {
        let (before, behind) = target.split_at_mut(self.pieces[0].len());
        before.copy_from_slice(self.pieces[0]);
        behind.copy_from_slice(self.pieces[1]);
    }
}

/// Adapts the GSO metadata to a frame without its tag: the offsets of a tunnel become smaller.
fn stripped_gso(gso: Gso) -> Gso {
    let earlier = |at: u8| at.saturating_sub(VLAN_TAG_BYTES as u8);
    let tunnel = gso.tunnel.map(|tunnel| {
        tunnel.as_udp().map_or(tunnel, |udp| {
            GsoTunnel::udp(UdpTunnel {
                outer_transport: earlier(udp.outer_transport),
                inner_network: earlier(udp.inner_network),
                ..udp
            })
        })
    });
    Gso { tunnel, ..gso }
}

/// Adapts a partial checksum to a frame without its tag.
const fn stripped_checksum(checksum: ChecksumStatus) -> ChecksumStatus {
    match checksum {
        ChecksumStatus::Partial { start, offset } => {
            ChecksumStatus::Partial { start: start.saturating_sub(VLAN_TAG_BYTES as u16), offset }
        }
        other => other,
    }
}
