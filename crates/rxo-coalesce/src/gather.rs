//! A delivery as sinks gather it.

use rxo_frame::{Frame, Gather, Offload, VlanTag};

use crate::Delivery;

impl<'a, B: AsRef<[u8]>> Gather<'a> for Delivery<'a, B> {
    #[inline]
    fn offload(self) -> Offload {
        match self {
            Self::Frame(single) => single.frame().borrowed().offload(),
            Self::Aggregate(aggregate) => aggregate.offload(),
            Self::Acks(acks) => acks.last().borrowed().offload(),
        }
    }

    #[inline]
    fn vlan(self) -> Option<VlanTag> {
        match self {
            Self::Frame(single) => single.frame().vlan,
            Self::Aggregate(aggregate) => aggregate.vlan(),
            Self::Acks(acks) => acks.last().vlan,
        }
    }

    #[inline]
    fn byte_len(self) -> usize {
        match self {
            Self::Frame(single) => single.frame().bytes().len(),
            Self::Aggregate(aggregate) => {
                aggregate.header().len() + aggregate.payload_bytes() as usize
            }
            Self::Acks(acks) => acks.packet().len(),
        }
    }

    #[inline]
    fn for_each_slice(self, mut visit: impl FnMut(&'a [u8])) {
        match self {
            Self::Frame(single) => visit(single.frame().bytes()),
            Self::Aggregate(aggregate) => {
                visit(aggregate.header());
                aggregate.payloads().for_each(visit);
            }
            Self::Acks(acks) => visit(acks.packet()),
        }
    }

    #[inline]
    fn frame_count(self) -> usize {
        match self {
            Self::Frame(_) => 1,
            Self::Aggregate(aggregate) => aggregate.segment_count(),
            Self::Acks(acks) => acks.count(),
        }
    }

    fn for_each_frame(self, mut visit: impl FnMut(Frame<&'a [u8]>)) {
        self.frames().for_each(|frame| visit(frame.borrowed()));
    }
}
