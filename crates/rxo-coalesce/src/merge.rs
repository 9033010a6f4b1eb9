//! Writes the merged header of an aggregate.
//!
//! The merged header is the header of the last segment, so it has the last acknowledgement number, window and
//! timestamp. The sequence number and the IP ID come from the first segment. The lengths are those of the
//! aggregate, and the flags are the union of all flags. The UDP length of merged datagrams covers all datagrams.
//! If the IP length exceeds the range of its field, the field is 0, as in Linux's BIG TCP; only receivers that
//! read the segment records get such packets. In a tunnel, the outer headers get the lengths and checksums of the
//! aggregate. The header is written once, into its own buffer; the original frames do not change.

use rxo_frame::Frame;
use rxo_wire::checksum::Sum;
use rxo_wire::tcp::CHECKSUM_AT;
use rxo_wire::udp::{self, never_zero};
use rxo_wire::{IpVersion, PROTOCOL_TCP};

use crate::candidate::MAX_HEADER_BYTES;
use crate::held::Held;
use crate::slots::Slots;
use crate::tunnels::Around;

/// The length in bytes that most headers do not exceed: more than TCP with a timestamp over IPv6 and one VLAN
/// tag.
const USUAL_BYTES: usize = 96;

/// The form of the TCP or UDP checksum field of a merged header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ChecksumForm {
    /// The folded sum of the pseudo-header, not complemented, as `NEEDS_CSUM` and segmentation require.
    #[default]
    PseudoHeader,
    /// The checksum of the merged segment, computed from the segments' own checksums without reading payload.
    /// If these checksums are partial, the pseudo-header form is written instead.
    Complete,
    /// The checksum of the last segment, unchanged; the receiver is informed that it was verified. If the
    /// segments' checksums are partial, the pseudo-header form is written instead.
    Verified,
}

/// A merged header and its buffer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MergedHeader {
    bytes: [u8; MAX_HEADER_BYTES],
    length: u16,
    form: ChecksumForm,
}

impl MergedHeader {
    pub(crate) const EMPTY: Self =
        Self { bytes: [0; MAX_HEADER_BYTES], length: 0, form: ChecksumForm::PseudoHeader };

    #[inline]
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length).min(MAX_HEADER_BYTES)]
    }

    #[inline]
    pub(crate) const fn form(&self) -> ChecksumForm {
        self.form
    }

    /// Writes the merged header of TCP segments outside tunnels.
    #[inline]
    pub(crate) fn write<B: AsRef<[u8]>>(&mut self, merge: &Merge<'_, B>, form: ChecksumForm) {
        self.form = merge.possible(form);
        self.length = merge.write_as::<false>(self.form, &mut self.bytes) as u16;
    }

    /// Writes the merged header of datagrams, or of segments inside a tunnel. Not inlined, so that the common
    /// case reserves no registers for it.
    #[inline(never)]
    pub(crate) fn write_unusual<B: AsRef<[u8]>>(
        &mut self,
        slots: &Slots<B>,
        held: &Held,
        form: ChecksumForm,
    ) {
        let merge = Merge::new(slots, held);
        self.form = merge.possible(form);
        self.length = merge.write(form, &mut self.bytes) as u16;
    }
}

/// The input for a merged header: the aggregate, its first frame and its last.
pub(crate) struct Merge<'a, B> {
    slots: &'a Slots<B>,
    held: &'a Held,
    first: &'a Frame<B>,
    last: &'a Frame<B>,
}

impl<'a, B: AsRef<[u8]>> Merge<'a, B> {
    #[inline]
    pub(crate) fn new(slots: &'a Slots<B>, held: &'a Held) -> Self {
        let (first, last) = (slots.frame(held.chain.head), slots.frame(held.chain.tail));
        Self { slots, held, first, last }
    }

    /// Returns `form` if it is possible; otherwise the pseudo-header form. If the segments' checksums are
    /// partial, only the latter is possible.
    fn possible(&self, form: ChecksumForm) -> ChecksumForm {
        if self.last.checksum.is_partial() { ChecksumForm::PseudoHeader } else { form }
    }

    /// Writes the merged header to `to` and returns its length in bytes.
    pub(crate) fn write(&self, form: ChecksumForm, to: &mut [u8; MAX_HEADER_BYTES]) -> usize {
        let form = self.possible(form);
        if self.held.at.is_datagram() {
            return self.write_as::<true>(form, to);
        }
        let length = self.write_as::<false>(form, to);
        if let Some(around) = self.held.tunnel().and_then(Around::of) {
            self.write_around(around, form, to);
        }
        length
    }

    /// Writes the outer headers of a tunnel: lengths, the first packet's IPv4 ID, and the UDP checksum if it is
    /// used, in the form of the inner checksum. A kernel that segments the packet needs the sum of the
    /// pseudo-header in this field (virtio 1.4, section 5.1.6.2).
    fn write_around(
        &self,
        around: Around,
        form: ChecksumForm,
        merged: &mut [u8; MAX_HEADER_BYTES],
    ) {
        let held = self.held;
        let end = u32::from(held.header_bytes) + held.payload_bytes;
        if let Some(ip) = field_mut::<20>(merged, around.network) {
            around.write_ip(ip, self.first.bytes(), length_field(end - around.network as u32));
        }
        let datagram_bytes = end - around.transport as u32;
        let Some(udp) = field_mut::<8>(merged, around.transport) else { return };
        [udp[4], udp[5]] = length_field(datagram_bytes).to_be_bytes();
        if !around.has_checksum || form == ChecksumForm::Verified {
            return;
        }
        let pseudo = around.pseudo_header(&*merged, datagram_bytes);
        let checksum = match form {
            ChecksumForm::PseudoHeader => pseudo.fold(),
            _ => {
                if let Some(field) = field_mut(merged, around.transport + udp::CHECKSUM_AT) {
                    *field = [0, 0];
                }
                // The inner segment with its pseudo-header sums to zero, so the pseudo-header is subtracted
                // instead.
                let headers = around.transport..usize::from(held.at.transport());
                let headers = merged.get(headers).map_or(Sum::ZERO, Sum::of);
                let inner = held.pseudo_header(PROTOCOL_TCP, held.payload_bytes);
                never_zero((pseudo + headers - inner).checksum())
            }
        };
        if let Some(field) = field_mut(merged, around.transport + udp::CHECKSUM_AT) {
            *field = checksum.to_be_bytes();
        }
    }

    /// Writes the merged header in `form`, which must be a result of [`Merge::possible`]. `UDP` is `true` for
    /// datagrams.
    #[inline(always)]
    fn write_as<const UDP: bool>(
        &self,
        form: ChecksumForm,
        to: &mut [u8; MAX_HEADER_BYTES],
    ) -> usize {
        let header = usize::from(self.held.header_bytes);
        let last = self.last.bytes();
        match (to.first_chunk_mut::<USUAL_BYTES>(), last.first_chunk::<USUAL_BYTES>()) {
            // Most headers are shorter than this. A copy of fixed length takes a few instructions; bytes
            // after the header are copied too, but never returned.
            (Some(to), Some(last)) if header <= USUAL_BYTES => *to = *last,
            _ => to.iter_mut().zip(last.iter().take(header)).for_each(|(to, byte)| *to = *byte),
        }
        self.write_ip(to);
        self.write_transport::<UDP>(to);
        match form {
            ChecksumForm::PseudoHeader => {
                let held = self.held;
                let protocol = if UDP { held.protocol() } else { PROTOCOL_TCP };
                let seed = held.pseudo_header(protocol, held.payload_bytes).fold();
                self.put_checksum::<UDP>(to, seed);
            }
            ChecksumForm::Complete => {
                self.put_checksum::<UDP>(to, 0);
                // A new `Merge` for the call, so that `self` can stay in registers.
                let complete = Self::new(self.slots, self.held).complete(to);
                self.put_checksum::<UDP>(to, complete);
            }
            ChecksumForm::Verified => {}
        }
        header
    }

    /// Writes the lengths; for IPv4 also the first segment's ID and the header checksum.
    #[inline]
    fn write_ip(&self, merged: &mut [u8; MAX_HEADER_BYTES]) {
        let network = usize::from(self.held.at.network());
        let packet = self.held.packet_bytes();
        let Some(ip) = field_mut::<20>(merged, network) else { return };
        if self.held.version == IpVersion::V6 {
            [ip[4], ip[5]] = length_field(packet - 40).to_be_bytes();
            return;
        }
        // The checksum of the last header is right, so only the changed words are updated (RFC 1624).
        let first: Option<&[u8; 2]> =
            self.first.bytes().get(network + 4..network + 6).and_then(<[u8]>::first_chunk);
        let id = first.map_or(0, |id| u16::from_be_bytes(*id));
        let unchanged = Sum::word(!u16::from_be_bytes([ip[10], ip[11]]))
            + Sum::word(!u16::from_be_bytes([ip[2], ip[3]]))
            + Sum::word(!u16::from_be_bytes([ip[4], ip[5]]));
        let sum = unchanged + Sum::word(length_field(packet)) + Sum::word(id);
        [ip[2], ip[3]] = length_field(packet).to_be_bytes();
        [ip[4], ip[5]] = id.to_be_bytes();
        [ip[10], ip[11]] = sum.checksum().to_be_bytes();
    }

    /// Writes the first segment's sequence number and the union of all flags; for datagrams, their total
    /// length.
    #[inline]
    fn write_transport<const UDP: bool>(&self, merged: &mut [u8; MAX_HEADER_BYTES]) {
        let transport = usize::from(self.held.at.transport());
        if UDP {
            let length = udp::HEADER_BYTES as u32 + self.held.payload_bytes;
            if let Some(field) = field_mut(merged, transport + udp::LENGTH_AT) {
                *field = (length as u16).to_be_bytes();
            }
        } else if let Some(tcp) = field_mut::<20>(merged, transport) {
            let seq = self.held.next_seq.0.wrapping_sub(self.held.payload_bytes);
            [tcp[4], tcp[5], tcp[6], tcp[7]] = seq.to_be_bytes();
            tcp[13] = self.held.flags.bits() as u8;
        }
    }

    #[inline]
    fn put_checksum<const UDP: bool>(&self, merged: &mut [u8; MAX_HEADER_BYTES], checksum: u16) {
        let field = if UDP { udp::CHECKSUM_AT } else { CHECKSUM_AT };
        let at = usize::from(self.held.at.transport()) + field;
        if let Some(field) = field_mut(merged, at) {
            *field = checksum.to_be_bytes();
        }
    }

    /// Computes the checksum of the merged segment from the checksums of its segments (RFC 1071 section 2). A
    /// segment's checksum without its header and pseudo-header yields the sum of its payload.
    #[cold]
    fn complete(&self, merged: &[u8; MAX_HEADER_BYTES]) -> u16 {
        let held = self.held;
        let (network, transport) =
            (usize::from(held.at.network()), usize::from(held.at.transport()));
        let header = usize::from(held.header_bytes);
        let protocol = held.protocol();
        let header_sum = |bytes: &[u8]| bytes.get(transport..header).map_or(Sum::ZERO, Sum::of);
        let mut sum = held.pseudo_header(protocol, held.payload_bytes) + header_sum(merged);
        let mut offset = 0;
        for frame in self.slots.chain(held.chain) {
            let bytes = frame.bytes();
            let end = network + packet_bytes(bytes, network, held.version);
            let payload_bytes = end.saturating_sub(header);
            let rest = held.pseudo_header(protocol, payload_bytes as u32) + header_sum(bytes);
            // A valid segment sums to zero, so the payload's sum is the negative of the rest.
            sum += (Sum::ZERO - rest).at(offset);
            offset += payload_bytes;
        }
        if held.at.is_datagram() { never_zero(sum.checksum()) } else { sum.checksum() }
    }
}

/// Returns the `N` bytes that begin at `at`, with a single check of the bounds; `None` if they are out of
/// bounds.
#[inline]
fn field_mut<const N: usize>(
    bytes: &mut [u8; MAX_HEADER_BYTES],
    at: usize,
) -> Option<&mut [u8; N]> {
    bytes.get_mut(at..at + N)?.first_chunk_mut()
}

/// Returns the value of an IP header's length field for a length of `bytes`: 0 if the length exceeds 16 bits.
#[inline]
fn length_field(bytes: u32) -> u16 {
    u16::try_from(bytes).unwrap_or(0)
}

/// Returns the length of the IP packet that begins at `network`, from its header, in bytes.
#[inline]
pub(crate) fn packet_bytes(frame: &[u8], network: usize, version: IpVersion) -> usize {
    match version {
        IpVersion::V4 => usize::from(half(frame, network + 2)),
        IpVersion::V6 => usize::from(half(frame, network + 4)) + 40,
    }
}

#[inline]
fn half(bytes: &[u8], at: usize) -> u16 {
    let field = bytes.get(at..).and_then(|rest| rest.first_chunk());
    field.map_or(0, |field| u16::from_be_bytes(*field))
}
