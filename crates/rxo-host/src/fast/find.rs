//! Finds the connection of a pure ACK, and decides if the connection can receive the ACK on the fast path:
//! checks 6 to 8 of `docs/fast-path.md`.
//!
//! The module is separate from parsing and from the worker: it uses only indices of cells and the [`AckState`]
//! of each cell.

use rxo_device::Verdict;
use rxo_frame::{Frame, Instant};
use rxo_wire::tcp::AckRecord;
use rxo_wire::{FlowKey, SeqNumber};

use super::gather::{AckAndWindow, ack_and_window};
use super::order::SlotState;
use super::parse::{V4_BYTES, V6_BYTES};
use super::{FallbackReason, Fast, FastModules};
use crate::cell::AckTerms;

/// The worker's record of a connection for the fast path. The record is updated whenever the connection is
/// served.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct AckState {
    /// `true` if packets of this flow pass the gate, which checks that their addresses are this host's.
    is_admitted: bool,
    pub(crate) terms: AckTerms,
    /// The ACK number and window of the last consumed ACK.
    last: (SeqNumber, u16),
}

impl AckState {
    /// Creates the record of a new connection. `is_admitted` is `true` if packets of its flow pass the gate,
    /// which checks addresses.
    pub(crate) fn new(is_admitted: bool) -> Self {
        Self { is_admitted, ..Self::default() }
    }

    /// Returns `true` if the connection is synchronized and packets of its flow pass the gate, which checks
    /// addresses.
    #[inline]
    const fn takes_acks(&self) -> bool {
        self.terms.is_synchronized && self.is_admitted
    }

    /// Stores the ACK number and window of the last consumed ACK; an ACK that repeats both is a duplicate.
    #[inline]
    pub(crate) fn remember(&mut self, ack: (SeqNumber, u16)) {
        self.last = ack;
    }
}

/// The worker's tables, as the fast path queries them.
pub(crate) trait Lookup {
    /// Returns the index of the connection of the flow `key`; `None` if there is no connection.
    fn find(&mut self, key: &FlowKey) -> Option<u32>;

    /// Returns the connection at index `place`; `None` if that slot is empty or belongs to another flow.
    fn at(&self, place: u32, key: &FlowKey) -> Option<ConnectionSnapshot>;

    /// Returns the fast path's state of the connection at index `place`; `None` if that slot is empty.
    fn state(&mut self, place: u32) -> Option<&mut AckState>;

    /// Returns `true` if the engine holds an aggregate of the flow `key`.
    fn is_held(&self, key: &FlowKey) -> bool;
}

/// A snapshot of a connection, taken before its first ACK of a batch is gathered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ConnectionSnapshot {
    pub(crate) place: u32,
    pub(crate) state: AckState,
    /// `true` if segments wait in the connection's backlog.
    pub(crate) has_backlog: bool,
}

impl Fast {
    /// Gathers or rejects one frame of a batch that [`Fast::takes_expected`] has not gathered.
    #[inline(always)]
    pub(crate) fn inspect(
        &mut self,
        connections: &mut impl Lookup,
        now: Instant,
        frame: &Frame<&[u8]>,
    ) -> Verdict {
        if self.has_observers() {
            // The modules must see every frame first, so the prediction was not tried yet.
            if self.is_filtered(now, frame) || self.takes_expected(frame) {
                return Verdict::Consumed;
            }
        }
        if self.expected.is_marked() && self.takes_marked(frame) {
            return Verdict::Consumed;
        }
        match self.take(connections, frame) {
            Ok(()) => Verdict::Consumed,
            Err(reason) => {
                self.pass(reason, frame);
                Verdict::Fallback
            }
        }
    }

    /// Returns `true` if a module must process every frame first. In that case, [`Fast::takes_expected`] must
    /// not be called.
    #[inline]
    pub(crate) fn has_observers(&self) -> bool {
        self.on.without(FastModules::PURE_ACK) != FastModules::OFF
    }

    /// Gathers the ACK in `frame` and returns `true`, if `frame` is the predicted ACK. The function is fully
    /// inlined, so that the caller needs few registers.
    #[inline(always)]
    pub(crate) fn takes_expected(&mut self, frame: &Frame<&[u8]>) -> bool {
        let ack = self.gathered.room().and_then(|room| self.expected.read(frame, room));
        self.gather_expected(ack)
    }

    /// Implements [`Fast::takes_expected`] for ACKs with an ECN mark.
    #[inline]
    fn takes_marked(&mut self, frame: &Frame<&[u8]>) -> bool {
        let ack = self.gathered.room().and_then(|room| self.expected.read_marked(frame, room));
        self.gather_expected(ack)
    }

    /// Gathers the ACK that was written into the free record, if `ack` is `Some`; returns `true` in that
    /// case.
    #[inline(always)]
    fn gather_expected(&mut self, ack: Option<AckAndWindow>) -> bool {
        if let Some(ack) = ack {
            let is_duplicate = self.gathered.append_written(ack);
            self.note(is_duplicate);
        }
        ack.is_some()
    }

    /// Records that `frame` takes the slow path, for `reason`.
    fn pass(&mut self, reason: FallbackReason, frame: &Frame<&[u8]>) {
        self.counters.fallbacks[reason as usize] += 1;
        self.expected.forget();
        self.flows.pass(self.expect.link, frame);
    }

    /// Gathers the ACK in `frame`, or returns the first check that failed.
    #[inline(always)]
    fn take(
        &mut self,
        connections: &mut impl Lookup,
        frame: &Frame<&[u8]>,
    ) -> Result<(), FallbackReason> {
        if !self.on.has(FastModules::PURE_ACK) {
            return Err(FallbackReason::Off);
        }
        let (packet, is_v4) = self.expect.packet(frame).ok_or(FallbackReason::Length)?;
        match is_v4 {
            true => self.take_packet::<V4_BYTES>(connections, frame, packet),
            false => self.take_packet::<V6_BYTES>(connections, frame, packet),
        }
    }

    /// Implements [`Fast::take`] for a packet whose IP header has `TRANSPORT` bytes. The function is
    /// instantiated per IP version, so that the parsed values stay in registers.
    #[inline(always)]
    fn take_packet<const TRANSPORT: u32>(
        &mut self,
        connections: &mut impl Lookup,
        frame: &Frame<&[u8]>,
        packet: &[u8],
    ) -> Result<(), FallbackReason> {
        let ack = self.expect.read_plain::<TRANSPORT>(frame, packet)?;
        let (key, spot) = (ack.key, ack.spot);
        let known = self.flows.known(spot);
        let run = match known {
            SlotState::Run(number) => self.gathered.place(number).map(|place| (number, place)),
            SlotState::Nothing | SlotState::Blocked => None,
        };
        if let Some((number, place)) = run {
            if !self.config.one_by_one && connections.at(place, &key).is_some() {
                match self.gathered.is_last(number) {
                    true => {
                        let shape = (ack.timestamp.is_some(), ack.ecn);
                        self.expected.learn(self.expect.link, frame, shape);
                    }
                    false => self.expected.forget(),
                }
                self.append(number, ack.record());
                return Ok(());
            }
            // Either the slot goes to another flow, or each ACK has a run of its own.
            if let (Some(last), Some(state)) =
                (self.gathered.last_ack_of(number), connections.state(place))
            {
                state.remember(last);
            }
        }
        let seen = match connections.at(self.flows.last_place(spot), &key) {
            Some(seen) => seen,
            None => find(connections, key).ok_or(FallbackReason::NoConnection)?,
        };
        if !seen.state.takes_acks() {
            return Err(FallbackReason::NotSynchronized);
        }
        if known == SlotState::Blocked || connections.is_held(&key) {
            return Err(FallbackReason::Order);
        }
        // Only the worker fills the backlog, so it stays empty during this batch.
        if seen.has_backlog {
            return Err(FallbackReason::Backlog);
        }
        self.expected.forget();
        let record = ack.record();
        let run = self.gathered.begin(seen.place, record);
        self.flows.set(spot, run, seen.place);
        self.note(seen.state.last == ack_and_window(&record));
        Ok(())
    }

    /// Appends an ACK to a run that has begun.
    #[inline]
    fn append(&mut self, run: u32, record: AckRecord) {
        let is_duplicate = self.gathered.append(run, record);
        self.note(is_duplicate);
    }

    /// Counts an ACK as a duplicate if `is_duplicate` is `true`.
    #[inline]
    fn note(&mut self, is_duplicate: bool) {
        if is_duplicate {
            self.counters.duplicates += 1;
        }
    }

    /// Ends a batch: counts the gathered ACKs, and clears them.
    pub(crate) fn end(&mut self) {
        self.counters.consumed += self.gathered.acks() as u64;
        self.counters.calls += self.gathered.runs() as u64;
        self.gathered.clear();
    }
}

/// Returns the connection of the flow `key`; `None` if there is none. The key is passed by value, so that the
/// caller can keep its copy in registers.
#[cold]
#[inline(never)]
fn find(connections: &mut impl Lookup, key: FlowKey) -> Option<ConnectionSnapshot> {
    let place = connections.find(&key)?;
    connections.at(place, &key)
}

#[cfg(test)]
mod tests;
