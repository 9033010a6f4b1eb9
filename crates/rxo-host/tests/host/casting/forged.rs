//! Forged ACKs and SYNs, with the source address of another host.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use rxo_frame::{ChecksumStatus, Frame};
use rxo_host::{CastConfig, FastModules};
use rxo_tcp::{Late, SegmentOptions};
use rxo_wire::build::{Ipv4Header, TcpHeader, timestamp_option, write_tcp_checksum};
use rxo_wire::checksum::Summer;
use rxo_wire::tcp::Timestamp;
use rxo_wire::{SeqNumber, TcpFlags, Transport, parse_ip};

use super::{Rack, SENDER, address, cast_config};

/// A pure ACK to the sender of everything before `ack`, with a timestamp ahead of every receiver's.
fn pure_ack(from: SocketAddr, seq: SeqNumber, ack: SeqNumber) -> Vec<u8> {
    let options = timestamp_option(Timestamp { value: u32::MAX / 4, echo: 0 });
    let header = TcpHeader {
        source_port: from.port(),
        destination_port: address(SENDER).port(),
        seq,
        ack,
        flags: TcpFlags::ACK,
        window: 60_000,
        options: &options,
        ..TcpHeader::default()
    };
    let v4 = |address: SocketAddr| address.ip().to_string().parse::<Ipv4Addr>().unwrap();
    let ip = Ipv4Header {
        source: v4(from),
        destination: v4(address(SENDER)),
        protocol: 6,
        payload_bytes: header.bytes(),
        ..Ipv4Header::default()
    };
    let mut packet = vec![0; ip.bytes() + ip.payload_bytes];
    let segment = ip.write(&mut packet).unwrap();
    header.write(segment).unwrap();
    write_tcp_checksum(segment, ip.pseudo_header(), Summer::portable()).unwrap();
    packet
}

/// ACKs from a wrong source with right numbers, and a receiver's ACKs of data never sent, change no
/// connection of the cast, on the fast path and on the slow path; all receivers get the stream.
#[test]
fn forged_acks_change_no_connection_on_either_way() {
    for fast in [false, true] {
        let mut rack = Rack::with(5, cast_config(), 8_000_000, |config| {
            config.fast_path.modules = if fast { FastModules::PURE_ACK } else { FastModules::OFF };
        });
        rack.begin();
        (0..20).for_each(|_| {
            rack.feed();
            rack.step();
        });
        let own = rack.receivers[2].stream.local_addr().unwrap();
        let seen = rack.receivers[2].stream.statistics();
        let una = |rack: &Rack| {
            let all = rack.sender.connections(0, 100).look().into_iter();
            all.map(|it| (it.statistics.snd_una, it.statistics.rcv_nxt)).collect::<Vec<_>>()
        };
        let (elsewhere, other_port) =
            (SocketAddr::new([10, 0, 9, 9].into(), own.port()), own.port() ^ 1);
        let unsent = |step: u32| seen.rcv_nxt + 100_000_000 + step;
        for step in 0..200_u32 {
            let (seq, ack) = (seen.snd_nxt, seen.rcv_nxt);
            let forged = match step % 4 {
                0 => pure_ack(elsewhere, seq, ack),
                1 => pure_ack(SocketAddr::new(own.ip(), other_port), seq, ack),
                2 => pure_ack(own, seq, unsent(step)),
                _ => pure_ack(own, seq + 1_000_000_000, ack + step),
            };
            let before = una(&rack);
            assert_eq!(before.len(), 5);
            rack.back.push(&Frame::new(forged, rack.now));
            while !rack.sender.turn(rack.now).unwrap().is_idle() {}
            assert_eq!(una(&rack), before, "step {step}, fast path {fast}");
        }
        rack.finish();
        assert_eq!(rack.done(), 5, "{:?}", rack.ended);
    }
}

/// Forged SYNs, whose SYN-ACKs are never answered, create no members and delay nobody. A real receiver can
/// join once their half-open connections have expired.
#[test]
fn joins_that_do_not_complete_the_handshake_hold_nobody_up() {
    let mut rack = Rack::with(4, cast_config(), 300_000, |config| {
        config.tcp.handshake_timeout = Duration::from_secs(2);
    });
    for number in 0..500_u32 {
        let from = SocketAddr::new([10, 0, 2, (number % 250) as u8].into(), 1_000 + number as u16);
        let mut syn = pure_ack(from, SeqNumber(number * 7_777_777), SeqNumber(0));
        syn[20 + 13] = TcpFlags::SYN.bits() as u8;
        let checksum = ChecksumStatus::Verified;
        rack.back.push(&Frame { checksum, ..Frame::new(syn, rack.now) });
        if number % 50 == 0 {
            rack.step();
        }
    }
    rack.begin();
    assert_eq!(rack.joined, 4);
    rack.finish();
    assert_eq!((rack.done(), rack.ended.len()), (4, 4), "{:?}", rack.ended);
}

/// Returns the sequence number and the TSval of the SYN-ACK that answers a SYN from `from`.
fn answer_to_a_syn(rack: &mut Rack, from: SocketAddr) -> (SeqNumber, u32) {
    let mut syn = pure_ack(from, SeqNumber(7), SeqNumber(0));
    syn[20 + 13] = TcpFlags::SYN.bits() as u8;
    rack.back.push(&Frame { checksum: ChecksumStatus::Verified, ..Frame::new(syn, rack.now) });
    while !rack.sender.turn(rack.now).unwrap().is_idle() {}
    let mut answers = rack.out.take_all().into_iter().filter_map(|sent| {
        let parsed = parse_ip(&sent.bytes).unwrap();
        let Transport::Tcp(segment) = parsed.transport else { return None };
        let options = SegmentOptions::read(&sent.bytes[parsed.at.tcp_options()]);
        let is_it = parsed.key.destination() == from.ip() && segment.flags.contains(TcpFlags::SYN);
        is_it.then(|| (segment.seq, options.timestamp.unwrap().value))
    });
    answers.next().expect("an answer")
}

/// Only receivers that may join learn the group's initial sequence number and clock.
#[test]
fn a_syn_that_comes_too_late_is_told_no_number_of_the_group() {
    for late in [Late::Refuse, Late::CatchUp] {
        let mut rack = Rack::new(3, CastConfig { late, ..cast_config() }, 8_000_000);
        rack.begin();
        let ticks = |rack: &Rack| (rack.now.as_nanos() / 1_000_000) as u32;
        let (iss, value) = answer_to_a_syn(&mut rack, address("10.0.3.1:1000"));
        let clock = value.wrapping_sub(ticks(&rack));
        (0..20).for_each(|_| {
            rack.feed();
            rack.step();
        });
        let (seq, value) = answer_to_a_syn(&mut rack, address("10.0.3.2:1000"));
        let is_told = (seq == iss, value.wrapping_sub(ticks(&rack)) == clock);
        let may_join = late == Late::CatchUp;
        assert_eq!(is_told, (may_join, may_join), "{late:?}");
        rack.finish();
        assert_eq!(rack.done(), 3, "{:?}", rack.ended);
    }
}
