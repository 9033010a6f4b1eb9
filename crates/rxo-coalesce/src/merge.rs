//! The merged header.
//!
//! The first segment's header with the lengths of the whole, the acknowledgement number, window
//! and timestamp of the last, and the flags of all. It is written once, into a buffer of its own:
//! the original frames stay as they came.

use rxo_frame::Frame;
use rxo_wire::IpVersion;
use rxo_wire::checksum::Sum;
use rxo_wire::tcp::OptionLayout;

use crate::held::Held;

/// The longest merged header, in bytes: Ethernet with two tags, IPv6 with extension headers, TCP
/// with all options. A candidate with more is not coalesced.
pub const MAX_HEADER_BYTES: usize = 192;

/// What stands in the TCP checksum field of a merged header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ChecksumForm {
    /// The folded sum of the pseudo-header: what `NEEDS_CSUM` wants, and segmentation starts from.
    #[default]
    PseudoHeader,
    /// The checksum of the merged segment, combined from the segments' own without reading their
    /// payload. Where these are only seeds themselves the pseudo-header form is written instead.
    Complete,
    /// Whatever the first segment had; the receiver is told that it was verified.
    Verified,
}

/// A merged header in its buffer.
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
        self.bytes.get(..usize::from(self.length)).unwrap_or_default()
    }

    #[inline]
    pub(crate) const fn form(&self) -> ChecksumForm {
        self.form
    }

    /// Writes the header of what `held` says of `frames`.
    #[inline]
    pub(crate) fn write<'a, B: AsRef<[u8]> + 'a>(
        &mut self,
        held: &Held,
        form: ChecksumForm,
        frames: impl Iterator<Item = &'a Frame<B>> + Clone,
    ) {
        self.form = possible_form(held, form);
        self.length = write(held, self.form, frames, &mut self.bytes) as u16;
    }
}

const fn possible_form(held: &Held, form: ChecksumForm) -> ChecksumForm {
    match form {
        ChecksumForm::Complete | ChecksumForm::Verified if held.checksum.is_partial() => {
            ChecksumForm::PseudoHeader
        }
        form => form,
    }
}

/// Writes the merged header to `to` and returns its length in bytes.
#[inline]
pub(crate) fn write<'a, B: AsRef<[u8]> + 'a>(
    held: &Held,
    form: ChecksumForm,
    frames: impl Iterator<Item = &'a Frame<B>> + Clone,
    to: &mut [u8; MAX_HEADER_BYTES],
) -> usize {
    let header = held.header_bytes as usize;
    let Some(first) = frames.clone().next().and_then(|frame| frame.bytes().get(..header)) else {
        return 0;
    };
    let Some(merged) = to.get_mut(..header) else { return 0 };
    merged.copy_from_slice(first);
    write_ip(held, merged);
    write_tcp(held, merged);
    match possible_form(held, form) {
        ChecksumForm::PseudoHeader => {
            put(merged, checksum_at(held), held.pseudo_header(held.payload_bytes).fold());
        }
        ChecksumForm::Complete => {
            let complete = complete(held, merged, frames);
            put(merged, checksum_at(held), complete);
        }
        ChecksumForm::Verified => {}
    }
    header
}

const fn checksum_at(held: &Held) -> usize {
    held.transport as usize + 16
}

#[inline]
fn put(bytes: &mut [u8], at: usize, value: u16) {
    if let Some(field) = bytes.get_mut(at..at + 2) {
        field.copy_from_slice(&value.to_be_bytes());
    }
}

#[inline]
fn put_word(bytes: &mut [u8], at: usize, value: u32) {
    if let Some(field) = bytes.get_mut(at..at + 4) {
        field.copy_from_slice(&value.to_be_bytes());
    }
}

/// The lengths, and the IPv4 header checksum.
#[inline]
fn write_ip(held: &Held, merged: &mut [u8]) {
    let network = held.network as usize;
    let packet = held.packet_bytes();
    match held.ip.version {
        IpVersion::V4 => {
            put(merged, network + 2, packet as u16);
            put(merged, network + 10, 0);
            let sum = merged.get(network..network + 20).map_or(Sum::ZERO, Sum::of);
            put(merged, network + 10, sum.checksum());
        }
        IpVersion::V6 => put(merged, network + 4, (packet - 40) as u16),
    }
}

/// What the last segment says, and what all say together.
#[inline]
fn write_tcp(held: &Held, merged: &mut [u8]) {
    let transport = held.transport as usize;
    put_word(merged, transport + 8, held.last.ack.0);
    if let Some(flags) = merged.get_mut(transport + 13) {
        *flags = held.flags.bits() as u8;
    }
    put(merged, transport + 14, held.last.window);
    if held.last.options == OptionLayout::AlignedTimestamp {
        put_word(merged, transport + 24, held.last.timestamp.value);
        put_word(merged, transport + 28, held.last.timestamp.echo);
    }
}

/// The merged segment's checksum from those of its segments (RFC 1071 section 2): each says the
/// sum of its payload once its header and pseudo-header are taken out. A payload that starts at
/// an odd distance counts with its bytes swapped.
#[cold]
fn complete<'a, B: AsRef<[u8]> + 'a>(
    held: &Held,
    merged: &mut [u8],
    frames: impl Iterator<Item = &'a Frame<B>>,
) -> u16 {
    put(merged, checksum_at(held), 0);
    let (network, transport) = (held.network as usize, held.transport as usize);
    let header = held.header_bytes as usize;
    let mut sum =
        held.pseudo_header(held.payload_bytes) + merged.get(transport..).map_or(Sum::ZERO, Sum::of);
    let mut is_odd = false;
    for frame in frames {
        let bytes = frame.bytes();
        let end = network + packet_bytes(bytes, network, held.ip.version == IpVersion::V4);
        let payload_bytes = end.saturating_sub(header);
        let before = held.pseudo_header(payload_bytes as u32)
            + bytes.get(transport..header).map_or(Sum::ZERO, Sum::of);
        // Header, pseudo-header and payload sum to all ones, which is zero.
        let payload = Sum::ZERO - before;
        sum = sum + if is_odd { payload.swapped() } else { payload };
        is_odd ^= payload_bytes % 2 == 1;
    }
    sum.checksum()
}

/// The IP packet's length as its header says it, in bytes.
#[inline]
pub(crate) fn packet_bytes(frame: &[u8], network: usize, is_v4: bool) -> usize {
    let at = if is_v4 { network + 2 } else { network + 4 };
    let said =
        frame.get(at..at + 2).map_or(0, |field| usize::from(field[0]) << 8 | usize::from(field[1]));
    if is_v4 { said } else { said + 40 }
}
