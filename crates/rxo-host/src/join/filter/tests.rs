//! Tests of the filter with hand-made frames and virtual time.

use std::net::Ipv4Addr;

use proptest::prelude::*;
use rxo_wire::build::{EthernetHeader, Ipv4Header, Ipv6Header, TcpHeader, write_tcp_checksum};
use rxo_wire::checksum::{Summer, verify_ip_header, verify_tcp};

use super::*;
use crate::join::Join;

const SENDER: &str = "10.0.0.9:7000";
const GROUP: &str = "232.1.1.1:7001";
const RECEIVER: &str = "10.0.0.5:40000";
const MAC: [u8; 6] = [2, 0, 0, 0, 0, 5];
/// The initial sequence number of both sides; their clocks follow.
const ISS: SeqNumber = SeqNumber(u32::MAX - 50);
const OURS: SeqNumber = SeqNumber(9_000);
const CLOCK: u32 = 1_000_000;
const OUR_CLOCK: u32 = 555;

fn address(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

fn at(millis: u64) -> Instant {
    Instant::from_micros(millis * 1_000)
}

/// A segment, from the sender to the group unless it is changed.
#[derive(Clone)]
struct Seg {
    from: SocketAddr,
    to: SocketAddr,
    seq: SeqNumber,
    ack: SeqNumber,
    flags: TcpFlags,
    window: u16,
    stamp: (u32, u32),
    is_syn: bool,
    text: Vec<u8>,
}

fn to_group(at: u32, text: &[u8]) -> Seg {
    Seg {
        from: address(SENDER),
        to: address(GROUP),
        seq: ISS + 1 + at,
        ack: SeqNumber(0xdead_beef),
        flags: TcpFlags::ACK,
        window: 3,
        stamp: (CLOCK, 0xbad),
        is_syn: false,
        text: text.to_vec(),
    }
}

fn from_sender() -> Seg {
    Seg { to: address(RECEIVER), ack: OURS + 1, window: 200, ..to_group(0, b"") }
}

fn from_receiver() -> Seg {
    Seg {
        from: address(RECEIVER),
        to: address(SENDER),
        seq: OURS + 1,
        ack: ISS + 1,
        window: 50,
        stamp: (OUR_CLOCK, CLOCK),
        ..to_group(0, b"")
    }
}

impl Seg {
    fn frame(&self) -> Vec<u8> {
        let [value, echo] = [self.stamp.0, self.stamp.1].map(u32::to_be_bytes);
        let mut options = [&[1, 1, 8, 10][..], &value, &echo].concat();
        if self.is_syn {
            options.extend([2, 4, 3, 232, 4, 2, 1, 1, 3, 3, 7, 0]);
        }
        let header = TcpHeader {
            source_port: self.from.port(),
            destination_port: self.to.port(),
            seq: self.seq,
            ack: self.ack,
            flags: self.flags,
            window: self.window,
            options: &options,
            ..TcpHeader::default()
        };
        let payload_bytes = header.bytes() + self.text.len();
        let mut frame = vec![0; 60 + 14 + payload_bytes];
        let ethertype = if self.from.is_ipv4() { 0x0800 } else { 0x86dd };
        let source = if self.from == address(RECEIVER) { MAC } else { [2, 0, 0, 0, 0, 9] };
        let link = EthernetHeader { source, ethertype, ..EthernetHeader::default() };
        let (rest, pseudo, bytes) = match (self.from, self.to) {
            (SocketAddr::V4(from), SocketAddr::V4(to)) => {
                let ip = Ipv4Header {
                    source: *from.ip(),
                    destination: *to.ip(),
                    protocol: 6,
                    payload_bytes,
                    ..Ipv4Header::default()
                };
                (ip.write(link.write(&mut frame).unwrap()).unwrap(), ip.pseudo_header(), 34)
            }
            (SocketAddr::V6(from), SocketAddr::V6(to)) => {
                let ip = Ipv6Header {
                    source: *from.ip(),
                    destination: *to.ip(),
                    next_header: 6,
                    payload_bytes,
                    ..Ipv6Header::default()
                };
                let pseudo = ip.pseudo_header(6, payload_bytes as u32);
                (ip.write(link.write(&mut frame).unwrap()).unwrap(), pseudo, 54)
            }
            _ => panic!("two versions"),
        };
        let segment = &mut rest[..payload_bytes];
        header.write(segment).unwrap().copy_from_slice(&self.text);
        write_tcp_checksum(segment, pseudo, Summer::portable()).unwrap();
        frame.truncate(bytes + payload_bytes);
        frame
    }
}

/// The group is joined in the name of the next host that has a right address.
#[test]
fn an_address_that_no_host_has_joins_nothing_and_ends_nothing() {
    let mut join = Join::new(address(SENDER), address(GROUP)).unwrap();
    let from = |from: &str| {
        let syn = Seg { seq: OURS, flags: TcpFlags::SYN, is_syn: true, ..from_receiver() };
        Seg { from: address(from), ..syn }.frame()
    };
    for (source, joins) in [("255.255.255.255:40000", false), (RECEIVER, true)] {
        join.on_host_frame(&from(source), at(0));
        assert_eq!(join.reports(at(0)).count() > 0, joins, "{source}");
    }
}

/// Returns the filter of a connection that is open.
fn opened() -> Filter {
    let mut filter = Filter::new(address(SENDER), address(GROUP));
    let syn = Seg { seq: OURS, flags: TcpFlags::SYN, is_syn: true, ..from_receiver() };
    let opens = MembershipChange::Opens { receiver: address(RECEIVER), mac: MAC };
    assert_eq!(filter.on_host_frame(&syn.frame(), at(0)), opens);
    let flags = TcpFlags::SYN | TcpFlags::ACK;
    let answer = Seg { seq: ISS, flags, is_syn: true, ..from_sender() };
    assert_eq!(filter.decide(&answer.frame(), at(1)), FrameDecision::Pass);
    assert_eq!(filter.on_host_frame(&from_receiver().frame(), at(1)), MembershipChange::Nothing);
    filter
}

fn rewritten(filter: &mut Filter, seg: &Seg, now: Instant) -> Option<Vec<u8>> {
    match filter.decide(&seg.frame(), now) {
        FrameDecision::Rewritten(bytes) => Some(bytes),
        FrameDecision::Drop => None,
        FrameDecision::Pass => panic!("it passes as it is"),
    }
}

fn is_right(frame: &[u8]) -> bool {
    let parsed = parse(frame).unwrap();
    verify_ip_header(parsed.at, frame)
        && verify_tcp(&parsed.key, parsed.at, frame, Summer::portable())
}

#[test]
fn a_segment_to_the_group_becomes_the_receivers_own() {
    let mut filter = opened();
    let got = rewritten(&mut filter, &to_group(0, b"hello"), at(2)).unwrap();
    let own = Seg { stamp: (CLOCK, OUR_CLOCK), ..from_sender() };
    let mut expected = Seg { text: b"hello".to_vec(), ..own }.frame();
    expected[..6].copy_from_slice(&MAC);
    assert_eq!(got, expected, "what the sender would have sent to this receiver alone");
}

#[test]
fn the_fields_follow_what_both_sides_say() {
    let mut filter = opened();
    // The receiver sends 100 bytes, its clock goes on, and the sender acknowledges them with another window.
    let more = Seg { text: vec![7; 100], stamp: (600, CLOCK), ..from_receiver() };
    filter.on_host_frame(&more.frame(), at(5));
    filter.decide(&Seg { ack: OURS + 101, window: 77, ..from_sender() }.frame(), at(6));
    let got = rewritten(&mut filter, &to_group(0, b"x"), at(7)).unwrap();
    let (key, tcp, options) = segment_in(&got).unwrap();
    assert_eq!(key.receiver(), address(RECEIVER));
    assert_eq!((tcp.segment.ack, tcp.segment.window), (OURS + 101, 77));
    assert_eq!(options.timestamp.map(|it| (it.value, it.echo)), Some((CLOCK, 600)));
}

#[test]
fn what_is_not_for_the_group_passes_as_it_is() {
    let mut filter = opened();
    for seg in [from_sender(), Seg { to: address("10.0.0.77:1"), ..from_sender() }] {
        assert_eq!(filter.decide(&seg.frame(), at(2)), FrameDecision::Pass);
    }
    assert_eq!(filter.decide(&[0xff; 60], at(2)), FrameDecision::Pass);
}

#[test]
fn forgeries_do_not_reach_the_receiver() {
    let right = to_group(0, b"hello");
    let rows = [
        ("another source", Seg { from: address("10.0.0.8:7000"), ..right.clone() }),
        ("another source port", Seg { from: address("10.0.0.9:7001"), ..right.clone() }),
        ("another port", Seg { to: address("232.1.1.1:7000"), ..right.clone() }),
        ("a reset", Seg { flags: TcpFlags::RST, ..right.clone() }),
        ("a SYN", Seg { flags: TcpFlags::SYN, ..right.clone() }),
        ("nothing", to_group(0, b"")),
        ("a clock ahead", Seg { stamp: (CLOCK + 20_000, 0), ..right.clone() }),
        ("a clock behind", Seg { stamp: (CLOCK - 20_000, 0), ..right.clone() }),
    ];
    for (name, forged) in rows {
        let mut filter = opened();
        assert_eq!(rewritten(&mut filter, &forged, at(2)), None, "{name}");
        assert_eq!(filter.counts, JoinCounters { refused: 1, ..JoinCounters::default() }, "{name}");
        assert!(rewritten(&mut filter, &right, at(2)).is_some(), "after {name}");
    }
}

/// An ACK number for bytes that the receiver has not sent would stall it, so the filter must not adopt it.
#[test]
fn a_forged_acknowledgement_is_not_learned() {
    let mut filter = opened();
    for ack in [OURS + 2, OURS, OURS + 1_000_000] {
        filter.decide(&Seg { ack, window: 1, ..from_sender() }.frame(), at(2));
    }
    let got = rewritten(&mut filter, &to_group(0, b"x"), at(3)).unwrap();
    let (_, tcp, _) = segment_in(&got).unwrap();
    assert_eq!((tcp.segment.ack, tcp.segment.window), (OURS + 1, 200));
}

#[test]
fn what_lies_outside_the_window_passes_ten_times() {
    let mut filter = opened();
    let old = Seg { seq: SeqNumber(ISS.0 - 29), ..to_group(0, b"old") };
    let future = Seg { seq: ISS + 1 + 50 * 128, ..to_group(0, b"new") };
    let passed = (0..500).filter(|number| {
        let seg = if number % 2 == 0 { &old } else { &future };
        rewritten(&mut filter, seg, at(2)).is_some()
    });
    assert_eq!(passed.count(), 10);
    assert!(rewritten(&mut filter, &Seg { stamp: (CLOCK + 5_000, 0), ..old }, at(5_003)).is_some());
    assert!(rewritten(&mut filter, &to_group(0, b"x"), at(5_003)).is_some());
}

#[test]
fn before_and_after_the_connection_there_is_nothing() {
    let mut filter = Filter::new(address(SENDER), address(GROUP));
    assert_eq!(rewritten(&mut filter, &to_group(0, b"x"), at(0)), None);
    let mut filter = opened();
    let reset = Seg { flags: TcpFlags::RST, ..from_receiver() };
    assert_eq!(filter.on_host_frame(&reset.frame(), at(2)), MembershipChange::Ends);
    assert_eq!(rewritten(&mut filter, &to_group(0, b"x"), at(3)), None);
}

fn fin() -> TcpFlags {
    TcpFlags::FIN | TcpFlags::ACK
}

/// Builds an ACK of everything before offset `at` of the stream.
fn acks(at: u32) -> Seg {
    Seg { seq: OURS + 2, ack: ISS + 1 + at, ..from_receiver() }
}

/// Like `nc -N` at the end of its input: the receiver stays in the group until it has the sender's FIN.
#[test]
fn a_receiver_that_closes_its_side_first_gets_all_that_follows() {
    let mut filter = opened();
    let closes = Seg { flags: fin(), ..from_receiver() };
    assert_eq!(filter.on_host_frame(&closes.frame(), at(2)), MembershipChange::Nothing);
    filter.decide(&Seg { ack: OURS + 2, ..from_sender() }.frame(), at(3));
    let got = rewritten(&mut filter, &to_group(0, b"hello"), at(4)).unwrap();
    assert_eq!(segment_in(&got).unwrap().1.segment.ack, OURS + 2, "of its FIN");
    let last = Seg { flags: fin(), ..to_group(5, b"end") };
    assert!(rewritten(&mut filter, &last, at(5)).is_some());
    assert_eq!(filter.on_host_frame(&acks(8).frame(), at(6)), MembershipChange::Nothing);
    assert_eq!(filter.on_host_frame(&acks(9).frame(), at(6)), MembershipChange::Ends);
    assert_eq!(rewritten(&mut filter, &last, at(7)), None);
    let again = Seg { flags: fin(), text: b"end".to_vec(), seq: ISS + 6, ..from_sender() };
    assert_eq!(
        filter.decide(&again.frame(), at(8)),
        FrameDecision::Pass,
        "a repair, if the ACK was lost"
    );
}

#[test]
fn a_fin_that_comes_as_a_repair_ends_the_membership_as_well() {
    let mut filter = opened();
    let outside = Seg { seq: SeqNumber(ISS.0 - 9), flags: fin(), ..from_sender() };
    filter.decide(&outside.frame(), at(2));
    assert_eq!(
        filter.on_host_frame(&acks(0).frame(), at(2)),
        MembershipChange::Nothing,
        "no FIN of this stream"
    );
    let last = Seg { flags: fin(), text: b"end".to_vec(), ..from_sender() };
    assert_eq!(filter.decide(&last.frame(), at(2)), FrameDecision::Pass);
    assert_eq!(filter.on_host_frame(&acks(4).frame(), at(3)), MembershipChange::Ends);
}

proptest! {
    /// The oracle sums everything again; a frame that was damaged stays damaged.
    #[test]
    fn checksums_are_right_after_any_change(
        text in prop::collection::vec(any::<u8>(), 0..200),
        (ack, window, echo, port, last) in any::<(u32, u16, u32, u16, u32)>(),
        is_v6: bool,
        damage in prop::option::of((0_usize..20, 1_u8..)),
    ) {
        let mut seg = to_group(7, &text);
        let mut receiver = SocketAddr::from((Ipv4Addr::from_bits(last), port));
        if is_v6 {
            (seg.from, seg.to) = (address("[fd00::9]:7000"), address("[ff3e::8000:1]:7001"));
            let ip = u128::from(last) << 64 | 0xfd00 << 112 | u128::from(port);
            receiver = SocketAddr::from((std::net::Ipv6Addr::from_bits(ip), port));
        }
        let mut frame = seg.frame();
        let parsed = parse(&frame).unwrap();
        if let Some((place, bits)) = damage {
            // The damage is in the sequence number, so that the headers stay readable.
            frame[parsed.at.transport as usize + 4 + place % 4] ^= bits;
        }
        let target = Target { mac: MAC, receiver, ack: SeqNumber(ack), window, echo };
        rewrite(&mut frame, parsed.at, &target).unwrap();
        prop_assert_eq!(is_right(&frame), damage.is_none());
        let (key, tcp, options) = segment_in(&frame).unwrap();
        prop_assert_eq!(key.receiver(), receiver);
        prop_assert_eq!((tcp.segment.ack.0, tcp.segment.window), (ack, window));
        prop_assert_eq!(options.timestamp.map(|it| it.echo), Some(echo));
        prop_assert_eq!(&frame[parsed.at.payload as usize..], &text[..]);
    }

    #[test]
    fn any_bytes_get_a_verdict(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let mut filter = opened();
        filter.on_host_frame(&bytes, at(2));
        filter.decide(&bytes, at(2));
    }
}
