//! The packets of a batch, and the iterator that passes them to the sink.

use std::slice;

use rxo_frame::Offload;
use rxo_tcp::{Text, Transmit};
use rxo_wire::SeqNumber;

use super::large::Large;
use super::packet::{Packet, Whole};
use super::template::Template;

/// A group of similar packets: a single packet, or the segments of a GSO frame that the host has split.
#[derive(Clone, Copy, Debug)]
pub(super) struct Planned {
    /// Number of bytes in the arena for the headers and copied data of all packets in the group. In the arena,
    /// these bytes follow the bytes of the previous group.
    pub(super) bytes: usize,
    /// Number of bytes in the arena per packet.
    pub(super) head_bytes: usize,
    pub(super) seq: SeqNumber,
    /// Number of data bytes of the group that stay in the send buffer.
    pub(super) borrowed_bytes: u32,
    /// Number of data bytes of each packet that stay in the send buffer. The last packet may have fewer.
    pub(super) size: usize,
    pub(super) offload: Offload,
    pub(super) kind: Kind,
}

/// The operation that the device must perform on a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// The packet is sent unchanged.
    Plain,
    /// The packet is a GSO frame, which the device must segment.
    Large,
    /// The packet is an ACK template, which the device must expand.
    Template,
}

impl Planned {
    /// Creates a group of `count` packets, with `head_bytes` bytes each in the arena and no data in the send
    /// buffer.
    pub(super) fn new(count: usize, head_bytes: usize, offload: Offload) -> Self {
        Self {
            bytes: count * head_bytes,
            head_bytes,
            seq: SeqNumber::default(),
            borrowed_bytes: 0,
            size: 0,
            offload,
            kind: Kind::Plain,
        }
    }

    /// Assigns the data of `transmit`, which stays in the send buffer, to the group: `size` bytes to each
    /// packet.
    pub(super) fn borrow(&mut self, transmit: &Transmit<'_>, size: usize) {
        (self.seq, self.size) = (transmit.seq, size);
        self.borrowed_bytes = transmit.payload_bytes() as u32;
    }
}

/// An iterator over the packets of a batch. Calls `text_of` with each group of packets ([`Planned`]) that has data in
/// the send buffer, to get this data.
pub(super) struct Packets<'a, T> {
    arena: &'a [u8],
    planned: slice::Iter<'a, Planned>,
    /// The descriptions of the GSO frames among the packets, in the order of the packets.
    large: slice::Iter<'a, Large>,
    /// The descriptions of the ACK templates among the packets, in the order of the packets.
    templates: slice::Iter<'a, Template>,
    text_of: T,
    left: usize,
    now: Now<'a>,
}

/// The packets of the current group that the iterator has not returned yet.
#[derive(Default)]
struct Now<'a> {
    heads: &'a [u8],
    head_bytes: usize,
    text: Text<'a>,
    size: usize,
    offload: Offload,
    whole: Option<Whole<'a>>,
}

impl<'a, T: FnMut(&Planned) -> Text<'a>> Packets<'a, T> {
    /// Creates an iterator over the `count` packets of `planned`, whose headers are in `arena`. `large`
    /// describes the GSO frames among the packets, and `templates` the ACK templates.
    pub(super) fn new(
        (arena, planned): (&'a [u8], &'a [Planned]),
        (large, templates): (&'a [Large], &'a [Template]),
        count: usize,
        text_of: T,
    ) -> Self {
        let (planned, large, templates) = (planned.iter(), large.iter(), templates.iter());
        Self { arena, planned, large, templates, text_of, left: count, now: Now::default() }
    }

    fn begin(&mut self) -> Option<Now<'a>> {
        let planned = self.planned.next()?;
        let (heads, arena) = self.arena.split_at_checked(planned.bytes)?;
        self.arena = arena;
        let Planned { head_bytes, size, offload, .. } = *planned;
        let text = if planned.borrowed_bytes > 0 { (self.text_of)(planned) } else { Text::EMPTY };
        let whole = match planned.kind {
            Kind::Plain => None,
            Kind::Large => self.large.next().map(Whole::Large),
            Kind::Template => self.templates.next().map(Whole::Template),
        };
        Some(Now { heads, head_bytes, text, size, offload, whole })
    }
}

impl<'a, T: FnMut(&Planned) -> Text<'a>> Iterator for Packets<'a, T> {
    type Item = Packet<'a>;

    #[inline]
    fn next(&mut self) -> Option<Packet<'a>> {
        if self.now.heads.is_empty() {
            self.now = self.begin()?;
        }
        self.left -= 1;
        let Now { heads, head_bytes, text, size, offload, whole } = &mut self.now;
        let (head, rest) = heads.split_at_checked(*head_bytes)?;
        *heads = rest;
        Some(Packet { head, text: text.split_to(*size), offload: *offload, whole: *whole })
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }

    /// Visits all packets, with one loop per group, so that the group's common values stay in registers. A
    /// separate loop visits packets without data, which are ACKs.
    #[inline]
    fn fold<A, F: FnMut(A, Packet<'a>) -> A>(mut self, first: A, mut then: F) -> A {
        let (mut all, mut now) = (first, Some(std::mem::take(&mut self.now)));
        while let Some(Now { heads, head_bytes, mut text, size, offload, whole }) = now {
            let mut heads = heads.chunks_exact(head_bytes.max(1));
            if text.is_empty() {
                let packet = |head| Packet { head, text: Text::EMPTY, offload, whole };
                all = heads.by_ref().fold(all, |all, head| then(all, packet(head)));
            }
            for head in heads {
                let text = text.split_to(size);
                all = then(all, Packet { head, text, offload, whole });
            }
            now = self.begin();
        }
        all
    }
}

impl<'a, T: FnMut(&Planned) -> Text<'a>> ExactSizeIterator for Packets<'a, T> {}

#[cfg(test)]
mod tests {
    use rxo_frame::Gather;
    use rxo_tcp::SendBuffer;

    use super::*;

    fn bytes_of(packet: Packet<'_>) -> String {
        let mut bytes = Vec::new();
        packet.for_each_slice(|piece| bytes.extend_from_slice(piece));
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn packets_by_one_loop_are_those_one_by_one() {
        let mut buffer = SendBuffer::with_capacity(7);
        buffer.write(b"0123456");
        let acks = Planned::new(3, 2, Offload::default());
        let segments = Planned { borrowed_bytes: 7, size: 3, ..Planned::new(3, 1, acks.offload) };
        let planned = [acks, segments];
        for taken in 0..=6 {
            let text_of = |_: &Planned| buffer.text(0, 7);
            let mut packets = Packets::new((b"aabbccXYZ", &planned), (&[], &[]), 6, text_of);
            let mut all: Vec<_> = (0..taken).map_while(|_| packets.next().map(bytes_of)).collect();
            packets.for_each(|packet| all.push(bytes_of(packet)));
            assert_eq!(all, ["aa", "bb", "cc", "X012", "Y345", "Z6"]);
        }
    }
}
