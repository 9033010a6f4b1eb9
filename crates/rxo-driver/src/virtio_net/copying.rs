//! Copying: how packets are copied into a guest's memory, and counters of the bytes and pieces copied.
//!
//! The defaults copy each byte once. The alternatives exist for comparison: they copy as a driver domain of
//! Xen did (Oi and Nakajima 2009, sections II.C and III.A).

use rxo_wire::parse;

/// The method by which the pieces of a packet are copied into the memory of a guest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CopyPath {
    /// Gathering: each piece is copied directly into the guest's memory, so each byte is copied once.
    #[default]
    Gather,
    /// All pieces are copied into one region first, and from there into the guest's memory: each byte is copied
    /// twice, even in packets of one piece. A Xen bridge did this with aggregates (Oi and Nakajima 2009, Fig.
    /// 2b).
    Linear,
}

/// The division of a packet into pieces in memory. The bytes of the packets are the same for each layout.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FrameLayout {
    /// Whole frames: a packet has as many pieces as it has frames. The header of an aggregate replaces the
    /// header of its first frame, and counts as part of that frame.
    #[default]
    Frames,
    /// All headers are in one piece, and the payload of each frame is in its own piece, so a packet has one
    /// more piece than it has frames. The header of a single frame is found by parsing; a card that splits
    /// headers finds it in hardware. A frame without payload, or with a VLAN tag to insert, has one piece.
    Pages,
}

/// The method by which a sink copies packets into a guest's memory, and the layout of the packets' pieces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Copying {
    pub(crate) path: CopyPath,
    pub(crate) layout: FrameLayout,
}

/// Counters of the packets that were copied into a guest's memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Copies {
    /// The number of bytes that were copied; a byte that was copied twice counts twice.
    pub(crate) bytes: u64,
    /// The number of pieces that the packets had before copying; [`CopyPath::Linear`] joins them afterwards.
    pub(crate) pieces: u64,
}

impl FrameLayout {
    /// Returns the offset of the payload, in bytes, at which a packet of one piece is divided; `None` if this
    /// layout does not divide the packet.
    pub(crate) fn split_at(self, piece: &[u8]) -> Option<usize> {
        if self == Self::Frames {
            return None;
        }
        let parsed = parse(piece).ok().filter(|parsed| parsed.payload_bytes() > 0)?;
        usize::try_from(parsed.at.payload).ok().filter(|at| *at < piece.len())
    }

    /// Returns the number of pieces that a packet of `given` pieces has in this layout. An aggregate is given
    /// as one piece with the header and one piece per payload.
    pub(crate) const fn pieces(self, given: usize, is_split: bool) -> u64 {
        match (self, given) {
            (_, 0 | 1) => 1 + is_split as u64,
            (Self::Frames, _) => given as u64 - 1,
            (Self::Pages, _) => given as u64,
        }
    }
}
