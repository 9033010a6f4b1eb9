//! The *Ordinary* tier: packets that are refused by a static rule, and ordinary segments that are neither
//! expected nor plain.
//!
//! Both are read from fixed offsets. An ordinary segment is, for example, one with PSH, or with less payload than
//! the preceding segment. The same function as in the *Rules* tier decides on it: `verdict`. If only a full parse
//! can decide, each function in this module returns `None`. Before it returns `None`, a function flushes only
//! flows that the full rules would flush, too.

use rxo_frame::{Frame, FrameBuffer};
use rxo_wire::tcp::CHECKSUM_AT;
use rxo_wire::{FlowKey, Plain};

use super::Engine;
use super::apply::Taken;
use super::checksums::is_described_oddly;
use super::cursor::{Cursor, flow_key};
use crate::candidate::with_payload;
use crate::held::Segment;
use crate::refused::{PacketClass, classify, flow};
use crate::shape::Shape;
use crate::single::Starts;
use crate::{Candidate, Kind};

impl<B: FrameBuffer> Engine<B> {
    /// Receives an ordinary segment, or a packet that a static rule refuses. `None` if the full rules must
    /// decide.
    #[inline(always)]
    pub(super) fn take_ordinary<S: Shape>(&mut self, at: Cursor<'_, B>) -> Option<Taken> {
        let packet = at.packet()?;
        match classify::<S>(packet, &self.config.policy) {
            PacketClass::Ordinary => self.judge_ordinary::<S>(at),
            // A refused segment changes the recorded last ACK of its flow, which only the full rules update.
            PacketClass::Refused { reason, ip_bytes } if self.memory.is_off() => {
                if !self.table.is_empty() {
                    self.make_way(reason, &flow_key(flow::<S>(packet), at.frame()?), at.slot());
                }
                let starts = Starts::after(at.network(), ip_bytes);
                self.deliver_untouched(at.slot(), starts, reason);
                Some(Taken::Left)
            }
            PacketClass::Refused { .. } | PacketClass::Nothing => None,
        }
    }

    /// Decides on an ordinary segment by the held segments of its flow, and applies the verdict. Returns `None`
    /// if the full rules must decide.
    #[inline(never)]
    fn judge_ordinary<S: Shape>(&mut self, at: Cursor<'_, B>) -> Option<Taken> {
        let frame = at.frame()?;
        let (candidate, key) = self.ordinary::<S>(frame, at.network())?;
        let hash = self.hasher.hash(&key);
        let found = self.find_alike(&key, hash, Kind::Data);
        let last = match found {
            Some(flow) => Some(self.last_ordinary::<S>(at, flow)?),
            None => None,
        };
        let segment = Segment::of(&candidate, (key, hash), frame, at.slot());
        let flow = self.judge_and_apply((&candidate, segment), found, last.as_ref());
        Some(Taken::of(flow))
    }

    /// Reads an ordinary segment that may be held, and its flow key. `None` if the full rules must decide.
    #[inline]
    fn ordinary<'f, S: Shape>(
        &self,
        frame: &'f Frame<B>,
        network: usize,
    ) -> Option<(Candidate<'f>, FlowKey)> {
        let packet = frame.bytes().get(network..)?;
        let candidate = Candidate::ordinary::<S, B>(frame, network)?;
        let Candidate { ip, tcp, at, .. } = &candidate;
        let plain = Plain {
            key: flow_key(flow::<S>(packet), frame),
            seq: tcp.seq,
            header_bytes: at.payload - at.network,
            payload_bytes: at.payload_bytes(),
        };
        let is_refused = is_described_oddly(frame, network + S::IP_BYTES, CHECKSUM_AT)
            || with_payload((ip, tcp, *at), &self.config.policy).is_err();
        if is_refused || !(self.is_trusted(frame) || self.is_sum_right::<S>(plain, packet)) {
            return None;
        }
        Some((candidate, plain.key))
    }

    /// Returns the last segment that `flow` holds; `None` if it is not an ordinary segment.
    #[inline]
    fn last_ordinary<'a, S: Shape>(&self, at: Cursor<'a, B>, flow: u16) -> Option<Candidate<'a>> {
        let held = &self.store.held[usize::from(flow)];
        let is_ordinary = held.at == Starts::after(at.network(), S::IP_BYTES);
        let frame = at.held(held.chain.tail);
        if is_ordinary { Candidate::ordinary::<S, B>(frame, at.network()) } else { None }
    }
}
