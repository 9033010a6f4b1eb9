//! A delivery of several aggregated pure ACKs, as the receiver sees it.

use rxo_frame::{Frame, Instant};
use rxo_wire::tcp::AckRecord;
use rxo_wire::{FlowKey, IpVersion};

use crate::FlushReason;
use crate::held::Held;
use crate::merge;
use crate::single::Single;
use crate::slots::{ChainFrames, Slots};
use crate::store::Store;

/// Several pure ACKs of one flow, delivered together. A `Copy` view: the frames stay in the engine's store.
///
/// There are three ways to read it: only the last ACK, which is cumulative ([`Acks::packet`], the packet that a
/// sink writes); one record per ACK ([`Acks::records`]); or the original frames ([`Acks::frames`]).
#[derive(Debug)]
pub struct Acks<'a, B> {
    slots: &'a Slots<B>,
    held: &'a Held,
}

impl<B> Clone for Acks<'_, B> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<B> Copy for Acks<'_, B> {}

impl<'a, B: AsRef<[u8]>> Acks<'a, B> {
    #[inline]
    pub(crate) fn new(store: &'a Store<B>, flow: u16) -> Self {
        Self::of(&store.slots, &store.held[usize::from(flow)])
    }

    /// Creates the view of `held`, whose frames are in `slots`.
    #[inline]
    pub(crate) const fn of(slots: &'a Slots<B>, held: &'a Held) -> Self {
        Self { slots, held }
    }

    /// Returns the number of ACKs, two or more.
    #[inline]
    #[must_use]
    pub const fn count(&self) -> usize {
        self.held.segments as usize
    }

    /// Returns the frame of the last ACK, including any Ethernet padding.
    #[inline]
    #[must_use]
    pub fn last(&self) -> &'a Frame<B> {
        self.slots.frame(self.held.chain.tail)
    }

    /// Returns the last ACK, from its first link-layer byte to the end of its IP packet, without Ethernet
    /// padding.
    #[inline]
    #[must_use]
    pub fn packet(&self) -> &'a [u8] {
        self.packet_of(self.last())
    }

    /// Returns a record of each ACK, in order of arrival. Does not allocate.
    pub fn records(&self) -> impl Iterator<Item = AckRecord> + use<'a, B> {
        let view = *self;
        self.frames().filter_map(move |frame| view.record(frame))
    }

    /// Returns the original frames, in order of arrival.
    #[inline]
    pub fn frames(&self) -> ChainFrames<'a, B> {
        self.slots.chain(self.held.chain)
    }

    /// Returns the arrival time of the first ACK.
    #[must_use]
    pub const fn first_arrival(&self) -> Instant {
        self.held.first_arrival
    }

    /// Returns the arrival time of the last ACK.
    #[must_use]
    pub fn last_arrival(&self) -> Instant {
        self.last().arrived_at
    }

    /// Returns the flow to which all these ACKs belong.
    #[must_use]
    pub const fn flow_key(&self) -> FlowKey {
        self.held.key
    }

    /// Returns the reason for which the engine flushed these ACKs.
    #[must_use]
    pub const fn flush_reason(&self) -> FlushReason {
        self.held.reason
    }

    /// Returns the offset of the IP header, in bytes from the first link-layer byte; the same in each frame.
    #[must_use]
    pub fn network_at(&self) -> usize {
        usize::from(self.held.at.network())
    }

    /// Returns the offset of the TCP header, in bytes from the first link-layer byte; the same in each frame.
    #[must_use]
    pub fn transport_at(&self) -> usize {
        usize::from(self.held.at.transport())
    }

    /// Returns the last ACK as a single frame.
    #[inline]
    pub(crate) fn last_single(&self) -> Single<'a, B> {
        Single::new(self.last(), self.held.at)
    }

    fn packet_of(&self, frame: &'a Frame<B>) -> &'a [u8] {
        let (bytes, network) = (frame.bytes(), self.network_at());
        let end = network + merge::packet_bytes(bytes, network, self.held.version);
        bytes.get(..end).unwrap_or(bytes)
    }

    /// Returns the record of the ACK in `frame`; `None` for a frame that is too short, which the engine never
    /// holds.
    fn record(&self, frame: &'a Frame<B>) -> Option<AckRecord> {
        let bytes = frame.bytes();
        let traffic_class = match (self.held.version, bytes.get(self.network_at()..)?) {
            (IpVersion::V4, [_, tos, ..]) => *tos,
            (IpVersion::V6, [first, second, ..]) => first << 4 | second >> 4,
            _ => return None,
        };
        let segment = bytes.get(self.transport_at()..)?;
        AckRecord::read(segment, traffic_class, frame.arrived_at.as_nanos())
    }
}
