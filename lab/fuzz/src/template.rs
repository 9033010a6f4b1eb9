//! Target `template`: any first frame is refused, or the template expands to the frames that a naive
//! implementation builds one by one. Any bytes as a packed template become a bounded number of ACKs, or none.

use rxo_ack::{
    AckNumbers, AckSlot, AckTemplate, Expanded, IdRule, MOST_PACKED_NUMBERS, expand_packed,
};
use rxo_frame::{ChecksumStatus, Frame, Instant, LinkKind};
use rxo_testkit::naive::{NaiveAck, Reading, Segment, another_ack, read};
use rxo_wire::SeqNumber;
use rxo_wire::tcp::Timestamp;

const MOST_ACKS: usize = 40;
/// Number of bytes that encode the numbers of one ACK.
const NUMBERS_BYTES: usize = 14;

/// Expands a template. Two bytes select options, then the numbers of the later ACKs follow; the rest is the
/// first frame.
///
/// # Panics
/// If an ACK differs from the naive one.
pub fn run(data: &[u8]) {
    let Some((&[how, count], rest)) = data.split_first_chunk() else { return };
    let numbers_bytes = (usize::from(count) % MOST_ACKS * NUMBERS_BYTES).min(rest.len());
    let (numbers, bytes) = rest.split_at(numbers_bytes);
    let later: Vec<_> = numbers.chunks_exact(NUMBERS_BYTES).map(numbers_of).collect();
    let link = if how & 1 == 0 { LinkKind::Ethernet } else { LinkKind::RawIp };
    let ids = if how & 2 == 0 { IdRule::Increment } else { IdRule::Keep };
    unpack(rest, link);
    let mut first = Frame::new(bytes, Instant::ZERO);
    let reading = read(&first, link);
    if let (Reading::Segment(seen), true) = (&reading, how & 4 != 0) {
        first.checksum = ChecksumStatus::Partial { start: seen.transport_at as u16, offset: 16 };
    }
    let Ok(template) = AckTemplate::new(first, link, &later, ids) else { return };
    let mut memory = [AckSlot::EMPTY; MOST_ACKS];
    let expanded = template.expand(&mut memory).expect("room for all");
    let Reading::Segment(seen) = reading else { panic!("a template of {reading:?}") };
    compare(first, &seen, &expanded, &Asked { later, ids });
}

fn unpack(bytes: &[u8], link: LinkKind) {
    let mut acks = 0;
    let count = expand_packed(Frame::new(bytes, Instant::ZERO), link, &mut |_| acks += 1);
    assert_eq!(count.unwrap_or(0), acks);
    assert!(acks <= 1 + MOST_PACKED_NUMBERS.min(bytes.len() / NUMBERS_BYTES));
}

struct Asked {
    later: Vec<AckNumbers>,
    ids: IdRule,
}

fn compare(first: Frame<&[u8]>, seen: &Segment, expanded: &Expanded<'_>, asked: &Asked) {
    assert_eq!(expanded.len(), asked.later.len() + 1);
    assert!(seen.payload.is_empty());
    let is_seed = first.checksum.is_partial();
    // A naive implementation computes checksums anew, so they are comparable only if they were right. All
    // ones is a right checksum that no implementation computes.
    let at = seen.transport_at + 16;
    let was_right = another_ack(first.bytes, seen, is_seed, numbers_in(seen)) == first.bytes;
    for (index, frame) in expanded.iter().enumerate() {
        assert_eq!((frame.checksum, frame.vlan), (first.checksum, first.vlan));
        let Some(later) = index.checked_sub(1).and_then(|later| asked.later.get(later)) else {
            assert_eq!(frame.bytes, first.bytes);
            continue;
        };
        let step = if asked.ids == IdRule::Increment { index as u16 } else { 0 };
        let new = NaiveAck {
            ack: later.ack.0,
            window: later.window,
            timestamp: (later.timestamp.value, later.timestamp.echo),
            id: seen.id.wrapping_add(step),
        };
        let naive = another_ack(first.bytes, seen, is_seed, new);
        if was_right {
            assert_eq!(frame.bytes, naive, "ACK {index}");
        } else {
            assert_eq!(frame.bytes[at + 2..], naive[at + 2..], "ACK {index}");
        }
    }
}

fn numbers_in(seen: &Segment) -> NaiveAck {
    let long = |at: usize| {
        let bytes = seen.options.get(at..at + 4).and_then(|bytes| bytes.first_chunk().copied());
        bytes.map_or(0, u32::from_be_bytes)
    };
    NaiveAck { ack: seen.ack, window: seen.window, timestamp: (long(4), long(8)), id: seen.id }
}

fn numbers_of(bytes: &[u8]) -> AckNumbers {
    let long =
        |at: usize| u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    AckNumbers {
        ack: SeqNumber(long(0)),
        window: u16::from_be_bytes([bytes[12], bytes[13]]),
        timestamp: Timestamp { value: long(4), echo: long(8) },
    }
}
