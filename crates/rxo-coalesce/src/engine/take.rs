//! Taking a batch, and the list of the tiers that take its frames.
//!
//! Each tier is slower than the one before it and takes what that left. A tier calls only slower ones, and none of them
//! calls back: a slower tier says where it held a frame, and the first tier goes on behind it.
//!
//! 1. *Expected* ([`super::expected`], [`super::expected_acks`], [`super::in_turn`]): one compare with what a flow would
//!    send next. The first segment of a run comes from *Plain* ([`super::plain`]), read from fixed offsets.
//! 2. *Ordinary* ([`super::ordinary`]): an ordinary segment, or a refused packet, from fixed offsets, by the rules. UDP
//!    has both tiers in [`super::datagrams`].
//! 3. *Rules* ([`super::rules`], [`super::tunnels`]): all headers and all rules.
//!
//! Their verdicts are acted on in one place ([`super::apply`]). The first two exist once for each version of IP, chosen
//! before anything else is read: neither version pays for the other.

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
        self.take_all(&frames, from);
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

    /// Takes the frames from the slot `from` on. Whoever takes a frame asks for the header of one further on.
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

    /// Takes a frame by the first tier, or by those after it, and the frames behind it that continue it. Returns the
    /// slot after the last.
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
            None => self.take_unexpected(at),
        }
    }

    /// Does the same for raw IP. A call, so that the loop over Ethernet frames holds its own code only.
    #[inline(never)]
    fn take_expected_ip(&mut self, at: Cursor<'_, B>) -> Option<u32> {
        match at.frame()?.bytes().first()? >> 4 {
            4 => self.take_expected::<V4>(at),
            6 => self.take_expected::<V6>(at),
            _ => None,
        }
    }

    /// Takes a frame by the tiers after the first. A cold call, so that the loop over expected frames spares no
    /// registers for it.
    #[cold]
    #[inline(never)]
    fn take_unexpected(&mut self, at: Cursor<'_, B>) -> u32 {
        let bytes = at.held(at.slot()).bytes();
        let taken = by_ip_version!((self.config.link, bytes), S, network => {
            if self.holds_data { self.take_by_offsets::<S>(at.with_network(network)) } else { None }
        });
        taken.unwrap_or_else(|| match self.take_by_rules(at) {
            Taken::Held(place) => self.go_on(at, place),
            Taken::Left => at.slot() + 1,
        })
    }

    /// Takes a frame of one version of IP from fixed offsets. `None` if only the rules can tell.
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
            Taken::Held(place) => self.run_behind::<S>(at, place),
            Taken::Left => at.slot() + 1,
        })
    }
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
