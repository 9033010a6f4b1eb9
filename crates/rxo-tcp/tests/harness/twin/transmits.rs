//! The connection that takes the numbered steps transmits after each segment. The other connection must send
//! the same segments after the whole aggregate.

use rxo_frame::Instant;
use rxo_tcp::{Arrival, Connection, Segment, Transmit};
use rxo_wire::{SeqNumber, TcpFlags};

use super::super::LARGEST_BUFFERS;
use super::{Twins, clock};

impl Twins {
    /// Gives `segments` to the connection that takes the numbered steps.
    pub(super) fn step(&mut self, segments: Vec<Segment<Vec<u8>>>) {
        self.segments += segments.len() as u64;
        let segments: Vec<_> = segments.into_iter().map(for_the_steps).collect();
        if !self.transmits_between {
            self.slow.on_arrival(self.now, Arrival::segments(segments));
            return;
        }
        let before = fins(&self.slow);
        for segment in segments {
            self.slow.on_arrival(self.now, segment.into());
            self.left.extend(leaving(&mut self.slow, self.now));
        }
        self.fin_between |= fins(&self.slow) != before;
    }

    /// Returns `true` if a peer that has seen only the common output may send `segment`: inside the window,
    /// or so far beyond it that no acknowledgement in between can move the edge there.
    pub(super) fn may_come(&self, segment: &Segment<Vec<u8>>) -> bool {
        let seen = self.fast.statistics();
        let end = segment.seq + segment.text_bytes();
        let is_far = segment.seq - seen.rcv_nxt > FAR_BEHIND_ANY_WINDOW;
        !self.transmits_between || is_far || (seen.rcv_nxt + seen.rcv_wnd).is_at_or_after(end)
    }

    pub(super) fn compare_transmits(&mut self) {
        self.left.extend(leaving(&mut self.slow, self.now));
        let mut left = core::mem::take(&mut self.left);
        while let Some(transmit) = self.fast.poll_transmit(self.now) {
            self.clock = clock(&transmit, self.now).unwrap_or(self.clock);
            for said in says(&transmit) {
                // An input that closes a connection drops pending acknowledgements, and answers the rest of an
                // aggregate once.
                if self.fast.is_closed() {
                    left.drain(..left.iter().position(|alone| *alone == said).unwrap_or(0));
                }
                assert!(!left.is_empty(), "only together: {said}");
                assert_eq!(said, left.remove(0), "together, and alone");
            }
        }
        assert!(left.is_empty() || self.fast.is_closed(), "only alone: {left:?}");
    }
}

/// Returns the values that change when a FIN is sent, for the first time or again, since no side sends text.
fn fins(connection: &Connection<Vec<u8>>) -> (SeqNumber, u32) {
    let statistics = connection.statistics();
    (statistics.snd_nxt, statistics.recovery.resent_segments)
}

/// Returns all segments that are sent now.
fn leaving(connection: &mut Connection<Vec<u8>>, now: Instant) -> Vec<String> {
    let mut left = Vec::new();
    while let Some(transmit) = connection.poll_transmit(now) {
        left.extend(says(&transmit));
    }
    left
}

/// Returns `transmit` and the acknowledgements after it as separate lines.
fn says(transmit: &Transmit<'_>) -> Vec<String> {
    let alone = Transmit { later_acks: &[], ..*transmit };
    let is_reset = transmit.flags.contains(TcpFlags::RST);
    assert!(!is_reset || transmit.later_acks.is_empty());
    core::iter::once(alone).chain(transmit.later()).map(|one| format!("{one:?}")).collect()
}

/// A distance larger than any receive buffer here, including its rounding.
const FAR_BEHIND_ANY_WINDOW: i32 = 2 * LARGEST_BUFFERS.receive_bytes as i32;

/// Returns `segment` with an option that has no meaning outside a SYN, so that no fast path takes it.
fn for_the_steps(mut segment: Segment<Vec<u8>>) -> Segment<Vec<u8>> {
    segment.options.is_sack_permitted |= !segment.has(TcpFlags::SYN);
    segment
}
