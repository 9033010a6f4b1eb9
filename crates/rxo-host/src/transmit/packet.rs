//! One packet as a sink takes it.

use rxo_frame::{Frame, Gather, Offload, VlanTag};

/// Headers, with a short text behind them, and a long text in up to two pieces.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packet<'a> {
    pub(crate) head: &'a [u8],
    pub(crate) text: [&'a [u8]; 2],
    pub(crate) offload: Offload,
}

impl<'a> Gather<'a> for Packet<'a> {
    fn offload(self) -> Offload {
        self.offload
    }

    fn vlan(self) -> Option<VlanTag> {
        None
    }

    fn byte_len(self) -> usize {
        self.head.len() + self.text.iter().map(|piece| piece.len()).sum::<usize>()
    }

    fn for_each_slice(self, mut visit: impl FnMut(&'a [u8])) {
        let pieces = [self.head, self.text[0], self.text[1]];
        pieces.into_iter().filter(|piece| !piece.is_empty()).for_each(&mut visit);
    }

    /// It was never frames: a sink that cannot send it whole does not get it.
    fn frame_count(self) -> usize {
        1
    }

    fn for_each_frame(self, _visit: impl FnMut(Frame<&'a [u8]>)) {}
}
