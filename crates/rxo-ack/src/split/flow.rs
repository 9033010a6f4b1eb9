//! The state of one connection: the segment boundaries of the data that the host received, and the host's newest ACK.

use rxo_wire::SeqNumber;

use super::delivered::Delivered;
use super::reason::PassReason;
use super::runs::{Run, Runs};
use super::window::{Edges, Offer, edge};

/// The state of one connection, as the splitter knows it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Flow {
    pub(super) runs: Runs,
    /// The number and window of the host's newest ACK; `None` before the first one.
    last: Option<HostAck>,
    /// The window scaling that the host offered in its SYN.
    pub(super) host: Offer,
    /// The window scaling that the peer offered in its SYN.
    pub(super) peer: Offer,
    /// The payload length of a full-sized segment, in bytes; 0 before the first segment.
    full_bytes: u16,
    /// `true` if a FIN follows the last recorded run of segments.
    fin: bool,
}

/// The ACK number and the window of a frame from the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct HostAck {
    pub(super) ack: SeqNumber,
    pub(super) window: u16,
    /// The right edge of the window that the host's frame advertises; `None` while the window scale is
    /// unknown.
    edge: Option<SeqNumber>,
}

/// An ACK of the host that advances and may be split: the boundary up to which it acknowledges, and the window edges.
#[derive(Clone, Copy, Debug)]
pub(super) struct Advance {
    /// The segment boundary that the ACK acknowledges: its ACK number, or one less if it covers a FIN.
    pub(super) until: SeqNumber,
    pub(super) edges: Option<Edges>,
}

/// The maximum number of bytes by which TCP options shorten an otherwise full-sized segment.
const MAX_OPTIONS_BYTES: u32 = 40;

impl Flow {
    /// Records data that was delivered to the host. Returns the number of its segments.
    pub(super) fn deliver(&mut self, delivered: &Delivered) -> u32 {
        let Delivered { seq, payload_bytes, segment_bytes, tsval, fin } = *delivered;
        let (Some(count), Some(rest)) = (
            payload_bytes.checked_div(segment_bytes.into()),
            payload_bytes.checked_rem(segment_bytes.into()),
        ) else {
            return 0;
        };
        let Ok(whole) = u16::try_from(count) else {
            // No packet has so many segments, so the report is wrong and the runs are no longer reliable.
            self.runs.clear();
            return 0;
        };
        self.learn_full_size(segment_bytes, whole);
        let run = |seq, segment_bytes: u16, count| {
            let is_full = u32::from(segment_bytes) + MAX_OPTIONS_BYTES >= self.full_bytes.into();
            Run { seq, segment_bytes, count, is_full, tsval }
        };
        let first = run(seq, segment_bytes, whole);
        // The shorter last segment; if there is none, this run is empty and `push` ignores it.
        let second = run(first.end(), rest as u16, 1);
        self.runs.push(first);
        self.runs.push(second);
        self.fin = fin;
        count + u32::from(rest > 0)
    }

    /// Updates the size of a full-sized segment: the largest segment seen, or a smaller size that occurs
    /// twice in a row, because the path MTU may decrease.
    const fn learn_full_size(&mut self, segment_bytes: u16, count: u16) {
        if count > 1 || (count == 1 && segment_bytes > self.full_bytes) {
            self.full_bytes = segment_bytes;
        }
    }

    /// Returns the [`Advance`] of the host's ACK with number `ack` and window `window`: the segment boundary up
    /// to which the ACK acknowledges, and the window edges. If the ACK must not be split, the error is the
    /// reason. Does not change the flow.
    pub(super) fn advance(&self, ack: SeqNumber, window: u16) -> Result<Advance, PassReason> {
        let Some(last) = self.last else { return Err(PassReason::FirstAck) };
        match ack - last.ack {
            ..0 => return Err(PassReason::OldAck),
            0 if window == last.window => return Err(PassReason::Duplicate),
            0 => return Err(PassReason::WindowUpdate),
            1.. => {}
        }
        // A FIN takes one sequence number, which belongs to no run.
        let covers_fin = self.fin && self.runs.end().is_some_and(|end| end + 1 == ack);
        let until = if covers_fin { SeqNumber(ack.0.wrapping_sub(1)) } else { ack };
        if self.runs.start() != Some(last.ack) || !self.runs.has_boundary(until) {
            return Err(PassReason::UnknownBoundaries);
        }
        let edges = last.edge.zip(self.shift()).map(|(before, shift)| Edges {
            before,
            after: edge(ack, window, shift),
            shift,
        });
        Ok(Advance { until, edges })
    }

    /// Returns `true` if an ACK with number `ack` advances by more than `every` full-sized segments.
    pub(super) fn is_stretch(&self, ack: SeqNumber, every: u16) -> bool {
        let most = u32::from(every) * u32::from(self.full_bytes);
        let advance = self.last.map_or(0, |last| ack - last.ack);
        most > 0 && u32::try_from(advance).is_ok_and(|bytes| bytes > most)
    }

    /// Records the ACK number and window of any frame of the host, unless the ACK number decreases.
    pub(super) fn note(&mut self, ack: SeqNumber, window: u16) {
        if self.last.is_some_and(|last| ack.is_before(last.ack)) {
            return;
        }
        self.last =
            Some(HostAck { ack, window, edge: self.shift().map(|shift| edge(ack, window, shift)) });
        self.runs.forget_until(ack);
    }

    /// Records a SYN of the host. `ack` is the number that it acknowledges if it answers the peer's SYN. The
    /// window in a SYN is never scaled.
    pub(super) fn host_syn(&mut self, offer: Offer, ack: Option<SeqNumber>, window: u16) {
        let peer = if ack.is_some() { self.peer } else { Offer::Unknown };
        *self = Self { host: offer, peer, ..Self::default() };
        self.last = ack.map(|ack| HostAck { ack, window, edge: Some(edge(ack, window, 0)) });
    }

    /// Records a SYN of the peer. `is_answer` is `true` if it answers the host's SYN.
    pub(super) fn peer_syn(&mut self, offer: Offer, is_answer: bool) {
        let host = if is_answer { self.host } else { Offer::Unknown };
        *self = Self { host, peer: offer, ..Self::default() };
    }

    fn shift(&self) -> Option<u8> {
        self.host.shift(self.peer)
    }
}
