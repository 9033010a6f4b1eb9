//! Which connection a pure ACK is for, and whether it can take it: checks 6 to 8.
//!
//! Separate from the bytes and from the worker: it knows places of cells and what the worker knows of each.

use rxo_device::Verdict;
use rxo_frame::{Frame, Instant};
use rxo_wire::tcp::AckRecord;
use rxo_wire::{FlowKey, SeqNumber};

use super::gather::told;
use super::order::Known;
use super::parse::PureAck;
use super::{FallbackReason, Fast, FastModule};
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

    /// Remembers the last ACK that was consumed, beside which the next may be a duplicate.
    #[inline]
    pub(crate) fn remember(&mut self, record: &AckRecord) {
        self.last = told(record);
    }
}

/// What the fast path asks the worker.
pub(crate) trait Connections {
    /// The place of the connection of the flow `key`.
    fn find(&mut self, key: &FlowKey) -> Option<u32>;

    /// Whether the connection of the flow `key` is at `place`.
    fn is_at(&self, place: u32, key: &FlowKey) -> bool;

    /// What is known of the connection at `place`.
    fn state(&mut self, place: u32) -> Option<&mut AckState>;

    /// Whether segments wait in the backlog of the connection at `place`.
    fn has_backlog(&self, place: u32) -> bool;
}

impl Fast {
    /// Decides about one frame of a batch. `is_held` says whether the engine holds anything of a flow.
    #[inline(always)]
    pub(crate) fn look(
        &mut self,
        connections: &mut impl Connections,
        is_held: impl Fn(&FlowKey) -> bool,
        now: Instant,
        frame: &Frame<&[u8]>,
    ) -> Verdict {
        if self.on.has_observers() {
            // They come before all else, so they have not seen it if it was expected.
            if self.is_filtered(now, frame) || self.takes_next(frame) {
                return Verdict::Consumed;
            }
        }
        self.take_or_pass(connections, is_held, frame)
    }

    /// Gathers the ACK in `frame` if it is the expected one and no module is to see it first. Returns whether it has. Calls
    /// nothing, so that it costs the caller few registers.
    #[inline(always)]
    pub(crate) fn takes_expected(&mut self, frame: &Frame<&[u8]>) -> bool {
        !self.on.has_observers() && self.takes_next(frame)
    }

    #[inline(always)]
    fn takes_next(&mut self, frame: &Frame<&[u8]>) -> bool {
        if let Some((run, record)) = self.expected.read(frame)
            && let Some(is_duplicate) = self.gathered.append_within_capacity(run, record)
        {
            self.note(is_duplicate);
            return true;
        }
        false
    }

    /// Shows the frame to the modules that see all frames. Returns whether one of them drops it.
    #[inline(never)]
    fn is_filtered(&mut self, now: Instant, frame: &Frame<&[u8]>) -> bool {
        let is_filtered = self.modules.see(self.on, self.expect.link, now, frame);
        self.counters.filtered += u64::from(is_filtered);
        is_filtered
    }

    /// Takes a frame by all checks. Out of line, so that an expected ACK needs few registers.
    #[inline(never)]
    fn take_or_pass(
        &mut self,
        connections: &mut impl Connections,
        is_held: impl Fn(&FlowKey) -> bool,
        frame: &Frame<&[u8]>,
    ) -> Verdict {
        match self.take(connections, is_held, frame) {
            Ok(()) => Verdict::Consumed,
            Err(reason) => {
                self.counters.fallbacks[reason as usize] += 1;
                self.expected.forget();
                self.flows.pass(self.expect.link, frame);
                Verdict::Fallback
            }
        }
    }

    /// Gathers the ACK in `frame`, or says why not.
    fn take(
        &mut self,
        connections: &mut impl Connections,
        is_held: impl Fn(&FlowKey) -> bool,
        frame: &Frame<&[u8]>,
    ) -> Result<(), FallbackReason> {
        if !self.on.has(FastModule::PureAck) {
            return Err(FallbackReason::Off);
        }
        let PureAck { key, spot, record } = self.expect.read(frame)?;
        let known = self.flows.known(spot);
        let run = match known {
            Known::Run(number) => self.gathered.run(number as usize).map(|run| (number, run)),
            Known::Nothing | Known::Blocked => None,
        };
        if let Some((number, run)) = run {
            if run.key == key && !self.one_by_one {
                if self.gathered.is_last(number) {
                    self.expected.learn(self.expect.link, frame, &record, number);
                }
                self.append(number, record);
                return Ok(());
            }
            // Another flow takes the spot, or the run ends with each ACK. What is expected may belong to this run, and
            // would then be given before the ACKs of the flow's next one.
            self.expected.forget();
            if let (Some(last), Some(state)) =
                (self.gathered.last(run), connections.state(run.place))
            {
                state.remember(&last);
            }
        }
        let place = match self.flows.last_place(spot) {
            last if connections.is_at(last, &key) => last,
            _ => connections.find(&key).ok_or(FallbackReason::NoConnection)?,
        };
        let state = connections.state(place).ok_or(FallbackReason::NoConnection)?;
        if !state.takes_acks() {
            return Err(FallbackReason::NotSynchronized);
        }
        let is_duplicate = state.last == told(&record);
        if known == Known::Blocked || is_held(&key) {
            return Err(FallbackReason::Order);
        }
        // The worker alone fills the backlog, so while this batch is looked at it stays empty.
        if connections.has_backlog(place) {
            return Err(FallbackReason::Backlog);
        }
        let run = self.gathered.begin(key, place, record);
        self.flows.set(spot, run, place);
        self.note(is_duplicate);
        Ok(())
    }

    /// Gathers an ACK of a run that has begun.
    #[inline]
    fn append(&mut self, run: u32, record: AckRecord) {
        let is_duplicate = self.gathered.append(run, record);
        self.note(is_duplicate);
    }

    /// Counts a consumed ACK, and whether it repeats the one before.
    #[inline]
    fn note(&mut self, is_duplicate: bool) {
        self.counters.consumed += 1;
        self.counters.duplicates += u64::from(is_duplicate);
    }
}

#[cfg(test)]
mod tests;
