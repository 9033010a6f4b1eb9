//! Frees the buffers of idle connections.
//!
//! Buffers allocate memory when they are used, and keep the memory for the next use. This is efficient for an
//! active connection, but needs too much memory for 100,000 idle connections. One second after a connection was
//! served, it is checked. If the connection was idle meanwhile, its empty buffers are freed, and the next check
//! follows the next service. While the host is short of memory, the check is done sooner, and empty directions
//! release their memory even if the connection is active. Released memory is offered to connections that wait
//! to send, in the current or the next round. The number of offers per round is limited; a connection without
//! an offer gets one a second later.

use std::collections::VecDeque;

use rxo_frame::{Duration, Instant};

use super::slots::Slots;
use crate::cell::Inner;
use crate::memory::Memory;

/// The indices of the connections to be checked, with the time at which each was queued, the earliest first.
/// There is at most one entry per index.
#[derive(Debug, Default)]
pub(super) struct Rests {
    queue: VecDeque<(Instant, u32)>,
    is_queued: Vec<bool>,
}

impl Rests {
    /// Schedules a check of the connection at index `place`, unless one is scheduled.
    pub(super) fn schedule_check(&mut self, place: u32, now: Instant) {
        let index = place as usize;
        if self.is_queued.len() <= index {
            self.is_queued.resize(index + 1, false);
        }
        if !std::mem::replace(&mut self.is_queued[index], true) {
            self.queue.push_back((now, place));
        }
    }

    /// Returns the time of the next check; `None` if no connection is queued. The check is due at once if there
    /// is enough free `memory` for the connection that has waited longest.
    pub(super) fn next_at(&self, memory: &Memory) -> Option<Instant> {
        if memory.serves_waiting() {
            return Some(Instant::ZERO);
        }
        self.queue.front().map(|(since, _)| *since + rest(memory.is_short()))
    }

    fn take_due(&mut self, now: Instant, is_short: bool) -> Option<u32> {
        let (_, place) =
            self.queue.pop_front_if(|(since, _)| now.since(*since) >= rest(is_short))?;
        self.is_queued[place as usize] = false;
        Some(place)
    }

    /// Frees the empty buffers of some idle connections, or of any connections while memory is short, and
    /// offers memory to some connections that wait for it.
    pub(super) fn free_idle<B: AsRef<[u8]>>(
        &mut self,
        slots: &Slots<B>,
        memory: &Memory,
        now: Instant,
    ) {
        self.check_idle(slots, memory, now);
        for _ in 0..CELLS_A_TURN {
            let Some(place) = memory.take_waiting() else { return };
            let Some(slot) = slots.get(place) else { continue };
            let cell = &slot.cell;
            let offer = |inner: &mut Inner<B>| {
                if cell.offer_memory(inner) {
                    cell.wait_for_memory(inner);
                }
            };
            // An application that holds the lock is not blocked; if it does not write now, it is offered
            // memory later.
            _ = cell.serve(offer);
        }
    }

    fn check_idle<B: AsRef<[u8]>>(&mut self, slots: &Slots<B>, memory: &Memory, now: Instant) {
        let is_short = memory.is_short();
        for _ in 0..CELLS_A_TURN {
            let Some(place) = self.take_due(now, is_short) else { return };
            let Some(slot) = slots.get(place) else { continue };
            let (cell, is_idle) = (&slot.cell, now.since(slot.served_at) >= REST);
            let may_rest = is_idle || is_short;
            let look = |inner: &mut Inner<B>| {
                let is_at_rest = may_rest && cell.rest(inner);
                cell.offer_memory(inner);
                is_at_rest
            };
            let is_at_rest = cell.serve(look) == Some(true);
            if !is_at_rest {
                self.schedule_check(place, now);
            }
        }
    }
}

/// Returns the idle time after which a connection is checked; shorter if memory `is_short`.
const fn rest(is_short: bool) -> Duration {
    if is_short { SHORT_REST } else { REST }
}

/// The idle time after which a connection's buffers are freed: longer than most round trips.
const REST: Duration = Duration::from_secs(1);
const SHORT_REST: Duration = Duration::from_millis(50);
const CELLS_A_TURN: usize = 256;
