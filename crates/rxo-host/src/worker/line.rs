//! The line of the cells that have text for a device whose queue is full: who is next.
//!
//! A deficit round robin (Shreedhar and Varghese 1995): in a round each cell sends a quantum of bytes. A cell that has
//! sent less than that in the present round goes before all that wait for the next one, so a short answer does not wait
//! for downloads, and no more than a quantum of each can go before them. Separate from the cells so that shares can be
//! tested alone.

use std::collections::VecDeque;

/// Cells by their places.
#[derive(Debug)]
pub(super) struct Line {
    /// Those that may still send in this round.
    first: VecDeque<u32>,
    /// Those that wait for the next.
    rest: VecDeque<u32>,
    round: u32,
    /// How many of `rest` are still to come in this round.
    left: usize,
    quantum_bytes: u64,
}

/// What a cell has sent in a round.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Turn {
    is_waiting: bool,
    /// Whether it went before those that wait for the next round when it was last its turn.
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

    /// Gives each cell `bytes` a round from now on, within limits.
    pub(super) fn set_quantum(&mut self, bytes: u64) {
        self.quantum_bytes = bytes.clamp(LEAST_QUANTUM_BYTES, MOST_QUANTUM_BYTES);
    }

    /// Puts the cell at `place` to the end of the line, unless it is in it.
    pub(super) fn join(&mut self, place: u32, turn: &mut Turn) {
        if std::mem::replace(&mut turn.is_waiting, true) {
            return;
        }
        if self.share(turn) > 0 { self.first.push_back(place) } else { self.rest.push_back(place) }
    }

    /// Puts the cell at `place`, which has just been taken out of the line, back: to where it was if it has more to send in
    /// this round, because the device had no more room.
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

    /// The place of the next cell, and whether it goes before those that wait for the next round.
    /// Call [`Line::leave`] for it; it may have left already.
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

    /// Takes the cell with this `turn`, which was `next`, out of the line. Returns whether it was in it.
    pub(super) const fn leave(&self, turn: &mut Turn, is_first: bool) -> bool {
        turn.was_first = is_first;
        std::mem::replace(&mut turn.is_waiting, false)
    }

    /// Bytes that the cell with this `turn` may send now before it waits for the next round.
    pub(super) fn share(&self, turn: &mut Turn) -> u64 {
        let rounds = self.round.wrapping_sub(turn.round);
        turn.round = self.round;
        let granted = u64::from(rounds).saturating_mul(self.quantum_bytes);
        turn.sent_bytes = turn.sent_bytes.saturating_sub(granted);
        self.quantum_bytes.saturating_sub(turn.sent_bytes)
    }

    /// Takes note that it has sent `bytes`.
    #[inline]
    pub(super) fn sent(&self, turn: &mut Turn, bytes: u64) {
        if bytes > 0 {
            // What it sent while nobody waited is not held against it for more than a round.
            turn.sent_bytes = (turn.sent_bytes + bytes).min(2 * self.quantum_bytes);
        }
    }
}

/// One of the largest frames.
const MOST_QUANTUM_BYTES: u64 = 64 << 10;
/// One full frame of Ethernet.
const LEAST_QUANTUM_BYTES: u64 = 1_500;

#[cfg(test)]
mod tests;
