//! UDP datagrams, by the same tiers as segments: expected, fixed offsets, all rules.
//!
//! Separate from the tiers for TCP, so that the TCP tiers contain no code for UDP. This tier receives the
//! datagrams that the first TCP tier did not accept. It then appends, in one loop, the datagrams that continue
//! the flow of the first.

use rxo_frame::FrameBuffer;
use rxo_wire::udp::CHECKSUM_AT;
use rxo_wire::{FlowKey, PROTOCOL_UDP, checksum};

use super::Engine;
use super::checksums::{Verification, is_described_oddly};
use super::cursor::{Cursor, flow_key};
use super::prefetch::{prefetch_header_in, prefetch_payload_in};
use crate::datagrams::{ExpectedDatagram, plain_datagram, with_datagram};
use crate::held::Segment;
use crate::shape::Shape;
use crate::verdict::regular_step;
use crate::{Candidate, FlushReason, Kind, Verdict, verdict};

impl<B: FrameBuffer> Engine<B> {
    /// Receives an ordinary datagram and the datagrams after it that continue its run. Returns the slot after
    /// the last; `None` if the datagram is not ordinary, in which case the full rules decide.
    #[inline(never)]
    pub(super) fn take_datagram<S: Shape>(&mut self, at: Cursor<'_, B>) -> Option<u32> {
        let frame = at.frame()?;
        let key = flow_key(S::datagram_key(at.packet()?)?, frame);
        let hash = self.hasher.hash(&key);
        // Most datagrams continue their flow's run. The compare shows whether the guess was right.
        if let Some(flow) = self.table.guess(hash)
            && let count @ 1.. = self.run_of_datagrams::<S>(at, flow) - at.slot()
        {
            return Some(at.slot() + count);
        }
        let (candidate, udp) = plain_datagram::<S, B>(frame, at.network())?;
        let policy = &self.config.policy;
        let transport = candidate.at.transport as usize;
        let is_refused = is_described_oddly(frame, transport, CHECKSUM_AT)
            || with_datagram(key.destination_port(), &udp, candidate.at, policy).is_err();
        if is_refused || !(self.is_trusted(frame) || self.is_datagram_right(&key, &candidate)) {
            return None;
        }
        let found = self.find_alike(&key, hash, Kind::Datagrams);
        let last = match found {
            Some(flow) => Some(self.last_datagram::<S>(at, flow)?),
            None => None,
        };
        let segment = Segment::of(&candidate, (key, hash), frame, at.slot());
        let flow = self.apply_datagram((&candidate, segment), found, last.as_ref());
        let run = |flow| self.run_of_datagrams::<S>(at.next(), flow);
        Some(flow.map_or(at.slot() + 1, run))
    }

    /// Returns `true` if the checksum of a datagram of the flow `key` is right. Reads its payload.
    fn is_datagram_right(&self, key: &FlowKey, candidate: &Candidate<'_>) -> bool {
        let bytes = candidate.bytes.get(candidate.at.segment()).unwrap_or_default();
        let pseudo_header = checksum::pseudo_header(key, PROTOCOL_UDP, bytes.len() as u32);
        (self.config.summer.sum(bytes) + pseudo_header).is_valid()
    }

    /// Returns the last datagram that `flow` holds; `None` if its headers are not at the offsets of an
    /// ordinary one.
    #[inline(always)]
    fn last_datagram<'a, S: Shape>(&self, at: Cursor<'a, B>, flow: u16) -> Option<Candidate<'a>> {
        let held = &self.store.held[usize::from(flow)];
        let is_plain = usize::from(held.at.network()) == at.network();
        let frame = at.held(held.chain.tail);
        if is_plain { Some(plain_datagram::<S, B>(frame, at.network())?.0) } else { None }
    }

    /// Decides on a datagram, counts it and applies the verdict. `found` is the index of the datagram's flow, and
    /// `last` the last datagram that the flow holds. Returns the index at which the datagram is held, or `None`
    /// if it was delivered.
    pub(super) fn apply_datagram(
        &mut self,
        (candidate, mut segment): (&Candidate<'_>, Segment),
        found: Option<u16>,
        last: Option<&Candidate<'_>>,
    ) -> Option<u16> {
        segment.id_step = last.map_or(0, |last| regular_step(last, candidate));
        let held = found.map(|flow| &self.store.held[usize::from(flow)]);
        let verdict = verdict(held.zip(last), candidate, &self.config.policy);
        self.counters.datagrams += 1;
        if !matches!(verdict, Verdict::Append(_)) {
            self.counters.datagram_deliveries += 1;
        }
        self.apply(verdict, found, &segment)
    }

    /// Appends to `flow` the datagram at `at` and the datagrams behind it, up to the first that is not expected
    /// next. Returns the slot behind the last appended datagram; this is the slot of `at` if no datagram was
    /// appended.
    #[inline(never)]
    pub(super) fn run_of_datagrams<S: Shape>(&mut self, at: Cursor<'_, B>, flow: u16) -> u32 {
        let Some((count, id_step)) = self.count_datagrams::<S>(at, flow) else {
            return at.slot();
        };
        self.counters.datagrams += u64::from(count);
        let held = &mut self.store.held[usize::from(flow)];
        held.append_run(count, id_step);
        let is_full = held.segments >= self.config.policy.most_datagrams();
        let close = is_full.then_some(FlushReason::SegmentLimit);
        self.append(flow, at.slot(), count, close);
        at.slot() + count
    }

    /// Returns the number of frames, starting at `at`, that continue the datagrams that `flow` holds, and the
    /// increment of their IPv4 IDs. `None` if the frame at `at` does not.
    #[inline]
    fn count_datagrams<S: Shape>(&self, at: Cursor<'_, B>, flow: u16) -> Option<(u32, u16)> {
        let held = self.store.held.get(usize::from(flow))?;
        let (last, frames) = (at.held(held.chain.tail), at.upcoming());
        let next = frames.first()?.bytes();
        let mut expected = ExpectedDatagram::<S>::after::<B>(held, last, next, at.network())?;
        let policy = &self.config.policy;
        // One less, because the datagram before may be received but not yet counted.
        let most = (self.packets_left - 1).min(expected.steps).min(frames.len() as u32);
        let most = held.room(policy, most.min(policy.most_datagrams() - held.segments));
        let verification = (!self.is_trusted(last)).then(|| Verification::of_datagrams(held));
        let mut rest = frames.get(..most as usize).unwrap_or(frames);
        let all = rest.len();
        while let [frame, after @ ..] = rest
            && expected.matches(frame)
            && verification.is_none_or(|sum| {
                prefetch_payload_in(after);
                sum.holds(frame, self.config.summer)
            })
        {
            prefetch_header_in(after);
            expected.advance();
            rest = after;
        }
        let count = (all - rest.len()) as u32;
        (count != 0).then_some((count, expected.step))
    }
}
