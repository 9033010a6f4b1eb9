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
use rxo_tcp::{Arrival, GsoSegment, Layout as PlainLayout};
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

/// What the frames of a delivery are.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Form {
    /// Plain segments. The first `alike` of them are alike.
    Run { layout: PlainLayout, alike: usize },
    /// One GSO frame whose segments have `size` bytes of text.
    Gso { at: Offsets, size: NonZeroU16 },
    /// Pure ACKs.
    Acks(Offsets),
    /// Any segments.
    Segments(Offsets),
}

impl Form {
    /// The form of a segment that stands alone, whose headers are `parsed`.
    pub(crate) fn of_frame<B: AsRef<[u8]>>(frame: &Frame<B>, parsed: &Parsed) -> Self {
        let at = parsed.at;
        if let Some(gso) = frame.gso.filter(|gso| parsed.payload_bytes() > gso.size.get().into()) {
            return Self::Gso { at, size: gso.size };
        }
        let header = frame.bytes().get(..at.payload as usize).unwrap_or_default();
        match PlainLayout::of_header(header, at.network as usize, at.transport as usize) {
            Some(layout) if parsed.payload_bytes() > 0 => Self::Run { layout, alike: 1 },
            Some(_) if is_pure_ack(parsed) => Self::Acks(at),
            _ => Self::Segments(at),
        }
    }

    /// The form of `aggregate`.
    pub(crate) fn of_aggregate<B: AsRef<[u8]>>(aggregate: &Aggregate<'_, B>) -> Self {
        let (network, transport) = (aggregate.network_at(), aggregate.transport_at());
        match PlainLayout::of_header(aggregate.header(), network, transport) {
            Some(layout) => Self::Run { layout, alike: aggregate.alike_segments() },
            None => Self::Segments(at(network, transport)),
        }
    }

    /// The form of `acks`.
    pub(crate) fn of_acks<B: AsRef<[u8]>>(acks: &Acks<'_, B>) -> Self {
        Self::Acks(at(acks.network_at(), acks.transport_at()))
    }

    /// The arrival of `frames`, which have this form.
    #[inline]
    pub(crate) fn arrival<B>(self, frames: IntoFrames<'_, Buffer<B>>) -> Delivered<'_, B>
    where
        B: AsRef<[u8]>,
    {
        match self {
            Self::Run { layout, alike } => Arrival::Run(layout.run(frames, alike)),
            Self::Acks(at) => Arrival::Acks(AckRecords::new(frames, at)),
            Self::Segments(at) => Arrival::Segments(Segments::new(frames, at)),
            Self::Gso { at, size } => {
                let mut segments = Segments::new(frames, at);
                match segments.next() {
                    Some(whole) => Arrival::Gso(GsoSegment::new(whole, size, Buffer::share)),
                    None => Arrival::Segments(segments),
                }
            }
        }
    }
}

/// Where the headers of all frames of a delivery begin. Where each ends is read from the frame.
const fn at(network: usize, transport: usize) -> Offsets {
    let (network, transport) = (network as u32, transport as u32);
    Offsets { network, transport, payload: transport, end: transport }
}

/// Whether a segment without text acknowledges and says nothing else, but for marks of ECN.
fn is_pure_ack(parsed: &Parsed) -> bool {
    let marks = TcpFlags::ECE | TcpFlags::CWR;
    matches!(parsed.transport, Transport::Tcp(tcp) if tcp.flags.without(marks) == TcpFlags::ACK)
}
