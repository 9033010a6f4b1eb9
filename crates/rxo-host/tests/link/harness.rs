//! The part that the property test and the fuzz target share: any bytes become frames, addresses and times.
//!
//! The test requires that nothing panics, that sent frames can be parsed, come from this host, and are only a
//! few per received frame, that the table stays within its limit, and that timers stop.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use rxo_frame::{Duration, Frame, Instant, LinkKind};
use rxo_host::link::{Channel, FrameOutcome, Link, LinkConfig, Resolve, Route};
use rxo_wire::checksum::Sum;
use rxo_wire::{Transport, ethertype, parse, parse_ip};

const MAC: [u8; 6] = [2, 0, 0, 0, 0, 2];
const LIMIT: usize = 6;

/// Runs the script `data`.
///
/// # Panics
/// If a requirement is violated.
pub(crate) fn run(data: &[u8]) {
    let Some((first, mut rest)) = data.split_first() else { return };
    let kind = if first & 1 == 0 { LinkKind::Ethernet } else { LinkKind::RawIp };
    let mut link = new_link(kind);
    let mut now = Instant::from_micros(1_000);
    let is_member = first & 2 != 0;
    if is_member {
        channels().for_each(|channel| link.join(channel, now).expect("room"));
        check(&mut link, kind, now);
    }
    while let Some((head, tail)) = rest.split_first_chunk::<3>() {
        let (step, value) = (head[0], u16::from_be_bytes([head[1], head[2]]));
        rest = match step % 8 {
            0..=4 => {
                let (frame, after) = tail.split_at(tail.len().min(usize::from(value) % 200));
                take(&mut link, kind, &shaped(step, frame), now);
                after
            }
            5 => {
                resolve(&mut link, value, now);
                tail
            }
            6 => {
                now = now + Duration::from_millis(u64::from(value));
                tail
            }
            _ => {
                fire(&mut link, &mut now);
                tail
            }
        };
        check(&mut link, kind, now);
    }
    if is_member {
        channels().for_each(|channel| link.leave(channel, now));
    }
    end(&mut link, now);
}

/// Returns the channels that the link joins in half of the scripts.
fn channels() -> impl Iterator<Item = Channel> {
    let rows = [("10.0.0.9", "232.1.1.1"), ("10.0.0.7", "232.1.1.1"), ("fd00::9", "ff3e::8000:1")];
    rows.into_iter().map(|(source, group)| {
        let [source, group] = [source, group].map(|text| text.parse().expect("an address"));
        Channel::new(source, group).expect("a channel")
    })
}

fn new_link(kind: LinkKind) -> Link {
    let addresses = ["10.0.0.2/24", "fd00::2/64"].map(|text| text.parse().expect("an address"));
    let routes = vec![Route::default_by(Ipv4Addr::new(10, 0, 0, 1).into())];
    let config = LinkConfig {
        kind,
        routes,
        neighbours: LIMIT,
        ..LinkConfig::ethernet(MAC, addresses.to_vec())
    };
    Link::new(config).expect("a link that can be")
}

/// Returns the frame as it is, or with fields that random bytes rarely match: the host's address and right
/// checksums.
fn shaped(step: u8, frame: &[u8]) -> Vec<u8> {
    let mut frame = frame.to_vec();
    if step & 0x40 != 0 {
        for (to, from) in frame.iter_mut().zip(MAC) {
            *to = from;
        }
    }
    if step & 0x80 != 0 {
        repair(&mut frame);
    }
    frame
}

/// Corrects the checksums of an Ethernet frame.
fn repair(frame: &mut [u8]) {
    if ethertype(frame) == Some(0x0800) && frame.len() >= 34 {
        frame[24..26].fill(0);
        let sum = Sum::of(&frame[14..34]).checksum();
        frame[24..26].copy_from_slice(&sum.to_be_bytes());
    }
    let Ok(parsed) = parse(frame) else { return };
    let (start, end) = (parsed.at.transport as usize, parsed.at.end as usize);
    let pseudo = match parsed.transport {
        Transport::Other(1 | 2) => Sum::ZERO,
        Transport::Other(58) => {
            rxo_wire::checksum::pseudo_header(&parsed.key, 58, (end - start) as u32)
        }
        _ => return,
    };
    if let Some(message) = frame.get_mut(start..end).filter(|message| message.len() >= 4) {
        message[2..4].fill(0);
        let sum = (pseudo + Sum::of(message)).checksum();
        message[2..4].copy_from_slice(&sum.to_be_bytes());
    }
}

fn take(link: &mut Link, kind: LinkKind, bytes: &[u8], now: Instant) {
    let heard = link.on_frame(&Frame::new(bytes, now), now);
    match heard {
        FrameOutcome::TooBig(error) => assert!(link.is_ours(error.pair.source())),
        FrameOutcome::Unreachable(error) => assert!(link.is_ours(error.pair.source())),
        FrameOutcome::Neighbour(ip) => {
            assert_eq!(kind, LinkKind::Ethernet);
            assert!(matches!(link.resolve(ip, now), Resolve::Resolved(_)), "{ip} is not known");
        }
        FrameOutcome::Segment(parsed) | FrameOutcome::ToGroup(parsed) => {
            let (source, destination) = (parsed.key.source(), parsed.key.destination());
            let is_it = |it: Channel| (it.source(), it.group()) == (source, destination);
            assert!(link.is_ours(destination) || channels().any(is_it));
        }
        FrameOutcome::Nothing => {}
    }
    let count = std::iter::from_fn(|| link.poll_transmit()).map(|f| readable(&f, kind)).count();
    assert!(count <= 1, "{count} frames for one");
}

fn resolve(link: &mut Link, value: u16, now: Instant) {
    let ip: IpAddr = match value & 3 {
        0 => Ipv4Addr::from_bits(0x0a00_0000 | u32::from(value >> 8)).into(),
        1 => Ipv4Addr::from_bits(u32::from(value) << 16).into(),
        2 => Ipv6Addr::from_bits(0xfd00 << 112 | u128::from(value >> 8)).into(),
        _ => Ipv6Addr::from_bits(0xfe80 << 112 | u128::from(value >> 8)).into(),
    };
    if let Resolve::Resolved(mac) = link.resolve(ip, now) {
        assert_eq!(mac[0] & 1, 0, "{ip} is said to be a group");
        assert!(link.source_for(ip).is_some_and(|from| from.is_ipv4() == ip.is_ipv4()));
    }
    link.confirm(ip, now);
}

fn fire(link: &mut Link, now: &mut Instant) {
    if let Some(at) = link.poll_at() {
        *now = at.max(*now);
        link.on_timeout(*now);
    }
}

fn check(link: &mut Link, kind: LinkKind, now: Instant) {
    link.on_timeout(now);
    assert!(link.poll_at().is_none_or(|at| at > now), "a timer that does not stop");
    assert!(link.neighbours() <= LIMIT);
    while let Some(frame) = link.poll_transmit() {
        readable(&frame, kind);
    }
}

/// Checks that a sent frame comes from this host and has right lengths and checksums.
fn readable(frame: &[u8], kind: LinkKind) {
    if kind == LinkKind::Ethernet {
        assert_eq!(frame[6..12], MAC);
        if ethertype(frame) == Some(0x0806) {
            assert_eq!(frame.len(), 42);
            return;
        }
    }
    let parsed = if kind == LinkKind::Ethernet { parse(frame) } else { parse_ip(frame) };
    let parsed = parsed.expect("a packet that can be read");
    assert!(parsed.ip.checksum_ok);
    assert_eq!(parsed.at.end as usize, frame.len());
    let message = &frame[parsed.at.transport as usize..];
    let sum = match parsed.transport {
        Transport::Other(1 | 2) => Sum::of(message),
        Transport::Other(58) => {
            Sum::of(message)
                + rxo_wire::checksum::pseudo_header(&parsed.key, 58, message.len() as u32)
        }
        other => panic!("{other:?} leaves"),
    };
    assert!(sum.is_valid());
}

/// Checks that without further frames all entries and timers expire.
fn end(link: &mut Link, mut now: Instant) {
    for _ in 0..20 * LIMIT {
        fire(link, &mut now);
    }
    assert_eq!((link.neighbours(), link.poll_at()), (0, None));
}
