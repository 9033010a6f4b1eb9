//! What arrives: a delivery of the engine becomes an [`Arrival`] for a connection.
//!
//! Separate because it is the only place that reads frames of segments: behind it there are segments and
//! records. Where the headers are is known once for all frames of a delivery, so a connection reads them
//! at fixed places, when it takes them.

mod acks;
mod lent;
mod segments;

use std::num::NonZeroU16;

use rxo_coalesce::{Aggregate, Delivery, IntoFrames};
use rxo_frame::Frame;
use rxo_tcp::{Arrival, GsoSegment, PlainSegments, has_plain_options};
use rxo_wire::tcp::FixedHeader;
use rxo_wire::{Offsets, TcpFlags};

use self::acks::AckRecords;
use self::lent::Lent;
use self::segments::Segments;
use crate::buffer::Buffer;

/// What one delivery of the engine brings for a connection.
pub(crate) type Delivered<'a, B> =
    Arrival<Buffer<B>, Lent<'a, B>, AckRecords<'a, B>, Segments<Lent<'a, B>>>;

/// What the frames of a delivery are. The headers of all of them are at the same places, which are said once;
/// where each frame ends is read from its own header.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Form {
    at: Offsets,
    kind: Kind,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    /// Plain segments. The first `alike` of them are alike.
    Run { alike: usize },
    /// One GSO frame whose segments have `size` bytes of text.
    Gso { size: NonZeroU16 },
    /// Pure ACKs.
    Acks,
    /// Any segments.
    Segments,
}

impl Form {
    /// The form of `delivery`, whose headers are at `at`.
    #[inline]
    pub(crate) fn of<B: AsRef<[u8]>>(delivery: &Delivery<'_, B>, at: Offsets) -> Self {
        match delivery {
            Delivery::Aggregate(aggregate) => Self::of_aggregate(aggregate, at),
            Delivery::Acks(_) => Self { at, kind: Kind::Acks },
            Delivery::Frame(single) => Self::of_frame(single.frame(), at),
        }
    }

    /// The form of a segment that stands alone in `frame`, whose headers are at `at`.
    #[inline]
    pub(crate) fn of_frame<B: AsRef<[u8]>>(frame: &Frame<B>, at: Offsets) -> Self {
        let text_bytes = at.payload_bytes();
        let kind = match frame.gso {
            Some(gso) if text_bytes > gso.size.get().into() => Kind::Gso { size: gso.size },
            _ if !has_plain_options(frame.bytes(), at) => Kind::Segments,
            _ if text_bytes > 0 => Kind::Run { alike: 1 },
            _ if is_pure_ack(frame.bytes(), at) => Kind::Acks,
            _ => Kind::Segments,
        };
        Self { at, kind }
    }

    fn of_aggregate<B: AsRef<[u8]>>(aggregate: &Aggregate<'_, B>, at: Offsets) -> Self {
        let kind = match has_plain_options(aggregate.header(), at) {
            true => Kind::Run { alike: aggregate.alike_segments() },
            false => Kind::Segments,
        };
        Self { at, kind }
    }

    /// The arrival of `frames`, which have this form.
    #[inline]
    pub(crate) fn arrival<B>(self, frames: IntoFrames<'_, B>) -> Delivered<'_, B>
    where
        B: AsRef<[u8]> + Default,
    {
        let Self { at, kind } = self;
        match kind {
            Kind::Run { alike } => Arrival::Run(PlainSegments::new(Lent::new(frames), at, alike)),
            Kind::Acks => Arrival::Acks(AckRecords::new(frames, at)),
            Kind::Segments => Arrival::Segments(Segments::new(Lent::new(frames), at)),
            Kind::Gso { size } => {
                let mut segments = Segments::new(Lent::new(frames), at);
                match segments.next() {
                    Some(whole) => Arrival::Gso(GsoSegment::new(whole, size, Buffer::share)),
                    None => Arrival::Segments(segments),
                }
            }
        }
    }
}

/// Whether a segment without text, whose headers are at `at`, acknowledges and says nothing else, but for
/// marks of ECN.
fn is_pure_ack(bytes: &[u8], at: Offsets) -> bool {
    let marks = TcpFlags::ECE | TcpFlags::CWR;
    let header = bytes.get(at.transport as usize..).and_then(FixedHeader::of);
    header.is_some_and(|tcp| tcp.flags().without(marks) == TcpFlags::ACK)
}
