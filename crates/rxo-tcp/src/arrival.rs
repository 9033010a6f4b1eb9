//! What arrives for a connection at once, in the form in which it costs least.
//!
//! Separate from the steps because an owner makes it, once, of what its receive engine delivered.
//! Everything takes it whole; only the slow path asks for its segments one by one.

use core::iter::{Empty, Once, once};

use rxo_frame::Frame;
use rxo_wire::tcp::AckRecord;

use crate::{GsoSegment, PlainSegments, Segment};

/// Segments for one connection that arrived together, in order.
///
/// As an iterator it yields each of them as a [`Segment`], whatever its form. The functions that make
/// one leave the other forms empty, so that their types need not be named.
#[derive(Clone, Debug)]
pub enum Arrival<B, F, A, S> {
    /// Segments with text and no options but timestamps, in frames of one shape. `F` yields the frames.
    Run(PlainSegments<F>),
    /// A GSO frame.
    Gso(GsoSegment<B>),
    /// Pure ACKs. `A` yields a record of each.
    Acks(A),
    /// Any segments. `S` yields them.
    Segments(S),
}

impl<B, F> Arrival<B, F, Empty<AckRecord>, Empty<Segment<B>>> {
    /// The arrival of a run of plain segments.
    pub const fn run(segments: PlainSegments<F>) -> Self {
        Self::Run(segments)
    }
}

impl<B> Arrival<B, Empty<Frame<B>>, Empty<AckRecord>, Empty<Segment<B>>> {
    /// The arrival of a GSO frame.
    pub const fn gso(segment: GsoSegment<B>) -> Self {
        Self::Gso(segment)
    }
}

impl<B, A> Arrival<B, Empty<Frame<B>>, A, Empty<Segment<B>>> {
    /// The arrival of pure ACKs, each by its record.
    pub fn acks(records: impl IntoIterator<IntoIter = A>) -> Self {
        Self::Acks(records.into_iter())
    }
}

impl<B, S> Arrival<B, Empty<Frame<B>>, Empty<AckRecord>, S> {
    /// The arrival of segments of any kind.
    pub fn segments(segments: impl IntoIterator<IntoIter = S>) -> Self {
        Self::Segments(segments.into_iter())
    }
}

impl<B> From<Segment<B>> for Arrival<B, Empty<Frame<B>>, Empty<AckRecord>, Once<Segment<B>>> {
    /// The arrival of one segment.
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
