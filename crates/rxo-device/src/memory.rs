//! A link in memory: its source provides the packets that its sink accepted. Tests may also take packets
//! directly.
//!
//! The link implements the traits of a device without system calls. Contract: the link is bounded; it drops and
//! counts packets beyond its capacity, like a device with a full ring. It keeps all metadata that the sink
//! received. It reads no clock.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rxo_frame::{Frame, Gather, Instant, LinkKind, Load, Offload, VlanTag};

use crate::{
    DeviceError, FrameSink, FrameSource, Look, Looked, SinkCapabilities, SinkCounters,
    SourceCapabilities, SourceCounters, Verdict,
};

#[cfg(test)]
mod tests;

/// The settings of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryOptions {
    /// The header with which each packet begins.
    pub link: LinkKind,
    /// The size of the largest IP packet without segmentation, in bytes. The link reports this size, but also
    /// accepts larger packets.
    pub mtu: u32,
    /// The largest GSO frame as an IP packet, in bytes; 0 for a link that accepts none.
    pub gso_bytes: u32,
    /// `true` if the link accepts UDP GSO frames.
    pub segments_udp: bool,
    /// `true` if the link accepts GSO frames in tunnels over UDP.
    pub segments_tunnels: bool,
    /// The capacity of the link, in packets.
    pub most_packets: usize,
    /// `true` if the link reports that it expands ACK templates. The link stores the templates unexpanded.
    pub expands_acks: bool,
}

impl Default for MemoryOptions {
    fn default() -> Self {
        Self {
            link: LinkKind::Ethernet,
            mtu: 1_500,
            gso_bytes: 65_535,
            segments_udp: false,
            segments_tunnels: false,
            most_packets: 1_024,
            expands_acks: false,
        }
    }
}

/// A packet in the link, with the metadata that the sink received.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// The bytes of the packet: all pieces, concatenated.
    pub bytes: Vec<u8>,
    /// The checksum status and segmentation metadata of the packet.
    pub offload: Offload,
    /// The VLAN tag of the packet, if it is in the metadata instead of the bytes.
    pub vlan: Option<VlanTag>,
    /// The number of original frames in the packet.
    pub frames: usize,
    /// The number of pieces in which the sink received the packet.
    pub pieces: usize,
    /// The time of sending, as set by [`MemoryLink::set_now`].
    pub sent_at: Instant,
}

/// A link in memory. A clone is another handle to the same link; handles may be used from any thread.
#[derive(Clone, Debug)]
pub struct MemoryLink {
    options: MemoryOptions,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    packets: VecDeque<Sent>,
    now: Instant,
    is_gone: bool,
    /// The number of calls of [`MemoryLink::replace_peer`], each of which simulates a replaced peer.
    peers_gone: u64,
    refuses_aggregates: bool,
    /// The number of packets that the simulated device still accepts; `None` for no limit.
    room: Option<usize>,
    /// Packets that wait until the simulated device accepts more.
    kept: VecDeque<Sent>,
    /// The simulated device refuses every packet whose number is divisible by this value; 0 for none.
    refuse_every: usize,
    offered: usize,
    sent: SinkCounters,
    received: SourceCounters,
}

impl MemoryLink {
    /// Creates an empty link.
    #[must_use]
    pub fn new(options: MemoryOptions) -> Self {
        Self { options, state: Arc::default() }
    }

    /// Returns a sink that puts packets into the link.
    #[must_use]
    pub fn sink(&self) -> MemorySink {
        MemorySink { link: self.clone() }
    }

    /// Returns a source that takes packets from the link. With several sources, each packet is received by one
    /// of them.
    #[must_use]
    pub fn source(&self) -> MemorySource {
        MemorySource { link: self.clone() }
    }

    /// Puts a frame into the link, without a sink. If the link is full, the frame counts as a ring drop.
    pub fn push<B: AsRef<[u8]>>(&self, frame: &Frame<B>) {
        let mut state = self.lock();
        if state.packets.len() == self.options.most_packets {
            state.received.ring_drops += 1;
        } else {
            let sent = Sent::new(frame.borrowed(), frame.arrived_at);
            state.packets.push_back(sent);
        }
    }

    /// Removes and returns the oldest packet, without a source; `None` if the link is empty.
    #[must_use]
    pub fn take(&self) -> Option<Sent> {
        self.lock().packets.pop_front()
    }

    /// Removes and returns all packets, without a source, the oldest first.
    #[must_use]
    pub fn take_all(&self) -> Vec<Sent> {
        self.lock().packets.drain(..).collect()
    }

    /// Sets the time that is recorded for packets sent from now on.
    pub fn set_now(&self, now: Instant) {
        self.lock().now = now;
    }

    /// Simulates, from now on, a system that refuses aggregates: the sink sends their original frames, and
    /// drops a GSO frame that is not an aggregate.
    pub fn refuse_aggregates(&self) {
        self.lock().refuses_aggregates = true;
    }

    /// Simulates, from now on, a device that accepts `packets` more packets; `None` for no limit. The sink
    /// keeps later packets, up to the capacity of the link.
    pub fn set_room(&self, packets: Option<usize>) {
        self.lock().room = packets;
    }

    /// Simulates, from now on, a device that refuses one packet of `every`; 0 for none. The sink then sends the
    /// original frames of a refused aggregate. The device counts each of these frames as a packet, so it may
    /// refuse some of them, too.
    pub fn refuse_every(&self, every: usize) {
        self.lock().refuse_every = every;
    }

    /// Returns the number of packets in the link.
    #[must_use]
    pub fn packets(&self) -> usize {
        self.lock().packets.len()
    }

    /// Returns `true` if the source of the link has neither a packet nor an error to return.
    #[must_use]
    pub fn is_silent(&self) -> bool {
        let state = self.lock();
        state.packets.is_empty() && !state.is_gone
    }

    /// Simulates, from now on, a removed device. The source still returns the packets in the link.
    pub fn vanish(&self) {
        self.lock().is_gone = true;
    }

    /// Simulates that another machine replaces the other side of the device.
    pub fn replace_peer(&self) {
        self.lock().peers_gone += 1;
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A panic cannot leave the state half changed, so a poisoned lock is safe to use.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Sent {
    fn new<'a, G: Gather<'a>>(packet: G, sent_at: Instant) -> Self {
        let (offload, vlan, frames) = (packet.offload(), packet.vlan(), packet.frame_count());
        let mut bytes = Vec::with_capacity(packet.byte_len());
        let mut pieces = 0;
        packet.for_each_slice(|slice| {
            bytes.extend_from_slice(slice);
            pieces += 1;
        });
        Self { bytes, offload, vlan, frames, pieces, sent_at }
    }

    fn into_frame(self) -> Frame<Vec<u8>> {
        Frame {
            bytes: self.bytes,
            arrived_at: self.sent_at,
            checksum: self.offload.checksum,
            gso: self.offload.gso,
            vlan: self.vlan,
        }
    }
}

impl State {
    fn send<'a, G: Gather<'a>>(&mut self, packet: G, most: usize) {
        let is_aggregate = packet.frame_count() > 1;
        let is_gso = packet.offload().gso.is_some() || is_aggregate;
        let is_refused = self.is_refused() || self.refuses_aggregates && is_gso;
        if !is_refused {
            self.store(Sent::new(packet, self.now), most);
        } else if is_aggregate {
            self.sent.fallbacks += 1;
            packet.for_each_frame(|frame| match self.is_refused() {
                true => self.drop_packet(1),
                false => self.store(Sent::new(frame, self.now), most),
            });
        } else {
            self.drop_packet(packet.frame_count());
        }
    }

    fn is_refused(&mut self) -> bool {
        self.offered += 1;
        self.refuse_every != 0 && self.offered.is_multiple_of(self.refuse_every)
    }

    fn store(&mut self, sent: Sent, most: usize) {
        let has_room = self.room != Some(0) && self.kept.is_empty();
        let queue = if has_room { &self.packets } else { &self.kept };
        if queue.len() == most {
            self.drop_packet(sent.frames);
        } else if has_room {
            self.take_in(sent);
        } else {
            self.kept.push_back(sent);
        }
    }

    fn take_in(&mut self, sent: Sent) {
        self.room = self.room.map(|room| room - 1);
        self.sent.packets += 1;
        self.sent.frames += sent.frames as u64;
        self.sent.bytes += sent.bytes.len() as u64;
        self.packets.push_back(sent);
    }

    fn resume(&mut self, most: usize) {
        while self.room != Some(0) {
            let Some(mut sent) = self.kept.pop_front() else { return };
            sent.sent_at = self.now;
            if self.packets.len() == most {
                self.drop_packet(sent.frames);
            } else {
                self.take_in(sent);
            }
        }
    }

    fn drop_packet(&mut self, frames: usize) {
        self.sent.dropped += 1;
        self.sent.dropped_frames += frames as u64;
    }

    fn drop_kept(&mut self) {
        while let Some(sent) = self.kept.pop_front() {
            self.drop_packet(sent.frames);
        }
    }
}

/// A sink that puts packets into a [`MemoryLink`].
#[derive(Clone, Debug)]
pub struct MemorySink {
    link: MemoryLink,
}

impl FrameSink for MemorySink {
    fn capabilities(&self) -> SinkCapabilities {
        let MemoryOptions {
            link,
            mtu,
            gso_bytes,
            segments_udp,
            segments_tunnels,
            expands_acks,
            ..
        } = self.link.options;
        SinkCapabilities {
            link,
            mtu,
            gso_bytes,
            segments_udp,
            segments_tunnels,
            completes_checksums: true,
            expands_acks,
        }
    }

    fn transmit<'a, G: Gather<'a>>(
        &mut self,
        batch: impl ExactSizeIterator<Item = G>,
    ) -> Result<(), DeviceError> {
        let mut state = self.link.lock();
        if state.is_gone {
            state.drop_kept();
            batch.for_each(|packet| state.drop_packet(packet.frame_count()));
            return Err(gone());
        }
        state.resume(self.link.options.most_packets);
        state.sent.submissions += 1;
        batch.for_each(|packet| state.send(packet, self.link.options.most_packets));
        Ok(())
    }

    fn counters(&self) -> SinkCounters {
        self.link.lock().sent
    }

    fn is_blocked(&self) -> bool {
        !self.link.lock().kept.is_empty()
    }

    fn resume(&mut self) -> Result<(), DeviceError> {
        let mut state = self.link.lock();
        if state.is_gone {
            state.drop_kept();
            return Err(gone());
        }
        state.resume(self.link.options.most_packets);
        Ok(())
    }

    fn load(&self) -> Option<Load> {
        let state = self.link.lock();
        let unread = (state.packets.len() + state.kept.len()) as u32;
        Some(Load { unread })
    }

    fn kept_frames(&self) -> u64 {
        self.link.lock().kept.iter().map(|sent| sent.frames as u64).sum()
    }

    fn abandon(&mut self) {
        self.link.lock().drop_kept();
    }
}

/// A source that takes packets from a [`MemoryLink`].
#[derive(Clone, Debug)]
pub struct MemorySource {
    link: MemoryLink,
}

impl FrameSource for MemorySource {
    type Buffer = Vec<u8>;

    fn capabilities(&self) -> SourceCapabilities {
        let MemoryOptions { link, mtu, gso_bytes, .. } = self.link.options;
        SourceCapabilities { link, mtu, gives_gso: gso_bytes > 0 }
    }

    fn receive(
        &mut self,
        batch: &mut Vec<Frame<Vec<u8>>>,
        budget: usize,
    ) -> Result<usize, DeviceError> {
        let mut state = self.link.lock();
        let count = state.packets.len().min(budget);
        if count == 0 && state.is_gone {
            return Err(gone());
        }
        let frames: Vec<_> = state.packets.drain(..count).map(Sent::into_frame).collect();
        state.received.frames += count as u64;
        state.received.bytes += frames.iter().map(|frame| frame.bytes.len() as u64).sum::<u64>();
        batch.extend(frames);
        Ok(count)
    }

    /// Receives frames after inspection. The link is locked during the call, so `look` must not use it.
    fn receive_past(
        &mut self,
        batch: &mut Vec<Frame<Vec<u8>>>,
        budget: usize,
        look: Look<'_>,
    ) -> Result<Looked, DeviceError> {
        let mut state = self.link.lock();
        if state.packets.is_empty() && state.is_gone {
            return Err(gone());
        }
        let mut looked = Looked::default();
        while looked.frames() < budget
            && let Some(sent) = state.packets.pop_front()
        {
            let frame = sent.into_frame();
            state.received.frames += 1;
            state.received.bytes += frame.bytes.len() as u64;
            match look(frame.borrowed()) {
                Verdict::Consumed => looked.consume_in_place(),
                Verdict::Fallback => {
                    looked.given += 1;
                    batch.push(frame);
                }
            }
        }
        Ok(looked)
    }

    fn counters(&mut self) -> SourceCounters {
        self.link.lock().received
    }

    fn peers_gone(&self) -> u64 {
        self.link.lock().peers_gone
    }
}

fn gone() -> DeviceError {
    DeviceError::Gone("memory".to_owned())
}
