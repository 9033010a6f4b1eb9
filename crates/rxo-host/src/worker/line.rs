//! The line: the connections with data for a device whose queue is full, in a fair order.
//!
//! The line is a deficit round robin (Shreedhar and Varghese 1995): in a round of the scheduler, each
//! connection sends a quantum of bytes. A connection that has sent less than its quantum in this round precedes
//! all connections that wait for the next round. So a short answer does not wait behind downloads, and a
//! connection that waits is delayed by at most one quantum of each other connection. The line is separate from
//! the cells so that fairness can be tested alone.

use std::collections::VecDeque;

/// The line: the connections that wait for free space in the device's queue, by index.
#[derive(Debug)]
pub(super) struct Line {
    /// Connections that may still send in this round of the scheduler, before all others.
    first: VecDeque<u32>,
    /// Connections that have sent their quantum in this round of the scheduler and wait for the next.
    rest: VecDeque<u32>,
    round: u32,
    /// Number of connections at the front of `rest` that are still to be served in this round.
    left: usize,
    quantum_bytes: u64,
}

/// The state of a connection in the line, the queue for the device.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Turn {
    is_waiting: bool,
    /// `true` if the connection came from the queue `first` when it was last served.
    was_first: bool,
    round: u32,
    sent_bytes: u64,
}

impl Line {
    pub(super) fn new() -> Self {
        let (first, rest) = (VecDeque::new(), VecDeque::new());
        Self { first, rest, round: 0, left: 0, quantum_bytes: MOST_QUANTUM_BYTES }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.first.is_empty() && self.rest.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.first.len() + self.rest.len()
    }

    /// Sets the quantum of each connection to `bytes`, clamped to the permitted range.
    pub(super) fn set_quantum(&mut self, bytes: u64) {
        self.quantum_bytes = bytes.clamp(LEAST_QUANTUM_BYTES, MOST_QUANTUM_BYTES);
    }

    /// Appends the connection at index `place` to the line, unless it is in the line already.
    pub(super) fn join(&mut self, place: u32, turn: &mut Turn) {
        if std::mem::replace(&mut turn.is_waiting, true) {
            return;
        }
        if self.share(turn) > 0 { self.first.push_back(place) } else { self.rest.push_back(place) }
    }

    /// Puts the connection at index `place`, which was just removed, back into the line: to the front, if the
    /// device became full before the connection had used its quantum.
    pub(super) fn rejoin(&mut self, place: u32, turn: &mut Turn) {
        if turn.is_waiting || self.share(turn) == 0 {
            return self.join(place, turn);
        }
        turn.is_waiting = true;
        if turn.was_first {
            self.first.push_front(place);
        } else {
            self.rest.push_front(place);
            self.left += 1;
        }
    }

    /// Removes and returns the index of the next connection, and `true` if it came from `first`; `None` if the
    /// line is empty. The caller must call [`Line::leave`] for the connection, which may already have left the
    /// line.
    pub(super) fn next(&mut self) -> Option<(u32, bool)> {
        if let Some(place) = self.first.pop_front() {
            return Some((place, true));
        }
        if self.left == 0 {
            self.left = self.rest.len();
            self.round = self.round.wrapping_add(1);
        }
        self.left = self.left.saturating_sub(1);
        self.rest.pop_front().map(|place| (place, false))
    }

    /// Records that the connection with the state `turn`, which `next` returned, has left the line. Returns
    /// `true` if the connection was in the line.
    pub(super) const fn leave(&self, turn: &mut Turn, is_first: bool) -> bool {
        turn.was_first = is_first;
        std::mem::replace(&mut turn.is_waiting, false)
    }

    /// Returns the number of bytes that the connection with the state `turn` may send before it must wait for
    /// the next round.
    pub(super) fn share(&self, turn: &mut Turn) -> u64 {
        let rounds = self.round.wrapping_sub(turn.round);
        turn.round = self.round;
        let granted = u64::from(rounds).saturating_mul(self.quantum_bytes);
        turn.sent_bytes = turn.sent_bytes.saturating_sub(granted);
        self.quantum_bytes.saturating_sub(turn.sent_bytes)
    }

    /// Records that the connection with the state `turn` has sent `bytes` bytes.
    #[inline]
    pub(super) fn sent(&self, turn: &mut Turn, bytes: u64) {
        if bytes > 0 {
            // Data sent while no other connection waited delays the connection by one round at most.
            turn.sent_bytes = (turn.sent_bytes + bytes).min(2 * self.quantum_bytes);
        }
    }
}

/// The maximum quantum of a connection in bytes: the largest GSO frame.
const MOST_QUANTUM_BYTES: u64 = 64 << 10;
/// The minimum quantum of a connection in bytes: one full Ethernet frame.
const LEAST_QUANTUM_BYTES: u64 = 1_500;

#[cfg(test)]
mod tests;
