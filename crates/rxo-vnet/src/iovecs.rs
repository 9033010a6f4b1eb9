//! Scatter/gather arrays for `writev`: a virtio-net header, followed by the pieces of a packet.
//!
//! This module is separate because only it needs the standard library, for [`IoSlice`], the system's `iovec`.

use std::fmt;
use std::io::IoSlice;
use std::ops::Deref;

use rxo_frame::Gather;

use crate::{VNET_HEADER_BYTES, VnetHeader};

/// An array of the pieces of one packet, for one gathered write. Allocates no memory. `PIECES` is the maximum
/// number of pieces. The default is enough for two headers and 64 segments.
///
/// # Examples
/// ```
/// use std::io::Write;
///
/// use rxo_frame::{Frame, Instant};
/// use rxo_vnet::{IoVecs, VNET_HEADER_BYTES, VnetHeader};
///
/// let mut tun = Vec::new();
/// let delivery = Frame::new(&[0x45; 60][..], Instant::ZERO);
/// let mut header = [0; VNET_HEADER_BYTES];
/// let mut pieces: IoVecs = IoVecs::new();
/// VnetHeader::gather(delivery, &mut header, &mut pieces)?;
/// tun.write_vectored(&pieces)?;
/// assert_eq!(tun.len(), 70);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct IoVecs<'p, const PIECES: usize = 66> {
    pieces: [IoSlice<'p>; PIECES],
    count: usize,
}

impl<'p, const PIECES: usize> IoVecs<'p, PIECES> {
    /// Creates an empty list.
    #[must_use]
    pub fn new() -> Self {
        Self { pieces: [IoSlice::new(&[]); PIECES], count: 0 }
    }

    fn push(&mut self, piece: &'p [u8]) {
        if let Some(place) = self.pieces.get_mut(self.count) {
            *place = IoSlice::new(piece);
        }
        self.count += 1;
    }
}

impl<const PIECES: usize> Default for IoVecs<'_, PIECES> {
    fn default() -> Self {
        Self::new()
    }
}

impl<'p, const PIECES: usize> Deref for IoVecs<'p, PIECES> {
    type Target = [IoSlice<'p>];

    fn deref(&self) -> &Self::Target {
        self.pieces.get(..self.count).unwrap_or_default()
    }
}

/// Error: a packet has more pieces than an [`IoVecs`] can hold. A write of only some pieces would truncate the
/// packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooManyPieces {
    /// The number of pieces of the packet, including its virtio-net header.
    pub pieces: usize,
    /// The maximum number of pieces that the [`IoVecs`] can hold.
    pub most: usize,
}

impl fmt::Display for TooManyPieces {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { pieces, most } = self;
        write!(
            f,
            "a packet has {pieces} pieces, and a write takes {most}; lower the policy's max_segments"
        )
    }
}

impl std::error::Error for TooManyPieces {}

impl VnetHeader {
    /// Writes the header of `packet` to `header`, and replaces `pieces` by that header and the pieces of
    /// `packet`, for one gathered write to a TAP or TUN with `IFF_VNET_HDR`. Does not allocate, and copies no
    /// payload. The pieces do not include the VLAN tag of [`Gather::vlan`], so pass only packets without such a
    /// tag.
    ///
    /// # Errors
    /// [`TooManyPieces`] if the packet has more pieces than `pieces` can hold; `pieces` is then empty. Write
    /// the packet's original frames instead ([`Gather::for_each_frame`]).
    pub fn gather<'p, const PIECES: usize>(
        packet: impl Gather<'p>,
        header: &'p mut [u8; VNET_HEADER_BYTES],
        pieces: &mut IoVecs<'p, PIECES>,
    ) -> Result<(), TooManyPieces> {
        *header = Self::for_packet(packet.offload(), 0).to_bytes();
        pieces.count = 0;
        pieces.push(header);
        packet.for_each_slice(|piece| pieces.push(piece));
        let count = pieces.count;
        if count > PIECES {
            pieces.count = 0;
            return Err(TooManyPieces { pieces: count, most: PIECES });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use rxo_frame::{Frame, Instant};

    use super::*;

    #[test]
    fn a_packet_with_more_pieces_than_fit_is_an_error_and_not_cut() {
        let packet = Frame::new(&[1; 60][..], Instant::ZERO);
        let (mut header, mut small) = ([0; VNET_HEADER_BYTES], IoVecs::<1>::new());
        let refused = VnetHeader::gather(packet, &mut header, &mut small);
        assert_eq!(refused, Err(TooManyPieces { pieces: 2, most: 1 }));
        assert!(small.is_empty());
        let (mut header, mut enough) = ([9; VNET_HEADER_BYTES], IoVecs::<2>::new());
        VnetHeader::gather(packet, &mut header, &mut enough).unwrap();
        assert_eq!([&enough[0][..], &enough[1][..]], [&[0; VNET_HEADER_BYTES][..], &[1; 60]]);
    }
}
