//! Owned deliveries: the merged header and the original frames, moved out of the engine.
//!
//! Separate from [`delivery`](crate::delivery), whose views borrow the engine's store while the sink runs. An
//! owned delivery has no lifetime: it can be queued, sent to another thread, and awaited there. It provides the
//! same views, so a receiver handles owned and borrowed deliveries with the same code.
//!
//! ```text
//!   engine's store                          OwnedDelivery
//!   frames [a1|b1|a2|a3]  -- moved -->      frames [a1|a2|a3]
//!   header of a           -- copied -->     header
//! ```

use alloc::boxed::Box;

use rxo_frame::{Frame, FrameBuffer, Gather, Offload, VlanTag};

use crate::Kind;
use crate::acks::Acks;
use crate::aggregate::Aggregate;
use crate::delivery::{Deliveries, Delivery, Taken};
use crate::held::Held;
use crate::links::FrameChain;
use crate::merge::MergedHeader;
use crate::single::{Single, Starts};
use crate::slots::{IntoFrames, Slots};
use crate::store::{Ready, Store};

/// One delivery that owns its frames. It is `Send` if its buffers are.
///
/// [`OwnedDelivery::view`] returns the same view as the engine gives to a sink. `&OwnedDelivery` implements
/// [`Gather`], so every sink accepts it. A single frame is moved without an allocation. An aggregate, or a
/// delivery of several pure ACKs, takes two allocations, which [`Taken::store_in`](crate::Taken::store_in)
/// reuses. Compared with a sink that borrows, owning costs 61 more instructions per frame in aggregates of 32,
/// and 394 in aggregates of two (`W1-owned` and `W2-owned` of `cargo xtask bench instructions`).
///
/// # Examples
/// Sends deliveries to another thread:
/// ```
/// # let seed = 7;
/// use std::sync::mpsc;
///
/// use rxo_coalesce::{Config, Engine, OwnedDelivery, Policy};
/// use rxo_frame::{Frame, Gather, Instant};
///
/// let (queue, deliveries) = mpsc::channel::<OwnedDelivery<Vec<u8>>>();
/// let reader = std::thread::spawn(move || deliveries.iter().map(|one| one.byte_len()).sum::<usize>());
///
/// let mut engine = Engine::new(Config::new(Policy::linux_gro(), seed))?;
/// let mut batch = vec![Frame::new(vec![0; 60], Instant::ZERO)];
/// engine.poll(&mut batch, Instant::ZERO, |all| {
///     all.into_owned().for_each(|one| queue.send(one).expect("the reader waits"));
/// });
/// drop(queue);
/// assert_eq!(reader.join().ok(), Some(60));
/// # Ok::<(), rxo_frame::ConfigError>(())
/// ```
#[derive(Debug)]
pub struct OwnedDelivery<B: FrameBuffer> {
    /// The kind of the delivery. The slot or flow index inside this value is not used.
    ready: Ready,
    /// The frame of a single delivery.
    frame: Frame<B>,
    /// The frames of a delivery of several frames. Kept empty while the delivery is a single frame, so that
    /// its memory can be reused.
    many: Option<Box<Many<B>>>,
}

impl<'a, B: AsRef<[u8]>> Deliveries<'a, B> {
    /// Moves all deliveries out of the engine, in order. The owned deliveries outlive the call, so the caller
    /// can queue them or send them to another thread. Allocates twice for an aggregate or several pure ACKs,
    /// and not at all for a single frame.
    pub fn into_owned(mut self) -> impl Iterator<Item = OwnedDelivery<B>> + use<'a, B>
    where
        B: FrameBuffer + Default,
    {
        core::iter::from_fn(move || self.take_next().map(Taken::into_owned))
    }
}

impl<B: FrameBuffer + Default> Taken<'_, B> {
    /// Moves the delivery out of the engine, header and frames. An empty buffer replaces the buffer of each
    /// frame. Allocates twice for an aggregate or several pure ACKs, and not at all for a single frame.
    #[must_use]
    pub fn into_owned(self) -> OwnedDelivery<B> {
        let mut owned = OwnedDelivery::default();
        self.store_in(&mut owned);
        owned
    }

    /// Moves the delivery into `to` and drops the delivery that was there. Allocates only if `to` has never held
    /// so many frames. So a queue that reuses its entries soon stops allocating.
    pub fn store_in(self, to: &mut OwnedDelivery<B>) {
        to.replace(self.store, self.ready);
    }
}

/// Several frames in consecutive slots, and the engine's state for them.
#[derive(Debug)]
struct Many<B: FrameBuffer> {
    held: Held,
    header: MergedHeader,
    slots: Slots<B>,
}

impl<B: FrameBuffer + Default> Default for OwnedDelivery<B> {
    /// Creates an empty frame without memory; [`Taken::store_in`](crate::Taken::store_in) replaces it.
    fn default() -> Self {
        Self { ready: Ready::Frame(Starts::UNKNOWN, 0), frame: Frame::default(), many: None }
    }
}

impl<B: FrameBuffer> OwnedDelivery<B> {
    /// Returns the view that the engine gives to a sink. Neither copies nor allocates.
    #[inline]
    #[must_use]
    pub fn view(&self) -> Delivery<'_, B> {
        let at = match (self.ready, &self.many) {
            (Ready::Aggregate(_), Some(many)) => {
                let view = Aggregate::of(&many.slots, &many.held, &many.header);
                return Delivery::Aggregate(view);
            }
            (Ready::Acks(_), Some(many)) => {
                return Delivery::Acks(Acks::of(&many.slots, &many.held));
            }
            (Ready::Frame(at, _) | Ready::Intact(at, _), _) => at,
            (Ready::Aggregate(_) | Ready::Acks(_), None) => Starts::UNKNOWN,
        };
        Delivery::Frame(Single::new(&self.frame, at))
    }

    /// Returns `true` if the receiver need not verify checksums; see
    /// [`Taken::is_intact`](crate::Taken::is_intact).
    #[must_use]
    pub const fn is_intact(&self) -> bool {
        !matches!(self.ready, Ready::Frame(..))
    }

    /// Takes the original frames, in order, bit for bit as they arrived. Does not allocate.
    pub fn into_frames(self) -> impl Iterator<Item = Frame<B>> {
        let is_single = matches!(self.ready, Ready::Frame(..) | Ready::Intact(..));
        let many = self.many.map(|mut many| core::mem::take(&mut many.slots.frames));
        is_single.then_some(self.frame).into_iter().chain(many.into_iter().flatten())
    }

    /// Replaces this delivery by the delivery `ready` of `store`, and moves the frames out of `store`. The old
    /// frames are dropped.
    pub(crate) fn replace(&mut self, store: &mut Store<B>, ready: Ready)
    where
        B: Default,
    {
        self.ready = ready;
        if let Some(many) = &mut self.many {
            many.drop_frames();
        }
        let mut chain = store.chain_of(ready);
        match ready {
            Ready::Frame(..) | Ready::Intact(..) => {
                self.frame = store.take_first(&mut chain).unwrap_or_default();
            }
            Ready::Aggregate(flow) | Ready::Acks(flow) => {
                self.frame = Frame::default();
                let many = self.many.get_or_insert_with(Box::default);
                many.replace(store, usize::from(flow));
            }
        }
    }
}

impl<B: FrameBuffer> Default for Many<B> {
    fn default() -> Self {
        let (held, header) = (Held::BLANK, MergedHeader::EMPTY);
        Self { held, header, slots: Slots::side_by_side() }
    }
}

impl<B: FrameBuffer> Many<B> {
    /// Takes header and frames of `flow`. Pure ACKs have no merged header.
    fn replace(&mut self, store: &mut Store<B>, flow: usize)
    where
        B: Default,
    {
        self.held = store.held[flow];
        if self.held.kind() != Kind::PureAck {
            self.header = store.headers[flow];
        }
        let (chain, count) = (self.held.chain, self.held.segments);
        self.held.chain = FrameChain { head: 0, tail: count - 1 };
        let frames = &mut self.slots.frames;
        frames.reserve_exact(count as usize);
        frames.extend(IntoFrames::new(&mut store.slots, chain, count));
    }

    /// Returns the buffers to their owner, all at once if that is cheaper.
    fn drop_frames(&mut self) {
        let frames = &mut self.slots.frames;
        if B::RETURN_TOGETHER {
            B::drop_all(frames.drain(..).map(|frame| frame.bytes));
        } else {
            frames.clear();
        }
    }
}

impl<B: FrameBuffer> Drop for Many<B> {
    fn drop(&mut self) {
        self.drop_frames();
    }
}

impl<'a, B: FrameBuffer> Gather<'a> for &'a OwnedDelivery<B> {
    fn offload(self) -> Offload {
        self.view().offload()
    }

    fn vlan(self) -> Option<VlanTag> {
        self.view().vlan()
    }

    fn byte_len(self) -> usize {
        self.view().byte_len()
    }

    fn for_each_slice(self, visit: impl FnMut(&'a [u8])) {
        self.view().for_each_slice(visit);
    }

    fn frame_count(self) -> usize {
        self.view().frame_count()
    }

    fn for_each_frame(self, visit: impl FnMut(Frame<&'a [u8]>)) {
        self.view().for_each_frame(visit);
    }
}
