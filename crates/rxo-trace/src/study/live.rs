//! Studies the frames of a live interface.
//!
//! A host that merges packets (GRO, LRO) passes the merged packets to packet sockets. This module segments them
//! again into the packets that must have arrived, so that the engines receive the packets of the wire. The
//! report contains both the deliveries of the host with its current settings, and the deliveries of the chosen
//! policy. A VLAN tag that the device removed is inserted again.
//!
//! This module is separate from `read`, because a live interface has no file: its frames are copied once, into
//! chunks that are freed as soon as none of their packets is held.

use core::ops::Range;
use core::time::Duration;
use std::rc::Rc;

use rxo_capture::{Interface, LinkType, Record, SharedBytes};
use rxo_frame::{ChecksumStatus, Frame, LinkKind, VlanTag};
use rxo_wire::checksum::Summer;
use rxo_wire::segmentation::Checksums;

use super::{Study, outcome};
use crate::advice;
use crate::report::{HostSettings, Report};

/// The offset of a VLAN tag in an Ethernet frame.
const TAG_AT: usize = 12;
const TAG_BYTES: usize = 4;

/// The properties of a live interface that its frames do not contain.
#[derive(Clone, Debug, Default)]
pub struct Watched {
    /// The name of the interface.
    pub interface: String,
    /// The settings with which the host receives.
    pub settings: HostSettings,
    /// The time for which the interface was watched.
    pub time: Duration,
    /// The number of frames that this process did not receive, because they arrived faster than it processed
    /// them.
    pub lost_packets: u64,
    /// `true` if the interface is virtual: its frames come from this machine, so a sender may have sent them
    /// unsegmented.
    pub is_virtual: bool,
}

/// The number of frames that the host had merged, and the number of packets in these frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Merged {
    pub(crate) frames: u64,
    pub(crate) packets: u64,
}

/// Packets in one chunk of memory, in the order in which they arrived.
#[derive(Debug, Default)]
struct Packets {
    bytes: Vec<u8>,
    /// The range of each packet in the chunk, and the index of its frame.
    spans: Vec<(Range<usize>, usize)>,
    scratch: Vec<u8>,
}

impl Study {
    /// Studies frames that a live Ethernet interface received, in order. `since_1970` is the Unix time that
    /// corresponds to zero in the frames' arrival times. [`Settings::live`](super::Settings::live) must be set,
    /// and a source must have been begun. Copies the frames.
    pub fn receive<B: AsRef<[u8]>>(&mut self, frames: &[Frame<B>], since_1970: Duration) {
        let mut packets = Packets::default();
        packets.bytes.reserve(frames.iter().map(|frame| frame.bytes().len()).sum());
        for (index, frame) in frames.iter().enumerate() {
            let before = packets.spans.len();
            packets.add(frame.borrowed(), index, self.summer);
            let count = (packets.spans.len() - before) as u64;
            if count > 1 {
                self.merged.frames += 1;
                self.merged.packets += count;
            }
        }
        let Packets { bytes, spans, .. } = packets;
        let chunk = Rc::new(bytes);
        let interface = [Interface { link: LinkType::ETHERNET, snap_bytes: None, name: None }];
        let mut last = None;
        for (range, index) in spans {
            let bytes = SharedBytes::new(&chunk, range);
            let original_bytes = bytes.as_ref().len() as u32;
            let at = frames[index].arrived_at + since_1970;
            let record = Record { bytes, original_bytes, at, ..Record::default() };
            if let Some(rates) = &mut self.chosen.rates {
                // The filter may leave out the first packets of a frame.
                rates.begins_frame |= last != Some(index);
            }
            last = Some(index);
            self.note(core::slice::from_ref(&record));
            self.take_one(&interface, record);
        }
        self.lanes.advance(self.clock.now(), &mut self.chosen);
    }

    /// Ends the study of a live interface and returns the report, whose decision compares the chosen policy
    /// with the host's current settings, at the median, the 95th percentile and the peak of the rate. `partial`
    /// is the reason why the measurement stopped early; `None` if it was complete.
    #[must_use]
    pub fn finish_live(mut self, watched: &Watched, partial: Option<String>) -> Report {
        self.end_source("live", None);
        let settings = self.settings.clone();
        let terms = settings.terms();
        let merged = self.merged;
        let (part, rates) = self.into_part_and_rates(partial);
        let mut report = outcome::report(&part, &settings, &terms);
        if let Some(rates) = rates {
            advice::decide_live(&mut report, watched, merged, &rates);
        }
        report
    }
}

impl Packets {
    /// Adds the packets of a frame: the segments of the frame if the host or a sender on this machine had
    /// merged them, otherwise the frame itself.
    fn add(&mut self, frame: Frame<&[u8]>, index: usize, summer: Summer) {
        let mut scratch = core::mem::take(&mut self.scratch);
        let frame = match frame.vlan {
            Some(tag) => tagged(frame, tag, &mut scratch),
            None => frame,
        };
        if !self.add_segments(frame, index, summer) {
            let from = self.bytes.len();
            self.bytes.extend_from_slice(frame.bytes);
            self.spans.push((from..self.bytes.len(), index));
        }
        self.scratch = scratch;
    }

    /// Adds the segments of a GSO frame. Returns `false` if the frame is not a GSO frame, or cannot be
    /// segmented.
    fn add_segments(&mut self, frame: Frame<&[u8]>, index: usize, summer: Summer) -> bool {
        let Some(gso) = frame.gso else { return false };
        let checksums = Checksums::Complete(summer);
        let metadata = (frame.checksum, gso);
        let Ok(mut segments) =
            rxo_vnet::segments(LinkKind::Ethernet, frame.bytes, metadata, checksums)
        else {
            return false;
        };
        let longest = segments.header_bytes() + usize::from(gso.size.get());
        let before = self.spans.len();
        loop {
            let from = self.bytes.len();
            self.bytes.resize(from + longest, 0);
            let written = segments.next_into(&mut self.bytes[from..]);
            let end = from + written.ok().flatten().unwrap_or_default();
            self.bytes.truncate(end);
            if end == from {
                break;
            }
            self.spans.push((from..end, index));
        }
        self.spans.len() > before
    }
}

/// Returns the frame with the VLAN tag in its bytes, which are written to `scratch`.
fn tagged<'s>(frame: Frame<&[u8]>, tag: VlanTag, scratch: &'s mut Vec<u8>) -> Frame<&'s [u8]> {
    let (addresses, rest) = frame.bytes.split_at(TAG_AT.min(frame.bytes.len()));
    scratch.clear();
    scratch.extend_from_slice(addresses);
    scratch.extend_from_slice(&tag.tpid.get().to_be_bytes());
    scratch.extend_from_slice(&tag.tci.to_be_bytes());
    scratch.extend_from_slice(rest);
    let checksum = match frame.checksum {
        ChecksumStatus::Partial { start, offset } => {
            ChecksumStatus::Partial { start: start.saturating_add(TAG_BYTES as u16), offset }
        }
        other => other,
    };
    Frame { checksum, vlan: None, ..frame.with_bytes(&scratch[..]) }
}

#[cfg(test)]
mod tests {
    use core::num::NonZeroU16;

    use rxo_coalesce::Policy;
    use rxo_frame::{Gso, GsoKind, Instant};
    use rxo_testkit::seg;

    use super::super::{Point, Settings};
    use super::*;

    const TIME: Duration = Duration::from_secs(1);

    fn study() -> Study {
        let point = Point { policy: Policy::linux_gro(), poll: "time:50us".parse().unwrap() };
        let mut study = Study::new(Settings { live: Some(TIME), ..Settings::new(point) }).unwrap();
        study.begin_source("eth0");
        study
    }

    /// Returns a frame of this many payload bytes that was merged from segments of 1,000.
    fn merged(seq: u32, bytes: usize, at_us: u64) -> Frame<Vec<u8>> {
        let bytes = seg().seq(seq).len(bytes).bytes();
        let size = NonZeroU16::new(1_000).unwrap();
        let gso = Some(Gso::new(GsoKind::TcpV4, size));
        let arrived_at = Instant::from_nanos(at_us * 1_000);
        Frame { gso, checksum: ChecksumStatus::Verified, ..Frame::new(bytes, arrived_at) }
    }

    fn watched(lost_packets: u64) -> Watched {
        Watched { interface: "eth0".into(), time: TIME, lost_packets, ..Watched::default() }
    }

    #[test]
    fn merged_frames_are_segmented_as_they_arrived() {
        let mut study = study();
        for number in 0..100 {
            study.receive(&[merged(number * 9_500, 9_500, u64::from(number) * 9_000)], TIME);
        }
        let report = study.finish_live(&watched(0), None);
        assert_eq!((report.traffic.packets, report.traffic.super_packets), (1_000, 0));
        assert_eq!(report.traffic.checksums.right, 1_000);
        let live = report.live.as_ref().unwrap();
        assert_eq!((live.frames, live.merged_frames, live.merged_packets), (100, 100, 1_000));
        assert_eq!(report.outcome.deliveries, 100);
        assert!(report.decision.sentence.contains("must have arrived"), "{:?}", report.decision);
        assert_eq!(report.decision.is_worth_it, Some(false), "the host does as much");
    }

    #[test]
    fn a_removed_tag_is_put_back() {
        let tag = VlanTag { tpid: NonZeroU16::new(0x8100).unwrap(), tci: 7 };
        let mut packets = Packets::default();
        let frame = Frame { vlan: Some(tag), ..merged(0, 2_000, 0) };
        packets.add(frame.borrowed(), 0, Summer::detect());
        assert_eq!(packets.spans.len(), 2);
        for (range, _) in packets.spans {
            assert_eq!(packets.bytes[range][12..18], [0x81, 0, 0, 7, 8, 0]);
        }
    }

    #[test]
    fn many_lost_packets_cannot_say() {
        let mut study = study();
        study.receive(&[merged(0, 9_000, 0), merged(9_000, 9_000, 90_000)], TIME);
        let report = study.finish_live(&watched(3), Some("interrupted".into()));
        assert_eq!(report.decision.is_worth_it, None);
        assert!(report.decision.sentence.starts_with("This watch cannot say"), "{report:?}");
        assert_eq!(report.partial.as_deref(), Some("interrupted"));
    }
}
