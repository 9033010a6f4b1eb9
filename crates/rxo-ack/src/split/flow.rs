//! One connection whose data goes to the host, and whose ACKs come back.

use rxo_wire::SeqNumber;

use super::delivered::Delivered;
use super::reason::PassReason;
use super::runs::{Run, Runs};
use super::window::{Edges, Offer, edge};

/// What is known of a connection.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Flow {
    pub(super) runs: Runs,
    /// What the host said last.
    last: Option<Said>,
    /// The offers in both SYNs.
    pub(super) host: Offer,
    pub(super) peer: Offer,
    /// Payload of a full-sized segment, in bytes; 0 before the first.
    full_bytes: u16,
    /// Whether the end of the runs is the end of the stream.
    fin: bool,
}

/// The numbers of an ACK from the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Said {
    pub(super) ack: SeqNumber,
    pub(super) window: u16,
    /// The right edge it promised; `None` while the scale is not known.
    edge: Option<SeqNumber>,
}

/// An ACK that advances, and may be split: where it reaches in the runs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Advance {
    /// The boundary it acknowledges: its ACK number, or one less when that covers a FIN.
    pub(super) until: SeqNumber,
    pub(super) edges: Option<Edges>,
}

/// Options take at most so much of a segment that would be full without them.
const MAX_OPTIONS_BYTES: u32 = 40;

impl Flow {
    /// Takes in what the host was given. Returns how many segments that was.
    pub(super) fn deliver(&mut self, delivered: &Delivered) -> u32 {
        let Delivered { seq, payload_bytes, segment_bytes, tsval, fin } = *delivered;
        let (Some(count), Some(rest)) = (
            payload_bytes.checked_div(segment_bytes.into()),
            payload_bytes.checked_rem(segment_bytes.into()),
        ) else {
            return 0;
        };
        let Ok(whole) = u16::try_from(count) else {
            // No packet has so many segments: what was told is not what was delivered.
            self.runs.clear();
            return 0;
        };
        self.learn_full_size(segment_bytes, whole);
        let run = |seq, segment_bytes: u16, count| {
            let is_full = u32::from(segment_bytes) + MAX_OPTIONS_BYTES >= self.full_bytes.into();
            Run { seq, segment_bytes, count, is_full, tsval }
        };
        let first = run(seq, segment_bytes, whole);
        let second = run(first.end(), rest as u16, 1);
        self.runs.push(first);
        self.runs.push(second);
        self.fin = fin;
        count + u32::from(rest > 0)
    }

    /// The largest segment seen is full-sized, or one that comes twice in a row: a path may begin to
    /// carry less.
    const fn learn_full_size(&mut self, segment_bytes: u16, count: u16) {
        if count > 1 || (count == 1 && segment_bytes > self.full_bytes) {
            self.full_bytes = segment_bytes;
        }
    }

    /// Where an ACK of the host that says `ack` and `window` reaches; or why it is left alone.
    /// Changes nothing.
    pub(super) fn advance(&self, ack: SeqNumber, window: u16) -> Result<Advance, PassReason> {
        let Some(last) = self.last else { return Err(PassReason::FirstAck) };
        match ack - last.ack {
            ..0 => return Err(PassReason::OldAck),
            0 if window == last.window => return Err(PassReason::Duplicate),
            0 => return Err(PassReason::WindowUpdate),
            1.. => {}
        }
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

    /// Whether an ACK that says `ack` advances by more than `every` full-sized segments.
    pub(super) fn is_stretch(&self, ack: SeqNumber, every: u16) -> bool {
        let most = u32::from(every) * u32::from(self.full_bytes);
        let advance = self.last.map_or(0, |last| ack - last.ack);
        most > 0 && u32::try_from(advance).is_ok_and(|bytes| bytes > most)
    }

    /// Takes in what the host says, whatever the frame. An ACK that goes back says nothing new.
    pub(super) fn note(&mut self, ack: SeqNumber, window: u16) {
        if self.last.is_some_and(|last| ack.is_before(last.ack)) {
            return;
        }
        self.last =
            Some(Said { ack, window, edge: self.shift().map(|shift| edge(ack, window, shift)) });
        self.runs.forget_until(ack);
    }

    /// Takes in a SYN of the host; `ack` when it answers one. The window in a SYN is never scaled.
    pub(super) fn host_syn(&mut self, offer: Offer, ack: Option<SeqNumber>, window: u16) {
        let peer = if ack.is_some() { self.peer } else { Offer::Unknown };
        *self = Self { host: offer, peer, ..Self::default() };
        self.last = ack.map(|ack| Said { ack, window, edge: Some(edge(ack, window, 0)) });
    }

    /// Takes in a SYN of the peer, which answers one when `is_answer`.
    pub(super) fn peer_syn(&mut self, offer: Offer, is_answer: bool) {
        let host = if is_answer { self.host } else { Offer::Unknown };
        *self = Self { host, peer: offer, ..Self::default() };
    }

    fn shift(&self) -> Option<u8> {
        self.host.shift(self.peer)
    }
}
