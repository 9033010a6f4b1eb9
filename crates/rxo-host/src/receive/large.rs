//! A frame that is several segments in one, as a local sender or a card with LRO hands it over: each
//! of them counts.

use std::num::NonZeroU16;
use std::ops::Range;
use std::sync::Arc;

use rxo_tcp::{Payload, Segment};
use rxo_wire::TcpFlags;

use crate::buffer::Buffer;

/// The segments that `large` stands for, of `size` bytes each but the last; they share its buffer. Empty
/// without text.
pub(crate) fn cut<B: AsRef<[u8]>>(
    large: Segment<Buffer<B>>,
    size: NonZeroU16,
) -> impl Iterator<Item = Segment<Buffer<B>>> {
    let Segment { seq, ack, flags, window, options, payload, ecn, arrived_at } = large;
    let text = payload.and_then(|payload| {
        let (buffer, range) = payload.into_parts();
        Some((buffer.into_shared()?, range))
    });
    text.into_iter().flat_map(move |(buffer, Range { start, end })| {
        (start..end).step_by(size.get().into()).map(move |at| {
            let to = end.min(at + usize::from(size.get()));
            Segment {
                seq: seq + (at - start) as u32,
                ack,
                flags: flags_of(flags, at == start, to == end),
                window,
                options,
                payload: Payload::new(Buffer::Shared(Arc::clone(&buffer)), at..to),
                ecn,
                arrived_at,
            }
        })
    })
}

/// FIN and PSH belong to the last, CWR to the first.
fn flags_of(flags: TcpFlags, is_first: bool, is_last: bool) -> TcpFlags {
    let flags = if is_first { flags } else { flags.without(TcpFlags::CWR) };
    if is_last { flags } else { flags.without(TcpFlags::FIN | TcpFlags::PSH) }
}
