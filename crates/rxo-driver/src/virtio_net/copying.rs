//! How packets get into a guest's memory, and what that takes.
//!
//! The defaults copy each byte once. The others exist to be measured against: they are what a driver
//! domain of Xen did (Oi and Nakajima 2009, sections II.C and III.A).

use rxo_wire::parse;

/// How the pieces of a packet are copied into the memory of a guest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CopyPath {
    /// Each piece straight into the guest's memory: one copy of each byte.
    #[default]
    Gather,
    /// First into one region, then from there into the guest's memory: two copies of each byte, of
    /// packets in one piece, too. A bridge of Xen did so with aggregates (Fig. 2b).
    Linear,
}

/// How the frames of a packet lie in memory. The packets are equal; their pieces are not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FrameLayout {
    /// Frames linked whole: as many pieces as frames. The header of an aggregate takes the place of the
    /// first frame's and counts as part of it.
    #[default]
    Frames,
    /// Headers in one piece, the payload of each frame in another: one piece more. The header of a single
    /// frame ends where parsing says, which a card that splits headers finds in hardware. A frame
    /// without payload, or with a VLAN tag to insert, has one piece.
    Pages,
}

/// The path and the layout of a sink.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Copying {
    pub(crate) path: CopyPath,
    pub(crate) layout: FrameLayout,
}

/// What putting packets took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Copies {
    /// Bytes of packets that were copied, each as often as it was.
    pub(crate) bytes: u64,
    /// Pieces that the packets had, before any were copied together.
    pub(crate) pieces: u64,
}

impl FrameLayout {
    /// Where a packet of one piece is divided: at its payload, if this layout divides it.
    pub(crate) fn split_at(self, piece: &[u8]) -> Option<usize> {
        if self == Self::Frames {
            return None;
        }
        let parsed = parse(piece).ok().filter(|parsed| parsed.payload_bytes() > 0)?;
        usize::try_from(parsed.at.payload).ok().filter(|at| *at < piece.len())
    }

    /// How many pieces a packet has that the engine gives in `given`: those of an aggregate are a header
    /// and the payloads.
    pub(crate) const fn pieces(self, given: usize, is_split: bool) -> u64 {
        match (self, given) {
            (_, 0 | 1) => 1 + is_split as u64,
            (Self::Frames, _) => given as u64 - 1,
            (Self::Pages, _) => given as u64,
        }
    }
}
