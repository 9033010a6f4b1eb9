//! One packet as a sink takes it.

use rxo_frame::{Frame, Gather, Offload, VlanTag};
use rxo_tcp::Text;

use super::large::Large;
use super::template::Template;

/// Headers, with a short text behind them, and a long text where it is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Packet<'a> {
    pub(super) head: &'a [u8],
    pub(super) text: Text<'a>,
    pub(super) offload: Offload,
    /// It is several packets in one.
    pub(super) whole: Option<Whole<'a>>,
}

/// Several packets in one, for the device to take apart.
#[derive(Clone, Copy, Debug)]
pub(super) enum Whole<'a> {
    /// Segments.
    Large(&'a Large),
    /// ACKs.
    Template(&'a Template),
}

impl<'a> Gather<'a> for Packet<'a> {
    #[inline]
    fn offload(self) -> Offload {
        self.offload
    }

    #[inline]
    fn vlan(self) -> Option<VlanTag> {
        None
    }

    #[inline]
    fn byte_len(self) -> usize {
        self.head.len() + self.text.len()
    }

    #[inline]
    fn for_each_slice(self, mut visit: impl FnMut(&'a [u8])) {
        visit(self.head);
        self.text.slices().for_each(visit);
    }

    #[inline]
    fn frame_count(self) -> usize {
        match self.whole {
            Some(Whole::Large(large)) => large.segments(self.text),
            Some(Whole::Template(template)) => template.count(),
            None => 1,
        }
    }

    /// It was never frames: they are made when a sink that refuses the whole asks for them.
    fn for_each_frame(self, visit: impl FnMut(Frame<&'a [u8]>)) {
        let checksum = self.offload.checksum;
        match self.whole {
            Some(Whole::Large(large)) => large.cut(self.head, self.text, checksum).for_each(visit),
            Some(Whole::Template(template)) => {
                template.frames(self.head, checksum).for_each(visit);
            }
            // It is the frame itself.
            None => {}
        }
    }
}
