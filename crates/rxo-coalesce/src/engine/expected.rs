//! The *Expected* tier: recognises the next segment of a held flow by one compare.
//!
//! The compare covers nearly every rule, and proves that the segment belongs to this flow. So nothing else of
//! the segment is read, no table is searched, and little is written. If the compare fails, the slower tiers
//! decide.

use rxo_frame::{Frame, FrameBuffer};
use rxo_wire::{FlowHash, IpVersion, SeqNumber};

use super::Engine;
use super::checksums::Verification;
use super::cursor::{ANYWHERE, Cursor, ETHERNET, RAW_IP, flow_key};
use super::prefetch::{prefetch_header_in, prefetch_payload_in};
use crate::expected::Expected;
use crate::held::Held;
use crate::refused::flow;
use crate::shape::{Shape, Start, V4, V6};
use crate::{FlushReason, Kind, Verdict};

/// The longest TCP header of a plain segment, in bytes: 20, and 12 for the timestamp.
const MOST_TCP_BYTES: usize = 32;

/// A run of frames that continue a flow.
struct Ran {
    /// The number of frames in the run, at least one.
    count: u32,
    /// The increment of the IPv4 ID from frame to frame: 0 or 1.
    id_step: u16,
}

impl<B: FrameBuffer> Engine<B> {
    /// Receives an expected or plain frame, and the frames after it that continue its flow. Returns the slot
    /// after the last received frame; `None` if only the slower tiers can decide.
    #[inline(always)]
    pub(super) fn take_expected<S: Shape>(&mut self, at: Cursor<'_, B>) -> Option<u32> {
        if at.packet()?.len() > S::IP_BYTES + MOST_TCP_BYTES {
            return if self.holds_data { self.take_data::<S>(at) } else { None };
        }
        if self.ack_limit < 2 {
            return self.take_ack_alone::<S>(at);
        }
        if let Some(after) = self.take_next_ack::<S>(at) {
            return Some(after);
        }
        self.start_acks::<S>(at)?;
        Some(at.slot() + 1)
    }

    /// Receives a frame that is longer than a pure ACK. The result is as in [`Engine::take_expected`].
    ///
    /// Most such frames continue their flow. So the flow's hash selects a held flow, and the frame is compared
    /// with the next expected segment of this flow before the frame is parsed.
    #[inline(always)]
    fn take_data<S: Shape>(&mut self, at: Cursor<'_, B>) -> Option<u32> {
        let frame = at.frame()?;
        let key = flow_key(S::key(at.packet()?)?, frame);
        let hash = self.hasher.hash(&key);
        let Some(flow) = self.table.guess(hash) else {
            let started = self.start::<S>(at, (key, hash), (Verdict::Start(None), None))?;
            return Some(self.run_if_next::<S>(at.next(), started));
        };
        match self.take_next::<S>(at, flow) {
            None => self.take_other::<S>(at, hash),
            after => after,
        }
    }

    /// Receives a segment with payload that is not the expected one of the guessed flow: it is out of sequence,
    /// or the guess was wrong. The result is as in [`Engine::take_expected`]. Cold and not inlined, so that the
    /// code for expected segments need not reserve registers for it.
    #[cold]
    #[inline(never)]
    fn take_other<S: Shape>(&mut self, at: Cursor<'_, B>, hash: FlowHash) -> Option<u32> {
        let key = flow_key(S::key(at.packet()?)?, at.frame()?);
        let found = self.table.find(&self.store.held, &key, hash);
        let verdict = match found {
            None => {
                self.thin_bucket(hash);
                Verdict::Start(None)
            }
            Some(flow) => {
                let held = &self.store.held[usize::from(flow)];
                if at.has_seq(at.network() + S::IP_BYTES, held.next_seq) {
                    let is_guess = found == self.table.guess(hash);
                    return if is_guess { None } else { self.take_next::<S>(at, flow) };
                }
                // Data is only appended to data, and for data the sequence number is the first rule.
                let reason = match held.kind() {
                    Kind::Data => FlushReason::OutOfSequence,
                    _ => FlushReason::Order,
                };
                Verdict::FlushThenStart(reason, None)
            }
        };
        let started = self.start::<S>(at, (key, hash), (verdict, found))?;
        Some(self.run_if_next::<S>(at.next(), started))
    }

    /// Appends the current frame to `flow` if it is the expected one, and then the frames behind it that
    /// continue the flow. Returns `None` if the current frame is not the expected one. The frame may be of any
    /// flow: the compare proves that it belongs to `flow`.
    #[inline(always)]
    fn take_next<S: Shape>(&mut self, at: Cursor<'_, B>, flow: u16) -> Option<u32> {
        let held = self.store.held.get(usize::from(flow))?;
        let id_step = self.next_step::<S>(at, held)?;
        match self.append_ran(flow, at.slot(), Ran { count: 1, id_step }) {
            None => Some(at.slot() + 1),
            Some(next_seq) => Some(self.run_if_next::<S>(at.next(), (flow, next_seq))),
        }
    }

    /// Returns the increment of the IPv4 ID if this frame is the next expected one of `held`; otherwise
    /// `None`.
    #[inline(always)]
    fn next_step<S: Shape>(&self, at: Cursor<'_, B>, held: &Held) -> Option<u16> {
        // Pure ACKs have no payload to be continued; [`Engine::take_next_ack`] handles them.
        if held.kind() == Kind::PureAck {
            return None;
        }
        let (last, next) = (at.moved_to(held.chain.tail).frame()?, at.frame()?);
        let mut room = S::Headers::ZEROS;
        let expected =
            Expected::<S>::after::<B, false>(held, last, next.bytes(), at.network(), &mut room)?;
        let is_next = expected.steps() != 0 && expected.matches::<B, false, false>(next);
        if !is_next || !held.has_room(&self.config.policy) {
            return None;
        }
        let is_intact =
            self.is_trusted(next) || Verification::of(held).holds(next, self.config.summer);
        is_intact.then_some(expected.id_step())
    }

    /// Appends to `flow`, which expects `next_seq`, the frame at `at` and the frames behind it, up to the first
    /// that does not continue the flow. Compares the sequence number first, because most frames that do not match
    /// differ in it. Returns the slot behind the last appended frame.
    #[inline(always)]
    pub(super) fn run_if_next<S: Shape>(
        &mut self,
        at: Cursor<'_, B>,
        (flow, next_seq): (u16, SeqNumber),
    ) -> u32 {
        match at.has_seq(at.network() + S::IP_BYTES, next_seq) {
            true => self.run::<S>(at, flow),
            false => at.slot(),
        }
    }

    /// Appends to `flow` the frames behind `at` that continue it. The frame at `at` is the last frame that
    /// `flow` holds. Returns the slot behind the last appended frame.
    fn run_behind<S: Shape>(&mut self, at: Cursor<'_, B>, flow: u16) -> u32 {
        let held = &self.store.held[usize::from(flow)];
        match at.next().has_seq(held.at.transport().into(), held.next_seq) {
            true => self.run::<S>(at.next(), flow),
            false => at.slot() + 1,
        }
    }

    /// Appends to `flow` the frames behind `at` that continue it. The caller has already added the frame at
    /// `at`, which may be of any kind, to `flow`. Returns the slot behind the last appended frame.
    pub(super) fn append_following(&mut self, at: Cursor<'_, B>, flow: u16) -> u32 {
        let held = &self.store.held[usize::from(flow)];
        let (version, kind, starts) = (held.version, held.kind(), held.at);
        let at = at.with_network(starts.network().into());
        match (version, kind) {
            (IpVersion::V4, Kind::Datagrams) => self.run_of_datagrams::<V4>(at.next(), flow),
            (IpVersion::V6, Kind::Datagrams) => self.run_of_datagrams::<V6>(at.next(), flow),
            (IpVersion::V4, _) if starts.is_in_tunnel() => self.run_inside::<V4>(at.next(), flow),
            (IpVersion::V6, _) if starts.is_in_tunnel() => self.run_inside::<V6>(at.next(), flow),
            (IpVersion::V4, _) => self.run_behind::<V4>(at, flow),
            (IpVersion::V6, _) => self.run_behind::<V6>(at, flow),
        }
    }

    /// Appends to `flow` the frame at `at` and the frames behind it, up to the first that does not continue the
    /// flow. Returns the slot behind the last appended frame. The usual offsets of the IP header are
    /// compile-time constants, so that the loop neither stores nor adds them.
    #[inline(always)]
    fn run<S: Shape>(&mut self, at: Cursor<'_, B>, flow: u16) -> u32 {
        match usize::from(self.store.held[usize::from(flow)].at.network()) {
            ETHERNET => self.run_at::<S, ETHERNET>(at, flow),
            RAW_IP => self.run_at::<S, RAW_IP>(at, flow),
            network => self.run_at::<S, ANYWHERE>(at.with_network(network), flow),
        }
    }

    #[inline(never)]
    fn run_at<S: Shape, const NETWORK: usize>(&mut self, at: Cursor<'_, B>, flow: u16) -> u32 {
        let at = if NETWORK == ANYWHERE { at } else { at.with_network(NETWORK) };
        let Some(ran) = self.run_over::<S, false>(at, flow) else { return at.slot() };
        let after = at.slot() + ran.count;
        self.append_ran(flow, at.slot(), ran);
        after
    }

    /// Appends the segment at `at`, which may be shorter than [`Shape::Headers`], and the frames after it that
    /// continue its flow. Returns `None` if the segment is not the next expected one of its flow. Separate from
    /// [`Engine::take_next`] because such headers must be copied before they are compared.
    #[inline(always)]
    pub(super) fn take_short<S: Shape>(&mut self, at: Cursor<'_, B>) -> Option<u32> {
        let packet = at.packet()?;
        if packet.len() > S::IP_BYTES + MOST_TCP_BYTES {
            return None;
        }
        let key = flow_key(flow::<S>(packet), at.frame()?);
        let flow = self.table.guess(self.hasher.hash(&key))?;
        if self.store.held.get(usize::from(flow))?.kind() == Kind::PureAck {
            return None;
        }
        let ran = self.run_over::<S, true>(at, flow)?;
        let after = at.slot() + ran.count;
        self.append_ran(flow, at.slot(), ran);
        Some(after)
    }

    /// Appends the frames of `ran`, which begin at `slot`, to `flow`. Returns the sequence number that
    /// comes next, or `None` if the flow reached the policy's limit and was flushed.
    #[inline(always)]
    fn append_ran(&mut self, flow: u16, slot: u32, ran: Ran) -> Option<SeqNumber> {
        let held = &mut self.store.held[usize::from(flow)];
        held.append_run(ran.count, ran.id_step);
        let next_seq = held.next_seq;
        let is_full = held.segments >= u32::from(self.config.policy.max_segments);
        let close = is_full.then_some(FlushReason::SegmentLimit);
        self.append(flow, slot, ran.count, close).map(|_| next_seq)
    }

    /// Compares the frames from `at` on with the next expected ones of `flow`, and verifies their
    /// checksums. Returns the run of frames that continue the flow; `None` if the frame at `at` does not.
    /// `SHORT` is explained at [`headers_in`](crate::expected::headers_in).
    #[inline(always)]
    fn run_over<S: Shape, const SHORT: bool>(&self, at: Cursor<'_, B>, flow: u16) -> Option<Ran> {
        let held = &self.store.held[usize::from(flow)];
        let (last, frames) = (at.held(held.chain.tail), at.upcoming());
        let mut room = S::Headers::ZEROS;
        let next = frames.first()?.bytes();
        let expected = Expected::<S>::after::<B, SHORT>(held, last, next, at.network(), &mut room)?;
        let id_step = expected.id_step();
        // One less, because the frame before may be received but not yet counted.
        let most = (self.packets_left - 1).min(expected.steps()).min(frames.len() as u32);
        let most = held.room(&self.config.policy, most);
        let frames = frames.get(..most as usize).unwrap_or(frames);
        let count = if self.is_trusted(last) {
            if !SHORT && expected.is_bare() {
                count_run::<S, B, SHORT, true>(expected, frames, |_, _| true)
            } else {
                count_run::<S, B, SHORT, false>(expected, frames, |_, _| true)
            }
        } else {
            let (verification, summer) = (Verification::of(held), self.config.summer);
            count_run::<S, B, SHORT, false>(expected, frames, |frame, rest| {
                prefetch_payload_in(rest);
                verification.holds(frame, summer)
            })
        };
        (count != 0).then_some(Ran { count, id_step })
    }
}

/// Counts the leading `frames` that continue a run, and prefetches headers ahead of them. `is_verified` verifies
/// a frame's checksum; its second argument is the frames after that frame. `SHORT` and `BARE` are explained at
/// [`Expected::matches`].
#[inline(always)]
fn count_run<S: Shape, B: AsRef<[u8]>, const SHORT: bool, const BARE: bool>(
    mut expected: Expected<'_, S>,
    mut frames: &[Frame<B>],
    is_verified: impl Fn(&Frame<B>, &[Frame<B>]) -> bool,
) -> u32 {
    let all = frames.len();
    while let [frame, rest @ ..] = frames
        && expected.matches::<B, SHORT, BARE>(frame)
        && is_verified(frame, rest)
    {
        prefetch_header_in(rest);
        expected.advance();
        frames = rest;
    }
    (all - frames.len()) as u32
}
