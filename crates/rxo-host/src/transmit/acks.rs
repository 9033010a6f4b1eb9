//! Acknowledgements that follow a first one: a template expanded, or each built by itself.

use rxo_ack::{AckNumbers, AckTemplate, IdRule};
use rxo_frame::{Frame, Instant};
use rxo_tcp::Transmit;
use rxo_wire::tcp::Timestamp;

use super::outbox::Outbox;
use super::shape::Path;

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
        if !self.shape.ack_templates || self.expand(start).is_none() {
            self.write_each(path, transmit, ids);
            return;
        }
        *ids = ids.wrapping_add(self.numbers.len() as u16);
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

    /// The same without a template, one by one.
    fn write_each(&mut self, path: &Path, transmit: &Transmit<'_>, ids: &mut u16) {
        for one in transmit.later() {
            if self.write(path, &one, *ids).is_ok() {
                *ids = ids.wrapping_add(1);
            }
        }
    }
}

/// TSval of a bare acknowledgement whose only option is a timestamp.
fn clock_of(transmit: &Transmit<'_>) -> u32 {
    match transmit.options.as_slice() {
        [1, 1, 8, 10, a, b, c, d, ..] => u32::from_be_bytes([*a, *b, *c, *d]),
        _ => 0,
    }
}
