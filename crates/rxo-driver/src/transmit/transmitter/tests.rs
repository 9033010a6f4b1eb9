//! Tests of the transmitter against scripted kernels: order is kept, and every frame is counted.

mod cutting;

use std::collections::VecDeque;
use std::num::NonZeroU16;

use rxo_frame::{
    ChecksumStatus, Frame, Gso, GsoKind, GsoTunnel, Instant, Offload, UdpTunnel, VlanTag,
};
use rxo_wire::tunnel::inside_at;
use rxo_wire::{Transport, parse};

use super::super::Written;
use super::super::tally::CUT_NOTICE;
use super::*;
use crate::virtio_net::samples::{VXLAN_BYTES, large_in_vxlan, tcp, vxlan};

/// A kernel that answers by a script of pairs: how many packets it accepts, and the error after them. With an
/// empty script it accepts everything.
struct Scripted {
    script: VecDeque<(usize, i32)>,
    taken: Vec<u8>,
}

impl Writer for Scripted {
    fn write(&mut self, batch: &Sealed<'_, '_>, from: usize) -> Written {
        let left = batch.list().len() - from;
        let (takes, code) = self.script.pop_front().unwrap_or((left, 0));
        let sent = takes.min(left);
        for n in from..from + sent {
            // The payload length identifies the packet.
            self.taken.push((batch.list()[n].bytes - HEADER_BYTES) as u8);
        }
        let refused = (sent < left && code != 0).then(|| io::Error::from_raw_os_error(code));
        Written { sent, submissions: 1, refused, ..Written::default() }
    }
}

const HEADER_BYTES: usize = 54;

/// A packet with `id` bytes of payload. Its frames have `id * 10 + 1` bytes, `id * 10 + 2` bytes and so on. A
/// single frame is in two pieces, like a host's segment, and has no frames to visit.
#[derive(Clone, Copy)]
struct Packet {
    id: u8,
    frames: u8,
    vlan: Option<VlanTag>,
}

const fn packet(id: u8, frames: u8) -> Packet {
    Packet { id, frames, vlan: None }
}

static BYTES: [u8; 512] = [0; 512];

impl Gather<'static> for Packet {
    fn offload(self) -> Offload {
        let checksum = ChecksumStatus::Partial { start: 34, offset: 16 };
        let size = NonZeroU16::new(10).filter(|_| self.frames > 1);
        let gso = size.map(|size| Gso::new(GsoKind::TcpV4, size));
        Offload { checksum, gso, header_bytes: 54 }
    }

    fn vlan(self) -> Option<VlanTag> {
        self.vlan
    }

    fn byte_len(self) -> usize {
        HEADER_BYTES + usize::from(self.id)
    }

    fn for_each_slice(self, mut visit: impl FnMut(&'static [u8])) {
        visit(&BYTES[..HEADER_BYTES]);
        visit(&BYTES[..usize::from(self.id)]);
    }

    fn frame_count(self) -> usize {
        usize::from(self.frames)
    }

    fn for_each_frame(self, mut visit: impl FnMut(Frame<&'static [u8]>)) {
        for n in (1..=self.frames).filter(|_| self.frames > 1) {
            let bytes = HEADER_BYTES + usize::from(self.id * 10 + n);
            visit(Frame::new(&BYTES[..bytes], Instant::ZERO));
        }
    }
}

/// A transmitter that has sent packets to a kernel with a script, and the result.
struct Run {
    transmitter: Transmitter<Scripted>,
    result: io::Result<()>,
}

fn run(script: &[(usize, i32)], packets: &[Packet]) -> Run {
    let script = script.iter().copied().collect();
    let writer = Scripted { script, taken: Vec::new() };
    let mut transmitter = Transmitter::new(writer, Form::ETHERNET);
    let result = transmitter.transmit(packets.iter().copied());
    Run { transmitter, result }
}

impl Run {
    fn taken(&self) -> &[u8] {
        &self.transmitter.writer.taken
    }

    /// Returns the counts of packets, frames, fallbacks and drops.
    fn totals(&self) -> (u64, u64, u64, u64) {
        let c = self.transmitter.counters();
        (c.packets, c.frames, c.fallbacks, c.dropped)
    }
}

#[test]
fn what_is_taken_in_parts_goes_out_once_and_in_order() {
    let packets: Vec<_> = (1..=100).map(|id| packet(id, 1)).collect();
    let run = run(&[(3, 0), (10, 0), (1, libc::EINTR)], &packets);
    assert_eq!(run.taken(), (1..=100).collect::<Vec<u8>>());
    assert_eq!(run.totals(), (100, 100, 0, 0));
}

#[test]
fn a_refused_aggregate_is_replaced_by_its_frames_in_its_place() {
    let packets = [packet(1, 1), packet(2, 3), packet(3, 1)];
    let mut run = run(&[(1, libc::EINVAL)], &packets);
    assert_eq!(run.taken(), [1, 21, 22, 23, 3]);
    assert_eq!(run.totals(), (5, 5, 1, 0));
    let said = run.transmitter.take_notice().unwrap();
    let refused =
        "the system refused an aggregate of TCP over IPv4 (Invalid argument (os error 22)); it and";
    assert!(said.starts_with(refused), "{said}");
    assert_eq!(run.transmitter.take_notice(), None);
}

/// A receiver without an offload for TCP, such as a guest, is not an error.
#[test]
fn a_receiver_that_does_not_accept_a_kind_is_no_error() {
    let mut run = run(&[(0, libc::EOPNOTSUPP)], &[packet(1, 2)]);
    assert_eq!(
        run.transmitter.take_notice().unwrap(),
        "the receiver does not accept an aggregate of TCP over IPv4; it and the next 1000 are sent \
         as their original frames, which costs more, and then one is tried again"
    );
    let next = |run: &mut Run| {
        run.transmitter.writer.taken.clear();
        run.transmitter.transmit([packet(2, 2)].into_iter()).unwrap();
        run.taken().to_vec()
    };
    for n in 0..1_000 {
        assert_eq!(next(&mut run), [21, 22], "{n}");
    }
    assert_eq!(next(&mut run), [2], "tried again");
}

#[test]
fn a_refused_kind_is_not_tried_again_at_once() {
    let packets = [packet(1, 2); 70];
    let run = run(&[(0, libc::EINVAL)], &packets);
    // The first aggregate is refused. The rest of its chunk was encoded before, and the scripted kernel
    // accepts it. The next chunk is sent as single frames at once.
    let mut expected = vec![11, 12];
    expected.extend([1; 63]);
    expected.extend([11, 12].repeat(6));
    assert_eq!(run.taken(), expected);
    assert_eq!(run.totals(), (2 + 63 + 12, 2 + 126 + 12, 7, 0));
}

#[test]
fn a_size_refused_goes_singly_but_is_not_held_against_the_kind() {
    let mut run = run(&[(0, libc::EMSGSIZE)], &[packet(1, 2)]);
    assert_eq!(run.taken(), [11, 12]);
    assert_eq!(run.transmitter.take_notice(), None);
    run.transmitter.transmit([packet(2, 2)].into_iter()).unwrap();
    assert_eq!(run.taken(), [11, 12, 2]);
}

#[test]
fn a_refused_frame_is_dropped_and_the_rest_goes() {
    let run = run(&[(0, libc::EINVAL), (1, libc::EINVAL)], &[packet(1, 3), packet(2, 1)]);
    assert_eq!(run.taken(), [11, 13, 2], "12 was refused singly, too");
    assert_eq!(run.totals(), (3, 3, 1, 1));
}

#[test]
fn what_there_is_no_room_for_is_kept_and_goes_first() {
    let mut run = run(&[(1, libc::EAGAIN), (0, libc::EAGAIN)], &[packet(1, 1), packet(2, 1)]);
    assert_eq!((run.taken(), run.transmitter.is_blocked()), (&[1][..], true));
    run.transmitter.transmit([packet(3, 1)].into_iter()).unwrap();
    assert_eq!((run.taken(), run.transmitter.is_blocked()), (&[1][..], true), "still no room");
    run.transmitter.resume().unwrap();
    assert_eq!((run.taken(), run.transmitter.is_blocked()), (&[1, 2, 3][..], false));
    assert_eq!(run.totals(), (3, 3, 0, 0));
    let copied = run.transmitter.counters().bytes_copied_aside;
    assert_eq!(copied, [2, 3].map(|id| HEADER_BYTES as u64 + id).iter().sum::<u64>());
}

#[test]
fn an_aggregate_is_kept_as_its_frames() {
    let packets = [packet(1, 3), packet(2, 1)];
    let mut run = run(&[(0, libc::EMSGSIZE), (1, libc::EAGAIN)], &packets);
    assert_eq!(run.taken(), [11], "the second of its frames found no room");
    run.transmitter.transmit([packet(3, 2)].into_iter()).unwrap();
    assert_eq!(run.taken(), [11, 12, 13, 2, 3]);
    run.transmitter.writer.script.push_back((0, libc::EAGAIN));
    run.transmitter.transmit([packet(4, 2)].into_iter()).unwrap();
    run.transmitter.resume().unwrap();
    assert_eq!(run.taken(), [11, 12, 13, 2, 3, 41, 42]);
    assert_eq!(run.totals(), (7, 8, 2, 0));
}

/// A packet socket reports ENOBUFS after an egress filter or a full queue has dropped the packet.
#[test]
fn what_a_filter_drops_is_counted_and_not_waited_for() {
    let packets: Vec<_> = (1..=70).map(|id| packet(id, 1)).collect();
    let run = run(&[(0, libc::ENOBUFS); 10_000], &packets);
    assert_eq!((run.taken(), run.transmitter.is_blocked()), (&[][..], false));
    assert_eq!((run.totals(), run.transmitter.counters().dropped_frames), ((0, 0, 0, 70), 70));
    assert_eq!(10_000 - run.transmitter.writer.script.len(), 70, "each is tried once");
}

#[test]
fn what_is_kept_has_a_limit_and_what_is_given_up_is_counted() {
    let mut run = run(&[(0, libc::EAGAIN)], &[packet(1, 1)]);
    let packets = vec![packet(1, 2); 5_000];
    run.transmitter.writer.script = vec![(0, libc::EAGAIN); 100].into();
    run.transmitter.transmit(packets.into_iter()).unwrap();
    let kept = run.transmitter.backlog.len() as u64;
    assert_eq!(run.transmitter.counters().dropped_frames + kept, 10_001);
    run.transmitter.abandon();
    assert_eq!((run.totals().1, run.transmitter.counters().dropped_frames), (0, 10_001));
    assert!(!run.transmitter.is_blocked());
}

/// Frames in = frames out + dropped + kept, for every error at every packet.
#[test]
fn every_frame_is_accounted_for_at_every_refusal() {
    use libc::{EAGAIN, EBADFD, EINTR, EINVAL, EIO, EMSGSIZE, ENETDOWN, ENOBUFS, ENODEV, ENOMEM};
    let codes = [EAGAIN, ENOBUFS, ENOMEM, EINVAL, EMSGSIZE, EINTR, EIO, ENODEV, ENETDOWN, EBADFD];
    let packets: Vec<_> = (1..=20).map(|id| packet(id, 1 + id % 8)).collect();
    let frames: u64 = packets.iter().map(|packet| u64::from(packet.frames)).sum();
    // All pairs of errors: for an aggregate and one of its frames, or for two packets.
    for (first, second) in codes.iter().flat_map(|a| codes.iter().map(move |b| (*a, *b))) {
        for (at, then) in (0..20).flat_map(|at| (0..9).map(move |then| (at, then))) {
            let what = format!("{first} after {at}, {second} after {then}");
            let mut run = run(&[(at, first), (then, second)], &packets);
            let counters = run.transmitter.counters();
            let kept = run.transmitter.backlog.len() as u64;
            assert_eq!(counters.frames + counters.dropped_frames + kept, frames, "{what}");
            let _unless_lost = run.transmitter.transmit(packets.iter().copied());
            run.transmitter.resume().unwrap();
            let counters = run.transmitter.counters();
            assert_eq!(counters.frames + counters.dropped_frames, 2 * frames, "{what}");
            let lost =
                [first, second].iter().any(|code| [EIO, ENODEV, ENETDOWN, EBADFD].contains(code));
            let single = second != EAGAIN && second != EINTR;
            assert!(
                lost || counters.dropped_frames <= 1 + u64::from(single),
                "{what}: {counters:?}"
            );
        }
    }
}

/// A refused aggregate loses none of its eight frames.
#[test]
fn a_refused_aggregate_of_eight_goes_out_as_eight() {
    for code in [libc::ENOBUFS, libc::ENOMEM, libc::EAGAIN, libc::EINVAL, libc::EMSGSIZE] {
        let mut run = run(&[(0, code)], &[packet(1, 8)]);
        run.transmitter.resume().unwrap();
        assert_eq!(run.taken(), (11..=18).collect::<Vec<u8>>(), "{code}");
        assert_eq!(run.totals(), (8, 8, 1, 0), "{code}");
        assert_eq!(run.transmitter.counters().dropped_frames, 0, "{code}");
    }
}

#[test]
fn a_lost_device_drops_everything_left_and_counts_it() {
    let packets: Vec<_> = (1..=100).map(|id| packet(id, 1)).collect();
    let run = run(&[(5, libc::EIO)], &packets);
    assert_eq!(run.result.unwrap_err().raw_os_error(), Some(libc::EIO));
    assert_eq!(run.transmitter.writer.taken, [1, 2, 3, 4, 5]);
    assert_eq!(run.transmitter.counters().dropped, 95);
}

#[test]
fn a_device_lost_while_falling_back_drops_and_counts_the_rest() {
    let packets = [packet(1, 3), packet(2, 1), packet(3, 1)];
    let run = run(&[(0, libc::EINVAL), (1, libc::ENODEV)], &packets);
    assert!(run.result.is_err());
    assert_eq!(run.transmitter.writer.taken, [11]);
    assert_eq!(run.totals_after_error(), (1, 4), "12, 13, 2 and 3");
}

impl Run {
    fn totals_after_error(&self) -> (u64, u64) {
        let counters = self.transmitter.counters();
        (counters.packets, counters.dropped)
    }
}

#[test]
fn a_tag_that_a_link_cannot_carry_is_a_counted_drop() {
    let vlan = Some(VlanTag { tpid: NonZeroU16::new(0x8100).unwrap(), tci: 1 });
    let mut run = run(&[], &[]);
    run.transmitter.form.link = LinkKind::RawIp;
    let packets = [Packet { vlan, ..packet(1, 1) }, packet(2, 1)];
    run.transmitter.transmit(packets.into_iter()).unwrap();
    assert_eq!(run.taken(), [2]);
    assert_eq!(run.totals(), (1, 1, 0, 1));
}

/// A packet in pieces of these lengths, with a VLAN tag.
#[derive(Clone, Copy)]
struct Pieces(&'static [usize]);

impl Gather<'static> for Pieces {
    fn offload(self) -> Offload {
        Offload::default()
    }

    fn vlan(self) -> Option<VlanTag> {
        Some(VlanTag { tpid: NonZeroU16::new(0x8100).unwrap(), tci: 1 })
    }

    fn byte_len(self) -> usize {
        self.0.iter().sum()
    }

    fn for_each_slice(self, mut visit: impl FnMut(&'static [u8])) {
        self.0.iter().for_each(|bytes| visit(&BYTES[..*bytes]));
    }

    fn frame_count(self) -> usize {
        1
    }

    fn for_each_frame(self, _: impl FnMut(Frame<&'static [u8]>)) {}
}

/// A tag is inserted after the addresses, so a packet whose first piece is shorter cannot be encoded.
#[test]
fn a_tag_goes_behind_the_addresses_or_nowhere() {
    let mut messages = Messages::with_room(1, 1);
    let mut batch = messages.begin(Form::ETHERNET);
    let pushed = [&[][..], &[0, 60], &[11, 60], &[12], &[12, 60]]
        .map(|pieces| batch.push(Pieces(pieces), 0, None));
    assert_eq!(pushed, [false, false, false, true, true]);
    let sealed = batch.seal();
    let lengths = |n| sealed.slices(n).map(<[u8]>::len).collect::<Vec<_>>();
    assert_eq!([lengths(0), lengths(1)], [vec![10, 12, 4, 0], vec![10, 12, 4, 0, 60]]);
}

#[test]
fn every_packet_has_its_own_header_and_its_own_tag() {
    let vlan = |tci| Some(VlanTag { tpid: NonZeroU16::new(0x88a8).unwrap(), tci });
    let packets = [packet(1, 1), Packet { vlan: vlan(7), ..packet(2, 3) }, packet(3, 1)];
    let mut messages = Messages::default();
    let mut batch = messages.begin(Form::ETHERNET);
    for (n, packet) in packets.into_iter().enumerate() {
        assert!(batch.push(packet, n, None));
    }
    let sealed = batch.seal();
    let lengths = |n| sealed.pieces(n).iter().map(|piece| piece.iov_len).collect::<Vec<_>>();
    assert_eq!(lengths(0), [10, 54, 1]);
    assert_eq!(lengths(1), [10, 12, 4, 42, 2]);
    assert_eq!(lengths(2), [10, 54, 3]);
    assert_eq!(sealed.list()[1].bytes, 60);
    let starts: Vec<_> = (0..3).map(|n| sealed.pieces(n)[0].iov_base as usize).collect();
    assert!(starts[0] != starts[1] && starts[1] != starts[2]);
}

/// A writer that accepts everything and stores it.
#[derive(Debug, Default)]
struct Keeper(Vec<Vec<u8>>);

impl Writer for Keeper {
    fn write(&mut self, batch: &Sealed<'_, '_>, from: usize) -> Written {
        let all = from..batch.list().len();
        let packets = all.clone().map(|n| batch.slices(n).collect::<Vec<_>>().concat());
        self.0.extend(packets);
        Written { sent: all.len(), submissions: 1, ..Written::default() }
    }
}

/// Sends a GSO frame in a VXLAN tunnel between two other frames. Returns the sent packets and the notices.
fn sent_around_a_tunnel(takes_tunnels: bool) -> (Vec<Vec<u8>>, Vec<String>) {
    let (whole, small) = (vxlan(2_500), tcp(10));
    let tunnel = GsoTunnel::udp(UdpTunnel {
        outer_transport: 34,
        inner_network: (VXLAN_BYTES + 14) as u8,
        is_outer_v6: false,
        has_checksum: false,
    });
    let large = large_in_vxlan(&whole, 1_000, Some(tunnel));
    let other = Frame::new(&small[..], Instant::ZERO);
    let header_bytes = if takes_tunnels { 24 } else { 10 };
    let form = Form { takes_tunnels, header_bytes, ..Form::ETHERNET };
    let mut transmitter = Transmitter::new(Keeper::default(), form);
    transmitter.transmit([other, large, large, other].into_iter()).unwrap();
    assert!(!transmitter.is_blocked());
    let notices = std::iter::from_fn(|| transmitter.take_notice()).collect();
    (std::mem::take(&mut transmitter.writer.0), notices)
}

#[test]
fn a_gso_frame_of_a_tunnel_is_named_where_that_is_possible() {
    let (sent, notices) = sent_around_a_tunnel(true);
    let lengths: Vec<_> = sent.iter().map(Vec::len).collect();
    let (small, large) = (24 + tcp(10).len(), 24 + vxlan(2_500).len());
    assert_eq!(lengths, [small, large, large, small]);
    assert_eq!((sent[1][1], &sent[1][20..24]), (0x21, &[34, 0, 64, 0][..]));
    assert!(notices.is_empty());
}

#[test]
fn a_gso_frame_of_a_tunnel_leaves_in_segments_and_in_its_place_elsewhere() {
    let (sent, notices) = sent_around_a_tunnel(false);
    let lengths: Vec<_> = sent.iter().map(|bytes| bytes.len() - 10).collect();
    let segment = |payload| vxlan(payload).len();
    let parts = [segment(1_000), segment(1_000), segment(500)];
    assert_eq!(lengths, [&[tcp(10).len()], &parts[..], &parts[..], &[tcp(10).len()]].concat());
    // The inner checksum is left to the device, no segment is a GSO frame, and there is one notice.
    assert!(sent[1..7].iter().all(|bytes| bytes[..2] == [1, 0]));
    let outer: Vec<_> = sent[1..4].iter().map(|bytes| parse(&bytes[10..]).unwrap()).collect();
    assert!(outer.iter().all(|parsed| parsed.ip.checksum_ok));
    let inner = |n: usize| inside_at(&sent[n][10..], &outer[n - 1], 84).unwrap().parsed.transport;
    let seq = |n: usize| match inner(n) {
        Transport::Tcp(tcp) => tcp.seq.0,
        other => panic!("{other:?}"),
    };
    assert_eq!([seq(1), seq(2), seq(3)], [0, 1_000, 2_000]);
    assert_eq!(notices, [CUT_NOTICE]);
}
