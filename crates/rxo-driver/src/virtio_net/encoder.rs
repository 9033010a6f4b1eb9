//! Encoder: writes packets of a batch into a ring, in the form that the receiving side accepts.

use std::io;

use rxo_frame::{ChecksumStatus, Gso, LinkKind, Offload};
use rxo_vnet::{Coalesced, VIRTIO_HEADER_BYTES, VnetHeader, segments};
use rxo_wire::checksum::{Sum, Summer, complete};
use rxo_wire::segmentation::Checksums;

use super::accepts::{Accepts, Fit};
use super::copying::{Copies, CopyPath, Copying};
use crate::buffer::LARGE_BUFFER_BYTES;
use crate::transmit::batch::{Message, Sealed};

/// A ring to which packets can be written.
pub(crate) trait PacketRing {
    /// Writes a packet of `bytes` bytes, which consists of `pieces`, after `header`. In a ring whose header has
    /// no buffer count, the last two bytes of the header are omitted.
    ///
    /// # Errors
    /// `EAGAIN` if the ring is full; `ENOBUFS` if the ring has too few free buffers, and may never have
    /// enough; `ENETDOWN` if there is no other side; `EMSGSIZE` if the packet can never fit.
    fn put<'p>(
        &mut self,
        header: [u8; VIRTIO_HEADER_BYTES],
        bytes: usize,
        pieces: impl Iterator<Item = &'p [u8]>,
    ) -> io::Result<()>;
}

/// Writes packets to a ring, with memory for packets that must be modified, and counts what is copied.
#[derive(Debug)]
pub(crate) struct Encoder {
    whole: Vec<u8>,
    segment: Vec<u8>,
    summer: Summer,
    /// The number of segments of the packet in `whole` that were written before the ring was full; `None` if
    /// no packet is incomplete.
    begun: Option<usize>,
    copying: Copying,
    /// The bytes and pieces of the packets written since the last [`Encoder::take_copies`].
    copies: Copies,
}

impl Encoder {
    pub(crate) fn new(copying: Copying) -> Self {
        Self {
            whole: Vec::with_capacity(LARGE_BUFFER_BYTES),
            segment: Vec::with_capacity(LARGE_BUFFER_BYTES),
            summer: Summer::detect(),
            begun: None,
            copying,
            copies: Copies::default(),
        }
    }

    /// Returns the bytes and pieces of the packets written since the last call, and resets these counters.
    pub(crate) fn take_copies(&mut self) -> Copies {
        std::mem::take(&mut self.copies)
    }

    /// Writes packet `n` of `batch` into `ring`. If the other side does not accept the packet unchanged,
    /// completes a partial checksum, or segments a GSO frame that is a single frame. A GSO frame is also
    /// segmented if the ring may never have enough buffers for the whole frame.
    ///
    /// If `EAGAIN` is returned, some segments may have been written. A retry with the same packet continues
    /// with the next segment; the transmitter retries it before any other packet.
    ///
    /// # Errors
    /// Returns the errors of [`PacketRing::put`], and `EOPNOTSUPP` for an aggregate that the other side does
    /// not accept, although it may accept the original frames. Only aggregates return `ENOBUFS`.
    pub(crate) fn put(
        &mut self,
        ring: &mut impl PacketRing,
        accepts: Accepts,
        batch: &Sealed<'_, '_>,
        n: usize,
    ) -> io::Result<()> {
        let before = self.copies;
        let put = self.encode(ring, accepts, batch, n);
        if put.is_err() && self.begun.is_none() {
            self.copies = before;
        }
        put
    }

    fn encode(
        &mut self,
        ring: &mut impl PacketRing,
        accepts: Accepts,
        batch: &Sealed<'_, '_>,
        n: usize,
    ) -> io::Result<()> {
        let message = &batch.list()[n];
        let mut slices = batch.slices(n);
        let header = slices.next().and_then(VnetHeader::read).unwrap_or_default();
        let is_single = message.frames == 1;
        if let Some(left) = self.begun.take().filter(|_| is_single)
            && let Some(gso) = header.gso()
            && is_same(&self.whole, batch.slices(n).skip(1))
        {
            return self.put_segments(ring, accepts, (header, gso), left);
        }
        match accepts.fit(header) {
            Fit::Send(header)
                if !is_single && header.gso().is_some_and(|gso| accepts.coalesced(gso)) =>
            {
                self.put_counted(ring, header, message, || batch.slices(n).skip(1))
            }
            Fit::Send(header) => {
                let put = self.put_pieces(ring, header, message, slices);
                let Some(gso) = header.gso().filter(|_| is_single) else {
                    return if is_single { put.map_err(or_wait) } else { put };
                };
                match put.as_ref().err().and_then(io::Error::raw_os_error) {
                    Some(libc::ENOBUFS | libc::EMSGSIZE) => {
                        self.gather(batch.slices(n).skip(1));
                        self.put_segments(ring, accepts, (header, gso), 0)
                    }
                    _ => put,
                }
            }
            Fit::Complete { start, offset } => {
                self.gather(slices);
                self.complete(start, offset);
                self.put_gathered(ring, VnetHeader::default()).map_err(or_wait)?;
                self.copies.pieces += self.copying.layout.pieces(message.pieces(), false);
                Ok(())
            }
            Fit::Segment(gso) if is_single => {
                self.gather(slices);
                self.put_segments(ring, accepts, (header, gso), 0)
            }
            Fit::Segment(_) => Err(io::Error::from_raw_os_error(libc::EOPNOTSUPP)),
        }
    }

    /// Writes a packet unmodified, by the copy path and the layout of this encoder.
    fn put_pieces<'p>(
        &mut self,
        ring: &mut impl PacketRing,
        header: VnetHeader,
        message: &Message,
        slices: impl Iterator<Item = &'p [u8]>,
    ) -> io::Result<()> {
        let (Copying { path, layout }, given) = (self.copying, message.pieces());
        let mut slices = slices.peekable();
        let first = slices.peek().copied().filter(|first| first.len() == message.bytes);
        let split = first.and_then(|first| Some(first.split_at(layout.split_at(first)?)));
        match (path, split) {
            (CopyPath::Linear, _) => {
                self.gather(slices);
                self.put_gathered(ring, header)?;
            }
            (CopyPath::Gather, Some((headers, payload))) => {
                let pieces = [headers, payload].into_iter();
                ring.put(header.to_virtio_bytes(1), message.bytes, pieces)?;
                self.copies.bytes += message.bytes as u64;
            }
            (CopyPath::Gather, None) => {
                ring.put(header.to_virtio_bytes(1), message.bytes, slices)?;
                self.copies.bytes += message.bytes as u64;
            }
        }
        self.copies.pieces += layout.pieces(given, split.is_some());
        Ok(())
    }

    fn gather<'p>(&mut self, slices: impl Iterator<Item = &'p [u8]>) {
        self.whole.clear();
        slices.for_each(|slice| self.whole.extend_from_slice(slice));
        self.copies.bytes += self.whole.len() as u64;
    }

    fn put_gathered(&mut self, ring: &mut impl PacketRing, header: VnetHeader) -> io::Result<()> {
        let bytes = self.whole.len();
        ring.put(header.to_virtio_bytes(1), bytes, [&self.whole[..]].into_iter())?;
        self.copies.bytes += bytes as u64;
        Ok(())
    }

    /// Completes the checksum of the gathered packet. Does nothing if the offsets lie beyond the packet,
    /// which is a fault of its sender.
    fn complete(&mut self, start: u16, offset: u16) {
        let (start, offset) = (usize::from(start), usize::from(offset));
        let Some(sum) = complete(&self.whole, start, offset, self.summer) else { return };
        if let Some(field) = self.whole.get_mut(start + offset..start + offset + 2) {
            field.copy_from_slice(&sum.to_be_bytes());
        }
    }

    /// Writes an aggregate with the number of its segments (virtio 1.2, section 5.1.6.4). The count replaces the
    /// offsets of a partial checksum, so the checksum must be completed; this reads the payload once more.
    fn put_counted<'p, I: Iterator<Item = &'p [u8]>>(
        &mut self,
        ring: &mut impl PacketRing,
        header: VnetHeader,
        message: &Message,
        slices: impl Fn() -> I,
    ) -> io::Result<()> {
        // An aggregate never contains duplicate ACKs.
        let segments = u16::try_from(message.frames).unwrap_or(u16::MAX);
        let counted = header.with_coalesced(Coalesced { segments, duplicate_acks: 0 });
        match (self.copying.path, header.checksum()) {
            (CopyPath::Gather, ChecksumStatus::Partial { start, offset }) => {
                let (start, offset) = (usize::from(start), usize::from(offset));
                let checksum = checksum_from(start, slices(), self.summer).to_be_bytes();
                let pieces = replacing(start + offset, &checksum, slices());
                ring.put(counted.to_virtio_bytes(1), message.bytes, pieces)?;
                self.copies.bytes += message.bytes as u64;
            }
            (_, checksum) => {
                self.gather(slices());
                if let ChecksumStatus::Partial { start, offset } = checksum {
                    self.complete(start, offset);
                }
                self.put_gathered(ring, counted)?;
            }
        }
        self.copies.pieces += self.copying.layout.pieces(message.pieces(), false);
        Ok(())
    }

    /// Writes the segments of the gathered packet to the ring, except the first `left` segments, which an
    /// earlier call has written.
    fn put_segments(
        &mut self,
        ring: &mut impl PacketRing,
        accepts: Accepts,
        (header, gso): (VnetHeader, Gso),
        mut left: usize,
    ) -> io::Result<()> {
        let refused = || io::Error::from_raw_os_error(libc::EINVAL);
        let partial = Some(header.checksum()).filter(|sum| sum.is_partial() && accepts.partial());
        let checksums = partial.map_or(Checksums::Complete(self.summer), |_| Checksums::Partial);
        let described = (header.checksum(), gso);
        let mut segments = segments(LinkKind::Ethernet, &self.whole, described, checksums)
            .map_err(|_| refused())?;
        let checksum = partial.unwrap_or(ChecksumStatus::Unknown);
        let offload = Offload { checksum, gso: None, header_bytes: 0 };
        let header = VnetHeader::for_packet(offload, 0).to_virtio_bytes(1);
        self.segment.resize(segments.header_bytes() + usize::from(gso.size.get()), 0);
        let all = segments.remaining();
        while let Some(bytes) = segments.next_into(&mut self.segment).map_err(|_| refused())? {
            if all - segments.remaining() <= left {
                continue;
            }
            let put = ring.put(header, bytes, [&self.segment[..bytes]].into_iter());
            if let Err(error) = put.map_err(or_wait) {
                let is_full = error.raw_os_error() == Some(libc::EAGAIN);
                self.begun = Some(left).filter(|left| is_full && *left > 0);
                return Err(error);
            }
            left += 1;
            self.copies.bytes += bytes as u64;
            self.copies.pieces += 1;
        }
        Ok(())
    }
}

/// Converts `ENOBUFS` to `EAGAIN`, for a packet of one frame: it cannot be segmented, so it must wait for
/// buffers.
fn or_wait(error: io::Error) -> io::Error {
    match error.raw_os_error() {
        Some(libc::ENOBUFS) => io::Error::from_raw_os_error(libc::EAGAIN),
        _ => error,
    }
}

/// Returns the checksum of all bytes of `slices`, starting at offset `start`; the checksum field contains the
/// partial sum.
fn checksum_from<'p>(start: usize, slices: impl Iterator<Item = &'p [u8]>, summer: Summer) -> u16 {
    let (mut sum, mut at) = (Sum::ZERO, 0_usize);
    for slice in slices {
        let summed = &slice[start.saturating_sub(at).min(slice.len())..];
        sum += summer.sum(summed).at(at.saturating_sub(start));
        at += slice.len();
    }
    // Zero and `u16::MAX` are equivalent; `u16::MAX` cannot be mistaken for "no checksum".
    match sum.checksum() {
        0 => u16::MAX,
        checksum => checksum,
    }
}

/// Replaces the bytes at offset `place` by `field`. These bytes must lie in one slice. The bytes of a checksum
/// always do: the headers of an aggregate are one slice, and an inserted VLAN tag splits the packet before the IP
/// header.
fn replacing<'f, 's: 'f>(
    place: usize,
    field: &'f [u8; 2],
    slices: impl Iterator<Item = &'s [u8]>,
) -> impl Iterator<Item = &'f [u8]> {
    let mut end = 0;
    let parts = slices.flat_map(move |slice| -> [&'f [u8]; 3] {
        let start = end;
        end += slice.len();
        match place.checked_sub(start).filter(|at| at + field.len() <= slice.len()) {
            Some(at) => [&slice[..at], field, &slice[at + field.len()..]],
            None => [slice, &[], &[]],
        }
    });
    parts.filter(|part| !part.is_empty())
}

/// Returns `true` if the concatenated `slices` equal `bytes`.
fn is_same<'p>(mut bytes: &[u8], mut slices: impl Iterator<Item = &'p [u8]>) -> bool {
    let is_next = |slice: &[u8]| bytes.strip_prefix(slice).map(|rest| bytes = rest).is_some();
    slices.all(is_next) && bytes.is_empty()
}

#[cfg(test)]
mod tests;
