//! The *Expected* tier: the next segment of what is held, told by one compare.
//!
//! The compare covers nearly every rule, and that the segment is of this flow. So nothing else of it is
//! read, nothing need be looked up, and little is written. Where it fails the tiers after it decide why.

use rxo_frame::{Frame, FrameBuffer};
use rxo_wire::{FlowHash, IpVersion, SeqNumber};

use super::Engine;
use super::checksums::Verification;
use super::cursor::{ANYWHERE, Cursor, ETHERNET, RAW_IP, flow_key};
use super::prefetch::{prefetch_header_in, prefetch_payload_in};
use crate::expected::Expected;
use crate::held::Held;
use crate::refused::flow;
use crate::shape::{Shape, V4, V6};
use crate::{FlushReason, Kind, Verdict};

/// The longest TCP header that is plain.
const MOST_TCP_BYTES: usize = 32;

/// The length of a run.
struct Ran {
    /// How many frames were appended, at least one.
    count: u32,
    id_step: u16,
}

impl<B: FrameBuffer> Engine<B> {
    /// Takes a frame that is expected, or plain, and those behind it that continue it. Returns the slot after the last;
    /// `None` if only the tiers after this can tell.
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

    /// Takes a frame that is longer than a pure ACK.
    ///
    /// Most frames continue what their flow holds. So before such a frame is read it is compared with
    /// what that would be: the hash of its flow says where to look.
    #[inline(always)]
    fn take_data<S: Shape>(&mut self, at: Cursor<'_, B>) -> Option<u32> {
        let frame = at.frame()?;
        let key = flow_key(S::key(at.packet()?)?, frame);
        let flow = self.hasher.hash(&key);
        let Some(place) = self.table.guess(flow) else {
            let started = self.start::<S>(at, (key, flow), (Verdict::Start(None), None))?;
            return Some(self.run_if_next::<S>(at.next(), started));
        };
        match self.take_next::<S>(at, place) {
            None => self.take_other::<S>(at, flow),
            after => after,
        }
    }

    /// Takes a segment with payload that does not continue what was guessed by its hash: it may be out of
    /// sequence, or the guess was wrong. A call, so that the others spare no registers for it, and cold, so
    /// that they stand together.
    #[cold]
    #[inline(never)]
    fn take_other<S: Shape>(&mut self, at: Cursor<'_, B>, flow: FlowHash) -> Option<u32> {
        let key = flow_key(S::key(at.packet()?)?, at.frame()?);
        let found = self.table.find(&self.store.held, &key, flow);
        let verdict = match found {
            None => {
                self.thin_bucket(flow);
                Verdict::Start(None)
            }
            Some(place) => {
                let held = &self.store.held[usize::from(place)];
                if at.has_seq(at.network() + S::IP_BYTES, held.next_seq) {
                    let is_guess = found == self.table.guess(flow);
                    return if is_guess { None } else { self.take_next::<S>(at, place) };
                }
                // Data joins nothing but data, and of the rules between data this is the first.
                let reason = match held.kind() {
                    Kind::Data => FlushReason::OutOfSequence,
                    _ => FlushReason::Order,
                };
                Verdict::FlushThenStart(reason, None)
            }
        };
        let started = self.start::<S>(at, (key, flow), (verdict, found))?;
        Some(self.run_if_next::<S>(at.next(), started))
    }

    /// Appends the frame to what is held at `place`, if it is what continues that, and those behind it. `None` when it
    /// is not. Nothing need be known of the frame: what is held may be of another flow.
    #[inline(always)]
    fn take_next<S: Shape>(&mut self, at: Cursor<'_, B>, place: u16) -> Option<u32> {
        let held = self.store.held.get(usize::from(place))?;
        let id_step = self.next_step::<S>(at, held)?;
        match self.append_ran(place, at.slot(), Ran { count: 1, id_step }) {
            None => Some(at.slot() + 1),
            Some(next_seq) => Some(self.run_if_next::<S>(at.next(), (place, next_seq))),
        }
    }

    /// How much the IPv4 ID counts to this frame, if that continues `held`.
    #[inline(always)]
    fn next_step<S: Shape>(&self, at: Cursor<'_, B>, held: &Held) -> Option<u16> {
        // Datagrams have no header that could be expected here.
        if held.kind() == Kind::PureAck {
            return None;
        }
        let (last, next) = (at.moved_to(held.chain.tail).frame()?, at.frame()?);
        let mut room = S::ZEROS;
        let expected =
            Expected::<S>::after::<B, false>(held, last, next.bytes(), at.network(), &mut room)?;
        let is_next = expected.steps() != 0 && expected.is_met_by::<B, false, false>(next);
        if !is_next || !self.config.policy.has_room(held) {
            return None;
        }
        let is_intact =
            self.is_trusted(next) || Verification::of(held).holds(next, self.config.summer);
        is_intact.then_some(expected.id_step())
    }

    /// Appends the frames from this one on that continue what is held at `place`, which expects `next_seq`: that shows
    /// of most frames that they do not, before anything else is read. Returns the slot after the last.
    #[inline(always)]
    fn run_if_next<S: Shape>(
        &mut self,
        at: Cursor<'_, B>,
        (place, next_seq): (u16, SeqNumber),
    ) -> u32 {
        match at.has_seq(at.network() + S::IP_BYTES, next_seq) {
            true => self.run::<S>(at, place),
            false => at.slot(),
        }
    }

    /// Appends the frames behind this one, which is the last held at `place`, that continue it. Returns the slot after
    /// the last.
    pub(super) fn run_behind<S: Shape>(&mut self, at: Cursor<'_, B>, place: u16) -> u32 {
        let held = &self.store.held[usize::from(place)];
        match at.next().has_seq(held.at.transport().into(), held.next_seq) {
            true => self.run::<S>(at.next(), place),
            false => at.slot() + 1,
        }
    }

    /// Goes on behind this frame, which the rules have held at `place`, whatever it is. Returns the slot after the last
    /// frame that continues it.
    pub(super) fn go_on(&mut self, at: Cursor<'_, B>, place: u16) -> u32 {
        let held = &self.store.held[usize::from(place)];
        let (version, kind, starts) = (held.version, held.kind(), held.at);
        let at = at.with_network(starts.network().into());
        match (version, kind) {
            (IpVersion::V4, Kind::Datagrams) => self.run_of_datagrams::<V4>(at.next(), place),
            (IpVersion::V6, Kind::Datagrams) => self.run_of_datagrams::<V6>(at.next(), place),
            (IpVersion::V4, _) if starts.is_in_tunnel() => self.run_inside::<V4>(at.next(), place),
            (IpVersion::V6, _) if starts.is_in_tunnel() => self.run_inside::<V6>(at.next(), place),
            (IpVersion::V4, _) => self.run_behind::<V4>(at, place),
            (IpVersion::V6, _) => self.run_behind::<V6>(at, place),
        }
    }

    /// Appends the frames from this one on that continue what is held at `place`. Where the IP header most often begins
    /// is known when this is compiled: then nothing has to be kept or added for it.
    #[inline(always)]
    fn run<S: Shape>(&mut self, at: Cursor<'_, B>, place: u16) -> u32 {
        match usize::from(self.store.held[usize::from(place)].at.network()) {
            ETHERNET => self.run_at::<S, ETHERNET>(at, place),
            RAW_IP => self.run_at::<S, RAW_IP>(at, place),
            network => self.run_at::<S, ANYWHERE>(at.with_network(network), place),
        }
    }

    #[inline(never)]
    fn run_at<S: Shape, const NETWORK: usize>(&mut self, at: Cursor<'_, B>, place: u16) -> u32 {
        let at = if NETWORK == ANYWHERE { at } else { at.with_network(NETWORK) };
        let Some(ran) = self.run_over::<S, false>(at, place) else { return at.slot() };
        let after = at.slot() + ran.count;
        self.append_ran(place, at.slot(), ran);
        after
    }

    /// Appends this segment and those behind it, if its packet may end before [`Shape::Headers`] and its flow holds what
    /// it continues. `None` if not. Separate from [`Engine::take_next`], because headers that may be cut short are
    /// copied before they are compared.
    #[inline(always)]
    pub(super) fn take_short<S: Shape>(&mut self, at: Cursor<'_, B>) -> Option<u32> {
        let packet = at.packet()?;
        if packet.len() > S::IP_BYTES + MOST_TCP_BYTES {
            return None;
        }
        let key = flow_key(flow::<S>(packet), at.frame()?);
        let place = self.table.guess(self.hasher.hash(&key))?;
        if self.store.held.get(usize::from(place))?.kind() == Kind::PureAck {
            return None;
        }
        let ran = self.run_over::<S, true>(at, place)?;
        let after = at.slot() + ran.count;
        self.append_ran(place, at.slot(), ran);
        Some(after)
    }

    /// Appends the frames from `slot` on that continue what is held at `place`. Returns the sequence number
    /// that continues these; `None` when they are as many as the policy allows, and flushed.
    #[inline(always)]
    fn append_ran(&mut self, place: u16, slot: u32, ran: Ran) -> Option<SeqNumber> {
        let held = &mut self.store.held[usize::from(place)];
        held.append_run(ran.count, ran.id_step);
        let next_seq = held.next_seq;
        let is_full = held.segments >= u32::from(self.config.policy.max_segments);
        let close = is_full.then_some(FlushReason::SegmentLimit);
        self.append(place, slot, ran.count, close).map(|_| next_seq)
    }

    /// Compares and verifies one frame after the other; `SHORT` is that of [`Expected::after`].
    #[inline(always)]
    fn run_over<S: Shape, const SHORT: bool>(&self, at: Cursor<'_, B>, place: u16) -> Option<Ran> {
        let held = &self.store.held[usize::from(place)];
        let (last, frames) = (at.held(held.chain.tail), at.upcoming());
        let mut room = S::ZEROS;
        let next = frames.first()?.bytes();
        let expected = Expected::<S>::after::<B, SHORT>(held, last, next, at.network(), &mut room)?;
        let id_step = expected.id_step();
        // The frame before may be taken but not yet counted.
        let most = (self.packets_left - 1).min(expected.steps()).min(frames.len() as u32);
        let most = self.config.policy.room(held, most);
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

/// How many of `frames` continue a run; headers further on are asked for meanwhile. `is_verified` sees a
/// frame and those after it. `SHORT` and `BARE` are those of [`Expected::is_met_by`].
#[inline(always)]
fn count_run<S: Shape, B: AsRef<[u8]>, const SHORT: bool, const BARE: bool>(
    mut expected: Expected<'_, S>,
    mut frames: &[Frame<B>],
    is_verified: impl Fn(&Frame<B>, &[Frame<B>]) -> bool,
) -> u32 {
    let all = frames.len();
    while let [frame, rest @ ..] = frames
        && expected.is_met_by::<B, SHORT, BARE>(frame)
        && is_verified(frame, rest)
    {
        prefetch_header_in(rest);
        expected.advance();
        frames = rest;
    }
    (all - frames.len()) as u32
}
