//! What a delivery of pure ACKs says is what its frames said.

use rxo_frame::{ChecksumStatus, Instant, VlanTag};

use super::{Observed, Shown};
use crate::Script;
use crate::naive::{Reading, Segment, read};
use crate::oracle::{PureAcks, Rules};

/// What a delivery of several pure ACKs said of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShownAcks {
    /// All pieces that a sink would gather, one after the other.
    pub bytes: Vec<u8>,
    /// What it says of its length.
    pub byte_len: usize,
    /// What a sink is told of the checksum.
    pub status: ChecksumStatus,
    /// Whether a sink is told to cut it.
    pub has_gso: bool,
    /// The tag that a sink must put back.
    pub vlan: Option<VlanTag>,
    /// How many there are.
    pub count: usize,
    /// The last one's frame, by number in the script.
    pub last: usize,
    /// What it remembers of each.
    pub records: Vec<AckSaid>,
    /// When its first and last ACK arrived.
    pub arrivals: (Instant, Instant),
}

/// What a record says of a pure ACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckSaid {
    /// When it arrived.
    pub arrived_at: Instant,
    /// SEG.SEQ.
    pub seq: u32,
    /// SEG.ACK.
    pub ack: u32,
    /// SEG.WND, unscaled.
    pub window: u16,
    /// TSval and TSecr, wherever the option stands.
    pub timestamp: Option<(u32, u32)>,
    /// The twelve bits between data offset and window.
    pub flags: u16,
    /// The ECN field of the IP header.
    pub ecn: u8,
}

/// Every delivery of several ACKs is of ACKs alone, no more of them than allowed, and its last
/// packet, its records, its count and its times are those of its frames.
///
/// # Panics
/// When something is not.
pub fn acks_are_right(script: &Script, observed: &Observed) {
    let rules = script.setup.rules();
    for shown in observed.deliveries() {
        let Some(acks) = &shown.acks else { continue };
        let frames = &shown.frames;
        let segments: Vec<Segment> = frames.iter().map(|index| segment(script, *index)).collect();
        number_is_right(shown, acks, &rules);
        last_is_right(script, acks, frames[frames.len() - 1], &segments);
        let said: Vec<AckSaid> = frames.iter().map(|index| said(script, *index)).collect();
        assert_eq!(acks.records, said, "records (left) of {frames:?}");
        let arrival = |index: usize| script.frame(index).arrived_at;
        let arrivals = (arrival(frames[0]), arrival(frames[frames.len() - 1]));
        assert_eq!(acks.arrivals, arrivals, "times of {frames:?}");
    }
}

/// Two ACKs or more, no more than the limit; in single form at least every `keep_every`th is shown.
fn number_is_right(shown: &Shown, acks: &ShownAcks, rules: &Rules) {
    let frames = &shown.frames;
    assert!(rules.pure_acks != PureAcks::Bypass, "{frames:?} may not be aggregated");
    assert!(frames.len() >= 2, "{frames:?} is no aggregate");
    assert_eq!(acks.count, frames.len(), "count of {frames:?}");
    assert!(frames.len() <= rules.max_acks, "{frames:?} are more than {}", rules.max_acks);
    let keeps = rules.pure_acks == PureAcks::Record || frames.len() <= rules.keep_every;
    assert!(keeps, "of {frames:?} only the last is shown, not every {}", rules.keep_every);
}

fn last_is_right(script: &Script, acks: &ShownAcks, last: usize, segments: &[Segment]) {
    let frame = script.frame(last);
    let segment = &segments[segments.len() - 1];
    let end = segment.network_at + segment.packet_bytes();
    assert_eq!(acks.last, last);
    assert_eq!(acks.bytes, frame.bytes()[..end], "frame {last} to the end of its packet");
    assert_eq!(acks.byte_len, end, "length of frame {last}");
    assert_eq!(acks.status, frame.checksum, "checksum status of frame {last}");
    assert_eq!(acks.vlan, frame.vlan, "tag of frame {last}");
    assert!(!acks.has_gso, "an ACK is not cut");
    for other in segments {
        assert!(other.payload.is_empty(), "a segment with payload among the ACKs up to {last}");
        assert_eq!(other.ends, segment.ends);
        assert_eq!(other.ports, segment.ports);
    }
}

fn segment(script: &Script, index: usize) -> Segment {
    match read(script.frame(index), script.setup.link) {
        Reading::Segment(segment) => *segment,
        other => panic!("frame {index} was taken for an ACK but is {other:?}"),
    }
}

fn said(script: &Script, index: usize) -> AckSaid {
    let segment = segment(script, index);
    AckSaid {
        arrived_at: script.frame(index).arrived_at,
        seq: segment.seq,
        ack: segment.ack,
        window: segment.window,
        timestamp: segment.timestamp(),
        flags: segment.flags,
        ecn: segment.traffic_class & 3,
    }
}
