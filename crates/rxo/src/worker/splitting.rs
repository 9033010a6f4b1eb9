//! Splitting of stretch ACKs, which involves both directions of a worker.
//!
//! This module is separate because both directions use the splitter: the direction to the host reports deliveries to
//! the splitter, and the direction to the nic asks the splitter for the ACKs to insert before a frame. Inserted ACKs
//! are written into preallocated slots, and are sent in the same batch as the frame that they precede.

use rxo_ack::{AckSlot, Delivered, MAX_ACKS_PER_STRETCH, SplitConfig, SplitCounters, Splitter};
use rxo_coalesce::{Aggregate, Delivery, OptionRule, PayloadRule, Policy};
use rxo_device::{DeviceError, FrameSink};
use rxo_frame::{ConfigError, Frame};
use rxo_wire::TcpFlags;
use rxo_wire::tcp::FLAGS_AT;

use super::WorkerConfig;

/// The splitter of stretch ACKs, and the memory for inserted ACKs.
pub(super) struct Splitting {
    splitter: Splitter,
    /// `true` if the policy only builds aggregates of equal segments, so that one header describes all segments of an
    /// aggregate.
    are_alike: bool,
    slots: Vec<AckSlot>,
    leaving: Vec<Leaving>,
}

/// A frame of a batch that is about to be sent to the nic: one of the host's frames, or an inserted ACK.
#[derive(Clone, Copy)]
enum Leaving {
    /// A frame that came from the host, by its index in the batch.
    Host(usize),
    /// An inserted ACK: its slot, and the index of the host's frame that it precedes.
    Inserted { slot: usize, like: usize },
}

/// The number of slots for inserted ACKs. If too few slots are free for a stretch ACK, the part of the batch before
/// that ACK is sent first.
const SLOTS: usize = 1_024;

impl Splitting {
    /// Creates the splitter by `config`; `None` if ACK splitting is off.
    pub(super) fn new(config: &WorkerConfig) -> Result<Option<Self>, ConfigError> {
        let Some(every) = config.ack_split else { return Ok(None) };
        let (link, seed) = (config.engine.link, config.engine.seed);
        let splitter = Splitter::new(SplitConfig { every, link, ..SplitConfig::new(seed) })?;
        Ok(Some(Self {
            splitter,
            are_alike: are_alike(&config.engine.policy),
            slots: vec![AckSlot::EMPTY; SLOTS],
            leaving: Vec::with_capacity(config.host_budget_frames + SLOTS),
        }))
    }

    pub(super) fn counters(&self) -> SplitCounters {
        self.splitter.counters()
    }

    /// Records in the splitter the boundaries of the segments in a delivery to the host.
    pub(super) fn deliver<B: AsRef<[u8]>>(&mut self, delivery: Delivery<'_, B>) {
        match delivery {
            // ACKs inside a tunnel are not split.
            Delivery::Aggregate(aggregate) if aggregate.tunnel().is_some() => {}
            Delivery::Aggregate(aggregate) if self.are_alike => {
                if let Some(delivered) = delivered(&aggregate) {
                    self.splitter.delivered(&aggregate.flow_key(), &delivered);
                }
            }
            Delivery::Frame(_) | Delivery::Aggregate(_) => {
                let frames = delivery.frames();
                frames.for_each(|frame| self.splitter.delivered_frame(frame.borrowed()));
            }
            // Pure ACKs are not acknowledged.
            Delivery::Acks(_) => {}
        }
    }

    /// Records in the splitter that `frame` was delivered to the host without passing the engine.
    pub(super) fn deliver_frame<B: AsRef<[u8]>>(&mut self, frame: &Frame<B>) {
        self.splitter.delivered_frame(frame.borrowed());
    }

    /// Sends a batch from the host to `sink`, with ACKs inserted before the frames that they precede.
    ///
    /// # Errors
    /// The first failure of the sink, which counts packets that it cannot send as dropped.
    pub(super) fn transmit<B: AsRef<[u8]>>(
        &mut self,
        batch: &[Frame<B>],
        sink: &mut impl FrameSink,
    ) -> Result<(), DeviceError> {
        let (mut used, mut result) = (0, Ok(()));
        for (place, frame) in batch.iter().enumerate() {
            if used + MAX_ACKS_PER_STRETCH > self.slots.len() {
                result = result.and(self.send(batch, sink));
                used = 0;
            }
            used += self.insert_before(place, frame.borrowed(), used);
            self.leaving.push(Leaving::Host(place));
        }
        let sent = self.send(batch, sink);
        result.and(sent)
    }

    /// Writes the ACKs to insert before `frame` into the slots, starting at index `used`. Returns the number
    /// of slots that they use.
    fn insert_before(&mut self, place: usize, frame: Frame<&[u8]>, used: usize) -> usize {
        let Some(template) = self.splitter.split(frame) else { return 0 };
        // The caller has ensured that slots are free. Without free slots the host's own ACK is still sent.
        let expanded = self.slots.get_mut(used..).map(|slots| template.expand(slots));
        let count = expanded.and_then(Result::ok).map_or(0, |expanded| expanded.len());
        let slots = (used..used + count).map(|slot| Leaving::Inserted { slot, like: place });
        self.leaving.extend(slots);
        count
    }

    fn send<B: AsRef<[u8]>>(
        &mut self,
        batch: &[Frame<B>],
        sink: &mut impl FrameSink,
    ) -> Result<(), DeviceError> {
        let slots = &self.slots;
        let frames = self.leaving.iter().map(|leaving| match *leaving {
            Leaving::Host(place) => batch[place].borrowed(),
            Leaving::Inserted { slot, like } => slots[slot].frame_like(batch[like].borrowed()),
        });
        let sent = if frames.len() == 0 { Ok(()) } else { sink.transmit(frames) };
        self.leaving.clear();
        sent
    }
}

/// Returns `true` if `policy` only coalesces segments that have equal length and the same TSval.
fn are_alike(policy: &Policy) -> bool {
    policy.payload == PayloadRule::SameThenShorter && policy.options == OptionRule::Identical
}

fn delivered<B: AsRef<[u8]>>(aggregate: &Aggregate<'_, B>) -> Option<Delivered> {
    let first = aggregate.segments().next()?;
    let flags = aggregate.header().get(aggregate.transport_at() + FLAGS_AT).copied();
    Some(Delivered {
        seq: first.seq,
        payload_bytes: aggregate.payload_bytes(),
        segment_bytes: aggregate.gso_size(),
        tsval: first.timestamp.map(|timestamp| timestamp.value),
        fin: flags.is_some_and(|bits| TcpFlags::from_bits(bits.into()).contains(TcpFlags::FIN)),
    })
}
