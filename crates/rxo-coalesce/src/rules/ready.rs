//! Deliveries that wait for the sink.
//!
//! Frames move from the shelf into a store of the fast engine, in the order of delivery. So the sink gets the
//! same views as from the fast engine, and the frames of a delivery are in consecutive slots, as the store
//! requires.

use rxo_frame::{Frame, FrameBuffer};

use super::Run;
use super::shelf::{NO_PLACE, Shelf};
use crate::links::FrameChain;
use crate::single::Starts;
use crate::store::{Ready, Store};
use crate::{ChecksumForm, Deliveries, FlushReason, Held};

#[derive(Debug)]
pub(super) struct Outgoing<B>(Store<B>);

impl<B: FrameBuffer> Outgoing<B> {
    /// Creates a queue for the deliveries of up to `frames` frames. Allocates all memory.
    pub(super) fn new(frames: usize) -> Self {
        Self(Store::new(frames, 0, 0))
    }

    /// Adds a frame as it arrived, whose headers begin at `at`. `is_intact` is `true` if its checksum is
    /// right or trusted.
    pub(super) fn push_frame(&mut self, frame: Frame<B>, at: Starts, is_intact: bool) {
        let slot = self.push(frame);
        self.0.ready.push(if is_intact { Ready::Intact(at, slot) } else { Ready::Frame(at, slot) });
    }

    /// Moves the segments of `run` from `shelf` to the queue, as one delivery.
    pub(super) fn push_run(&mut self, run: &Run, shelf: &mut Shelf<B>, reason: FlushReason) {
        let (head, mut place) = (self.0.end(), run.first);
        while place != NO_PLACE
            && let Some((frame, after)) = shelf.take(place)
        {
            self.push(frame);
            place = if place == run.last { NO_PLACE } else { after };
        }
        let tail = self.0.end().saturating_sub(1);
        if run.held.segments == 1 {
            return self.0.ready.push(Ready::Intact(run.held.at, head));
        }
        let index = self.0.reserve_index();
        let chain = FrameChain { head, tail };
        self.0.held[usize::from(index)] = Held { chain, reason, ..run.held };
        self.0.ready.push(Ready::Aggregate(index));
    }

    fn push(&mut self, frame: Frame<B>) -> u32 {
        let slot = self.0.slots.frames.len();
        self.0.slots.frames.push(frame);
        self.0.slots.links.take_in(slot, slot + 1);
        slot as u32
    }

    /// Passes all deliveries to `sink`, with merged headers in `form`, and then drops the frames that the sink
    /// did not take.
    pub(super) fn deliver(&mut self, form: ChecksumForm, sink: &mut impl FnMut(Deliveries<'_, B>)) {
        if !self.0.ready.is_empty() {
            self.0.write_headers(form);
            sink(Deliveries::new(&mut self.0));
            self.0.clear();
        }
    }
}
