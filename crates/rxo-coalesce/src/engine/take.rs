//! Receives a batch, and tries the tiers in order for each frame.
//!
//! Each tier is slower than the preceding tier, and handles only frames on which no faster tier could decide. A
//! tier never calls a faster tier. If a slower tier holds a frame, it returns the index of the held flow, and the
//! first tier then tries the frames after it.
//!
//! 1. *Expected* ([`super::expected`], [`super::expected_acks`], [`super::in_turn`]): one compare with the
//!    next expected segment of a flow. The first segment of a run is read from fixed offsets by *Plain*
//!    ([`super::plain`]).
//! 2. *Ordinary* ([`super::ordinary`]): reads an ordinary segment or a refused packet from fixed offsets, and
//!    judges it by the rules. [`super::datagrams`] has both tiers for UDP.
//! 3. *Rules* ([`super::rules`], [`super::tunnels`]): parses all headers and applies all rules.
//!
//! One module applies the verdicts of all tiers ([`super::apply`]). The first two tiers exist once per IP
//! version, selected before anything else is read, so that neither version pays for the other.

use alloc::vec::Vec;

use rxo_frame::{Frame, FrameBuffer, Instant, LinkKind};
use rxo_wire::{ETHERNET_HEADER_BYTES, ETHERTYPE_IPV4, ETHERTYPE_IPV6, arch, ethertype};

use super::Engine;
use super::apply::Taken;
use super::cursor::Cursor;
use super::limits::packet_window;
use super::prefetch::{HEADER_FRAMES, PAYLOAD_FRAMES, prefetch_header};
use crate::shape::{Shape, V4, V6, by_ip_version};
use crate::{Deliveries, FlushReason, Hold};

impl<B: FrameBuffer> Engine<B> {
    /// Receives all frames of `batch`. If there are not enough free slots for the batch, delivers frames after
    /// each part of it.
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

    /// Receives, in several parts, a batch that needs more slots than are free. Moves each frame only once.
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

    /// Processes the frames of the store, starting at the slot `from`.
    #[inline(always)]
    fn take_from(&mut self, from: u32) {
        let frames = self.store.take_frames();
        self.take_all(&frames, from);
        self.store.take_back(frames);
    }

    /// Frees slots when all are in use: passes the queued deliveries to the sink. If none are queued, first
    /// flushes the least recently used flow.
    #[cold]
    fn make_room(&mut self, now: Instant, sink: &mut impl FnMut(Deliveries<'_, B>)) {
        if self.store.ready.is_empty()
            && let Some(oldest) = self.store.slots.links.oldest()
        {
            self.flush_held(oldest, FlushReason::Memory, now);
        }
        self.deliver(sink);
    }

    /// Processes the frames, starting at the slot `from`. Each step also prefetches the header of a later
    /// frame.
    fn take_all(&mut self, frames: &Vec<Frame<B>>, from: u32) {
        let sums = !self.config.trust_checksums;
        let soon = frames.iter().skip(from as usize).take(HEADER_FRAMES as usize);
        soon.for_each(prefetch_header);
        let mut slot = from;
        while let Some(frame) = frames.get(slot as usize) {
            let at = Cursor::new(frames, slot);
            at.ahead(HEADER_FRAMES).into_iter().for_each(prefetch_header);
            if sums && let Some(frame) = at.ahead(PAYLOAD_FRAMES) {
                prefetch_payload(frame);
            }
            let after = self.take_one(at, frame);
            // Under policies that do not count packets, the counter starts at `u32::MAX` and 0 only reloads
            // it.
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

    /// Processes the frame at `at` by the first tier that accepts it, and the frames after it that continue
    /// its flow. Returns the slot after the last processed frame.
    #[inline(always)]
    fn take_one(&mut self, at: Cursor<'_, B>, frame: &Frame<B>) -> u32 {
        let taken = match self.config.link {
            LinkKind::Ethernet => match ethertype(frame.bytes()) {
                Some(ETHERTYPE_IPV4) => {
                    self.take_expected::<V4>(at.with_network(ETHERNET_HEADER_BYTES))
                }
                Some(ETHERTYPE_IPV6) => {
                    self.take_expected::<V6>(at.with_network(ETHERNET_HEADER_BYTES))
                }
                _ => None,
            },
            LinkKind::RawIp => self.take_expected_ip(at),
        };
        match taken {
            Some(after) => after,
            // Most frames come here under such a policy, and the other tiers would leave them to the rules.
            None if !self.holds_data => self.take_ruled(at),
            None => self.take_unexpected(at),
        }
    }

    /// Tries the first tier for raw IP. The result is that of [`Engine::take_expected`]. Not inlined, so that
    /// the loop over Ethernet frames contains only its own code.
    #[inline(never)]
    fn take_expected_ip(&mut self, at: Cursor<'_, B>) -> Option<u32> {
        match at.frame()?.bytes().first()? >> 4 {
            4 => self.take_expected::<V4>(at),
            6 => self.take_expected::<V6>(at),
            _ => None,
        }
    }

    /// Processes a frame by the tiers after the first. Cold and not inlined, so that the loop over expected
    /// frames reserves no registers for it.
    #[cold]
    #[inline(never)]
    fn take_unexpected(&mut self, at: Cursor<'_, B>) -> u32 {
        let bytes = at.held(at.slot()).bytes();
        let taken = by_ip_version!((self.config.link, bytes), S, network => {
            self.take_by_offsets::<S>(at.with_network(network))
        });
        taken.unwrap_or_else(|| self.take_ruled(at))
    }

    /// Processes a frame by the full rules, and the frames behind it that continue its flow. Returns the slot
    /// after the last processed frame. Cold and not inlined, like [`Engine::take_unexpected`].
    #[cold]
    #[inline(never)]
    fn take_ruled(&mut self, at: Cursor<'_, B>) -> u32 {
        match self.take_by_rules(at) {
            Taken::Held(flow) => self.append_following(at, flow),
            Taken::Left => at.slot() + 1,
        }
    }

    /// Processes a frame of one IP version by the tiers with fixed offsets. `None` if only the full rules can
    /// decide.
    #[inline(always)]
    fn take_by_offsets<S: Shape>(&mut self, at: Cursor<'_, B>) -> Option<u32> {
        if self.takes_datagrams
            && let Some(after) = self.take_datagram::<S>(at)
        {
            return Some(after);
        }
        if let Some(after) = self.take_short::<S>(at) {
            return Some(after);
        }
        Some(match self.take_ordinary::<S>(at)? {
            Taken::Held(flow) => {
                let next_seq = self.store.held[usize::from(flow)].next_seq;
                self.run_if_next::<S>(at.next(), (flow, next_seq))
            }
            Taken::Left => at.slot() + 1,
        })
    }
}

/// Prefetches a frame whose checksum will have to be summed.
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
            // Policies that do not count packets reach this value after 2^32 - 2 packets.
            engine.packets_left = 1;
            let mut batch = vec![Frame::new(seg().bytes(), Instant::ZERO)];
            let mut deliveries = 0;
            engine.push(&mut batch, Instant::ZERO, |made| deliveries += made.len());
            assert_eq!(deliveries, delivered, "{hold:?}");
            assert!(engine.packets_left > 1);
        }
    }
}
