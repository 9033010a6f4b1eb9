//! Taking a batch: which tier takes which frame.
//!
//! Three tiers, each slower than the one before and each deciding what that left: *Expected*
//! ([`super::expected`]), one compare with what a flow would send next; *Plain* ([`super::plain`]), an
//! ordinary segment or a refused packet, read from fixed offsets; *Rules* ([`super::rules`]), all headers
//! and all rules. What they decide is done in one place ([`super::apply`]).
//!
//! The first two exist once for each version of IP, chosen before anything else is read: what
//! is known at compile time need not be kept, and neither version pays for the other.

use alloc::vec::Vec;

use rxo_frame::{Frame, FrameBuffer, Instant, LinkKind};
use rxo_wire::{ETHERNET_HEADER_BYTES, ETHERTYPE_IPV4, ETHERTYPE_IPV6, arch, ethertype};

use super::apply::flow_key;
use super::batch::Batch;
use super::{Engine, packet_window};
use crate::expected::{Shape, V4, V6};
use crate::{Deliveries, FlushReason, Hold};

/// Headers are asked for this many frames ahead: enough to hide a miss, few enough for the processor's
/// queue of outstanding lines.
pub(super) const HEADER_FRAMES: u32 = 8;
/// Payloads, where they will be summed, are asked for this many frames ahead.
pub(super) const PAYLOAD_FRAMES: u32 = 2;
/// A header of 66 bytes (Ethernet, IPv4, TCP with timestamp) spans two lines wherever it starts.
const SECOND_LINE: usize = 64;
/// The longest TCP header that is plain.
pub(super) const MOST_TCP_BYTES: usize = 32;

impl<B: FrameBuffer> Engine<B> {
    /// Takes all frames out of `batch`, delivering in between when there is no room.
    pub(super) fn take(
        &mut self,
        batch: &mut Vec<Frame<B>>,
        now: Instant,
        sink: &mut impl FnMut(Deliveries<'_, B>),
    ) {
        self.now = now;
        self.counters.frames += batch.len() as u64;
        if batch.len() <= self.store.room() {
            let from = self.store.take_in(batch);
            self.take_from(from);
        } else {
            self.take_in_rounds(batch, now, sink);
        }
    }

    /// Takes a batch for which there is no room at once. Each frame is moved once, however many rounds
    /// there are.
    #[cold]
    fn take_in_rounds(
        &mut self,
        batch: &mut Vec<Frame<B>>,
        now: Instant,
        sink: &mut impl FnMut(Deliveries<'_, B>),
    ) {
        let mut frames = batch.drain(..);
        while frames.len() != 0 {
            if self.store.room() == 0 {
                self.make_room(now, sink);
            } else {
                let from = self.store.take_some_in(&mut frames);
                self.take_from(from);
            }
        }
    }

    /// Takes the frames of the store from the slot `from` on.
    #[inline(always)]
    fn take_from(&mut self, from: u32) {
        let frames = self.store.lend_frames();
        self.take_all(Batch::new(&frames), from);
        self.store.take_back(frames);
    }

    /// Every slot is in use: what is ready goes to the sink; if nothing is, the least recently
    /// used flow is flushed first.
    #[cold]
    fn make_room(&mut self, now: Instant, sink: &mut impl FnMut(Deliveries<'_, B>)) {
        if self.store.ready.is_empty()
            && let Some(oldest) = self.store.slots.links.oldest()
        {
            self.flush_held(oldest, FlushReason::Memory, now);
        }
        self.deliver(sink);
    }

    /// Takes the frames from the slot `from` on. Whoever takes a frame asks for the header of one
    /// further on.
    fn take_all(&mut self, batch: Batch<'_, B>, from: u32) {
        let sums = !self.config.trust_checksums;
        let soon = batch.upcoming(from).iter().take(HEADER_FRAMES as usize);
        soon.for_each(prefetch_header);
        let mut slot = from;
        while let Some(frame) = batch.get(slot) {
            batch.get(slot + HEADER_FRAMES).into_iter().for_each(prefetch_header);
            if sums && let Some(frame) = batch.get(slot + PAYLOAD_FRAMES) {
                prefetch_payload(frame);
            }
            let after = self.take_one(batch, slot, frame);
            self.packets_left = self.packets_left.wrapping_sub(after - slot);
            if self.packets_left == 0 {
                self.packets_left = packet_window(self.config.policy.hold);
                if matches!(self.config.policy.hold, Hold::EveryNPackets(_)) {
                    self.flush_all(after, FlushReason::PacketLimit, self.now);
                }
            }
            slot = after;
        }
    }

    /// Takes the frame in `slot` and those after it that continue it. Returns the slot after the
    /// last.
    #[inline(always)]
    fn take_one(&mut self, batch: Batch<'_, B>, slot: u32, frame: &Frame<B>) -> u32 {
        let taken = match self.config.link {
            LinkKind::Ethernet => match ethertype(frame.bytes()) {
                Some(ETHERTYPE_IPV4) => self.take_fast::<V4>(batch, slot, ETHERNET_HEADER_BYTES),
                Some(ETHERTYPE_IPV6) => self.take_fast::<V6>(batch, slot, ETHERNET_HEADER_BYTES),
                _ => None,
            },
            LinkKind::RawIp => self.take_fast_ip(batch, slot),
        };
        match taken {
            Some(after) => after,
            None => self.take_odd(batch, slot),
        }
    }

    #[inline(never)]
    fn take_fast_ip(&mut self, batch: Batch<'_, B>, slot: u32) -> Option<u32> {
        match batch.get(slot)?.bytes().first()? >> 4 {
            4 => self.take_fast::<V4>(batch, slot, 0),
            6 => self.take_fast::<V6>(batch, slot, 0),
            _ => None,
        }
    }

    /// Takes a frame whose IP header begins at `network` by the first tiers. `None` if only the rules can
    /// tell.
    #[inline(always)]
    fn take_fast<S: Shape>(
        &mut self,
        batch: Batch<'_, B>,
        slot: u32,
        network: usize,
    ) -> Option<u32> {
        let packet = batch.get(slot)?.bytes().get(network..)?;
        if packet.len() > S::IP_BYTES + MOST_TCP_BYTES {
            return self.take_data::<S>(batch, slot, network);
        }
        if self.ack_limit < 2 {
            return self.take_ack_alone::<S>(batch, slot, network);
        }
        match self.take_next_ack::<S>(batch, slot, network) {
            None => self.take_first_ack::<S>(batch, slot, network),
            after => after,
        }
    }

    /// Takes a frame that is longer than a pure ACK.
    ///
    /// Most frames continue what their flow holds. So before such a frame is read it is compared with
    /// what that would be: the hash of its flow says where to look.
    #[inline(always)]
    fn take_data<S: Shape>(
        &mut self,
        batch: Batch<'_, B>,
        slot: u32,
        network: usize,
    ) -> Option<u32> {
        let frame = batch.get(slot)?;
        let key = flow_key(S::key(frame.bytes().get(network..)?)?, frame);
        let flow = self.hasher.hash(&key);
        let Some(place) = self.table.guess(flow) else {
            return self.take_first::<S>(batch, slot, network, flow);
        };
        match self.take_next::<S>(batch, place, slot, network) {
            None => self.take_other::<S>(batch, slot, network, flow),
            after => after,
        }
    }
}

/// Asks for the header of a frame.
#[inline(always)]
pub(super) fn prefetch_header<B: AsRef<[u8]>>(frame: &Frame<B>) {
    arch::prefetch(frame.bytes(), 0);
    arch::prefetch(frame.bytes(), SECOND_LINE);
}

/// Asks for the payload of a frame whose checksum will have to be summed.
#[inline]
fn prefetch_payload<B: AsRef<[u8]>>(frame: &Frame<B>) {
    if !frame.checksum.is_trusted() {
        arch::prefetch_all(frame.bytes());
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use rxo_frame::Duration;
    use rxo_testkit::seg;

    use super::*;
    use crate::{Config, Policy};

    #[test]
    fn only_a_policy_that_counts_packets_flushes_because_of_their_number() {
        let holds = [
            (Hold::EveryNPackets(8), 1),
            (Hold::EndOfPoll, 0),
            (Hold::EveryNthPoll(2), 0),
            (Hold::Within(Duration::from_millis(1)), 0),
            (Hold::AUTO, 0),
        ];
        for (hold, delivered) in holds {
            let config = Config::new(Policy { hold, ..Policy::linux_gro() }, 1);
            let mut engine = Engine::new(config).expect("numbers in range");
            // Policies that do not count are here after 2^32 - 2 packets.
            engine.packets_left = 1;
            let mut batch = vec![Frame::new(seg().bytes(), Instant::ZERO)];
            let mut deliveries = 0;
            engine.push(&mut batch, Instant::ZERO, |made| deliveries += made.len());
            assert_eq!(deliveries, delivered, "{hold:?}");
            assert!(engine.packets_left > 1);
        }
    }
}
