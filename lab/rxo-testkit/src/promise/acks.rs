//! Checks that a delivery of pure ACKs matches its frames.

use rxo_frame::{ChecksumStatus, Instant, VlanTag};

use super::{Observed, Shown};
use crate::Script;
use crate::naive::{Reading, Segment, read};
use crate::oracle::{PureAcks, Rules};

/// The observed content of a delivery of several pure ACKs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShownAcks {
    /// All pieces that a sink would gather, concatenated.
    pub bytes: Vec<u8>,
    /// Length that the delivery reported.
    pub byte_len: usize,
    /// Checksum status that a sink receives.
    pub status: ChecksumStatus,
    /// `true` if a sink is asked to segment the delivery.
    pub has_gso: bool,
    /// VLAN tag that a sink must insert.
    pub vlan: Option<VlanTag>,
    /// Number of ACKs.
    pub count: usize,
    /// Number of the last ACK's frame in the script.
    pub last: usize,
    /// The delivery's record of each ACK.
    pub records: Vec<AckSaid>,
    /// Arrival times of the first and the last ACK.
    pub arrivals: (Instant, Instant),
}

/// The record of one pure ACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckSaid {
    /// Arrival time of the ACK.
    pub arrived_at: Instant,
    /// SEG.SEQ.
    pub seq: u32,
    /// SEG.ACK.
    pub ack: u32,
    /// SEG.WND, unscaled.
    pub window: u16,
    /// TSval and TSecr, at any offset.
    pub timestamp: Option<(u32, u32)>,
    /// The twelve bits between data offset and window.
    pub flags: u16,
    /// The ECN field of the IP header.
    pub ecn: u8,
}

/// Checks every delivery of several ACKs: its frames are pure ACKs within the limit, and its last packet,
/// records, count and times match its frames.
///
/// # Panics
/// If a check fails.
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

/// Checks the number of ACKs: two or more, within the limit, and in single form at most
/// `keep_every`.
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
