//! The input of a sender: the header of a segment, or a record of it.

use rxo_frame::Instant;

use crate::Script;
use crate::naive::{Reading, Segment, read};
use crate::promise::AckSaid;

/// The contents of one received ACK.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Incoming {
    /// Arrival time of the ACK.
    pub arrived_at: Instant,
    /// SEG.SEQ.
    pub seq: u32,
    /// SEG.ACK.
    pub ack: u32,
    /// SEG.WND, unscaled.
    pub window: u16,
    /// The twelve bits between data offset and window.
    pub flags: u16,
    /// The ECN field of the IP header.
    pub ecn: u8,
    /// TSval and TSecr.
    pub timestamp: Option<(u32, u32)>,
    /// Left and right edge of each SACK block.
    pub blocks: Vec<(u32, u32)>,
    /// Payload length, in bytes.
    pub payload_bytes: usize,
}

const FIN: u16 = 0x001;
const SYN: u16 = 0x002;
const RST: u16 = 0x004;
const ACK: u16 = 0x010;
pub(super) const ECE: u16 = 0x040;

impl Incoming {
    /// Parses a frame of `script` as its receiver would. Returns `None` if it is no segment, or the receiver
    /// drops it because of its checksum.
    #[must_use]
    pub fn of_frame(script: &Script, index: usize) -> Option<Self> {
        let frame = script.frame(index);
        let Reading::Segment(segment) = read(frame, script.setup.link) else { return None };
        let trusted = script.setup.trusts_checksums || frame.checksum.is_trusted();
        let is_intact = segment.ip_checksum_ok && (trusted || segment.checksum_ok);
        is_intact.then(|| Self::of_segment(&segment, frame.arrived_at))
    }

    /// Converts a parsed segment.
    #[must_use]
    pub fn of_segment(segment: &Segment, arrived_at: Instant) -> Self {
        Self {
            arrived_at,
            seq: segment.seq,
            ack: segment.ack,
            window: segment.window,
            flags: segment.flags,
            ecn: segment.traffic_class & 3,
            timestamp: segment.timestamp(),
            blocks: segment.sack_blocks(),
            payload_bytes: segment.payload.len(),
        }
    }

    /// Converts a record of an ACK.
    #[must_use]
    pub fn of_record(said: &AckSaid) -> Self {
        Self {
            arrived_at: said.arrived_at,
            seq: said.seq,
            ack: said.ack,
            window: said.window,
            flags: said.flags,
            ecn: said.ecn,
            timestamp: said.timestamp,
            blocks: Vec::new(),
            payload_bytes: 0,
        }
    }

    pub(super) const fn begins_anew(&self) -> bool {
        self.flags & (SYN | RST) != 0
    }

    /// Returns `true` if a sender processes this segment's acknowledgement.
    pub(super) const fn counts(&self) -> bool {
        self.flags & ACK != 0 && !self.begins_anew()
    }

    pub(super) const fn has_echo(&self) -> bool {
        self.flags & ECE != 0
    }

    /// Returns `true` if the segment carries only an acknowledgement: no data, SYN or FIN.
    pub(super) const fn is_empty(&self) -> bool {
        self.payload_bytes == 0 && self.flags & (SYN | FIN) == 0
    }
}
