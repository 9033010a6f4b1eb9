//! A network card in memory, for counts and virtual time: a ring of received frames, and a queue of sent
//! frames.
//!
//! Like a hardware card, it marks checksums as verified, segments GSO frames, and reads their payload at no
//! cost to the host; only headers are kept. A frame that the host keeps is copied from the ring into a pool
//! buffer, as with `virtio:`; the fast path reads a frame inside the ring.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use rxo::{ChecksumStatus, DeviceError, Frame, FrameSink, FrameSource, Gather, Instant, LinkKind};
use rxo_device::{
    Look, Looked, SinkCapabilities, SinkCounters, SourceCapabilities, SourceCounters, Verdict,
};
use rxo_frame::{Pool, PoolBuf};

/// A handle on the card. Clones refer to the same card.
#[derive(Clone, Debug)]
pub(super) struct Card(Rc<RefCell<Rings>>);

#[derive(Debug)]
struct Rings {
    pool: Pool,
    slots: Vec<Slot>,
    /// Number of frames put into the ring; the next field counts frames taken out.
    put: usize,
    taken: usize,
    /// Received frames for which the ring has no free slot.
    waiting: VecDeque<Slot>,
    sent: VecDeque<Sent>,
    now: Instant,
    received: u64,
    handed_over: u64,
    segments: u64,
}

/// A received frame in the ring.
#[derive(Clone, Copy, Debug)]
struct Slot {
    bytes: [u8; SLOT_BYTES],
    length: usize,
}

/// A frame that the host has sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sent {
    /// First bytes of the frame, which contain all headers.
    pub(super) headers: [u8; SLOT_BYTES],
    /// Time at which the frame was handed to the card.
    pub(super) at: Instant,
}

impl Card {
    pub(super) fn new() -> Self {
        let slots = vec![Slot { bytes: [0; SLOT_BYTES], length: 0 }; SLOTS];
        Self(Rc::new(RefCell::new(Rings {
            pool: Pool::new(SLOTS, SLOT_BYTES),
            slots,
            put: 0,
            taken: 0,
            waiting: VecDeque::new(),
            sent: VecDeque::new(),
            now: Instant::ZERO,
            received: 0,
            handed_over: 0,
            segments: 0,
        })))
    }

    /// Receives a frame; it waits while the ring is full.
    pub(super) fn arrive(&self, frame: &[u8]) {
        let mut slot = Slot { bytes: [0; SLOT_BYTES], length: frame.len().min(SLOT_BYTES) };
        slot.bytes[..slot.length].copy_from_slice(&frame[..slot.length]);
        let mut rings = self.0.borrow_mut();
        rings.waiting.push_back(slot);
        rings.fill();
    }

    /// Sets the time of frames handed to the card from now on. Waiting frames move into free slots.
    pub(super) fn set_now(&self, now: Instant) {
        let mut rings = self.0.borrow_mut();
        rings.now = now;
        rings.fill();
    }

    /// Returns `true` if the ring has frames that the host has not taken.
    pub(super) fn has_arrived(&self) -> bool {
        let rings = self.0.borrow();
        rings.put != rings.taken
    }

    /// Returns the number of segments that the host has sent.
    pub(super) fn segments(&self) -> u64 {
        self.0.borrow().segments
    }

    /// Takes the next sent frame out of the queue; `None` if it is empty.
    pub(super) fn take(&self) -> Option<Sent> {
        self.0.borrow_mut().sent.pop_front()
    }

    /// Returns the time at which the next sent frame was handed to the card; `None` if there is none.
    pub(super) fn handed_over_at(&self) -> Option<Instant> {
        self.0.borrow().sent.front().map(|sent| sent.at)
    }
}

impl Rings {
    fn fill(&mut self) {
        while self.put - self.taken < SLOTS
            && let Some(slot) = self.waiting.pop_front()
        {
            self.slots[self.put % SLOTS] = slot;
            self.put += 1;
        }
    }
}

impl Slot {
    fn frame(&self, now: Instant) -> Frame<&[u8]> {
        let bytes = &self.bytes[..self.length];
        Frame { checksum: ChecksumStatus::Verified, ..Frame::new(bytes, now) }
    }
}

impl FrameSource for Card {
    type Buffer = PoolBuf;

    fn capabilities(&self) -> SourceCapabilities {
        let link = LinkKind::Ethernet;
        SourceCapabilities { link, mtu: MTU, gives_gso: false }
    }

    fn receive(
        &mut self,
        batch: &mut Vec<Frame<PoolBuf>>,
        budget: usize,
    ) -> Result<usize, DeviceError> {
        let looked = self.receive_past(batch, budget, &mut |_| Verdict::Fallback)?;
        Ok(looked.given)
    }

    fn receive_past(
        &mut self,
        batch: &mut Vec<Frame<PoolBuf>>,
        budget: usize,
        look: Look<'_>,
    ) -> Result<Looked, DeviceError> {
        let rings = &mut *self.0.borrow_mut();
        let mut looked = Looked::default();
        while looked.frames() < budget && rings.taken < rings.put {
            let slot = &rings.slots[rings.taken % SLOTS];
            let frame = slot.frame(rings.now);
            if look(frame) == Verdict::Consumed {
                looked.consume_in_place();
            } else {
                let Some(mut buffer) = rings.pool.take() else { break };
                buffer.set_len(slot.length);
                buffer.copy_from_slice(frame.bytes);
                batch.push(frame.with_bytes(buffer));
                looked.given += 1;
            }
            rings.taken += 1;
        }
        rings.received += looked.frames() as u64;
        Ok(looked)
    }

    fn counters(&mut self) -> SourceCounters {
        SourceCounters { frames: self.0.borrow().received, ..SourceCounters::default() }
    }
}

impl FrameSink for Card {
    fn capabilities(&self) -> SinkCapabilities {
        let with_gso = SinkCapabilities::with_gso(LinkKind::Ethernet, MTU);
        SinkCapabilities { segments_udp: false, ..with_gso }
    }

    fn transmit<'a, G: Gather<'a>>(
        &mut self,
        batch: impl ExactSizeIterator<Item = G>,
    ) -> Result<(), DeviceError> {
        let rings = &mut *self.0.borrow_mut();
        for packet in batch {
            let mut headers = [0; SLOT_BYTES];
            let mut to = &mut headers[..];
            packet.for_each_slice(|piece| {
                let bytes = piece.len().min(to.len());
                let (place, rest) = std::mem::take(&mut to).split_at_mut(bytes);
                place.copy_from_slice(&piece[..bytes]);
                to = rest;
            });
            rings.sent.push_back(Sent { headers, at: rings.now });
            rings.handed_over += 1;
            rings.segments += packet.frame_count() as u64;
        }
        Ok(())
    }

    fn counters(&self) -> SinkCounters {
        SinkCounters { packets: self.0.borrow().handed_over, ..SinkCounters::default() }
    }
}

const MTU: u32 = 1_500;
/// Slots of the ring, as in a hardware card. Further frames wait on the link.
const SLOTS: usize = 1_024;
const SLOT_BYTES: usize = 128;
