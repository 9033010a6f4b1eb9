//! Arrivals: the segments that reach a connection together, in the form that is cheapest to process.
//!
//! Separate from the steps of [`crate::Connection::on_arrival`] because the owner builds an arrival once,
//! from the output of its receive engine. The fast paths process an arrival as a whole; only the slow path
//! splits it into segments.

use core::iter::{Empty, Once, once};

use rxo_frame::Frame;
use rxo_wire::tcp::AckRecord;

use crate::{GsoSegment, PlainSegments, Segment};

/// Segments for one connection that arrived together, in order.
///
/// An `Arrival` is an iterator that yields every segment as a [`Segment`], whatever the variant. Each
/// constructor sets the type parameters of the other variants to empty iterators, so that callers need not name
/// them.
#[derive(Clone, Debug)]
pub enum Arrival<B, F, A, S> {
    /// Segments with data and no options except timestamps, in frames with the same header layout. `F` yields
    /// the frames.
    Run(PlainSegments<F>),
    /// A GSO frame, as one segment.
    Gso(GsoSegment<B>),
    /// Pure ACKs. `A` yields one record for each ACK.
    Acks(A),
    /// Segments of any kind. `S` yields them.
    Segments(S),
}

impl<B, F> Arrival<B, F, Empty<AckRecord>, Empty<Segment<B>>> {
    /// Returns an arrival that is a run of plain segments.
    pub const fn run(segments: PlainSegments<F>) -> Self {
        Self::Run(segments)
    }
}

impl<B> Arrival<B, Empty<Frame<B>>, Empty<AckRecord>, Empty<Segment<B>>> {
    /// Returns an arrival that is one GSO frame.
    pub const fn gso(segment: GsoSegment<B>) -> Self {
        Self::Gso(segment)
    }
}

impl<B, A> Arrival<B, Empty<Frame<B>>, A, Empty<Segment<B>>> {
    /// Returns an arrival of pure ACKs, one for each record.
    pub fn acks(records: impl IntoIterator<IntoIter = A>) -> Self {
        Self::Acks(records.into_iter())
    }
}

impl<B, S> Arrival<B, Empty<Frame<B>>, Empty<AckRecord>, S> {
    /// Returns an arrival of segments of any kind.
    pub fn segments(segments: impl IntoIterator<IntoIter = S>) -> Self {
        Self::Segments(segments.into_iter())
    }
}

impl<B> From<Segment<B>> for Arrival<B, Empty<Frame<B>>, Empty<AckRecord>, Once<Segment<B>>> {
    /// Returns an arrival of one segment.
    fn from(segment: Segment<B>) -> Self {
        Self::Segments(once(segment))
    }
}

impl<B, F, A, S> Iterator for Arrival<B, F, A, S>
where
    B: AsRef<[u8]>,
    F: Iterator<Item = Frame<B>>,
    A: Iterator<Item = AckRecord>,
    S: Iterator<Item = Segment<B>>,
{
    type Item = Segment<B>;

    fn next(&mut self) -> Option<Segment<B>> {
        match self {
            Self::Run(segments) => segments.next().map(Segment::from),
            Self::Gso(segment) => segment.next(),
            Self::Acks(records) => records.next().map(|record| Segment::from(&record)),
            Self::Segments(segments) => segments.next(),
        }
    }
}
