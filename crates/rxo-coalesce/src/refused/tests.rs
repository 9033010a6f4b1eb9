//! Compares the classification by fixed offsets with the full rules.

use std::vec;
use std::vec::Vec;

use proptest::collection;
use proptest::prelude::{any, prop_assert_eq, proptest};
use proptest::sample::select;
use rxo_frame::{Frame, Instant};
use rxo_testkit::script::{property, scripts};
use rxo_testkit::{Packet, seg, udp};
use rxo_wire::{ETHERNET_HEADER_BYTES, Malformed, parse_ip};

use super::*;
use crate::acks::{ack_candidate, is_pure};
use crate::shape::{V4, V6};
use crate::{Candidate, candidate};

/// Returns the reason that the fixed offsets give; `None` if they do not refuse the packet.
fn by_offsets(packet: &[u8], policy: &Policy) -> Option<BypassReason> {
    let reason = |shown| match shown {
        PacketClass::Refused { reason, .. } => Some(reason),
        PacketClass::Ordinary | PacketClass::Nothing => None,
    };
    reason(classify::<V4>(packet, policy)).or_else(|| reason(classify::<V6>(packet, policy)))
}

fn is_ordinary<S: Shape>(packet: &[u8]) -> bool {
    classify::<S>(packet, &Policy::linux_gro()) == PacketClass::Ordinary
}

/// Returns the reason that the full parse and the rules give; `None` if they accept the packet.
fn by_the_rules(packet: &[u8], policy: &Policy) -> Option<BypassReason> {
    match parse_ip(packet) {
        Ok(parsed) if is_pure(&parsed) && policy.ack_limit() >= 2 => {
            ack_candidate(&parsed, packet, policy).err()
        }
        Ok(parsed) => candidate(&parsed, policy).err(),
        Err(unparsed) => Some(match unparsed.why {
            Malformed::NotIp => BypassReason::NotIp,
            Malformed::Truncated => BypassReason::Truncated,
            Malformed::Version | Malformed::Length => BypassReason::Malformed,
        }),
    }
}

/// Returns packets that fixed offsets refuse, with the expected reasons.
fn refused() -> Vec<(Packet, BypassReason)> {
    vec![
        (seg().syn(), BypassReason::Syn),
        (seg().rst(), BypassReason::Rst),
        (seg().fin(), BypassReason::Fin),
        (seg().urg(), BypassReason::Urg),
        (seg().urgent(1), BypassReason::Urg),
        (seg().cwr(), BypassReason::Cwr),
        (seg().ece(), BypassReason::Ece),
        (seg().no_ack(), BypassReason::OddFlags),
        (seg().pure_ack().psh(), BypassReason::PureAck),
        (seg().pure_ack().sack(&[(1, 2)]), BypassReason::PureAck),
        (seg().length_lie(4000), BypassReason::Truncated),
        (seg().offset_lie(-1), BypassReason::Malformed),
        (seg().protocol(50), BypassReason::UnknownHeader),
        (udp(), BypassReason::NotTcp),
    ]
}

/// Returns IPv4 packets that bypass, with the expected reasons.
fn refused_v4() -> Vec<(Packet, BypassReason)> {
    vec![
        (seg().header_lie(-1), BypassReason::Malformed),
        (seg().syn().bad_ip_checksum(), BypassReason::BadIpChecksum),
        (seg().reserved_bit(), BypassReason::ReservedBit),
        (seg().bad_ip_checksum(), BypassReason::BadIpChecksum),
        (seg().ip_options(&[1]), BypassReason::IpOptions),
        (seg().ip_options(&[1]).bad_ip_checksum(), BypassReason::BadIpChecksum),
        (seg().fragment(0, true), BypassReason::Fragment),
    ]
}

#[test]
fn fixed_offsets_show_why_most_packets_are_refused() {
    let policy = Policy { fin: crate::FinRule::Bypass, ..Policy::linux_gro() };
    let policy = Policy { ece: crate::EceRule::Bypass, ..policy };
    let v6 = refused().into_iter().map(|(packet, reason)| (packet.v6(), reason));
    for (packet, reason) in refused().into_iter().chain(refused_v4()).chain(v6) {
        let bytes = packet.clone().raw_ip().bytes();
        assert_eq!(by_offsets(&bytes, &policy), Some(reason), "{packet:#?}");
        assert_eq!(by_the_rules(&bytes, &policy), Some(reason), "{packet:#?}");
    }
}

#[test]
fn segments_that_may_be_coalesced_are_not_refused() {
    let policy = Policy::linux_gro();
    let ordinary: [Packet; 4] = [seg(), seg().psh(), seg().ts(1, 2), seg().v6()];
    for packet in ordinary.into_iter().chain([seg().extension(0, &[])]) {
        let bytes = packet.raw_ip().bytes();
        assert_eq!(by_offsets(&bytes, &policy), None);
    }
    let record = Policy { pure_acks: crate::PureAckRule::Record, max_acks: 8, ..policy };
    assert_eq!(by_offsets(&seg().pure_ack().raw_ip().bytes(), &record), None);
}

/// Asserts that fixed offsets read the same fields of an ordinary segment as the full parse.
fn assert_ordinary<S: Shape>(packet: &[u8]) {
    let frame = Frame::new(packet, Instant::ZERO);
    let parsed = parse_ip(packet).expect("an ordinary segment");
    let Transport::Tcp(tcp) = parsed.transport else { panic!("{parsed:?} is no TCP segment") };
    assert_eq!(flow::<S>(packet), parsed.key);
    if let Some(read) = Candidate::ordinary::<S, _>(&frame, 0) {
        assert_eq!((read.ip, read.tcp, read.at), (parsed.ip, tcp, parsed.at));
    }
}

#[test]
fn ordinary_segments_are_read_from_fixed_offsets() {
    let [bare, timed] = [seg().psh(), seg().ts(7, 0).tos(8).ttl(9).df(false)];
    for packet in [bare, timed] {
        let v4 = packet.clone().raw_ip().frame();
        assert!(is_ordinary::<V4>(&v4.bytes) && !is_ordinary::<V6>(&v4.bytes), "{packet:#?}");
        assert!(Candidate::ordinary::<V4, _>(&v4, 0).is_some(), "{packet:#?}");
        assert_ordinary::<V4>(&v4.bytes);
        let v6 = packet.clone().v6().flow_label(5).raw_ip().frame();
        assert!(is_ordinary::<V6>(&v6.bytes) && !is_ordinary::<V4>(&v6.bytes), "{packet:#?}");
        assert!(Candidate::ordinary::<V6, _>(&v6, 0).is_some(), "{packet:#?}");
        assert_ordinary::<V6>(&v6.bytes);
    }
    for packet in [seg().ts_first(1, 2), seg().window_scale(7)] {
        assert!(Candidate::ordinary::<V4, _>(&packet.raw_ip().frame(), 0).is_none());
    }
    for packet in [seg().pure_ack(), seg().fin(), seg().bad_ip_checksum(), seg().ip_options(&[1])] {
        assert!(!is_ordinary::<V4>(&packet.raw_ip().bytes()));
    }
}

proptest! {
    #![proptest_config(property(300))]

    #[test]
    fn any_packet_gets_the_reason_of_the_full_rules(
        script in scripts(60),
        changes in collection::vec((0..80_usize, any::<u8>()), 0..3),
        policy in select(Policy::all().to_vec()),
    ) {
        for frame in script.frames() {
            let mut bytes = frame.bytes().to_vec();
            for (at, byte) in &changes {
                if let Some(changed) = bytes.get_mut(*at) {
                    *changed = *byte;
                }
            }
            for start in [0, ETHERNET_HEADER_BYTES] {
                let packet = bytes.get(start..).unwrap_or_default();
                if is_ordinary::<V4>(packet) {
                    assert_ordinary::<V4>(packet);
                }
                if is_ordinary::<V6>(packet) {
                    assert_ordinary::<V6>(packet);
                }
                if let Some(reason) = by_offsets(packet, &policy) {
                    prop_assert_eq!(Some(reason), by_the_rules(packet, &policy));
                }
            }
        }
    }
}
