//! Frames that are refused by themselves, without the full rules.

use rxo_frame::{Frame, LinkKind};
use rxo_wire::{ETHERNET_HEADER_BYTES, ETHERTYPE_IPV4, ETHERTYPE_IPV6, ethertype};

use super::Engine;
use super::apply::flow_key;
use super::batch::Batch;
use crate::BypassReason;
use crate::expected::{Shape, V4, V6};
use crate::refused::{Refused, flow, refused};
use crate::single::Starts;

impl<B: AsRef<[u8]>> Engine<B> {
    /// Takes a frame that is not plain: delivers it if its fixed offsets show that it is refused, and
    /// leaves it to the full rules otherwise. Returns the slot after the last frame taken.
    ///
    /// A cold call, so that the loop over plain frames spares no registers for it.
    #[cold]
    #[inline(never)]
    pub(super) fn take_odd(&mut self, batch: Batch<'_, B>, slot: u32) -> u32 {
        match self.refuse(batch.frame(slot), slot) {
            Some(()) => slot + 1,
            None => self.take_any(batch, slot),
        }
    }

    /// Delivers the frame in `slot` if it is refused by itself. `None` if only the full rules can tell.
    #[inline(always)]
    fn refuse(&mut self, frame: &Frame<B>, slot: u32) -> Option<()> {
        // What is remembered of a flow changes with segments that are refused.
        if !self.memory.is_off() {
            return None;
        }
        let bytes = frame.bytes();
        match self.config.link {
            LinkKind::Ethernet => match ethertype(bytes)? {
                ETHERTYPE_IPV4 => self.refuse_at::<V4>(frame, slot, ETHERNET_HEADER_BYTES),
                ETHERTYPE_IPV6 => self.refuse_at::<V6>(frame, slot, ETHERNET_HEADER_BYTES),
                _ => None,
            },
            LinkKind::RawIp => match bytes.first()? >> 4 {
                4 => self.refuse_at::<V4>(frame, slot, 0),
                6 => self.refuse_at::<V6>(frame, slot, 0),
                _ => None,
            },
        }
    }

    #[inline(always)]
    fn refuse_at<S: Shape>(&mut self, frame: &Frame<B>, slot: u32, network: usize) -> Option<()> {
        let packet = frame.bytes().get(network..)?;
        let Refused { reason, ip_bytes } = refused::<S>(packet, &self.config.policy)?;
        if !self.table.is_empty() {
            self.flush_before_refused::<S>(frame, slot, (packet, reason));
        }
        self.deliver_untouched(slot, Starts::after(network, ip_bytes), reason);
        Some(())
    }

    /// Flushes what has to go before a refused frame: what its flow holds, or what every flow between its
    /// addresses holds where its ports are unknown or may have been changed.
    #[inline(never)]
    fn flush_before_refused<S: Shape>(
        &mut self,
        frame: &Frame<B>,
        slot: u32,
        (packet, reason): (&[u8], BypassReason),
    ) {
        let key = flow_key(flow::<S>(packet), frame);
        match reason {
            BypassReason::NotTcp => {}
            BypassReason::Truncated
            | BypassReason::Malformed
            | BypassReason::Fragment
            | BypassReason::UnknownHeader
            | BypassReason::BadIpChecksum => self.flush_addresses(&key, slot),
            _ => self.flush_flow(&key, self.now),
        }
    }
}
