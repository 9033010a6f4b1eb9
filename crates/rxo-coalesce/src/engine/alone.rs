//! A segment that is alone: the only frame of a poll at whose end all is flushed, while nothing is held.
//!
//! A request is, and the answer to it. Nothing can join it, so neither its flow nor a place is looked up, and it is
//! delivered at once for the reason for which the end of the poll would flush it. Contract: deliveries and counters
//! are those of the tiers, which take any frame that is not an ordinary segment.

use rxo_frame::{Frame, FrameBuffer, LinkKind};
use rxo_wire::{ETHERNET_HEADER_BYTES, ETHERTYPE_IPV4, ETHERTYPE_IPV6, ethertype};

use super::batch::Batch;
use super::{Engine, most_payload};
use crate::expected::{Shape, V4, V6, by_ip_version};
use crate::refused::{Shown, shown};
use crate::single::Starts;
use crate::verdict::verdict;
use crate::{FlushReason, Hold, Verdict};

impl<B: FrameBuffer> Engine<B> {
    /// Whether `batch` is a frame that is alone, under a policy that could hold it.
    #[inline(always)]
    pub(super) fn is_alone(&self, batch: &[Frame<B>]) -> bool {
        batch.len() == 1
            && self.table.is_empty()
            && self.config.policy.hold == Hold::EndOfPoll
            && most_payload(&self.config.policy) > 0
            && self.memory.is_off()
    }

    /// Delivers the segment in `slot`, which is alone. Returns `false`, and has changed nothing, if it is not an
    /// ordinary one.
    #[inline(never)]
    pub(super) fn deliver_alone(&mut self, batch: Batch<'_, B>, slot: u32) -> bool {
        let bytes = batch.frame(slot).bytes();
        let delivered = by_ip_version!((self.config.link, bytes), S, network => {
            self.deliver_alone_at::<S>(batch, slot, network)
        });
        delivered.is_some()
    }

    #[inline(always)]
    fn deliver_alone_at<S: Shape>(
        &mut self,
        batch: Batch<'_, B>,
        slot: u32,
        network: usize,
    ) -> Option<()> {
        let frame = batch.frame(slot);
        let policy = &self.config.policy;
        if shown::<S>(frame.bytes().get(network..)?, policy) != Shown::Ordinary {
            return None;
        }
        let (candidate, _) = self.ordinary::<S>(frame, network)?;
        let Verdict::Start(close) = verdict(None, &candidate, policy) else { return None };
        let (at, reason) = (Starts::at(candidate.at), close.unwrap_or(FlushReason::EndOfPoll));
        self.deliver_single((slot, at), frame.arrived_at, reason);
        Some(())
    }
}
