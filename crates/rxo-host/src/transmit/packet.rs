//! One packet in the form that a sink accepts.

use rxo_frame::{Frame, Gather, Offload, VlanTag};
use rxo_tcp::Text;

use super::large::Large;
use super::template::Template;

/// A packet's headers with a short payload, and a reference to a long payload.
#[derive(Clone, Copy, Debug)]
pub(super) struct Packet<'a> {
    pub(super) head: &'a [u8],
    pub(super) text: Text<'a>,
    pub(super) offload: Offload,
    /// The GSO frame or template that the device must split; `None` if the packet is sent unchanged.
    pub(super) whole: Option<Whole<'a>>,
}

/// A packet that the device must split into several.
#[derive(Clone, Copy, Debug)]
pub(super) enum Whole<'a> {
    /// A GSO frame, which the device must split into segments.
    Large(&'a Large),
    /// An ACK template, which the device must expand into ACKs.
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

    /// Passes the segments of a GSO frame, or the ACKs of a template, to `visit`. A sink calls this function if
    /// it refuses the whole packet.
    fn for_each_frame(self, visit: impl FnMut(Frame<&'a [u8]>)) {
        let checksum = self.offload.checksum;
        match self.whole {
            Some(Whole::Large(large)) => large.cut(self.head, self.text, checksum).for_each(visit),
            Some(Whole::Template(template)) => {
                template.frames(self.head, checksum).for_each(visit);
            }
            // A plain packet has no other form.
            None => {}
        }
    }
}
