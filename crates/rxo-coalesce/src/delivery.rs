//! Deliveries: the interface between the engine and a sink.
//!
//! The sink receives deliveries in order, borrowed from the engine's store without a copy. The sink may take
//! ownership of the frames. All frames are the original ones, bit for bit.

use rxo_frame::{Frame, Gather, Offload, VlanTag};
use rxo_wire::{FlowKey, Offsets};

use crate::Kind;
use crate::acks::Acks;
use crate::aggregate::Aggregate;
use crate::links::{FrameChain, NONE};
use crate::single::Single;
use crate::slots::{ChainFrames, IntoFrames};
use crate::store::{Ready, Store};

/// The deliveries of one call to the sink, in order. Deliveries that the sink does not take are dropped when the
/// sink returns, which returns each buffer to its owner. While the engine holds other frames, it may return some
/// buffers only in a later call: at most one buffer for every eight held frames.
#[derive(Debug)]
pub struct Deliveries<'a, B> {
    store: &'a mut Store<B>,
    taken: usize,
}

impl<'a, B: AsRef<[u8]>> Deliveries<'a, B> {
    #[inline]
    pub(crate) const fn new(store: &'a mut Store<B>) -> Self {
        Self { store, taken: 0 }
    }

    /// Returns the number of deliveries that were not taken yet.
    #[must_use]
    pub fn len(&self) -> usize {
        self.store.ready.len() - self.taken
    }

    /// Returns `true` if all deliveries were taken.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Borrows the deliveries, in order. Does not allocate.
    #[inline]
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Delivery<'_, B>> {
        let store = &*self.store;
        store.ready[self.taken..].iter().map(move |ready| Delivery::new(store, *ready))
    }

    /// Takes the next delivery, so that the caller can own its frames. Returns `None` after the last.
    pub fn take_next(&mut self) -> Option<Taken<'_, B>> {
        let ready = *self.store.ready.get(self.taken)?;
        self.taken += 1;
        Some(Taken { store: self.store, ready })
    }

    /// Takes the original frames of all deliveries, in order. Each frame leaves an empty buffer behind, so
    /// `B` must have a default.
    pub fn into_frames(self) -> impl Iterator<Item = Frame<B>> + use<'a, B>
    where
        B: Default,
    {
        let Self { store, mut taken } = self;
        let mut chain = FrameChain::EMPTY;
        core::iter::from_fn(move || {
            while chain.head == NONE {
                chain = store.chain_of(*store.ready.get(taken)?);
                taken += 1;
            }
            store.take_first(&mut chain)
        })
    }
}

/// One delivery taken out of the engine.
#[derive(Debug)]
pub struct Taken<'a, B> {
    pub(crate) store: &'a mut Store<B>,
    pub(crate) ready: Ready,
}

impl<'a, B: AsRef<[u8]>> Taken<'a, B> {
    /// Borrows the delivery.
    #[must_use]
    pub fn view(&self) -> Delivery<'_, B> {
        Delivery::new(self.store, self.ready)
    }

    /// Returns `true` if the checksums of all frames of the delivery were verified or are trusted (see
    /// [`Config::trust_checksums`](crate::Config::trust_checksums)), so that the receiver need not verify
    /// them. Returns `false` if they were not verified, as for frames that bypass.
    #[must_use]
    pub const fn is_intact(&self) -> bool {
        !matches!(self.ready, Ready::Frame(..))
    }

    /// Takes the original frames, in order, bit for bit as they arrived.
    #[must_use]
    pub fn into_frames(self) -> IntoFrames<'a, B> {
        let (chain, count) = (self.store.chain_of(self.ready), self.store.count_of(self.ready));
        IntoFrames::new(&mut self.store.slots, chain, count)
    }
}

/// One delivery: a frame as it arrived, an aggregate of segments or datagrams, or several pure ACKs. A `Copy`
/// view.
#[derive(Debug)]
pub enum Delivery<'a, B> {
    /// A frame as it arrived.
    Frame(Single<'a, B>),
    /// Coalesced segments or datagrams.
    Aggregate(Aggregate<'a, B>),
    /// Pure ACKs of one flow.
    Acks(Acks<'a, B>),
}

impl<B> Clone for Delivery<'_, B> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<B> Copy for Delivery<'_, B> {}

impl<'a, B: AsRef<[u8]>> Delivery<'a, B> {
    #[inline]
    fn new(store: &'a Store<B>, ready: Ready) -> Self {
        match ready {
            Ready::Frame(at, slot) | Ready::Intact(at, slot) => {
                Self::Frame(Single::new(store.frame(slot), at))
            }
            Ready::Aggregate(index) => Self::Aggregate(Aggregate::new(store, index)),
            Ready::Acks(flow) => Self::Acks(Acks::new(store, flow)),
        }
    }

    /// Returns the kind of the delivery's packets; an aggregate contains data or datagrams.
    #[inline]
    #[must_use]
    pub fn kind(&self) -> Kind {
        match self {
            Self::Frame(single) => single.kind(),
            Self::Aggregate(aggregate) => aggregate.kind(),
            Self::Acks(_) => Kind::PureAck,
        }
    }

    /// Returns the offsets of headers and payload in the last frame of the delivery. IP and transport header
    /// have the same offsets in all its frames. `None` for a single frame whose [`Single::offsets`] are
    /// `None`.
    #[must_use]
    pub fn offsets(&self) -> Option<Offsets> {
        match self {
            Self::Frame(single) => single.offsets(),
            Self::Aggregate(aggregate) => Some(aggregate.offsets()),
            Self::Acks(acks) => acks.last_single().offsets(),
        }
    }

    /// Returns the flow to which all frames of the delivery belong. `None` for a single frame whose
    /// [`Single::offsets`] are `None`.
    #[must_use]
    pub fn flow_key(&self) -> Option<FlowKey> {
        match self {
            Self::Frame(single) => single.flow_key(),
            Self::Aggregate(aggregate) => Some(aggregate.flow_key()),
            Self::Acks(acks) => Some(acks.flow_key()),
        }
    }

    /// Returns the original frames, in order of arrival.
    pub fn frames(&self) -> impl Iterator<Item = &'a Frame<B>> + use<'a, B> {
        let (single, chain): (Option<&'a Frame<B>>, Option<ChainFrames<'a, B>>) = match self {
            Self::Frame(single) => (Some(single.frame()), None),
            Self::Aggregate(aggregate) => (None, Some(aggregate.frames())),
            Self::Acks(acks) => (None, Some(acks.frames())),
        };
        single.into_iter().chain(chain.into_iter().flatten())
    }
}

impl<'a, B: AsRef<[u8]>> Gather<'a> for Delivery<'a, B> {
    #[inline]
    fn offload(self) -> Offload {
        match self {
            Self::Frame(single) => single.frame().borrowed().offload(),
            Self::Aggregate(aggregate) => aggregate.offload(),
            Self::Acks(acks) => acks.last().borrowed().offload(),
        }
    }

    #[inline]
    fn vlan(self) -> Option<VlanTag> {
        match self {
            Self::Frame(single) => single.frame().vlan,
            Self::Aggregate(aggregate) => aggregate.vlan(),
            Self::Acks(acks) => acks.last().vlan,
        }
    }

    #[inline]
    fn byte_len(self) -> usize {
        match self {
            Self::Frame(single) => single.frame().bytes().len(),
            Self::Aggregate(aggregate) => {
                aggregate.header().len() + aggregate.payload_bytes() as usize
            }
            Self::Acks(acks) => acks.packet().len(),
        }
    }

    #[inline]
    fn for_each_slice(self, mut visit: impl FnMut(&'a [u8])) {
        match self {
            Self::Frame(single) => visit(single.frame().bytes()),
            Self::Aggregate(aggregate) => {
                visit(aggregate.header());
                aggregate.for_each_segment(|_frame, payload| visit(payload));
            }
            Self::Acks(acks) => visit(acks.packet()),
        }
    }

    #[inline]
    fn frame_count(self) -> usize {
        match self {
            Self::Frame(_) => 1,
            Self::Aggregate(aggregate) => aggregate.segment_count(),
            Self::Acks(acks) => acks.count(),
        }
    }

    fn for_each_frame(self, mut visit: impl FnMut(Frame<&'a [u8]>)) {
        self.frames().for_each(|frame| visit(frame.borrowed()));
    }
}
