//! The single comparison accepts only ACKs that pass all checks of `parse.rs`, and recognises every ACK of a
//! burst.

use std::num::NonZeroU16;

use proptest::prelude::*;
use rxo_frame::{ChecksumStatus, Frame, Gso, GsoKind, Instant, LinkKind, VlanTag};
use rxo_wire::checksum::Summer;
use rxo_wire::tcp::AckRecord;
use rxo_wire::{FlowKey, TcpFlags};

use super::Expected;
use crate::fast::parse::{Expect, V4_BYTES, V6_BYTES};

const MAC: [u8; 6] = [2, 0, 0, 0, 0, 1];

/// The fields that may differ from one ACK to the next.
#[derive(Clone, Copy, Debug)]
struct Fields {
    id: u16,
    seq: u32,
    ack: u32,
    window: u16,
    timestamp: [u32; 2],
}

fn fields() -> impl Strategy<Value = Fields> {
    let fields = (any::<u16>(), any::<u32>(), any::<u32>(), any::<u16>(), any::<[u32; 2]>());
    fields.prop_map(|(id, seq, ack, window, timestamp)| Fields { id, seq, ack, window, timestamp })
}

/// A kind of frame: its link, and three flags: IPv4, with a timestamp, with an ECN mark.
type Kind = (LinkKind, bool, bool, bool);

fn kind() -> impl Strategy<Value = Kind> {
    let link = prop_oneof![Just(LinkKind::Ethernet), Just(LinkKind::RawIp)];
    (link, any::<bool>(), any::<bool>(), any::<bool>())
}

/// Builds an ACK byte by byte, with right checksums.
fn ack((link, is_v4, has_timestamp, is_marked): Kind, it: Fields) -> Vec<u8> {
    let mut tcp =
        [&[0x1f, 0x90, 0xc3, 0x50][..], &it.seq.to_be_bytes(), &it.ack.to_be_bytes()].concat();
    tcp.extend([if has_timestamp { 0x80 } else { 0x50 }, 0x10]);
    tcp.extend(it.window.to_be_bytes());
    tcp.extend([0; 4]);
    if has_timestamp {
        tcp.extend([1, 1, 8, 10]);
        tcp.extend(it.timestamp.iter().flat_map(|value| value.to_be_bytes()));
    }
    let length = tcp.len() as u16;
    let ecn = if is_marked { 2 } else { 0 };
    let (mut ip, addresses) = if is_v4 {
        let mut ip =
            [&[0x45, ecn][..], &(20 + length).to_be_bytes(), &it.id.to_be_bytes()].concat();
        ip.extend([0x40, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        let sum = checksum(&ip);
        ip[10..12].copy_from_slice(&sum.to_be_bytes());
        (ip, 12)
    } else {
        let mut ip = [&[0x60, ecn << 4, 0, 7][..], &length.to_be_bytes(), &[6, 64]].concat();
        ip.extend((1..=32).map(|byte| byte * 7));
        (ip, 8)
    };
    let pseudo = [&ip[addresses..], &[0, 6], &length.to_be_bytes(), &tcp].concat();
    let sum = checksum(&pseudo);
    tcp[16..18].copy_from_slice(&sum.to_be_bytes());
    ip.extend(tcp);
    if link == LinkKind::RawIp {
        return ip;
    }
    let ethertype: [u8; 2] = if is_v4 { [8, 0] } else { [0x86, 0xdd] };
    let mut frame = [&MAC[..], &[2, 0, 0, 0, 0, 2], &ethertype, &ip].concat();
    frame.resize(frame.len().max(60), 0);
    frame
}

/// Returns the Internet checksum, computed literally as in RFC 1071.
fn checksum(bytes: &[u8]) -> u16 {
    let words = bytes.chunks(2).map(|word| u32::from(word[0]) << 8 | u32::from(word[1]));
    let sum: u32 = words.sum();
    let sum = (sum >> 16) + (sum & 0xffff);
    !((sum >> 16) + (sum & 0xffff)) as u16
}

/// Returns the result of all checks of `parse.rs`: the flow and the fields of a pure ACK.
fn checked(link: LinkKind, frame: &Frame<&[u8]>) -> Option<(FlowKey, AckRecord)> {
    let expect = Expect { link, mac: MAC, summer: Summer::detect() };
    let (packet, is_v4) = expect.packet(frame)?;
    let ack = match is_v4 {
        true => expect.read_plain::<V4_BYTES>(frame, packet),
        false => expect.read_plain::<V6_BYTES>(frame, packet),
    };
    ack.ok().map(|ack| (ack.key, ack.record()))
}

/// Returns the prediction after the ACK `bytes`, and the flow key of that ACK.
fn after(link: LinkKind, bytes: &[u8], status: ChecksumStatus) -> (Expected, FlowKey) {
    let frame = Frame { checksum: status, ..Frame::new(bytes, Instant::ZERO) };
    let (key, record) = checked(link, &frame).expect("a pure ACK");
    let mut expected = Expected::default();
    expected.learn(link, &frame, (record.has_timestamp, record.ecn));
    (expected, key)
}

/// Reads `frame` with `expected`; `None` if it does not match. Also checks that an old `record` is fully
/// overwritten on a match, and unchanged otherwise.
fn read(expected: &Expected, frame: &Frame<&[u8]>) -> Option<AckRecord> {
    let before = AckRecord { ecn: 3, flags: TcpFlags::SYN, ..AckRecord::default() };
    let mut record = before;
    let told = expected.read(frame, &mut record);
    let told = told.or_else(|| expected.read_marked(frame, &mut record));
    match told {
        Some(told) => assert_eq!(told, (record.ack, record.window)),
        None => assert_eq!(record, before),
    }
    told.map(|_| record)
}

fn status() -> impl Strategy<Value = ChecksumStatus> {
    prop_oneof![Just(ChecksumStatus::Unknown), Just(ChecksumStatus::Verified)]
}

fn gso() -> Gso {
    Gso::new(GsoKind::TcpV4, NonZeroU16::MIN)
}

fn tag() -> VlanTag {
    VlanTag { tpid: NonZeroU16::MIN, tci: 5 }
}

proptest! {
    #[test]
    fn the_next_ack_of_a_burst_is_recognised(
        kind in kind(), first in fields(), next in fields(), status in status(), now: u32,
    ) {
        let (bytes, now) = (ack(kind, next), Instant::from_nanos(now.into()));
        let (expected, key) = after(kind.0, &ack(kind, first), status);
        let frame = Frame { checksum: status, ..Frame::new(&bytes[..], now) };
        let (flow, record) = checked(kind.0, &frame).expect("a pure ACK");
        prop_assert_eq!(flow, key);
        prop_assert_eq!(read(&expected, &frame), Some(record));
    }

    #[test]
    fn what_is_recognised_passes_all_checks(
        kind in kind(), first in fields(), next in fields(), statuses in [status(), status()],
        changes in prop::collection::vec((0_usize..90, 1_u8..), 0..4),
        is_repaired: bool, more in prop_oneof![4 => Just(0_i8), 1 => -3_i8..4],
        device in prop_oneof![4 => Just((false, false)), 1 => any::<(bool, bool)>()],
    ) {
        let (expected, key) = after(kind.0, &ack(kind, first), statuses[0]);
        let mut bytes = ack(kind, next);
        for (at, bits) in changes {
            let at = at % bytes.len();
            bytes[at] ^= bits;
        }
        if is_repaired {
            repair(kind, &mut bytes);
        }
        bytes.resize(bytes.len().saturating_add_signed(more.into()), 0);
        let frame = Frame {
            checksum: statuses[1],
            gso: device.0.then(gso),
            vlan: device.1.then(tag),
            ..Frame::new(&bytes[..], Instant::ZERO)
        };
        if let Some(record) = read(&expected, &frame) {
            prop_assert_eq!(Some((key, record)), checked(kind.0, &frame));
        }
    }
}

/// Recomputes both checksums of a frame whose headers were changed.
fn repair((link, is_v4, ..): Kind, frame: &mut [u8]) {
    let at = if link == LinkKind::RawIp { 0 } else { 14 };
    let (ip, tcp) = frame[at..].split_at_mut(if is_v4 { 20 } else { 40 });
    if is_v4 {
        ip[10..12].fill(0);
        let sum = checksum(ip);
        ip[10..12].copy_from_slice(&sum.to_be_bytes());
    }
    let length = if tcp[12] >> 4 == 8 { 32 } else { 20 }.min(tcp.len());
    tcp[16..18].fill(0);
    let addresses = if is_v4 { 12 } else { 8 };
    let sum = checksum(&[&ip[addresses..], &[0, 6, 0, length as u8], &tcp[..length]].concat());
    tcp[16..18].copy_from_slice(&sum.to_be_bytes());
}

#[test]
fn nothing_is_expected_at_first_and_after_it_was_forgotten() {
    let kind = (LinkKind::Ethernet, true, true, false);
    let it = Fields { id: 1, seq: 2, ack: 3, window: 4, timestamp: [5, 6] };
    let bytes = ack(kind, it);
    let frame =
        Frame { checksum: ChecksumStatus::Verified, ..Frame::new(&bytes[..], Instant::ZERO) };
    assert_eq!(read(&Expected::default(), &frame), None);
    let (mut expected, _) = after(kind.0, &bytes, ChecksumStatus::Verified);
    assert!(read(&expected, &frame).is_some());
    expected.forget();
    assert_eq!(read(&expected, &frame), None);
}

/// A checksum that the device claims to have verified may be wrong, so it is not used for the comparison.
#[test]
fn a_checksum_that_nobody_has_verified_is_not_compared_with() {
    let kind = (LinkKind::Ethernet, true, true, false);
    let it = Fields { id: 1, seq: 2, ack: 3, window: 4, timestamp: [5, 6] };
    let mut bytes = ack(kind, it);
    bytes[50] ^= 1;
    let (expected, _) = after(kind.0, &bytes, ChecksumStatus::Verified);
    let unknown = Frame::new(&bytes[..], Instant::ZERO);
    assert_eq!(read(&expected, &unknown), None);
}
