//! The *Plain* tier: ordinary segments with no flag but ACK, read from fixed offsets.
//!
//! A plain segment that reaches this tier starts a new aggregate. If the flow already holds an aggregate, which
//! the segment does not continue, that aggregate is flushed first. If options, flags or the policy need slower
//! tiers, each function in this module returns `None`. Before it returns `None`, a function flushes only flows
//! that the full rules would flush, too.

use rxo_frame::{Frame, FrameBuffer};
use rxo_wire::{FlowHash, FlowKey, Plain, SeqNumber};

use super::Engine;
use super::cursor::{Cursor, flow_key};
use super::limits::most_payload;
use crate::held::Segment;
use crate::shape::Shape;
use crate::{Kind, Verdict};

/// The offset in bytes of the timestamp echo (TSecr) in the TCP header of a plain segment: its last four bytes.
const ECHO_AT: usize = 28;

impl<B: FrameBuffer> Engine<B> {
    /// Starts an aggregate with a plain segment with payload, if that is the `verdict`. Returns the flow's
    /// index and the sequence number that comes next; `None` if the segment is not plain.
    #[inline(always)]
    pub(super) fn start<S: Shape>(
        &mut self,
        at: Cursor<'_, B>,
        key: (FlowKey, FlowHash),
        (verdict, found): (Verdict, Option<u16>),
    ) -> Option<(u16, SeqNumber)> {
        let (frame, packet) = (at.frame()?, at.packet()?);
        let plain = self.plain_data::<S>(frame, packet)?;
        let from = (frame, packet, at.network());
        let mut segment = Segment::plain::<S, B>(&plain, key, from, at.slot())?;
        // Set directly because the segment has payload; this spares computing it.
        segment.acks.has_other_content = true;
        let flow = self.apply(verdict, found, &segment)?;
        Some((flow, segment.seq + segment.payload_bytes))
    }

    /// Reads a plain segment with payload that the policy may hold. `None` if its checksum is wrong or slower tiers
    /// must decide.
    #[inline(always)]
    fn plain_data<S: Shape>(&self, frame: &Frame<B>, packet: &[u8]) -> Option<Plain> {
        let plain = S::plain(packet)?;
        let is_usual = (1..=self.plain_payload_bytes).contains(&plain.payload_bytes);
        if !is_usual && !self.breaks_no_rule::<S>(plain, packet) {
            return None;
        }
        if frame.gso.is_some() || S::may_be_marked_ce(packet) {
            return None;
        }
        if !S::is_checksum_right(packet) {
            return None;
        }
        if !self.is_plain_and_right::<S>(frame, plain, packet) {
            return None;
        }
        Some(plain)
    }

    /// For a policy that refuses some plain segments: returns `true` if this segment satisfies the policy's rules
    /// for payload size, DF and a zero timestamp echo. Returns `false` under every other policy.
    #[cold]
    #[inline(never)]
    fn breaks_no_rule<S: Shape>(&self, plain: Plain, packet: &[u8]) -> bool {
        let policy = &self.config.policy;
        let echo = packet.get(S::IP_BYTES + ECHO_AT..plain.header_bytes as usize);
        policy.refuses_plain()
            && (1..=most_payload(policy)).contains(&plain.payload_bytes)
            && (!policy.needs_df || S::ip(packet).is_some_and(|ip| ip.dont_fragment))
            && (policy.zero_echo || echo.is_none_or(|echo| echo != [0; 4]))
    }

    /// Starts an aggregate with a plain pure ACK, under a policy that aggregates ACKs. `None` if the segment is
    /// not a plain pure ACK, or if its flow already holds packets.
    #[inline(always)]
    pub(super) fn start_acks<S: Shape>(&mut self, at: Cursor<'_, B>) -> Option<()> {
        let (frame, packet) = (at.frame()?, at.packet()?);
        let plain = S::plain(packet)?;
        if plain.payload_bytes != 0 || frame.gso.is_some() {
            return None;
        }
        if !S::is_checksum_right(packet) || S::may_be_marked_ce(packet) {
            return None;
        }
        if !self.is_plain_and_right::<S>(frame, plain, packet) {
            return None;
        }
        let key = flow_key(plain.key, frame);
        let hash = self.hasher.hash(&key);
        if self.find_alike(&key, hash, Kind::PureAck).is_some() {
            return None;
        }
        let segment =
            Segment::plain::<S, B>(&plain, (key, hash), (frame, packet, at.network()), at.slot())?;
        if let Some(flow) = self.apply(self.ack_alone(&segment), None, &segment) {
            self.recent.note::<S>(packet, flow);
        }
        Some(())
    }
}

/// Reads a plain pure ACK that can be delivered untouched; `None` if `frame` is anything else.
#[inline(always)]
pub(super) fn plain_ack<S: Shape, B: FrameBuffer>(
    frame: &Frame<B>,
    network: usize,
) -> Option<Plain> {
    let packet = frame.bytes().get(network..)?;
    let plain = S::plain(packet)?;
    let is_pure = plain.payload_bytes == 0 && frame.gso.is_none();
    (is_pure && S::is_checksum_right(packet)).then_some(plain)
}
