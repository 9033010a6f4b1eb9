//! Compares the frames that come from a wire with packets that were built in that form.

use std::num::NonZeroU16;

use proptest::prelude::*;
use rxo_frame::{Gso, VlanTag};
use rxo_testkit::naive::{self, Reading, Segment};
use rxo_testkit::{Packet, arp, seg, udp};

use super::*;
use crate::{MemoryLink, MemoryOptions};

const BUDGET: usize = 64;

/// Returns all frames that result from `frames`, received `budget` at a time, and the counters.
fn carried(
    frames: &[Frame<Vec<u8>>],
    validates: bool,
    budget: usize,
) -> (Vec<Frame<Vec<u8>>>, SourceCounters) {
    let link = MemoryLink::new(MemoryOptions::default());
    frames.iter().for_each(|frame| link.push(frame));
    let (mut source, mut batch) = (WireSource::new(link.source(), validates), Vec::new());
    loop {
        let before = batch.len();
        let given = source.receive(&mut batch, budget).unwrap();
        assert!(given <= budget && given == batch.len() - before);
        if given < budget {
            break;
        }
    }
    assert_eq!(source.poll_at(), None, "fewer than the budget means that nothing is left");
    let copied = |frame: &Frame<_>| frame.with_bytes(frame.bytes().to_vec());
    (batch.iter().map(copied).collect(), source.counters())
}

fn one(packet: &Packet, validates: bool) -> (Frame<Vec<u8>>, WireCounters) {
    let (mut frames, counters) = carried(&[packet.frame()], validates, BUDGET);
    assert_eq!(frames.len(), 1);
    (frames.remove(0), counters.wire)
}

/// A source that counts calls of `attend`.
struct Attended<S>(S, usize);

impl<S: FrameSource> FrameSource for Attended<S> {
    type Buffer = S::Buffer;

    fn capabilities(&self) -> SourceCapabilities {
        self.0.capabilities()
    }

    fn receive(
        &mut self,
        batch: &mut Vec<Frame<Self::Buffer>>,
        budget: usize,
    ) -> Result<usize, DeviceError> {
        self.0.receive(batch, budget)
    }

    fn counters(&mut self) -> SourceCounters {
        self.0.counters()
    }

    fn attend(&mut self) {
        self.1 += 1;
    }
}

/// The device is attended even while many frames wait and it is not read.
#[test]
fn the_device_is_attended_while_it_is_not_read() {
    let link = MemoryLink::new(MemoryOptions::default());
    link.push(&large(400, seg()).0);
    let mut source = WireSource::new(Attended(link.source(), 0), true);
    source.attend();
    assert_eq!(source.source.1, 1);
    let mut batch = Vec::new();
    for calls in 1..=3 {
        assert_eq!(source.receive(&mut batch, 1).unwrap(), 1);
        assert_eq!(source.source.1, calls, "the first call reads it");
    }
}

#[test]
fn a_partial_checksum_is_completed() {
    for packet in [seg().len(100).psh(), seg().v6().ts(1, 2).len(33), seg().vlan(3), udp()] {
        let (frame, wire) = one(&packet.clone().partial(), true);
        assert_eq!(frame, Frame { checksum: ChecksumStatus::Verified, ..packet.frame() });
        assert_eq!(wire, WireCounters { completed: 1, ..WireCounters::default() });
        assert_eq!(one(&packet.clone().partial(), false).0, packet.frame());
    }
}

#[test]
fn a_checksum_of_the_network_is_validated() {
    let (valid, invalid) = (seg().len(100), seg().len(100).bad_checksum());
    let (frame, wire) = one(&valid, true);
    assert_eq!(frame, valid.clone().verified().frame());
    assert_eq!((wire.valid, wire.invalid), (1, 0));
    let (frame, wire) = one(&invalid, true);
    assert_eq!(frame, invalid.frame(), "the host decides what becomes of it");
    assert_eq!((wire.valid, wire.invalid), (0, 1));
    // A card without checksum offload reports nothing, whatever the status of the source.
    assert_eq!(one(&valid.clone().verified(), false), (valid.frame(), WireCounters::default()));
    assert_eq!(one(&arp(), true), (arp().frame(), WireCounters::default()));
}

/// Builds a GSO frame with `bytes` of payload in segments of 100, and its headers.
fn large(bytes: usize, packet: Packet) -> (Frame<Vec<u8>>, Segment) {
    let packet = packet.len(bytes).already_aggregated(100);
    match naive::read(&packet.frame(), LinkKind::Ethernet) {
        Reading::Segment(shape) => (packet.frame(), *shape),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_gso_frame_becomes_the_frames_that_a_kernel_makes_of_it() {
    for packet in [seg().psh().id(65_534), seg().v6().ts(1, 2).vlan(3).fin()] {
        let (frame, shape) = large(1_050, packet);
        let (frames, counters) = carried(std::slice::from_ref(&frame), true, BUDGET);
        let expected = naive::resegment(&frame.bytes, &shape, 100, false);
        let verified = |frame: &Frame<_>| frame.checksum == ChecksumStatus::Verified;
        assert!(frames.iter().all(|part| part.gso.is_none() && verified(part)));
        assert_eq!(frames.into_iter().map(|part| part.bytes).collect::<Vec<_>>(), expected);
        assert_eq!((counters.wire.segmented, counters.frames), (1, 11));
    }
}

/// Expands a frame into two ACKs that each have its headers.
fn expand(frame: Frame<&[u8]>, _: LinkKind, give: &mut dyn FnMut(Frame<&[u8]>)) -> Option<usize> {
    let is_template = frame.bytes.len() > 60;
    let ack = Frame { bytes: &frame.bytes[..54], gso: None, ..frame };
    (0..2).filter(|_| is_template).for_each(|_| give(ack));
    is_template.then_some(2)
}

#[test]
fn templates_are_expanded_and_completed_in_their_place() {
    let ack = seg().pure_ack();
    let gso = Gso::new(GsoKind::AckTemplate, NonZeroU16::MIN);
    let invalid = Frame { gso: Some(gso), ..ack.clone().partial().frame() };
    let mut template = invalid.clone();
    template.bytes.extend([0; 14]);
    let link = MemoryLink::new(MemoryOptions::default());
    let (mut plain, mut batch) = (WireSource::new(link.source(), true), Vec::new());
    let given = [seg().frame(), template, invalid, seg().len(9).frame()];
    given.iter().for_each(|frame| link.push(frame));
    assert_eq!(plain.receive(&mut batch, BUDGET).unwrap(), 2, "the others");
    assert_eq!(plain.counters().wire.not_expanded, 2);

    given.iter().for_each(|frame| link.push(frame));
    let (mut wire, mut batch) =
        (WireSource::new(link.source(), true).expanding(expand), Vec::new());
    assert_eq!(wire.receive(&mut batch, BUDGET).unwrap(), 4);
    let bytes: Vec<_> = batch.iter().map(|frame| frame.bytes().to_vec()).collect();
    assert_eq!(bytes, [seg().bytes(), ack.bytes(), ack.bytes(), seg().len(9).bytes()]);
    let WireCounters { expanded, not_expanded, completed, valid, .. } = wire.counters().wire;
    assert_eq!((expanded, not_expanded, completed, valid), (2, 1, 2, 2));
}

#[test]
fn what_cannot_be_segmented_passes_whole() {
    let (frame, _) = large(350, seg());
    let broken = Frame { bytes: vec![0xff; 300], ..frame.clone() };
    let datagrams = Frame { gso: frame.gso, ..udp().frame() };
    for frame in [broken, datagrams] {
        let (frames, counters) = carried(std::slice::from_ref(&frame), false, BUDGET);
        assert_eq!((frames, counters.wire.segmented), (vec![frame], 0));
    }
}

#[test]
fn checksum_offsets_beyond_the_frame_change_nothing() {
    let checksum = ChecksumStatus::Partial { start: u16::MAX, offset: u16::MAX };
    let frame = Frame { checksum, ..seg().frame() };
    let (frames, counters) = carried(std::slice::from_ref(&frame), true, BUDGET);
    assert_eq!(frames, [Frame { checksum: ChecksumStatus::Unknown, ..frame }]);
    assert_eq!(counters.wire.completed, 0);
}

#[test]
fn a_tag_beside_the_bytes_stays_there() {
    let tag = VlanTag { tpid: 0x8100.try_into().unwrap(), tci: 5 };
    let (large, _) = large(250, seg());
    for frame in [large, seg().partial().frame(), seg().frame()] {
        let (frames, _) = carried(&[Frame { vlan: Some(tag), ..frame }], true, BUDGET);
        assert!(frames.iter().all(|frame| frame.vlan == Some(tag)));
    }
}

#[test]
fn a_device_that_vanishes_is_reported_behind_its_frames() {
    let link = MemoryLink::new(MemoryOptions::default());
    let (mut source, mut batch) = (WireSource::new(link.source(), true), Vec::new());
    link.push(&large(250, seg()).0);
    assert_eq!(source.receive(&mut batch, 1).unwrap(), 1);
    assert_eq!(source.poll_at(), Some(Instant::ZERO), "two segments are ready");
    link.vanish();
    assert_eq!(source.receive(&mut batch, 8).unwrap(), 2);
    assert!(source.receive(&mut batch, 8).is_err());
}

/// Returns an IPv4 segment without options as a device completes it: a checksum of 0 becomes 0xffff, as UDP
/// needs.
fn as_completed(mut bytes: Vec<u8>) -> Vec<u8> {
    if bytes[50..52] == [0, 0] {
        bytes[50..52].fill(0xff);
    }
    bytes
}

#[test]
fn a_checksum_of_zero_is_completed_as_its_other_form() {
    let packet = seg().seq(3_000).len(244);
    assert_eq!(packet.bytes()[50..52], [0, 0], "it has such a checksum");
    let (frame, wire) = one(&packet.clone().partial(), true);
    assert_eq!((frame.bytes, wire.completed), (as_completed(packet.bytes()), 1));
}

proptest! {
    /// The resulting frames are equal and in order for every form of the input and every batch size.
    #[test]
    fn the_wire_does_not_depend_on_the_form(
        kinds in proptest::collection::vec((0_u8..4, 1_usize..900), 0..20),
        budget in 1_usize..40,
        validates: bool,
    ) {
        let (mut given, mut expected) = (Vec::new(), Vec::new());
        for (n, (kind, bytes)) in kinds.into_iter().enumerate() {
            let packet = seg().seq(n as u32 * 1_000).len(bytes);
            match kind {
                0 => {
                    let (frame, shape) = large(bytes, packet);
                    expected.extend(naive::resegment(&frame.bytes, &shape, 100, false));
                    given.push(frame);
                }
                1 => {
                    expected.push(as_completed(packet.bytes()));
                    given.push(packet.partial().frame());
                }
                2 => {
                    expected.push(packet.clone().bad_checksum().bytes());
                    given.push(packet.bad_checksum().frame());
                }
                _ => {
                    expected.push(packet.bytes());
                    given.push(packet.frame());
                }
            }
        }
        let (frames, counters) = carried(&given, validates, budget);
        prop_assert_eq!(counters.frames, frames.len() as u64);
        let bytes = frames.into_iter().map(|frame| frame.bytes).collect::<Vec<_>>();
        prop_assert_eq!(bytes, expected);
    }
}
