//! Acknowledgements that follow a first one: a template for the device, a template expanded here, or each
//! built by itself.

use std::num::NonZeroU16;

use rxo_ack::{AckNumbers, AckTemplate, IdRule, MOST_PACKED_NUMBERS, PACKED_NUMBERS_BYTES};
use rxo_frame::{Frame, Gso, GsoKind, Instant};
use rxo_tcp::Transmit;
use rxo_wire::tcp::Timestamp;

use super::batch::Kind;
use super::outbox::Outbox;
use super::shape::Path;
use super::template::Template;

impl Outbox {
    /// The acknowledgements after the first, which begins at `start` in the arena.
    pub(super) fn push_later(
        &mut self,
        path: &Path,
        transmit: &Transmit<'_>,
        start: usize,
        ids: &mut u16,
    ) {
        self.numbers.clear();
        let value = clock_of(transmit);
        self.numbers.extend(transmit.later_acks.iter().map(|owed| AckNumbers {
            ack: owed.ack,
            window: owed.window,
            timestamp: Timestamp { value, echo: owed.echo },
        }));
        if !self.shape.ack_templates
            || self.hand_over(start).or_else(|| self.expand(start)).is_none()
        {
            self.write_each(path, transmit, ids);
            return;
        }
        *ids = ids.wrapping_add(self.numbers.len() as u16);
    }

    /// Makes the last packet a template for the device; `None`, and changes nothing, if the device does not
    /// expand it or it is no template.
    fn hand_over(&mut self, start: usize) -> Option<()> {
        let planned = self.planned.last_mut().filter(|_| self.shape.expands_acks)?;
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

    /// Expands the template whose first is the last packet; `None` when it is no template.
    fn expand(&mut self, start: usize) -> Option<()> {
        let offload = self.planned.last()?.offload;
        let first = self.arena.get(start..)?;
        let frame = Frame { checksum: offload.checksum, ..Frame::new(first, Instant::ZERO) };
        let template =
            AckTemplate::new(frame, self.shape.link, &self.numbers, IdRule::Increment).ok()?;
        if self.slots.len() < template.count() {
            self.slots.resize(template.count(), rxo_ack::AckSlot::EMPTY);
        }
        let expanded = template.expand(&mut self.slots).ok()?;
        let head_bytes = first.len();
        for later in expanded.iter().skip(1) {
            self.arena.extend_from_slice(later.bytes);
        }
        let count = self.numbers.len();
        self.plan(count, head_bytes, offload);
        Some(())
    }

    /// Writes them one by one, without a template.
    fn write_each(&mut self, path: &Path, transmit: &Transmit<'_>, ids: &mut u16) {
        for one in transmit.later() {
            if self.write(path, &one, *ids).is_ok() {
                *ids = ids.wrapping_add(1);
            }
        }
    }
}

/// How a template is marked. The size is that of each ACK's numbers, so that a device can bound their count.
const GSO: Gso = Gso { kind: GsoKind::AckTemplate, ecn: false, size: NUMBERS_BYTES };

const NUMBERS_BYTES: NonZeroU16 = NonZeroU16::new(PACKED_NUMBERS_BYTES as u16).unwrap();

/// TSval of a bare acknowledgement whose only option is a timestamp.
fn clock_of(transmit: &Transmit<'_>) -> u32 {
    match transmit.options.as_slice() {
        [1, 1, 8, 10, a, b, c, d, ..] => u32::from_be_bytes([*a, *b, *c, *d]),
        _ => 0,
    }
}
