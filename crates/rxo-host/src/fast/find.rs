//! Which connection a pure ACK is for, and whether it can take it: checks 6 to 8.
//!
//! Separate from the bytes and from the worker: it knows places of cells and what the worker knows of each.

use rxo_device::Verdict;
use rxo_frame::{Frame, Instant};
use rxo_wire::{FlowKey, SeqNumber};

use super::order::{Known, spot};
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
}

/// What the fast path asks the worker.
pub(crate) trait Connections {
    /// The place of the connection of the flow `key`.
    fn find(&mut self, key: &FlowKey) -> Option<u32>;

    /// What is known of the connection at `place`.
    fn state(&mut self, place: u32) -> Option<&mut AckState>;

    /// Whether segments wait in the backlog of the connection at `place`.
    fn has_backlog(&self, place: u32) -> bool;
}

impl Fast {
    /// Decides about one frame of a batch. `is_held` says whether the engine holds anything of a flow.
    #[inline]
    pub(crate) fn look(
        &mut self,
        connections: &mut impl Connections,
        is_held: impl Fn(&FlowKey) -> bool,
        now: Instant,
        frame: Frame<&[u8]>,
    ) -> Verdict {
        if self.on.has_observers() && self.modules.see(self.on, self.expect.link, now, &frame) {
            self.counters.filtered += 1;
            return Verdict::Consumed;
        }
        match self.take(connections, is_held, &frame) {
            Ok(()) => {
                self.counters.consumed += 1;
                Verdict::Consumed
            }
            Err(reason) => {
                self.counters.fallbacks[reason as usize] += 1;
                self.flows.pass(self.expect.link, &frame);
                Verdict::Fallback
            }
        }
    }

    /// Gathers the ACK in `frame`, or says why not.
    #[inline]
    fn take(
        &mut self,
        connections: &mut impl Connections,
        is_held: impl Fn(&FlowKey) -> bool,
        frame: &Frame<&[u8]>,
    ) -> Result<(), FallbackReason> {
        if !self.on.has(FastModule::PureAck) {
            return Err(FallbackReason::Off);
        }
        let ack = self.expect.read(frame)?;
        let spot = spot(self.expect.link, frame.bytes).ok_or(FallbackReason::Ip)?;
        let known = self.flows.known(spot);
        if let Known::Run(run) = known
            && !self.one_by_one
            && let Some(place) = self.gathered.append(run, &ack.key, ack.record)
        {
            self.note(connections, place, &ack);
            return Ok(());
        }
        let place = find(connections, &ack)?;
        if known == Known::Blocked || is_held(&ack.key) {
            return Err(FallbackReason::Order);
        }
        // The worker alone fills the backlog, so while this batch is looked at it stays empty.
        if connections.has_backlog(place) {
            return Err(FallbackReason::Backlog);
        }
        let run = self.gathered.begin(ack.key, place, ack.record);
        self.flows.set(spot, run);
        self.note(connections, place, &ack);
        Ok(())
    }

    /// Counts an ACK that repeats the one before.
    #[inline]
    fn note(&mut self, connections: &mut impl Connections, place: u32, ack: &PureAck) {
        let Some(state) = connections.state(place) else { return };
        let this = (ack.record.ack, ack.record.window);
        self.counters.duplicates += u64::from(state.last == this);
        state.last = this;
    }
}

/// The place of the connection that can take `ack`.
#[inline]
fn find(connections: &mut impl Connections, ack: &PureAck) -> Result<u32, FallbackReason> {
    let place = connections.find(&ack.key).ok_or(FallbackReason::NoConnection)?;
    let state = connections.state(place).ok_or(FallbackReason::NoConnection)?;
    match state.terms.is_synchronized && state.is_admitted {
        true => Ok(place),
        false => Err(FallbackReason::NotSynchronized),
    }
}
