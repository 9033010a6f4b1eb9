//! The part of a frame's header that a switch reads: the two Ethernet addresses and the outer VLAN tag.

use std::fmt;
use std::str::FromStr;

use rxo_frame::Frame;
use rxo_wire::{ETHERNET_HEADER_BYTES, VLAN_TAG_BYTES};

/// An Ethernet (MAC) address of six bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MacAddress(pub [u8; 6]);

impl MacAddress {
    /// The address of all zeros, which no device has.
    pub const ZERO: Self = Self([0; 6]);

    /// Returns `true` for a group address: broadcast or multicast.
    #[must_use]
    pub const fn is_group(self) -> bool {
        self.0[0] & 1 != 0
    }

    /// Returns `true` if frames to this address must stay on their link (IEEE 802.1Q, table 8-1).
    #[must_use]
    pub const fn is_link_local(self) -> bool {
        matches!(self.0, [0x01, 0x80, 0xc2, 0, 0, 0..=0x0f])
    }
}

impl fmt::Display for MacAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

/// The error for a string that is not an Ethernet address such as `52:54:00:00:00:02`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadMacAddress;

impl FromStr for MacAddress {
    type Err = BadMacAddress;

    fn from_str(text: &str) -> Result<Self, BadMacAddress> {
        let mut mac = Self::ZERO;
        let mut parts = text.split(':');
        for byte in &mut mac.0 {
            let part = parts.next().ok_or(BadMacAddress)?;
            let is_hex = part.len() == 2 && part.bytes().all(|digit| digit.is_ascii_hexdigit());
            let value = is_hex.then(|| u8::from_str_radix(part, 16));
            *byte = value.and_then(Result::ok).ok_or(BadMacAddress)?;
        }
        parts.next().is_none().then_some(mac).ok_or(BadMacAddress)
    }
}

/// The fields of a frame's header that decide to which ports the frame is forwarded.
pub(super) struct Header {
    pub(super) destination: MacAddress,
    pub(super) source: MacAddress,
    /// The VLAN identifier in the outer tag; 0 for a frame without a tag.
    pub(super) vlan: u16,
    /// `true` if a second tag follows an outer tag that contains only a priority. A receiver that removes the
    /// outer tag, as Linux does, assigns the frame to the inner tag's VLAN.
    pub(super) hides_tag: bool,
}

const TAG_TYPES: [u16; 2] = [0x8100, 0x88a8];
const IDENTIFIER: u16 = 0x0fff;

impl Header {
    /// Parses the header of `frame`; `None` if the frame is too short.
    pub(super) fn read<B: AsRef<[u8]>>(frame: &Frame<B>) -> Option<Self> {
        let bytes = frame.bytes();
        let (destination, rest) = bytes.split_first_chunk()?;
        let (source, rest) = rest.split_first_chunk()?;
        let (vlan, behind) = match frame.vlan {
            Some(tag) => (tag.tci & IDENTIFIER, rest),
            None => tag_in(rest, bytes.len())?,
        };
        (bytes.len() >= ETHERNET_HEADER_BYTES).then_some(Self {
            destination: MacAddress(*destination),
            source: MacAddress(*source),
            vlan,
            hides_tag: vlan == 0 && begins_with_tag(behind),
        })
    }
}

/// Returns the VLAN identifier of the tag at the start of `rest`, and the bytes after the tag; 0 and an empty slice if
/// there is no tag. `None` if the frame is too short.
fn tag_in(rest: &[u8], frame_bytes: usize) -> Option<(u16, &[u8])> {
    if !begins_with_tag(rest) {
        return (rest.len() >= 2).then_some((0, &[]));
    }
    let (tag, behind) = rest.split_at_checked(VLAN_TAG_BYTES)?;
    let tci = u16::from_be_bytes(*tag.last_chunk()?);
    (frame_bytes >= ETHERNET_HEADER_BYTES + VLAN_TAG_BYTES).then_some((tci & IDENTIFIER, behind))
}

fn begins_with_tag(bytes: &[u8]) -> bool {
    bytes.first_chunk().is_some_and(|ethertype| TAG_TYPES.contains(&u16::from_be_bytes(*ethertype)))
}

/// Returns the content of the outer VLAN tag in the bytes of a frame: priority, drop eligibility and identifier. `None`
/// if there is no tag.
pub(super) fn tag_in_bytes(bytes: &[u8]) -> Option<u16> {
    let (ethertype, rest) = bytes.get(ADDRESSES_BYTES..)?.split_first_chunk()?;
    let tci = u16::from_be_bytes(*rest.first_chunk()?);
    TAG_TYPES.contains(&u16::from_be_bytes(*ethertype)).then_some(tci)
}

const ADDRESSES_BYTES: usize = 12;
