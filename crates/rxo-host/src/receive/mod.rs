//! What arrives: a delivery of the engine becomes an [`Arrival`] for a connection.
//!
//! Separate because it is the only place that reads frames of segments: behind it there are segments and
//! records. Where the headers are is known once for all frames of a delivery, so a connection reads them
//! at fixed places, when it takes them.

mod acks;
mod segments;

use std::num::NonZeroU16;

use rxo_coalesce::{Acks, Aggregate, IntoFrames};
use rxo_frame::Frame;
use rxo_tcp::{Arrival, GsoSegment, PlainSegments, has_plain_options};
use rxo_wire::tcp::FixedHeader;
use rxo_wire::{Offsets, Parsed, TcpFlags, Transport};

use self::acks::AckRecords;
use self::segments::Segments;
use crate::buffer::Buffer;

/// What one delivery of the engine brings for a connection.
pub(crate) type Delivered<'a, B> = Arrival<
    Buffer<B>,
    IntoFrames<'a, Buffer<B>>,
    AckRecords<'a, B>,
    Segments<IntoFrames<'a, Buffer<B>>>,
>;

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
    /// The form of a segment that stands alone, whose headers are `parsed`.
    pub(crate) fn of_frame<B: AsRef<[u8]>>(frame: &Frame<B>, parsed: &Parsed) -> Self {
        let (at, has_text) = (parsed.at, parsed.payload_bytes() > 0);
        let kind = match frame.gso {
            Some(gso) if parsed.payload_bytes() > gso.size.get().into() => {
                Kind::Gso { size: gso.size }
            }
            _ if !has_plain_options(frame.bytes(), at) => Kind::Segments,
            _ if has_text => Kind::Run { alike: 1 },
            _ if is_pure_ack(parsed) => Kind::Acks,
            _ => Kind::Segments,
        };
        Self { at, kind }
    }

    /// The form of `aggregate`.
    pub(crate) fn of_aggregate<B: AsRef<[u8]>>(aggregate: &Aggregate<'_, B>) -> Self {
        let header = aggregate.header();
        let (network, transport) = (aggregate.network_at(), aggregate.transport_at());
        let at = at([network, transport, header.len()], aggregate.gso_size().into());
        let kind = match has_plain_options(header, at) {
            true => Kind::Run { alike: aggregate.alike_segments() },
            false => Kind::Segments,
        };
        Self { at, kind }
    }

    /// The form of `acks`.
    pub(crate) fn of_acks<B: AsRef<[u8]>>(acks: &Acks<'_, B>) -> Self {
        let (network, transport) = (acks.network_at(), acks.transport_at());
        let header = acks.last().bytes().get(transport..).and_then(FixedHeader::of);
        let end = transport + header.map_or(0, FixedHeader::header_bytes);
        Self { at: at([network, transport, end], 0), kind: Kind::Acks }
    }

    /// The arrival of `frames`, which have this form.
    #[inline]
    pub(crate) fn arrival<B>(self, frames: IntoFrames<'_, Buffer<B>>) -> Delivered<'_, B>
    where
        B: AsRef<[u8]>,
    {
        let Self { at, kind } = self;
        match kind {
            Kind::Run { alike } => Arrival::Run(PlainSegments::new(frames, at, alike)),
            Kind::Acks => Arrival::Acks(AckRecords::new(frames, at)),
            Kind::Segments => Arrival::Segments(Segments::new(frames, at)),
            Kind::Gso { size } => {
                let mut segments = Segments::new(frames, at);
                match segments.next() {
                    Some(whole) => Arrival::Gso(GsoSegment::new(whole, size, Buffer::share)),
                    None => Arrival::Segments(segments),
                }
            }
        }
    }
}

/// Where the headers are that begin, and end, at `places`, with `text_bytes` of text behind them.
const fn at(places: [usize; 3], text_bytes: usize) -> Offsets {
    let [network, transport, payload] = places;
    let (network, transport, end) = (network as u32, transport as u32, payload + text_bytes);
    Offsets { network, transport, payload: payload as u32, end: end as u32 }
}

/// Whether a segment without text acknowledges and says nothing else, but for marks of ECN.
fn is_pure_ack(parsed: &Parsed) -> bool {
    let marks = TcpFlags::ECE | TcpFlags::CWR;
    matches!(parsed.transport, Transport::Tcp(tcp) if tcp.flags.without(marks) == TcpFlags::ACK)
}
