//! A link in memory: its source gives the packets that its sink took, or a test takes them by hand.
//!
//! It is separate from the traits because it is one implementation of them, which makes no system
//! calls. Contract: the link is bounded, and drops and counts what does not fit, as a device's full
//! ring does. It keeps everything the sink was told about a packet. It reads no clock.

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
    /// What a packet begins with.
    pub link: LinkKind,
    /// The largest IP packet without segmentation, in bytes. Reported, not enforced.
    pub mtu: u32,
    /// The largest GSO frame as an IP packet, in bytes; 0 for a link that takes none.
    pub gso_bytes: u32,
    /// Whether it takes GSO frames of UDP.
    pub segments_udp: bool,
    /// Whether it takes GSO frames in tunnels over UDP.
    pub segments_tunnels: bool,
    /// The most packets that it holds.
    pub most_packets: usize,
    /// Whether it says that it expands ACK templates. It keeps them as they are.
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

/// A packet as its sink received it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// The bytes of all its pieces.
    pub bytes: Vec<u8>,
    /// Its checksum status and segmentation.
    pub offload: Offload,
    /// The VLAN tag beside the bytes.
    pub vlan: Option<VlanTag>,
    /// How many original frames are in it.
    pub frames: usize,
    /// How many pieces it had.
    pub pieces: usize,
    /// The link's time when it was sent.
    pub sent_at: Instant,
}

/// The link. A clone is another handle on the same link, for any thread.
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
    refuses_aggregates: bool,
    /// How many more packets it takes; `None` for no limit.
    room: Option<usize>,
    /// Packets for which there was no room.
    kept: VecDeque<Sent>,
    /// One packet of so many is refused; 0 for none.
    refuse_every: usize,
    offered: usize,
    sent: SinkCounters,
    received: SourceCounters,
}

impl MemoryLink {
    /// An empty link.
    #[must_use]
    pub fn new(options: MemoryOptions) -> Self {
        Self { options, state: Arc::default() }
    }

    /// The end that takes packets.
    #[must_use]
    pub fn sink(&self) -> MemorySink {
        MemorySink { link: self.clone() }
    }

    /// The end that gives packets. If there are several, each packet goes to one of them.
    #[must_use]
    pub fn source(&self) -> MemorySource {
        MemorySource { link: self.clone() }
    }

    /// Puts a frame in by hand. If the link is full, the frame counts as lost in the ring.
    pub fn push<B: AsRef<[u8]>>(&self, frame: &Frame<B>) {
        let mut state = self.lock();
        if state.packets.len() == self.options.most_packets {
            state.received.ring_drops += 1;
        } else {
            let sent = Sent::new(frame.borrowed(), frame.arrived_at);
            state.packets.push_back(sent);
        }
    }

    /// Takes the oldest packet out by hand.
    #[must_use]
    pub fn take(&self) -> Option<Sent> {
        self.lock().packets.pop_front()
    }

    /// Takes everything out by hand, the oldest first.
    #[must_use]
    pub fn take_all(&self) -> Vec<Sent> {
        self.lock().packets.drain(..).collect()
    }

    /// Sets the time that packets sent from now on carry.
    pub fn set_now(&self, now: Instant) {
        self.lock().now = now;
    }

    /// From now on, behaves as a system that refuses aggregates: the sink sends their original frames.
    /// It drops a GSO frame that is not an aggregate.
    pub fn refuse_aggregates(&self) {
        self.lock().refuses_aggregates = true;
    }

    /// From now on, behaves as a device that has room for `packets` more; `None` for no limit. Its sink
    /// keeps the others, as many packets as the link holds.
    pub fn set_room(&self, packets: Option<usize>) {
        self.lock().room = packets;
    }

    /// From now on, behaves as a device that refuses one packet of `every`; 0 for none. The sink sends
    /// the original frames of a refused aggregate, and each of them may be refused too.
    pub fn refuse_every(&self, every: usize) {
        self.lock().refuse_every = every;
    }

    /// Whether its source has neither a packet nor an error to give.
    #[must_use]
    pub fn is_silent(&self) -> bool {
        let state = self.lock();
        state.packets.is_empty() && !state.is_gone
    }

    /// From now on, behaves as a device that was removed. Its source still gives what is in it.
    pub fn vanish(&self) {
        self.lock().is_gone = true;
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // No operation leaves the state half changed when it panics.
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

/// The end of a [`MemoryLink`] that takes packets.
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
            gathers: true,
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

/// The end of a [`MemoryLink`] that gives packets.
#[derive(Clone, Debug)]
pub struct MemorySource {
    link: MemoryLink,
}

impl FrameSource for MemorySource {
    type Buffer = Vec<u8>;

    fn capabilities(&self) -> SourceCapabilities {
        let MemoryOptions { link, mtu, gso_bytes, .. } = self.link.options;
        SourceCapabilities { link, mtu, says_checksum: true, gives_gso: gso_bytes > 0 }
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

    /// `look` must not use this link.
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
}

fn gone() -> DeviceError {
    DeviceError::Gone("memory".to_owned())
}
