//! Sends several ACKs of one connection. The first ACK is written in full. The later ACKs are passed to the
//! device as a template, or the host expands them from the first ACK, or builds each of them separately.

use std::num::NonZeroU16;

use rxo_ack::{
    AckNumbers, AckTemplate, AckWriter, IdRule, MOST_PACKED_NUMBERS, PACKED_NUMBERS_BYTES,
};
use rxo_frame::{Frame, Gso, GsoKind, Instant};
use rxo_tcp::Transmit;
use rxo_wire::tcp::Timestamp;

use super::batch::Kind;
use super::headers::MOST_HEADERS_BYTES;
use super::outbox::Outbox;
use super::shape::Path;
use super::template::Template;
use crate::stages::Stage;

impl Outbox {
    /// Adds all ACKs of `transmit` except the first, which begins at offset `start` of the arena.
    pub(super) fn push_later(
        &mut self,
        path: &Path,
        transmit: &Transmit<'_>,
        start: usize,
        ids: &mut u16,
    ) {
        let has_templates = self.shape.ack_templates;
        let hands_over = has_templates && self.shape.expands_acks;
        let is_done = hands_over && self.hand_over(transmit, start).is_some()
            || has_templates && self.expand(transmit, start).is_some();
        if is_done {
            *ids = ids.wrapping_add(transmit.later_acks.len() as u16);
        } else {
            self.write_each(path, transmit, ids);
        }
    }

    /// Turns the last packet into a template that the device expands. Returns `None`, without any change, if
    /// the packet cannot be a template.
    fn hand_over(&mut self, transmit: &Transmit<'_>, start: usize) -> Option<()> {
        self.numbers.clear();
        self.numbers.extend(numbers_of(transmit));
        let planned = self.planned.last_mut()?;
        let (first, link, checksum) =
            (self.arena.get(start..)?, self.shape.link, planned.offload.checksum);
        let (frame_bytes, later) = (first.len(), self.numbers.len());
        let frame = Frame { checksum, ..Frame::new(first, Instant::ZERO) };
        let template = AckTemplate::new(frame, link, &self.numbers, IdRule::Increment).ok()?;
        if later > MOST_PACKED_NUMBERS || !checksum.is_partial() {
            return None;
        }
        let count = template.count();
        self.arena.extend(self.numbers.iter().flat_map(|numbers| numbers.to_packed()));
        planned.bytes += later * PACKED_NUMBERS_BYTES;
        planned.head_bytes += later * PACKED_NUMBERS_BYTES;
        planned.kind = Kind::Template;
        planned.offload.gso = Some(GSO);
        self.templates.push(Template::new(link, frame_bytes, count));
        Some(())
    }

    /// Writes the later ACKs by expanding the first ACK, which is the last packet. Returns `None`, without any
    /// change, if that packet cannot be a template.
    fn expand(&mut self, transmit: &Transmit<'_>, start: usize) -> Option<()> {
        self.watch.switch(Stage::Expand);
        let done = self.write_like(transmit, start);
        self.watch.switch(Stage::Serve);
        done
    }

    /// Writes the later ACKs as copies of the last packet, each with its own ACK number, window and timestamp.
    /// Returns `None`, without any change, if the last packet cannot be a template. Not inlined, because an
    /// inlined loop would run out of registers.
    #[inline(never)]
    fn write_like(&mut self, transmit: &Transmit<'_>, start: usize) -> Option<()> {
        let offload = self.planned.last()?.offload;
        let (head_bytes, count) = (self.arena.len() - start, transmit.later_acks.len());
        let mut first = [0; MOST_HEADERS_BYTES];
        let first = first.get_mut(..head_bytes)?;
        first.copy_from_slice(self.arena.get(start..)?);
        let frame = Frame { checksum: offload.checksum, ..Frame::new(&*first, Instant::ZERO) };
        let mut writer = AckWriter::new(frame, self.shape.link, IdRule::Increment).ok()?;
        let end = self.arena.len();
        self.arena.resize(end + count * head_bytes, 0);
        let places = self.arena.get_mut(end..)?.chunks_exact_mut(head_bytes);
        places.zip(numbers_of(transmit)).for_each(|(to, numbers)| writer.write(&numbers, to));
        self.plan(count, head_bytes, offload);
        Some(())
    }

    /// Writes the later ACKs one by one, without a template.
    fn write_each(&mut self, path: &Path, transmit: &Transmit<'_>, ids: &mut u16) {
        for one in transmit.later() {
            if self.write(path, &one, *ids).is_ok() {
                *ids = ids.wrapping_add(1);
            }
        }
    }
}

/// The GSO descriptor of a template. Its segment size is the length of one ACK's entry in the template, so that
/// a device can bound the number of ACKs.
const GSO: Gso = Gso::new(GsoKind::AckTemplate, NUMBERS_BYTES);

const NUMBERS_BYTES: NonZeroU16 = NonZeroU16::new(PACKED_NUMBERS_BYTES as u16).unwrap();

/// Returns the ACK number, window and timestamp of each ACK after the first.
fn numbers_of(transmit: &Transmit<'_>) -> impl Iterator<Item = AckNumbers> {
    let value = clock_of(transmit);
    transmit.later_acks.iter().map(move |pending| AckNumbers {
        ack: pending.ack,
        window: pending.window,
        timestamp: Timestamp { value, echo: pending.echo },
    })
}

/// Returns the TSval of an ACK whose only option is a timestamp; 0 without a timestamp.
fn clock_of(transmit: &Transmit<'_>) -> u32 {
    match transmit.options.as_slice() {
        [1, 1, 8, 10, a, b, c, d, ..] => u32::from_be_bytes([*a, *b, *c, *d]),
        _ => 0,
    }
}
