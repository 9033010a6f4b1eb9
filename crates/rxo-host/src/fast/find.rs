//! Which connection a pure ACK is for, and whether it can take it: checks 6 to 8.
//!
//! Separate from the bytes and from the worker: it knows places of cells and what the worker knows of each.

use rxo_device::Verdict;
use rxo_frame::{Frame, Instant};
use rxo_wire::tcp::AckRecord;
use rxo_wire::{FlowKey, SeqNumber};

use super::gather::{Told, told};
use super::order::Known;
use super::parse::{V4_BYTES, V6_BYTES};
use super::{FallbackReason, Fast, FastModules};
use crate::cell::AckTerms;

/// What the worker knows of a connection for the fast path. Written when the connection is served.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct AckState {
    /// Whether packets of this flow pass the gate.
    is_admitted: bool,
    pub(crate) terms: AckTerms,
    /// The number and window of the last ACK that was consumed.
    last: (SeqNumber, u16),
}

impl AckState {
    /// Of a new connection.
    pub(crate) fn new(is_admitted: bool) -> Self {
        Self { is_admitted, ..Self::default() }
    }

    /// Whether the connection is open, and packets of its flow pass the gate.
    #[inline]
    const fn takes_acks(&self) -> bool {
        self.terms.is_synchronized && self.is_admitted
    }

    /// Remembers what the last ACK that was consumed has told: if the next tells the same, it is a duplicate.
    #[inline]
    pub(crate) fn remember(&mut self, told: (SeqNumber, u16)) {
        self.last = told;
    }
}

/// What the fast path asks the worker.
pub(crate) trait Lookup {
    /// The place of the connection of the flow `key`.
    fn find(&mut self, key: &FlowKey) -> Option<u32>;

    /// What is at `place` now, if that is the connection of the flow `key`.
    fn at(&self, place: u32, key: &FlowKey) -> Option<Seen>;

    /// What is known of the connection at `place`.
    fn state(&mut self, place: u32) -> Option<&mut AckState>;

    /// Whether the engine holds anything of the flow `key`.
    fn is_held(&self, key: &FlowKey) -> bool;
}

/// A connection, as it is before an ACK of it is gathered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen {
    pub(crate) place: u32,
    pub(crate) state: AckState,
    /// Whether segments wait in its backlog.
    pub(crate) has_backlog: bool,
}

impl Fast {
    /// Decides about one frame of a batch that [`Fast::takes_expected`] has not taken.
    #[inline(always)]
    pub(crate) fn look(
        &mut self,
        connections: &mut impl Lookup,
        now: Instant,
        frame: &Frame<&[u8]>,
    ) -> Verdict {
        if self.has_observers() {
            // They come before all else, so they have not seen it if it was expected.
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

    /// Whether modules are to see every frame first: then [`Fast::takes_expected`] is not called for it.
    #[inline]
    pub(crate) fn has_observers(&self) -> bool {
        !self.on.without(FastModules::PURE_ACK).is_off()
    }

    /// Gathers the ACK in `frame` if it is the expected one. Returns whether it has. Calls nothing, so that it costs the
    /// caller few registers.
    #[inline(always)]
    pub(crate) fn takes_expected(&mut self, frame: &Frame<&[u8]>) -> bool {
        let told = self.gathered.room().and_then(|room| self.expected.read(frame, room));
        self.gather_expected(told)
    }

    /// [`Fast::takes_expected`] for an ACK with a mark of ECN.
    #[inline]
    fn takes_marked(&mut self, frame: &Frame<&[u8]>) -> bool {
        let told = self.gathered.room().and_then(|room| self.expected.read_marked(frame, room));
        self.gather_expected(told)
    }

    /// Gathers the ACK that was written into the room, if one was.
    #[inline(always)]
    fn gather_expected(&mut self, told: Option<Told>) -> bool {
        if let Some(told) = told {
            let is_duplicate = self.gathered.append_written(told);
            self.note(is_duplicate);
        }
        told.is_some()
    }

    /// Takes note that `frame` takes the ordinary way.
    fn pass(&mut self, reason: FallbackReason, frame: &Frame<&[u8]>) {
        self.counters.fallbacks[reason as usize] += 1;
        self.expected.forget();
        self.flows.pass(self.expect.link, frame);
    }

    /// Gathers the ACK in `frame`, or says why not.
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

    /// [`Fast::take`] of a packet whose IP header has `TRANSPORT` bytes. One for each version, so that what was read need not
    /// be in memory where both meet.
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
            Known::Run(number) => self.gathered.place(number).map(|place| (number, place)),
            Known::Nothing | Known::Blocked => None,
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
            // Another flow takes the spot, or the run ends with each ACK.
            if let (Some(last), Some(state)) =
                (self.gathered.last_told(number), connections.state(place))
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
        if known == Known::Blocked || connections.is_held(&key) {
            return Err(FallbackReason::Order);
        }
        // The worker alone fills the backlog, so while this batch is looked at it stays empty.
        if seen.has_backlog {
            return Err(FallbackReason::Backlog);
        }
        self.expected.forget();
        let record = ack.record();
        let run = self.gathered.begin(seen.place, record);
        self.flows.set(spot, run, seen.place);
        self.note(seen.state.last == told(&record));
        Ok(())
    }

    /// Gathers an ACK of a run that has begun.
    #[inline]
    fn append(&mut self, run: u32, record: AckRecord) {
        let is_duplicate = self.gathered.append(run, record);
        self.note(is_duplicate);
    }

    /// Counts an ACK that repeats the one before, if it does.
    #[inline]
    fn note(&mut self, is_duplicate: bool) {
        if is_duplicate {
            self.counters.duplicates += 1;
        }
    }

    /// Ends a batch: counts what was gathered, and forgets it.
    pub(crate) fn end(&mut self) {
        self.counters.consumed += self.gathered.acks() as u64;
        self.counters.calls += self.gathered.runs() as u64;
        self.gathered.clear();
    }
}

/// Looks for the connection of the flow `key`: by value, so that it need not be in memory where the last one is found.
#[cold]
#[inline(never)]
fn find(connections: &mut impl Lookup, key: FlowKey) -> Option<Seen> {
    let place = connections.find(&key)?;
    connections.at(place, &key)
}

#[cfg(test)]
mod tests;
