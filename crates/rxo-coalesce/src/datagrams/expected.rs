//! The expected datagram: predicts the header of the next datagram and compares it in one step, as
//! [`crate::expected`] does for TCP segments.
//!
//! A datagram that continues a run differs from the last one in three fields: IP ID, IP checksum and UDP
//! checksum. The first two follow from the last datagram; the third must not be zero, and is verified
//! separately.

use rxo_frame::{ChecksumStatus, Frame, VlanTag};
use rxo_wire::IpVersion;
use rxo_wire::layout::{self, number};

use crate::expected::id_step;
use crate::held::Held;
use crate::shape::{Shape, Start};

/// Mask of the checksum in the eight bytes of the UDP header.
const CHECKSUM: u64 = u64::from_ne_bytes([0, 0, 0, 0, 0, 0, 255, 255]);

/// The header that the next datagram of a run must have.
pub(crate) struct ExpectedDatagram<'a, S: Shape> {
    last: &'a [u8],
    start: &'a S::Start,
    counting: u64,
    network: usize,
    checksum: ChecksumStatus,
    vlan: Option<VlanTag>,
    /// The increment of the IPv4 ID, 0 or 1.
    pub(crate) step: u16,
    /// The number of further datagrams that this prediction covers, until the IPv4 ID wraps around.
    pub(crate) steps: u32,
}

impl<'a, S: Shape> ExpectedDatagram<'a, S> {
    /// Predicts the datagram after `last`, the last datagram of `held`, whose IP header begins at `network`. If
    /// `held` is a single datagram, the ID of `next` decides whether the IPv4 ID increments. `None` if only the
    /// full rules can decide.
    #[inline]
    pub(crate) fn after<B: AsRef<[u8]>>(
        held: &Held,
        last: &'a Frame<B>,
        next: &[u8],
        network: usize,
    ) -> Option<Self> {
        // With extension headers the UDP header is not at `transport`.
        let (at, transport) = (held.at, network + S::IP_BYTES);
        if !at.is_datagram() || usize::from(at.transport()) != transport {
            return None;
        }
        let bytes = last.bytes();
        let packet = bytes.get(network..)?;
        let start = S::Start::of(packet)?;
        let step = match S::VERSION {
            IpVersion::V4 => {
                let (last, next) = (packet.get(..8)?, next.get(network..)?.get(..8)?);
                id_step(held.id_pattern, number(last, 0), number(next, 0))?
            }
            IpVersion::V6 => 0,
        };
        let counting = layout::counting(S::VERSION, start.as_ref());
        let steps = layout::steps_to_wrap(counting, step);
        let counting = layout::counted(counting, step);
        let (checksum, vlan) = (last.checksum, last.vlan);
        Some(Self { last: bytes, start, counting, network, checksum, vlan, step, steps })
    }

    /// Returns `true` if `next` is the expected datagram. Does not verify its checksum.
    #[inline]
    pub(crate) fn matches<B: AsRef<[u8]>>(&self, next: &Frame<B>) -> bool {
        let bytes = next.bytes();
        if bytes.len() != self.last.len() {
            return false;
        }
        let Some(start) = bytes.get(self.network..).and_then(S::Start::of) else { return false };
        let (old, new) = (self.start.as_ref(), start.as_ref());
        next.checksum == self.checksum
            && next.gso.is_none()
            && next.vlan == self.vlan
            && layout::word(new, S::IP_BYTES) & CHECKSUM != 0
            && self.counting ^ layout::counting(S::VERSION, new)
                | S::DATAGRAM.differing(old, new)
                | layout::differing_link(self.last, bytes, self.network)
                == 0
    }

    /// Advances the prediction by one datagram.
    #[inline]
    pub(crate) fn advance(&mut self) {
        self.counting = layout::counted(self.counting, self.step);
    }
}
