//! The receive path: turns a delivery of the engine into an [`Arrival`] for a connection.
//!
//! This is the only module that reads the headers of received segments; later stages use only segments and
//! records. The offsets of the headers are determined once for all frames of a delivery. So each frame is read
//! at fixed offsets, when the connection requests its segment.

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

/// The content of one delivery, as a connection receives it.
pub(crate) type Delivered<'a, B> =
    Arrival<Buffer<B>, Lent<'a, B>, AckRecords<'a, B>, Segments<Lent<'a, B>>>;

/// The kind of a delivery's frames, and the offsets of their headers, which are equal in all frames. The end of
/// each frame is read from its own header.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Form {
    at: Offsets,
    kind: Kind,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    /// Plain segments with data. The first `alike` segments have equal headers, apart from the fields that
    /// increase from segment to segment.
    Run { alike: usize },
    /// One GSO frame whose segments carry `size` bytes of data each.
    Gso { size: NonZeroU16 },
    /// Pure ACKs, without data.
    Acks,
    /// Segments of any other kind, each to be parsed in full.
    Segments,
}

impl Form {
    /// Returns the form of `delivery`, whose headers are at the offsets `at`.
    #[inline]
    pub(crate) fn of<B: AsRef<[u8]>>(delivery: &Delivery<'_, B>, at: Offsets) -> Self {
        match delivery {
            Delivery::Aggregate(aggregate) => Self::of_aggregate(aggregate, at),
            Delivery::Acks(_) => Self { at, kind: Kind::Acks },
            Delivery::Frame(single) => Self::of_frame(single.frame(), at),
        }
    }

    /// Returns the form of a single frame, whose headers are at the offsets `at`.
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

    /// Wraps `frames`, which have this form, as an [`Arrival`] for a connection.
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

/// Returns `true` if a segment without data has no flags but ACK, ECE and CWR. Its headers are at the offsets
/// `at`.
fn is_pure_ack(bytes: &[u8], at: Offsets) -> bool {
    let marks = TcpFlags::ECE | TcpFlags::CWR;
    let header = bytes.get(at.transport as usize..).and_then(FixedHeader::of);
    header.is_some_and(|tcp| tcp.flags().without(marks) == TcpFlags::ACK)
}
