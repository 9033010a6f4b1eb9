//! Measures the expansion of a template into slots that were written long ago, as in a worker's arena.

use std::hint::black_box;

use rxo_ack::{AckNumbers, AckSlot, AckTemplate, IdRule};
use rxo_frame::{Frame, LinkKind};
use rxo_testkit::seg;
use rxo_wire::SeqNumber;
use rxo_wire::tcp::Timestamp;

use super::Work;

/// Target in nanoseconds per expanded ACK.
pub(super) const TARGET_NS: f64 = 15.0;
/// Number of ACKs in a pass, and of slots: 192 KiB, more than a first-level cache.
const ACKS: usize = 2_048;
/// Bytes that each ACK covers: two full segments with timestamps.
const STEP_BYTES: u32 = 2 * 1_448;

/// A template: its options and link layer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Expand {
    v6: bool,
    has_timestamp: bool,
    acks: usize,
}

impl Expand {
    pub(super) fn all() -> impl Iterator<Item = Self> {
        let kinds = [(false, true), (false, false), (true, true), (true, false)];
        kinds
            .into_iter()
            .flat_map(|(v6, has_timestamp)| [2, 8, 32].map(|acks| Self { v6, has_timestamp, acks }))
    }

    pub(super) fn name(self) -> String {
        let version = if self.v6 { "v6" } else { "v4" };
        let options = if self.has_timestamp { "-ts" } else { "" };
        format!("expand-{version}{options}-{}", self.acks)
    }

    pub(super) fn work(self) -> Expanding {
        let packet = seg().pure_ack().ack(1).id(1);
        let packet = if self.v6 { packet.v6() } else { packet };
        let packet = if self.has_timestamp { packet.ts(1, 1) } else { packet };
        let numbers = |index| AckNumbers {
            ack: SeqNumber(1 + index * STEP_BYTES),
            window: 500,
            timestamp: Timestamp { value: 1, echo: index },
        };
        Expanding {
            first: packet.frame(),
            later: (1..self.acks as u32).map(numbers).collect(),
            memory: vec![AckSlot::EMPTY; ACKS],
        }
    }
}

/// Expands the same template repeatedly, until the slots are full.
pub(super) struct Expanding {
    first: Frame<Vec<u8>>,
    later: Vec<AckNumbers>,
    memory: Vec<AckSlot>,
}

impl Work for Expanding {
    fn prepare(&mut self) {}

    fn pass(&mut self) {
        let (first, later) = (self.first.borrowed(), &self.later[..]);
        let template = AckTemplate::new(first, LinkKind::Ethernet, later, IdRule::Increment)
            .expect("a pure ACK");
        for slots in self.memory.chunks_exact_mut(template.count()) {
            let expanded = black_box(&template).expand(slots).expect("a slot for each");
            black_box(expanded);
        }
    }

    fn items(&self) -> usize {
        ACKS
    }
}
